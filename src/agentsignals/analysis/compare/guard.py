"""What forbids a comparison: candidates that were not given the same tasks, data, limits or retries."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from agentsignals.analysis.compare.tried import Tried

_GUARDED = re.compile(
    r"(?:^|[_.])(?:dataset|split|subset|caps?|limits?|budget|timeout|retry|retries|max|maximum|effort|tools|mcp_servers)"
    r"(?:$|[_.])|reasoning_tokens$|^task_version$"
)
"""Words in the names of columns and knobs by which they say which tasks there were, or how much, with what effort and
which tools, an attempt might do."""
_NO_LIMIT = re.compile(r"connections|samples|tasks|workers|subprocesses|sandboxes|concurren")
"""How many run at once is no limit of an attempt."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TIME, _FACTOR = "timeout_s", "multiplier"
_SHORT = {"model": "model_id", "agent": "agent_type", "run": "run_id"}
_LISTED = 3

Values = frozenset[str]


def unlike(
    first: Mapping[str, Sequence[Tried]],
    base: str | None,
    asked: Collection[str],
    tasks: Mapping[str, frozenset[str]],
    changing: Sequence[str],
) -> list[str]:
    """The reasons, one a column, and one for the tasks. `first`: first attempts by candidate; `asked`: the columns that
    somebody wants compared: what was asked for is the treatment."""
    if base is None:
        return []
    wanted = {_SHORT.get(name, name) for name in asked}
    columns = [c for c in changing if _is_guarded(c) and c not in wanted]
    if _TIME in wanted or all(_TIME in a.treatment for attempts in first.values() for a in attempts):
        columns = [c for c in columns if _FACTOR not in c]  # the limit has it in it
    reasons = []
    for column in columns:
        others = [name for name, attempts in first.items() if name != base and _differ(attempts, first[base], column)]
        if others:
            compared = [f"{name} {_shown(first[name], column)}" for name in (base, *others[:_LISTED])]
            reasons.append(f"{column} differs: {'; '.join(compared)}{_more(others)}")
    return [*reasons, *_tasks(base, tasks)]


def _is_guarded(column: str) -> bool:
    name = _CAMEL.sub("_", column).lower()
    return name != "effective_tool_cap" and bool(_GUARDED.search(name)) and not _NO_LIMIT.search(name)


def _differ(attempts: Sequence[Tried], other: Sequence[Tried], column: str) -> bool:
    """Whether the two had other values: at a task that both tried, else at all. What is not recorded differs from
    nothing; a limit that goes with the task is the same for both."""
    left, right = _by_task(attempts, column), _by_task(other, column)
    both = left.keys() & right.keys()
    if both and column != "dataset":
        return any(left[task] != right[task] for task in both)
    mine, theirs = (frozenset(v for values in side.values() for v in values) for side in (left, right))
    return bool(mine and theirs) and mine != theirs


def _by_task(attempts: Sequence[Tried], column: str) -> dict[str, Values]:
    values: dict[str, Values] = {}
    for attempt in attempts:
        value = attempt.treatment.get(column)
        if value is not None:
            task = attempt.task or attempt.session_id
            values[task] = values.get(task, frozenset()) | {value}
    return values


def _shown(attempts: Sequence[Tried], column: str) -> str:
    values = sorted({a.treatment[column][:80] for a in attempts if column in a.treatment})
    return " / ".join(values[:_LISTED]) + (" / …" if len(values) > _LISTED else "")


def _tasks(base: str, tasks: Mapping[str, frozenset[str]]) -> list[str]:
    others = [name for name, each in tasks.items() if each != tasks[base]]
    if not others:
        return []
    compared = [
        f"{name} tried {len(tasks[name]):,}, of which {base}, with {len(tasks[base]):,}, tried"
        f" {len(tasks[name] & tasks[base]):,}"
        for name in others[:_LISTED]
    ]
    return [f"tasks differ: {'; '.join(compared)}{_more(others)}"]


def _more(others: Sequence[str]) -> str:
    return f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""
