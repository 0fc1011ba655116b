"""Lengths of text as the catalogue counts them, letters without their case, what is unseen made visible, what would run
made inert."""

from __future__ import annotations

import re
import struct

_TOKEN = re.compile(r"\w+|[^\w\s]")
_ASCII = bytes(range(128))
_KINDS = bytes(
    ord("w") if char.isalnum() or char == "_" else ord(" ") if char.isspace() else ord(".")
    for char in map(chr, range(128))
).ljust(256)
"""Each ASCII character as what it is to `_TOKEN`: of a word, blank, or a mark of its own."""
_FEW = 12
"""Different characters beyond ASCII (dashes, quotes, umlauts) that are sooner replaced by some of their kind."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe"
    "\uffff\U000e0000-\U000e007f]"
)
"""Control characters, and those that turn text around or hide in it; joiners stay, which scripts and emoji need."""
_LIVE = re.compile(r"[\t\r']|[\s'\"\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""How a cell begins that a spreadsheet runs, or that has our own mark: `=`, `+`, `-`, `@` and their wide forms, after
what is dropped before a formula is looked for (OWASP, "CSV Injection")."""
_LONE = re.compile("[\ud800-\udfff]")
_ODD_CASES = {"\u0130": "i", "\u0131": "i", "\u017f": "s"}
"""Letters that `re.IGNORECASE` takes for one of ASCII, and whose lower case is two characters or themselves."""


def count_tokens(text: str) -> int:
    """Tokens of a text: runs of word characters, or one punctuation mark (design/signals.md#units)."""
    if not text.isascii():
        others = beyond_ascii(text)
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


def beyond_ascii(text: str) -> set[str]:
    """The different characters of a text that are not in ASCII."""
    return set(text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass"))


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
    """The text with every unseen character as its number: `\\u202e` becomes `[U+202E]`. For all that people read."""
    seen = _UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", text.replace("\r\n", "\n"))
    return _LONE.sub("\ufffd", seen)


def visible_in_json(document: str) -> str:
    """The same document with every unseen character as JSON escapes it: `\\u202e`, in six letters."""
    return _UNSEEN.sub(lambda match: "".join(f"\\u{unit:04x}" for unit in _utf16(match[0])), document)


def _utf16(char: str) -> tuple[int, ...]:
    data = char.encode("utf-16-be")
    return struct.unpack(f">{len(data) // 2}H", data)


def inert(cell: str) -> str:
    """The text of a spreadsheet's cell, with `'` before it where the spreadsheet would run it. `of_inert` undoes it."""
    return f"'{cell}" if _LIVE.match(cell) else cell


def of_inert(cell: str) -> str:
    """What a cell was before `inert`."""
    return cell[1:] if cell.startswith("'") and _LIVE.match(cell[1:]) else cell
