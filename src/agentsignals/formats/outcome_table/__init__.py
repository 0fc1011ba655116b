"""Tables of outcomes, a row an attempt (design/formats.md#tables-of-outcomes): CSV, JSON, JSON Lines, Parquet. Columns
are known by their usual names."""

from __future__ import annotations

import csv
import io
import math
import mmap
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from agentsignals.formats import Claim, Format, pieces_by
from agentsignals.formats.head import Head

_NAMED_TASK = ("instance_id", "task_id", "problem_id", "task_name")
_TASK = (*_NAMED_TASK, "task", "problem")
"""The first are of a task and nothing else; the others are also topics, todo lists, kinds of work."""
_PASSED = (
    "resolved", "is_resolved", "solved", "is_solved", "passed", "is_passed", "success", "is_success", "successful",
    "succeeded", "correct", "is_correct", "pass", "outcome", "verdict",
)  # fmt: skip
_SCORED = ("reward", "score")
_MODEL = ("model_id", "model", "model_name", "model_name_or_path")
_AGENT = ("agent_type", "agent", "agent_name", "scaffold", "system", "harness")
_RUN = ("run_id", "run", "run_name", "submission", "submission_id", "experiment", "experiment_id")
_SUMS = frozenset((
    "n", "count", "n_samples", "num_samples", "n_tasks", "num_tasks", "n_instances", "num_instances", "n_trials",
    "num_trials", "num_runs", "n_runs", "total", "accuracy", "stderr", "std", "pass_rate", "success_rate",
    "resolve_rate", "resolved_rate", "mean_score", "avg_score", "average", "pass_1", "pass_at_1", "rank",
))  # fmt: skip
"""Columns of rows that sum up several attempts, and so are no attempts."""
KNOBS = {
    "model_id": _MODEL,
    "agent_type": _AGENT,
    "agent_version": ("agent_version",),
    "dataset": ("dataset", "benchmark"),
    "split": ("split",),
    "condition": ("condition",),
    "seed": ("seed",),
    "repeat": ("attempt", "attempt_index", "epoch", "repetition", "repeat"),
    "reasoning_effort": ("reasoning_effort", "effort"),
    "temperature": ("temperature",),
    "tools": ("tools",),
    "timeout_s": ("timeout_s",),
    "attempt1_tool_cap": ("tool_cap", "attempt1_tool_cap"),
    "max_steps": ("max_steps", "max_turns", "step_limit"),
    "max_retries": ("max_retries", "retries"),
    "cost_limit": ("cost_limit",),
}
"""Columns that say who was tried, by their usual names, best first. Other columns belong to the table."""
FIGURES = {
    "run_id": _RUN,
    "cost_usd": ("cost_usd", "total_cost_usd", "cost"),
    "input_tokens": ("input_tokens", "n_input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "n_output_tokens", "completion_tokens"),
    "wall_time_s": ("wall_time_s", "duration_s", "duration_seconds", "elapsed_s", "runtime_s"),
    "exit_status": ("exit_status", "failure_mode"),
    "model_patch": ("model_patch",),
}
_YES = frozenset(("true", "yes", "1", "1.0", "resolved", "solved", "pass", "passed", "success", "correct"))
_NO = frozenset(
    ("false", "no", "0", "0.0", "unresolved", "unsolved", "fail", "failed", "failure", "incorrect", "wrong")
)
_NOT_JUDGED = frozenset(("", "none", "null", "nan", "na", "n/a", "error", "timeout", "skipped", "not_judged"))
_LONGEST_NAME = 300
"""Characters of a task's name: what is longer is its text."""
_APART = re.compile(r"[\s.@/-]+")


class Columns(Struct, frozen=True, kw_only=True):
    """The columns of a table that are read, as the table spells them."""

    task: str | None
    passed: str | None
    """Says yes or no."""
    score: str | None
    """A number."""
    settings: dict[str, str]
    """Columns by the name of the knob or figure."""
    lacks: str
    """The reason for which it is no table of outcomes; empty where it is."""
    is_near: bool = False
    """It lacks one thing alone, and what it has hardly anything else has."""
    is_swe_bench: bool = False

    @property
    def outcomes(self) -> list[str]:
        return [name for name in (self.passed, self.score) if name is not None]

    @property
    def read(self) -> frozenset[str]:
        return frozenset((*self.outcomes, *self.settings.values(), *([self.task] if self.task else [])))


def columns_of(names: Iterable[str]) -> Columns:
    """Recognise columns by their names, in any case and with any signs between the words."""
    return _columns_of(tuple(names))


@lru_cache(maxsize=1024)
def _columns_of(names: tuple[str, ...]) -> Columns:
    """Asked of every file of JSON, by two formats; an agent's records begin alike."""
    spelt: dict[str, str] = {}
    for name in names:
        spelt.setdefault(_APART.sub("_", name.strip().lower()).strip("_"), name)
    task, passed, score = (_first(spelt, usual) for usual in (_TASK, _PASSED, _SCORED))
    usually = (*KNOBS.items(), *FIGURES.items())
    settings = {knob: column for knob, usual in usually if (column := _first(spelt, usual)) is not None}
    is_swe_bench = "instance_id" in spelt and "resolved" in spelt
    has_id = any(usual in spelt for usual in _NAMED_TASK)
    is_tried = any(usual in spelt for usual in (*_MODEL, *_AGENT, *_RUN))
    lacks = [
        reason
        for reason, is_there in (
            ("no_task_column", task is not None and (has_id or passed is not None)),
            ("no_outcome_column", passed is not None or score is not None),
            ("no_model_column", is_tried or is_swe_bench),
            ("rows_of_sums", _SUMS.isdisjoint(spelt)),
        )
        if not is_there
    ]
    return Columns(
        task=task,
        passed=passed,
        score=score,
        settings=settings,
        lacks=lacks[0] if lacks else "",
        is_near=len(lacks) == 1
        and (passed is not None or lacks == ["no_outcome_column"])
        and (has_id or lacks == ["no_task_column"]),
        is_swe_bench=is_swe_bench,
    )


def _first(spelt: Mapping[str, str], usual: Iterable[str]) -> str | None:
    return next((spelt[name] for name in usual if name in spelt), None)


def are_rows(rows: Sequence[Mapping[str, Any]], columns: Columns) -> bool:
    """Return whether most of these rows are outcomes. A broken row costs only itself."""
    return 2 * sum(is_row(row, columns) for row in rows) > len(rows)


def is_row(row: Mapping[str, Any], columns: Columns) -> bool:
    """Return whether a row names a task and has valid values in its columns of outcomes."""
    task = row.get(columns.task or "")
    is_named = (isinstance(task, str) and 0 < len(task) <= _LONGEST_NAME) or (
        type(task) is int and not columns.is_swe_bench
    )
    passed, score = row.get(columns.passed or ""), row.get(columns.score or "")
    return (
        is_named
        and any(name in row for name in columns.outcomes)
        and (is_missing(passed) or verdict(passed) is not None)
        and (is_missing(score) or score_of(score) is not None)
    )


def is_missing(value: object) -> bool:
    """Return whether a value says that nobody judged."""
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in _NOT_JUDGED)  # noqa: PLR0124


def verdict(value: object) -> bool | None:
    """Return True or False for a word or number that people write so, and None for anything else."""
    word = str(value).strip().lower() if isinstance(value, bool | int | float | str) else ""
    return True if word in _YES else False if word in _NO else None


def score_of(value: object) -> float | None:
    """Return a number; None for anything else, including yes and no."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


PARQUET = b"PAR1"
_AT_ONCE = 1_024
_UNPACKED_MAX = 256 * 1024**2
"""Decompressed bytes of the read columns in one row group."""
_LONGEST = 64 * 1024
"""Longest value that is kept. A dictionary page may hold one huge value for a million rows."""


def names(data: bytes) -> list[str]:
    """Return the names of the columns, which stand at the end of the file. None of a file that is not Parquet."""
    import pyarrow as pa  # noqa: PLC0415  (for tables only)
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        return [str(name) for name in pq.read_schema(pa.BufferReader(pa.py_buffer(data))).names]
    except (pa.ArrowException, OSError):
        return []


def rows(data: bytes, wanted: Collection[str], longest: int = _LONGEST) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield rows by number with the wanted columns. A group that can't be read gives the reason instead.

    A text longer than `longest` becomes None. Lists and objects are not read: a few kilobytes can hold gigabytes of
    them.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    buffer = pa.BufferReader(pa.py_buffer(data))
    try:
        metadata = pq.read_metadata(buffer)
        schema = [metadata.schema.column(n) for n in range(len(metadata.schema))]
        is_text = {
            c.path: c.physical_type == "BYTE_ARRAY" and c.logical_type.type in ("STRING", "NONE") for c in schema
        }
        texts = [path for path in is_text if is_text[path] and path in wanted]
        opened = pq.ParquetFile(buffer, metadata=metadata, read_dictionary=texts, pre_buffer=False)
    except (pa.ArrowException, OSError, ValueError, KeyError):
        yield 0, "bad_parquet"
        return
    with opened as file:
        fields = {field.name for field in file.schema_arrow if not pa.types.is_nested(field.type)}
        columns = [name for name in dict.fromkeys(file.schema_arrow.names) if name in wanted and name in fields]
        stop = 0
        for group in range(file.metadata.num_row_groups):
            about = file.metadata.row_group(group)
            at, stop = stop, stop + about.num_rows
            inside = (about.column(n) for n in range(about.num_columns))
            unpacked = (c.total_uncompressed_size for c in inside if c.path_in_schema.split(".")[0] in columns)
            if sum(unpacked) > _UNPACKED_MAX:
                yield at, "row_group_too_large"
                continue
            try:
                for batch in file.iter_batches(batch_size=_AT_ONCE, row_groups=[group], columns=columns):
                    # A value that a dictionary holds once is made once, however many rows have it.
                    values = [_values(column, longest) for column in batch.columns]
                    for row in zip(*values, strict=True):
                        at += 1
                        yield at, dict(zip(batch.schema.names, row, strict=True))
            except (pa.ArrowException, OSError, ValueError, OverflowError):
                yield at, "bad_parquet"


def _values(column: Any, longest: int) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(column.type):
        texts = [v if not isinstance(v, str) or len(v) <= longest else None for v in column.dictionary.to_pylist()]
        return [None if n is None else texts[n] for n in column.indices.to_pylist()]
    return list(column.to_pylist())


_SEPARATORS = ",\t;"
_FIRST_ROWS = 12


def first_rows(text: str, complete: bool) -> tuple[list[str], list[dict[str, str]]]:
    """Return the header and some rows of a possible table, without rows if most are not as wide as the header."""
    line = text.partition("\n")[0]
    separator = max(_SEPARATORS, key=line.count)
    if separator not in line:
        return [], []
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    rows: list[list[str]] = []
    try:
        for row in reader:
            rows += [row] if row else []
            if len(rows) > _FIRST_ROWS + 1:
                break
    except csv.Error:
        return [], []
    if not complete and len(rows) <= _FIRST_ROWS + 1:
        rows = rows[:-1]  # cut by the window
    header, body = (rows[0], rows[1 : _FIRST_ROWS + 1]) if rows else ([], [])
    whole = [dict(zip(header, row, strict=True)) for row in body if len(row) == len(header)]
    return header, whole if 2 * len(whole) > len(body) else []


def header_of(text: str) -> list[str]:
    """Return the names in the first line, or none if it is no header."""
    line = text.partition("\n")[0].rstrip("\r")
    try:
        return next(csv.reader([line], delimiter=max(_SEPARATORS, key=line.count)), [])
    except csv.Error:
        return []


def rows_of(data: bytes) -> Iterator[tuple[int, dict[str, str] | str]]:
    """Yield each row with the number of its last line, or a reason if it is not as wide as the header. One row at a
    time: a file may be larger than memory."""
    lines = _lines(data)
    first = next(lines, "")
    header = header_of(first)
    reader = csv.reader(lines, delimiter=max(_SEPARATORS, key=first.count))
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield reader.line_num + 1, "bad_shape"
            continue
        if row:
            yield reader.line_num + 1, dict(zip(header, row, strict=True)) if len(row) == len(header) else "bad_shape"


def _lines(data: bytes) -> Iterator[str]:
    file = data if isinstance(data, mmap.mmap) else io.BytesIO(data)
    file.seek(0)
    encoding = "utf-8-sig"
    while line := file.readline():
        yield line.decode(encoding, "replace")
        encoding = "utf-8"


CONVERSATIONS = frozenset(("messages", "conversation", "conversations", "trajectory", "trace", "history", "steps"))
"""Columns of conversations: rows of JSON that have them are other formats'."""


def claims(head: Head) -> Claim | None:
    """Recognise a table by its columns and its first rows.

    A JSON table that lacks a column is not claimed. Other kinds are read by no other format, so they are claimed and
    say what they lack. Trials below its folder take their verdicts from it.
    """
    folder = posixpath.dirname(head.path)
    if head.looks_like_json:
        return Claim(keys=[], judges=folder) if is_of_json(head) else None
    rows: list[dict[str, str]] = []
    if is_parquet := head.data.startswith(PARQUET):
        header = names(head.data) if head.complete else []
    else:
        header, rows = first_rows(head.text, head.complete)
    columns = columns_of(header)
    if columns.lacks:
        is_table = columns.is_near and (is_parquet or bool(rows))
    else:
        is_table = is_parquet or (bool(rows) and are_rows(rows, columns))
    return Claim(keys=[], judges=folder) if is_table else None


def is_of_json(head: Head) -> bool:
    """Return whether a file is such a table in JSON. Formats whose rows have the same names ask this too."""
    rows = (head.items or head.records) if head.looks_like_json else []
    if not rows or any(isinstance(row.get(name), list) for row in rows[:1] for name in CONVERSATIONS):
        return False
    columns = columns_of(list(rows[0]))
    if columns.lacks or not (columns.is_swe_bench or len(rows) > 1):
        return False  # one object with such keys may be anything
    return are_rows(rows, columns)


FORMAT = Format(
    name="outcome-table",
    version=2,
    claims=claims,
    pieces=pieces_by("outcome_table.reader"),
    of_json=None,
    weight=500,
    snapshots=False,
)
