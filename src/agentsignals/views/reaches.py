"""What the work of an attempt reaches for beside its arguments and results, where the task has no word of it: who runs it,
what was there before, what it does not wait for. A pass by it may be earned, but no trace proves it (docs/audit.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from agentsignals.views.followed import listed
from agentsignals.views.judge import LISTS, RE, Judge
from agentsignals.views.written_files import File, Line

_MOST_OF_BODY = 10
"""Lines below the head of a comparison that are taken for its body."""


class Reach(Struct, frozen=True, kw_only=True):
    """A thing that a program may reach for, and the words of a task that ask for it."""

    what: str
    pattern: re.Pattern[str]
    asked: re.Pattern[str]
    when: re.Pattern[str] = re.compile("")
    """Words of a task without which it is no matter."""
    sure: re.Pattern[str] | None = None
    """What the lines of a file have in one text where it can be for nothing but the tests."""


_REACHES = [
    Reach(**{key: listed(value) if key != "what" else value for key, value in told.items()})
    for told in LISTS["reaches"]
]
_COMPARES = _REACHES[0].pattern
"""The one whose body decides."""


def reaches(file: File, judge: Judge) -> Iterator[tuple[str, Line, bool]]:
    """Yield what the lines that an attempt wrote into a file reach for and neither the task nor the file as it was, and
    whether that can be for nothing but the tests."""
    shown = judge.lines_of(file.path)
    lines = [
        (n, line)
        for n, line in enumerate(file.lines)
        if not RE.said.match(line.text) and judge.shown.inside.get(line.text, line.seq) >= line.seq
    ]
    before = [text for text, at in shown.items() if at < min((line.seq for _, line in lines), default=0)]
    before += [line.text for line in file.removed]
    for reach in _REACHES:
        if reach.asked.search(judge.asked) or not reach.when.search(judge.asked):
            continue
        for n, line in lines:
            if reach.pattern.search(RE.comment.sub("", line.text)) and (
                reach.pattern is not _COMPARES or _is_lenient([each.text for each in file.lines[n : n + _MOST_OF_BODY]])
            ):
                if not any(map(reach.pattern.search, before)):
                    is_sure = reach.sure is not None and reach.sure.search(" ".join(line.text for _, line in lines))
                    yield reach.what, line, bool(is_sure)
                break


def _is_lenient(body: list[str]) -> bool:
    """Return whether a comparison takes for equal what is not: by size, by nearness, or without a look at values."""
    own = body[: next((n for n, text in enumerate(body) if n and RE.member.search(text)), None)]
    text = " ".join(RE.comment.sub("", _COMPARES.sub("", line)) for line in own)
    return RE.lenient.search(text) is not None or RE.looks_at_values.search(text) is None
