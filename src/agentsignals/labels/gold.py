"""Gold files: messages or sessions with labels that others are held against, as JSON Lines or CSV.

A row has `session_id` (or `session`), `turn` (counted from 1; empty for a whole session), the label (`label`,
TASK_label, TASK, or a column that is named), and may have `text`, `before`, `reason`, `annotator`,
`prompt_hash` (the version of the codebook it was labelled by), `unsure`, `stratum` and `weight`.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals import private_files
from agentsignals.errors import ExportError, LabelledMeanwhile, SourceError, StoreError, UsageError
from agentsignals.labels.agreement import fitting, score
from agentsignals.labels.tasks import Task
from agentsignals.redaction import Guard
from agentsignals.store.disk import locked
from agentsignals.words.text import inert, of_inert

SUFFIXES = (".jsonl", ".csv")
MOST_UNKNOWN, FEWEST_UNKNOWN = 0.05, 5
"""Labels that are none of the task's classes, as a share and in number: beyond both they are of something else."""
MOST_ROW_CHARS = 1_000_000
"""A longer row is no message that somebody labelled."""


NO_SUCH_CLASS = "no_such_class"
_WORDS = ("reason", "annotator", "prompt_hash", "stratum", "before", "text", "project")
_ALSO = {"before": "prev_agent_tail", "text": "content_text"}
"""Columns of published files that hold the same."""


class GoldRow(Struct, kw_only=True, omit_defaults=True):
    session_id: str
    turn: int | None = None
    """As written: counted from 1; None for the session."""
    task: str = ""
    label: str | None = None
    number: float | None = None
    reason: str | None = None
    annotator: str | None = None
    prompt_hash: str | None = None
    stratum: str | None = None
    weight: float | None = None
    """Number of things of the store that the row represents."""
    before: str | None = None
    """Text that the message answers."""
    text: str | None = None
    project: str | None = None
    """Whose messages are left out together where a classifier is judged."""
    unsure: bool = False
    """Whoever labelled it would not be surprised by another label."""
    by_labeller: dict[str, str] = field(name="said", default_factory=dict)
    """Where it is to be settled: what each labeller said."""


class Gold(Struct):
    rows: list[GoldRow] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    """Rows that are none, by reason: `no_session`, `no_turn`, `no_label`, `no_such_class` (the
    file may have the task's own in another column), `not_this_task`, `unreadable`, `repeated`."""
    by: list[str] = field(default_factory=list)
    """Who labelled, in the file's words, most frequent first."""


def is_gold(path: Path | str) -> bool:
    return Path(path).suffix.lower() in SUFFIXES


def read(path: Path | str, task: Task, column: str | None = None, *, unlabelled: bool = False) -> Gold:
    """The rows of a file about this task. `column`: where the label stands. `unlabelled`: rows without one, too.

    SourceError when there is no such file or nothing in it has the label's column; UsageError for another kind of file.
    """
    gold, skipped, by = Gold(), Counter[str](), Counter[str]()
    unknown, elsewhere = Counter[str](), Counter[str]()
    seen: set[tuple[str, int | None]] = set()
    columns = (column,) if column else ("label", f"{task.name}_label", task.name)
    has_label_column = unlabelled
    for raw in _raw(Path(path)):
        if isinstance(raw, str):
            skipped[raw] += 1
            continue
        has_label_column = has_label_column or any(name in raw for name in columns)
        row = _row(raw, task, columns, unlabelled=unlabelled)
        if row == NO_SUCH_CLASS:
            unknown[str(_labelled(raw, columns))] += 1
        elsewhere.update(name for name, value in raw.items() if task.values and fitting(task, str(value)) is not None)
        place = (row.session_id, row.turn) if isinstance(row, GoldRow) else None
        if isinstance(row, str) or place in seen:
            skipped[row if isinstance(row, str) else "repeated"] += 1
            continue
        seen.add((row.session_id, row.turn))
        gold.rows.append(row)
        by[row.annotator or "somebody it does not name"] += 1
    if not has_label_column:
        raise SourceError(f"{path} has no column {' or '.join(columns)}.", "Name the label's column with --column.")
    # So many labels that are no class of the task that what is left would be another sample.
    n_unknown, n = unknown.total(), unknown.total() + len(gold.rows)
    if n_unknown >= FEWEST_UNKNOWN and n_unknown > MOST_UNKNOWN * n:
        frequent = ", ".join(f"{value!r} {count} times" for value, count in unknown.most_common(5))
        (better, fitting_there) = elsewhere.most_common(1)[0] if elsewhere else ("", 0)
        raise UsageError(
            f"{n_unknown} of {n} labels in {Path(path).name} are not labels of {task.name}"
            f" ({', '.join(task.values) or 'numbers'}), for example {frequent}.",
            f"Name the column that has these labels: --column {better}."
            if fitting_there > n - n_unknown
            else "Name another column with --column, or rename the classes in the file.",
        )
    gold.skipped, gold.by = dict(skipped), [name for name, _ in by.most_common()]
    return gold


def write(path: Path | str, rows: Iterable[GoldRow], *, masked: bool = True) -> int:
    """Writes a new file; gives the number of rows. UsageError when it exists: somebody's work may be in it.

    `masked`: its texts were; ExportError, and no file, where one holds a key all the same.
    """
    target = Path(path)
    if not is_gold(target):
        raise UsageError(f"{target} is no file of labels.", f"Name a file that ends in {' or '.join(SUFFIXES)}.")
    held = list(rows)
    guard = Guard()
    for n, row in enumerate(held if masked else (), 1):
        if kind := guard.kind(json.dumps(msgspec.to_builtins(row), ensure_ascii=False)):
            raise ExportError(
                f"Row {n} still holds a secret ({kind}), so {target.name} was not written.",
                "Leave that session out: add its condition to --where.",
            )
    try:
        with private_files.open_file(target, "x", encoding="utf-8", newline="") as out:
            if target.suffix.lower() == ".csv":
                table = csv.writer(out)
                table.writerow(GoldRow.__struct_encode_fields__)
                table.writerows([_cell(value) for value in msgspec.structs.astuple(row)] for row in held)
            else:
                for row in held:
                    # A missing label is to be seen.
                    first = {"session_id": row.session_id, "turn": row.turn, "label": row.label}
                    out.write(json.dumps(first | msgspec.to_builtins(row), ensure_ascii=True) + "\n")
    except FileExistsError as problem:
        raise UsageError(
            f"{target} already exists.", "Choose a new file name. Labels in the old file are kept."
        ) from problem
    except OSError as problem:
        raise SourceError(f"{target} can't be written: {problem.strerror}.", "Name another file.") from problem
    return len(held)


def _raw(path: Path) -> Iterator[dict[str, Any] | str]:
    """The file's rows as they are; `unreadable` for what is none."""
    if not is_gold(path):
        raise UsageError(f"{path} is no file of labels.", f"Name a file that ends in {' or '.join(SUFFIXES)}.")
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            if path.suffix.lower() == ".csv":
                csv.field_size_limit(MOST_ROW_CHARS)
                table = csv.DictReader(lines)
                while True:
                    try:
                        cells = next(table)
                    except StopIteration:
                        return
                    except csv.Error:
                        yield "unreadable"
                        continue
                    yield {k: of_inert(v) for k, v in cells.items() if isinstance(k, str) and isinstance(v, str) and v}
            for line in lines:
                row = _parsed(line) if len(line) <= MOST_ROW_CHARS else None
                if line.strip():
                    yield row if isinstance(row, dict) else "unreadable"
    except OSError as problem:
        raise SourceError(f"{path} can't be read: {problem.strerror}.", "Name a readable file of labels.") from problem


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _row(raw: dict[str, Any], task: Task, columns: tuple[str, ...], *, unlabelled: bool) -> GoldRow | str:
    """Return a row of a gold file, or the reason why it cannot be used."""
    session = raw.get("session_id") or raw.get("session")
    if not isinstance(session, str) or not session:
        return "no_session"
    if raw.get("task") not in (None, "", task.name):
        return "not_this_task"
    turn = turn_in(raw) if task.level == "turn" else None
    if task.level == "turn" and turn is None:
        return "no_turn"
    value = _labelled(raw, columns)
    label = fitting(task, str(value)) if isinstance(value, str | int | float) else None
    if label is None and (not unlabelled or value is not None):
        return "no_label" if value is None else NO_SUCH_CLASS
    said = raw.get("said")
    said = _parsed(said) if isinstance(said, str) else said
    return GoldRow(
        session_id=session,
        turn=turn,
        task=task.name,
        label=label,
        number=score(task, label) if label is not None else None,
        weight=_number(raw.get("weight")),
        unsure=raw.get("unsure") in (True, "true", "True"),
        by_labeller={str(k): v for k, v in said.items() if isinstance(v, str)} if isinstance(said, dict) else {},
        **{
            name: word
            for name in _WORDS
            if isinstance(word := raw.get(name) or raw.get(_ALSO.get(name, "")), str) and word
        },
    )


def _labelled(raw: dict[str, Any], columns: tuple[str, ...]) -> Any:
    return next((raw[name] for name in columns if raw.get(name) not in (None, "")), None)


def turn_in(raw: dict[str, Any]) -> int | None:
    """The turn that a row as it came says, from 1; None where it says none."""
    number = _number(raw.get("turn"))
    return int(number) if number is not None and number >= 1 and number.is_integer() else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 1e15 else None  # neither endless nor no number


def _cell(value: object) -> object:
    if value is None or value == {} or value is False:
        return ""
    if isinstance(value, dict):
        return json.dumps(value)
    return inert(value) if isinstance(value, str) else value


# -- A gold file that is written one label at a time: each replaces the whole file, whoever else writes meanwhile

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
            raise UsageError(f"Labels cannot be added to {path}.", "Name a file that ends in .jsonl.")
        if not self.path.parent.is_dir() or self.path.is_dir():
            raise SourceError(f"{path} can't be written.", "Name a file in a folder that exists.")
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
                    f"Another page or program labelled this item {standing} meanwhile. That label was kept.",
                    "Label it again to replace it.",
                )
            made = {"session_id": row.session_id, "turn": row.turn, "label": row.label}
            fresh = msgspec.to_builtins(row) | {"reason": row.reason, "unsure": row.unsure or None}
            kept = {name: value for name, value in (before | made | fresh).items() if value is not None}
            return [*lines[:at], json.dumps(made | kept).encode() + b"\n", *lines[at + 1 :]]

        try:
            with self._lock, locked(self.path.parent, f".{self.path.name}.lock", _WAIT_S):
                draft, name = tempfile.mkstemp(prefix=f".{self.path.name}.", suffix=".tmp", dir=self.path.parent)
                try:
                    with os.fdopen(draft, "wb") as out:
                        out.writelines(changed(self._lines()))
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
            raise SourceError(f"{self.path} can't be written: {why}.", "It is unchanged. Try again.") from problem

    def _lines(self) -> list[bytes]:
        try:
            if self.path.stat().st_size > MOST_BYTES:
                raise SourceError(
                    f"{self.path} is larger than {MOST_BYTES >> 20} MB.", "Name a smaller file of labels."
                )
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
    row = _parsed(line)
    if not isinstance(row, dict) or row.get("task") not in (None, "", task.name):
        return {}
    session = row.get("session_id") or row.get("session")
    return row if (session, turn_in(row) if task.level == "turn" else None) == key else {}
