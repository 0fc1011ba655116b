"""Commands to run at an occasion: before a commit or a push, after a change, before work is called done."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agentsignals.instructions.acts import Acts, Did
from agentsignals.instructions.command_matching import matches, words_of
from agentsignals.instructions.marks import Mark, mark_of
from agentsignals.instructions.path_patterns import matching
from agentsignals.instructions.rule import Rule
from agentsignals.shell.checks import checks


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


def _before(  # noqa: PLR0911  (one for each way that it can't be told)
    rule: Rule, acts: Acts, ran: list[tuple[Did, str]], window: tuple[int, Did], has_hooks: bool | None
) -> Mark:
    """Whether the command ran before a commit or a push, since the last one."""
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


def _after(  # noqa: PLR0911, PLR0913  (one for each way that it can't be told; what a change is followed by)
    rule: Rule,
    acts: Acts,
    ran: list[tuple[Did, str]],
    window: tuple[int, int],
    path: str,
    in_time: Callable[[Did], bool] | None,
    has_hooks: bool | None,
) -> Mark:
    """Whether the command ran after a change, until the next one."""
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
