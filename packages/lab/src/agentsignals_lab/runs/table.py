"""Rows of a run on disk: a journal that a killed process loses nothing of, and Parquet when the run is whole."""

from __future__ import annotations

import os
import types
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from agentsignals import private_files
from agentsignals.errors import LabError
from msgspec import Struct

_ARROW: dict[Any, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


class Row(Struct, frozen=True):
    """A row of a table. Fields are text, numbers, truth values, lists of these, or None where unknown."""

    KEY: ClassVar[tuple[str, ...]] = ()
    """The fields that say which piece of work a row is of: one that is there is not done again."""

    @property
    def key(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.KEY)


R = TypeVar("R", bound=Row)


class Table(Generic[R]):
    """The rows of one kind. `add` returns when the row is on disk."""

    def __init__(self, folder: Path, name: str, kind: type[R]) -> None:
        self.name, self.kind = name, kind
        self._parquet, self._path = folder / f"{name}.parquet", folder / f"{name}.jsonl"
        # A kill between the two steps of `settle` leaves rows in both places: the same ones.
        self.rows: list[R] = self._once([*self._settled(), *self._journalled()])
        self._keys = {row.key for row in self.rows}

    def __contains__(self, key: tuple[object, ...]) -> bool:
        return key in self._keys

    def add(self, rows: Iterable[R]) -> None:
        """Rows of one piece of work: all of them are kept, or after a kill in between none."""
        new = [row for row in rows if row.key not in self._keys]
        if not new:
            return
        # First here: an interrupt while the line is written ends in `settle`, which writes what is here.
        self.rows += new
        self._keys |= {row.key for row in new}
        with private_files.open_file(self._path, "ab") as journal:
            # One line for all, so that half of a piece of work is never taken for the whole.
            journal.write(msgspec.json.encode([msgspec.to_builtins(row) for row in new]) + b"\n")
            journal.flush()
            os.fsync(journal.fileno())

    def keep(self, wanted: Callable[[R], bool]) -> None:
        """Takes away all rows but the wanted ones; on disk, too, before this returns."""
        left = [row for row in self.rows if wanted(row)]
        if len(left) < len(self.rows):
            self.rows, self._keys = left, {row.key for row in left}
            self.settle()

    def arrange(self, place: Callable[[R], Any]) -> None:
        """Orders the rows by their place, for when they are settled: they come in the order in which work ends."""
        self.rows.sort(key=place)

    def settle(self) -> Path:
        """Writes all rows as one Parquet file, replaces the last one, and drops the journal."""
        columns = {name: [getattr(row, name) for row in self.rows] for name in self.kind.__struct_fields__}
        arrow = pa.table(columns, schema=_schema(self.kind))
        beside = self._parquet.with_suffix(".parquet.new")
        private_files.create(beside)
        pq.write_table(arrow, beside)
        beside.replace(self._parquet)
        self._path.unlink(missing_ok=True)
        return self._parquet

    def _once(self, rows: list[R]) -> list[R]:
        if not self.kind.KEY:
            return rows
        first: dict[tuple[object, ...], R] = {}
        for row in rows:
            first.setdefault(row.key, row)
        return list(first.values())

    def _settled(self) -> list[R]:
        if not self._parquet.exists():
            return []
        try:
            return msgspec.convert(pq.read_table(self._parquet).to_pylist(), list[self.kind])  # type: ignore[name-defined]  # the table's own kind
        except (pa.ArrowInvalid, msgspec.ValidationError) as error:
            raise LabError(
                f"{self._parquet} holds other rows than this version writes: {error}", "Take a new folder."
            ) from error

    def _journalled(self) -> list[R]:
        """Return the rows added since. A last line that was cut by a kill is no row, and is taken away."""
        if not self._path.exists():
            return []
        held, rows = self._path.read_bytes(), []
        whole = held[: held.rfind(b"\n") + 1]
        if len(whole) < len(held):
            with self._path.open("r+b") as journal:
                journal.truncate(len(whole))
        for line in whole.splitlines():
            try:
                rows += msgspec.json.decode(line, type=list[self.kind])  # type: ignore[name-defined]  # as above
            except msgspec.DecodeError as error:
                raise LabError(f"{self._path} can't be read: {error}", "Take a new folder.") from error
        return rows


def read_any(path: Path) -> tuple[list[str], list[list[Any]]]:
    """Column names and rows of a table of any kind, as they were settled. LabError when it can't be read."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise LabError(f"{path} can't be read: {error}", "Run it again: it goes on.") from error
    columns = [column.to_pylist() for column in table.columns]
    return list(table.column_names), [list(row) for row in zip(*columns, strict=True)]


def _schema(kind: type[Row]) -> pa.Schema:
    hints = typing.get_type_hints(kind)
    return pa.schema([(name, _arrow(hints[name])) for name in kind.__struct_fields__])


def _arrow(hint: Any) -> pa.DataType:
    """The column type of a field's annotation."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (hint,) = (each for each in typing.get_args(hint) if each is not types.NoneType)
    if typing.get_origin(hint) is typing.Literal:
        return pa.string()
    if typing.get_origin(hint) in (list, tuple):
        return pa.list_(_arrow(typing.get_args(hint)[0]))
    return _ARROW[hint]
