"""Places in a text that are masked, and the text with them masked: what every detector gives, put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """A place that must not leave, and what kind of secret stands there."""

    start: int
    end: int
    kind: str


def places(text: str, needle: str) -> Iterator[int]:
    """Where a needle stands."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def masked(text: str, spans: Iterable[Span], counts: dict[str, int], times: int = 1) -> str:
    """The text with its spans masked; those that overlap are one, of the kind of the first. `counts` grows by what
    was masked.
    """
    parts: list[str] = []
    done = 0
    for start, end, kind in _merged(spans):
        parts += (text[done:start], f"[{kind}]")
        counts[kind] = counts.get(kind, 0) + times
        done = end
    parts.append(text[done:])
    return "".join(parts)


def _merged(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start < found[-1].end:
            if span.end > found[-1].end:
                found[-1] = found[-1]._replace(end=span.end)
        else:
            found.append(span)
    return found
