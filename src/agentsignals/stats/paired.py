"""Two arms that were given the same tasks: differences within tasks, exact tests, many tests at once, power.

Attempts at one task are alike, so tasks are drawn anew, or flipped, never attempts. Pure and deterministic.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil, comb, fsum, sqrt
from statistics import fmean

from msgspec import Struct

from agentsignals.stats.estimates import FEWEST_CLUSTERS, SEED, Interval, mean_interval, wilson
from agentsignals.stats.proportions import Z

__all__ = [
    "Paired",
    "apart",
    "benjamini_hochberg",
    "mcnemar",
    "needed_per_arm",
    "paired",
    "sign_flip",
    "smallest_seen",
]

POWER_Z = 0.8416212335729143
"""The normal distribution's 80 percent point."""
_EXACT_UP_TO = 12
"""Differing tasks up to which all flips are tried (4096 of them)."""
_FLIPS, _FEWEST_FLIPS, _MOST_FLIPPED = 2000, 500, 1_000_000
_ROUNDING = 1e-12

Arm = Mapping[str, Sequence[float]]
"""The outcomes of a candidate's attempts by task."""


class Paired(Struct, frozen=True, kw_only=True):
    """One candidate less another over the tasks that both were given; each task weighs the same."""

    tasks: int
    attempts: int
    baseline_attempts: int
    value: float | None
    """None of no matched task."""
    low: float | None = None
    high: float | None = None
    """At 95 percent; None under six tasks, and where every task says the same of a number."""
    gained: int = 0
    """Tasks where the candidate did better."""
    lost: int = 0
    p: float | None = None
    """Two-sided."""
    test: str = ""
    method: str = ""
    """Of the interval."""


def paired(candidate: Arm, baseline: Arm, *, yes_or_no: bool) -> Paired:
    """The difference within the tasks of both. `yes_or_no`: outcomes are 0 and 1."""
    tasks = sorted(candidate.keys() & baseline.keys())
    gaps = [fmean(candidate[t]) - fmean(baseline[t]) for t in tasks]
    tried = sum(len(candidate[t]) for t in tasks), sum(len(baseline[t]) for t in tasks)
    if not gaps:
        return Paired(tasks=0, attempts=0, baseline_attempts=0, value=None)
    single = yes_or_no and tried == (len(tasks), len(tasks))
    gained, lost = sum(g > _ROUNDING for g in gaps), sum(g < -_ROUNDING for g in gaps)
    interval, method = _interval(gaps, single)
    low, high = interval or (None, None)
    return Paired(
        tasks=len(tasks),
        attempts=tried[0],
        baseline_attempts=tried[1],
        value=fmean(gaps),
        low=low,
        high=high,
        gained=gained,
        lost=lost,
        p=mcnemar(gained, lost) if single else sign_flip(gaps),
        test="exact McNemar" if single else "flips of whole tasks",
        method=method,
    )


def _interval(gaps: Sequence[float], single: bool) -> tuple[Interval | None, str]:
    n = len(gaps)
    if n < FEWEST_CLUSTERS:
        return None, f"fewer than {FEWEST_CLUSTERS} matched tasks"
    if max(gaps) - min(gaps) > _ROUNDING:
        return mean_interval(gaps), "tasks drawn anew"
    if not single:
        return None, "every task differs by the same"
    # Drawing equal tasks anew shows no spread at all, which is no certainty: what could be unseen is Wilson's bound.
    unseen = (wilson(0, n) or (0.0, 1.0))[1]
    value = gaps[0]
    return (max(-1.0, value - (1 + abs(value)) * unseen), min(1.0, value + (1 + abs(value)) * unseen)), "Wilson's bound"


def mcnemar(gained: int, lost: int) -> float:
    """How likely so uneven a change is by chance: exact, two-sided, over the pairs that changed (McNemar 1947)."""
    changed = gained + lost
    tail = sum(comb(changed, k) for k in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << changed))


def sign_flip(gaps: Sequence[float]) -> float:
    """The share of flips of whole tasks whose sum is at least as far from 0 as the real one (Fisher 1935).

    Exact for few differing tasks; else of drawn flips, the real one counted among them.
    """
    moved = [abs(g) for g in gaps if abs(g) > _ROUNDING]
    far = abs(fsum(gaps)) - _ROUNDING * max(1, len(gaps))
    if len(moved) <= _EXACT_UP_TO:
        met = 0
        for signs in product((1, -1), repeat=len(moved)):
            met += abs(fsum(s * g for s, g in zip(signs, moved, strict=True))) >= far
        return met / (1 << len(moved))
    chance = random.Random(SEED)  # noqa: S311  (draws, no secret)
    flips = max(_FEWEST_FLIPS, min(_FLIPS, _MOST_FLIPPED // len(moved)))
    total, met = fsum(moved), 0
    for _ in range(flips):
        up = fsum(g for g, bit in zip(moved, chance.randbytes(len(moved)), strict=True) if bit & 1)
        met += abs(2 * up - total) >= far
    return (1 + met) / (1 + flips)


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """p values adjusted so that those below q hold at most a share q of false finds (Benjamini and Hochberg 1995)."""
    if any(not 0 <= value <= 1 for value in p):
        raise ValueError("a p value is not within 0 and 1")
    adjusted = [1.0] * len(p)
    least = 1.0
    for rank, at in zip(range(len(p), 0, -1), sorted(range(len(p)), key=lambda n: -p[n]), strict=True):
        least = min(least, p[at] * len(p) / rank)
        adjusted[at] = least
    return adjusted


def apart(value: float, interval: Interval, other: float, other_interval: Interval) -> Interval:
    """The interval of a difference of two independent estimates out of theirs (Newcombe 1998, method 10)."""
    gap = value - other
    below = sqrt((value - interval[0]) ** 2 + (other_interval[1] - other) ** 2)
    above = sqrt((interval[1] - value) ** 2 + (other - other_interval[0]) ** 2)
    return gap - below, gap + above


def needed_per_arm(first: float, other: float) -> int:
    """Independent trials an arm needs to tell two shares apart 4 times in 5, at 5 percent two-sided (Fleiss 1981)."""
    middle = (first + other) / 2
    spread = Z * sqrt(2 * middle * (1 - middle)) + POWER_Z * sqrt(first * (1 - first) + other * (1 - other))
    return ceil((spread / (first - other)) ** 2)


def smallest_seen(n: int) -> float:
    """The difference from a share of one half that n trials an arm show 4 times in 5, taken as independent."""
    return min(1.0, (Z + POWER_Z) * sqrt(0.5 / n))
