"""What explains a line that a commit added: where it stood before, who wrote it, or who alone can have."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from msgspec import Struct, field

from agentsignals.attribution.alignment import loose
from agentsignals.attribution.states import (
    HUMAN,
    PREEXISTING,
    SHELL,
    UNKNOWN,
    UNSEEN,
    FileState,
    is_old,
    is_telling,
    lines_of,
)
from agentsignals.attribution.timeline import Chances
from agentsignals.git.commits import FileChange
from agentsignals.git.worktrees import is_generated

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


class Step(Struct, kw_only=True):
    """A commit on the way of a working tree. `at`: the moment until which operations precede it."""

    sha: str
    parent: str | None
    at: int
    parent_at: int
    changes: list[FileChange]
    trunk: list[tuple[int, str]] = field(default_factory=list)
    """(when it was made, commit) of its first parents, the newest first, as far back as the first operation."""
    sessions: frozenset[str] = frozenset()
    """The sessions whose work it is; empty for a commit that nothing links to any."""
    is_linked: bool = False
    is_witnessed: bool = True
    """Whether the transcripts of all those sessions are at hand: without one nobody knows when its agent was busy."""


class Opened(Struct, kw_only=True):
    """A file of a commit while it is looked into."""

    change: FileChange
    file: FileState
    lines: list[str]
    marks: list[int]
    added: list[bool]
    loosely: set[int]
    gone: list[tuple[str, int]]
    """What the replay has and the commit has not."""
    removed: list[str]
    """What the parent has and the commit has not."""
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
        self._marks: dict[str, list[int]] = {}
        self._fresh: dict[str, list[tuple[int, str]]] = {}
        for opened_file in opened:
            held = Counter(loose(line) for line in opened_file.removed if is_telling(line))
            self._moved += held
            for line, mark in opened_file.gone:
                plain = loose(line)
                if not is_telling(line):
                    continue
                if held[plain] and mark < 0:
                    held[plain] -= 1
                    self._marks.setdefault(plain, []).append(mark)
                elif mark >= 0:
                    self._fresh.setdefault(plain, []).append((mark, line))

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
    """Marks for the added lines that the replay does not have in their place."""
    small: list[int] = []
    open_lines: list[int] = []
    for n, line in enumerate(opened_file.lines):
        if not opened_file.added[n]:
            continue
        if opened_file.marks[n] != UNSEEN:
            if is_old(opened_file.marks[n]) and elsewhere.moved(line) is not None:
                opened_file.tags[n] = "moved"
        elif not is_telling(line):
            small.append(n)
        elif not _is_found(opened_file, n, elsewhere):
            open_lines.append(n)
    if open_lines:
        _infer(opened_file, open_lines, step, chances)
    opened_file.small = small


def settle_doubts(opened: list[Opened], step: Step, chances: Chances) -> None:
    """More lines than anybody types in the time are no person's; small lines come with their neighbours."""
    typed = [(opened_file, n) for opened_file in opened for n in opened_file.typed]
    if typed:
        since = max(min(opened_file.file.seen_at for opened_file, _ in typed), step.parent_at)
        if len(typed) > TYPED_A_MINUTE * chances.idle_us(since, step.at) / 60_000_000:
            for opened_file, n in typed:
                opened_file.marks[n] = UNKNOWN
    for opened_file in opened:
        _fill(opened_file, opened_file.small)


def _is_found(opened_file: Opened, n: int, elsewhere: Elsewhere) -> bool:
    """Whether the line was written by an operation and lost its place, or came from another place in the parent."""
    line = opened_file.lines[n]
    match = opened_file.file.find_lost(line) or elsewhere.written(line)
    if match is not None:
        opened_file.marks[n] = match[0]
        if not match[1]:
            opened_file.loosely.add(n)
        return True
    mark = elsewhere.moved(line)
    if mark is not None:
        opened_file.marks[n], opened_file.tags[n] = mark, "moved"
    return mark is not None


def _infer(opened_file: Opened, lines: list[int], step: Step, chances: Chances) -> None:
    """Marks for lines that no operation has: from the file's kind, from what commands say, from who had the chance."""
    since = opened_file.file.seen_at
    if is_generated(opened_file.change.path, opened_file.lines):
        for n in lines:
            opened_file.marks[n], opened_file.tags[n] = UNKNOWN, "generated"
        return
    is_new = opened_file.change.old_path is None
    unseen = chances.unseen(since, step.at, opened_file.file.written_at, is_new) if step.is_witnessed else UNKNOWN
    for n in lines:
        opened_file.marks[n] = SHELL if chances.typed_by_command(opened_file.lines[n], since, step.at) else unseen
    opened_file.typed = [n for n in lines if opened_file.marks[n] == HUMAN]


def _fill(opened_file: Opened, small: list[int]) -> None:
    """Blank lines and lone brackets come with their neighbours; between two of different hands, with the less sure."""
    for n in small:
        near = _added_before(opened_file, n), _added_after(opened_file, n)
        neighbours = [m for m in near if m is not None]
        marks = {opened_file.marks[m] for m in neighbours}
        if len(marks) <= 1 or all(m >= 0 for m in marks):
            source = neighbours[0] if neighbours else None
        else:
            source = min(neighbours, key=lambda m: _SURENESS.get(opened_file.marks[m], 9))
        if source is None:
            opened_file.marks[n] = UNKNOWN
        else:
            opened_file.marks[n] = opened_file.marks[source]
            if source in opened_file.tags:
                opened_file.tags[n] = opened_file.tags[source]


def _added_before(opened_file: Opened, n: int) -> int | None:
    return n - 1 if n and opened_file.added[n - 1] and opened_file.marks[n - 1] != UNSEEN else None


def _added_after(opened_file: Opened, n: int) -> int | None:
    while n + 1 < len(opened_file.lines) and opened_file.added[n + 1]:
        n += 1
        if opened_file.marks[n] != UNSEEN:
            return n
    return None


_SURENESS = {HUMAN: 0, UNKNOWN: 1, PREEXISTING: 2, SHELL: 3}


def text_lines(data: bytes | None) -> list[str]:
    """The lines of a text file; none for a missing or a binary one, as Git's diff has it."""
    if not data or b"\0" in data[:8000]:
        return []
    return lines_of(data.decode("utf-8", "surrogateescape"))
