"""The part of a passage that shows why it was found."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from agentsignals.fulltext.question import Term

BEFORE_CHARS, MOST_CHARS = 70, 260
"""Characters that are shown before the first match, and altogether: two lines of the page."""
_MOST_MATCHES = 400
_BETWEEN = re.compile(r"[\W_]+")


def excerpt(text: str, terms: Sequence[Term]) -> tuple[str, list[tuple[int, int]]]:
    """The stretch of a text that holds most of these words, on one line, and where in it they stand. Where none is seen
    (`terms` may be empty) the beginning."""
    matches = _matches(text, terms)
    start = max(0, _best(matches) - BEFORE_CHARS)
    if start:
        gap = re.compile(r"\s").search(text, start, start + BEFORE_CHARS // 2)
        start = gap.end() if gap else start
    end = min(len(text), start + MOST_CHARS)
    shown = "".join(" " if c.isspace() else c for c in text[start:end])
    marks = [(max(a, start), min(b, end)) for a, b, _ in matches if a < end and b > start]
    lead, tail = "… " if start else "", " …" if end < len(text) else ""
    return f"{lead}{shown}{tail}", [(a - start + len(lead), b - start + len(lead)) for a, b in _apart(marks)]


def _matches(text: str, terms: Sequence[Term]) -> list[tuple[int, int, int]]:
    """Beginning, end and which of the terms, in order of place."""
    plain = _plain(text)
    matches: list[tuple[int, int, int]] = []
    for n, term in enumerate(terms):
        for match in _pattern(term).finditer(plain):
            at = match.start()
            if at and text[at - 1].isalnum() and not _begins_part(text, at):
                continue
            matches.append((at, match.end(), n))
            if len(matches) >= _MOST_MATCHES * (n + 1):
                break
    return sorted(matches)


def _pattern(term: Term) -> re.Pattern[str]:
    words = [re.escape(word) for word in _BETWEEN.split(_plain(term.text)) if word]
    return re.compile(r"[\W_]+".join(words) + (r"[^\W_]*" if term.is_beginning else r"(?![^\W_])"))


def _begins_part(text: str, at: int) -> bool:
    """Whether a part of an identifier begins there, or a word of a script without spaces."""
    before, here = text[at - 1], text[at]
    return (here.isupper() and (before.islower() or text[at + 1 : at + 2].islower())) or not here.isascii()


def _plain(text: str) -> str:
    """In lower case without accents, each character in its place."""
    if text.isascii():
        return text.lower()
    return "".join(_plain_letter(c) for c in text)


def _plain_letter(letter: str) -> str:
    base = unicodedata.normalize("NFD", letter)[0].lower()
    return base if len(base) == 1 else letter


def _best(matches: list[tuple[int, int, int]]) -> int:
    """Where the stretch begins that holds most of the terms, the first of several."""
    best, place = 0, 0
    for n, (start, _, _) in enumerate(matches):
        inside = {term for begin, _, term in matches[n : n + 50] if begin - start < MOST_CHARS - BEFORE_CHARS}
        if len(inside) > best:
            best, place = len(inside), start
    return place


def _apart(marks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Marks without what two of them share."""
    united: list[tuple[int, int]] = []
    for start, end in marks:
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return united
