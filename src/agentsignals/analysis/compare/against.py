"""A candidate against the baseline: within the tasks of both, and apart from that on the tasks that only one had."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.analysis.compare.candidate import Estimate, Value, estimate, with_outcome
from agentsignals.analysis.compare.tried import Tried
from agentsignals.stats.paired import Paired, apart, benjamini_hochberg, paired


class Unpaired(Struct, frozen=True, kw_only=True):
    """First attempts at tasks that only one of the two has an outcome of: other tasks, another difficulty."""

    candidate: Estimate
    baseline: Estimate
    value: float | None = None
    """The difference; None where a side has none, and of numbers."""
    low: float | None = None
    high: float | None = None


class Pair(Struct, frozen=True, kw_only=True):
    """First attempts of a candidate less those of the baseline."""

    candidate: str
    baseline: str
    paired: Paired
    q: float | None = None
    """p adjusted for the number of candidates compared (Benjamini and Hochberg); None where there is no p."""
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
) -> Pair:
    """First attempts of two candidates, those with an outcome. One without a task stands for itself, never matched."""
    left, right = _arm(attempts, by_dataset), _arm(other, by_dataset)
    both = left.keys() & right.keys()
    rest = [[v for v in with_outcome(side, by_dataset) if v[0] not in both] for side in (attempts, other)]
    return Pair(
        candidate=name,
        baseline=baseline,
        paired=paired(left, right, yes_or_no=yes_or_no),
        unpaired=_unpaired(rest[0], rest[1], yes_or_no),
        also_differ=also_differ,
    )


def adjusted(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with what their p is worth among so many."""
    tested = [comparison.paired.p for comparison in pairs if comparison.paired.p is not None]
    worth = iter(benjamini_hochberg(tested))
    return [comparison if comparison.paired.p is None else replace(comparison, q=next(worth)) for comparison in pairs]


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
