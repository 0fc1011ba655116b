"""Arrow's reader and writer of Parquet files, and the few of its functions that the store asks.

`pyarrow.parquet` and `pyarrow.compute` are layers over what is imported here. They also load file systems of clouds and
a documented Python function for each of Arrow's: 70 ms, a fifth of a run over one line more (docs/decisions/006). What
is imported is private to pyarrow, so it is asked for in this file alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow._compute import CastOptions, SetLookupOptions, call_function
from pyarrow._parquet import ParquetReader, ParquetWriter


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


def writer(sink: Any, schema: pa.Schema, **layout: Any) -> Any:
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
