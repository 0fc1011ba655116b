"""Arrow's reader and writer of Parquet files, and the few of its functions that the store asks.

`pyarrow.parquet` and `pyarrow.compute` are layers over what is imported here. They also load file systems of clouds and
a documented Python function for each of Arrow's: 70 ms, a fifth of a run over one line more (docs/decisions/006). What
is imported is private to pyarrow, so it is asked for in this file alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyarrow._compute import CastOptions, SetLookupOptions, call_function
from pyarrow._parquet import ParquetReader, ParquetWriter

from agentsignals.errors import StoreError
from agentsignals.model import Absent, Session
from agentsignals.signals import Signal
from agentsignals.signals.catalog import Result
from agentsignals.store.files import Part, digest
from agentsignals.store.tables import COLUMNS, Table


class Reader:
    """An open file. OSError and ArrowException where it can't be read. `coded`: columns that stay dictionaries."""

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
        """All rows, or those of a session."""
        indices = None if columns is None else self._indices(columns)
        if session_id is None:
            return self._reader.read_all(column_indices=indices)
        groups = [n for n in range(self._reader.num_row_groups) if self._may_hold(n, session_id)]
        table = self._reader.read_row_groups(groups, column_indices=indices)
        return chosen(table, equals(table["session_id"], session_id))

    def batches(self, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, so many at a time."""
        groups = range(self._reader.num_row_groups)
        indices = None if columns is None else self._indices(columns)
        return iter(self._reader.iter_batches(rows, row_groups=groups, column_indices=indices))

    def _indices(self, columns: list[str]) -> list[int]:
        """Where the values of columns lie: a list's are below its name."""
        places: dict[str, int] = {path[0]: n for n, path in enumerate(self._reader.column_paths)}
        if missing := [name for name in columns if name not in places]:
            raise pa.ArrowInvalid(f"There is no column {missing[0]} in {', '.join(places)}")
        return [places[name] for name in columns]

    def _may_hold(self, group: int, session_id: str) -> bool:
        """Whether rows of a session may be among those of a row group."""
        (at,) = self._indices(["session_id"])
        bounds = self._reader.metadata.row_group(group).column(at).statistics
        return bounds is None or not bounds.has_min_max or bounds.min <= session_id <= bounds.max


def parquet_writer(sink: Any, schema: pa.Schema, **layout: Any) -> Any:
    """Writes tables of a schema with `write_table`; the file is whole after `close`. `layout` is pyarrow's."""
    return ParquetWriter(sink, schema, version="2.6", writer_engine_version="V2", **layout)


def chosen(table: pa.Table, mask: Any) -> pa.Table:
    """The rows for which the mask is true."""
    return call_function("filter", [table, mask])


def is_in(column: Any, values: Iterable[str | None]) -> Any:
    """For each value of a column whether it is one of these."""
    return call_function("is_in", [column], SetLookupOptions(pa.array(values, pa.string())))


def without(table: pa.Table, column: str, values: Iterable[str | None]) -> pa.Table:
    """The rows in which a column has none of these values."""
    return chosen(table, call_function("invert", [is_in(table[column], values)]))


def cast(column: Any, kind: pa.DataType) -> Any:
    """A column as another type. ArrowInvalid where a value would be lost."""
    return call_function("cast", [column], CastOptions.safe(kind))


def equals(column: Any, value: str | int) -> Any:
    """For each value of a column whether it is this one."""
    return call_function("equal", [column, pa.scalar(value, column.type)])


def is_null(column: Any) -> Any:
    """For each value of a column whether there is none."""
    return call_function("is_null", [column])


def both(mask: Any, other: Any) -> Any:
    """For each value of two masks whether both are true."""
    return call_function("and", [mask, other])


def taken(values: pa.Array, places: pa.Array) -> pa.Array:
    """The values at these places."""
    return call_function("take", [values, places])


def repeated(ends: pa.Array, values: pa.Array) -> pa.Array:
    """Each value until its end."""
    return call_function("run_end_decode", [pa.RunEndEncodedArray.from_arrays(ends, values)])


# The store's Parquet files, written and read at one place, so that what is wrong with one is told in words.

_AT_ONCE = 32_768
"""Rows in memory at once, where a file is copied."""


def encoded(table: pa.Table, **options: Any) -> memoryview:
    """A table as the bytes of a Parquet file. `options` are pyarrow's."""
    sink = pa.BufferOutputStream()
    writer = parquet_writer(sink, table.schema, **{"compression": "zstd", **options})
    writer.write_table(table)
    writer.close()
    return memoryview(sink.getvalue())


def part_of(path: Path, data: memoryview, rows: int, file: str = "") -> Part:
    """The mark of a file just written."""
    return Part(data.nbytes, rows, digest(data), path.stat().st_mtime_ns, file)


def read(path: Path, columns: list[str] | None = None, only: str | None = None) -> pa.Table:
    """The rows of a file, or those of one session (`only`). StoreError when it is gone, or is no sound Parquet file."""
    try:
        with Reader(path) as file:
            return file.read(columns, only)
    except (OSError, pa.ArrowException) as problem:
        raise unreadable(path, problem) from problem


def pieces(path: Path, columns: list[str] | None = None, coded: list[str] | None = None) -> Iterator[pa.Table]:
    """The rows of a file, some at a time. `coded`: columns that stay dictionaries, whose few values are compared once
    each. StoreError as `read`."""
    try:
        with Reader(path, coded) as file:
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
            table = table.set_column(n, column.name, cast(table.column(n), pa.int64()))
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


# Rows of the tables as Arrow has them.

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
    ids = repeated_arrow_tables([session.session_id for session in sessions], counts, pa.string())
    return _filled(table.name, [ids, *_transposed(rows, len(table.columns) - 1)])


def repeated_arrow_tables(values: list[Any], counts: list[int], kind: pa.DataType) -> pa.Array:
    """Each value so many times."""
    there = [(value, count) for value, count in zip(values, counts, strict=True) if count]
    if not there:
        return pa.array([], kind)
    ends = pa.array(accumulate(count for _, count in there), pa.int32())
    return repeated(ends, array([value for value, _ in there], kind))


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
        cast(table.column(f.name), f.type) if f.name in table.schema.names else pa.nulls(table.num_rows, f.type)
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


# Computed values as rows of the table `signals`, column by column: a session has a hundred and more, a shard of
# small sessions half a million, and a tuple for each would be taken apart again for its columns.

_NUMBERS = frozenset((bool, int, float))
_OF_A_SESSION = frozenset(("session", "attempt", "region"))


class SignalRows(Struct, kw_only=True, gc=False):
    """The values of a session, of an eval run's attempt, or of the whole store; a column each, alike in length."""

    session_id: str | None
    trial_id: str | None
    attempt_index: int | None
    whole: str
    """The level of what is of no turn: `session` or `attempt`."""
    signal: list[Signal]
    turn: list[int | None]
    value: list[bytes | None]
    number: list[float | None]
    absent: list[str | None]
    absent_detail: list[str | None]
    detail: list[bytes | None]


def signal_rows(session: Session | None, results: list[Result]) -> SignalRows:
    """Computed values in the long form: of a session, of an eval run's attempt, or (None) of the whole store."""
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


def signal_table(rows: Sequence[SignalRows]) -> pa.Table:
    """The table of these values, in their order."""
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
        "level": array(_levels(rows), pa.string()),
        **{
            name: repeated_arrow_tables([getattr(r, name) for r in rows], counts, schema.field(name).type)
            for name in ("session_id", "trial_id", "attempt_index")
        },
        **{
            name: array([v for r in rows for v in getattr(r, name)], schema.field(name).type)
            for name in ("turn", "value", "number", "absent", "absent_detail", "detail")
        },
        "signal": taken(paths, place),
        "version": taken(versions, place),
    }
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _levels(rows: Sequence[SignalRows]) -> list[str]:
    return [
        "turn" if turn is not None else r.whole if signal.level in _OF_A_SESSION else signal.level
        for r in rows
        for signal, turn in zip(r.signal, r.turn, strict=True)
    ]
