"""Rows of a long session, held as columns: as structs they take several times the bytes of its file.

A row is its number in the columns, and has the fields of the struct that it stands for. Texts are in a file without a
name.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from agentsignals.model import Edit, Event, Session, Step, ToolCall, Turn

T = TypeVar("T", bound=Struct)

LARGE_BYTES = 16 * 1024 * 1024
"""Rows of files that are larger together are held as columns."""
_TEXTS = frozenset(("text", "arguments", "command", "call_id", "message_id"))
"""Texts that are rarely the same."""
_ABSENT: dict[str, Any] = {"B": -1, "H": -1, "i": -(2**31), "q": -(2**63), "d": -1.7976931348623157e308, "": None}
"""The number that stands for None, by the kind of its array; the last one is a list, for whatever there is."""
_WIDER = {"B": "H", "H": "i", "i": "q", "q": "", "d": ""}
_READ_BYTES = 1 << 16
_WRITTEN_BYTES = 1 << 18


class _Spool:
    """Texts in a file, each found by where it begins."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (open for as long as there are rows)
        self._written = 0
        self._waiting = bytearray()
        self._block, self._block_start = b"", 0

    def __del__(self) -> None:
        self._file.close()

    def put(self, text: str) -> int:
        data = text.encode("utf-8", "surrogatepass")
        at = self._written + len(self._waiting)
        self._waiting += len(data).to_bytes(4, "little")
        self._waiting += data
        if len(self._waiting) > _WRITTEN_BYTES:
            self._written += self._file.write(self._waiting)
            del self._waiting[:]
        return at

    def get(self, at: int) -> str:
        held: bytes | bytearray = self._block
        start = at - self._block_start
        end = start + 4
        if start < 0 or end > len(held) or (end := end + int.from_bytes(held[start:end], "little")) > len(held):
            if at >= self._written:
                held, start = self._waiting, at - self._written
            else:
                held, start = os.pread(self._file.fileno(), _READ_BYTES, at), 0
                if (n := int.from_bytes(held[:4], "little") + 4) > len(held):
                    held = os.pread(self._file.fileno(), n, at)
                self._block, self._block_start = held, at
            end = start + 4 + int.from_bytes(held[start : start + 4], "little")
        return held[start + 4 : end].decode("utf-8", "surrogatepass")


class _Column:
    """The numbers of a field. Nothing is kept of one that is the same in all rows."""

    def __init__(self, row: Any, name: str, kind: str, count: list[int]) -> None:
        self._row, self._name, self.kind, self._count = row, name, kind, count
        self.same: Any = None
        self.values: Any = None
        self.absent = _ABSENT[kind]
        self._has_absent = False
        self._install()

    def _install(self) -> None:
        same = self.same
        read = self._reader() if self.values is not None else lambda _: same
        setattr(self._row, self._name, property(read, self._set))

    def _reader(self) -> Callable[[int], Any]:
        values, absent = self.values, self.absent
        if self._has_absent:
            return lambda row: None if (value := values[row]) == absent else value
        read: Callable[[int], Any] = values.__getitem__
        return read

    def differ(self, n: int, value: Any) -> None:
        """Add the value of row `n`, the first that is not the same as all before."""
        if n == 0:
            self.same = value
            self._install()
        else:
            self._hold(n)
            self.append(value)

    def append(self, value: Any) -> None:
        """Add a value to those that differ."""
        try:
            if value is not None and value != self.absent:
                self.values.append(value)
                return
        except (OverflowError, TypeError):
            pass
        self.values.append(0)
        _Column._put(self, -1, value)

    def _hold(self, n: int) -> None:
        self.values = array(self.kind, [0])
        self._put(0, self.same)
        self.values *= n
        self._install()

    def _set(self, row: int, value: Any) -> None:
        if self.values is None:
            if value == self.same:
                return
            self._hold(self._count[0])
        self._put(row, value)

    def _put(self, at: int, value: Any) -> None:
        absent = self.absent
        if value is None:
            self.values[at] = absent
            if not self._has_absent:
                self._has_absent = True
                self._install()
            return
        try:
            self.values[at] = value
            if value != absent:
                return
        except (OverflowError, TypeError):
            pass
        self.kind = _WIDER[self.kind]
        wider = self.absent = _ABSENT[self.kind]
        held = (wider if self._has_absent and v == absent else v for v in self.values)
        self.values = array(self.kind, held) if self.kind else list(held)
        self._install()
        _Column._put(self, at, value)


class _Coded(_Column):
    """Texts and truths of which there are few, each kept once."""

    def __init__(self, row: Any, name: str, kind: str, count: list[int]) -> None:
        self._codes: dict[Any, int] = {}
        self._known: list[Any] = []
        super().__init__(row, name, kind, count)

    def _reader(self) -> Callable[[int], Any]:
        values, known = self.values, self._known
        return lambda row: known[values[row]]

    def _put(self, at: int, value: Any) -> None:
        code = self._codes.get(value)
        super()._put(at, self._code(value) if code is None else code)

    def append(self, value: Any) -> None:
        code = self._codes.get(value)
        super().append(self._code(value) if code is None else code)

    def _code(self, value: Any) -> int:
        code = self._codes[value] = len(self._known)
        self._known.append(value)
        return code


class _Texts(_Column):
    """Texts in the file."""

    def __init__(self, row: Any, name: str, kind: str, count: list[int], spool: _Spool) -> None:
        self._spool = spool
        super().__init__(row, name, kind, count)

    def _reader(self) -> Callable[[int], Any]:
        values, absent, text = self.values, self.absent, self._spool.get
        return lambda row: None if (at := values[row]) == absent else text(at)

    def _put(self, at: int, value: Any) -> None:
        super()._put(at, value if value is None else self._spool.put(value))

    def append(self, value: Any) -> None:
        super().append(value if value is None else self._spool.put(value))


class _Row(int):
    """A row: its number in the columns."""

    __slots__ = ()
    __eq__, __hash__ = object.__eq__, object.__hash__

    def __bool__(self) -> bool:
        return True


class _Table:
    """The columns of a struct, for all sessions that are read together."""

    def __init__(self, struct: type[Struct], spool: _Spool) -> None:
        members: dict[str, Any] = {name: made for name, made in vars(struct).items() if isinstance(made, property)}
        members |= {"__slots__": (), "__class__": property(lambda _: struct)}
        self.row: Any = type(struct.__name__, (_Row,), members)
        self.count = [0]
        self.columns: list[_Column] = []
        for name in struct.__struct_fields__:
            kind = struct.__annotations__[name]
            kind = "d" if "float" in kind else "i" if "int" in kind else "B"
            if name in _TEXTS:
                self.columns.append(_Texts(self.row, name, "i", self.count, spool))
            else:
                self.columns.append((_Coded if kind == "B" else _Column)(self.row, name, kind, self.count))


class _Rows(list[T]):
    """The rows of a session. A struct that is added is not kept: its values are."""

    def __init__(self, table: _Table) -> None:
        super().__init__()
        self._table = table

    def append(self, row: T) -> None:
        table = self._table
        n = table.count[0]
        table.count[0] = n + 1
        for column, value in zip(table.columns, astuple(row), strict=True):
            if column.values is not None:
                column.append(value)
            elif value != column.same or not n:
                column.differ(n, value)
        super().append(table.row(n))

    def extend(self, rows: Iterable[T]) -> None:
        for row in rows:
            self.append(row)


_ROWS: dict[str, type[Struct]] = {"turns": Turn, "steps": Step, "events": Event, "tool_calls": ToolCall, "edits": Edit}
_tables: ContextVar[dict[str, _Table] | None] = ContextVar("_tables", default=None)
"""The tables of the sessions that are read now; None: they are not large."""


@contextmanager
def held(n_bytes: int) -> Iterator[None]:
    """Hold the rows of sessions that are read in this context as columns if their files have so many bytes."""
    spool = _Spool() if n_bytes > LARGE_BYTES else None
    made = {name: _Table(struct, spool) for name, struct in _ROWS.items()} if spool is not None else None
    before = _tables.set(made)
    try:
        yield
    finally:
        _tables.reset(before)


def hold(session: Session) -> None:
    """Hold the rows of a new session as columns, if it is read in such a context."""
    for name, table in (_tables.get() or {}).items():
        setattr(session, name, _Rows(table))
