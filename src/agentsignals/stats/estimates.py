"""Estimates with their intervals, at 95 percent. Pure, deterministic, no dependency.

A session is the unit that was sampled: calls of one session are alike, so intervals of shares over calls or turns widen
by how alike they are. Sessions of one place or person are alike, too: `clustered` draws places anew.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from math import ceil, comb, fsum, sqrt
from operator import itemgetter
from typing import NamedTuple

from agentsignals.stats.proportions import Interval, Z, wilson
from agentsignals.stats.quantiles import median, quantile

__all__ = [
    "FEWEST_CLUSTERS",
    "SEED",
    "Clustered",
    "Interval",
    "Z",
    "clustered",
    "mean_interval",
    "median",
    "median_interval",
    "percentiles",
    "quantile",
    "ratio_interval",
    "share_interval",
    "wilson",
]

_TAIL = 0.025
_EXACT_UP_TO = 400
"""Above so many values the normal approximation of the binomial is right to the rank."""
_DRAWS = 1000
_MOST_PICKS = 2_000_000
"""Resampling stops here: with so many sessions fewer draws tell the same, and the time stays under two seconds."""
SEED = 20260302
"""Of every draw: what is drawn twice is drawn alike."""
_FEWEST_DRAWS, _MOST_DRAWN = 200, 400_000
FEWEST_CLUSTERS = 6
"""Of fewer sessions, places or tasks no interval is given that speaks for others: their few draws repeat each other."""


def median_interval(values: Sequence[float]) -> Interval | None:
    """Two of the values that hold the median between them in 95 of 100 samples; None under six values.

    The interval of order statistics: what resampling the median endlessly would give, without chance and without a
    distribution assumed. It reaches at least 95 percent.
    """
    n = len(values)
    rank = _lower_rank(n)
    if rank < 1:
        return None
    ascending = sorted(values)
    return ascending[rank - 1], ascending[n - rank]


def _lower_rank(n: int) -> int:
    """The greatest r such that fewer than r of n fair coins come up heads at most 2.5 times in 100."""
    if n > _EXACT_UP_TO:
        return int((n - Z * sqrt(n)) / 2)
    seen, rank = 0, 0
    while rank <= n:
        seen += comb(n, rank)
        if seen > _TAIL * 2**n:
            return rank
        rank += 1
    return rank


def share_interval(parts: Sequence[tuple[float, float]]) -> Interval | None:
    """The interval of sum(k) / sum(n), one (k, n) a session: Wilson's with the effective number of observations.

    The design effect compares the variance between sessions with that of independent observations (Kish); it is never
    taken below 1. With one session nothing is known of the variance between sessions: None.
    """
    clusters = [(k, n) for k, n in parts if n > 0]
    if len(clusters) < 2:
        return None
    k, n, m = fsum(p[0] for p in clusters), fsum(p[1] for p in clusters), len(clusters)
    share = k / n
    effect = 1.0
    if 0 < share < 1:
        between = m / (m - 1) * fsum((ki - share * ni) ** 2 for ki, ni in clusters) / n**2
        effect = max(1.0, between / (share * (1 - share) / n))
    return wilson(k / effect, n / effect)


def ratio_interval(parts: Sequence[tuple[float, float]]) -> Interval | None:
    """The interval of sum(a) / sum(b), one (a, b) a session, by drawing sessions anew with a fixed seed.

    For ratios that are no shares (calls for each prompt). None under six sessions.
    """
    clusters = [(a, b) for a, b in parts if b > 0]
    if len(clusters) < FEWEST_CLUSTERS:
        return None
    chance = random.Random(SEED)  # noqa: S311  (draws, no secret)
    ratios = []
    for _ in range(max(100, min(_DRAWS, _MOST_PICKS // len(clusters)))):
        drawn = chance.choices(clusters, k=len(clusters))
        ratios.append(fsum([a for a, _ in drawn]) / fsum([b for _, b in drawn]))
    return percentiles(ratios)


def percentiles(draws: Iterable[float]) -> Interval:
    """The interval that holds the middle 95 of 100 draws (Efron's percentile interval)."""
    ascending = sorted(draws)
    return ascending[int(len(ascending) * _TAIL)], ascending[ceil(len(ascending) * (1 - _TAIL)) - 1]


class Clustered(NamedTuple):
    """An interval that takes clusters, not observations, as what was drawn."""

    interval: Interval | None
    clusters: int
    """Those with an observation."""
    effective: float
    """So many clusters of one size would tell as much (Kish): the square of the observations over the sum of their
    squares by cluster."""
    largest: float
    """The largest cluster's share of the observations, 0..1."""


def clustered(parts: Iterable[tuple[Hashable, float, float]]) -> Clustered:
    """The interval of a share, sum(k) / sum(n) over parts (cluster, k, n), by drawing whole clusters anew with a fixed
    seed. A cluster without an observation of this share is drawn all the same: it was among those that could be.

    None where under six clusters have one: their few draws repeat each other. Where every draw gives the same (k is 0,
    or all), Wilson's for as many observations as there are effective clusters.
    """
    sums: dict[Hashable, list[float]] = {}
    for cluster, k, n in parts:
        pair = sums.setdefault(cluster, [0.0, 0.0])
        pair[0] += k
        pair[1] += n
    sizes = [n for _, n in sums.values() if n > 0]
    if not sizes:
        return Clustered(None, 0, 0.0, 0.0)
    total = fsum(sizes)
    effective = total**2 / fsum(n * n for n in sizes)
    # In the order of their names, not of the input: the same sessions give the same interval however they were read,
    # and a share's interval mirrors that of what is left of it.
    named = [(k, n) for _, (k, n) in sorted(sums.items(), key=lambda pair: str(pair[0]))]
    drawn = _drawn(named, effective) if len(sizes) >= FEWEST_CLUSTERS else None
    return Clustered(drawn, len(sizes), effective, max(sizes) / total)


def _drawn(clusters: list[tuple[float, float]], effective: float) -> Interval | None:
    over, under = [k for k, _ in clusters], [n for _, n in clusters]
    value = fsum(over) / fsum(under)
    pairs = ((fsum(draw(over)), fsum(draw(under))) for draw in _draws(len(clusters)))
    low, high = percentiles(k / n for k, n in pairs if n)
    if low == high:
        return wilson(value * effective, effective)
    return min(low, value), max(high, value)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """The interval of the mean of one value a cluster, by drawing clusters anew with a fixed seed; None under six."""
    n = len(values)
    if n < FEWEST_CLUSTERS:
        return None
    sample = list(values)
    return percentiles(fsum(draw(sample)) / n for draw in _draws(n))


@lru_cache(maxsize=4)
def _draws(n: int) -> list[Callable[[list[float]], tuple[float, ...]]]:
    """Ways to take n of n with repetition: made once, because a study asks for many intervals over the same places."""
    chance = random.Random(SEED)  # noqa: S311  (draws, no secret)
    numbers = array("I")
    many = max(_FEWEST_DRAWS, min(_DRAWS, _MOST_DRAWN // n))
    numbers.frombytes(chance.randbytes(numbers.itemsize * n * many))
    picks = [number % n for number in numbers]
    return [itemgetter(*picks[start : start + n]) for start in range(0, n * many, n)]
