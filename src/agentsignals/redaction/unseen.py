"""What nobody sees in a text, and patterns stumble over: colours of a terminal, and characters without a width.

A key after a colour begins there, so colours are blanks where keys are looked for; a key that a search or a font broke
by them is whole without them, so texts that have any are looked through without them, too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from agentsignals.redaction.spans import Span

_COLOUR = re.compile(r"(?:\x1b\[|\x9b|\\{1,4}(?:[uU]001[bB]|x1[bB]|033|e)\[)[0-9;:?]{0,40}[A-Za-z]")
"""ECMA-48 control sequences, raw and as JSON and programs write them."""
_MARKS = ("001b[", "001B[", "x1b[", "x1B[", "033[", "\\e[")
"""One of them is in every colour that is written with a backslash."""
_WIDTHLESS = "\0\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
"""Also the zeros between letters of UTF-16 that was read as bytes."""
_IS_WIDTHLESS = re.compile(f"[{_WIDTHLESS}]")
_PARTS = re.compile(f"{_COLOUR.pattern}|[{_WIDTHLESS}]")


def is_in(text: str) -> bool:
    """Whether there is anything of it in a text."""
    return (
        "\x1b" in text
        or ("\\" in text and any(mark in text for mark in _MARKS))
        or ("\0" in text if text.isascii() else _IS_WIDTHLESS.search(text) is not None or "\x9b" in text)
    )


def without_colours(text: str) -> str:
    """The text with blanks for colours: each character stands where it stood."""
    return _COLOUR.sub(lambda colour: " " * len(colour[0]), text)


def joined(text: str, look: Callable[[str, int], list[Span]], depth: int) -> Iterator[Span]:
    """What must not leave in a text as people see it, in places of the text."""
    hits = [hit.span() for hit in _PARTS.finditer(text)]
    if not depth or not hits:
        return
    at: list[int] = []
    gone: list[int] = []
    for start, end in hits:
        before = gone[-1] if gone else 0
        at.append(start - before)
        gone.append(before + end - start)

    def place(n: int) -> int:
        """Where the character of that number stood."""
        k = bisect_right(at, n)
        return n + (gone[k - 1] if k else 0)

    for span in look(_PARTS.sub("", text), depth - 1):
        yield Span(place(span.start), place(span.end - 1) + 1, span.kind)
