"""What shell commands change, as the rows that other edits are: sizes and places where the words of a command tell
them, else a file whose lines nobody knows, so that its regions close."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs

from agentsignals.edits import tracking
from agentsignals.edits.hunks import Hunk, count_lines, created, inserted, of_whole_file, replaced, unified
from agentsignals.formats.paths import Paths
from agentsignals.model import RAN, Edit, Event, ToolCall
from agentsignals.shell import Command, writes_of
from agentsignals.shell.writing import WHOLE_TREE, Write

_MOST_TEXTS = 200
_SCRIPT_ENDS = (".py", ".sh", ".bash", ".patch", ".diff")
_NOT_DONE = ("No such file or directory", "Permission denied", "Is a directory", "Read-only file system")


class ShellEdits:
    """The shell commands of one session, whose edits are known once it is known how each ended."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._calls: list[tuple[ToolCall, Command, str | None]] = []

    def ran(self, call: ToolCall, does: Command, folder: str | None) -> None:
        """A command, and the folder that it ran in."""
        writes = tuple(self._placed(does.writes, folder))
        runs = tuple((reader, self._paths.clean(path, folder)) for reader, path in does.runs)
        self._calls.append((call, Command(does.kind, does.path, writes, runs), folder))

    def edits(self, recorded: set[int], events: list[Event]) -> Iterator[Edit]:
        """The edits of commands that the trace does not record itself."""
        texts: dict[str, str] = {}
        for call, does, folder in self._calls:
            writes = list(does.writes)
            for reader, path in does.runs:
                if path in texts:
                    writes += self._placed(writes_of(reader, texts[path]), folder)
            if call.status not in RAN:
                output = events[call.result_seq].text if call.result_seq is not None else None
                writes = (
                    [w for w in writes if w.is_sure and _was_done(w, output or "")] if call.status == "error" else []
                )
            for write in writes:
                if write.how == "whole" and write.path.endswith(_SCRIPT_ENDS) and len(texts) < _MOST_TEXTS:
                    texts[write.path] = write.new
                elif write.path in texts:
                    del texts[write.path]
            if call.seq not in recorded:
                yield from of_call(call, writes)

    def _placed(self, writes: Iterable[Write], folder: str | None) -> Iterator[Write]:
        for write in writes:
            path = tracking.WHOLE_TREE if write.path == WHOLE_TREE else self._paths.clean(write.path, folder)
            yield structs.replace(write, path=path)


def of_call(call: ToolCall, writes: Iterable[Write]) -> list[Edit]:
    """A row for each changed place, in the order of the command."""
    edits: list[Edit] = []
    for write in writes:
        for hunk in _hunks(write):
            edits.append(
                Edit(
                    seq=call.seq,
                    turn=call.turn,
                    thread=call.thread,
                    call_id=call.call_id,
                    path=write.path,
                    op=write.op,
                    via="shell",
                    hunk=len(edits),
                    start_line=hunk.start_line,
                    end_line=hunk.end_line,
                    added=hunk.added,
                    removed=hunk.removed,
                    old_start=hunk.old_start,
                    whole_file=hunk.whole_file,
                    origin=write.origin,
                    source=write.source,
                )
            )
    return edits


def _hunks(write: Write) -> list[Hunk]:  # noqa: PLR0911  (one for each way of changing)
    if write.how == "whole":
        whole = created(write.new)
        whole.removed = None  # whether there was a file before, and how long it was, nobody says
        return [whole]
    if write.how == "append":
        return [inserted(write.new, None)]
    if write.how == "insert":
        return [inserted(write.new, write.line)]
    if write.how == "patch":
        hunks = unified(write.new)
        return (of_whole_file(hunks) if write.op != "modify" else hunks) or [Hunk(whole_file=True)]
    if write.how in ("replace", "substitute") and write.line is not None:
        added = 1 if write.how == "substitute" else count_lines(write.new)
        last = write.line + max(added, 1) - 1
        return [Hunk(start_line=write.line, end_line=last, added=added, removed=write.n_old, old_start=write.line)]
    if write.how == "replace" and (not write.everywhere or "\n" in write.old.strip()):  # several lines stand once
        return [replaced(write.old, write.new)]
    if write.how in ("replace", "substitute") and write.old.count("\n") == write.new.count("\n"):
        return [Hunk()]  # no line comes or goes: which of them changed is not told, and where the others are stays so
    return [Hunk(whole_file=True)]


def _was_done(write: Write, output: str) -> bool:
    """Whether the output of a line that failed says nothing of why this file could not be written."""
    name = write.path.rpartition("/")[2]
    return not any(name in line and any(reason in line for reason in _NOT_DONE) for line in output.split("\n"))
