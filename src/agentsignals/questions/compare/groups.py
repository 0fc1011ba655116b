"""Which candidates are comparable: those that share tasks, data set and limits are a group."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from agentsignals.questions.compare.attempts import CAMEL, SHORT_NAMES, Attempt, is_nuisance
from agentsignals.stats.intervals import FEWEST_CLUSTERS

_GUARDED = re.compile(
    r"(?:^|[_.])(?:dataset|split|subset|caps?|limits?|budget|timeout|retry|retries|max|maximum|effort|tools|mcp_servers)"
    r"(?:$|[_.])|reasoning_tokens$|^task_version$"
)
"""Names of columns that define tasks, limits, effort or tools of an attempt."""
_NO_LIMIT = re.compile(r"samples|tasks")
"""Names about the number of attempts, which limits none of them."""
_TIME, _FACTOR = "timeout_s", "multiplier"
_LISTED = 3


def mismatches(
    first: Mapping[str, Sequence[Attempt]], base: str | None, asked: Collection[str], changing: Sequence[str]
) -> list[str]:
    """Return reasons against a comparison with `base`, one for each limit or data set that differs.

    `first`: first attempts by candidate. `asked`: columns that the user compares, which are the treatment.
    """
    if base is None:
        return []
    wanted = {SHORT_NAMES.get(name, name) for name in asked}
    columns = []
    for column in changing:
        name = CAMEL.sub("_", column).lower()
        is_limit = _GUARDED.search(name) and not _NO_LIMIT.search(name) and not is_nuisance(column)
        if is_limit and name != "effective_tool_cap" and column not in wanted:
            columns.append(column)
    if _TIME in wanted or all(_TIME in a.treatment for attempts in first.values() for a in attempts):
        columns = [c for c in columns if _FACTOR not in c]  # the limit contains it

    def shown(name: str, column: str) -> str:
        values = sorted({a.treatment[column][:80] for a in first[name] if column in a.treatment})
        return f"{name} {' / '.join(values[:_LISTED])}{' / …' if len(values) > _LISTED else ''}"

    reasons = []
    for column in columns:
        others = [name for name, attempts in first.items() if name != base and _differ(attempts, first[base], column)]
        if others:
            compared = [shown(name, column) for name in (base, *others[:_LISTED])]
            reasons.append(f"{column} differs: {'; '.join(compared)}{_more(others)}")
    return reasons


def other_tasks(tasks: Mapping[str, frozenset[str]], base: str | None) -> list[str]:
    """Return the reason against a comparison with `base` that other tasks were tried, if they were."""
    others = [name for name, each in tasks.items() if base is not None and each != tasks[base]]
    if base is None or not others:
        return []
    compared = [
        f"{name} tried {len(tasks[name]):,}, of which {base}, with {len(tasks[base]):,}, tried"
        f" {len(tasks[name] & tasks[base]):,}"
        for name in others[:_LISTED]
    ]
    return [f"tasks differ: {'; '.join(compared)}{_more(others)}"]


def _more(others: Sequence[str]) -> str:
    return f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""


def _differ(attempts: Sequence[Attempt], other: Sequence[Attempt], column: str) -> bool:
    """True if the two had other values at a common task, or at all if they share none. Unrecorded ones never differ."""
    sides: list[dict[str, set[str]]] = []
    for side in (attempts, other):
        by_task: dict[str, set[str]] = {}
        for attempt in side:
            if (value := attempt.treatment.get(column)) is not None:
                by_task.setdefault(attempt.task or attempt.session_id, set()).add(value)
        sides.append(by_task)
    left, right = sides
    both = left.keys() & right.keys()
    if both and column != "dataset":
        return any(left[task] != right[task] for task in both)
    mine, theirs = (set().union(*side.values()) for side in sides)
    return bool(mine and theirs) and mine != theirs


class OtherGroup(Struct, frozen=True, kw_only=True):
    """Candidates that are comparable with each other, and not with the baseline."""

    candidates: list[str]
    """Most attempts first."""
    attempts: int
    tasks: int
    shares_tasks: bool
    """True if one of them tried a task of the baseline."""
    reasons: list[str]
    """Reasons against a comparison with the baseline."""
    command: str
    """The command that compares them with each other; of one candidate, with the baseline all the same."""


def grouped(
    first: Mapping[str, Sequence[Attempt]],
    tasks: Mapping[str, frozenset[str]],
    order: Sequence[str],
    asked: Collection[str],
    changing: Sequence[str],
) -> list[list[str]]:
    """Split candidates into groups. The first in `order` of each is comparable with all others of its group.

    `first` and `tasks`: first attempts and their tasks by candidate.
    """
    left, groups = list(order), []
    while left:
        seed = left[0]
        group = [seed]
        for name in left[1:]:
            if _share_enough(tasks[seed], tasks[name]) and not mismatches(
                {seed: first[seed], name: first[name]}, seed, asked, changing
            ):
                group.append(name)
        groups.append(group)
        left = [name for name in left if name not in group]
    return groups


def _share_enough(tasks: frozenset[str], others: frozenset[str]) -> bool:
    """True if two candidates share tasks enough for a test, or half of the fewer; or neither records any."""
    shared = len(tasks & others)
    return shared >= FEWEST_CLUSTERS or 2 * shared >= max(1, min(len(tasks), len(others))) or not (tasks or others)


def common_tasks(tasks: Mapping[str, frozenset[str]], *, of_all: bool) -> frozenset[str] | None:
    """Return the tasks for the rates of a group, whose first candidate is the baseline; None if all tried the same.

    `of_all`: those that all tried. Else candidates with few of the tasks do not reduce them for the others: candidates
    times tasks is largest.
    """
    (_, whole), *rest = tasks.items()
    if all(each == whole for _, each in rest):
        return None
    if of_all:
        return frozenset.intersection(*tasks.values())
    left, taken, best = dict(rest), whole, (0, whole)
    for n in range(2, len(tasks) + 1):
        nearest = max(left, key=lambda name: (len(left[name] & taken), name))
        taken &= left.pop(nearest)
        best = max(best, (n * len(taken), taken), key=lambda each: each[0])
    return best[1] if best[0] else frozenset()
