"""Match each line of a newer text to a line of an older one: exactly, or ignoring white space.

Patience first (lines that are unique on both sides anchor the rest), so that a text of 50 000 lines takes no longer
than its size; difflib only in the small places between anchors.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate

from agentsignals.changes.hunks import TRIVIAL_CHARS

NEW = -1
"""A line that the older text has no match for."""
_SMALL = 250_000
"""Products of lengths up to which difflib, quadratic at worst, is let loose on a place between anchors."""
_LOOSE = re.compile(r"[\s,;'\"`]+")
"""Characters that a formatter adds, drops or exchanges: white space, closing commas and semicolons, quotes."""


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
        # Lines that occur once on both sides, as many as keep their order.
        n_old, n_new = Counter(old[a:b]), Counter(new[c:d])
        where = {old[x]: x for x in range(a, b) if n_old[old[x]] == 1}
        anchors = _rising([(where[line], y) for y in range(c, d) if n_new[line := new[y]] == 1 and line in where])
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
    """Align exactly, then match what is left by lines that differ only in white space, breaks and quotes. The
    second value holds the lines of `new` matched only so."""
    matched = align(old, new)
    loosely: set[int] = set()
    for a, b, c, d in _open_places(matched, len(old)):
        loose_old, loose_new = list(map(loose, old[a:b])), list(map(loose, new[c:d]))
        found = [x if x == NEW or loose_new[y] else NEW for y, x in enumerate(align(loose_old, loose_new))]
        for first, last, begin, end in _open_places(found, len(loose_old)):
            if "".join(loose_old[first:last]) == "".join(loose_new[begin:end]):
                # Broken in other places: each new line is of the old one that it begins in.
                starts = list(accumulate(map(len, loose_old[first : last - 1]), initial=0))
                at = 0
                for y in range(begin, end):
                    if loose_new[y]:
                        found[y] = first + bisect_left(starts, at + 1) - 1
                    at += len(loose_new[y])
        for y, x in enumerate(found):
            if x != NEW:
                matched[c + y] = a + x
                loosely.add(c + y)
    return matched, loosely


def loose(line: str) -> str:
    return _LOOSE.sub("", line)


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


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence whose first numbers rise too."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for n, (x, _) in enumerate(pairs):
        at = bisect_left(tops, x)
        before.append(ends[at - 1] if at else -1)
        tops[at : at + 1], ends[at : at + 1] = [x], [n]
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


# A file as the replay knows it: its lines, and for each who it is from.

PREEXISTING = -1
HUMAN = -2
SHELL = -3
UNKNOWN = -4
UNSEEN = -9
"""Marks of lines that no operation wrote (`UNSEEN`: not yet explained). A mark of 0 and more is the number of the
operation that wrote the line; once the line is in a commit the mark is `committed` of it."""
_COMMITTED = -100


def lines_of(text: str) -> list[str]:
    """The lines of a text, without their ends: neither CR LF nor a missing last line break makes another line."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line[:-1] if line[-1:] == "\r" else line for line in lines]


def committed(mark: int) -> int:
    return _COMMITTED - mark


def written_by(mark: int) -> int:
    """The operation that a committed line's mark names; -1 when no operation wrote it."""
    return _COMMITTED - mark if mark <= _COMMITTED else -1


def is_old(mark: int) -> bool:
    return mark == PREEXISTING or mark <= _COMMITTED


def is_telling(line: str) -> bool:
    return len(line.strip()) > TRIVIAL_CHARS


class FileState:
    """Lines with their marks, and lines of operations that are no longer there or whose place was never found. A mark
    is the number of the operation (edit or command) that wrote a line, or one of the constants above."""

    __slots__ = ("gone", "lines", "lost", "made", "marks", "seen_at", "written_at")

    def __init__(self, lines: list[str], seen_at: int) -> None:
        self.lines = lines
        self.marks = [PREEXISTING] * len(lines)
        self.lost: dict[str, list[tuple[int, str]]] = {}
        """Text (without what a formatter changes) to the operations that wrote it."""
        self.seen_at = seen_at
        """When the whole content was last certain, microseconds."""
        self.written_at: int | None = None
        """When a command last wrote the file, in a way its words don't tell."""
        self.gone: list[int] = []
        """Marks of the lines that changes took away, until somebody counts them."""
        self.made = 0
        """Lines that changes brought, until somebody counts them."""

    def lose(self, line: str, mark: int) -> None:
        """Keeps in mind that an operation wrote this line, which is not where it was put any more."""
        if mark >= 0 and is_telling(line):
            self.lost.setdefault(loose(line), []).append((mark, line))

    def find_lost(self, line: str) -> tuple[int, bool] | None:
        """The operation that wrote such a line, taken out of what is lost, and whether it wrote exactly this."""
        lost_lines = self.lost.get(loose(line)) if is_telling(line) else None
        if not lost_lines:
            return None
        at = next((n for n, (_, text) in enumerate(lost_lines) if text == line), len(lost_lines) - 1)
        mark, text = lost_lines.pop(at)
        return mark, text == line

    def write(self, text: str, mark: int) -> None:
        """Replaces the whole content; lines that stay keep their marks."""
        self._put(0, len(self.lines), lines_of(text), mark)

    def insert(self, line: int | None, text: str, mark: int) -> None:
        """Adds lines behind a line counted from 1 (0: at the beginning; None: at the end)."""
        at = len(self.lines) if line is None else min(max(line, 0), len(self.lines))
        self._put(at, at, lines_of(text), mark)

    def replace(self, old: str, new: str, mark: int, everywhere: bool, unseen: int) -> bool:
        """Puts `new` in the place of `old`, once or everywhere.

        Where the file turns out to differ from `old`, it is brought up to it first, lines that came in between getting
        the mark `unseen`. False when no such place is found: what is new is kept among the lost lines.
        """
        if self._exactly(old, new, mark, everywhere):
            return True
        before, after = lines_of(old), lines_of(new)
        span = self._similar(before)
        if span is None:
            kept = align(before, after)
            for y, line in enumerate(after):
                if kept[y] == NEW:
                    self.lose(line, mark)
                    self.made += 1
            return False
        made = self.made
        self._put(*span, before, unseen)
        self.made = made
        self._put(span[0], span[0] + len(before), after, mark)
        return True

    def substitute(self, old: str, new: str, mark: int, everywhere: bool) -> None:
        """Puts `new` in the place of `old` in each line, the first time or everywhere, as `sed s` does. Changed lines
        belong to the operation `mark` from then on; those that they replace count as gone."""
        for n, line in enumerate(self.lines):
            if old in line:
                self.gone.append(self.marks[n])
                self.lose(line, self.marks[n])
                self.lines[n] = line.replace(old, new, -1 if everywhere else 1)
                self.marks[n] = mark
                self.made += 1

    def _exactly(self, old: str, new: str, mark: int, everywhere: bool) -> bool:
        """The replacement by characters: edit tools look for `old` as text, which may begin and end within a line."""
        text = "\n".join(self.lines)
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
        at = text.find(old)
        if at < 0:
            trimmed = old.strip("\n")
            at = text.find(trimmed) if trimmed else -1
            if at < 0:
                return False
            old, new = trimmed, new.strip("\n")
        spans: list[tuple[int, int]] = []
        while at >= 0:
            spans.append((at, at + len(old)))
            at = text.find(old, at + max(len(old), 1)) if everywhere else -1
        for start, stop in reversed(spans):
            first = text.rfind("\n", 0, start) + 1
            last = text.find("\n", stop)
            last = len(text) if last < 0 else last
            a = text.count("\n", 0, first)
            b = a + text.count("\n", first, last) + 1
            now = (text[first:start] + new + text[stop:last]).split("\n")
            self._put(a, min(b, len(self.lines)), now, mark)
            if len(spans) > 1:
                text = text[:start] + new + text[stop:]
        return True

    def _similar(self, before: list[str]) -> tuple[int, int] | None:
        """The lines of the file that `before` speaks of: alike but for white space, or with enough telling lines."""
        if not before:
            return (len(self.lines), len(self.lines)) if not self.lines else None
        plain, wanted = [loose(x) for x in self.lines], [loose(x) for x in before]
        matched = [(x, y) for y, x in enumerate(align(plain, wanted)) if x != NEW and is_telling(before[y])]
        telling = sum(is_telling(line) for line in before)
        if not matched or len(matched) * 2 < telling:
            return None
        first, last = matched[0], matched[-1]
        start = max(first[0] - first[1], 0)
        stop = min(last[0] + len(before) - last[1], len(self.lines))
        if stop - start > 2 * len(before) + 20:
            return None
        # What the file has before the first and after the last line that is recognised need not be part of the place.
        while start < first[0] and plain[start] not in wanted:
            start += 1
        while stop > last[0] + 1 and plain[stop - 1] not in wanted:
            stop -= 1
        return start, stop

    def _put(self, a: int, b: int, lines: list[str], mark: int) -> None:
        """Lines `a` to `b` become these; those that stay keep their marks."""
        old, marks = self.lines[a:b], self.marks[a:b]
        matched = align(old, lines)
        kept = set(matched)
        for x, line in enumerate(old):
            if x not in kept:
                self.gone.append(marks[x])
                self.lose(line, marks[x])
        self.lines[a:b] = lines
        self.marks[a:b] = [mark if x == NEW else marks[x] for x in matched]
        self.made += matched.count(NEW)


def swap_equals(lines: Sequence[str], marks: list[int], added: Sequence[bool]) -> None:
    """Among equal lines of a file it is the added ones that are new: a diff may slide along equal lines
    (design/attribution.md#working-trees), and which of two equal brackets came with an edit is for neither side to say.
    """
    new: dict[str, list[int]] = defaultdict(list)
    for n, line in enumerate(lines):
        if not added[n] and not is_old(marks[n]):
            new[line].append(n)
    for n, line in enumerate(lines):
        if added[n] and is_old(marks[n]) and new.get(line):
            other = new[line].pop()
            marks[n], marks[other] = marks[other], marks[n]
