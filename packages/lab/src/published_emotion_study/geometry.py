"""Faults of a set of directions, seen from their geometry alone (design/lab.md#stored-states)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agentsignals_lab.directions import Array, unit

_SINK_DIMENSIONS = 5


def cosines(vectors: Array) -> NDArray[np.float64]:
    """(names, names)"""
    rows = unit(vectors.astype(np.float64))
    return np.asarray(rows @ rows.T, np.float64)


def sink_share(centre: Array) -> float:
    """Return the share of a vector's squared length that its five largest dimensions hold."""
    squares = np.sort(centre.astype(np.float64) ** 2)[::-1]
    return float(squares[:_SINK_DIMENSIONS].sum() / squares.sum())
