"""The sessions that a number counts: what a study notes of its figures while somebody asks, and at no other time.

A study says it where it makes the figure: an `Estimate` of `clusters` knows its parts, `count`, `bar` and `table` take
theirs as `behind`. So a list of sessions can't differ from the number that opens it (design/findings.md#drill-down).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

from agentsignals.analysis.study import Row, Table

Part = tuple[str, float, float]
"""Session, k, n: what it has of a numerator, and of what that is of."""


class Asked(NamedTuple):
    """A question to the store, where a study's rows are sums over sessions: rows of session_id and n."""

    sql: str
    values: dict[str, Any]


class Closed(NamedTuple):
    """What counts no sessions, and why."""

    reason: str


Each: TypeAlias = "Iterable[str | Part | Row]"
"""Ids; parts; rows with a session_id, each of which counts its `n` where it has one, and else for one."""
Counted: TypeAlias = "Each | Callable[[], Each] | Asked | Closed"
"""A function makes its parts when they are asked for: the windows of a line hold each observation many times."""
Ask = Callable[[str, Mapping[str, Any]], list[Row]]
LONGEST_NAME = 80
_IN_BRACKETS = re.compile(r" \([^()]*\)$")
_marks: ContextVar[dict[int, tuple[Row, Counted]]] = ContextVar("marks")
_notes: ContextVar[dict[str, Counted] | None] = ContextVar("notes", default=None)


def note_sessions(name: str, counted: Counted | None) -> None:
    """The sessions of a figure, by its id, or a table's id and the name of its row, parted by a colon."""
    notes = _notes.get()
    if notes is not None and counted is not None:
        notes[name] = counted


def note_rows(table: Table, behind: Sequence[Counted | None] | Closed) -> None:
    """The sessions of each row of a table."""
    if _notes.get() is None:
        return
    each = [behind] * len(table.rows) if isinstance(behind, Closed) else behind
    for name, counted in zip(row_names(table), each, strict=True):
        note_sessions(f"{table.id}:{name}", counted)


def note_mark(mark: Row, counted: Counted | None) -> None:
    """The sessions of a chart's mark; `note_marks` tells which chart it is of."""
    if _notes.get() is not None and counted is not None:
        _marks.get()[id(mark)] = mark, counted


def note_marks(chart: str, marks: Sequence[Row]) -> None:
    """The sessions of the marks of a chart, by its id, as far as they were told."""
    if _notes.get() is None:
        return
    for name, mark in zip(mark_names(marks), marks, strict=True):
        if id(mark) in _marks.get():
            note_sessions(f"{chart}:{name}", _marks.get()[id(mark)][1])


@contextmanager
def noting() -> Iterator[dict[str, Counted]]:
    """What each figure of the studies that run meanwhile counts."""
    notes: dict[str, Counted] = {}
    tokens = _notes.set(notes), _marks.set({})
    try:
        yield notes
    finally:
        _notes.reset(tokens[0])
        _marks.reset(tokens[1])


def parts_of(counted: Counted, ask: Ask) -> dict[str, tuple[float, float]]:
    """k and n of each session that has any, largest k first; of equal ones by id."""
    return dict(sorted(sums_of(counted, ask).items(), key=lambda item: (-item[1][0], item[0])))


def sums_of(counted: Counted, ask: Ask) -> dict[str, tuple[float, float]]:
    """The same in no order."""
    rows = ask(counted.sql, counted.values) if isinstance(counted, Asked) else counted
    each = () if isinstance(rows, Closed) else rows() if callable(rows) else rows
    sums: dict[str, tuple[float, float]] = {}
    for session_id, k, n in map(_part, each):
        if n or k:
            before = sums.get(session_id, (0, 0))
            sums[session_id] = before[0] + k, before[1] + n
    return sums


def _part(counted: str | Part | Row) -> Part:
    if isinstance(counted, str):
        return counted, 1, 1
    if isinstance(counted, tuple):
        return counted
    n: float = counted.get("n", 1)
    return counted["session_id"], n, n


def row_names(table: Table) -> list[str]:
    """What each row is called: the cells in front of its first figure, and of those called alike which it is."""
    first = next((i for i, column in enumerate(table.columns) if column.kind not in ("text", "code", "session")), None)
    return _told_apart([row[: first or 1] for row in table.rows])


def mark_names(marks: Sequence[Row]) -> list[str]:
    """What each mark of a chart is called: its name without the figure in brackets, and where it stands: its column,
    its place in a row, or the day it begins."""
    return _told_apart([[_IN_BRACKETS.sub("", str(mark.get("name"))), _stands(mark)] for mark in marks])


def _stands(mark: Row) -> Any:
    day: str | None = mark.get("from")
    return mark.get("at", mark.get("column", day and day[:10]))


def _told_apart(rows: list[list[Any]]) -> list[str]:
    from agentsignals.redaction import without_keys  # noqa: PLC0415  (0.1 s, which a run over nothing new does without)

    names: dict[str, int] = {}
    shown: list[str] = []
    for cells in rows:
        name = " · ".join(without_keys(str(cell)) for cell in cells if cell is not None)[:LONGEST_NAME]
        names[name] = names.get(name, 0) + 1
        shown.append(name if names[name] == 1 else f"{name} ({names[name]})")
    return shown
