"""What a rule is, and the text it looks at."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from msgspec import Struct

from agentsignals.scanning.rules.comments import without_comments
from agentsignals.scanning.scanner import Level

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


def matching(  # noqa: PLR0913  (conditions of one pattern, by keyword)
    pattern: str,
    *,
    needs: tuple[str, ...] = (),
    unless: str | None = None,
    path: str | None = None,
    flags: int = 0,
    in_comments: bool = False,
) -> Callable[[Text], Iterator[Span]]:
    """Places that a pattern matches. `needs`: words one of which must be in the file, which is quick to see;
    `unless`: a pattern that, found in the match or around it in its lines, speaks against it; `path`: which files.

    Repetitions in patterns are bounded, so that a file takes time in proportion to its length.
    """
    wanted = re.compile(pattern, flags)
    against = re.compile(unless, flags) if unless else None
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
