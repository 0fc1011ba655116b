"""Others who say whose lines a commit added, beside our own replay (design/attribution.md#witnesses).

To add one: a module with a `WITNESS`. A witness states; whether it is right is asked in `attribution.witnessed`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct, field

from agentsignals.changes.git import Commit, FileChange
from agentsignals.model.registry import Registry

Owner = Literal["agent", "person", "mixed", "unknown"]


class Statement(Struct, frozen=True, kw_only=True):
    """Whose a line is said to be. Empty: not said."""

    owner: Owner
    session_id: str = ""
    """The agent's own id of its session."""


class Range(NamedTuple):
    """Lines of a file as committed, counted from 1, both ends included."""

    first: int
    last: int
    statement: Statement

    @property
    def lines(self) -> int:
        return max(self.last - self.first + 1, 0)


class Account(Struct, kw_only=True):
    """Statements of a witness about one commit."""

    ranges: dict[str, list[Range]] = field(default_factory=dict)
    """By path. Of ranges that overlap the last one holds."""
    is_carried: bool = False
    """It was made for another commit, and carried over when that was rewritten."""
    version: str = ""
    """Version of the program that wrote it."""


class Testimony(Struct, kw_only=True):
    """All that a witness says of a repository."""

    commits: dict[str, Account] = field(default_factory=dict)
    records: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    """Records that could not be read or placed, by reason."""


class Ground(Struct, frozen=True, kw_only=True):
    """The repository that a witness is asked about."""

    git_dir: str
    folder: Path | None
    """Its working tree; None of a bare one."""
    commits: Sequence[Commit]
    """Oldest first."""
    changes: Callable[[Sequence[str]], dict[str, list[FileChange]]]
    """Changes of these commits."""


class Witness(Struct, frozen=True, kw_only=True):
    """Somebody who recorded line owners. `testimony` reads what he left in a repository; empty where nothing is."""

    name: str
    describes: str
    testimony: Callable[[Ground], Testimony]


WITNESSES = Registry[Witness](
    "witness", "agentsignals.repositories.witnesses", "WITNESS", lambda unit: isinstance(unit, Witness)
)


def statements(ranges: Sequence[Range], lines: Iterable[int]) -> dict[int, Statement]:
    """Return the statement of each line from ranges; time grows with ranges and lines, not with how far they reach."""
    begun = sorted(range(len(ranges)), key=lambda n: ranges[n].first, reverse=True)
    stated: dict[int, Statement] = {}
    holding: list[int] = []  # numbers of ranges, negated: the last one is on top
    for line in sorted(set(lines)):
        while begun and ranges[begun[-1]].first <= line:
            heappush(holding, -begun.pop())
        while holding and ranges[-holding[0]].last < line:
            heappop(holding)
        if holding:
            stated[line] = ranges[-holding[0]].statement
    return stated
