"""Two arms that were given the same tasks: differences within tasks, exact tests, many tests at once, power.

Attempts at one task are alike, so what counts is how tasks differ: they are flipped whole, and never attempts.
Pure and deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import comb, copysign, fsum, inf, sqrt

from msgspec import Struct

from agentsignals.stats.estimates import FEWEST_CLUSTERS, SEED, Interval, mean_interval
from agentsignals.stats.proportions import Z

__all__ = [
    "Paired",
    "apart",
    "benjamini_hochberg",
    "differences",
    "holm",
    "least_p",
    "mcnemar",
    "paired",
    "sign_flip",
    "tango",
]

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
    discordance: float | None = None
    """The mean of the squared differences of tasks: with one attempt a task, the share of tasks that changed."""
    gained: int = 0
    """Tasks where the candidate did better."""
    lost: int = 0
    p: float | None = None
    """Two-sided."""
    least_p: float | None = None
    """The smallest p that so many tasks can have, whatever comes of them."""
    test: str = ""
    method: str = ""
    """Of the interval."""
    single: bool = False
    """One attempt a side at each task, yes or no."""


def paired(candidate: Arm, baseline: Arm, *, yes_or_no: bool) -> Paired:
    """The difference within the tasks of both. `yes_or_no`: outcomes are 0 and 1."""
    tasks, gaps = sorted(candidate.keys() & baseline.keys()), differences(candidate, baseline)
    tried = sum(len(candidate[t]) for t in tasks), sum(len(baseline[t]) for t in tasks)
    if not gaps:
        return Paired(tasks=0, attempts=0, baseline_attempts=0, value=None)
    single = yes_or_no and tried == (len(tasks), len(tasks))
    gained, lost = sum(g > _ROUNDING for g in gaps), sum(g < -_ROUNDING for g in gaps)
    interval, method = _interval(gaps, single, gained, lost)
    low, high = interval or (None, None)
    return Paired(
        tasks=len(tasks),
        attempts=tried[0],
        baseline_attempts=tried[1],
        value=_mean(gaps),
        low=low,
        high=high,
        discordance=_mean([g * g for g in gaps]),
        gained=gained,
        lost=lost,
        p=mcnemar(gained, lost) if single else sign_flip(gaps),
        least_p=least_p(len(gaps), single=single),
        test="exact McNemar" if single else "flips of whole tasks",
        method=method,
        single=single,
    )


def differences(candidate: Arm, baseline: Arm) -> list[float]:
    """Of each task of both: the candidate's mean less the baseline's."""
    return [_mean(candidate[t]) - _mean(baseline[t]) for t in sorted(candidate.keys() & baseline.keys())]


def _mean(values: Sequence[float]) -> float:
    # As `statistics.fmean`, whose module takes 6 ms to load, which most runs do without.
    return fsum(values) / len(values)


def _interval(gaps: Sequence[float], single: bool, gained: int, lost: int) -> tuple[Interval | None, str]:
    """Which of several holds the truth is a matter of simulation (design/statistics.md#paired-differences)."""
    n = len(gaps)
    if n < FEWEST_CLUSTERS:
        return None, f"fewer than {FEWEST_CLUSTERS} matched tasks"
    if single:
        return tango(gained, lost, n), "Tango's score interval"
    if max(gaps) - min(gaps) > _ROUNDING:
        return mean_interval(gaps), "Student's over differences of tasks"
    return None, "every task differs by the same"


def tango(gained: int, lost: int, n: int) -> Interval:
    """The score interval of the difference of two shares over the same n tasks (Tango 1998)."""

    def far(gap: float) -> float:
        """How many standard errors the difference seen lies above `gap`, were that the truth."""
        off = gained - lost - n * gap
        linear, constant = (2 * n - gained + lost) * gap - gained - lost, -lost * gap * (1 - gap)
        losing = (sqrt(max(0.0, linear**2 - 8 * n * constant)) - linear) / (4 * n)
        variance = n * (2 * losing + gap * (1 - gap))
        return off / sqrt(variance) if variance > _ROUNDING else copysign(inf, off) if off else 0.0

    value = (gained - lost) / n
    return _crossing(far, -1.0, value, Z), _crossing(far, value, 1.0, -Z)


def _crossing(far: Callable[[float], float], low: float, high: float, errors: float) -> float:
    """Where a function that falls is `errors`, by halving; the nearer end where it is that nowhere between."""
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if far(middle) > errors else (low, middle)
    return (low + high) / 2


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
    from random import Random  # noqa: PLC0415  (what was found is read without)

    chance = Random(SEED)  # noqa: S311  (draws, no secret)
    flips = _drawn(len(moved))
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


def holm(p: Sequence[float]) -> list[float]:
    """p values adjusted so that among those below a level a single false one is no likelier than the level, however
    the tests hang together (Holm 1979)."""
    if any(not 0 <= value <= 1 for value in p):
        raise ValueError("a p value is not within 0 and 1")
    adjusted = [1.0] * len(p)
    most = 0.0
    for rank, at in enumerate(sorted(range(len(p)), key=lambda n: p[n])):
        most = max(most, min(1.0, p[at] * (len(p) - rank)))
        adjusted[at] = most
    return adjusted


def least_p(tasks: int, *, single: bool) -> float:
    """The smallest p that so many matched tasks can have, whatever comes of them. Of drawn flips it is one of them."""
    exact = min(1.0, 2.0 ** (1 - tasks))
    return exact if single or tasks <= _EXACT_UP_TO else max(exact, 1 / (1 + _drawn(tasks)))


def _drawn(moved: int) -> int:
    return max(_FEWEST_FLIPS, min(_FLIPS, _MOST_FLIPPED // moved))


def apart(value: float, interval: Interval, other: float, other_interval: Interval) -> Interval:
    """The interval of a difference of two independent estimates out of theirs (Newcombe 1998, method 10)."""
    gap = value - other
    below = sqrt((value - interval[0]) ** 2 + (other_interval[1] - other) ** 2)
    above = sqrt((interval[1] - value) ** 2 + (other - other_interval[0]) ** 2)
    return gap - below, gap + above
