"""The plans an agent made: to-do lists, plans it showed the person, tasks it created. And how far two lie apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.model import ToolCall
from agentsignals.model.roles import Roles, decoded
from agentsignals.views.session import SessionView

MOST_STEPS = 12
"""Longer plans keep their first steps (design/signals.md#plans)."""
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
    handed_in: list[Plan] = []
    tasks = _Tasks()
    for call in view.calls:
        if call.class_ != "plan":
            continue
        arguments, roles = _arguments(call.arguments), decoded(call.argument_roles)
        listed = _listed(arguments, roles)
        if listed:
            handed_in.append(Plan(call, "todo", listed))
        elif (prose := next((p for name in roles.plan if isinstance(p := arguments.get(name), str)), None)) is not None:
            if steps := text_steps(prose):
                handed_in.append(Plan(call, "text", steps))
        elif call.status != "rejected":
            plan = tasks.take(call, arguments, roles, view.result_text(call))
            if plan is not None and handed_in and handed_in[-1].source == "task" and tasks.still_making:
                handed_in[-1] = plan
            elif plan is not None:
                handed_in.append(plan)
    return handed_in


def _arguments(arguments: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}


def _listed(arguments: dict[str, Any], roles: Roles) -> list[str]:
    """The steps of a list written whole."""
    for key in roles.steps:
        if isinstance(arguments.get(key), list):
            return [step for item in arguments[key] if (step := _step(item, roles))]
    return []


def _step(item: Any, roles: Roles) -> str:
    if isinstance(item, dict):
        item = next((item[k] for k in roles.step if item.get(k)), "")
    return " ".join(item.split()) if isinstance(item, str) else ""


def text_steps(text: str) -> list[str]:
    """The numbered steps of a plan in prose, else its bullets; empty with fewer than two."""
    bare = _FENCE.sub("\n", text[:_MOST_PLAN_CHARS])
    for pattern in (_NUMBERED, _BULLETED):
        steps = [" ".join(step.split()) for step in pattern.findall(bare)]
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

    def take(self, call: ToolCall, arguments: dict[str, Any], roles: Roles, result: str) -> Plan | None:
        """The plan after this call; None when it changed nothing of it."""
        if roles.task in arguments:
            task_id = str(arguments[roles.task])
            changed = task_id in self._steps and self._update(task_id, arguments, roles)
            if arguments.get(roles.state):
                self.still_making = False
        else:
            step = _step(arguments, roles)
            if not step:
                return None
            numbered = _CREATED.search(result[:200])
            self._steps[numbered.group(1) if numbered else str(len(self._steps) + 1)] = step
            changed = True
        return self._plan(call) if changed else None

    def _update(self, task_id: str, arguments: dict[str, Any], roles: Roles) -> bool:
        before = dict(self._steps), set(self._after)
        state, words = arguments.get(roles.state), _step(arguments.get(roles.task_name), roles)
        if state == "completed":
            self._done.add(task_id)
        if state == "deleted":
            if task_id not in self._done:  # clearing away what is done changes no plan
                del self._steps[task_id]
        elif words:
            self._steps[task_id] = words
        self._after |= {(other, task_id) for other in _names(arguments.get(roles.waits_for))}
        self._after |= {(task_id, other) for other in _names(arguments.get(roles.holds_up))}
        return before != (self._steps, self._after)

    def _plan(self, call: ToolCall) -> Plan:
        at = {task_id: n for n, task_id in enumerate(self._steps)}
        after = {(at[a], at[b]) for a, b in self._after if a in at and b in at and at[a] != at[b]}
        return Plan(call, "task", list(self._steps.values()), after)


def _names(listed: Any) -> Iterator[str]:
    return (str(n) for n in listed if isinstance(n, str | int)) if isinstance(listed, list) else iter(())
