"""Estimates with their intervals, at 95 percent. Pure, deterministic, no dependency.

A session is the unit that was sampled: calls of one session are alike, so intervals of shares over calls or turns widen
by how alike they are.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import ceil, comb, sqrt

Z = 1.959963984540054
"""The normal distribution's 97.5 percent point."""
_TAIL = 0.025
_EXACT_UP_TO = 400
"""Above so many values the normal approximation of the binomial is right to the rank."""
_DRAWS = 1000
_MOST_PICKS = 2_000_000
"""Resampling stops here: with so many sessions fewer draws tell the same, and the time stays under two seconds."""
_SEED = 20260302

Interval = tuple[float, float]


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share lies, linear between neighbours (as DuckDB's quantile_cont). Values ascend."""
    if not values:
        raise ValueError("no values")
    at = (len(values) - 1) * share
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def median(values: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    return quantile(sorted(values), 0.5) if values else None


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


def wilson(k: float, n: float) -> Interval | None:
    """Wilson's interval of a share, k of n; None of nothing."""
    if n <= 0:
        return None
    share, z2 = k / n, Z * Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z / (1 + z2 / n) * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # At the ends the formula gives 0 and 1 but for rounding, which would be printed as "<0.1%".
    return (0.0 if k <= 0 else max(0.0, centre - half)), (1.0 if k >= n else min(1.0, centre + half))


def share_interval(parts: Sequence[tuple[float, float]]) -> Interval | None:
    """The interval of sum(k) / sum(n), one (k, n) a session: Wilson's with the effective number of observations.

    The design effect compares the variance between sessions with that of independent observations (Kish); it is never
    taken below 1. With one session nothing is known of the variance between sessions: None.
    """
    known = [(k, n) for k, n in parts if n > 0]
    if len(known) < 2:
        return None
    k, n, m = sum(p[0] for p in known), sum(p[1] for p in known), len(known)
    share = k / n
    effect = 1.0
    if 0 < share < 1:
        between = m / (m - 1) * sum((ki - share * ni) ** 2 for ki, ni in known) / n**2
        effect = max(1.0, between / (share * (1 - share) / n))
    return wilson(k / effect, n / effect)


def ratio_interval(parts: Sequence[tuple[float, float]]) -> Interval | None:
    """The interval of sum(a) / sum(b), one (a, b) a session, by drawing sessions anew with a fixed seed.

    For ratios that are no shares (calls for each prompt). None under six sessions.
    """
    known = [(a, b) for a, b in parts if b > 0]
    if len(known) < 6:
        return None
    chance = random.Random(_SEED)  # noqa: S311  (draws, no secret)
    found = []
    for _ in range(max(100, min(_DRAWS, _MOST_PICKS // len(known)))):
        drawn = chance.choices(known, k=len(known))
        found.append(sum(a for a, _ in drawn) / sum(b for _, b in drawn))
    found.sort()
    return found[int(len(found) * _TAIL)], found[ceil(len(found) * (1 - _TAIL)) - 1]
