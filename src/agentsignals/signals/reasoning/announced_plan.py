"""Whether the agent wrote down a plan before it changed anything."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from agentsignals.catalog import Measured, signal
from agentsignals.model import Event, ToolCall
from agentsignals.model.roles import decoded
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

_CODE = re.compile(r"\n[ \t>]*```[^`\n]*(?=\n|\Z)")
_NUMBERED = re.compile(
    r"\n[ \t]{0,6}(?:\*\*|#{1,4} )?(?:step |phase |task )?\d{1,2}[.):]\s+(?:\*\*)?(.{0,60})", re.IGNORECASE
)
_BULLET = re.compile(r"\n[ \t]{0,6}(?:[-*\u2022]|(?:- )?\[[ xX]\])[ \t]+(?:\*\*)?(.{0,60})")
_LISTED = re.compile(r"\n {0,1}(?:\d{1,2}[.)]|[-*\u2022])[ \t]+\S")
_BEGINS = re.compile(
    r"(?:step \d+[:.]? ?)?(?:\[[ x]\] )?"
    r"(?:(?:first|then|next|finally),? |i'll |i will |we'll |we will |let me |need to )?([a-z]+)"
)
_VERBS = (
    "add adjust analyse analyze apply ask audit build bump change check clean commit compare configure confirm"
    " convert create debug define delete deploy design determine document draft edit ensure examine execute explain"
    " explore extend extract fetch find fix generate handle identify implement inspect install integrate introduce"
    " investigate list locate look make merge migrate modify move open port prepare publish push put read rebase"
    " refactor remove rename replace report reproduce research review rewrite run scan search set show simplify"
    " split start summarise summarize switch test trace understand update upgrade use validate verify wire write"
)
_ACTIONS = frozenset(_VERBS.split())
"""What a step of a plan begins with; a finding does not."""


@signal(
    "reasoning.plan_steps_detected",
    type="int",
    unit="steps",
    context="both",
    level="attempt",
    origin="Agent Signals",
    source="regex",
    priority="P1",
    why="Whether the agent planned before it acted.",
    pitfalls="Fragile: a soft feature only. The source's count, of the first message alone (`text_steps`), is zero in"
    " nearly all sessions.",
)
def plan_steps_detected(view: SessionView, why: Evidence) -> Measured:
    """Steps of the plan the agent gave in its first response before it changed anything: in text, as to-dos, or a plan
    shown for approval; the most of these."""
    first = view.responses[0] if view.turns else view.events
    turn = view.turns[0].turn if view.turns else None
    until = _first_change(view, turn)
    texts = [e for e in first if e.kind == "text" and e.text and (until is None or e.seq < until)]
    calls = [c for c in view.calls if c.class_ == "plan" and c.turn == turn and (until is None or c.seq < until)]
    steps = [(_steps(e.text or ""), e) for e in texts]
    planned = _planned(calls)
    why.support((e for n, e in steps if n), "a list of steps:")
    why.support((c for _, c in planned), "a plan by tool:")
    why.rule("lists whose items begin with an action, before the first edit; the largest count")
    counts = [n for n, _ in steps] + [n for n, _ in planned]
    return Measured(max(counts, default=0), {"text_steps": steps[0][0] if steps else 0})


def _first_change(view: SessionView, turn: int | None) -> int | None:
    """The event number of the first call of a turn that changes a file."""
    changing = ("edit", "shell_write")
    pairs = zip(view.calls, view.classes, strict=True)
    return next((c.seq for c, class_ in pairs if c.turn == turn and class_ in changing), None)


def _steps(text: str) -> int:
    """Steps of a plan in a message: numbered, if half of them begin with an action, or bullets that do."""
    text = "\n" + text
    if "```" in text:
        text = "\n".join(_CODE.split(text)[::2])
    numbered = [_is_action(item) for item in _NUMBERED.findall(text)]
    bullets = sum([_is_action(item) for item in _BULLET.findall(text)])
    return max(len(numbered) if 2 * sum(numbered) >= len(numbered) else 0, bullets)


def _is_action(item: str) -> bool:
    match = _BEGINS.match(item.lower())
    return match is not None and match[1] in _ACTIONS


def _planned(calls: list[ToolCall]) -> list[tuple[int, ToolCall | Event]]:
    """Plans by tool: how many steps, and the call. Tasks that are created one by one make one plan."""
    created = [c for c in calls if c.purpose == "add_task"]
    plans_handed_in: list[tuple[int, ToolCall | Event]] = [(len(created), c) for c in created[-1:]]
    for call in calls:
        n = _items(call)
        if n:
            plans_handed_in.append((n, call))
            if isinstance(n, int) and call.purpose != "plan_handoff":
                break  # a later list is the plan revised
    return plans_handed_in


def _items(call: ToolCall) -> int:
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return 0  # arguments cut off or of another shape hold no plan that could be read
    roles = decoded(call.argument_roles)
    listed = next((x for name in (*roles.steps, *roles.plan) if (x := arguments.get(name))), None)
    if isinstance(listed, str):
        return len(_LISTED.findall("\n" + listed))
    return len(listed) if isinstance(listed, list) else 0
