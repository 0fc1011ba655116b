"""Parquet files of the store and Arrow tables of its rows.

`pyarrow.parquet` and `pyarrow.compute` are layers over the private modules imported here. They also load cloud file
systems and a documented Python function for each of Arrow's: 70 ms, a fifth of a run over one more line
(docs/decisions/006). So the private modules are used in this file alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyarrow._compute import CastOptions, SetLookupOptions, call_function
from pyarrow._parquet import ParquetReader, ParquetWriter

from agentsignals.errors import AgentSignalsError, StoreError, out_of_memory
from agentsignals.model import Absent, Session
from agentsignals.signals import Signal
from agentsignals.signals.catalog import Result
from agentsignals.store.disk import StoredFile, digest
from agentsignals.store.tables import COLUMNS, Table


class Reader:
    """An open Parquet file. OSError and ArrowException where it can't be read. `coded` columns stay dictionaries."""

    def __init__(self, path: Path, coded: list[str] | None = None) -> None:
        self._reader = ParquetReader()
        self._reader.open(str(path), read_dictionary=coded)
        self.schema: pa.Schema = self._reader.schema_arrow
        self.n_rows: int = self._reader.metadata.num_rows

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *problem: object) -> None:
        self._reader.close()

    def read(self, columns: list[str] | None = None, session_id: str | None = None) -> pa.Table:
        """Return all rows, or those of a session."""
        indices = None if columns is None else self._indices(columns)
        if session_id is None:
            return self._reader.read_all(column_indices=indices)
        groups = [n for n in range(self._reader.num_row_groups) if self._may_hold(n, session_id)]
        table = self._reader.read_row_groups(groups, column_indices=indices)
        return filter_rows(table, equals(table["session_id"], session_id))

    def batches(self, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows, this many at a time."""
        groups = range(self._reader.num_row_groups)
        indices = None if columns is None else self._indices(columns)
        return iter(self._reader.iter_batches(rows, row_groups=groups, column_indices=indices))

    def _indices(self, columns: list[str]) -> list[int]:
        places: dict[str, int] = {path[0]: n for n, path in enumerate(self._reader.column_paths)}
        if missing := [name for name in columns if name not in places]:
            raise pa.ArrowInvalid(f"There is no column {missing[0]} in {', '.join(places)}")
        return [places[name] for name in columns]

    def _may_hold(self, group: int, session_id: str) -> bool:
        (at,) = self._indices(["session_id"])
        bounds = self._reader.metadata.row_group(group).column(at).statistics
        return bounds is None or not bounds.has_min_max or bounds.min <= session_id <= bounds.max


def parquet_writer(sink: Any, schema: pa.Schema, **layout: Any) -> Any:
    """Return a writer of tables (`write_table`); the file is complete after `close`. `layout` is pyarrow's."""
    return ParquetWriter(sink, schema, version="2.6", writer_engine_version="V2", **layout)


def filter_rows(table: pa.Table, mask: Any) -> pa.Table:
    return call_function("filter", [table, mask])


def is_in(column: Any, values: Iterable[str | None]) -> Any:
    """Return a mask: the values of a column that are among these."""
    return call_function("is_in", [column], SetLookupOptions(pa.array(values, pa.string())))


def without_values(table: pa.Table, column: str, values: Iterable[str | None]) -> pa.Table:
    """Return the rows in which a column has none of these values."""
    return filter_rows(table, call_function("invert", [is_in(table[column], values)]))


def cast(column: Any, kind: pa.DataType) -> Any:
    """Return a column as another type. ArrowInvalid where a value would be lost."""
    return call_function("cast", [column], CastOptions.safe(kind))


def equals(column: Any, value: str | int) -> Any:
    """Return a mask: the values of a column equal to this one."""
    return call_function("equal", [column, pa.scalar(value, column.type)])


def is_null(column: Any) -> Any:
    """Return a mask: the missing values of a column."""
    return call_function("is_null", [column])


def logical_and(mask: Any, other: Any) -> Any:
    """Return a mask: true where both are."""
    return call_function("and", [mask, other])


# Files: what is wrong with one becomes a StoreError

_AT_ONCE = 32_768
"""Rows in memory at once, where a file is copied."""


def encode(table: pa.Table, **options: Any) -> memoryview:
    """Return a table as the bytes of a Parquet file. `options` are pyarrow's."""
    sink = pa.BufferOutputStream()
    writer = parquet_writer(sink, table.schema, **{"compression": "zstd", **options})
    writer.write_table(table)
    writer.close()
    return memoryview(sink.getvalue())


def stored_file(path: Path, data: memoryview, rows: int, file: str = "") -> StoredFile:
    """Return the index entry of a file just written."""
    return StoredFile(data.nbytes, rows, digest(data), path.stat().st_mtime_ns, file)


def read(path: Path, columns: list[str] | None = None, only: str | None = None) -> pa.Table:
    """Return the rows of a file, or those of one session (`only`). StoreError when it is gone or invalid."""
    try:
        with Reader(path) as file:
            return file.read(columns, only)
    except (OSError, pa.ArrowException) as problem:
        raise unreadable(path, problem) from problem


def read_batches(path: Path, columns: list[str] | None = None, coded: list[str] | None = None) -> Iterator[pa.Table]:
    """Yield the rows of a file in batches. `coded` columns stay dictionaries, so that their few values are compared
    once each. StoreError as `read`."""
    try:
        with Reader(path, coded) as file:
            if not file.n_rows:
                yield file.schema.empty_table()
            for batch in file.batches(_AT_ONCE, columns):
                yield pa.Table.from_batches([batch])
    except (OSError, pa.ArrowException) as problem:
        raise unreadable(path, problem) from problem


def read_rows(path: Path, columns: list[str] | None = None, only: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file as dicts, times in microseconds. StoreError as `read`."""
    yield from rows_of(read(path, columns, only))


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as dicts, times in microseconds."""
    for n, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(n, column.name, cast(table.column(n), pa.int64()))
    yield from table.to_pylist()


def without_session_ids(table: pa.Table, sessions: set[str]) -> pa.Table:
    """Remove these session ids from rows that are about something else."""
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


def unreadable(path: Path, problem: Exception) -> AgentSignalsError:
    """Return the error for a file of the store that can't be read; nothing is wrong with it where memory is short."""
    if short := out_of_memory(problem):
        return short
    words = " ".join(str(problem).split())[:200]
    return StoreError(
        f"{path} can't be read: {words}.",
        "`agentsignals doctor` lists the damage; `agentsignals doctor --repair` repairs what it can.",
    )


def examine(path: Path, file: str = "") -> StoredFile:
    """Read a file whole and return its entry for a rebuilt index. The entry of one that can't be read matches nothing:
    it is damaged, and said to be so."""
    try:
        rows, data = read(path).num_rows, path.read_bytes()
        return StoredFile(len(data), rows, digest(data), path.stat().st_mtime_ns, file)
    except (OSError, StoreError) as problem:
        if short := out_of_memory(problem):
            raise short from problem
        return StoredFile(0, 0, "", 0, file)


# Tables

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


def child_table(table: Table, sessions: list[Session]) -> pa.Table:
    """Return the rows of a table for these sessions, in their order."""
    take = table.rows or (lambda _: [])
    rows: list[Any] = []
    counts: list[int] = []
    for session in sessions:
        session_rows = take(session)
        rows += session_rows
        counts.append(len(session_rows))
    ids = repeat_values([session.session_id for session in sessions], counts, pa.string())
    return _filled(table.name, [ids, *_transposed(rows, len(table.columns) - 1)])


def repeat_values(values: list[Any], counts: list[int], kind: pa.DataType) -> pa.Array:
    """Repeat each value its number of times."""
    there = [(value, count) for value, count in zip(values, counts, strict=True) if count]
    if not there:
        return pa.array([], kind)
    ends = pa.array(accumulate(count for _, count in there), pa.int32())
    runs = pa.RunEndEncodedArray.from_arrays(ends, array([value for value, _ in there], kind))
    return call_function("run_end_decode", [runs])


def labelled_rows_table(table: Table, session_ids: list[str], rows: list[Any]) -> pa.Table:
    """Return rows of a session's table whose session ids are given separately."""
    return _filled(table.name, [session_ids, *_transposed(rows, len(table.columns) - 1)])


def plain_table(table: Table, rows: Sequence[Any]) -> pa.Table:
    """Return rows that carry their own ids: structs, or tuples of their fields."""
    return _filled(table.name, _transposed(rows, len(table.columns)))


def release_memory() -> None:
    """Return unused memory of Arrow to the system, so that the next shard does not add to it."""
    pa.default_memory_pool().release_unused()


def with_current_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Add columns that a file of an older version lacks."""
    columns = [
        cast(table.column(f.name), f.type) if f.name in table.schema.names else pa.nulls(table.num_rows, f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)


def _transposed(rows: Sequence[Any], n_columns: int) -> list[Sequence[Any]]:
    if not rows:
        return [()] * n_columns
    if isinstance(rows[0], int):  # numbers of rows in columns (`model.columnar`), whose fields read like a record's
        struct: Any = rows[0].__class__
        return [list(map(attrgetter(name), rows)) for name in struct.__struct_fields__]
    return list(zip(*(rows if type(rows[0]) is tuple else map(msgspec.structs.astuple, rows)), strict=True))


def _filled(name: str, columns: list[Any]) -> pa.Table:
    schema = SCHEMAS[name]
    arrays = [
        values if isinstance(values, pa.Array) else array(values, field.type)
        for values, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values as a column; values that a column can't hold are cleaned."""
    if values and type(values[0]) is dict:
        values = [None if v is None else msgspec.json.encode(v).decode() for v in values]
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, UnicodeEncodeError, OverflowError):
        return pa.array([_clean(v) for v in values], kind)


def _clean(value: Any) -> Any:
    """Return text without lone surrogates, and None for whole numbers beyond 64 bits (they are noise)."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return None
    return value


# Signal values, column by column: a session has a hundred and more, a shard of small sessions half a million

_NUMBERS = frozenset((bool, int, float))
_OF_A_SESSION = frozenset(("session", "attempt", "region"))


class SignalRows(Struct, kw_only=True, gc=False):
    """Signal values of a session, of an eval attempt, or of the whole store, as columns of equal length."""

    session_id: str | None
    trial_id: str | None
    attempt_index: int | None
    whole: str
    """Level of values without a turn: `session` or `attempt`."""
    signal: list[Signal]
    turn: list[int | None]
    value: list[bytes | None]
    number: list[float | None]
    absent: list[str | None]
    absent_detail: list[str | None]
    detail: list[bytes | None]


def signal_rows(session: Session | None, results: list[Result]) -> SignalRows:
    """Return computed values in the long form: of a session, of an eval attempt, or (None) of the whole store."""
    encode = msgspec.json.encode
    attempt = session.attempt if session is not None else None
    values = [r.value for r in results]
    kinds = [*map(type, values)]
    return SignalRows(
        session_id=session.session_id if session is not None else None,
        trial_id=attempt.trial_id if attempt is not None else None,
        attempt_index=attempt.attempt_index if attempt is not None else None,
        whole="attempt" if attempt is not None else "session",
        signal=[r.signal for r in results],
        turn=[r.turn for r in results],
        value=[None if k is Absent else encode(v) for v, k in zip(values, kinds, strict=True)],
        number=[float(v) if k in _NUMBERS else None for v, k in zip(values, kinds, strict=True)],
        absent=[v.reason if k is Absent else None for v, k in zip(values, kinds, strict=True)],
        absent_detail=[v.detail or None if k is Absent else None for v, k in zip(values, kinds, strict=True)],
        detail=[encode(r.detail) if r.detail else None for r in results],
    )


def of_sessions(values: pa.Table, which: Sequence[int], session_ids: Sequence[str]) -> pa.Table:
    """Return a row a session: those of `values` with these numbers, as the sessions' own."""
    at, ids = values.schema.get_field_index("session_id"), array(session_ids, pa.string())
    rows = call_function("take", [values, pa.array(which, pa.int32())])
    return rows.set_column(at, values.schema.field(at), ids)


def signal_table(rows: Sequence[SignalRows]) -> pa.Table:
    """Return the table of these values, in their order."""
    schema = SCHEMAS["signals"]
    signals = list({s.path: s for r in rows for s in r.signal}.values())
    places = {s.path: place for place, s in enumerate(signals)}
    place = pa.array([places[s.path] for r in rows for s in r.signal], pa.int32())
    paths, versions = (
        pa.array([s.path for s in signals], pa.string()),
        pa.array([s.version for s in signals], pa.int64()),
    )
    counts = [len(r.signal) for r in rows]
    columns: dict[str, Any] = {
        "level": array(
            [
                "turn" if turn is not None else r.whole if signal.level in _OF_A_SESSION else signal.level
                for r in rows
                for signal, turn in zip(r.signal, r.turn, strict=True)
            ],
            pa.string(),
        ),
        **{
            name: repeat_values([getattr(r, name) for r in rows], counts, schema.field(name).type)
            for name in ("session_id", "trial_id", "attempt_index")
        },
        **{
            name: array([v for r in rows for v in getattr(r, name)], schema.field(name).type)
            for name in ("turn", "value", "number", "absent", "absent_detail", "detail")
        },
        "signal": call_function("take", [paths, place]),
        "version": call_function("take", [versions, place]),
    }
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
