"""Fits an embedder's profile to the sessions of a store (design/signals.md#context-pollution)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from statistics import median

from msgspec import Struct

from agentsignals.embedding import Vectors
from agentsignals.embedding.passages import Passages
from agentsignals.embedding.vectors import Profile, Vector
from agentsignals.views.session import SessionView

MIN_SESSIONS = 30
MIN_PLACES = 2
"""Sessions of one repository resemble each other, which would make the unrelated seem near (section 4)."""
MOST_SESSIONS = 300
"""More move the medians by less than a hundredth."""
MIN_SPREAD = 0.02
"""Below it, an embedder does not tell an answer from a stranger, and a profile of it would blow up noise."""


class Opening(Struct, frozen=True):
    """How a session begins: its first request, the answer, both together, and where it took place."""

    session_id: str
    place: str
    request: str
    answer: str

    @property
    def exchange(self) -> str:
        """Both together."""
        return f"{self.request}\n{self.answer}"


def opening(view: SessionView) -> Opening | None:
    """The opening of a session; None where a place, a request or an answer is missing."""
    passages, session = Passages(view), view.session
    anchor, place = passages.anchor, session.repo or session.cwd
    if anchor is None or not place:
        return None
    answer = passages.answer(anchor.turn)
    return Opening(session.session_id, place, passages.prompt(anchor), answer) if answer else None


def fit(openings: Iterable[Opening], vectors: Vectors) -> Profile | None:
    """The profile of these sessions; None with fewer than 30, of fewer than 2 places, or when it tells nothing apart.

    The same sessions give the same profile in whatever order they come.
    """
    chosen = sorted(openings, key=lambda o: hashlib.sha256(o.session_id.encode("utf-8", "surrogatepass")).digest())
    chosen = chosen[:MOST_SESSIONS]
    if len(chosen) < MIN_SESSIONS or len({o.place for o in chosen}) < MIN_PLACES:
        return None
    requests = vectors.of(o.request for o in chosen)
    aligned = _distances(requests, vectors.of(o.answer for o in chosen))
    exchanges = vectors.of(o.exchange for o in chosen)
    unrelated = _distances(requests, [exchanges[_stranger(chosen, n)] for n in range(len(chosen))])
    if len(aligned) < MIN_SESSIONS or len(unrelated) < MIN_SESSIONS:
        return None
    a, m = median(aligned), median(unrelated)
    return Profile(round(a, 4), round(m, 4), "fitted") if m - a >= MIN_SPREAD else None


def _distances(some: Iterable[Vector], others: Iterable[Vector]) -> list[float]:
    cosines = [vector.cosine(other) for vector, other in zip(some, others, strict=True)]
    return [1 - c for c in cosines if c is not None]


def _stranger(chosen: list[Opening], n: int) -> int:
    """The next session of another place."""
    return next(
        k % len(chosen) for k in range(n + 1, n + len(chosen)) if chosen[k % len(chosen)].place != chosen[n].place
    )
