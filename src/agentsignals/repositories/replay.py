"""Replay of a working tree: operations and commits in order of time, every line with its author."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Literal

from msgspec import Struct, field

from agentsignals.changes.git import FileChange
from agentsignals.changes.worktrees import is_generated
from agentsignals.repositories.line_states import (
    HUMAN,
    NEW,
    PREEXISTING,
    SHELL,
    UNKNOWN,
    UNSEEN,
    FileState,
    align,
    align_loosely,
    committed,
    is_old,
    is_telling,
    lines_of,
    loose,
    swap_equals,
    written_by,
)
from agentsignals.repositories.working_trees import Activity, Operation, Step

IDLE_US = 10_000_000
"""Nobody edits a file by hand in a shorter pause of the agent."""
_TELLING_CHARS = 8
"""A line of a command that is at least so long, and stands in a file, came from there."""


class Chances:
    """When, in a working tree, a person could have changed a file, and when a command could have."""

    def __init__(self, sessions: Iterable[Activity]) -> None:
        activities = list(sessions)
        self._busy: list[list[int]] = []
        """Spans in which an agent was busy, overlapping ones joined: starts and ends, both rising."""
        for start, end in sorted(span for activity in activities for span in activity.busy):
            if self._busy and start <= self._busy[-1][1]:
                self._busy[-1][1] = max(self._busy[-1][1], end)
            else:
                self._busy.append([start, end])
        self._writers = sorted(at for activity in activities for at in activity.writers)
        self._command_lines: dict[str, list[int]] = defaultdict(list)
        for at, command in (pair for activity in activities for pair in activity.commands):
            # The texts in a command as the program it calls will write them; a script's text begins and ends within
            # a line.
            text = command.replace("'''", "\n").replace('"""', "\n").replace("\\n", "\n").replace("\\t", "\t")
            for line in set(text.replace("\\'", "'").replace('\\"', '"').split("\n")):
                if len(plain := loose(line)) >= _TELLING_CHARS:
                    self._command_lines[plain].append(at)

    def _rests(self, after: int, until: int) -> Iterator[int]:
        """For how long every agent rested between two moments, rest by rest, microseconds."""
        at = after
        for n in range(bisect_right(self._busy, after, key=itemgetter(1)), len(self._busy)):
            start, end = self._busy[n]
            if start >= until:
                break
            yield max(start - at, 0)
            at = max(at, end)
        yield max(until - at, 0)

    def idle(self, after: int, until: int) -> bool:
        return until - after >= IDLE_US and any(rest >= IDLE_US for rest in self._rests(after, until))

    def idle_us(self, after: int, until: int) -> int:
        return sum(self._rests(after, until))

    def wrote(self, after: int, until: int) -> bool:
        """Return whether a call that may write unseen ended between two moments."""
        n = bisect_right(self._writers, after)
        return n < len(self._writers) and self._writers[n] <= until

    def typed_by_command(self, line: str, after: int, until: int) -> bool:
        """Return whether a command of that time contains this very line."""
        plain = loose(line)
        times = self._command_lines.get(plain, ()) if len(plain) >= _TELLING_CHARS else ()
        return any(after < at <= until for at in times)

    def unseen(self, after: int, until: int, written_at: int | None, is_new: bool) -> int:
        """Return the author mark for lines changed between two moments that no recorded operation explains.

        A person only where no command can have done it, a command only where no person can; else nobody knows.
        """
        if written_at is not None and after < written_at <= until:
            free = self.idle(written_at, until) or (not is_new and self.idle(after, written_at))
            return UNKNOWN if free else SHELL
        person, command = self.idle(after, until), self.wrote(after, until)
        if person and not command:
            return HUMAN
        return SHELL if command and not person else UNKNOWN


# What explains a line that a commit added: where it stood before, who wrote it, or who alone can have.

Tag = Literal[
    "agent_exact", "agent_ws", "agent_shell", "agent_other_session", "human_observed", "preexisting", "moved",
    "generated", "unknown",
]  # fmt: skip
TAG_OF_MARK: dict[int, Tag] = {
    PREEXISTING: "preexisting", HUMAN: "human_observed", SHELL: "agent_shell", UNKNOWN: "unknown",
}  # fmt: skip

TYPED_A_MINUTE = 5
"""Telling lines: agents whose transcripts nobody kept write faster than that, people hardly (three commits of reglint
were plainly made by unrecorded runs, at 8, 24 and 26 lines a minute)."""


class Opened(Struct, kw_only=True):
    """A file of a commit while it is looked into."""

    change: FileChange
    file: FileState
    lines: list[str]
    marks: list[int]
    added: list[bool]
    loosely: set[int]
    gone: list[tuple[str, int]]
    removed: list[str]
    tags: dict[int, Tag] = field(default_factory=dict)
    """Tags that don't follow from the mark, by index of the line."""
    typed: list[int] = field(default_factory=list)
    """Indices of lines that only a person had the chance to write."""
    small: list[int] = field(default_factory=list)
    """Indices of unexplained lines that say too little to be looked for."""


class Elsewhere:
    """Lines that left their place in a commit: added again in another, they are not new."""

    def __init__(self, opened: list[Opened]) -> None:
        self._moved: Counter[str] = Counter()
        self._marks: dict[str, list[int]] = defaultdict(list)
        self._fresh: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for opened_file in opened:
            held = Counter(loose(line) for line in opened_file.removed if is_telling(line))
            self._moved += held
            for line, mark in opened_file.gone:
                plain = loose(line)
                if mark >= 0 and is_telling(line):
                    self._fresh[plain].append((mark, line))
                elif is_telling(line) and held[plain]:
                    held[plain] -= 1
                    self._marks[plain].append(mark)

    def written(self, line: str) -> tuple[int, bool] | None:
        """The operation that wrote the line in another place, not committed before, and whether exactly this."""
        marked_lines = self._fresh.get(loose(line))
        if not marked_lines or not is_telling(line):
            return None
        mark, text = marked_lines.pop()
        return mark, text == line

    def moved(self, line: str) -> int | None:
        """The mark of the line, when the commit took it from another place."""
        plain = loose(line)
        if not is_telling(line) or not self._moved[plain]:
            return None
        self._moved[plain] -= 1
        marks = self._marks.get(plain)
        return marks.pop() if marks else PREEXISTING


def explain(opened_file: Opened, step: Step, elsewhere: Elsewhere, chances: Chances) -> None:
    """Marks for the added lines that the replay does not have in their place: an operation wrote them and they lost it,
    they came from elsewhere, else by the file's kind, by what commands say, by who had the chance."""
    file, lines, marks, tags = opened_file.file, opened_file.lines, opened_file.marks, opened_file.tags
    open_lines: list[int] = []
    for n, line in enumerate(lines):
        if not opened_file.added[n]:
            continue
        if marks[n] != UNSEEN:
            if is_old(marks[n]) and elsewhere.moved(line) is not None:
                tags[n] = "moved"
        elif not is_telling(line):
            opened_file.small.append(n)
        elif (match := file.find_lost(line) or elsewhere.written(line)) is not None:
            marks[n] = match[0]
            if not match[1]:
                opened_file.loosely.add(n)
        elif (mark := elsewhere.moved(line)) is not None:
            marks[n], tags[n] = mark, "moved"
        else:
            open_lines.append(n)
    if open_lines and is_generated(opened_file.change.path, lines):
        for n in open_lines:
            marks[n], tags[n] = UNKNOWN, "generated"
    elif open_lines:
        is_new = opened_file.change.old_path is None
        unseen = UNKNOWN
        if step.is_witnessed:
            unseen = chances.unseen(file.seen_at, step.at, file.written_at, is_new)
        for n in open_lines:
            marks[n] = SHELL if chances.typed_by_command(lines[n], file.seen_at, step.at) else unseen
        opened_file.typed = [n for n in open_lines if marks[n] == HUMAN]


def settle_doubts(opened: list[Opened], step: Step, chances: Chances) -> None:
    """More lines than anybody types in the time are no person's. Blank lines and lone brackets come with their
    neighbours; between two of different hands, with the less sure."""
    typed = [(opened_file, n) for opened_file in opened for n in opened_file.typed]
    if typed:
        since = max(min(opened_file.file.seen_at for opened_file, _ in typed), step.parent_at)
        if len(typed) > TYPED_A_MINUTE * chances.idle_us(since, step.at) / 60_000_000:
            for opened_file, n in typed:
                opened_file.marks[n] = UNKNOWN
    for opened_file in opened:
        marks, added = opened_file.marks, opened_file.added
        for n in opened_file.small:
            neighbours = [n - 1] if n and added[n - 1] and marks[n - 1] != UNSEEN else []
            after = n + 1
            while after < len(added) and added[after] and marks[after] == UNSEEN:
                after += 1
            if after < len(added) and added[after]:
                neighbours.append(after)
            if not neighbours:
                marks[n] = UNKNOWN
                continue
            source = neighbours[0]
            if any(marks[m] < 0 for m in neighbours):
                source = min(neighbours, key=lambda m: _SURENESS.get(marks[m], 9))
            marks[n] = marks[source]
            if source in opened_file.tags:
                opened_file.tags[n] = opened_file.tags[source]


_SURENESS = {HUMAN: 0, UNKNOWN: 1, PREEXISTING: 2, SHELL: 3}


def text_lines(data: bytes | None) -> list[str]:
    """The lines of a text file; none for a missing or a binary one, as Git's diff has it."""
    if not data or b"\0" in data[:8000]:
        return []
    return lines_of(data.decode("utf-8", "surrogateescape"))


# The replay of a working tree: operations and commits in order of time, every line with who it is from.
#
# The algorithm is design/attribution.md#replay. A line that nothing explains is never taken for a person's:
# `human_observed` needs a time in which only a person can have written it.

NEAR_LINES = 3
"""Changes no further apart are of one region (design/signals.md#regions)."""


class AddedLine(Struct, gc=False):
    path: str
    line: int
    tag: Tag
    mark: int
    is_blank: bool


class Fates(Struct, kw_only=True):
    """Fates of the lines that an operation wrote."""

    made: int = 0
    overwritten_by_self: int = 0
    overwritten_by_other: int = 0
    committed: int = 0
    standing: int = 0
    """Still there at the end, and in no commit."""
    taken: int = 0
    """Gone when somebody else committed the file, and nothing unexplained in their place."""
    unplaced: int = 0
    """Lines made whose place was not found; only those that reached a commit are known."""


class Replayed(Struct):
    lines: dict[str, list[AddedLine]] = field(default_factory=dict)
    fates: dict[int, Fates] = field(default_factory=dict)
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
        at = 0
        for n, step in enumerate(self._steps):
            self._next = next((s for s in self._steps[n:] if s.is_linked), step)
            while at < len(self._operations) and self._operations[at].at <= step.at:
                self._apply(at)
                at += 1
            if step.is_linked:
                self._attribute(step)
            else:
                for change in step.changes:
                    self._take_in(change, step)
        self._next = None
        for rest in range(at, len(self._operations)):
            self._apply(rest)
        for mark in (mark for file in self._files.values() for mark in file.marks if mark >= 0):
            self._done.fates[mark].standing += 1
        return self._done

    # -- operations ----------------------------------------------------------------------------------------------

    def _apply(self, number: int) -> None:
        """Apply one operation to its file and note whose lines it overwrote."""
        operation = self._operations[number]
        file = self._file(operation.path, operation.at)
        fates = self._done.fates
        match operation.kind:
            case "write":
                file.write(operation.new, number)
                file.seen_at, file.written_at = operation.at, None
            case "append":
                file.insert(None, operation.new, number)
            case "insert":
                file.insert(operation.line, operation.new, number)
            case "replace":
                unseen = self._chances.unseen(file.seen_at, operation.at, file.written_at, not file.lines)
                if not file.replace(operation.old, operation.new, number, operation.everywhere, unseen):
                    self._done.not_found += 1
                    fates.setdefault(number, Fates()).unplaced += file.made
            case "substitute":
                file.substitute(operation.old, operation.new, number, operation.everywhere)
            case "shell":
                file.written_at = operation.at
            case "rename" if operation.to:
                self._files[operation.to] = self._files.pop(operation.path)
            case "delete":
                file.write("", number)
                file.seen_at = operation.at
        fates.setdefault(number, Fates()).made += file.made
        if self._is_shared:
            # Notes whose lines it replaced, or wrote within `NEAR_LINES` of.
            met = set(file.gone)
            for n in [n for n, mark in enumerate(file.marks) if mark == number]:
                met.update(file.marks[max(n - NEAR_LINES, 0) : n + NEAR_LINES + 1])
            for mark in met:
                writer = mark if mark >= 0 else written_by(mark)
                other = self._operations[writer].session_id if writer >= 0 else operation.session_id
                if other != operation.session_id:
                    self._done.beside.setdefault(operation.session_id, {}).setdefault(other, set()).add(operation.path)
        for mark in file.gone:
            if mark >= 0:  # what was committed has had its fate
                if self._operations[mark].session_id == operation.session_id:
                    fates[mark].overwritten_by_self += 1
                else:
                    fates[mark].overwritten_by_other += 1
        file.gone.clear()
        file.made = 0

    def _file(self, path: str, at: int) -> FileState:
        """A file as it is now; one not seen before as it was in the last commit on the way to the next linked one: the
        commit that the working tree stood at."""
        if path not in self._files:
            step = self._next
            since, sha = 0, None
            if step is None:
                last = next((s for s in reversed(self._steps) if s.is_linked), None)
                since, sha = (last.at, last.sha) if last is not None else (0, None)
            elif not step.trunk:
                since, sha = min(step.parent_at, at), step.parent
            else:
                since, sha = next(((made, sha) for made, sha in step.trunk if made <= at), (0, None))
            self._files[path] = FileState(text_lines(self._blob(f"{sha}:{path}") if sha else None), since)
        return self._files[path]

    # -- commits -------------------------------------------------------------------------------------------------

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
        file.lines, file.marks = now, marks
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
            marks, tags = opened_file.marks, opened_file.tags
            for n, line in enumerate(opened_file.lines):
                if not opened_file.added[n]:
                    continue
                mark = marks[n]
                if mark < 0:
                    tag = tags.get(n) or TAG_OF_MARK.get(mark, "preexisting")
                else:
                    self._done.fates[mark].committed += 1
                    is_own = self._operations[mark].session_id in step.sessions
                    exactly: Tag = "agent_ws" if n in opened_file.loosely else "agent_exact"
                    tag = tags.get(n) or (exactly if is_own else "agent_other_session")
                writer = mark if mark >= 0 else written_by(mark)
                added_lines.append(AddedLine(opened_file.change.path, n + 1, tag, writer, not line.strip()))
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

    def _settle(self, opened_file: Opened, step: Step) -> None:
        """Takes the committed content over; lines that went may come back."""
        file, is_deleted = opened_file.file, opened_file.change.new_oid is None
        # Counts lines of operations that the commit has not; not those that a formatter or a command may have replaced.
        if not is_deleted or not self._chances.wrote(file.seen_at, step.at):
            marks = zip(opened_file.added, opened_file.marks, strict=True)
            unexplained = sum(is_added and mark in (SHELL, UNKNOWN) for is_added, mark in marks)
            for _, mark in [gone for gone in opened_file.gone if gone[1] >= 0][unexplained:]:
                self._done.fates[mark].taken += 1
        if is_deleted:
            self._files.pop(opened_file.change.path, None)
            return
        for line, mark in opened_file.gone:
            file.lose(line, mark)
        file.lines, file.marks = opened_file.lines, [_once_committed(m) for m in opened_file.marks]
        file.seen_at, file.written_at = step.at, None


def _once_committed(mark: int) -> int:
    """The mark of a line when it is in a commit: of whom an operation tells, else just of before."""
    return committed(mark) if mark >= 0 else mark if written_by(mark) >= 0 else PREEXISTING
