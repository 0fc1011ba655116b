"""Receiver heads: attention heads that many later sentences send to a few (Thought Anchors, arXiv 2506.19143)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Stretch = tuple[int, int]
"""First token, and the one after the last."""


def vertical_scores(attention: NDArray[np.floating], units: Sequence[Stretch], ignore: int) -> NDArray[np.float64]:
    """Mean attention that each unit gets from units more than `ignore` after it: (layers, heads, units).

    `attention`: (layers, heads, tokens, tokens), rows are queries. NaN for units with nothing so far after them.
    """
    means = np.stack(
        [
            np.stack([attention[:, :, q[0] : q[1], k[0] : k[1]].mean(axis=(2, 3)) for k in units], axis=-1)
            for q in units
        ],
        axis=2,
    ).astype(np.float64)
    scores = np.full((*means.shape[:2], len(units)), np.nan)
    for k in range(len(units)):
        later = means[:, :, k + 1 + ignore :, k]
        if later.shape[2]:
            scores[:, :, k] = later.mean(axis=2)
    return scores


def kurtosis(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Excess kurtosis along the last axis (population moments), NaN left out; NaN where nothing varies."""
    centred = values - np.nanmean(values, axis=-1, keepdims=True)
    second, fourth = np.nanmean(centred**2, axis=-1), np.nanmean(centred**4, axis=-1)
    flat = second <= 1e-24
    return np.where(flat, np.nan, fourth / np.where(flat, 1.0, second) ** 2 - 3)


def without_position(values: Sequence[float], places: Sequence[float]) -> NDArray[np.float64]:
    """Return the residuals of values when a curve of second degree over the place (0 first, 1 last) is taken out.

    Earlier and later sentences differ in importance whatever they say; only the rest speaks of their content.
    """
    place = np.asarray(places, np.float64)
    curve = np.stack([np.ones_like(place), place, place**2], axis=1)
    scores = np.asarray(values, np.float64)
    fitted, *_ = np.linalg.lstsq(curve, scores, rcond=None)
    left: NDArray[np.float64] = scores - curve @ fitted
    return left
