"""Whether a session kept a rule: at each occasion kept, broken, or not to be told, with the event that says so.

A pure function of a rule and a session, whether or not the rule was in force: what was done before a rule came is what
its effect is measured against. A rule is broken only by what stands in the trace; where something else may have done
what was asked (a hook, another check, a later turn, the person's own wish), it can't be told.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct, field, structs

from agentsignals.instructions.acts import Acts, Commit, Did
from agentsignals.instructions.command_matching import MANAGERS, matches, words_of
from agentsignals.instructions.marks import Mark, Outcome, mark_of
from agentsignals.instructions.occasions import run_at_occasions
from agentsignals.instructions.path_patterns import matching
from agentsignals.instructions.rule import Rule
from agentsignals.model import NO_SUBAGENT
from agentsignals.shell.git_commands import git_verb
from agentsignals.shell.kinds import KINDS
from agentsignals.shell.writing import names

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
"""What package managers do to a project; the rest looks up or publishes."""


class Followed(Struct, kw_only=True):
    """A rule in a session."""

    verdict: Verdict
    because: str
    """Of the occasion that decided, the first."""
    kept: int = 0
    broken: int = 0
    untold: int = 0
    marks: list[Mark] = field(default_factory=list)
    """Broken first, at most MOST_MARKS."""


def follow(rule: Rule, acts: Acts, *, has_hooks: bool | None = None) -> Followed:
    """What a session made of a rule. `has_hooks`: whether the repository has Git hooks, which may run checks at a
    commit; None where nobody knows."""
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
    """What the person asked for is no breach of the agent's."""
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
