"""A session's first request as a vector, and how far from it other texts are."""

from __future__ import annotations

from agentsignals.embedding import Vectors
from agentsignals.embedding.passages import Passages
from agentsignals.embedding.vectors import Vector
from agentsignals.model import Absent, Turn
from agentsignals.views.session import SessionView

DIGITS = 4
"""To which distances and what is made of them are rounded."""


def request_vectors(
    view: SessionView, vectors: Vectors | Absent, passages: Passages, min_turns: int = 2
) -> tuple[Vectors, Turn, Vector] | Absent:
    """What makes more vectors, the session's first request, and its vector; absent below `min_turns` turns."""
    if len(view.turns) < min_turns:
        return Absent("not_applicable", "one_turn" if view.turns else "no_turn")
    if isinstance(vectors, Absent):
        return vectors
    anchor = passages.anchor
    if anchor is None:
        return Absent("not_applicable", "no_request")
    return vectors, anchor, vectors.of([passages.prompt(anchor)])[0]


def cosine_distance(first: Vector, other: Vector) -> float | None:
    """1 - cosine, 0 to 1; None when either text said nothing."""
    near = first.cosine(other)
    return None if near is None else round(1 - near, DIGITS)
