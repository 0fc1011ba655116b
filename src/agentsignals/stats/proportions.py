"""The intervals of a share and of a rate, at 95 percent."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log, sqrt

Z = 1.959963984540054
"""The normal distribution's 97.5 percent point."""

Interval = tuple[float, float]


def wilson(k: float, n: float) -> Interval | None:
    """Wilson's interval of a share, k of n; None of nothing."""
    if n <= 0:
        return None
    share, z2 = k / n, Z * Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z / (1 + z2 / n) * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # At the ends the formula gives 0 and 1 but for rounding, which would be printed as "<0.1%".
    return (0.0 if k <= 0 else max(0.0, centre - half)), (1.0 if k >= n else min(1.0, centre + half))


def poisson(count: int, exposure: float) -> Interval | None:
    """The exact interval of a rate, `count` events over an exposure (Garwood 1936); None of no exposure.

    Its ends are the rates under which so many events, or so few, have a probability of 2.5 percent.
    """
    if exposure <= 0 or count < 0:
        return None
    low = _root(lambda mean: _at_least(count, mean) - _TAIL, 0.0, float(count)) if count else 0.0
    high = _root(lambda mean: _TAIL - _at_most(count, mean), float(count), count + 10 * sqrt(count + 1) + 10)
    return low / exposure, high / exposure


_TAIL = 0.025


def _root(rises: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that is below 0 at `low` and above at `high` crosses it, by halving."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) < 0 else (low, middle)
    return (low + high) / 2


def _at_least(count: int, mean: float) -> float:
    """The probability of `count` events or more, for a mean below it: the terms fall."""
    term = _term(count, mean)
    total, n = 0.0, count
    while term > total * 1e-17:
        total += term
        n += 1
        term *= mean / n
    return total


def _at_most(count: int, mean: float) -> float:
    """The probability of `count` events or fewer, for a mean above it: the terms fall."""
    term = _term(count, mean)
    total, n = 0.0, count
    while n >= 0 and term > total * 1e-17:
        total += term
        term *= n / mean
        n -= 1
    return total


def _term(count: int, mean: float) -> float:
    return exp(count * log(mean) - mean - lgamma(count + 1)) if mean > 0 else float(count == 0)
