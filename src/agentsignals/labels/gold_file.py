"""A gold file that is being written, a label at a time: whole after each, whoever else writes it meanwhile.

Each label is a new file in place of the old one, so that neither a full disk nor the end of a process leaves half of
one. A thing has one row: whoever labels it again replaces what stood there, and has to have seen it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from agentsignals.errors import LabelledMeanwhile, SourceError, StoreError, UsageError
from agentsignals.labels.gold import GoldRow, read, turn_in
from agentsignals.labels.task import Task
from agentsignals.store.lock import locked

MOST_BYTES = 64 << 20
"""A larger file is no work of people's hands."""
_WAIT_S = 5.0
Key = tuple[str, int | None]
"""Session and turn as a gold file writes them: the turn from 1, None for the session."""


class GoldFile:
    """The file of that name, there already or not. UsageError where its name is none of a gold file of lines,
    SourceError where nothing can be written there."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(os.path.realpath(path))
        self._lock = Lock()
        if self.path.suffix.lower() != ".jsonl":
            raise UsageError(f"{path} is no gold file that can be added to.", "Its name ends in .jsonl.")
        if not self.path.parent.is_dir() or self.path.is_dir():
            raise SourceError(f"{path} can't be written.", "Name a file in a folder that is there.")
        self._lines()

    def rows(self, task: Task) -> dict[Key, GoldRow]:
        """Its rows of a task, with or without a label, in order."""
        if not self.path.exists():
            return {}
        return {(row.session_id, row.turn): row for row in read(self.path, task, unlabelled=True).rows}

    def put(self, task: Task, row: GoldRow, seen: str) -> None:
        """Writes a row's label, with what is said beside it, where that thing's row is or else at the end. `seen`: the
        label that its annotator saw there, empty for none.

        LabelledMeanwhile where it is another now; SourceError where it can't be written: then the file is as it was.
        """

        def changed(lines: list[bytes]) -> list[bytes]:
            at, before = next(
                ((n, held) for n, line in enumerate(lines) if (held := _of(line, task, (row.session_id, row.turn)))),
                (len(lines), {}),
            )
            standing = before.get("label") or ""
            if standing not in (seen, row.label):
                raise LabelledMeanwhile(
                    f"It was labelled {standing} meanwhile, in another page or program: that stands.",
                    "Label it again to replace it.",
                )
            made = {"session_id": row.session_id, "turn": row.turn, "label": row.label}
            fresh = msgspec.to_builtins(row) | {"reason": row.reason, "unsure": row.unsure or None}
            kept = {name: value for name, value in (before | made | fresh).items() if value is not None}
            return [*lines[:at], json.dumps(made | kept).encode() + b"\n", *lines[at + 1 :]]

        self._replace(changed)

    def _replace(self, change: Callable[[list[bytes]], list[bytes]]) -> None:
        try:
            with self._lock, locked(self.path.parent, f".{self.path.name}.lock", _WAIT_S):
                draft, name = tempfile.mkstemp(prefix=f".{self.path.name}.", suffix=".tmp", dir=self.path.parent)
                try:
                    with os.fdopen(draft, "wb") as out:
                        out.writelines(change(self._lines()))
                        out.flush()
                        os.fsync(out.fileno())
                    with suppress(FileNotFoundError):  # a new one is its owner's alone: it holds people's words
                        Path(name).chmod(self.path.stat().st_mode & 0o777)
                    Path(name).replace(self.path)
                finally:
                    Path(name).unlink(missing_ok=True)
        except (OSError, StoreError) as problem:
            cause = problem if isinstance(problem, OSError) else problem.__cause__
            why = (cause.strerror if isinstance(cause, OSError) else None) or "another program is writing it"
            raise SourceError(f"{self.path} can't be written: {why}.", "Nothing of it was changed.") from problem

    def _lines(self) -> list[bytes]:
        try:
            if self.path.stat().st_size > MOST_BYTES:
                raise SourceError(f"{self.path} is larger than {MOST_BYTES >> 20} MB.", "Name a gold file.")
            lines = self.path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise SourceError(f"{self.path} can't be read: {problem.strerror}.", "Name another file.") from problem
        if lines and not lines[-1].endswith(b"\n"):
            lines[-1] += b"\n"
        return lines


def _of(line: bytes, task: Task, key: Key) -> dict[str, Any]:
    """A line's row where it is of that task and thing; else nothing."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(row, dict) or row.get("task") not in (None, "", task.name):
        return {}
    session = row.get("session_id") or row.get("session")
    return row if (session, turn_in(row) if task.level == "turn" else None) == key else {}
