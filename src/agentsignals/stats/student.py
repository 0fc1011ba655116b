"""Student's distribution, for intervals of few clusters. Here, because a quantile is worth no heavy package."""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, erfc, exp, lgamma, pi, sqrt, tan

from agentsignals.stats.proportions import Z

_STEPS = 64
"""Of Simpson's rule: quantiles are right to five figures, from one degree of freedom on."""
_ROUNDS = 48
_CLOSE = 1e-15
"""Of an angle: steps of less change no figure."""
_MANY = 500
"""From so many degrees of freedom on the first term of the normal's expansion is right to five figures."""


@lru_cache(maxsize=4096)
def t_quantile(freedom: float) -> float:
    """The 97.5 percent point of Student's t with so many degrees of freedom, which need not be whole (1 or more).

    With t = sqrt(f) tan(a) the distribution is the integral of cos(a) ** (f - 1) (Abramowitz and Stegun 26.7). The
    angle is sought by Newton's steps, whose slope is that power itself, from the normal's expansion on.
    """
    if freedom < 1:
        raise ValueError("fewer than one degree of freedom")
    expanded = Z + (Z**3 + Z) / (4 * freedom)
    if freedom > _MANY:
        return expanded
    whole = _whole(freedom)
    low, high, angle = 0.0, pi / 2, atan(expanded / sqrt(freedom))
    for _ in range(_ROUNDS):
        lacking = 0.95 * whole - _integral(angle, freedom - 1)
        low, high = (angle, high) if lacking > 0 else (low, angle)
        stepped = angle + lacking / cos(angle) ** (freedom - 1)
        former, angle = angle, stepped if low < stepped < high else (low + high) / 2
        if abs(angle - former) < _CLOSE:
            break
    return sqrt(freedom) * tan(angle)


def two_sided(t: float, freedom: float) -> float:
    """How likely a t at least so far from 0 is, with so many degrees of freedom."""
    if freedom > _MANY:
        return erfc(abs(t) * (1 - 1 / (4 * freedom)) / sqrt(1 + t * t / (2 * freedom)) / sqrt(2))
    return min(1.0, max(0.0, 1 - _integral(atan(abs(t) / sqrt(freedom)), freedom - 1) / _whole(freedom)))


def _whole(freedom: float) -> float:
    """Of cos(a) ** (freedom - 1) from 0 to a right angle."""
    return sqrt(pi) * exp(lgamma(freedom / 2) - lgamma((freedom + 1) / 2)) / 2


def _integral(end: float, power: float) -> float:
    """Of cos(a) ** power from 0 to `end`, by Simpson's rule."""
    step = end / _STEPS
    heights: list[float] = [cos(n * step) ** power for n in range(_STEPS + 1)]
    return step / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))
