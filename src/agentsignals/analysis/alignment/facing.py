"""Two sequences of steps beside each other: as many of the same as can face each other in order, then of the alike.

Longest common subsequences, by bit vectors: a row of Hyyrö's (2004) recurrence is one integer, so two runs of 5,000
steps take a twentieth of a second (design/alignment.md#cost).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Literal

from msgspec import Struct

from agentsignals.analysis.alignment.steps import Step

MOST_STEPS = 10_000
"""Steps of a run that are aligned, its first: rows of 20,000 bits each would take 25 MB."""
How = Literal["same", "alike", "other", "left", "right"]


class Facing(Struct, frozen=True):
    """A row: what stands beside what."""

    left: Step | None
    right: Step | None
    how: How
    """`same`; `alike`: one kind of thing to the same file; `other`: each goes its way; `left`, `right`: the other has
    nothing here."""

    @property
    def is_call(self) -> bool:
        """Whether either is a call: what is prompted is others' doing."""
        return any(step is not None and step.kind != "prompt" for step in (self.left, self.right))


def facing(left: Sequence[Step], right: Sequence[Step]) -> list[Facing]:
    """The steps of both, in order, each once. The other way round it is the same, mirrored."""
    if [step.same for step in left] <= [step.same for step in right]:
        return _faced(left, right, _LEVELS)
    return [Facing(row.right, row.left, _MIRRORED.get(row.how, row.how)) for row in _faced(right, left, _LEVELS)]


_MIRRORED: dict[How, How] = {"left": "right", "right": "left"}


def _each(_: Step) -> bool:
    return True


_Level = tuple[How, Callable[[Step], Hashable], Callable[[Step], bool]]
_LEVELS: tuple[_Level, ...] = (
    ("same", attrgetter("same"), _each),
    ("alike", attrgetter("named"), attrgetter("is_change")),
    ("alike", attrgetter("named"), _each),
    ("alike", attrgetter("alike"), _each),
)
"""In which order steps are looked for that face each other: what meets by an earlier one stands fast. Changes are
landmarks; how often something is read between them, or tried, differs from run to run."""


def _faced(left: Sequence[Step], right: Sequence[Step], levels: Sequence[_Level]) -> list[Facing]:
    if not levels or not left or not right:
        return _apart(left, right)
    (how, key, counts), rest = levels[0], levels[1:]
    here, there = ([k for k, step in enumerate(side) if counts(step)] for side in (left, right))
    rows: list[Facing] = []
    i = j = 0
    for n, m in _common([key(left[k]) for k in here], [key(right[k]) for k in there]):
        a, b = here[n], there[m]
        rows += _faced(left[i:a], right[j:b], rest)
        rows.append(Facing(left[a], right[b], how))
        i, j = a + 1, b + 1
    return rows + _faced(left[i:], right[j:], rest)


def _apart(left: Sequence[Step], right: Sequence[Step]) -> list[Facing]:
    """What each did between two rows in which they meet."""
    both = min(len(left), len(right))
    rows = [Facing(a, b, "other") for a, b in zip(left[:both], right[:both], strict=True)]
    rows += [Facing(step, None, "left") for step in left[both:]]
    return rows + [Facing(None, step, "right") for step in right[both:]]


def _common(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The places of a longest common subsequence; what both begin with alike, and end with, is in it."""
    n, m = len(left), len(right)
    start = end = 0
    while start < min(n, m) and left[start] == right[start]:
        start += 1
    while end < min(n, m) - start and left[n - 1 - end] == right[m - 1 - end]:
        end += 1
    inner = _by_bits(left[start : n - end], right[start : m - end])
    met = [(k, k) for k in range(start)] + [(start + a, start + b) for a, b in inner]
    return met + [(n - k, m - k) for k in range(end, 0, -1)]


def _by_bits(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Where several are as long, what can meet early does."""
    places: defaultdict[Hashable, int] = defaultdict(int)
    for k, item in enumerate(right):
        places[item] |= 1 << k
    whole = row = (1 << len(right)) - 1
    rows = []
    for item in left:
        kept = row & places.get(item, 0)
        row = ((row + kept) | (row - kept)) & whole
        rows.append(row)
    met: list[tuple[int, int]] = []
    i, j = len(left), len(right)
    while i and j:
        if rows[i - 1] >> (j - 1) & 1:
            j -= 1
        else:
            i -= 1
            if not i or rows[i - 1] >> (j - 1) & 1:
                j -= 1
                met.append((i, j))
    return met[::-1]
