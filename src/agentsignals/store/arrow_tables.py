"""Rows of the tables as Arrow has them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import msgspec
import pyarrow as pa

from agentsignals.model import Session
from agentsignals.store import parquet
from agentsignals.store.tables import COLUMNS, Table

_LARGEST = 2**63
_TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "timestamp[us]": pa.timestamp("us"),
    "list<string>": pa.list_(pa.string()),
}
SCHEMAS: dict[str, pa.Schema] = {
    name: pa.schema([pa.field(column, _TYPES[kind]) for column, kind in columns.items()])
    for name, columns in COLUMNS.items()
}


def session_table(sessions: list[Session], counted: list[dict[str, Any]]) -> pa.Table:
    """The sessions' header rows."""
    rows: dict[str, list[Any]] = {n: [] for n in COLUMNS["sessions"]}
    for session, figures in zip(sessions, counted, strict=True):
        for name, column in rows.items():
            if name in figures:
                column.append(figures[name])
            elif name == "n_events":
                column.append(len(session.events))
            elif name in ("trial_id", "attempt_index"):
                column.append(getattr(session.attempt, name, None))
            else:
                column.append(getattr(session, name))
    return _filled("sessions", list(rows.values()))


def table_of(table: Table, sessions: list[Session]) -> pa.Table:
    """The rows of a table for these sessions, in their order."""
    take = table.rows or (lambda _: [])
    rows: list[Any] = []
    counts: list[int] = []
    for session in sessions:
        session_rows = take(session)
        rows += session_rows
        counts.append(len(session_rows))
    ids = repeated([session.session_id for session in sessions], counts, pa.string())
    return _filled(table.name, [ids, *_transposed(rows, len(table.columns) - 1)])


def repeated(values: list[Any], counts: list[int], kind: pa.DataType) -> pa.Array:
    """Each value so many times."""
    there = [(value, count) for value, count in zip(values, counts, strict=True) if count]
    if not there:
        return pa.array([], kind)
    ends = pa.array(accumulate(count for _, count in there), pa.int32())
    return parquet.repeated(ends, array([value for value, _ in there], kind))


def rows_with_ids(table: Table, session_ids: list[str], rows: list[Any]) -> pa.Table:
    """The rows of a session's table whose sessions are named beside them."""
    return _filled(table.name, [session_ids, *_transposed(rows, len(table.columns) - 1)])


def plain_table(table: Table, rows: Sequence[Any]) -> pa.Table:
    """The rows of a table that carries its own ids: structs, or tuples of what these have."""
    return _filled(table.name, _transposed(rows, len(table.columns)))


def give_back() -> None:
    """Returns what tables took and hold no longer to the system: what comes next in this process adds to it."""
    pa.default_memory_pool().release_unused()


def of_today(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """With the columns of today: a shard may be of a time before one was added."""
    columns = [
        parquet.cast(table.column(f.name), f.type) if f.name in table.schema.names else pa.nulls(table.num_rows, f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)


def _transposed(rows: Sequence[Any], n_columns: int) -> list[Sequence[Any]]:
    if not rows:
        return [()] * n_columns
    return list(zip(*(rows if type(rows[0]) is tuple else map(msgspec.structs.astuple, rows)), strict=True))


def _filled(name: str, columns: list[Any]) -> pa.Table:
    schema = SCHEMAS[name]
    arrays = [
        values if isinstance(values, pa.Array) else array(values, field.type)
        for values, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values as a column; what none can hold is made so that it can."""
    if values and type(values[0]) is dict:
        values = [None if v is None else msgspec.json.encode(v).decode() for v in values]
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, UnicodeEncodeError, OverflowError):
        return pa.array([_clean(v) for v in values], kind)


def _clean(value: Any) -> Any:
    """A value that a column can hold: text without lone surrogates, whole numbers within 64 bits (others are noise)."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return None
    return value
