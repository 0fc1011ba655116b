"""How many gains a regression may be worth before what gained more is no longer better: paired outcomes, weighted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum, inf, sqrt
from statistics import fmean

from msgspec import Struct

from agentsignals.stats.estimates import FEWEST_CLUSTERS
from agentsignals.stats.paired import mcnemar
from agentsignals.stats.power import at_least
from agentsignals.stats.student import t_quantile, two_sided

_TAIL = 0.025
_MOST_WEIGHT = 1e6
"""A break-even weight above it has no upper end."""


class Weighed(Struct, frozen=True, kw_only=True):
    """Gains less `weight` times regressions, over matched tasks."""

    weight: float
    """What a regression counts, a gain counting 1: declared by whoever compares."""
    value: float
    """A task's mean."""
    break_even: float | None
    """The weight at which both are worth the same: gains for each regression; None without a regression."""
    low: float | None
    high: float | None
    """At 95 percent; None where there is no end, and both of fewer than six tasks with several attempts."""
    p: float | None
    """Two-sided, of gains being worth as much as regressions at that weight; None where it can't be tested."""


def weighed(gaps: Sequence[float], weight: float, p: float | None, *, single: bool) -> Weighed:
    """`gaps`: differences of tasks, candidate less baseline. `p`: that of weight 1, which is tested already. `single`:
    one attempt a side, yes or no: the binomial test of what changed, and Clopper and Pearson's interval; else Student's
    over tasks. ValueError of a weight that is not above 0."""
    if not 0 < weight < inf:
        raise ValueError("a weight is a number above 0")
    ups, downs = sum(g for g in gaps if g > 0), -sum(g for g in gaps if g < 0)
    if single:
        gained, lost = round(ups), round(downs)
        low, high = clopper_pearson(gained, gained + lost)
        ends = low / (1 - low) if low < 1 else None, high / (1 - high) if high < 1 else None
        tested: float | None = weighed_mcnemar(gained, lost, weight)
    else:
        ends, tested = _ends(gaps), _tested(gaps, weight)
    return Weighed(
        weight=weight,
        value=fmean(g if g > 0 else weight * g for g in gaps),
        break_even=ups / downs if downs else None,
        low=ends[0],
        high=ends[1],
        p=p if weight == 1 else tested,
    )


def weighed_mcnemar(gained: int, lost: int, weight: float) -> float:
    """The exact test of what changed, where a regression is worth so many gains: of equal worth, a share
    weight / (1 + weight) of changes is a gain."""
    if weight == 1:
        return mcnemar(gained, lost)
    changed, share = gained + lost, weight / (1 + weight)
    return min(1.0, 2 * min(at_least(gained, changed, share), at_least(lost, changed, 1 - share)))


def clopper_pearson(k: int, n: int) -> tuple[float, float]:
    """The exact interval of a share, k of n (Clopper and Pearson 1934): it excludes what the binomial test rejects."""
    low = _last(lambda share: at_least(k, n, share) <= _TAIL, 0.0, 1.0) if k else 0.0
    high = 1.0 - _last(lambda share: at_least(n - k, n, share) <= _TAIL, 0.0, 1.0) if k < n else 1.0
    return low, high


def _ends(gaps: Sequence[float]) -> tuple[float | None, float | None]:
    """Weights that Student's interval of the weighted mean does not exclude (Fieller 1954)."""
    if len(gaps) < FEWEST_CLUSTERS:
        return None, None
    far, errors = t_quantile(len(gaps) - 1), _errors(gaps)
    low = _last(lambda weight: errors(weight) >= far, 0.0, _MOST_WEIGHT)
    high = _last(lambda weight: errors(weight) > -far, 0.0, _MOST_WEIGHT)
    return low, high if high < _MOST_WEIGHT * (1 - 1e-6) else None


def _tested(gaps: Sequence[float], weight: float) -> float | None:
    return two_sided(_errors(gaps)(weight), len(gaps) - 1) if len(gaps) >= FEWEST_CLUSTERS else None


def _errors(gaps: Sequence[float]) -> Callable[[float], float]:
    """How many standard errors the weighted mean lies above 0, by weight."""
    n, ups, downs = len(gaps), [max(g, 0.0) for g in gaps], [max(-g, 0.0) for g in gaps]
    up, down = fsum(ups) / n, fsum(downs) / n
    of_ups, of_downs, both = (
        fsum((x - a) * (y - b) for x, y in zip(left, right, strict=True)) / (n - 1)
        for left, a, right, b in ((ups, up, ups, up), (downs, down, downs, down), (ups, up, downs, down))
    )

    def errors(weight: float) -> float:
        mean = up - weight * down
        error = sqrt(max(0.0, of_ups - 2 * weight * both + weight * weight * of_downs) / n)
        return mean / error if error else inf if mean > 0 else -inf if mean < 0 else 0.0

    return errors


def _last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Up to where it holds, by halving; `low` where it never does."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
