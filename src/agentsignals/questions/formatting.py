"""Numbers as people read them. Page, table and tooltip all format here, so that they agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from math import floor, isfinite, log10
from typing import Any

from msgspec import Struct

from agentsignals.questions.question import Kind

MISSING = "–"
AT_LEAST = ">= "


class AtLeast(Struct, frozen=True):
    """A figure in a table that is a lower bound, shown and encoded as one."""

    at_least: float


def with_bound(value: float | None, is_bound: bool) -> float | AtLeast | None:
    """Mark a figure as a lower bound if it is one."""
    return AtLeast(value) if is_bound and value is not None else value


_SMALL_USD, _MOST_DIGITS = 0.001, 12
"""Smaller dollar amounts get two significant digits, up to so many decimals, so that only 0 is written as 0."""
_UNITS = (("G", 1e9), ("M", 1e6), ("k", 1e3))


def without_bound(value: Any) -> Any:
    """Return the figure without its lower-bound mark."""
    return value.at_least if isinstance(value, AtLeast) else value


def formatted(value: Any, kind: Kind, at_least: bool = False) -> str:
    """Format a value of this kind; a dash if it is missing. `at_least`: it is a lower bound."""
    if value is None:
        return MISSING
    if isinstance(value, AtLeast):
        value, at_least = without_bound(value), True
    if at_least:
        return AT_LEAST + formatted(value, kind)
    if isinstance(value, str):
        return value
    writer = _WRITERS.get(kind)
    return writer(value) if writer else str(value)


def interval(
    low: float | None, high: float | None, form: str | Callable[[float], str] = "{:.0%}", shown: str = "{}"
) -> str:
    """Format the ends of an interval, `37% to 96%`, in the text where it is `shown`; empty without ends."""
    write = form.format if isinstance(form, str) else form
    return "" if low is None or high is None else shown.format(f"{write(low)} to {write(high)}")


def part_text(n: int, of: int, low: float | None, high: float | None) -> str:
    """Format a part of a whole with its interval: `7 of 12, 58.3% (31% to 82%)`."""
    return f"{n:,} of {of:,}, {formatted(n / of, 'share')}{interval(low, high, shown=' ({})')}"


def times(n: int | None, singular: str, many: str = "") -> str:
    """A count with its noun: `1 call`, `2 calls`."""
    return f"{n or 0:,} {singular if n == 1 else many or singular + 's'}"


def cut(text: str, most: int) -> str:
    """Return at most so many characters of a text; a longer one ends in …"""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def singular(nouns: str) -> str:
    """Return plural nouns for a count of one: `turn with a call` of `turns with a call`."""
    return _PLURAL.sub(lambda word: f"{word[1]}y" if word[2] == "ies" else word[1], nouns, count=1)


_PLURAL = re.compile(r"\b(\w+?(?:ss|ch|x)(?=es\b)|\w+?(?=ies\b)|\w*[a-rt-z](?=s\b))(ies|es|s)\b")


def signed(value: float | None, kind: Kind) -> str:
    """Format a difference with its sign."""
    if not value:
        return formatted(value, kind)
    return ("+" if value > 0 else "-") + formatted(abs(value), kind)


def number(value: float) -> str:
    """Return a number with three significant digits at least, thousands separated, never with an exponent."""
    if not isfinite(value):
        return str(value)
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    if size < _TINY:
        return f"{'-' if value < 0 else ''}<{_TINY:f}"
    return f"{value:.{2 - floor(log10(size))}f}".rstrip("0").rstrip(".")


_TINY = 0.000001


def _tokens(value: float) -> str:
    for letter, size in _UNITS:
        if value >= size:
            return f"{value / size:.3g} {letter}" if value < 1000 * size else f"{value / size:,.0f} {letter}"
    return f"{value:,.0f}"


def _usd(value: float) -> str:
    if 0 < value < 0.01:
        return f"${value:.4f}" if value >= _SMALL_USD else f"${value:.{min(_MOST_DIGITS, 1 - floor(log10(value)))}f}"
    return f"${value:,.2f}" if value < 1000 else f"${value:,.0f}"


def _bytes(value: float) -> str:
    for letter, size in _UNITS:
        if value >= size:
            return f"{value / size:,.1f} {letter}B"
    return f"{value:.0f} B"


def _seconds(value: float) -> str:
    if value < 120:
        return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"
    return f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"


_WRITERS: dict[Kind, Callable[[Any], str]] = {
    "count": lambda value: f"{value:,.0f}" if float(value).is_integer() else number(value),
    "number": number,
    "tokens": _tokens,
    "share": lambda value: "<0.1%" if 0 < value < 0.001 else f"{value:.1%}",
    "usd": _usd,
    "bytes": _bytes,
    "seconds": _seconds,
    "date": lambda value: f"{value:%Y-%m-%d}" if isinstance(value, datetime) else str(value),
}
