"""What a commit did to findings: introduced, fixed, moved. By what was matched, never by line numbers alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from msgspec import Struct

from agentsignals.git.commits import FileChange
from agentsignals.scanning.scanner import ScanFinding, name_of

Change = Literal["introduced", "fixed", "moved"]


class Changed(Struct):
    """A finding that a commit introduced, fixed or moved; the file and lines are those after the commit, of one that
    was fixed those before.
    """

    change: Change
    path: str
    finding: ScanFinding
    moved_from: str | None = None
    """Where a moved finding was: a path."""

    @property
    def fingerprint(self) -> str:
        """Names rule, matched text and its surroundings: the same wherever the finding goes with them."""
        return name_of(f"{self.finding.rule}\0{self.finding.match}\0{self.finding.around}")


class _Side(Struct):
    path: str
    """The path after the commit, for both sides of a rename."""
    own_path: str
    finding: ScanFinding
    is_added: bool
    """Whether the commit added one of its lines."""


def changed(files: Sequence[tuple[FileChange, Sequence[ScanFinding], Sequence[ScanFinding]]]) -> list[Changed]:
    """The findings that a commit changed, from each changed file's findings before and after.

    Equal findings are paired off from near to far: same file and surroundings, same file, another file of the commit.
    What remains after was introduced, what remains before was fixed.
    """
    before = [_Side(f.path, f.old_path or f.path, finding, False) for f, old, _ in files for finding in old]
    after = [_Side(f.path, f.path, finding, _touches(f, finding)) for f, _, new in files for finding in new]
    changes: list[Changed] = []
    for key in (_where_it_was, _in_the_file, _anywhere):
        for was, now in _paired(before, after, key):
            if now.own_path != was.path or now.is_added:
                changes.append(Changed("moved", now.own_path, now.finding, was.own_path))
    changes += [Changed("introduced", now.own_path, now.finding) for now in after]
    changes += [Changed("fixed", was.own_path, was.finding) for was in before]
    return sorted(changes, key=lambda c: (c.path, c.finding.line, c.finding.rule, c.change))


def _paired(before: list[_Side], after: list[_Side], key: Callable[[_Side], Hashable]) -> list[tuple[_Side, _Side]]:
    """Takes pairs of equal keys out of both lists, in order; lines that were not added are taken first."""
    waiting: dict[Hashable, list[_Side]] = defaultdict(list)
    for side in before:
        waiting[key(side)].append(side)
    pairs = []
    for side in sorted(after, key=lambda s: s.is_added):
        candidates = waiting.get(key(side))
        if candidates:
            pairs.append((candidates.pop(0), side))
    gone = {id(side) for pair in pairs for side in pair}
    before[:] = [side for side in before if id(side) not in gone]
    after[:] = [side for side in after if id(side) not in gone]
    return pairs


def _where_it_was(side: _Side) -> Hashable:
    return side.path, side.finding.rule, side.finding.match, side.finding.around


def _in_the_file(side: _Side) -> Hashable:
    return side.path, side.finding.rule, side.finding.match


def _anywhere(side: _Side) -> Hashable:
    return side.finding.rule, side.finding.match


def _touches(change: FileChange, finding: ScanFinding) -> bool:
    return any(start <= finding.end_line and finding.line < start + n for start, n in change.added)
