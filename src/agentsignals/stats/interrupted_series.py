"""Interrupted time series: did a level change at a moment, given a trend through it?

Segmented regression with a common trend (Wagner et al. 2002), one value a session in order of time. The standard error
is widened by the residuals' autocorrelation, corrected for its bias in short series (Marriott and Pope 1954): with so
few values no test of autocorrelation is reliable, and unwidened intervals are too narrow (Turner et al. 2021,
doi:10.1186/s12874-021-01364-0).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import fsum, sqrt

from msgspec import Struct

from agentsignals.stats.intervals import Interval, t_quantile, two_sided, wilson
from agentsignals.stats.paired import difference_interval

FEWEST = 8
"""Fewer values on either side give no estimate (Penfold and Zhang 2013)."""
_MOST_AUTOCORRELATION = 0.9
_PRIOR = 2.0
"""Successes and failures added if all values are equal (Agresti and Coull 1998); a variance of 0 would make any change
certain."""


class LevelChange(Struct, frozen=True, kw_only=True):
    """Shares before and after a moment, and the level change. With too few values everything but n is None."""

    n_before: int
    n_after: int
    before: float | None = None
    after: float | None = None
    difference: Interval | None = None
    """95 % interval of the difference of the two means (Newcombe 1998, method 10)."""
    level: float | None = None
    """Change of level, adjusted for the trend."""
    level_interval: Interval | None = None
    p: float | None = None
    trend: float | None = None
    """Slope per session."""
    autocorrelation: float | None = None
    """Lag-1 autocorrelation of the residuals, bias-corrected."""


def level_change(before: Sequence[float], after: Sequence[float]) -> LevelChange:
    """Estimate the level change between two runs of shares (0 to 1). ValueError for a value outside."""
    values = [*before, *after]
    if any(not 0 <= value <= 1 for value in values):
        raise ValueError("a share is not within 0 and 1")
    n, m = len(before), len(after)
    if min(n, m) < FEWEST:
        return LevelChange(n_before=n, n_after=m)
    times = [at - (n + m - 1) / 2 for at in range(n + m)]
    steps = [0.0] * n + [1.0] * m
    # The step beside a constant and a trend: what of it the trend does not explain (Frisch and Waugh 1933).
    share = m / (n + m)
    slope = _over(steps, times)
    alone = [step - share - slope * time for step, time in zip(steps, times, strict=True)]
    weight = fsum(a * a for a in alone)
    level = fsum(a * value for a, value in zip(alone, values, strict=True)) / weight
    flat = [value - level * step for value, step in zip(values, steps, strict=True)]
    mean = fsum(flat) / (n + m)
    trend = _over(flat, times)
    rest = [value - mean - trend * time for value, time in zip(flat, times, strict=True)]
    squares = fsum(e * e for e in rest)
    freedom = n + m - 3
    r = fsum(a * b for a, b in pairwise(rest)) / squares if squares >= 1e-12 else 0.0
    if squares >= 1e-12:
        r = min(_MOST_AUTOCORRELATION, max(0.0, r + (1 + 3 * r) / len(rest)))
    variance = squares / freedom
    if len({*before}) == 1 and len({*after}) == 1:
        shares = [((fsum(part) + _PRIOR) / (len(part) + 2 * _PRIOR), len(part)) for part in (before, after)]
        variance = max(variance, fsum(p * (1 - p) * size for p, size in shares) / (n + m))
    error = sqrt(variance / weight * (1 + r) / (1 - r))
    half = t_quantile(freedom) * error
    first, second = fsum(before) / n, fsum(after) / m
    ends = wilson(fsum(after), m), wilson(fsum(before), n)
    return LevelChange(
        n_before=n,
        n_after=m,
        before=first,
        after=second,
        difference=difference_interval(second, ends[0], first, ends[1]) if ends[0] and ends[1] else None,
        level=level,
        level_interval=(level - half, level + half),
        p=two_sided(level / error, freedom),
        trend=trend,
        autocorrelation=r,
    )


def _over(values: Sequence[float], times: Sequence[float]) -> float:
    """Slope of values over centred times."""
    return fsum(v * t for v, t in zip(values, times, strict=True)) / fsum(t * t for t in times)
