"""Ranges of a file's lines, which move when lines above them come and go.

They lie in blocks, and a whole block is moved by one number: a change costs what its own block holds and a step for
each other block, not a step for each range that was ever made (a session edits one file ten thousand times).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from msgspec import Struct, field

BLOCK = 256
"""A block of twice so many ranges is cut in two: near the root of the most there are, which costs least."""


class Range(Struct, eq=False):
    """First and last line."""

    start: int
    end: int


R = TypeVar("R", bound=Range)


class _Block(Struct, Generic[R], eq=False):
    """Ranges near each other. Their lines, and the bounds, are as they were before the block moved by `moved`."""

    ranges: list[R]
    moved: int = 0
    first: int = 0
    last: int = 0
    """The smallest and the largest start."""
    end: int = 0
    """The largest end."""

    def bound(self) -> None:
        self.first = min([r.start for r in self.ranges])
        self.last = max([r.start for r in self.ranges])
        self.end = max([r.end for r in self.ranges])


class Ranges(Struct, Generic[R], eq=False):
    """The ranges of one file."""

    _blocks: list[_Block[R]] = field(default_factory=list)

    def add(self, line_range: R) -> None:
        """Takes in a range, its lines as the file is now."""
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
        """Removes the ranges that hold a line from `first` to `last`, and gives them with their lines as they are."""
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
        """Moves the ranges that begin at line `first` or below it."""
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
        """All ranges, with their lines as they are; nothing is taken or added afterwards."""
        for block in self._blocks:
            for line_range in block.ranges:
                line_range.start += block.moved
                line_range.end += block.moved
                yield line_range
            block.moved = 0
            block.bound()
