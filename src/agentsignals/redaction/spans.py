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


def merged(spans: Iterable[Span]) -> list[Span]:
    """The spans in order; those that overlap are one, of the kind of the first. The host after a login is no mail."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start < found[-1].end:
            if span.end > found[-1].end and (span.kind, found[-1].kind) != ("mail", "login"):
                found[-1] = found[-1]._replace(end=span.end)
        else:
            found.append(span)
    return found


def masked(text: str, spans: list[Span]) -> str:
    """The text with its spans, merged ones, masked."""
    parts: list[str] = []
    done = 0
    for start, end, kind in spans:
        parts += (text[done:start], f"[{kind}]")
        done = end
    parts.append(text[done:])
    return "".join(parts)
