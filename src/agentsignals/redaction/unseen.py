"""What nobody sees in a text, and patterns stumble over: colours of a terminal, characters without a width, letters of
another font, and what stands between parts that a program puts together.

A key after a colour begins there, so colours are blanks where keys are looked for; a key that a search, a font or a
shell broke by them is whole without them, so texts that have any are looked through without them, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from unicodedata import normalize

from agentsignals.patterns import deferred_pattern
from agentsignals.redaction.spans import Span

_ESC = r"(?:\x1b|\\{1,4}(?:[uU]001[bB]|x1[bB]|033|e))"
_OF_COLOUR = (
    r"(?:(?<=\x9b)|(?:(?<=\x1b)|(?<=\\)\\{0,3}(?:[uU]001[bB]|x1[bB]|033|e))\[)[0-9;:?]{0,40}[A-Za-z]"
    rf"|(?:(?<=\x1b)|(?<=\\)\\{{0,3}}(?:[uU]001[bB]|x1[bB]|033|e))\]8;[^\x07\x1b\\]{{0,400}}(?:\x07|{_ESC}\\{{1,4}}|\\u0007|\\a)"
)
_COLOUR = deferred_pattern(rf"[\x1b\x9b\\](?:{_OF_COLOUR})")
"""ECMA-48 control sequences, raw and as JSON and programs write them; and links, which terminals show as their text."""
_MARKS = ("001b[", "001B[", "x1b[", "x1B[", "033[", "\\e[")
"""One of them is in every colour that is written with a backslash."""
_WIDTHLESS = (
    "\0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff\u0300-\u0338"
)
"""What Unicode calls ignorable by default, and marks over letters; also the zeros between letters of UTF-16 that was
read as bytes."""
_IS_WIDTHLESS = deferred_pattern(f"[{_WIDTHLESS}]")
_KEY_CHAR = "[A-Za-z0-9_+/=.~:@%-]"
_BETWEEN = r"[ \t]{0,3}(?:[.&+]|\.\.)?[ \t]{0,3}(?:\r?\n[ \t]{0,40})?"
_OF_JOINT = (
    rf"(?<={_KEY_CHAR}{{4}}.)(?:(?<=[\\^])\r?\n[ \t]{{0,40}}"
    rf"|(?<=')(?:\"'?\"'|{_BETWEEN}')|(?<=\")(?:'\"?'\"|{_BETWEEN}\"))(?={_KEY_CHAR}{{4}})(?={_KEY_CHAR}{{0,80}}(?:\d|[a-z][A-Z]))"
)
_JOINT = deferred_pattern(rf"[\"'\\^](?:{_OF_JOINT})")
"""Between two parts of a value that a shell or a program puts together: a line that goes on, or where a literal ends
and the next begins."""
_OTHER_FONT = deferred_pattern("[\u00a0\u2000-\u200a\u202f\u205f\u3000\uff01-\uff5e\U0001d400-\U0001d7ff]")
_PARTS = deferred_pattern(rf"[\x1b\x9b\\\"'^{_WIDTHLESS}](?:(?<=[{_WIDTHLESS}])|{_OF_COLOUR}|{_OF_JOINT})")


def is_in(text: str) -> bool:
    """Whether there is anything of it in a text."""
    return (
        "\x1b" in text
        or ("\\" in text and any(mark in text for mark in _MARKS))
        or ("\0" in text if text.isascii() else _IS_WIDTHLESS.search(text) is not None or "\x9b" in text)
        or _JOINT.search(text) is not None
    )


def in_plain_letters(text: str) -> str:
    """The text with letters of the alphabet, and blanks, for those that Unicode has for mathematics, wide columns and
    typesetters: each stands where it stood."""
    return text if text.isascii() else _OTHER_FONT.sub(lambda letter: normalize("NFKC", letter[0]), text)


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
