"""What the lab says of two conditions: paired differences over tasks, exact McNemar, many tests at once.

Samples of one task are alike, so what counts is how tasks differ, never samples (design/statistics.md#the-lab).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from agentsignals.errors import LabError
from agentsignals.stats import paired
from agentsignals.stats.estimates import Interval, sums_interval

__all__ = ["Difference", "McNemar", "Mean", "benjamini_hochberg", "mcnemar", "mean", "paired_difference"]

_DRAWS = 2000


class Mean(Struct, frozen=True):
    """A mean over pairs or items, each with the weight 1."""

    value: float
    low: float
    high: float
    """At 95 %, Student's over tasks; NaN with fewer than two tasks."""
    n: int
    tasks: int


class Difference(Struct, frozen=True, kw_only=True):
    """Treatment less control over pairs (same task, same sample)."""

    value: float
    low: float
    high: float
    """At 95 %, over tasks: Tango's score interval of one yes or no a side and task, else Student's; NaN with fewer than
    two tasks."""
    p: float
    """Two-sided, of a sign flip of whole tasks: the share of flips with a mean at least as far from 0, the real one
    counted among them. 1 with fewer than two tasks."""
    n: int
    tasks: int


class McNemar(Struct, frozen=True):
    """Of pairs of yes and no: those that changed, and how likely so uneven a change is by chance."""

    gained: int
    """No under control, yes under treatment."""
    lost: int
    p: float
    """Exact, two-sided: binomial with one half over the pairs that changed (McNemar 1947). It takes pairs as
    independent: one pair a task, or read `paired_difference` instead."""
    n: int


def mean(values: ArrayLike, tasks: Sequence[str]) -> Mean:
    """The mean of `values` with its interval over tasks. LabError when there are none, or not one task a value."""
    finite = _finite(values, tasks)
    sums, counts = _by_task(finite, tasks)
    low, high = _interval(sums, counts)
    return Mean(float(finite.mean()), low, high, len(finite), len(sums))


def paired_difference(
    treatment: ArrayLike, control: ArrayLike, tasks: Sequence[str], *, draws: int = _DRAWS, seed: int = 0
) -> Difference:
    """Mean of treatment less control; entry i of both is the same task and sample, and `tasks[i]` names the task.

    LabError when lengths differ, nothing is given, or a value is not finite: pairs with a side missing are left out,
    and counted, by the caller.
    """
    high, low = np.asarray(treatment, np.float64), np.asarray(control, np.float64)
    if high.shape != low.shape:
        raise LabError(f"{len(high)} treated and {len(low)} control values are no pairs.", "Give one each a pair.")
    differences = _finite(high - low, tasks)
    sums, counts = _by_task(differences, tasks)
    single = counts.max() == 1 and len(sums) > 1 and set(high) | set(low) <= {0.0, 1.0}
    gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
    below, above = paired.tango(gained, lost, len(sums)) if single else _interval(sums, counts)
    return Difference(
        value=float(differences.mean()),
        low=below,
        high=above,
        p=_flip_p(sums, len(differences), draws, seed),
        n=len(differences),
        tasks=len(sums),
    )


def mcnemar(treatment: Sequence[bool], control: Sequence[bool]) -> McNemar:
    """Exact McNemar test of paired answers. LabError when lengths differ."""
    if len(treatment) != len(control):
        raise LabError(f"{len(treatment)} treated and {len(control)} control answers are no pairs.", "Give one each.")
    gained = sum(t and not c for t, c in zip(treatment, control, strict=True))
    lost = sum(c and not t for t, c in zip(treatment, control, strict=True))
    return McNemar(gained, lost, paired.mcnemar(gained, lost), len(treatment))


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """p values adjusted so that those below q hold at most a share q of false finds (Benjamini and Hochberg 1995).

    LabError when a value is not within [0, 1]: an untested hypothesis is left out, not passed as NaN.
    """
    try:
        return paired.benjamini_hochberg(p)
    except ValueError as problem:
        raise LabError("A p value is not within 0 and 1.", "Leave hypotheses out that were not tested.") from problem


def _finite(values: ArrayLike, tasks: Sequence[str]) -> NDArray[np.float64]:
    numbers = np.asarray(values, np.float64)
    if not len(numbers) or len(numbers) != len(tasks):
        raise LabError(
            f"{len(numbers)} values of {len(tasks)} tasks.", "Give one task a value, and one value at least."
        )
    if not np.isfinite(numbers).all():
        raise LabError("A value is not finite.", "Leave out the pairs that have no value, and count them.")
    return numbers


def _by_task(values: NDArray[np.float64], tasks: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum and count of each task's values."""
    _, member = np.unique(np.asarray(tasks), return_inverse=True)
    return np.asarray(np.bincount(member, values), np.float64), np.bincount(member)


def _interval(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> Interval:
    """Of one task there is none: that it is like itself is no certainty."""
    return sums_interval(list(zip(sums.tolist(), counts.tolist(), strict=True))) or (float("nan"), float("nan"))


def _flip_p(sums: NDArray[np.float64], n: int, draws: int, seed: int) -> float:
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), (draws, len(sums)))
    far = np.abs(signs @ sums / n) >= abs(float(sums.sum()) / n) - 1e-12
    return float((1 + int(far.sum())) / (1 + draws))
