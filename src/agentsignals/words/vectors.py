"""Similarity of texts in meaning: vectors of texts, by one of several embedders.

`words` counts words and needs nothing; `chars` counts runs of characters; `sentence-transformers:MODEL` runs a model
here; `openai:MODEL[@URL]` asks a server. Distances of different embedders are not comparable: each has a `Profile`.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from math import fsum, isfinite, sqrt
from operator import mul
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from agentsignals.errors import UsageError
from agentsignals.model import Absent
from agentsignals.model.registry import no_such


class Vector(Protocol):
    """An embedding of a text. Vectors of one embedder can be compared, those of different embedders never."""

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
        held = sorted([part.counts for part in parts], key=len)
        total = dict(held.pop()) if held else {}  # the largest is copied as a whole
        for counts in held:
            for feature, n in counts.items():
                total[feature] = total.get(feature, 0) + n
        return cls(total)

    def cosine(self, other: Counts) -> float | None:
        if not self.length or not other.length:
            return None
        few, many = sorted((self.counts, other.counts), key=len)
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
        if not any(self.values) or not any(other.values):
            return None
        if len(self.values) != len(other.values):
            raise ValueError(f"{len(self.values)} and {len(other.values)} dimensions")
        return max(-1.0, min(1.0, fsum(map(mul, self.values, other.values))))


class Profile(Struct, frozen=True, gc=False):
    """The scale of an embedder's distances (1 - cosine): its own cuts follow from these
    (design/signals.md#context-pollution).

    Absolute cuts do not carry over: with hashed n-grams nearly every pair of real texts is further apart than 0.45.
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


# Embedders that count features: no model, no download, and thousands of texts a second. The features were chosen on 186
# real sessions in nine agents' formats, by how often the answer to a first request is nearer to it than another
# session's first exchange (docs/decisions/).

_Made = TypeVar("_Made")
STEM_CHARS = 6
"""Words are cut to so many letters: "commit", "commits" and "committing" are one."""
GRAM_BYTES = 4
MOST_KNOWN = 50_000
"""Different runs of letters whose words are remembered: a hundred sessions have ten thousand."""
_LONGEST_KNOWN = 40
"""Bytes of one: a longer run is a key or a digest, which nobody says twice."""
_CAMEL = re.compile(r"[A-Z](?<=[a-z0-9].)")  # half the time of looking for pairs
# Thai to Myanmar, Khmer, and everything from the CJK radicals on but Korean, which writes blanks: where each begins,
# and where it has ended. A pattern of them takes 3 ms to compile.
_WITHOUT_BLANKS = (
    0x0E00, 0x0F00, 0x1000, 0x10A0, 0x1780, 0x1800, 0x2E80, 0xAC00, 0xD7B0, 0xD800, 0xF900, 0x20000, 0x20000, 0x40000,
)  # fmt: skip
_ASCII = bytes(range(128))
_RUNS = bytes(n if n >= 128 or chr(n).isalnum() else ord(" ") for n in range(256))
"""Letters and digits stay, ASCII marks become blanks, so that identifiers fall apart into words."""

_EMPTY = (
    "a an the this that these those i you he she it we they me us him her them my your his its our their am is are was"
    " were be been being do does did done doing have has had having will would shall should can could may might must"
    " not no yes ok okay and or but if then than so as at by for from in into of off on onto out over to up down with"
    " without about after before again here there now just also only very too all any some more most other another each"
    " what which who when where why how let lets get got make made want need please thanks thank see look like use"
    " using used one two don isn doesn didn won ll ve re"
)
_STOP = frozenset(_EMPTY.split())


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, with identifiers (camelCase, snake_case, paths) split."""
    return list(chain.from_iterable(map(_parts_of, _runs(text))))


def _runs(text: str) -> list[bytes]:
    """Return the runs of letters and digits as written, in UTF-8: the fastest way to split a text."""
    data = text.encode("utf-8", "replace")
    if not text.isascii():
        # Few different ones, dashes and ticks most often: replacing them is faster than a pattern of words.
        for mark in set(data.translate(None, _ASCII).decode()):
            if not mark.isalnum():
                data = data.replace(mark.encode(), b" ")
    return data.translate(_RUNS).split()


class _Memo(dict[bytes, _Made]):
    """Cache of counts by runs of letters: a session repeats its words."""

    def __init__(self, make: Callable[[str], _Made]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, run: bytes) -> _Made:
        made = self._make(run.decode())
        if len(run) <= _LONGEST_KNOWN:
            if len(self) >= MOST_KNOWN:
                self.clear()
            self[run] = made
        return made


def _parts(run: str) -> tuple[str, ...]:
    return (run,) if run.islower() else tuple(_CAMEL.sub(r" \g<0>", run).lower().split())


def _stems(run: str) -> str | tuple[str, ...]:
    """Return the terms of a run of letters: nearly always one word, sometimes none or several. Scripts without blanks
    give pairs of characters."""
    stems: list[str] = []
    for word in _parts(run):
        if not word.isascii() and any(bisect(_WITHOUT_BLANKS, ord(char)) % 2 for char in word):
            stems += [a + b for a, b in pairwise(word)] or [word]
        elif len(word) > 1 and word not in _STOP:
            stems.append(word[:STEM_CHARS])
    return stems[0] if len(stems) == 1 else tuple(stems)


_parts_of = _Memo(_parts).__getitem__
_stem_of = _Memo(_stems).__getitem__


class _Counting:
    _count: Callable[[str], dict[Any, int]]

    def embed(self, texts: Sequence[str]) -> list[Counts]:
        return [Counts(self._count(text)) for text in texts]


class Words(_Counting):
    """Counts words without those that say nothing. Scripts written without blanks count as pairs of characters."""

    id = "words-1"
    profile = Profile(0.56, 0.96, "shipped")

    def _count(self, text: str) -> dict[Any, int]:
        counted: dict[str | tuple[str, ...], int] = Counter(map(_stem_of, _runs(text)))
        # Counting single words first saves a list for each: runs of none or several words are corrected at the end.
        several = [(stems, counted.pop(stems)) for stems in [key for key in counted if type(key) is tuple]]
        for stems, n in several:
            for stem in stems:
                counted[stem] = counted.get(stem, 0) + n
        return counted


class Chars(_Counting):
    """Counts runs of four bytes of the words, blanks included: knows no language, and forgives spelling."""

    id = "chars-1"
    profile = Profile(0.61, 0.85, "shipped")

    def _count(self, text: str) -> dict[Any, int]:
        counted: Counter[int] = Counter()
        if words := split_words(text):
            data = f" {' '.join(words)} ".encode("utf-8", "replace")
            # Every fourth run at once, as one machine word each: several times faster than slicing.
            for start in range(GRAM_BYTES):
                length = (len(data) - start) // GRAM_BYTES * GRAM_BYTES
                counted.update(memoryview(data)[start : start + length].cast("I"))
        return counted


DEFAULT = "words"
NONE = "none"
_LEXICAL: dict[str, Callable[[], Embedder]] = {"words": Words, "chars": Chars}
_MODELS = ("sentence-transformers", "openai")
"""Embedders that take a model's name (`store.embedders`)."""
MOST_RECENT = 1000
"""Texts whose vectors are at hand: several signals ask for the same ones of a session."""
DISABLED = Absent("backend_disabled", "embedder")


class VectorStore(Protocol):
    """Storage for vectors that took a model to compute."""

    def get(self, texts: Sequence[str]) -> dict[str, Vector]: ...

    def put(self, vectors: dict[str, Vector]) -> None:
        """Keeps them; what was put is there after a crash."""


class Vectors:
    """Vectors for signals: an embedder, its profile, and a cache."""

    def __init__(self, embedder: Embedder, profile: Profile | None = None, kept: VectorStore | None = None) -> None:
        self.embedder = embedder
        self.profile = profile or embedder.profile or Profile()
        self.kept = kept
        self._recent: dict[str, Vector] = {}

    def of(self, texts: Iterable[str]) -> list[Vector]:
        """One vector a text, in order. EmbedderError when one must be made and can't be."""
        wanted = list(texts)
        if len(self._recent) > MOST_RECENT:
            self._recent.clear()
        recent = self._recent
        missing = [text for text in dict.fromkeys(wanted) if text not in recent]
        if missing and self.kept is not None:
            recent |= self.kept.get(missing)
            missing = [text for text in missing if text not in recent]
        if missing:
            made = dict(zip(missing, self.embedder.embed(missing), strict=True))
            if self.kept is not None:
                self.kept.put(made)
            recent |= made
        return [recent[text] for text in wanted]

    def of_joined(self, texts: Iterable[tuple[str, ...]]) -> list[Vector]:
        """One vector for each text given in parts. Counts of parts add up; a model sees the whole."""
        wanted = list(texts)
        if not isinstance(self.embedder, Words | Chars):
            return self.of("\n".join(parts) for parts in wanted)
        return [Counts.joined(self.of(parts)) for parts in wanted]

    @property
    def provenance(self) -> dict[str, Any]:
        """Detail of every value that rests on vectors."""
        profile = self.profile
        return {
            "method": "embedding",
            "embedder": self.embedder.id,
            "calibration": {"a": profile.aligned, "m": profile.unrelated, "origin": profile.origin},
        }

    @property
    def confidence(self) -> str:
        """`low` where the cuts were not measured for this embedder, or it only counts words."""
        return "low" if self.profile.origin == "identity" else "medium"


def parsed(spec: str) -> tuple[str, str]:
    """The embedder's name and model out of `NAME[:MODEL]`. UsageError for what is none."""
    name, _, model = spec.partition(":")
    if name in _MODELS and not model:
        raise UsageError(f"The embedder {name!r} needs a model.", f"Write {name}:MODEL.")
    if name not in _MODELS and (model or name not in (*_LEXICAL, NONE)):
        choices = (*_LEXICAL, *(f"{n}:MODEL" for n in _MODELS), NONE)
        raise UsageError(*no_such("embedder", spec, choices))
    return name, model


def is_model(spec: str) -> bool:
    """Return whether the embedder's vectors are worth storing: it loads a model, or asks a server."""
    return parsed(spec)[0] in _MODELS


REDACT = "#redact"
"""Behind a server's address: redact texts also where it is on this machine."""


def redacting(spec: str | None) -> str:
    """Return the embedder with texts redacted also for a server on this machine. UsageError where it asks none."""
    if spec is None or parsed(spec)[0] != "openai":
        raise UsageError("--redact only works with an embedder on a server.", "Add --embedder openai:MODEL@URL.")
    return spec if REDACT in spec else f"{spec}{'' if '@' in spec else '@'}{REDACT}"


@cache
def counting_vectors(spec: str = DEFAULT) -> Vectors | Absent:
    """Vectors by counting, made where they are needed. Absent for `none`, and for models, whose vectors are kept."""
    made = _LEXICAL.get(spec)
    return Vectors(made()) if made is not None else DISABLED
