"""Logistic regression with a ridge, judged on tasks it has not seen, and what a feature adds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from agentsignals_lab.experiments.setting import Floats
from agentsignals_lab.separation import auroc, half_width

_ROUNDS = 50


class Gain(Struct, frozen=True, kw_only=True):
    """Gain of features over others, in AUROC on held-out tasks."""

    base: float
    full: float
    gain: float
    low: float | None
    high: float | None
    """95 % interval of the gain over tasks, predictions fixed; None of fewer than three."""
    n: int
    positive: int
    tasks: int


def fitted(features: Floats, wanted: Floats, ridge: float = 1.0) -> Floats:
    """Weights, the intercept first, by iteratively reweighted least squares.

    Minimises the negative log likelihood plus ridge/2 times the squared weights; the intercept is free.
    """
    design = np.concatenate([np.ones((len(features), 1)), features], axis=1)
    penalty = ridge * np.eye(design.shape[1])
    penalty[0, 0] = 0.0
    weights = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        slope = design.T @ (chance - wanted) + penalty @ weights
        curve = (design * np.maximum(chance * (1 - chance), 1e-9)[:, None]).T @ design + penalty
        step = np.linalg.solve(curve + 1e-9 * np.eye(len(weights)), slope)
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(weights, np.float64)


def held_out(features: Floats, wanted: Floats, groups: Sequence[str], *, folds: int = 5, seed: int = 0) -> Floats:
    """Each row's log-odds by a model that saw no row of its group; features are scaled by the rows it learnt from."""
    names, member = np.unique(np.asarray(groups), return_inverse=True)
    fold = np.random.default_rng(seed).permutation(len(names))[member] % min(folds, len(names))
    scores = np.zeros(len(wanted))
    for number in range(int(fold.max()) + 1):
        learns = fold != number
        centre, spread = features[learns].mean(axis=0), features[learns].std(axis=0)
        scaled = (features - centre) / np.where(spread > 0, spread, 1.0)
        weights = fitted(scaled[learns], wanted[learns])
        scores[~learns] = weights[0] + scaled[~learns] @ weights[1:]
    return scores


def gain(base: Floats, added: Floats, wanted: Floats, groups: Sequence[str], *, seed: int = 0) -> Gain:
    """Return the gain of `added` (rows, k) over `base`; NaN where all rows have one outcome."""
    plain = held_out(base, wanted, groups, seed=seed)
    full = held_out(np.concatenate([base, added], axis=1), wanted, groups, seed=seed)
    positive = wanted > 0.5
    before, after = auroc(plain, positive), auroc(full, positive)
    half = half_width(lambda r: auroc(full[r], positive[r]) - auroc(plain[r], positive[r]), groups)
    return Gain(
        base=before,
        full=after,
        gain=after - before,
        low=None if half is None else after - before - half,
        high=None if half is None else after - before + half,
        n=len(wanted),
        positive=int(positive.sum()),
        tasks=len(set(groups)),
    )
