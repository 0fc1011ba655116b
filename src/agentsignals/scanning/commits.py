"""What a commit did to findings: introduced, fixed, moved. By what was matched, never by line numbers alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from msgspec import Struct

from agentsignals.git.commits import FileChange
from agentsignals.scanning.scanner import Found, name_of

Change = Literal["introduced", "fixed", "moved"]


class Changed(Struct):
    """A finding that a commit introduced, fixed or moved; the file and lines are those after the commit, of one that
    was fixed those before.
    """

    change: Change
    path: str
    found: Found
    moved_from: str | None = None
    """Where a moved finding was: a path."""

    @property
    def fingerprint(self) -> str:
        """Names rule, matched text and its surroundings: the same wherever the finding goes with them."""
        return name_of(f"{self.found.rule}\0{self.found.match}\0{self.found.around}")


class _Side(Struct):
    path: str
    """The path after the commit, for both sides of a rename."""
    own_path: str
    found: Found
    is_added: bool
    """Whether the commit added one of its lines."""


def changed(files: Sequence[tuple[FileChange, Sequence[Found], Sequence[Found]]]) -> list[Changed]:
    """The findings that a commit changed, from each changed file's findings before and after.

    Equal findings are paired off from near to far: same file and surroundings, same file, another file of the commit.
    What remains after was introduced, what remains before was fixed.
    """
    before = [_Side(f.path, f.old_path or f.path, one, False) for f, old, _ in files for one in old]
    after = [_Side(f.path, f.path, one, _touches(f, one)) for f, _, new in files for one in new]
    told: list[Changed] = []
    for key in (_where_it_was, _in_the_file, _anywhere):
        for was, now in _paired(before, after, key):
            if now.own_path != was.path or now.is_added:
                told.append(Changed("moved", now.own_path, now.found, was.own_path))
    told += [Changed("introduced", now.own_path, now.found) for now in after]
    told += [Changed("fixed", was.own_path, was.found) for was in before]
    return sorted(told, key=lambda one: (one.path, one.found.line, one.found.rule, one.change))


def _paired(before: list[_Side], after: list[_Side], key: Callable[[_Side], Hashable]) -> list[tuple[_Side, _Side]]:
    """Takes pairs of equal keys out of both lists, in order; lines that were not added are taken first."""
    waiting: dict[Hashable, list[_Side]] = defaultdict(list)
    for side in before:
        waiting[key(side)].append(side)
    pairs = []
    for side in sorted(after, key=lambda s: s.is_added):
        found = waiting.get(key(side))
        if found:
            pairs.append((found.pop(0), side))
    gone = {id(side) for pair in pairs for side in pair}
    before[:] = [side for side in before if id(side) not in gone]
    after[:] = [side for side in after if id(side) not in gone]
    return pairs


def _where_it_was(side: _Side) -> Hashable:
    return side.path, side.found.rule, side.found.match, side.found.around


def _in_the_file(side: _Side) -> Hashable:
    return side.path, side.found.rule, side.found.match


def _anywhere(side: _Side) -> Hashable:
    return side.found.rule, side.found.match


def _touches(change: FileChange, one: Found) -> bool:
    return any(start <= one.end_line and one.line < start + n for start, n in change.added)
