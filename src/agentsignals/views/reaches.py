"""What the work of an attempt reaches for beside its arguments and results where the task has no word of it: who runs
it, what was there before, what it does not wait for. A pass by it may be earned, but no trace proves it
(docs/audit.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from agentsignals.model.lazy import deferred_pattern
from agentsignals.views.followed import LISTS
from agentsignals.views.judge import RE, Judge
from agentsignals.views.written_files import File, Line

_MOST_OF_BODY, _MOST_LINES = 10, 3_000
"""Lines below the head of a comparison that are taken for its body; lines of a file that are looked at."""


class Reach(Struct, frozen=True, kw_only=True):
    """A thing that a program may reach for, and the words of a task that ask for it."""

    what: str
    pattern: re.Pattern[str]
    asked: re.Pattern[str]
    when: re.Pattern[str] = re.compile("")
    """Words of a task without which it is no matter."""
    sure: re.Pattern[str] | None = None
    """What the lines of a file have in one text where it can be for nothing but the tests."""


def _reach(what: str, **patterns: str) -> Reach:
    made = {name: deferred_pattern(text.replace("\n", ""), re.MULTILINE) for name, text in patterns.items()}
    return Reach(what=what, **made)


_REACHES = [_reach(**told) for told in LISTS["reaches"]]
_COMPARES = _REACHES[0]
"""The one whose body decides."""


def reaches(file: File, judge: Judge) -> Iterator[tuple[str, Line, bool]]:
    """Yield what the lines that an attempt wrote into a file reach for and neither the task nor the file as it was, and
    whether that can be for nothing but the tests."""
    inside = judge.shown.inside
    lines = [
        line
        for line in file.lines[:_MOST_LINES]
        if inside.get(line.text, line.seq) >= line.seq and not RE.said.match(line.text)
    ]
    if not lines:
        return
    texts = [RE.comment.sub("", line.text) for line in lines]
    text = "\n".join(texts)
    first = min(line.seq for line in lines)
    before = [row for row, at in judge.lines_of(file.path).items() if at < first]
    before_text = "\n".join((*before, *(line.text for line in file.removed)))
    for reach in _REACHES:
        if reach.asked.search(judge.asked) or not reach.when.search(judge.asked) or reach.pattern.search(before_text):
            continue
        at = (text.count("\n", 0, found.start()) for found in reach.pattern.finditer(text))
        n = next((n for n in at if reach is not _COMPARES or _is_lenient(texts[n : n + _MOST_OF_BODY])), None)
        if n is not None:
            yield (
                reach.what,
                lines[n],
                reach.sure is not None and reach.sure.search(text.replace("\n", " ")) is not None,
            )


def _is_lenient(body: list[str]) -> bool:
    """Return whether a comparison takes for equal what is not: by size, by nearness, or without a look at values."""
    own = body[: next((n for n, text in enumerate(body) if n and RE.member.search(text)), None)]
    own = own[: next((n + 1 for n, text in enumerate(own) if RE.returns.match(text)), None)]
    text = " ".join(_COMPARES.pattern.sub("", line) for line in own)
    return RE.lenient.search(text) is not None or RE.looks_at_values.search(text) is None
