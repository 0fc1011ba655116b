"""Separation of two classes by scores, and by chance: AUROC, its interval over groups, its null."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from agentsignals.stats.intervals import t_quantile, wilson
from msgspec import Struct
from numpy.typing import NDArray

from agentsignals_lab import directions
from agentsignals_lab.directions import Array

FEWEST_GROUPS = 3
"""With two groups, one left out leaves no spread to be seen."""
_ROUNDING = 1e-12


class Separation(Struct, frozen=True, kw_only=True):
    """An AUROC on held-out texts: .5 is chance, 1 is perfect order."""

    auroc: float
    low: float | None
    high: float | None
    """95 % interval over groups; None of fewer than three."""
    null_high: float
    """The 95th percentile of |AUROC - .5| + .5 of directions from shuffled labels, on the same held-out texts. Classes
    far apart make it high: an AUROC that is not above it proves nothing (design/lab.md#directions)."""
    p: float
    """The share of shuffled directions that part the classes at least as well, counted with the real one among them."""
    best_null_high: float
    p_best: float
    """The same two of the layer that parts best in each shuffle: what any layer of several must be held against."""
    n: int
    groups: int


def auroc(scores: NDArray[np.floating], positive: NDArray[np.bool_]) -> float:
    """The chance that a positive scores above a negative, ties half; NaN when one class is empty."""
    high, low = scores[positive], np.sort(scores[~positive])
    if not len(high) or not len(low):
        return float("nan")
    below = np.searchsorted(low, high, "left") + np.searchsorted(low, high, "right")
    return float(below.sum() / (2 * len(high) * len(low)))


def interval(
    scores: NDArray[np.floating], positive: NDArray[np.bool_], groups: Sequence[str]
) -> tuple[float, float] | None:
    """95 % interval of the AUROC over groups (topics, tasks): Student's on the scale of log-odds, with the standard
    error of the jackknife that leaves out whole groups (design/statistics.md#the-lab). Where no group makes a
    difference, Wilson's for as many observations as there are groups. None where `half_width` is."""
    value = auroc(scores, positive)
    half = half_width(lambda kept: auroc(scores[kept], positive[kept]), groups)
    if half is None:
        return None
    if half <= _ROUNDING or not 0 < value < 1:
        n = len(set(groups))
        return wilson(value * n, n)
    centre, spread = np.log(value / (1 - value)), half / (value * (1 - value))
    low, high = (float(1 / (1 + np.exp(-end))) for end in (centre - spread, centre + spread))
    return low, high


def half_width(estimate: Callable[[NDArray[np.bool_]], float], groups: Sequence[str]) -> float | None:
    """Student's quantile times the jackknife's standard error of an estimate made of the rows that are kept. None of
    fewer than three groups, and where a class stands in one group alone."""
    names, member = np.unique(np.asarray(groups), return_inverse=True)
    n = len(names)
    if n < FEWEST_GROUPS:
        return None
    without = np.asarray([estimate(member != group) for group in range(n)])
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    return None if np.isnan(error) else float(t_quantile(n - 1) * error)


def split(groups: Sequence[str], share: float = 0.5, seed: int = 0) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows to learn from and which to hold out; a group is wholly one or the other."""
    names = sorted(set(groups))
    order = np.random.default_rng(seed).permutation(len(names))
    kept = {names[i] for i in order[: max(1, round(share * len(names)))]}
    learns = np.asarray([g in kept for g in groups])
    return learns, ~learns


class Grouped(Struct, frozen=True):
    """States (texts, layers, d) and the topic or task of each."""

    states: Array
    groups: Sequence[str]


def held_out(of: Grouped, against: Grouped, *, shuffles: int = 200, seed: int = 0) -> list[Separation]:
    """A contrast direction learnt on half of the groups and judged on the other half; one Separation a layer."""
    learns, tests = split([*of.groups, *against.groups], seed=seed)
    (learn_of, learn_against), (test_of, test_against) = (np.split(m, [len(of.groups)]) for m in (learns, tests))
    direction, centre = directions.contrast(of.states[learn_of], against.states[learn_against])
    shuffled = directions.permuted(of.states[learn_of], against.states[learn_against], shuffles, seed)
    tested = np.concatenate([of.states[test_of], against.states[test_against]])
    positive = np.arange(len(tested)) < int(test_of.sum())
    groups = [g for g, t in zip([*of.groups, *against.groups], tests, strict=True) if t]
    scores = directions.project(tested, direction, centre, "coordinate")
    by_layer = np.asarray(
        [
            [abs(auroc(tested[:, layer] @ vector[layer], positive) - 0.5) + 0.5 for layer in range(tested.shape[1])]
            for vector in shuffled
        ]
    )
    best = by_layer.max(axis=1)
    rows = []
    for layer, by_chance in enumerate(by_layer.T):
        value = auroc(scores[:, layer], positive)
        low, high = interval(scores[:, layer], positive, groups) or (None, None)
        as_good, as_best = (
            (1 + int((chance >= value - _ROUNDING).sum())) / (1 + len(chance)) for chance in (by_chance, best)
        )
        rows.append(
            Separation(
                auroc=value,
                low=low,
                high=high,
                null_high=float(np.percentile(by_chance, 95)),
                p=as_good,
                best_null_high=float(np.percentile(best, 95)),
                p_best=as_best,
                n=len(tested),
                groups=len(set(groups)),
            )
        )
    return rows
