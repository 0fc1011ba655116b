"""What attempts took, within the tasks of both: cost, tokens, turns, calls and time of a candidate less the baseline's.

Tasks differ by orders of magnitude, so each counts once, whichever way it goes: the sign test, and the median of tasks'
differences with the interval that belongs to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agentsignals.analysis.compare.candidate import place
from agentsignals.analysis.compare.tried import MEASURES, TIME, Tried
from agentsignals.stats.estimates import FEWEST_CLUSTERS, median, median_interval
from agentsignals.stats.paired import mcnemar


class Measured(Struct, frozen=True, kw_only=True):
    """One measure, over the matched tasks whose first attempts have it on both sides."""

    tasks: int
    value: float | None
    """The median of tasks' differences (of a side's several attempts at a task: of their median); None of no task."""
    low: float | None = None
    high: float | None = None
    """At 95 percent, by order statistics; None under six tasks."""
    more: int = 0
    """Tasks where the candidate took more."""
    less: int = 0
    p: float | None = None
    """The sign test's, exact and two-sided; equal tasks tell nothing. None under six tasks."""
    p_adjusted: float | None = None
    """Among those of all candidates and measures (Holm)."""


def measured(attempts: Sequence[Tried], other: Sequence[Tried], by_dataset: bool) -> dict[str, Measured]:
    """By measure. What the infrastructure broke off took less than it would have, and a lower bound is no measure: both
    are left out, and so are times taken by another clock than the other side's."""
    return {name: _measured(_of(attempts, name, by_dataset), _of(other, name, by_dataset)) for name in MEASURES}


def _of(attempts: Sequence[Tried], measure: str, by_dataset: bool) -> dict[tuple[str, str], float]:
    """By task, and clock of times."""
    by_task: dict[tuple[str, str], list[float]] = {}
    for o in attempts:
        value = o.measures[measure]
        if o.task is not None and isinstance(value, float) and measure not in o.at_least and o.rung != "infrastructure":
            by_task.setdefault((place(o, by_dataset), o.clock if measure == TIME else ""), []).append(value)
    return {task: median(values) or 0.0 for task, values in by_task.items()}


def _measured(left: dict[tuple[str, str], float], right: dict[tuple[str, str], float]) -> Measured:
    gaps = [left[task] - right[task] for task in sorted(left.keys() & right.keys())]
    if not gaps:
        return Measured(tasks=0, value=None)
    more, less = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
    low, high = median_interval(gaps) or (None, None)
    return Measured(
        tasks=len(gaps),
        value=median(gaps),
        low=low,
        high=high,
        more=more,
        less=less,
        p=mcnemar(more, less) if len(gaps) >= FEWEST_CLUSTERS else None,
    )
