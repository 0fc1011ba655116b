"""Faults of a set of directions, seen from their geometry alone (design/lab.md#stored-states)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from agentsignals_lab.directions import Array, unit

_SINK_DIMENSIONS = 5


class Geometry(Struct, frozen=True, kw_only=True):
    """Geometry of the directions (names, d) at one layer."""

    layer: int
    mean_cosine: float
    """Over all pairs."""
    least_cosine: float
    shared_energy: float
    """The share of their squared lengths that lies on one axis: near 1, they all say the same."""
    sink_share: float
    """The share of the centre's squared length in its five largest dimensions; near 1: a massive activation."""
    length_correlation: float | None
    """Pearson correlation of a direction's coordinate along the centre with the mean of 1/length of its texts; high:
    what is measured is how long the texts were. None without lengths."""


def cosines(vectors: Array) -> NDArray[np.float64]:
    """(names, names)"""
    rows = unit(vectors.astype(np.float64))
    return np.asarray(rows @ rows.T, np.float64)


def shared_energy(vectors: Array) -> float:
    """The first squared singular value over the sum of all."""
    lengths = np.linalg.svd(vectors.astype(np.float64), compute_uv=False) ** 2
    return float(lengths[0] / lengths.sum())


def sink_share(centre: Array) -> float:
    """Return the share of a vector's squared length that its five largest dimensions hold."""
    squares = np.sort(centre.astype(np.float64) ** 2)[::-1]
    return float(squares[:_SINK_DIMENSIONS].sum() / squares.sum())


def geometry(
    vectors: Array, centre: Array, layers: Sequence[int], token_counts: Sequence[Sequence[int]] | None = None
) -> list[Geometry]:
    """One entry a layer, of vectors (names, layers, d). `token_counts`: the lengths of each name's texts, in tokens."""
    rows = []
    for place, layer in enumerate(layers):
        pairs = cosines(vectors[:, place])[np.triu_indices(len(vectors), 1)]
        correlation = None
        if token_counts is not None:
            inverse = [float(np.mean([1 / n for n in counts])) for counts in token_counts]
            along = vectors[:, place] @ unit(centre[place])
            correlation = float(np.corrcoef(along, inverse)[0, 1])
        rows.append(
            Geometry(
                layer=layer,
                mean_cosine=float(pairs.mean()),
                least_cosine=float(pairs.min()),
                shared_energy=shared_energy(vectors[:, place]),
                sink_share=sink_share(centre[place]),
                length_correlation=correlation,
            )
        )
    return rows
