"""Judges whether a session kept a rule: at each occasion kept, broken, or not to be told, with the event that says so.

A pure function of a rule and a session, whether or not the rule was in force: what was done before a rule came is
what its effect is measured against. A rule is broken only by what stands in the trace; where something else may
have done what was asked (a hook, another check, a later turn, the person's own wish), it can't be told.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct, field, structs

from agentsignals.model import ABANDONED, MAIN, NO_SUBAGENT, RAN, REPLAYED, Session, ToolCall
from agentsignals.repositories.rules import MANAGERS, Occasion, Outcome, Rule, matching, occasion_at
from agentsignals.shell.commands import ENTERS, KINDS, checks, git_verb, leading_words
from agentsignals.shell.tokens import names, operands, program, simple_commands, split
from agentsignals.views.session import OF_AGENT

# Actions of a session that rules speak of, in order of time: commands, changed files, commits, pushes.

_SHELLS = names("bash sh zsh dash ksh")
_RUNS_TEXT = re.compile(r"-[a-z]*c")
_DEEP = 3
_COMMITTED = re.compile(r"^\[(?P<branch>detached HEAD|[^\s\]]+)(?: \(root-commit\))? [0-9a-f]{7,40}\]", re.MULTILINE)
_NO_COMMIT = re.compile(
    r"nothing (?:added )?to commit|no changes added|^(?:fatal|error):|husky - .* failed|hook .*failed", re.I | re.M
)
_MESSAGES = names("-m --message -am -qm -aqm -sm -asm")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)\n\s*\1\b", re.DOTALL)
_NO_CODE = re.compile(
    r"\.(?:md|mdx|markdown|rst|txt|adoc|log)$|(?:^|/)(?:LICENSE|CHANGELOG)[^/]*$|(?:^|/)(?:tmp|temp|scratch)/|(?:^|/)(?-i:[a-z][^./]*)$",
    re.I,
)
"""Documents, temporary folders, and names without an extension that are rather folders (`Makefile` is a file)."""
_SCRATCH = re.compile(r"^(?:/private)?/(?:tmp|var/folders)(?:/|$)|^\$")
"""Where tests and trials are made; `$DIR` is nearly always such a folder."""
_KEYWORDS = names("do then else elif if while until ! { } time nohup exec command sudo env builtin")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")

Naming = Callable[[str], str | None]
"""A path of the trace as seen from the repository's root; None for a file outside of it."""


class Did(Struct, frozen=True, kw_only=True):
    """A simple command that a call ran."""

    at: int
    """Index among the session's calls, in order of time."""
    call: ToolCall
    words: tuple[str, ...]
    """Without what only runs another (`sudo`, `uv run`, `python -m`)."""
    head: str
    """The program that the line itself names."""
    n: int
    """Index of the command in the call's line."""
    is_piped: bool
    """It reads what the command before it prints."""
    is_aside: bool
    """Its line went into a scratch folder before: what it commits is another repository's."""

    @property
    def is_sure(self) -> bool:
        """True where it surely ran: in a line that failed, only the first command did."""
        return self.call.status in RAN or (self.call.status == "error" and self.n == 0)


class Commit(Struct, frozen=True):
    did: Did
    branch: str | None
    message: str | None
    """None where the line does not hold it."""


class Acts:
    """A session's acts. `naming` gives the repository's own paths."""

    def __init__(self, session: Session, naming: Naming) -> None:
        self.session = session
        # By time, a call without one at the time of the call before it in its thread: a subagent's events may stand
        # behind those of the conversation that went on.
        clocks: dict[str, int] = {}
        timed = []
        for call in session.tool_calls:
            if call.thread not in (ABANDONED, REPLAYED) and call.status not in ("rejected", "cancelled"):
                clock = clocks[call.thread] = call.started_at or clocks.get(call.thread, session.started_at or 0)
                timed.append((clock, call.seq, call))
        self.calls = [call for _, _, call in sorted(timed, key=lambda entry: entry[:2])]
        self.commands = [did for n, call in enumerate(self.calls) if call.command for did in _commands(n, call)]
        places = {call.seq: n for n, call in enumerate(self.calls) if call.status in RAN}
        self.edits = [
            (places[edit.seq], edit, path)
            for edit in session.edits
            if edit.seq in places and (path := naming(edit.path)) is not None
        ]
        self.edits.sort(key=lambda entry: (entry[0], entry[1].hunk))
        self.tried_commits: list[int] = []
        """Where a commit was tried, whatever came of it: hooks ran."""
        self.commits: list[Commit] = []
        for did in self.commands:
            verb = git_verb(did.words) if did.words[:1] == ("git",) else []
            if verb[:1] != ["commit"] or "--dry-run" in verb or did.is_aside:
                continue
            self.tried_commits.append(did.at)
            output = self.output(did.call)
            made = _COMMITTED.search(output)
            if made is not None or (did.call.status in RAN and not _NO_COMMIT.search(output)):
                self.commits.append(
                    Commit(did, made["branch"] if made else None, _message_of(verb, did.call.command or ""))
                )

    def output(self, call: ToolCall) -> str:
        return (self.session.events[call.result_seq].text or "") if call.result_seq is not None else ""

    def pushes(self) -> list[Did]:
        """Pushes, and pull requests opened."""
        pushed = []
        for did in self.commands:
            is_push = did.words[:3] == ("gh", "pr", "create")
            if did.words[:1] == ("git",):
                verb = git_verb(did.words)
                is_other = {"--dry-run", "-n", "--delete", "-d", "--tags"} & set(verb) or any(
                    w[:1] == ":" for w in verb
                )
                is_push = verb[:1] == ["push"] and not is_other
            if is_push and did.call.status in RAN and not did.is_aside:
                pushed.append(did)
        return pushed

    def stretches(self) -> dict[int | None, int]:
        """Number the stretch of work that each turn belongs to: a prompt sent while the agent worked begins none."""
        made: dict[int | None, int] = {None: 0}
        ends = {turn.seq: turn.turn for turn in self.session.turns}
        stretch, last = 0, "text"
        for event in self.session.events:
            if event.seq in ends:
                stretch += last == "text"
                made[ends[event.seq]] = stretch
            elif event.thread == MAIN and event.kind in OF_AGENT:
                last = event.kind
            elif event.kind == "interrupt":
                last = "text"
        return made

    def is_cut(self) -> bool:
        """True where the session ends in the midst of work: its last sign of the agent is no message to the person."""
        signs = (e.kind for e in reversed(self.session.events) if e.thread == MAIN and e.kind in OF_AGENT)
        return next(signs, None) != "text"


def _commands(at: int, call: ToolCall, text: str | None = None, deep: int = 0) -> Iterator[Did]:
    """Yield each simple command of a call, also those inside of `sh -c`, as it is compared with rules."""
    parted = split(text if text is not None else call.command or "")
    is_aside = False
    for n, (raw, _, _, _) in enumerate(parted.commands):
        words = leading_words(raw)
        if not words:
            continue
        if words[0] in ENTERS:
            is_aside = bool(_SCRATCH.search(words[-1]))
        option = next((k for k, word in enumerate(raw) if k and _RUNS_TEXT.fullmatch(word)), 0)
        if program(words[0]) in _SHELLS and option and option + 1 < len(raw) and deep < _DEEP:
            yield from _commands(at, call, raw[option + 1], deep + 1)
            continue
        named = (
            program(word)
            for k, word in enumerate(raw)
            if word not in _KEYWORDS and not _ASSIGNMENT.match(word) and (k == 0 or word[:1] != "-")
        )
        yield Did(
            at=at,
            call=call,
            words=(program(words[0]), *words[1:]),
            head=next(named, ""),
            n=n,
            is_piped=n > 0 and parted.ends[n - 1].startswith("|") and parted.ends[n - 1] != "||",
            is_aside=is_aside,
        )


def _message_of(verb: list[str], command: str) -> str | None:
    texts = [verb[n + 1] for n, word in enumerate(verb[:-1]) if word in _MESSAGES]
    texts += [word.partition("=")[2] for word in verb if word.startswith("--message=")]
    if not texts or "$(" in texts[0] or "\x02" in texts[0] or "<<" in texts[0]:
        heredoc = _HEREDOC.search(command)
        return heredoc[2].strip() if heredoc else None
    return "\n\n".join(texts).strip()


# Whether a command that ran is the one that a rule names.

_PLACEHOLDER = re.compile(r"[<\[{].*|\.\.\.|…")
_VALUED = names(
    "-C --dir --cwd --prefix -w --workspace --filter -F --file -j -c -m -k -n --git-dir --work-tree --manifest-path"
    " --project --directory --config"
)
_TASKS = names("npm pnpm yarn bun")
_MANY = names("make gmake just task")
_THROUGH = names("npx bunx pnpx uvx xargs rtk nice timeout gtimeout stdbuf")
_PATHLIKE = re.compile(r"[/*]|\.\w|^\.{1,3}$|::|…")
_SEARCHES = frozenset(("search", "read"))


def matches(rule: list[str], did: Did, *, exactly: bool) -> str:
    """Return whether a command is the rule's: `yes`, `part` (only some files or tests, or without the rule's
    options), or empty. `exactly`: all options must be there, as a ban requires."""
    if len(rule) == 1:
        word = rule[0]
        if ":" in word:
            return "yes" if word in did.words else ""
        if exactly:
            # A program may only run another, named after it (`npx tsc`, `python -m pip`).
            is_through = did.head in _THROUGH or did.head.startswith("python")
            is_it = did.head == word or (did.words[0] == word and is_through)
            return "" if not is_it or (did.is_piped and KINDS.get(word) in _SEARCHES) else "yes"
    if did.words[0] != rule[0]:
        return ""
    asked, done = _arguments(rule), _arguments(list(did.words))
    if rule[0] in _MANY:
        if any(word not in done for word in asked) or (not asked and done):
            return ""
        done = asked
    is_part = False
    for n, word in enumerate(asked):
        if n < len(done) and done[n] == word:
            continue
        if not _PATHLIKE.search(word) or exactly:
            return ""
        is_part = True
    rest = done[len(asked) :]
    options = {o for o in did.words[1:] if o[:1] == "-"}
    lacking = [o for o in rule[1:] if o[:1] == "-" and not _has(o, options)]
    if exactly:
        return "" if lacking else "yes"
    if any(not _PATHLIKE.search(word) for word in rest) and rule[0] in _TASKS and not asked:
        return ""
    only = {"-k", "-t", "-run", "--filter", "--grep", "--testNamePattern", "-m"} & options
    return "part" if is_part or lacking or rest or only else "yes"


def _arguments(words: list[str]) -> list[str]:
    arguments = operands(words, _VALUED)
    if words[0] in _TASKS:
        arguments = [w for w in arguments if w not in ("run", "run-script")]
        arguments = ["test" if w == "t" else w for w in arguments]
    return arguments


def _has(option: str, options: set[str]) -> bool:
    """Short options may be joined: `-rf` is `-fr` and `-r -f`; `--force` of Git is `-f`."""
    if option in options or any(o.startswith(f"{option}=") for o in options):
        return True
    if option == "--force":
        return "-f" in options
    letters = {c for o in options if re.fullmatch(r"-[A-Za-z]+", o) for c in o[1:]}
    return bool(re.fullmatch(r"-[A-Za-z]{1,3}", option)) and set(option[1:]) <= letters


def words_of(command: str) -> list[str]:
    """A rule's command as words that a run must have: no placeholders, and what only runs another left out."""
    lines = simple_commands(command)
    words = (leading_words(lines[0][0]) or lines[0][0]) if lines else []  # `npx` alone is what it says
    return [program(words[0]), *(w for w in words[1:] if not _PLACEHOLDER.match(w))] if words else []


# Occasions of a rule, and what came of each.


def _run_at_occasions(rule: Rule, acts: Acts, has_hooks: bool | None) -> Iterator[Occasion]:
    """Commands to run: before each commit or push, after code was changed, before work is called done."""
    asked = [words for command in rule.commands if (words := words_of(command))]
    ran: list[tuple[Did, bool]] = []  # the runs of the rule's command, and whether all of it
    for did in acts.commands:
        hows = {matches(words, did, exactly=False) for words in asked} if did.is_sure else set()
        if hows & {"yes", "part"}:
            ran.append((did, "yes" in hows))
    if rule.when in ("commit", "push"):
        since = -1
        for did in [c.did for c in acts.commits] if rule.when == "commit" else acts.pushes():
            yield _before(rule, acts, ran, since, did, has_hooks)
            since = did.at
        return
    edits = [
        entry
        for entry in acts.edits
        if (matching(rule.paths, entry[2]) == "yes" if rule.paths else not _NO_CODE.search(entry[2]))
    ]
    stretches = acts.stretches()
    ends = {stretches.get(acts.calls[at].turn, 0): (at, path) for at, _, path in edits}
    if rule.when in ("done", "edit"):
        ends = {stretch: end for stretch, end in ends.items() if stretch == max(ends)}
    for stretch, (at, path) in ends.items():
        until = next((n for n, _, _ in edits if n > at), len(acts.calls))
        inside = [(d, is_whole) for d, is_whole in ran if at <= d.at < until]
        in_time = [d for d, _ in inside if rule.when != "change" or stretches.get(d.call.turn, 0) == stretch]
        outcome, because = _after(rule, acts, (at, until), inside, in_time, has_hooks, any(whole for _, whole in ran))
        yield occasion_at(outcome, because, acts.calls[at], path)


_HOOKS = {
    True: "the repository has hooks, which may have run it", None: "hooks may have run it: name the repository",
    False: "",
}  # fmt: skip


def _before(  # noqa: PLR0913  (the window, what ran in it, and what else may have run)
    rule: Rule, acts: Acts, ran: list[tuple[Did, bool]], since: int, did: Did, has_hooks: bool | None
) -> Occasion:
    """Judge a commit or push by whether the command ran before it and after the previous one."""
    command = " or ".join(rule.commands)
    inside = [(d, is_whole) for d, is_whole in ran if since < d.at < did.at or (d.at == did.at and d.n < did.n)]
    last_edit = max((at for at, _, _ in acts.edits if since < at < did.at), default=-1)
    whole = [d for d, is_whole in inside if is_whole]
    output = acts.output(did.call)
    other = _other_check(rule, acts, since, did.at)
    by_hand = any(event.kind == "user_shell" for event in acts.session.events)
    otherwise = f"`{command}` ran otherwise than it stands there"
    reasons: tuple[tuple[object, Outcome, str], ...] = (
        (any(d.at > last_edit for d in whole), "kept", f"`{command}` ran before it"),
        (inside and not whole, "cannot_tell", otherwise),
        (not whole and any(c in output for c in rule.commands), "kept", "its output names the command: a hook ran it"),
        (whole, "cannot_tell", f"files were changed after `{command}` ran"),
        (last_edit < 0, "cannot_tell", "nothing was changed in this session before it"),
        (other, "cannot_tell", f"`{other}` ran, which may stand for it"),
        (has_hooks is not False, "cannot_tell", _HOOKS[has_hooks]),
        (by_hand, "cannot_tell", "the person ran commands by hand"),
        (True, "broken", f"`{command}` did not run before it"),
    )
    outcome, because = next((outcome, because) for holds, outcome, because in reasons if holds)
    return occasion_at(outcome, because, did.call, (inside[-1][0].call.command or "") if because == otherwise else "")


def _after(  # noqa: PLR0913  (one for each way that it can't be told; what a change is followed by)
    rule: Rule,
    acts: Acts,
    window: tuple[int, int],
    inside: list[tuple[Did, bool]],
    in_time: list[Did],
    has_hooks: bool | None,
    ran_whole: bool,
) -> tuple[Outcome, str]:
    """Judge by whether the command ran after a change and before the next one."""
    at, until = window
    call, command = acts.calls[at], " or ".join(rule.commands)
    whole = [d for d, is_whole in inside if is_whole]
    other = _other_check(rule, acts, at - 1, until)
    hooked = has_hooks is not False and any(at <= n <= until for n in acts.tried_commits)
    interrupted = any(event.kind == "interrupt" and event.turn == call.turn for event in acts.session.events)
    before = f"`{command}` ran before the last change: nobody says whether work was done"
    reasons: tuple[tuple[object, Outcome, str], ...] = (
        (any(d in in_time for d in whole), "kept", f"`{command}` ran after it"),
        (whole, "cannot_tell", f"`{command}` ran in a later turn only"),
        (inside, "cannot_tell", f"`{command}` ran otherwise than it stands there"),
        (rule.when == "done" and ran_whole, "cannot_tell", before),
        (other, "cannot_tell", f"`{other}` ran, which may stand for it"),
        (hooked, "cannot_tell", f"a commit came after it: {_HOOKS[has_hooks]}"),
        (interrupted, "cannot_tell", "the person interrupted the turn"),
        (until == len(acts.calls) and acts.is_cut(), "cannot_tell", "the session ends in the midst of work"),
        (True, "broken", f"`{command}` did not run after it"),
    )
    return next((outcome, because) for holds, outcome, because in reasons if holds)


def _other_check(rule: Rule, acts: Acts, since: int, until: int) -> str:
    kinds = {check.kind for command in rule.commands for check in checks(command)}
    lines = (call.command for call in acts.calls[max(since + 1, 0) : until + 1] if call.command and kinds)
    return next((check.name for line in lines for check in checks(line) if check.kind in kinds), "")


Verdict = Literal["kept", "broken", "cannot_tell", "no_occasion"]
MOST_OCCASIONS = 20
"""Occasions of a rule in a session that are named; the counts tell of all."""
_CONVENTIONAL = re.compile(r"^[a-z]+(?:\([^)]+\))?!?: \S")
"""conventionalcommits.org 1.0.0: a noun, a scope in parentheses, `!`, a colon and a space, a description."""
_CO_AUTHOR = re.compile(r"^\s*co-authored-by:", re.IGNORECASE | re.MULTILINE)
_PUSHED_TO = re.compile(r"^\s*[ *+=!-]?\s*(?:[0-9a-f]+\.{2,3}[0-9a-f]+|\[new branch\])\s+\S+ -> (\S+)", re.MULTILINE)
_MANAGES = names(
    "install i ci add remove rm uninstall un update up upgrade run run-script test t start build exec x dlx create sync"
    " lock"
)
"""Subcommands with which package managers change a project; the others look up or publish."""


class Followed(Struct, kw_only=True):
    verdict: Verdict
    because: str
    """Reason given by the first occasion that decided."""
    kept: int = 0
    broken: int = 0
    untold: int = 0
    marks: list[Occasion] = field(default_factory=list)


def follow(rule: Rule, acts: Acts, *, has_hooks: bool | None = None) -> Followed:
    """Judge whether a session kept a rule. `has_hooks`: the repository has Git hooks, which may run checks at a
    commit; None where unknown."""
    # Where a breach may have been, what must never be done is not known to be kept.
    order: tuple[Outcome, ...] = (
        ("broken", "cannot_tell", "kept") if rule.forbids else ("broken", "kept", "cannot_tell")
    )
    by: dict[Outcome, list[Occasion]] = {outcome: [] for outcome in order}
    calls = {call.seq: call for call in acts.calls}
    for found in _OF[rule.kind](rule, acts, has_hooks):
        occasion = found
        if occasion.outcome == "broken" and (why := _why_undecidable(occasion, rule, acts, calls[occasion.seq])):
            occasion = structs.replace(occasion, outcome="cannot_tell", because=why)
        by[occasion.outcome].append(occasion)
    marks = [each for group in by.values() for each in group[:MOST_OCCASIONS]][:MOST_OCCASIONS]
    verdict: Verdict = next((outcome for outcome, group in by.items() if group), "no_occasion")
    event_of = acts.session.events
    return Followed(
        verdict=verdict,
        because="nothing happened that it speaks of" if verdict == "no_occasion" else by[verdict][0].because,
        kept=len(by["kept"]),
        broken=len(by["broken"]),
        untold=len(by["cannot_tell"]),
        marks=[structs.replace(m, artifact=event_of[m.seq].artifact_id, line=event_of[m.seq].line) for m in marks],
    )


def _why_undecidable(occasion: Occasion, rule: Rule, acts: Acts, call: ToolCall) -> str:
    """Return why an apparent breach may be none, or an empty string.

    The rule has a condition, the person asked for it, or a subagent did it.
    """
    if rule.condition:
        return f"the rule has a condition: {rule.condition[:80]}"
    if rule.forbids or rule.kind == "use":
        turns = (t for t in acts.session.turns if t.is_prompt and (t.seq < call.seq or call.thread != MAIN))
        prompts = "\n".join(turn.text for turn in turns).lower()
        words = [
            *(rule.instead_of or rule.commands),
            posixpath.basename(occasion.text.rstrip("/")) if rule.paths else "",
        ]
        for word in words:
            if word and re.search(rf"(?<![\w-]){re.escape(word.lower())}(?![\w-])", prompts):
                return f"the person's words have {word!r}, and may have asked for it"
    return "" if call.thread in NO_SUBAGENT else "a subagent did it: whether it was given the rule is not in the trace"


def _never_run(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Occasion]:
    """An occasion is a command of the same program, of a rule about a whole program any command."""
    forbidden = [words for command in rule.commands if (words := words_of(command))]
    programs = {words[0] for words in forbidden if len(words) > 1}
    for did in acts.commands:
        if any(matches(words, did, exactly=True) for words in forbidden):
            yield _breach(did)
        elif (did.words[0] in programs if programs else did.n == 0) and did.is_sure:
            yield occasion_at("kept", "it ran another command", did.call)


def _breach(did: Did) -> Occasion:
    if not did.is_sure:
        return occasion_at("cannot_tell", "the line failed, or has no result: it may not have come to it", did.call)
    words = " ".join(" ".join(did.words).replace("\x02", "").split())
    return occasion_at("broken", f"`{words[:60]}` ran", did.call)


def _use(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Occasion]:
    wanted, unwanted = ([words for c in group if (words := words_of(c))] for group in (rule.commands, rule.instead_of))
    of_managers = any(rule.commands[0] in family for family in MANAGERS)
    for did in acts.commands:
        if any(matches(words, did, exactly=True) for words in unwanted):
            if of_managers and next((w for w in did.words[1:] if w[:1] != "-"), "install") not in _MANAGES:
                because = "it looks up or publishes: no word of the rule says whether that is meant"
                yield occasion_at("cannot_tell", because, did.call)
            else:
                yield _breach(did)
        elif did.is_sure and any(did.head == words[0] or matches(words, did, exactly=False) for words in wanted):
            yield occasion_at("kept", f"`{did.head}` ran", did.call)


def _prefix(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Occasion]:
    failed: set[tuple[str, ...]] = set()
    for did in acts.commands:
        if did.head == rule.commands[0]:
            if did.call.status == "error":
                failed.add(did.words)
            yield occasion_at("kept", f"`{did.head}` ran it", did.call)
        elif KINDS.get(did.head, "run") and not did.is_piped and did.is_sure:
            had_failed = did.words in failed
            because = "with it the same command had failed" if had_failed else f"`{did.head}` ran without it"
            yield occasion_at("cannot_tell" if had_failed else "broken", because, did.call)


def _never_edit(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Occasion]:
    """An occasion is any change of the repository's files."""
    for at, edit, path in acts.edits:
        outcome: Outcome = "cannot_tell"
        where = matching(rule.paths, path)
        if where == "yes" and edit.origin in ("program", "repository"):
            because = "a command made it, or put back what the repository has"
        elif where == "maybe":
            because = "a folder or file of that name lies deeper"
        else:
            outcome, because = ("broken", "it was changed") if where else ("kept", "another file was changed")
        yield occasion_at(outcome, because, acts.calls[at], path)


def _never_branch(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Occasion]:
    """Commits by the branch that Git prints; pushes by what Git prints, or by the branch the command names."""
    for commit in acts.commits if "commit" in rule.commands else ():
        if commit.branch is None:
            yield occasion_at("cannot_tell", "the output does not name the branch", commit.did.call)
        else:
            outcome: Outcome = "broken" if commit.branch in rule.branches else "kept"
            yield occasion_at(outcome, f"committed on {commit.branch}", commit.did.call)
    for did in acts.pushes() if "push" in rule.commands else ():
        if did.words[0] != "git":
            continue
        arguments = [w for w in git_verb(did.words)[1:] if w[:1] != "-"]
        targets = _PUSHED_TO.findall(acts.output(did.call)) or [w.rpartition(":")[2] for w in arguments[1:]]
        targets = [t.removeprefix("refs/heads/").removeprefix("+") for t in targets if t != "HEAD"]
        if not targets:
            yield occasion_at("cannot_tell", "neither command nor output names the branch", did.call)
        else:
            outcome = "broken" if any(target in rule.branches for target in targets) else "kept"
            yield occasion_at(outcome, f"pushed to {targets[0]}", did.call)


def _message(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Occasion]:
    forbids_author = rule.commands == ("no co-author",)
    for commit in acts.commits:
        message = commit.message
        if message is None:
            yield occasion_at("cannot_tell", "the message is not in the command", commit.did.call)
            continue
        fits = not _CO_AUTHOR.search(message) if forbids_author else bool(_CONVENTIONAL.match(message))
        because = f"message: {message.splitlines()[0][:80] if message else ''}"
        yield occasion_at("kept" if fits else "broken", because, commit.did.call)


_OF: dict[str, Callable[[Rule, Acts, bool | None], Iterator[Occasion]]] = {
    "run": _run_at_occasions,
    "never_run": _never_run,
    "use": _use,
    "never_edit": _never_edit,
    "never_branch": _never_branch,
    "prefix": _prefix,
    "message": _message,
}
