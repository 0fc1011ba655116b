"""The store's Parquet files, written and read at one place, so that what is wrong with one is told in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from agentsignals.errors import StoreError
from agentsignals.store import parquet
from agentsignals.store.files import Part, digest

_AT_ONCE = 32_768
"""Rows in memory at once, where a file is copied."""


def encoded(table: pa.Table, **options: Any) -> memoryview:
    """A table as the bytes of a Parquet file. `options` are pyarrow's."""
    sink = pa.BufferOutputStream()
    writer = parquet.writer(sink, table.schema, **{"compression": "zstd", **options})
    writer.write_table(table)
    writer.close()
    return memoryview(sink.getvalue())


def part_of(path: Path, data: memoryview, rows: int, file: str = "") -> Part:
    """The mark of a file just written."""
    return Part(data.nbytes, rows, digest(data), path.stat().st_mtime_ns, file)


def read(path: Path, columns: list[str] | None = None, only: str | None = None) -> pa.Table:
    """The rows of a file, or those of one session (`only`). StoreError when it is gone, or is no sound Parquet file."""
    try:
        with parquet.Reader(path) as file:
            return file.read(columns, only)
    except (OSError, pa.ArrowException) as problem:
        raise unreadable(path, problem) from problem


def pieces(path: Path, columns: list[str] | None = None, coded: list[str] | None = None) -> Iterator[pa.Table]:
    """The rows of a file, some at a time. `coded`: columns that stay dictionaries, whose few values are compared once
    each. StoreError as `read`."""
    try:
        with parquet.Reader(path, coded) as file:
            if not file.n_rows:
                yield file.schema.empty_table()
            for batch in file.batches(_AT_ONCE, columns):
                yield pa.Table.from_batches([batch])
    except (OSError, pa.ArrowException) as problem:
        raise unreadable(path, problem) from problem


def rows(path: Path, columns: list[str] | None = None, only: str | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a file with times as the model has them, microseconds. Else as `read`."""
    yield from plain_rows(read(path, columns, only))


def plain_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table with times as the model has them, microseconds."""
    for n, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(n, column.name, parquet.cast(table.column(n), pa.int64()))
    yield from table.to_pylist()


def without_sessions(table: pa.Table, sessions: set[str]) -> pa.Table:
    """The rows of a table about something else, which name these sessions no longer."""
    names = table.column_names
    changed: dict[str, list[Any]] = {}
    if "session_ids" in names:
        changed["session_ids"] = [
            [s for s in ids or [] if s not in sessions] for ids in table["session_ids"].to_pylist()
        ]
    if "session_id" in names:
        gone = [session_id in sessions for session_id in table["session_id"].to_pylist()]
        for name in {"session_id", "seq"} & set(names):
            values = table[name].to_pylist()
            changed[name] = [None if is_gone else value for is_gone, value in zip(gone, values, strict=True)]
    for name, values in changed.items():
        at = names.index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))
    return table


def unreadable(path: Path, problem: Exception) -> StoreError:
    """What is wrong with a file of the store, and what helps."""
    words = " ".join(str(problem).split())[:200]
    return StoreError(
        f"{path} can't be read: {words}.",
        "`agentsignals doctor` tells what is damaged; `doctor --repair` mends what can be mended.",
    )


def as_it_is(path: Path, file: str = "") -> Part:
    """The mark of a file that stands there, for an index that is made again. StoreError when it can't be read whole."""
    rows = read(path).num_rows
    try:
        data = path.read_bytes()
        return Part(len(data), rows, digest(data), path.stat().st_mtime_ns, file)
    except OSError as problem:
        raise unreadable(path, problem) from problem
