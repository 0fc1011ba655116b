"""How a session lies among the others of the same place: what came before it, and what followed.

Pure and independent of the order of its input; O(n log n). Subagents' sessions are nobody's coming back.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from struct import pack, unpack
from typing import NamedTuple
from zlib import crc32

from msgspec import Struct, field

_HOME = re.compile(r"(?:[A-Za-z]:)?[\\/](?:Users|home)[\\/]([^\\/]+)")
_WORKTREE = re.compile(r"(?:[\\/](?:\.claude[\\/]worktrees|\.worktrees)|(?<=[^\\/])(?:__|\.)worktrees)[\\/].+$")
"""Below a folder, or beside it under its name (`shop__worktrees/fix`)."""
FEW_WORDS = 3
"""Prompts of fewer words ("commit this") are alike without being about the same thing."""
SHORT_LINE = 8
"""A line of no more characters (`return`, `},`) tells no place (design/signals.md#regions)."""
MOST_PRINTS = 2_000
"""Of one file in one session."""
AHEAD_S = 86_400
"""How far after a session's end what followed is looked for: what comes later changes no history."""
_AHEAD = AHEAD_S * 1_000_000
MOST_SHARERS = 64
"""For each line the latest sessions that changed it; a file that thousands change would cost the square of that."""


class Outline(Struct, kw_only=True):
    """What of a session other sessions need to know. Times are microseconds since 1970 UTC."""

    session_id: str
    place: str | None
    """The repository, else the folder (see `place_of`); None when neither is known."""
    started_at: int | None
    ended_at: int | None
    files: list[str] = field(default_factory=list)
    parent_session_id: str | None = None
    words: frozenset[str] | None = None
    """Of the head of the first prompt (`lexicon.words`)."""
    user: str | None = None
    """See `user_of`. Unknown users are taken for one."""
    n_turns: int | None = None
    """Human turns; None when not counted, which passes for some."""
    lines: dict[str, str] = field(default_factory=dict)
    """For each file the `prints` of lines that were changed in it."""


class History(Struct, kw_only=True):
    """One session among the others. `next` is the first of the same place and user to start after this one ended."""

    place: str | None
    known_until: int
    """The last moment any session speaks of, at most a day after the end of this one: how far the store can tell what
    followed."""
    known_since: int
    n_prior: int = 0
    """Sessions of the same place, with a human turn, that started earlier."""
    n_prior_same_user: int = 0
    next_id: str | None = None
    next_started_at: int | None = None
    next_shares_file: bool | None = None
    """Whether the next session touches a file that this one touched; None without a next."""
    next_similarity: float | None = None
    """Likeness 0..1 of the two first prompts; None without a next, or when a prompt is unknown or too short."""
    same_lines: dict[str, list[str]] = field(default_factory=dict)
    """Earlier sessions of the same place, with a human turn, that changed lines this one changed too, and in which
    files; in order of time."""


class _Row(NamedTuple):
    """A session with a place and a time. Rows ascend by time; ties are broken by id, so that the order of the input
    never shows."""

    start: int
    session_id: str
    end: int
    outline: Outline
    history: History


@lru_cache(maxsize=256)
def place_of(repo: str | None, cwd: str | None) -> str | None:
    """The repository, else the working folder; the worktrees of a folder are that folder."""
    if repo:
        return repo.lower()
    return (_WORKTREE.sub("", cwd.rstrip("\\/")) or cwd) if cwd else None


def user_of(cwd: str | None) -> str | None:
    """Whose home a working folder lies in; None when the path doesn't say."""
    match = _HOME.match(cwd) if cwd else None
    return match.group(1) if match else None


def span_of(times: Iterable[int | None]) -> tuple[int, int]:
    """The first and the last moment that sessions speak of."""
    spoken_of = [t for t in times if t is not None]
    return (min(spoken_of), max(spoken_of)) if spoken_of else (0, 0)


def histories(outlines: Iterable[Outline], span: tuple[int, int] | None = None) -> dict[str, History]:
    """The history of every session, by its id. `span`: what all sessions speak of, where these are not all."""
    known_outlines = list(outlines)
    since, until = span or span_of(t for o in known_outlines for t in (o.started_at, o.ended_at))
    by_session: dict[str, History] = {}
    rows: list[_Row] = []
    for o in known_outlines:
        end = _end(o.started_at, o.ended_at)
        history = History(place=o.place, known_until=known_until(until, o.started_at, o.ended_at), known_since=since)
        by_session[o.session_id] = history
        if o.place is not None and o.started_at is not None:
            rows.append(_Row(o.started_at, o.session_id, max(end, o.started_at), o, history))
    rows.sort()
    for group in _grouped(rows, lambda o: o.place):
        _share_lines([r for r in group if r.outline.lines])
        before = _starts_before(group)
        for row, n in zip(group, before, strict=True):
            row.history.n_prior = n
        several = len({r.outline.user for r in group}) > 1
        for of_user in _grouped(group, lambda o: o.user) if several else (group,):
            _note_user(of_user, _starts_before(of_user) if several else before)
    return by_session


def _starts_before(group: list[_Row]) -> list[int]:
    """For each session, how many of the group with a human turn started earlier."""
    starts = [r.start for r in group if _is_human(r.outline)]
    return [bisect_left(starts, row.start) for row in group]


def _note_user(group: list[_Row], before: list[int]) -> None:
    """What came before and after in the sessions of one place and user."""
    humans = [r for r in group if _is_human(r.outline)]
    starts = [r.start for r in humans]
    for row, n in zip(group, before, strict=True):
        row.history.n_prior_same_user = n
        after = bisect_right(starts, row.end)
        if after < len(humans):
            following = humans[after]
            row.history.next_id, row.history.next_started_at = following.session_id, following.start
            compare(row.history, row.outline, following.outline)


def known_until(until: int, started_at: int | None, ended_at: int | None) -> int:
    """How far the store can tell what followed a session, where it speaks of moments `until` then."""
    return min(until, _end(started_at, ended_at) + _AHEAD)


def _end(started_at: int | None, ended_at: int | None) -> int:
    """When a session ended, as far as anything tells."""
    return ended_at if ended_at is not None else started_at or 0


def _grouped(rows: list[_Row], by: Callable[[Outline], object]) -> Iterable[list[_Row]]:
    groups: dict[object, list[_Row]] = {}
    for row in rows:
        groups.setdefault(by(row.outline), []).append(row)
    return groups.values()


def _is_human(outline: Outline) -> bool:
    return outline.parent_session_id is None and outline.n_turns != 0


def _share_lines(group: list[_Row]) -> None:
    """Who changed a line before, in the files that several sessions changed. A line that several files have is none."""
    sessions = Counter([path for row in group for path in row.outline.lines])
    shared = [
        (row, path, _split(packed))
        for row in group
        for path, packed in sorted(row.outline.lines.items())
        if sessions[path] > 1
    ]
    files: dict[int, str | None] = {}
    for _, path, lines in shared:
        for line_print in lines:
            if files.setdefault(line_print, path) != path:
                files[line_print] = None
    changed: dict[int, deque[_Row]] = {}
    for row, path, lines in shared:
        before: dict[str, _Row] = {}
        for line_print in lines:
            if files[line_print] is None:
                continue
            rows = changed.setdefault(line_print, deque(maxlen=MOST_SHARERS))
            before.update([(r.session_id, r) for r in rows if r.start < row.start])
            if _is_human(row.outline):
                rows.append(row)
        for other in sorted(before.values()):
            row.history.same_lines.setdefault(other.session_id, []).append(path)


def prints(lines: Iterable[str]) -> str:
    """Prints of the lines that are long enough to tell a place, of at most 2 000: eight hexadecimal digits each."""
    long = "\n".join([line for line in lines if len(line) > SHORT_LINE])
    checksums = sorted(set(map(crc32, long.encode("utf-8", "replace").split(b"\n")))) if long else []
    # Those of the smallest numbers: of two files alike the same are kept.
    return pack(f">{min(len(checksums), MOST_PRINTS)}I", *checksums[:MOST_PRINTS]).hex()


def _split(packed: str) -> tuple[int, ...]:
    return unpack(f">{len(packed) // 8}I", bytes.fromhex(packed))


def compare(history: History, this: Outline, following: Outline) -> None:
    """Notes how like a session the next is."""
    history.next_shares_file = not set(this.files).isdisjoint(following.files)
    history.next_similarity = similarity(this.words, following.words)


def similarity(first: frozenset[str] | None, other: frozenset[str] | None) -> float | None:
    """F1 of the word sets of two prompts' heads, 0..1; None when either is missing or has hardly a word."""
    if first is None or other is None or min(len(first), len(other)) < FEW_WORDS:
        return None
    return 2 * len(first & other) / (len(first) + len(other))
