"""Vectors of texts, and how near two of them are."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, isfinite, sqrt
from operator import mul
from typing import Any, Protocol

from msgspec import Struct


class Vector(Protocol):
    """What an embedder makes of a text. Vectors of one embedder can be compared, others never."""

    def cosine(self, other: Any) -> float | None:
        """1 for texts about the same, 0 for texts with nothing in common; None when either text said nothing."""


class Counts:
    """A vector of counted features that most texts don't have: only those that occur are kept."""

    __slots__ = ("counts", "length")

    def __init__(self, counts: Mapping[Any, int]) -> None:
        self.counts = counts
        held = counts.values()
        self.length = sqrt(sum(map(mul, held, held)))

    @classmethod
    def joined(cls, parts: Iterable[Any]) -> Counts:
        """The vector of these texts one after the other."""
        held = sorted([part.counts for part in parts], key=len)
        total = dict(held.pop()) if held else {}  # the largest is copied as a whole
        for counts in held:
            for feature, n in counts.items():
                total[feature] = total.get(feature, 0) + n
        return cls(total)

    def cosine(self, other: Counts) -> float | None:
        """In [0, 1]."""
        if not self.length or not other.length:
            return None
        few, many = (
            (self.counts, other.counts) if len(self.counts) <= len(other.counts) else (other.counts, self.counts)
        )
        shared = sum([n * many[f] for f, n in few.items() if f in many])
        return min(1.0, shared / (self.length * other.length))


class Dense:
    """A vector of as many 32-bit floats as the model has dimensions, of length 1; of none for a text without words."""

    __slots__ = ("values",)

    def __init__(self, values: array[float]) -> None:
        self.values = values

    @classmethod
    def of(cls, numbers: Iterable[float]) -> Dense:
        """Scaled to length 1. ValueError when a number is not finite."""
        values = list(numbers)
        length = sqrt(fsum(map(mul, values, values)))
        if not isfinite(length):
            raise ValueError("not a finite number")
        return cls(array("f", [n / length for n in values] if length else values))

    def cosine(self, other: Dense) -> float | None:
        """In [-1, 1]."""
        if not any(self.values) or not any(other.values):
            return None
        if len(self.values) != len(other.values):
            raise ValueError(f"{len(self.values)} and {len(other.values)} dimensions")
        return max(-1.0, min(1.0, fsum(map(mul, self.values, other.values))))


class Profile(Struct, frozen=True, gc=False):
    """Where an embedder's distances (1 - cosine) lie: its own cuts follow from these
    (design/signals.md#context-pollution).

    Absolute cuts do not carry over: of hashed n-grams nearly every pair of real texts is further apart than 0.45.
    """

    aligned: float = 0.0
    """a: the median distance of a first request to its own answer. 0, with m 1, is the inventory's literal formula."""
    unrelated: float = 1.0
    """m: the median distance of a first request to another session's first exchange, of another repository."""
    origin: str = "identity"
    """`shipped` with the embedder, `fitted` to the sessions of a store, or `identity`."""

    def pollution(self, distance: float) -> float:
        """(distance - a) / (m - a), cut to [0, 1]: 0 as near as an answer to its question, 1 as far as a stranger."""
        return min(1.0, max(0.0, self.unclipped(distance)))

    def unclipped(self, distance: float) -> float:
        """The same without the cut, for asking how far something moved."""
        return (distance - self.aligned) / (self.unrelated - self.aligned)


class Embedder(Protocol):
    """Makes vectors of texts."""

    @property
    def id(self) -> str:
        """Names everything its vectors depend on: kind, model, version."""

    @property
    def profile(self) -> Profile | None:
        """Its measured profile; None when nobody measured it."""

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector a text, in order. EmbedderError when it can't."""
