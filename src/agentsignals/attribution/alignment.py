"""Which line of an older text each line of a newer one is: exactly, or but for its white space.

Patience first (lines that are unique on both sides anchor the rest), so that a text of 50 000 lines takes no longer
than its size; difflib only in the small places between anchors.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher

NEW = -1
"""A line that the older text has no match for."""
_SMALL = 250_000
"""Products of lengths up to which difflib, quadratic at worst, is let loose on a place between anchors."""
_LOOSE = re.compile(r"[\s,;'\"`]+")
"""What a formatter adds, drops or exchanges: white space, closing commas and semicolons, the kind of quotes."""


def align(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """For each line of `new` the index of its line in `old`, rising, or NEW."""
    matched = [NEW] * len(new)
    places = [(0, len(old), 0, len(new))]
    while places:
        a, b, c, d = places.pop()
        while a < b and c < d and old[a] == new[c]:
            matched[c] = a
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
            matched[d] = b
        if a == b or c == d:
            continue
        anchors = _anchors(old, new, (a, b, c, d))
        if not anchors:
            _between(old, new, (a, b, c, d), matched)
            continue
        for x, y in anchors:
            matched[y] = x
            places.append((a, x, c, y))
            a, c = x + 1, y + 1
        places.append((a, b, c, d))
    return matched


def align_loosely(old: Sequence[str], new: Sequence[str]) -> tuple[list[int], set[int]]:
    """The same, and where that leaves places open, lines that differ by white space or by how a formatter breaks and
    quotes them. The second value: the lines of `new` matched only so.
    """
    matched = align(old, new)
    loosely: set[int] = set()
    for a, b, c, d in _open_places(matched, len(old)):
        loose_old = [_LOOSE.sub("", line) for line in old[a:b]]
        loose_new = [_LOOSE.sub("", line) for line in new[c:d]]
        for y, x in enumerate(_loose(loose_old, loose_new)):
            if x != NEW:
                matched[c + y] = a + x
                loosely.add(c + y)
    return matched, loosely


def loose(line: str) -> str:
    """A line without what a formatter may change."""
    return _LOOSE.sub("", line)


def _loose(old: list[str], new: list[str]) -> list[int]:
    matched = [x if x == NEW or new[y] else NEW for y, x in enumerate(align(old, new))]
    for a, b, c, d in _open_places(matched, len(old)):
        if "".join(old[a:b]) == "".join(new[c:d]):
            for y, x in _reflowed(old[a:b], new[c:d]):
                matched[c + y] = a + x
    return matched


def _reflowed(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """The lines of two texts of equal characters: each new line is of the old one that it begins in."""
    starts, at = [], 0
    for line in old:
        starts.append(at)
        at += len(line)
    matches, at = [], 0
    for y, line in enumerate(new):
        if line:
            matches.append((y, _last_at(starts, at)))
        at += len(line)
    return matches


def _last_at(starts: list[int], at: int) -> int:
    x = bisect_left(starts, at + 1) - 1
    return max(x, 0)


def _open_places(matched: list[int], n_old: int) -> list[tuple[int, int, int, int]]:
    """(old from, old to, new from, new to) of each run of unmatched new lines that faces unmatched old ones."""
    gaps = []
    last, start = -1, -1
    for y, x in enumerate([*matched, n_old]):
        if x == NEW:
            start = y if start < 0 else start
            continue
        if start >= 0 and x > last + 1:
            gaps.append((last + 1, x, start, y))
        last, start = x, -1
    return gaps


def _anchors(old: Sequence[str], new: Sequence[str], place: tuple[int, int, int, int]) -> list[tuple[int, int]]:
    """Lines that occur once on both sides, as many as keep their order."""
    a, b, c, d = place
    n_old, n_new = Counter(old[a:b]), Counter(new[c:d])
    where = {old[x]: x for x in range(a, b) if n_old[old[x]] == 1}
    pairs = [(where[line], y) for y in range(c, d) if n_new[line := new[y]] == 1 and line in where]
    return _rising(pairs)


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence whose first numbers rise too."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for n, (x, _) in enumerate(pairs):
        at = bisect_left(tops, x)
        before.append(ends[at - 1] if at else -1)
        if at == len(tops):
            tops.append(x)
            ends.append(n)
        else:
            tops[at], ends[at] = x, n
    chain = []
    n = ends[-1] if ends else -1
    while n >= 0:
        chain.append(pairs[n])
        n = before[n]
    return chain[::-1]


def _between(old: Sequence[str], new: Sequence[str], place: tuple[int, int, int, int], matched: list[int]) -> None:
    """A place without anchors: difflib when it is small, else each line's next match further down."""
    a, b, c, d = place
    if (b - a) * (d - c) <= _SMALL:
        for x, y, n in SequenceMatcher(None, old[a:b], new[c:d], autojunk=False).get_matching_blocks():
            for k in range(n):
                matched[c + y + k] = a + x + k
        return
    where: dict[str, list[int]] = defaultdict(list)
    for x in range(a, b):
        where[old[x]].append(x)
    last = a
    for y in range(c, d):
        places = where.get(new[y], ())
        at = bisect_left(places, last)
        if at < len(places):
            matched[y] = places[at]
            last = places[at] + 1
