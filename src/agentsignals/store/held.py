"""What many questions ask, read once and held by DuckDB for one connection."""

from __future__ import annotations

import re
from collections.abc import Collection

from agentsignals.store import tables
from agentsignals.store.query import Connection

_OFTEN_ASKED = ("turns", "tool_calls", "steps")
_MOST_HELD = 40_000
"""Rows of a table that is held: of more, memory is dearer than reading the asked columns again."""
_ID, _REASON = "numbered_session", "numbered_reason"
_NUMBERED = (
    f"CREATE TEMP TYPE {_ID} AS ENUM "  # noqa: S608  (names of ours)
    "(SELECT session_id FROM (SELECT session_id FROM signals UNION SELECT session_id FROM sessions)"
    " WHERE session_id IS NOT NULL ORDER BY 1);"
    f" CREATE TEMP TYPE {_REASON} AS ENUM (SELECT DISTINCT absent FROM signals WHERE absent IS NOT NULL ORDER BY 1)"
)
"""Ids, and reasons why a value is absent, as numbers to DuckDB: half of the memory, and quicker to join and to order.
To everybody else they are the same texts in the same order."""


def hold_asked(
    connection: Connection, queries: Collection[str], sessions: str, named: str, signals: Collection[str]
) -> None:
    """Holds what these queries ask: the rows of `sessions` under that name, columns of the tables that are often asked
    and are small, and under the name `named` these signals."""
    if "sessions" in connection.held:
        return
    connection.seeing({"signals", "sessions"}).execute(_NUMBERED)
    numbered = f"SELECT * REPLACE (CAST(session_id AS {_ID}) AS session_id) FROM ({sessions})"  # noqa: S608  (ours)
    connection.hold("sessions", numbered)
    for table in _OFTEN_ASKED:
        columns = _columns(table, queries)
        connection.hold(table, f"SELECT {columns} FROM {table}", _MOST_HELD)  # noqa: S608  (names of ours)
    paths = ", ".join(f"'{path}'" for path in signals)
    numbers = {"session_id": _ID, "absent": _REASON, "signal": f"ENUM({paths})"} if signals else {}
    cast = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in numbers.items())
    replaced = f"REPLACE ({cast}) " if cast else ""
    connection.hold(named, f"SELECT * {replaced}FROM ({of_signals(signals)})")


def _columns(table: str, queries: Collection[str]) -> str:
    """The columns that queries name; all where one takes all."""
    starred = re.compile(rf"\*[^()]*\b(?:FROM|JOIN) {table}\b|\b{table}\.\*")
    words = {word for sql in queries for word in re.findall(r"\w+", sql)}
    named = [f'"{name}"' for name in tables.COLUMNS[table] if name in words]
    return ", ".join(named) if named and not any(map(starred.search, queries)) else "*"


def of_signals(signals: Collection[str]) -> str:
    """The rows of these signals."""
    among = ", ".join(f"'{path}'" for path in signals)
    wanted = f"signal IN ({among})" if signals else "false"
    return f"SELECT session_id, turn, signal, value, number, absent, detail FROM signals WHERE {wanted}"  # noqa: S608  (paths out of queries of ours)
