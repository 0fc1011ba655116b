"""Rows of a run on disk, as JSON lines: a killed process loses nothing that it had added."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from agentsignals import private_files
from agentsignals.errors import LabError
from msgspec import Struct


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

    def __init__(self, path: Path, kind: type[R]) -> None:
        self._path = path
        self.rows: list[R] = self._read(kind)
        self._keys = {row.key for row in self.rows}

    def __contains__(self, key: tuple[object, ...]) -> bool:
        return key in self._keys

    def add(self, rows: Iterable[R]) -> None:
        """Adds the rows whose key is new; of several with one key the first. LabError for a number that is not finite:
        JSON has none."""
        by_key: dict[tuple[object, ...], R] = {}
        for row in rows:
            if row.key not in self._keys:
                by_key.setdefault(row.key, row)
        new = list(by_key.values())
        for row, name in product(new, new[0].__struct_fields__ if new else ()):
            value = getattr(row, name)
            if any(isinstance(x, float) and not isfinite(x) for x in (value if isinstance(value, tuple) else [value])):
                raise LabError(
                    f"{name} of the row {row.key} is {value}, which JSON does not have.",
                    "Look whether a class has no text here, or the model's numbers overflow.",
                )
        if not new:
            return
        self.rows += new
        self._keys |= {row.key for row in new}
        with private_files.open_file(self._path, "ab") as file:
            file.write(msgspec.json.Encoder().encode_lines(new))
            file.flush()
            os.fsync(file.fileno())

    def keep(self, wanted: Callable[[R], bool]) -> None:
        """Takes away all rows but the wanted ones; on disk, too, before this returns."""
        left = [row for row in self.rows if wanted(row)]
        if len(left) < len(self.rows):
            self._rewrite(left)

    def arrange(self, place: Callable[[R], Any]) -> None:
        """Orders the rows by their place: they come in the order in which work ends."""
        if (ordered := sorted(self.rows, key=place)) != self.rows:
            self._rewrite(ordered)

    def _rewrite(self, rows: list[R]) -> None:
        self.rows, self._keys = rows, {row.key for row in rows}
        beside = self._path.with_suffix(".new")
        private_files.write(beside, msgspec.json.Encoder().encode_lines(rows))
        beside.replace(self._path)

    def _read(self, kind: type[R]) -> list[R]:
        """The rows that are there. A last line that was cut by a kill is no row, and is taken away."""
        if not self._path.exists():
            return []
        held = self._path.read_bytes()
        whole = held[: held.rfind(b"\n") + 1]
        if len(whole) < len(held):
            with self._path.open("r+b") as file:
                file.truncate(len(whole))
        try:
            rows: list[R] = msgspec.json.Decoder(kind).decode_lines(whole)
        except msgspec.DecodeError as error:
            raise LabError(
                f"The rows in {self._path} are not those that this version writes: {error}", "Name a new folder."
            ) from error
        return rows


def read_any(path: Path) -> list[dict[str, Any]]:
    """Rows of a table of any kind; none where it is not there. LabError when it can't be read."""
    try:
        rows: list[dict[str, Any]] = msgspec.json.Decoder(dict).decode_lines(path.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        raise LabError(f"{path} can't be read: {error}", "Run the experiment again: it continues.") from error
    return rows
