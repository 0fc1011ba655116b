"""Commands to run at an occasion: before a commit or a push, after a change, before work is called done."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct, field, structs

from agentsignals.model import NO_SUBAGENT
from agentsignals.repositories.rules import Mark, Outcome, Rule, mark_of, matching
from agentsignals.repositories.session_actions import MANAGERS, Acts, Commit, Did, matches, words_of
from agentsignals.shell.arguments import names
from agentsignals.shell.kinds import KINDS, checks, git_verb


def _ran(rule: Rule, acts: Acts) -> list[tuple[Did, str]]:
    """The runs of a rule's command, each with `yes` or `part`."""
    asked = [words_of(command) for command in rule.commands]
    made = []
    for did in acts.commands if asked else ():
        hows = [matches(words, did, exactly=False) for words in asked if words] if did.is_sure else []
        how = "yes" if "yes" in hows else "part" if "part" in hows else ""
        if how:
            made.append((did, how))
    return made


def run_at_occasions(rule: Rule, acts: Acts, has_hooks: bool | None) -> Iterator[Mark]:
    ran = _ran(rule, acts)
    if rule.when in ("commit", "push"):
        occasions = [c.did for c in acts.commits] if rule.when == "commit" else acts.pushes()
        before = -1
        for did in occasions:
            yield _before(rule, acts, ran, (before, did), has_hooks)
            before = did.at
        return
    edits = acts.code_edits() if not rule.paths else [e for e in acts.edits if matching(rule.paths, e[2]) == "yes"]
    if not edits:
        return
    stretches = acts.stretches()
    ends = {stretches.get(acts.calls[at].turn, 0): (at, path) for at, _, path in edits}
    if rule.when in ("done", "edit"):
        ends = {stretch: end for stretch, end in ends.items() if stretch == max(ends)}
    for stretch, (at, path) in ends.items():
        later = [n for n, _, _ in edits if n > at]
        in_time = (
            (lambda did, stretch=stretch: stretches.get(did.call.turn, 0) == stretch) if rule.when == "change" else None
        )
        yield _after(rule, acts, ran, (at, later[0] if later else len(acts.calls)), path, in_time, has_hooks)


_HOOKS = {True: "the repository has hooks, which may have run it", None: "hooks may have run it: name the repository"}


def _before(
    rule: Rule, acts: Acts, ran: list[tuple[Did, str]], window: tuple[int, Did], has_hooks: bool | None
) -> Mark:
    """Mark, for each commit or push, whether the command ran before it and after the previous one."""
    since, did = window
    command = " or ".join(rule.commands)
    inside = [(d, how) for d, how in ran if since < d.at < did.at or (d.at == did.at and d.n < did.n)]
    last_edit = max((at for at, _, _ in acts.edits if since < at < did.at), default=-1)
    whole = [d for d, how in inside if how == "yes"]
    if any(d.at > last_edit for d in whole):
        return mark_of("kept", f"`{command}` ran before it", did.call)
    if whole:
        return mark_of("cannot_tell", f"files were changed after `{command}` ran", did.call)
    if inside:
        return mark_of(
            "cannot_tell", f"`{command}` ran otherwise than it stands there", did.call, inside[-1][0].call.command or ""
        )
    output = acts.output(did.call)
    if any(command in output for command in rule.commands):
        return mark_of("kept", "its output names the command: a hook ran it", did.call)
    if last_edit < 0:
        return mark_of("cannot_tell", "nothing was changed in this session before it", did.call)
    other = _other_check(rule, acts, since, did.at)
    if other:
        return mark_of("cannot_tell", f"`{other}` ran, which may stand for it", did.call)
    if has_hooks is not False:
        return mark_of("cannot_tell", _HOOKS[has_hooks], did.call)
    if any(event.kind == "user_shell" for event in acts.session.events):
        return mark_of("cannot_tell", "the person ran commands by hand", did.call)
    return mark_of("broken", f"`{command}` did not run before it", did.call)


def _after(  # noqa: PLR0913  (one for each way that it can't be told; what a change is followed by)
    rule: Rule,
    acts: Acts,
    ran: list[tuple[Did, str]],
    window: tuple[int, int],
    path: str,
    in_time: Callable[[Did], bool] | None,
    has_hooks: bool | None,
) -> Mark:
    """Mark, for each change, whether the command ran after it and before the next one."""
    at, until = window
    call, command = acts.calls[at], " or ".join(rule.commands)
    inside = [(d, how) for d, how in ran if at <= d.at < until]
    whole = [d for d, how in inside if how == "yes"]
    if any(in_time is None or in_time(d) for d in whole):
        return mark_of("kept", f"`{command}` ran after it", call, path)
    if whole:
        return mark_of("cannot_tell", f"`{command}` ran in a later turn only", call, path)
    if inside:
        return mark_of("cannot_tell", f"`{command}` ran otherwise than it stands there", call, path)
    if rule.when == "done" and any(how == "yes" for _, how in ran):
        because = f"`{command}` ran before the last change: nobody says whether work was done"
        return mark_of("cannot_tell", because, call, path)
    other = _other_check(rule, acts, at - 1, until)
    if other:
        return mark_of("cannot_tell", f"`{other}` ran, which may stand for it", call, path)
    if has_hooks is not False and any(at <= n <= until for n in acts.tried_commits):
        return mark_of("cannot_tell", f"a commit came after it: {_HOOKS[has_hooks]}", call, path)
    if acts.is_interrupted(call.turn):
        return mark_of("cannot_tell", "the person interrupted the turn", call, path)
    if until == len(acts.calls) and acts.is_cut():
        return mark_of("cannot_tell", "the session ends in the midst of work", call, path)
    return mark_of("broken", f"`{command}` did not run after it", call, path)


def _other_check(rule: Rule, acts: Acts, since: int, until: int) -> str:
    """Another check of the kind that a rule asks for, between two calls."""
    kinds = {check.kind for command in rule.commands for check in checks(command)}
    for call in acts.calls[max(since + 1, 0) : until + 1]:
        for check in checks(call.command) if call.command and kinds else ():
            if check.kind in kinds:
                return check.name
    return ""


# Whether a session kept a rule: at each occasion kept, broken, or not to be told, with the event that says so.
#
# A pure function of a rule and a session, whether or not the rule was in force: what was done before a rule came is
# what its effect is measured against. A rule is broken only by what stands in the trace; where something else may
# have done what was asked (a hook, another check, a later turn, the person's own wish), it can't be told.

Verdict = Literal["kept", "broken", "cannot_tell", "no_occasion"]
MOST_MARKS = 20
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
    """A rule in a session."""

    verdict: Verdict
    because: str
    """Reason given by the first occasion that decided."""
    kept: int = 0
    broken: int = 0
    untold: int = 0
    marks: list[Mark] = field(default_factory=list)
    """Broken first, at most MOST_MARKS."""


def follow(rule: Rule, acts: Acts, *, has_hooks: bool | None = None) -> Followed:
    """Judge whether a session kept a rule. `has_hooks`: the repository has Git hooks, which may run checks at a
    commit; None where unknown."""
    marks = list(_OF[rule.kind](rule, acts, has_hooks))
    if rule.condition:
        marks = [_doubted(mark, rule.condition) for mark in marks]
    if rule.forbids or rule.kind == "use":
        marks = [_unless_asked(mark, rule, acts) for mark in marks]
    threads = {call.seq: call.thread for call in acts.calls}
    marks = [_by_subagent(mark) if threads[mark.seq] not in NO_SUBAGENT else mark for mark in marks]
    # Where a breach may have been, what must never be done is not known to be kept.
    order: tuple[Outcome, ...] = (
        ("broken", "cannot_tell", "kept") if rule.forbids else ("broken", "kept", "cannot_tell")
    )
    by: dict[Outcome, list[Mark]] = {outcome: [] for outcome in order}
    for mark in marks:
        by[mark.outcome].append(mark)
    verdict: Verdict = "no_occasion"
    because = "nothing happened that it speaks of"
    for outcome, group in by.items():
        if group:
            verdict, because = outcome, group[0].because
            break
    return Followed(
        verdict=verdict,
        because=because,
        kept=len(by["kept"]),
        broken=len(by["broken"]),
        untold=len(by["cannot_tell"]),
        marks=[_placed(mark, acts) for group in by.values() for mark in group[:MOST_MARKS]][:MOST_MARKS],
    )


def _placed(mark: Mark, acts: Acts) -> Mark:
    event = acts.session.events[mark.seq]
    return structs.replace(mark, artifact=event.artifact_id, line=event.line)


def _doubted(mark: Mark, condition: str) -> Mark:
    if mark.outcome != "broken":
        return mark
    because = f"the rule has a condition: {condition[:80]}"
    return structs.replace(mark, outcome="cannot_tell", because=because)


def _by_subagent(mark: Mark) -> Mark:
    if mark.outcome != "broken":
        return mark
    because = "a subagent did it: whether it was given the rule is not in the trace"
    return structs.replace(mark, outcome="cannot_tell", because=because)


def _unless_asked(mark: Mark, rule: Rule, acts: Acts) -> Mark:
    """Excuse a breach that the person asked for."""
    if mark.outcome != "broken":
        return mark
    call = next((c for c in acts.calls if c.seq == mark.seq), None)
    prompts = acts.prompts_until(call) if call is not None else ""
    words = [*(rule.instead_of or rule.commands), *(posixpath.basename(mark.text.rstrip("/")) if rule.paths else "",)]
    asked = next((w for w in words if w and re.search(rf"(?<![\w-]){re.escape(w.lower())}(?![\w-])", prompts)), None)
    if asked is None:
        return mark
    because = f"the person's words have {asked!r}, and may have asked for it"
    return structs.replace(mark, outcome="cannot_tell", because=because)


def _never_run(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Mark]:
    """An occasion is a command of the same program, of a rule about a whole program any command."""
    forbidden = [words for command in rule.commands if (words := words_of(command))]
    programs = {words[0] for words in forbidden if len(words) > 1}
    for did in acts.commands:
        broken = any(matches(words, did, exactly=True) for words in forbidden)
        if broken:
            yield _breach(did)
        elif (did.words[0] in programs if programs else did.n == 0) and did.is_sure:
            yield mark_of("kept", "it ran another command", did.call)


def _breach(did: Did) -> Mark:
    if not did.is_sure:
        return mark_of("cannot_tell", "the line failed, or has no result: it may not have come to it", did.call)
    words = " ".join(" ".join(did.words).replace("\x02", "").split())
    return mark_of("broken", f"`{words[:60]}` ran", did.call)


def _use(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Mark]:
    wanted, unwanted = ([words_of(c) for c in group] for group in (rule.commands, rule.instead_of))
    of_managers = any(rule.commands[0] in family for family in MANAGERS)
    for did in acts.commands:
        if any(matches(words, did, exactly=True) for words in unwanted if words):
            if of_managers and next((w for w in did.words[1:] if w[:1] != "-"), "install") not in _MANAGES:
                yield mark_of(
                    "cannot_tell", "it looks up or publishes: no word of the rule says whether that is meant", did.call
                )
            else:
                yield _breach(did)
        elif (
            any(did.head == words[0] or matches(words, did, exactly=False) for words in wanted if words) and did.is_sure
        ):
            yield mark_of("kept", f"`{did.head}` ran", did.call)


def _prefix(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Mark]:
    failed: set[tuple[str, ...]] = set()
    for did in acts.commands:
        if did.head == rule.commands[0]:
            if did.call.status == "error":
                failed.add(did.words)
            yield mark_of("kept", f"`{did.head}` ran it", did.call)
        elif KINDS.get(did.head, "run") and not did.is_piped and did.is_sure:
            if did.words in failed:
                yield mark_of("cannot_tell", "with it the same command had failed", did.call)
            else:
                yield mark_of("broken", f"`{did.head}` ran without it", did.call)


def _never_edit(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Mark]:
    """An occasion is any change of the repository's files."""
    for at, edit, path in acts.edits:
        call = acts.calls[at]
        where = matching(rule.paths, path)
        if where == "yes" and edit.origin in ("program", "repository"):
            yield mark_of("cannot_tell", "a command made it, or put back what the repository has", call, path)
        elif where == "yes":
            yield mark_of("broken", "it was changed", call, path)
        elif where == "maybe":
            yield mark_of("cannot_tell", "a folder or file of that name lies deeper", call, path)
        else:
            yield mark_of("kept", "another file was changed", call, path)


def _never_branch(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Mark]:
    """Commits by the branch that Git prints; pushes by what Git prints, or by the branch the command names."""
    if "commit" in rule.commands:
        yield from (_on_branch(rule, commit) for commit in acts.commits)
    for did in acts.pushes() if "push" in rule.commands else ():
        if did.words[0] != "git":
            continue
        arguments = [w for w in git_verb(did.words)[1:] if w[:1] != "-"]
        targets = _PUSHED_TO.findall(acts.output(did.call)) or [w.rpartition(":")[2] for w in arguments[1:]]
        targets = [t.removeprefix("refs/heads/").removeprefix("+") for t in targets if t != "HEAD"]
        if not targets:
            yield mark_of("cannot_tell", "neither command nor output names the branch", did.call)
        elif any(target in rule.branches for target in targets):
            yield mark_of("broken", f"pushed to {targets[0]}", did.call)
        else:
            yield mark_of("kept", f"pushed to {targets[0]}", did.call)


def _on_branch(rule: Rule, commit: Commit) -> Mark:
    if commit.branch is None:
        return mark_of("cannot_tell", "the output does not name the branch", commit.did.call)
    if commit.branch in rule.branches:
        return mark_of("broken", f"committed on {commit.branch}", commit.did.call)
    return mark_of("kept", f"committed on {commit.branch}", commit.did.call)


def _message(rule: Rule, acts: Acts, _: bool | None) -> Iterator[Mark]:
    forbids_author = rule.commands == ("no co-author",)
    for commit in acts.commits:
        if commit.message is None:
            yield mark_of("cannot_tell", "the message is not in the command", commit.did.call)
            continue
        fits = not _CO_AUTHOR.search(commit.message) if forbids_author else bool(_CONVENTIONAL.match(commit.message))
        yield mark_of(
            "kept" if fits else "broken",
            f"message: {commit.message.splitlines()[0][:80] if commit.message else ''}",
            commit.did.call,
        )


_OF: dict[str, Callable[[Rule, Acts, bool | None], Iterator[Mark]]] = {
    "run": run_at_occasions,
    "never_run": _never_run,
    "use": _use,
    "never_edit": _never_edit,
    "never_branch": _never_branch,
    "prefix": _prefix,
    "message": _message,
}
