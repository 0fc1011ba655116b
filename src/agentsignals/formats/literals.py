"""Which words a text must hold for a pattern to match it at all: they are looked for first, many times faster."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

_TOKEN = re.compile(
    r"[\w '\"-]+(?![*+?{])|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|\(\?:|\(\?[=!]|\(\?<[=!]|[()|.^$]|(?:[*+?]|\{\d*,?\d*\})[?+]?|.",
    re.DOTALL,
)
_OPTIONAL = ("?", "*", "{0", "{,")
_QUANTIFIER = re.compile(r"[*+?]|\{[\d,]").match
_NO_LITERAL = frozenset(".^$()|")
_TELLING = 3
"""Characters of a word that not every text has."""


class Pattern:
    """A pattern, compiled when the first text holds one of its words. Capitals count."""

    def __init__(self, source: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._source, self._flags = source, flags
        self.words = words_of(source)

    @cached_property
    def _search(self) -> Callable[[str], re.Match[str] | None]:
        return re.compile(self._source, self._flags).search

    def is_in(self, text: str) -> bool:
        """Whether it matches anywhere."""
        return (not self.words or any(map(text.__contains__, self.words))) and self._search(text) is not None


def words_of(pattern: str) -> tuple[str, ...]:
    """Texts of which each match of a pattern holds at least one; none where it can match without. The pattern has no
    named groups and no flags in it."""
    words, _ = _alternatives(_TOKEN.findall(pattern), 0)
    # What holds another one of them holds nothing more.
    return tuple(sorted(w for w in words if not any(other in w for other in words if other != w)))


def _alternatives(tokens: list[str], at: int) -> tuple[frozenset[str], int]:
    """The words of what stands from `at` to the closing parenthesis or the end, and where that is."""
    words: frozenset[str] = frozenset()
    is_free = False
    """Whether one of the alternatives needs no word."""
    while True:
        fresh, at = _sequence(tokens, at)
        is_free = is_free or not fresh
        words |= fresh
        if at == len(tokens) or tokens[at] == ")":
            return frozenset() if is_free else words, at
        at += 1


def _sequence(tokens: list[str], at: int) -> tuple[frozenset[str], int]:
    """The words of one alternative: of its parts that must be there, the one with the fewest that say something."""
    parts: list[frozenset[str]] = []
    run = ""
    while at < len(tokens) and tokens[at] not in ("|", ")"):
        token, literal, part = tokens[at], "", frozenset[str]()
        if token[0] == "(":
            part, at = _alternatives(tokens, at + 1)
            part = part if token in ("(", "(?:") else frozenset()
        elif token[0] == "\\":
            literal = "" if token[1].isalnum() else token[1]
        elif token[0] != "[" and token not in _NO_LITERAL:
            literal = token
        at += 1
        times = tokens[at] if at < len(tokens) and _QUANTIFIER(tokens[at]) else ""
        at += bool(times)
        if times.startswith(_OPTIONAL):
            literal, part = "", frozenset()
        run += literal
        if times or not literal:
            parts += [frozenset((run,)), part]
            run = ""
    parts.append(frozenset((run,)))
    return max((part for part in parts if part and "" not in part), key=_weight, default=frozenset()), at


def _weight(words: frozenset[str]) -> tuple[bool, int, int]:
    least = min(map(len, words))
    return least >= _TELLING, -len(words), least
