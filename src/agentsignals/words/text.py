"""Lengths of text as the catalogue counts them, letters without their case, and what is unseen made visible."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\w+|[^\w\s]")
_OTHER = re.compile(r"[^\x00-\x7f]")
_KINDS = bytes(
    ord("w") if char.isalnum() or char == "_" else ord(" ") if char.isspace() else ord(".")
    for char in map(chr, range(128))
).ljust(256)
"""Each ASCII character as what it is to `_TOKEN`: of a word, blank, or a mark of its own."""
_FEW = 12
"""Different characters beyond ASCII (dashes, quotes, umlauts) that are sooner replaced by some of their kind."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff]"
)
"""Control characters, and those that turn text around or hide in it; joiners stay, which scripts and emoji need."""
_LONE = re.compile("[\ud800-\udfff]")
_ODD_CASES = {"\u0130": "i", "\u0131": "i", "\u017f": "s"}
"""Letters that `re.IGNORECASE` takes for one of ASCII, and whose lower case is two characters or themselves."""


def count_tokens(text: str) -> int:
    """Tokens of a text: runs of word characters, or one punctuation mark (design/signals.md#units)."""
    if not text.isascii():
        others = set(_OTHER.findall(text))
        if len(others) > _FEW:
            return len(_TOKEN.findall(text))
        for char in others:
            text = text.replace(char, "w" if char.isalnum() else " " if char.isspace() else ".")
    # Several times faster than the pattern, which makes a string for every token.
    kinds = text.encode().translate(_KINDS)
    marks = kinds.count(b".")
    if marks:
        kinds = kinds.replace(b".", b" ")  # one way for a word to begin is found sooner than two
    return kinds.startswith(b"w") + kinds.count(b" w") + marks


def lowered(text: str) -> str:
    """The text in lower case, every character in its place: what patterns for lower case find has the same offsets."""
    if not text.isascii():
        for odd, plain in _ODD_CASES.items():
            text = text.replace(odd, plain)
    return text.lower()


def estimate_tokens(n_chars: int) -> int:
    """ceil(characters / 4): the catalogue's estimate where counting would cost too much (tool results, thinking)."""
    return (n_chars + 3) // 4


def visible(text: str) -> str:
    """The text with every unseen character as its number: `\\u202e` becomes `[U+202E]`. For pages and pictures."""
    seen = _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text.replace("\r\n", "\n"))
    return _LONE.sub("\ufffd", seen)
