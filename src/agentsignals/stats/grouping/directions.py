"""Texts as points, in NumPy: how telling their words are, along the main directions of all texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from math import log

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SPARE = 10
_ROUNDS = 5
"""Directions more than are asked for, and rounds, of the range finder (Halko, Martinsson and Tropp 2011)."""
_DIGITS = 9
"""Of a point. Groups of points that hardly stand apart turn over for a float's last bits, which differ by machine."""


class WordTable:
    """Texts as rows, words as columns, each cell how telling a word is of a text (tf-idf), rows of length 1. Only cells
    that are not 0 are kept."""

    def __init__(self, texts: Sequence[list[str]]) -> None:
        """`texts`: their words. Words of a single text, or of more than half, tell nothing."""
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
        """The product with a matrix of a row a word."""
        return self._product(self._rows, self._columns, self.shape[0], matrix)

    def turned_times(self, matrix: Floats) -> Floats:
        """The product of the table, turned over, with a matrix of a row a text."""
        return self._product(self._columns, self._rows, self.shape[1], matrix)

    def _product(self, to: NDArray[np.intp], taken: NDArray[np.intp], size: int, matrix: Floats) -> Floats:
        sums = (np.bincount(to, self._values * column[taken], size) for column in matrix.T)
        made: Floats = np.stack(list(sums), axis=1)
        return made


def directions(table: WordTable, size: int, seed: int) -> list[list[float]]:
    """Where each text lies along the `size` main directions of the table (truncated singular value decomposition by a
    seeded range finder), scaled to length 1, 0 of a text without a word of the table."""
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
