"""The plans an agent made: to-do lists, plans it showed the person, tasks it created. And how far two lie apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.model import ToolCall
from agentsignals.views.session import SessionView

MOST_STEPS = 12
"""Longer plans keep their first steps (design/signals.md#plans)."""
_STEP_KEYS = ("content", "step", "subject", "description", "title", "text")
_LIST_KEYS = ("todos", "plan", "items", "tasks")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.S)
_NUMBERED = re.compile(r"^[ \t]{0,6}(?:#{1,4} |\*\*)?(?:[Ss]tep |[Pp]hase |[Tt]ask )?\d{1,2}[.):] +(\S.*)$", re.M)
_BULLETED = re.compile(r"^[ \t]{0,3}(?:[-*\u2022]|\[[ xX]\]|- \[[ xX]\]) +(\S.*)$", re.M)
_CREATED = re.compile(r"#(\d+)")
_MOST_PLAN_CHARS = 20_000


class Plan(Struct):
    """A plan as it stood after a call. Steps run in order; `after` holds those that wait for others besides, as pairs
    (the earlier, the later) of step numbers from 0.
    """

    call: ToolCall
    source: str
    """`todo` a list written whole, `text` a plan in prose, `task` tasks created one by one."""
    steps: list[str]
    after: set[tuple[int, int]] = field(default_factory=set)


def plans(view: SessionView) -> list[Plan]:
    """Every state of a plan on the main thread that has steps, in order. Rejected calls changed nothing but `text`:
    the person has seen it all the same.
    """
    found: list[Plan] = []
    tasks = _Tasks()
    for call in view.calls:
        if call.class_ != "plan":
            continue
        given = _decoded(call.arguments)
        listed = _listed(given)
        if listed:
            found.append(Plan(call, "todo", listed))
        elif isinstance(given.get("plan"), str):
            if steps := text_steps(given["plan"]):
                found.append(Plan(call, "text", steps))
        elif call.status != "rejected":
            plan = tasks.take(call, given, view.result_text(call))
            if plan is not None and found and found[-1].source == "task" and tasks.still_making:
                found[-1] = plan
            elif plan is not None:
                found.append(plan)
    return found


def _decoded(arguments: str) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return {}
    return given if isinstance(given, dict) else {}


def _listed(given: dict[str, Any]) -> list[str]:
    """The steps of a list written whole."""
    for key in _LIST_KEYS:
        if isinstance(given.get(key), list):
            return [step for item in given[key] if (step := _step(item))]
    return []


def _step(item: Any) -> str:
    if isinstance(item, dict):
        item = next((item[k] for k in _STEP_KEYS if item.get(k)), "")
    return " ".join(item.split()) if isinstance(item, str) else ""


def text_steps(text: str) -> list[str]:
    """The numbered steps of a plan in prose, else its bullets; empty with fewer than two."""
    bare = _FENCE.sub("\n", text[:_MOST_PLAN_CHARS])
    for pattern in (_NUMBERED, _BULLETED):
        steps = [" ".join(found.split()) for found in pattern.findall(bare)]
        if len(steps) > 1:
            return steps
    return []


class _Tasks:
    """Tasks made one call at a time. The calls that make the first ones are one plan together."""

    def __init__(self) -> None:
        self._steps: dict[str, str] = {}
        self._after: set[tuple[str, str]] = set()
        self._done: set[str] = set()
        self.still_making = True

    def take(self, call: ToolCall, given: dict[str, Any], result: str) -> Plan | None:
        """The plan after this call; None when it changed nothing of it."""
        if "taskId" in given:
            known = str(given["taskId"])
            changed = known in self._steps and self._update(known, given)
            if given.get("status"):
                self.still_making = False
        else:
            step = _step(given)
            if not step:
                return None
            numbered = _CREATED.search(result[:200])
            self._steps[numbered.group(1) if numbered else str(len(self._steps) + 1)] = step
            changed = True
        return self._plan(call) if changed else None

    def _update(self, known: str, given: dict[str, Any]) -> bool:
        before = dict(self._steps), set(self._after)
        if given.get("status") == "completed":
            self._done.add(known)
        if given.get("status") == "deleted":
            if known not in self._done:  # clearing away what is done changes no plan
                del self._steps[known]
        elif isinstance(given.get("subject"), str) and given["subject"].strip():
            self._steps[known] = _step(given)
        self._after |= {(other, known) for other in _names(given.get("addBlockedBy"))}
        self._after |= {(known, other) for other in _names(given.get("addBlocks"))}
        return before != (self._steps, self._after)

    def _plan(self, call: ToolCall) -> Plan:
        at = {known: n for n, known in enumerate(self._steps)}
        after = {(at[a], at[b]) for a, b in self._after if a in at and b in at and at[a] != at[b]}
        return Plan(call, "task", list(self._steps.values()), after)


def _names(listed: Any) -> Iterator[str]:
    return (str(n) for n in listed if isinstance(n, str | int)) if isinstance(listed, list) else iter(())
