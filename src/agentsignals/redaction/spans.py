"""Spans of a text that are masked: merged, cleared of earlier masks, and replaced."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

_MASK = re.compile(
    r"\[(?P<kind>account|address|card|cut|key|login|mail|phone|private key|random|secret|user)(?P<who>-[0-9a-f]{8})?\]"
)
SIGN = r"(?:(?<=(?<![\w.+-])[+-])|(?<=(?<![\w.+-])[+-]{2})|(?<=\\[nr][+-]))"
"""After the sign of a diff line."""
WORD_START = rf"(?:(?<![A-Za-z0-9_.-])|(?<=\\[nrt])|{SIGN})"
"""Start of a word. Letters of scripts without blanks may precede it, and an escaped line end or tab."""
_JUDGED = frozenset(("login", "secret"))
"""Kinds that what a value looks like decides on."""


class Span(NamedTuple):
    """A place to mask, and the kind of secret there."""

    start: int
    end: int
    kind: str


class LongRuns:
    """Finds long stretches of certain ASCII characters: a pattern would begin anew at each letter of each word, in text
    that has hardly any."""

    def __init__(self, characters: str, least: int) -> None:
        self._table = bytes(120 if chr(n) in characters else 32 for n in range(256))  # x and blank
        self._least = b"x" * least

    def __call__(self, raw: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of each run. `raw` is the text, a byte a character."""
        marks = raw.translate(self._table)
        at = marks.find(self._least)
        while at >= 0:
            end = marks.find(b" ", at)
            end = len(marks) if end < 0 else end
            yield at, end
            at = marks.find(self._least, end)


def occurrences(text: str, needle: str) -> Iterator[int]:
    """Yield each place of a needle."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def places(text: str, needles: Iterable[str]) -> list[tuple[int, int]]:
    """Return start and end of each place of each needle, in order: several times faster than a pattern of all."""
    found: list[tuple[int, int]] = []
    for needle in needles:
        at = text.find(needle)
        while at >= 0:
            found.append((at, at + len(needle)))
            at = text.find(needle, at + 1)
    found.sort()
    return found


def has_mask(value: str) -> bool:
    """Return whether part of the value was masked before."""
    return "[" in value and _MASK.search(value) is not None


def without_pseudonyms(text: str) -> str:
    """Reduce each mask to the word of its kind, which is the same for all pseudonym keys."""
    return _MASK.sub(r"[\g<kind>]", text) if "[" in text else text


def unmasked(text: str, spans: list[Span]) -> list[Span]:
    """Drop spans inside earlier masks, and values with a pseudonym in them: whoever put it there has judged them, and
    they now look more like secrets than before."""
    matches = list(_MASK.finditer(text)) if spans and "[" in text else []
    if not matches:
        return spans
    masks = [mask.span() for mask in matches]
    people = [mask.span() for mask in matches if mask["who"]]
    return [
        span
        for span in spans
        if not any(start <= span.start and span.end <= end for start, end in _next(masks, span))
        and not (span.kind in _JUDGED and any(start < span.end for start, _ in _next(people, span)))
    ]


def _next(places: list[tuple[int, int]], span: Span) -> list[tuple[int, int]]:
    """Return the first place that ends after the start of the span, if any."""
    at = bisect_right(places, span.start, key=itemgetter(1))
    return places[at : at + 1]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Merge overlapping spans, in order. A merged span has the kind of the first. The host after a login is no mail."""
    disjoint: list[Span] = []
    for span in sorted(spans):
        if disjoint and span.start < disjoint[-1].end:
            if span.end > disjoint[-1].end and (span.kind, disjoint[-1].kind) != ("mail", "login"):
                disjoint[-1] = disjoint[-1]._replace(end=span.end)
        else:
            disjoint.append(span)
    return disjoint


def masked(text: str, spans: list[Span], mask: Callable[[str, str], str]) -> str:
    """Replace merged spans by `mask(kind, value)`."""
    parts: list[str] = []
    done = 0
    for start, end, kind in spans:
        parts += (text[done:start], mask(kind, text[start:end]))
        done = end
    parts.append(text[done:])
    return "".join(parts)
