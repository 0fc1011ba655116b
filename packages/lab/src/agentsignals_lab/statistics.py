"""Comparison of two conditions: paired differences over tasks, and random directions beside an effect.

Samples of one task are alike, so what counts is how tasks differ, never samples (design/statistics.md#the-lab).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, fsum, isfinite, nan
from statistics import fmean

from agentsignals.errors import LabError
from agentsignals.stats import paired
from agentsignals.stats.intervals import sums_interval
from msgspec import Struct

LEVEL = 0.05
"""What goes beyond chance is told of an adjusted p at or below it."""
_ROUNDING = 1e-12


class Difference(Struct, frozen=True, kw_only=True):
    """Treatment less control over pairs (same task, same sample)."""

    value: float
    low: float
    high: float
    """At 95 %, over tasks: Tango's score interval of one yes or no a side and task, else Student's; NaN with fewer than
    two tasks."""
    p: float
    """Two-sided, of a sign flip of whole tasks (`stats.paired.sign_flip`). 1 with fewer than two tasks."""
    n: int
    tasks: int


def paired_difference(treatment: Iterable[float], control: Iterable[float], tasks: Sequence[str]) -> Difference:
    """Mean of treatment less control; entry i of both is the same task and sample, and `tasks[i]` names the task.

    LabError when lengths differ, nothing is given, or a value is not finite: pairs with a side missing are left out,
    and counted, by the caller.
    """
    treated, plain = list(map(float, treatment)), list(map(float, control))
    if not treated or not len(treated) == len(plain) == len(tasks):
        raise LabError(
            f"{len(treated)} treated and {len(plain)} control values of {len(tasks)} tasks are no pairs.",
            "Give one of each a pair, and one pair at least.",
        )
    gaps = [t - c for t, c in zip(treated, plain, strict=True)]
    if not all(map(isfinite, gaps)):
        raise LabError("A value is not finite.", "Leave out the pairs that have no value, and count them.")
    by_task: dict[str, list[float]] = {}
    for gap, task in zip(gaps, tasks, strict=True):
        by_task.setdefault(task, []).append(gap)
    parts = [(fsum(of_task), len(of_task)) for of_task in by_task.values()]
    single = 1 < len(parts) == len(gaps) and {*treated, *plain} <= {0.0, 1.0}
    gained, lost = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
    # One task has no interval: that it is like itself is no certainty.
    below, above = paired.tango(gained, lost, len(parts)) if single else sums_interval(parts) or (nan, nan)
    return Difference(
        value=fmean(gaps),
        low=below,
        high=above,
        p=paired.sign_flip([total for total, _ in parts]),
        n=len(gaps),
        tasks=len(parts),
    )


def p_random(effect: float, by_chance: Sequence[float]) -> float:
    """The share of random directions that raise the outcome at least as much, the real one counted among them: no less
    than 1 / (1 + their number) (a Monte Carlo test, Phipson and Smyth 2010)."""
    return (1 + sum(value >= effect - _ROUNDING for value in by_chance)) / (1 + len(by_chance))


FEWEST_RANDOMS = 100
"""Random directions that a judged cell is compared with at least: with fewer, p moves in steps of over a hundredth."""

RANDOMS = 119
"""Random directions that are taken where none are asked for: enough where six cells are judged together."""


def enough(tests: int) -> int:
    """The fewest random directions, and no fewer than `FEWEST_RANDOMS`, with which one of so many p can come down to
    the level, once adjusted (`holm`)."""
    return max(FEWEST_RANDOMS, ceil(tests / LEVEL) - 1)


def caveat(randoms: int, tests: int) -> str | None:
    """Why so few random directions do not judge so many tests; None where they do."""
    least = min(1.0, tests / (1 + randoms))
    if randoms >= enough(tests):
        return None
    if least > LEVEL:
        why = f"no adjusted p is below {least:.2g}, whatever a direction does"
    else:
        why = f"p moves in steps of {1 / (1 + randoms):.2g}"
    return (
        f"{randoms} random directions are few for {tests} test{'s' * (tests > 1)}: {why}."
        f" Set randoms = {enough(tests)}."
    )
