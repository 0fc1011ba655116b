"""Actions of a session that rules speak of, in order of time: commands, changed files, commits, pushes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from agentsignals.model import ABANDONED, MAIN, RAN, REPLAYED, Edit, Session, ToolCall
from agentsignals.shell.arguments import names, operands, program
from agentsignals.shell.kinds import ENTERS, KINDS, git_verb, leading_words
from agentsignals.shell.tokens import simple_commands, split
from agentsignals.views.session import OF_AGENT

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
    """Which of the session's calls, in order of time."""
    call: ToolCall
    words: tuple[str, ...]
    """Without what only runs another (`sudo`, `uv run`, `python -m`)."""
    head: str
    """The program that the line itself names."""
    n: int
    """Which command of the call's line."""
    is_piped: bool
    """It reads what the command before it prints."""
    is_aside: bool
    """Its line went into a scratch folder before: what it commits is another repository's."""

    @property
    def is_sure(self) -> bool:
        """True where it surely ran: in a line that failed, only the first command did."""
        return self.call.status in RAN or (self.call.status == "error" and self.n == 0)


class Commit(Struct, frozen=True):
    """A commit that a call made."""

    did: Did
    branch: str | None
    message: str | None
    """None where the line does not hold it."""


class Acts:
    """A session's acts. `naming` gives the repository's own paths."""

    def __init__(self, session: Session, naming: Naming) -> None:
        self.session = session
        self.calls = _in_order(session)
        self._place = {call.seq: n for n, call in enumerate(self.calls)}
        self.commands = [did for n, call in enumerate(self.calls) if call.command for did in _commands(n, call)]
        failed = {call.seq for call in self.calls if call.status not in RAN}
        self.edits = [
            (self._place[edit.seq], edit, path)
            for edit in session.edits
            if edit.seq in self._place and edit.seq not in failed and (path := naming(edit.path)) is not None
        ]
        self.edits.sort(key=lambda entry: (entry[0], entry[1].hunk))
        self.tried_commits: list[int] = []
        """Where a commit was tried, whatever came of it: hooks ran."""
        self.commits = list(self._commits())

    def output(self, call: ToolCall) -> str:
        """Return the stored part of a call's result."""
        return (self.session.events[call.result_seq].text or "") if call.result_seq is not None else ""

    def code_edits(self) -> list[tuple[int, Edit, str]]:
        """Changes of files that are no documents, nor scratch."""
        return [entry for entry in self.edits if not _NO_CODE.search(entry[2])]

    def _commits(self) -> Iterator[Commit]:
        for did in self.commands:
            verb = git_verb(did.words) if did.words[:1] == ("git",) else []
            if verb[:1] != ["commit"] or "--dry-run" in verb or did.is_aside:
                continue
            self.tried_commits.append(did.at)
            output = self.output(did.call)
            made = _COMMITTED.search(output)
            if made is None and (did.call.status not in RAN or _NO_COMMIT.search(output)):
                continue
            yield Commit(did, made["branch"] if made else None, _message(verb, did.call.command or ""))

    def pushes(self) -> list[Did]:
        """Pushes, and pull requests opened."""
        return [d for d in self.commands if d.call.status in RAN and not d.is_aside and _is_push(d.words)]

    def prompts_until(self, call: ToolCall) -> str:
        """Return the person's words before a call, in lower case."""
        return "\n".join(
            turn.text for turn in self.session.turns if turn.is_prompt and (turn.seq < call.seq or call.thread != MAIN)
        ).lower()

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
        last = next(
            (e for e in reversed(self.session.events) if e.thread == MAIN and e.kind in OF_AGENT),
            None,
        )  # fmt: skip
        return last is None or last.kind != "text"

    def is_interrupted(self, turn: int | None) -> bool:
        """Return whether the person stopped the agent in a turn."""
        return any(e.kind == "interrupt" and e.turn == turn for e in self.session.events)


def _in_order(session: Session) -> list[ToolCall]:
    """By time, a call without one at the time of the call before it in its thread: a subagent's events may stand behind
    those of the conversation that went on."""
    clocks: dict[str, int] = {}
    timed = []
    for call in session.tool_calls:
        if call.thread in (ABANDONED, REPLAYED) or call.status in ("rejected", "cancelled"):
            continue
        clock = clocks[call.thread] = call.started_at or clocks.get(call.thread, session.started_at or 0)
        timed.append((clock, call.seq, call))
    timed.sort(key=lambda entry: entry[:2])
    return [call for _, _, call in timed]


def _commands(at: int, call: ToolCall, text: str | None = None, deep: int = 0) -> Iterator[Did]:
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
        is_piped = n > 0 and parted.ends[n - 1].startswith("|") and parted.ends[n - 1] != "||"
        yield Did(
            at=at,
            call=call,
            words=(program(words[0]), *words[1:]),
            head=_head(raw),
            n=n,
            is_piped=is_piped,
            is_aside=is_aside,
        )


def _head(raw: list[str]) -> str:
    for n, word in enumerate(raw):
        if word not in _KEYWORDS and not _ASSIGNMENT.match(word) and (n == 0 or word[:1] != "-"):
            return program(word)
    return ""


def _message(verb: list[str], command: str) -> str | None:
    texts = [verb[n + 1] for n, word in enumerate(verb[:-1]) if word in _MESSAGES]
    texts += [word.partition("=")[2] for word in verb if word.startswith("--message=")]
    if not texts or "$(" in texts[0] or "\x02" in texts[0] or "<<" in texts[0]:
        heredoc = _HEREDOC.search(command)
        return heredoc[2].strip() if heredoc else None
    return "\n\n".join(texts).strip()


def _is_push(words: tuple[str, ...]) -> bool:
    if words[:1] == ("git",):
        verb = git_verb(words)
        is_other = {"--dry-run", "-n", "--delete", "-d", "--tags"} & set(verb) or any(w[:1] == ":" for w in verb)
        return verb[:1] == ["push"] and not is_other
    return words[:3] == ("gh", "pr", "create")


# Whether a command that ran is the one that a rule names.

MANAGERS = (names("npm yarn pnpm bun"), names("pip pip3 uv poetry pdm pipenv conda"))
"""Package managers of which a project uses one: `use pnpm` forbids the others."""
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
