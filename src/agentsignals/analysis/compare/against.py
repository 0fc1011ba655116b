"""A candidate against the baseline: within the tasks of both, and apart from that on the tasks that only one had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.analysis.compare.candidate import Estimate, Value, estimate, tasks_of, with_outcome
from agentsignals.analysis.compare.measured import Measured, measured
from agentsignals.analysis.compare.tried import Tried
from agentsignals.stats.break_even import Weighed, weighed
from agentsignals.stats.estimates import FEWEST_CLUSTERS
from agentsignals.stats.paired import Arm, Paired, apart, differences, holm, paired
from agentsignals.stats.power import LEVEL, Power, power_of

_Key = TypeVar("_Key")


class Unpaired(Struct, frozen=True, kw_only=True):
    """First attempts at tasks that only one of the two has an outcome of: other tasks, another difficulty."""

    candidate: Estimate
    baseline: Estimate
    value: float | None = None
    """The difference; None where a side has none, and of numbers."""
    low: float | None = None
    high: float | None = None


class Missing(Struct, frozen=True, kw_only=True):
    """Tasks that could not be matched for want of an outcome."""

    candidate: int
    """Tasks that both tried, without an outcome of the candidate (or of both)."""
    baseline: int
    """Those without an outcome of the baseline alone."""
    could_regress: int
    """Tasks that the baseline solved at least once, of which no outcome of the candidate is known."""
    could_improve: int
    """Tasks that the baseline did not always solve, likewise."""
    undone: bool | None = None
    """Whether the difference would not be significant, had every missing outcome gone against it; None where nothing is
    missing, and of numbers."""


class Pair(Struct, frozen=True, kw_only=True):
    """First attempts of a candidate less those of the baseline."""

    candidate: str
    baseline: str
    paired: Paired
    p_adjusted: float | None = None
    """p among those of all candidates with six matched tasks or more (Holm): of fewer nothing can be significant, and
    they take no part. None where there is no p."""
    least_p: float | None = None
    """The smallest that `p_adjusted` (of fewer tasks p) can be of so few tasks, beside the other candidates'."""
    weighed: Weighed | None
    """None of no matched task."""
    weighed_p_adjusted: float | None = None
    """Its p, likewise."""
    power: Power | None
    took: dict[str, Measured]
    """What attempts took, within matched tasks, by measure."""
    missing: Missing
    unpaired: Unpaired
    also_differ: list[str]
    """Columns whose values the two never share, although candidates are not told apart by them."""


def pair(  # noqa: PLR0913  (what is compared, named at the call)
    name: str,
    baseline: str,
    attempts: Sequence[Tried],
    other: Sequence[Tried],
    *,
    yes_or_no: bool,
    by_dataset: bool,
    also_differ: list[str],
    weight: float = 1.0,
    tests: int = 1,
) -> Pair:
    """First attempts of two candidates, those with an outcome. One without a task stands for itself, never matched.

    `weight`: what a regression counts, a gain counting 1. `tests`: how many candidates share the level.
    """
    left, right = _arm(attempts, by_dataset), _arm(other, by_dataset)
    both = left.keys() & right.keys()
    rest = [[v for v in with_outcome(side, by_dataset) if v[0] not in both] for side in (attempts, other)]
    compared, weighted = _tested(left, right, weight, yes_or_no)
    candidate_tasks, base_tasks = tasks_of(attempts, by_dataset), tasks_of(other, by_dataset)
    tried = candidate_tasks & base_tasks
    lacking = [right[task] for task in (right.keys() & base_tasks) - left.keys()]
    return Pair(
        candidate=name,
        baseline=baseline,
        paired=compared,
        weighed=weighted,
        power=power_of(left, right, compared, yes_or_no=yes_or_no, tests=tests),
        took=measured(attempts, other, by_dataset),
        missing=Missing(
            candidate=len(tried - left.keys()),
            baseline=len((tried & left.keys()) - right.keys()),
            could_regress=sum(max(values) > 0 for values in lacking) if yes_or_no else len(lacking),
            could_improve=sum(min(values) < 1 for values in lacking) if yes_or_no else len(lacking),
            undone=_undone(left, right, tried, weight=weight, level=LEVEL / tests) if yes_or_no and both else None,
        ),
        unpaired=_unpaired(rest[0], rest[1], yes_or_no),
        also_differ=also_differ,
    )


def _tested(left: Arm, right: Arm, weight: float, yes_or_no: bool) -> tuple[Paired, Weighed | None]:
    compared = paired(left, right, yes_or_no=yes_or_no)
    gaps = differences(left, right)
    return compared, weighed(gaps, weight, compared.p, single=compared.single) if gaps else None


def _p(compared: Paired, weighted: Weighed | None, weight: float) -> float:
    p = compared.p if weighted is None or weight == 1 else weighted.p
    return 1.0 if p is None else p


def _undone(left: Arm, right: Arm, tried: Iterable[str], *, weight: float, level: float) -> bool | None:
    """Whether the difference is not significant, and one way, where every outcome that a side lacks goes against it."""
    lack = [task for task in tried if task not in left or task not in right]
    if not lack:
        return None
    _, seen = _tested(left, right, weight, True)
    up = seen is not None and seen.value > 0
    against = [{**{task: [float(up != mine)] for task in lack}, **arm} for arm, mine in ((left, True), (right, False))]
    compared, weighted = _tested(against[0], against[1], weight, True)
    still = weighted is not None and (weighted.value > 0) == up
    return not (still and _p(compared, weighted, weight) <= level)


def adjusted(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with what their p are worth among so many: of outcomes one family, over candidates; of what attempts
    took another one, over candidates and measures."""
    able = [c for c in pairs if c.paired.tasks >= FEWEST_CLUSTERS]
    tests: dict[str, float] = {c.candidate: c.paired.p for c in able if c.paired.p is not None}
    weighted = {c.candidate: c.weighed.p for c in able if c.weighed is not None and c.weighed.p is not None}
    took = {(c.candidate, m): t.p for c in pairs for m, t in c.took.items() if t.p is not None}
    p, weighted_p, took_p = _holm(tests), _holm(weighted), _holm(took)
    return [
        replace(
            c,
            p_adjusted=p.get(c.candidate),
            least_p=_holm({**tests, c.candidate: c.paired.least_p})[c.candidate]
            if c.candidate in tests and c.paired.least_p is not None
            else c.paired.least_p,
            weighed_p_adjusted=weighted_p.get(c.candidate),
            took={m: replace(t, p_adjusted=took_p.get((c.candidate, m))) for m, t in c.took.items()},
        )
        for c in pairs
    ]


def _holm(p: Mapping[_Key, float]) -> dict[_Key, float]:
    return dict(zip(p, holm(list(p.values())), strict=True))


def _arm(tried: Sequence[Tried], by_dataset: bool) -> dict[str, list[float]]:
    by_task: dict[str, list[float]] = {}
    for task, value in with_outcome(tried, by_dataset):
        by_task.setdefault(task, []).append(value)
    return by_task


def _unpaired(values: Sequence[Value], other: Sequence[Value], yes_or_no: bool) -> Unpaired:
    left, right = estimate(values, yes_or_no), estimate(other, yes_or_no)
    if not yes_or_no or left.value is None or right.value is None:
        return Unpaired(candidate=left, baseline=right)
    value = left.value - right.value
    if left.low is None or left.high is None or right.low is None or right.high is None:
        return Unpaired(candidate=left, baseline=right, value=value)
    low, high = apart(left.value, (left.low, left.high), right.value, (right.low, right.high))
    return Unpaired(candidate=left, baseline=right, value=value, low=low, high=high)
