"""k-means++ with silhouettes, and tf-idf with truncated SVD, in NumPy.

Seeded by NumPy's `RandomState`, whose numbers stay the same between versions. It draws as scikit-learn 1.9 does and
ends with the same clusters (a test compares them).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STARTS = 10
_MOST_ROUNDS = 300
_TOLERANCE = 1e-4
"""Stop when centres move less than this share of the points' mean variance."""
_SAME = 1e-9
"""Results whose inertia differs by less are the same clusters in another order."""
_ROWS_AT_ONCE = 512
"""Rows of the distance matrix held in memory at once."""


def k_means(points: Sequence[Sequence[float]], k: int, seed: int) -> tuple[list[int], list[list[float]]]:
    """Return the cluster of each point, and the centres. `k` is at most the number of different points (Lloyd 1982)."""
    placed: Floats = np.array(points, dtype=np.float64)
    middle = placed.mean(axis=0)
    centred: Floats = placed - middle
    squares = np.einsum("ij,ij->i", centred, centred)
    still = _TOLERANCE * float(placed.var(axis=0).mean())
    chance = np.random.RandomState(seed)
    best, labels, centres = np.inf, np.zeros(len(placed), np.intp), centred[:1]
    for _ in range(STARTS):
        ended, moved = _settled(centred, squares, _starts(centred, squares, k, chance), still)
        inertia = float(((centred - moved[ended]) ** 2).sum())
        if inertia < best * (1 - _SAME):
            best, labels, centres = inertia, ended, moved
    return labels.tolist(), (centres + middle).tolist()


def silhouettes(points: Sequence[Sequence[float]], groupings: Sequence[Sequence[int]]) -> list[list[float]]:
    """Return the silhouette of each point for each clustering (Rousseeuw 1987); 0 in a cluster of one."""
    placed: Floats = np.array(points, dtype=np.float64)
    squares = np.einsum("ij,ij->i", placed, placed)
    members = [_members(np.array(of)) for of in groupings]
    fits: list[list[Floats]] = [[] for _ in groupings]
    for start in range(0, len(placed), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(placed)))
        away = np.sqrt(_squared(placed[rows], squares[rows], placed, squares))
        away[rows - start, rows] = 0.0
        for at, of in enumerate(members):
            fits[at].append(_fit(away @ of, of[rows].argmax(axis=1), of.sum(axis=0)))
    return [np.concatenate(of_rows).tolist() for of_rows in fits]


def _fit(sums: Floats, group: NDArray[np.intp], sizes: Floats) -> Floats:
    rows = np.arange(len(group))
    alone = sizes[group] == 1
    inside = sums[rows, group] / np.maximum(sizes[group] - 1, 1)
    means = sums / sizes
    means[rows, group] = np.inf
    nearest = means.min(axis=1)
    larger = np.maximum(inside, nearest)
    fit: Floats = np.where(alone | (larger == 0), 0.0, (nearest - inside) / np.where(larger == 0, 1.0, larger))
    return fit


def _starts(points: Floats, squares: Floats, k: int, chance: Any) -> Floats:
    """Choose initial centres by greedy k-means++ (Arthur and Vassilvitskii 2007)."""
    n = len(points)
    trials = 2 + int(log(k))
    chosen = [chance.choice(n, p=np.full(n, 1 / n))]
    away = _squared(points[chosen], squares[chosen], points, squares)[0]
    for _ in range(1, k):
        drawn = np.searchsorted(np.cumsum(away), chance.uniform(size=trials) * away.sum()).clip(None, n - 1)
        left = np.minimum(away, _squared(points[drawn], squares[drawn], points, squares))
        nearest = int(left.sum(axis=1).argmin())
        away = left[nearest]
        chosen.append(drawn[nearest])
    return points[chosen]


def _settled(points: Floats, squares: Floats, centres: Floats, still: float) -> tuple[NDArray[np.intp], Floats]:
    former: NDArray[np.intp] | None = None
    for _ in range(_MOST_ROUNDS):
        labels = _nearest(points, centres)
        moved = centres_of(points, squares, labels, centres)
        shift = float(((moved - centres) ** 2).sum())
        centres = moved
        if former is not None and np.array_equal(labels, former):
            return labels, centres
        if shift <= still:
            break
        former = labels
    return _nearest(points, centres), centres


def centres_of(points: Floats, squares: Floats, labels: NDArray[np.intp], before: Floats) -> Floats:
    """Return the mean of each cluster. An empty one takes the point farthest from its former centre."""
    of = _members(labels, len(before))
    for empty in np.flatnonzero(of.sum(axis=0) == 0):
        away = squares - 2 * (points * before[labels]).sum(axis=1) + (before**2).sum(axis=1)[labels]
        away[of.sum(axis=0)[labels] <= 1] = -1.0
        farthest = int(away.argmax())
        labels = labels.copy()
        labels[farthest] = empty
        of = _members(labels, len(before))
    made: Floats = (of.T @ points) / of.sum(axis=0)[:, None]
    return made


def _members(labels: NDArray[np.intp], k: int | None = None) -> Floats:
    """Indicator matrix: 1 where a point (row) is in a cluster (column)."""
    made: Floats = (labels[:, None] == np.arange(labels.max() + 1 if k is None else k)).astype(np.float64)
    return made


def _nearest(points: Floats, centres: Floats) -> NDArray[np.intp]:
    made: NDArray[np.intp] = ((centres**2).sum(axis=1) - 2 * points @ centres.T).argmin(axis=1)
    return made


def _squared(some: Floats, squares_of_some: Floats, points: Floats, squares: Floats) -> Floats:
    made: Floats = np.maximum(-2 * some @ points.T + squares_of_some[:, None] + squares, 0.0)
    return made


# -- texts as points ---------------------------------------------------------------------------------------------------


_SPARE = 10
_ROUNDS = 5
"""Oversampling and power iterations of the range finder (Halko, Martinsson and Tropp 2011)."""
_DIGITS = 9
"""Digits kept of a point: alike clusters would flip by a float's last bits, which depend on the machine."""


class TfIdf:
    """Sparse tf-idf matrix, a row a text, rows of length 1."""

    def __init__(self, texts: Sequence[list[str]]) -> None:
        """`texts`: lists of words. Words of a single text, or of more than half of them, are left out."""
        counts = [Counter(words) for words in texts]
        used = Counter(chain.from_iterable(counts))
        self.words = sorted(word for word, n in used.items() if 2 <= n <= len(texts) / 2)
        column = {word: at for at, word in enumerate(self.words)}
        rarity = [log((1 + len(texts)) / (1 + used[word])) + 1 for word in self.words]
        cells = [
            (row, column[word], (1 + log(n)) * rarity[column[word]])
            for row, counted in enumerate(counts)
            for word, n in counted.items()
            if word in column
        ]
        self.shape = len(texts), len(self.words)
        self._rows = np.array([row for row, _, _ in cells], np.intp)
        self._columns = np.array([at for _, at, _ in cells], np.intp)
        values = np.array([value for _, _, value in cells])
        lengths = np.sqrt(np.bincount(self._rows, values**2, len(texts)))
        self._values: Floats = values / lengths[self._rows]

    def times(self, matrix: Floats) -> Floats:
        return self._product(self._rows, self._columns, self.shape[0], matrix)

    def turned_times(self, matrix: Floats) -> Floats:
        return self._product(self._columns, self._rows, self.shape[1], matrix)

    def _product(self, to: NDArray[np.intp], taken: NDArray[np.intp], size: int, matrix: Floats) -> Floats:
        sums = (np.bincount(to, self._values * column[taken], size) for column in matrix.T)
        made: Floats = np.stack(list(sums), axis=1)
        return made


def directions(table: TfIdf, size: int, seed: int) -> list[list[float]]:
    """Project texts on the `size` main directions (truncated SVD by a seeded range finder), scaled to length 1."""
    lies = table.shape[0] < table.shape[1]
    there, back = (table.turned_times, table.times) if lies else (table.times, table.turned_times)
    chance = np.random.RandomState(seed)
    basis: Floats = chance.normal(size=(min(table.shape), size + _SPARE))
    for _ in range(_ROUNDS):
        basis = np.linalg.qr(back(np.linalg.qr(there(basis))[0]))[0]
    basis = np.linalg.qr(there(basis))[0]
    across, _, along = np.linalg.svd(back(basis).T, full_matrices=False)
    main = (basis @ across)[:, :size] if lies else along[:size].T
    largest = np.take_along_axis(main, np.abs(main).argmax(axis=0)[None], axis=0)
    placed = table.times(main * np.sign(largest))
    lengths = np.linalg.norm(placed, axis=1, keepdims=True)
    made: list[list[float]] = np.round(placed / np.where(lengths == 0, 1.0, lengths), _DIGITS).tolist()
    return made
