"""Regions of a file: ranges of lines, which move when lines above them come and go.

They lie in blocks, and a whole block is moved by one number: a change costs what its own block holds and a step for
each other block, not a step for each range that was ever made (a session edits one file ten thousand times).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from agentsignals.model import Edit

BLOCK = 256
"""A block of twice so many ranges is split. Near the square root of all ranges the cost is least."""


class Range(Struct, eq=False):
    start: int
    end: int


R = TypeVar("R", bound=Range)


class _Block(Struct, Generic[R], eq=False):
    """Ranges near each other. Their lines, and the bounds, are those before the block moved by `moved`."""

    ranges: list[R]
    moved: int = 0
    first: int = 0
    last: int = 0
    """The smallest and the largest start."""
    end: int = 0

    def bound(self) -> None:
        self.first = min([r.start for r in self.ranges])
        self.last = max([r.start for r in self.ranges])
        self.end = max([r.end for r in self.ranges])


class Ranges(Struct, Generic[R], eq=False):
    """The ranges of one file."""

    _blocks: list[_Block[R]] = field(default_factory=list)

    def add(self, line_range: R) -> None:
        """Add a range, with its lines in the file as it is now."""
        blocks = self._blocks
        if not blocks:
            blocks.append(_Block([line_range], 0, line_range.start, line_range.start, line_range.end))
            return
        at = 0
        for n, block in enumerate(blocks):
            if block.first + block.moved <= line_range.start:
                at = n
        block = blocks[at]
        line_range.start -= block.moved
        line_range.end -= block.moved
        block.ranges.append(line_range)
        block.first, block.last = min(block.first, line_range.start), max(block.last, line_range.start)
        block.end = max(block.end, line_range.end)
        if len(block.ranges) >= 2 * BLOCK:
            block.ranges.sort(key=lambda r: r.start)
            upper = _Block(block.ranges[BLOCK:], block.moved)
            del block.ranges[BLOCK:]
            block.bound()
            upper.bound()
            blocks.insert(at + 1, upper)

    def take(self, first: int, last: int) -> list[R]:
        """Remove the ranges that hold a line from `first` to `last`, and return them with their lines as they are
        now."""
        taken: list[R] = []
        emptied = False
        for block in self._blocks:
            low, high = first - block.moved, last - block.moved
            if block.end < low or block.first > high:
                continue
            here = [r for r in block.ranges if r.end >= low and r.start <= high]
            if not here:
                continue
            if len(here) == len(block.ranges):
                block.ranges = []
                emptied = True
            else:
                block.ranges = [r for r in block.ranges if r.end < low or r.start > high]
                block.bound()
            for line_range in here:
                line_range.start += block.moved
                line_range.end += block.moved
            taken += here
        if emptied:
            self._blocks = [b for b in self._blocks if b.ranges]
        return taken

    def move(self, first: int, by: int) -> None:
        """Move the ranges that begin at line `first` or below it."""
        for block in self._blocks:
            low = first - block.moved
            if block.first >= low:
                block.moved += by
            elif block.last >= low:
                for line_range in block.ranges:
                    if line_range.start >= low:
                        line_range.start += by
                        line_range.end += by
                block.bound()

    def __iter__(self) -> Iterator[R]:
        """Yield all ranges, with their lines as they are now. Nothing may be taken or added afterwards."""
        for block in self._blocks:
            for line_range in block.ranges:
                line_range.start += block.moved
                line_range.end += block.moved
                yield line_range
            block.moved = 0
            block.bound()


# -- regions: edited line ranges, followed through later edits (design/signals.md#regions)
# Line numbers at different times are not comparable. A region is, because every edit above moves it.

GAP_LINES = 3
"""A hunk at most this far from a region edits that region again."""

WHOLE_TREE = "."
"""The path of an edit that resets all files at once (`git restore .`)."""


_Item = TypeVar("_Item")
_GONE = frozenset(("delete", "rename"))
_CALL = attrgetter("seq", "path")
_PLACE = attrgetter("seq", "path", "hunk")
_IN_FILE = attrgetter("seq", "hunk")


class Region(Struct, eq=False):
    """A line range and the edits that made it, in time order. `start` and `end` are as the file is at the end."""

    path: str
    start: int | None
    end: int | None
    edits: list[Edit] = field(default_factory=list)

    @property
    def n_calls(self) -> int:
        return len({e.seq for e in self.edits})


class _Followed(Range):
    """A region that is still followed."""

    edits: list[Edit]
    last_seq: int


def track(edits: Iterable[Edit]) -> list[Region]:
    """Return the regions of these edits (in order of time), by the time of their first edit and then by place."""
    live: dict[str, Ranges[_Followed]] = {}
    done: list[Region] = []
    for (_, path), group in groupby(sorted(edits, key=_CALL), key=_CALL):  # one call may change several files
        hunks = list(group)
        if path == WHOLE_TREE:
            for file, ranges in live.items():
                done += _regions(file, ranges)
            live.clear()
        if _is_anew(hunks):
            # What was followed so far is gone; a new file is not yet a place that somebody came back to.
            done += _regions(path, live.pop(path, ()))
            done += [Region(path, e.start_line, e.end_line, [e]) for e in hunks]
            continue
        here = live.get(path)
        if here is None:
            here = live[path] = Ranges()
        if len(hunks) > 1:
            # From the bottom up, so that the place of each hunk before the call still holds when its turn comes.
            hunks.sort(key=lambda edit: edit.old_start or 0, reverse=True)
        for edit in hunks:
            if edit.old_start is None or edit.start_line is None:
                done.append(Region(path, edit.start_line, edit.end_line, [edit]))
            else:
                _apply(edit, edit.old_start, here)
    for path, ranges in live.items():
        done += _regions(path, ranges)
    return _sorted(done, [_PLACE(r.edits[0]) for r in done])


def _regions(path: str, followed: Iterable[_Followed]) -> list[Region]:
    return [Region(path, region.start, region.end, sorted(region.edits, key=_IN_FILE)) for region in followed]


def records(regions: Iterable[Region]) -> Iterable[tuple[int, Edit]]:
    """Return (number of the region, edit) for every edit, in order of time."""
    pairs = [(n, edit) for n, region in enumerate(regions) for edit in region.edits]
    return _sorted(pairs, [_PLACE(edit) for _, edit in pairs])


def _sorted(items: list[_Item], keys: list[Any]) -> list[_Item]:
    """Sort items by keys that were made beforehand. A key function would take as long again."""
    return [items[n] for n in sorted(range(len(items)), key=keys.__getitem__)]


def _is_anew(hunks: list[Edit]) -> bool:
    for e in hunks:  # noqa: SIM110  (`any` takes twice as long)
        if e.whole_file or e.op in _GONE:
            return True
    return False


def _apply(edit: Edit, at: int, live: Ranges[_Followed]) -> None:
    """Apply a hunk: it joins the regions that it touches, and moves those below it."""
    n_old, n_new = extents(edit)
    shift = n_new - n_old
    below = at + n_old
    near = (below - 1 if n_old > 0 else at) + GAP_LINES
    last_new = at + n_new - 1 if n_new > 0 else at
    joined: list[_Followed] = []
    touched = live.take(at - GAP_LINES, max(near, below - 1))
    if shift:
        live.move(below, shift)
    for region in touched:
        if region.start <= near and region.last_seq < edit.seq:
            joined.append(region)
            continue
        if region.start >= below:
            region.start, region.end = region.start + shift, region.end + shift
        elif region.end >= below:
            region.end += shift  # an earlier hunk of this call edited a region that also spans this place
        live.add(region)
    if not joined:
        live.add(_Followed(at, last_new, [edit], edit.seq))
        return
    joined.sort(key=lambda r: -len(r.edits))
    kept = joined[0]
    kept.start = min([at, *[r.start for r in joined]])
    kept.end = max([last_new, *[r.end + (shift if r.end >= at else 0) for r in joined]])
    for region in joined[1:]:
        kept.edits += region.edits
    kept.edits.append(edit)
    kept.last_seq = edit.seq
    live.add(kept)


def extents(edit: Edit) -> tuple[int, int]:
    """Return the lines of a hunk before and after. Unchanged lines between two changes count in both."""
    added, removed = edit.added or 0, edit.removed or 0
    start, end = edit.start_line or 0, edit.end_line or 0
    # start_line = end_line stands for no line at all when the hunk only deletes.
    n_new = 0 if not added and start == end else end - start + 1
    return n_new - added + removed, n_new
