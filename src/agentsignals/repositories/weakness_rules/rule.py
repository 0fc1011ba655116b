"""A text with its comments blanked, so that a rule does not take an explanation for code. Strings stay."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import cast

from msgspec import Struct

from agentsignals.repositories.scanner import Level

_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_SLASHES = re.compile(
    rf"{_STRING}|`(?:\\.|[^`\\])*(?:`|\Z)|(?P<comment>(?<![:\\])//[^\n]*|/\*.*?(?:\*/|\Z))", re.DOTALL
)
_HASH = re.compile(rf"{_STRING}|(?P<comment>(?:(?<=\s)|^)#(?!\{{)[^\n]*)", re.MULTILINE | re.DOTALL)
_PHP = re.compile(
    rf"{_STRING}|(?P<comment>(?<![:\\])//[^\n]*|/\*.*?(?:\*/|\Z)|(?:(?<=\s)|^)#(?!\[)[^\n]*)", re.MULTILINE | re.DOTALL
)
_MARKUP = re.compile(r"(?P<comment><!--.*?(?:-->|\Z))", re.DOTALL)
_OF_LANGUAGE = {
    **dict.fromkeys(("javascript", "go", "java", "csharp", "c", "rust"), _SLASHES),
    **dict.fromkeys(("shell", "yaml", "ruby", "terraform", "dockerfile", "python"), _HASH),
    "php": _PHP,
    "html": _MARKUP,
}
_SHOWN = re.compile(r"[^\n]")


def without_comments(text: str, language: str) -> str:
    """The text of the same length, each character of a comment a space. An open comment ends with the file."""
    pattern = _OF_LANGUAGE.get(language)
    if pattern is None:
        return text
    return pattern.sub(lambda match: _SHOWN.sub(" ", match[0]) if match.lastgroup else match[0], text)


# What a rule is, and the text it looks at.

Span = tuple[int, int]
"""Where a match begins and ends, in characters."""


_NEAR = 400
"""Characters of a line before and after a match in which something may speak against it."""


class Text:
    """A file's text, and the same with its comments blanked, offsets unchanged."""

    def __init__(self, path: str, language: str, text: str) -> None:
        self.path, self.language, self.text = path, language, text
        self.code = without_comments(text, language)
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def line_at(self, offset: int) -> int:
        """The line, counted from 1, of a character."""
        return bisect_right(self._starts, offset)

    def offset_of(self, line: int) -> int:
        """Where a line begins."""
        return self._starts[min(line, len(self._starts)) - 1]


class Rule(Struct, frozen=True, kw_only=True):
    """A weakness to look for. `find` gives the places; a change of it raises `version`."""

    id: str
    cwe: tuple[str, ...]
    severity: Level
    confidence: Level
    message: str
    languages: tuple[str, ...]
    find: Callable[[Text], Iterator[Span]]
    version: int = 1


def rule(  # noqa: PLR0913  (the columns of the table of rules)
    rule_id: str,
    rating: str,
    message: str,
    languages: tuple[str, ...],
    find: Callable[[Text], Iterator[Span]],
    version: int = 1,
) -> Rule:
    """Declare a rule. `rating` holds its weaknesses, its severity and its confidence: `CWE-78 high medium`."""
    *cwe, severity, confidence = rating.split()
    return Rule(
        id=rule_id,
        cwe=tuple(cwe),
        severity=cast(Level, severity),
        confidence=cast(Level, confidence),
        message=message,
        languages=languages,
        find=find,
        version=version,
    )


def matching(
    pattern: str,
    *,
    needs: tuple[str, ...] = (),
    unless: str | None = None,
    path: str | None = None,
    in_comments: bool = False,
) -> Callable[[Text], Iterator[Span]]:
    """Places that a pattern matches. `needs`: words one of which must be in the file, which is quick to see;
    `unless`: a pattern that, found in the match or around it in its lines, speaks against it; `path`: which files.

    Repetitions in patterns are bounded, so that a file takes time in proportion to its length.
    """
    wanted = re.compile(pattern)
    against = re.compile(unless) if unless else None
    of = re.compile(path) if path else None

    def find(text: Text) -> Iterator[Span]:
        if of is not None and not of.search(text.path):
            return
        where = text.text if in_comments else text.code
        if needs and not any(word in where for word in needs):
            return
        for match in wanted.finditer(where):
            if against is not None:
                begin = max(where.rfind("\n", 0, match.start()) + 1, match.start() - _NEAR)
                end = where.find("\n", match.end(), match.end() + _NEAR)
                if against.search(where, begin, end if end >= 0 else match.end() + _NEAR):
                    continue
            yield match.span()

    return find


# Regular expressions that some texts keep busy for ever, told from their own text.

_LONGEST = 2_000
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\]", re.DOTALL)
_TIMES = re.compile(r"([*+]|\{\d*,\d*\}|\?|\{\d+\})[?+]?")


def piles_up(pattern: str) -> bool:
    r"""Return whether an unbounded group can itself match a text in several ways, as in `(a+)+` or `(\w+\s?)*`: all
    its parts but one may be empty, and that one repeats without bound."""
    if len(pattern) > _LONGEST:
        return False
    groups: list[list[tuple[bool, bool]]] = [[]]  # parts of each open group: may be empty, repeated without bound
    splits: list[bool] = [False]
    at = 0
    while at < len(pattern):
        atom = _ATOM.match(pattern, at)
        if atom is None:  # ends with a backslash, or in a class
            return False
        at = atom.end()
        word = atom[0]
        if word == "(":
            groups.append([])
            splits.append(False)
            head = re.match(r"\?(?:[:=!>]|<[=!]|P?<\w+>|[a-zA-Z]*:)", pattern[at : at + 60])
            at = at + head.end() if head else at
            continue
        if word == "|":
            splits[-1] = True
            continue
        inner: list[tuple[bool, bool]] = []
        divided = False
        if word == ")":
            if len(groups) == 1:
                return False
            inner, divided = groups.pop(), splits.pop()
        times = _TIMES.match(pattern, at)
        quantifier = times[1] if times else ""
        at = times.end() if times else at
        endless = quantifier in ("*", "+") or quantifier.endswith(",}")
        if word == ")" and endless and not divided and _is_ambiguous(inner):
            return True
        if word not in ("^", "$"):
            groups[-1].append((quantifier in ("*", "?") or quantifier.startswith(("{0,", "{,")), endless))
    return False


def _is_ambiguous(parts: list[tuple[bool, bool]]) -> bool:
    needed = [endless for empty, endless in parts if not empty]
    return needed == [True] or (not needed and any(endless for _, endless in parts))
