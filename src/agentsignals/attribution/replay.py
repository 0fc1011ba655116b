"""The replay of a working tree: operations and commits in order of time, every line with who it is from.

The algorithm is design/attribution.md#replay. A line that nothing explains is never taken for a person's:
`human_observed` needs a
time in which only a person can have written it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from agentsignals.attribution.alignment import NEW, align, align_loosely
from agentsignals.attribution.explanation import (
    TAG_OF_MARK,
    Elsewhere,
    Opened,
    Step,
    Tag,
    explain,
    settle_doubts,
    text_lines,
)
from agentsignals.attribution.operations import Operation
from agentsignals.attribution.states import (
    PREEXISTING,
    SHELL,
    UNKNOWN,
    UNSEEN,
    FileState,
    committed,
    swap_equals,
    written_by,
)
from agentsignals.attribution.timeline import Chances
from agentsignals.git.commits import FileChange

NEAR_LINES = 3
"""Changes no further apart are of one region (design/signals.md#regions)."""


class AddedLine(Struct, gc=False):
    """A line that a commit added: whose it is, and the operation that wrote it where one did."""

    path: str
    line: int
    tag: Tag
    mark: int
    is_blank: bool


class Fates(Struct, kw_only=True):
    """What became of the lines an operation wrote."""

    made: int = 0
    overwritten_by_self: int = 0
    overwritten_by_other: int = 0
    committed: int = 0
    """Reached a commit."""
    standing: int = 0
    """Still there at the end, and in no commit."""
    taken: int = 0
    """Gone when somebody else committed the file, and nothing unexplained in their place."""
    unplaced: int = 0
    """Of the lines made, those whose place was not found: of them nothing is known but what reached a commit."""


class Replayed(Struct):
    lines: dict[str, list[AddedLine]] = field(default_factory=dict)
    """By commit."""
    fates: dict[int, Fates] = field(default_factory=dict)
    """By operation."""
    not_found: int = 0
    """Replacements whose place in the file was not found: the file is not what the replay takes it for."""
    picked_up: dict[str, list[tuple[int, str, int]]] = field(default_factory=dict)
    """By commit that no session is linked to: (operation, path, line) of the lines that reached it."""
    beside: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    """By session: the other sessions whose lines it replaced or wrote beside, and in which files."""


class Replay:
    """One working tree. `blob` reads a file of a commit (`commit:path`) or a blob by its id."""

    def __init__(
        self, operations: list[Operation], steps: list[Step], chances: Chances, blob: Callable[[str], bytes | None]
    ) -> None:
        self._operations = operations
        self._steps = steps
        self._chances = chances
        self._blob = blob
        self._files: dict[str, FileState] = {}
        self._done = Replayed()
        self._next: Step | None = None
        self._is_shared = len({operation.session_id for operation in operations}) > 1

    def run(self) -> Replayed:
        """Everything in order of time."""
        at = 0
        for n, step in enumerate(self._steps):
            self._next = next((s for s in self._steps[n:] if s.is_linked), step)
            while at < len(self._operations) and self._operations[at].at <= step.at:
                self._apply(at)
                at += 1
            self._commit(step)
        self._next = None
        for rest in range(at, len(self._operations)):
            self._apply(rest)
        for file in self._files.values():
            for mark in file.marks:
                if mark >= 0:
                    self._done.fates[mark].standing += 1
        return self._done

    # -- operations ----------------------------------------------------------------------------------------------

    def _apply(self, number: int) -> None:
        operation = self._operations[number]
        file = self._file(operation.path, operation.at)
        if operation.kind == "write":
            file.write(operation.new, number)
            file.seen_at, file.written_at = operation.at, None
        elif operation.kind == "append":
            file.append(operation.new, number)
        elif operation.kind == "insert":
            file.insert(operation.line, operation.new, number)
        elif operation.kind == "replace":
            unseen = self._chances.unseen(file.seen_at, operation.at, file.written_at, not file.lines)
            is_found = file.replace(operation.old, operation.new, number, operation.everywhere, unseen)
            if not is_found:
                self._done.not_found += 1
                self._done.fates.setdefault(number, Fates()).unplaced += file.made
        elif operation.kind == "substitute":
            file.substitute(operation.old, operation.new, number, operation.everywhere)
        elif operation.kind == "shell":
            file.written_at = operation.at
        elif operation.kind == "rename" and operation.to:
            self._files[operation.to] = self._files.pop(operation.path)
        elif operation.kind == "delete":
            file.write("", number)
            file.seen_at = operation.at
        self._count(file, number)

    def _count(self, file: FileState, number: int) -> None:
        fates = self._done.fates.setdefault(number, Fates())
        fates.made += file.made
        session = self._operations[number].session_id
        if self._is_shared:
            self._meet(file, number)
        for mark in file.gone:
            if mark >= 0:  # what was committed has had its fate
                gone = self._done.fates[mark]
                if self._operations[mark].session_id == session:
                    gone.overwritten_by_self += 1
                else:
                    gone.overwritten_by_other += 1
        file.gone.clear()
        file.made = 0

    def _meet(self, file: FileState, number: int) -> None:
        """Notes whose lines an operation replaced, or wrote within `NEAR_LINES` of."""
        operation = self._operations[number]
        met = set(file.gone)
        marks = file.marks
        for n in [n for n, mark in enumerate(marks) if mark == number]:
            met.update(marks[max(n - NEAR_LINES, 0) : n + NEAR_LINES + 1])
        for mark in met:
            writer = mark if mark >= 0 else written_by(mark)
            other = self._operations[writer].session_id if writer >= 0 else operation.session_id
            if other != operation.session_id:
                self._done.beside.setdefault(operation.session_id, {}).setdefault(other, set()).add(operation.path)

    def _file(self, path: str, at: int) -> FileState:
        """A file as it is now; one not seen before as it was in the last commit on the way to the next linked one."""
        file = self._files.get(path)
        if file is None:
            since, sha = self._base(at)
            base = self._blob(f"{sha}:{path}") if sha else None
            file = self._files[path] = FileState(text_lines(base), since)
        return file

    def _base(self, at: int) -> tuple[int, str | None]:
        """The commit that the working tree stood at, and since when."""
        step = self._next
        if step is None:
            last = next((s for s in reversed(self._steps) if s.is_linked), None)
            return (last.at, last.sha) if last is not None else (0, None)
        if not step.trunk:
            return min(step.parent_at, at), step.parent
        return next(((made, sha) for made, sha in step.trunk if made <= at), (0, None))

    # -- commits -------------------------------------------------------------------------------------------------

    def _commit(self, step: Step) -> None:
        if step.is_linked:
            self._attribute(step)
        else:
            for change in step.changes:
                self._take_in(change, step)

    def _take_in(self, change: FileChange, step: Step) -> None:
        """A commit that is nobody's here: what it brought was there before; what is not committed yet stays."""
        file = self._files.get(change.old_path or change.path) or self._files.get(change.path)
        if file is None:
            return
        if change.new_oid is None:
            self._files.pop(change.path, None)
            return
        lines = text_lines(self._blob(change.new_oid))
        before = set(text_lines(self._blob(change.old_oid))) if change.old_oid else set()
        matched = align(file.lines, lines)
        now: list[str] = []
        marks: list[int] = []
        last = 0
        for y, x in enumerate([*matched, len(file.lines)]):
            if x == NEW:
                now.append(lines[y])
                marks.append(PREEXISTING)
                continue
            for k in range(last, x):
                if file.marks[k] >= 0 and file.lines[k] not in before:
                    now.append(file.lines[k])
                    marks.append(file.marks[k])
                else:
                    file.lose(file.lines[k], file.marks[k])
            if x < len(file.lines):
                mark = file.marks[x]
                if mark >= 0:
                    self._done.fates[mark].committed += 1
                    if lines[y].strip():
                        self._done.picked_up.setdefault(step.sha, []).append((mark, change.path, y + 1))
                now.append(file.lines[x])
                marks.append(_once_committed(mark))
                last = x + 1
        file.sync(now, marks, file.seen_at)
        if change.old_path and change.old_path != change.path and change.old_path in self._files:
            self._files[change.path] = self._files.pop(change.old_path)

    def _attribute(self, step: Step) -> None:
        """Whose each added line is: first what the replay has in its place, then what else explains it."""
        opened = [self._opened(change, step) for change in step.changes]
        elsewhere = Elsewhere(opened)
        added_lines = self._done.lines.setdefault(step.sha, [])
        for opened_file in opened:
            if opened_file.change.new_oid is not None:
                explain(opened_file, step, elsewhere, self._chances)
        settle_doubts(opened, step, self._chances)
        for opened_file in opened:
            if opened_file.change.new_oid is not None:
                added_lines += self._tagged(opened_file, step)
            self._settle(opened_file, step)

    def _opened(self, change: FileChange, step: Step) -> Opened:
        """A file of the commit beside what the replay has of it."""
        before = text_lines(self._blob(change.old_oid)) if change.old_oid else []
        if change.old_path and change.old_path != change.path and change.old_path in self._files:
            moved = self._files.pop(change.old_path)
            self._files.setdefault(change.path, moved)
        file = self._files.get(change.path)
        if file is None:
            file = self._files[change.path] = FileState(list(before), step.parent_at)
        lines = text_lines(self._blob(change.new_oid)) if change.new_oid else []
        matched, loosely = align_loosely(file.lines, lines)
        added = [False] * len(lines)
        for start, n in change.added:
            stop = min(start - 1 + n, len(lines))
            added[start - 1 : stop] = [True] * (stop - start + 1)
        marks = [file.marks[x] if x != NEW else UNSEEN if added[n] else PREEXISTING for n, x in enumerate(matched)]
        swap_equals(lines, marks, added)
        kept = set(matched)
        gone = [(line, file.marks[x]) for x, line in enumerate(file.lines) if x not in kept]
        removed = [before[n] for start, k in change.removed for n in range(start - 1, min(start - 1 + k, len(before)))]
        return Opened(
            change=change, file=file, lines=lines, marks=marks, added=added, loosely=loosely, gone=gone, removed=removed
        )

    def _tagged(self, opened_file: Opened, step: Step) -> list[AddedLine]:
        """The added lines of a file with their tags; counts those that an operation wrote."""
        added_lines = []
        for n, line in enumerate(opened_file.lines):
            if not opened_file.added[n]:
                continue
            mark = opened_file.marks[n]
            tag: Tag
            if n in opened_file.tags:
                tag = opened_file.tags[n]
            elif mark >= 0:
                is_linked = self._operations[mark].session_id in step.sessions
                tag = (
                    "agent_other_session"
                    if not is_linked
                    else "agent_ws"
                    if n in opened_file.loosely
                    else "agent_exact"
                )
            else:
                tag = TAG_OF_MARK.get(mark, "preexisting")
            if mark >= 0:
                self._done.fates[mark].committed += 1
            writer = mark if mark >= 0 else written_by(mark)
            added_lines.append(AddedLine(opened_file.change.path, n + 1, tag, writer, not line.strip()))
        return added_lines

    def _settle(self, opened_file: Opened, step: Step) -> None:
        """Takes the committed content over; lines that went may come back."""
        self._count_taken(opened_file, step)
        if opened_file.change.new_oid is None:
            self._files.pop(opened_file.change.path, None)
            return
        for line, mark in opened_file.gone:
            opened_file.file.lose(line, mark)
        opened_file.file.sync(opened_file.lines, [_once_committed(m) for m in opened_file.marks], step.at)
        opened_file.file.written_at = None

    def _count_taken(self, opened_file: Opened, step: Step) -> None:
        """Lines of operations that the commit has not; not those that a formatter or a command may have replaced."""
        if opened_file.change.new_oid is None and self._chances.wrote(opened_file.file.seen_at, step.at):
            return
        unexplained = sum(opened_file.added[n] and mark in (SHELL, UNKNOWN) for n, mark in enumerate(opened_file.marks))
        for _, mark in [gone for gone in opened_file.gone if gone[1] >= 0][unexplained:]:
            self._done.fates[mark].taken += 1


def _once_committed(mark: int) -> int:
    """The mark of a line when it is in a commit: of whom an operation tells, else just of before."""
    return committed(mark) if mark >= 0 else mark if written_by(mark) >= 0 else PREEXISTING
