"""What two sessions did, side by side: steps of equal purpose face each other (Needleman and Wunsch 1970)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

MOST_CELLS = 1_000_000
"""Pairs of steps that are looked at, half a second of them: of longer stretches the beginnings are aligned."""
SAME, ALIKE = 3, 1
"""What it is worth that two steps do the same, or call the same tool on something else: three of these are worth
giving up one of those (this project's choice)."""
MOST_SHOWN = 1500
ENDS = 5
"""Rows that are shown of each end of a stretch in which both do the same."""
_BLANKS = re.compile(r"\s+")
_TAIL = 2


class Step(NamedTuple):
    """A prompt or a call of the main thread."""

    seq: int
    kind: str
    """`prompt`, or the class of the call."""
    tool: str
    about: str
    """The command, the path, or the words."""
    status: str = ""
    error: str = ""

    @property
    def deed(self) -> tuple[str, str]:
        """What two steps that do the same have in common. Paths count by their ends: attempts have folders of their
        own."""
        about = _BLANKS.sub(" ", self.about).strip()
        is_path = self.kind != "prompt" and "/" in about and " " not in about
        return self.kind, "/".join(about.split("/")[-_TAIL:]) if is_path else about


class Facing(NamedTuple):
    """A row of the two: what stands beside what."""

    left: Step | None
    right: Step | None
    how: str
    """`same`, `alike` (one kind of call on something else), `left` or `right` (the other has nothing here)."""

    @property
    def is_call(self) -> bool:
        return any(step is not None and step.kind != "prompt" for step in (self.left, self.right))


class Alignment(NamedTuple):
    """Two sequences of steps side by side."""

    rows: list[Facing]
    parts_at: int | None
    """The first row in which one calls what the other does not; None where there is none. Prompts are others' doing."""
    left_out: tuple[int, int]
    """Steps at the ends that are not aligned, for there are too many."""
    same: int


def aligned(left: Sequence[Step], right: Sequence[Step]) -> Alignment:
    """The best way to put two sequences side by side; what they begin with alike stands so whatever follows."""
    start = 0
    while start < min(len(left), len(right)) and _alike(left[start], right[start]):
        start += 1
    rest = left[start:], right[start:]
    most = _fitting(len(rest[0]), len(rest[1]))
    shown = rest[0][: most[0]], rest[1][: most[1]]
    rows = [Facing(a, b, "same") for a, b in zip(left[:start], right[:start], strict=True)]
    rows += _best(*shown)
    parts_at = next((n for n, row in enumerate(rows) if row.how != "same" and row.is_call), None)
    left_out = len(rest[0]) - most[0], len(rest[1]) - most[1]
    return Alignment(rows, parts_at, left_out, sum(row.how == "same" for row in rows))


def _alike(left: Step, right: Step) -> bool:
    """Whether two steps do the same, which is seen without a closer look where they say the same."""
    return (left.kind == right.kind and left.about == right.about) or left.deed == right.deed


def shown(rows: Sequence[Facing]) -> list[tuple[int, Facing | int]]:
    """The rows by number from 1, at most `MOST_SHOWN`: of a long stretch in which both do the same its ends, and
    between them how many are left out."""
    listed: list[tuple[int, Facing | int]] = []
    at = 0
    while at < len(rows) and len(listed) < MOST_SHOWN:
        end = at
        while end < len(rows) and rows[end].how == "same":
            end += 1
        if end - at > 2 * ENDS + 1:
            listed += [(n + 1, rows[n]) for n in range(at, at + ENDS)]
            listed.append((at + ENDS + 1, end - at - 2 * ENDS))
            listed += [(n + 1, rows[n]) for n in range(end - ENDS, end)]
            at = end
        else:
            listed.append((at + 1, rows[at]))
            at += 1
    return listed


def _fitting(n: int, m: int) -> tuple[int, int]:
    """How many steps of each are aligned."""
    if n * m <= MOST_CELLS:
        return n, m
    side = int(MOST_CELLS**0.5)
    return (n, MOST_CELLS // n) if n < side else (MOST_CELLS // m, m) if m < side else (side, side)


def _best(left: Sequence[Step], right: Sequence[Step]) -> list[Facing]:
    n, m = len(left), len(right)
    deeds = [step.deed for step in right]
    worth = [[0] * (m + 1) for _ in range(n + 1)]
    """Of the ends from here on: what the best way of facing them is worth."""
    for i in range(n - 1, -1, -1):
        here, below, deed = worth[i], worth[i + 1], left[i].deed
        for j in range(m - 1, -1, -1):
            other = deeds[j]
            facing = SAME if deed == other else ALIKE if deed[0] == other[0] else 0
            here[j] = max(below[j], here[j + 1], below[j + 1] + facing)
    rows: list[Facing] = []
    i = j = 0
    while i < n or j < m:
        if i < n and j < m:
            deed, other = left[i].deed, deeds[j]
            facing = SAME if deed == other else ALIKE if deed[0] == other[0] else 0
            if facing and worth[i][j] == worth[i + 1][j + 1] + facing:
                rows.append(Facing(left[i], right[j], "same" if facing == SAME else "alike"))
                i, j = i + 1, j + 1
                continue
        if i < n and (j == m or worth[i][j] == worth[i + 1][j]):
            rows.append(Facing(left[i], None, "left"))
            i += 1
        else:
            rows.append(Facing(None, right[j], "right"))
            j += 1
    return rows
