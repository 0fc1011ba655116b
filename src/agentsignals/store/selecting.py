"""Which SQL a question may be: one SELECT that reads tables, as DuckDB's own parser sees it.

A statement's type is not enough: a SELECT may hold a `COPY … TO` or an INSERT as a common table expression, and table
functions that read files, pointers, secrets, or SQL out of a text. So what stands anywhere in the parsed tree is let
through by name, and all else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentsignals.errors import QueryError

if TYPE_CHECKING:
    import duckdb

_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""Parts of a query that only read."""
_TABLE_FUNCTIONS = frozenset({"generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest"})
"""Those that make their rows from what they are given."""
_SCHEMAS = frozenset({"", "main"})
_GAP = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_EXPLAIN = re.compile(
    rf"(?:{_GAP}|;)*EXPLAIN(?![\w$])(?P<analyze>{_GAP}*ANALYZE(?![\w$]))?(?:{_GAP}*(?P<options>\(\s*(?:ANALYZE|FORMAT)\b[\w\s,]*\)))?",
    re.IGNORECASE | re.DOTALL,
)


class Select(NamedTuple):
    """A query that only reads."""

    sql: str
    tables: frozenset[str] | None
    """The tables it names, and its own common table expressions; None when it asks which tables there are."""


_HINT = (
    "One SELECT, FROM, WITH, VALUES, TABLE, DESCRIBE, SHOW TABLES, SUMMARIZE, or PIVOT … IN (…) over the store's"
    " tables, or EXPLAIN of one of these."
)


def one_select(connection: duckdb.DuckDBPyConnection, query: str, tables: Collection[str] | None = None) -> Select:
    """The query, when it is one SELECT or the EXPLAIN of one; QueryError, with what is allowed, when it is not.

    `tables`: what it may read, beside its own common table expressions and `information_schema`; None for whatever the
    connection has.
    """
    if "\0" in query or any("\ud800" <= c <= "\udfff" for c in query):
        raise QueryError("The query has a character in it that no text has: NUL, or half of a surrogate pair.", _HINT)
    tree = _tree(connection, query)
    explained = _EXPLAIN.match(query) if tree is None else None
    if explained is not None:
        # What we have seen to is the rest alone, so it is put behind words of our own: where a comment ends, and what
        # an option is, is not decided here.
        query = query[explained.end() :]
        tree = _tree(connection, query)
    if tree is None:
        raise QueryError("The store is read only, and this is no SELECT.", _HINT)
    if len(tree) != 1:
        raise QueryError(f"{len(tree)} statements came; one SELECT is allowed.", "Ask one question at a time.")
    parts = list(_parts(tree))
    _check(parts, tables)
    if explained is not None:
        analyze = "ANALYZE " if explained["analyze"] else ""
        query = f"EXPLAIN {analyze}{explained['options'] or ''} {query}"
    return Select(query, _named(parts))


def _named(parts: Iterable[dict[str, Any]]) -> frozenset[str] | None:
    names = set()
    for part in parts:
        kind = part.get("type")
        if kind == "BASE_TABLE" and str(part.get("schema_name", "")).lower() in _SCHEMAS:
            names.add(str(part.get("table_name", "")).lower())
        elif kind == "BASE_TABLE" or (kind == "SHOW_REF" and part.get("query") is None):
            return None
    return frozenset(names)


def _tree(connection: duckdb.DuckDBPyConnection, query: str) -> list[Any] | None:
    """The statements as DuckDB parses them; None when one is no SELECT."""
    try:
        row = connection.cursor().execute("SELECT json_serialize_sql(?)", [query]).fetchone()
        parsed = msgspec.json.decode(row[0]) if row else {}
    except (RecursionError, msgspec.DecodeError) as problem:
        raise QueryError(f"The query can't be read: {problem}.", _HINT) from problem
    if not parsed.get("error"):
        statements: list[Any] = parsed["statements"]
        return statements
    if parsed.get("error_type") == "not implemented":
        return None
    raise QueryError(f"DuckDB refuses the query: {parsed.get('error_message')}", _HINT)


def _check(parts: list[dict[str, Any]], tables: Collection[str] | None) -> None:
    """QueryError when a part does more than read the tables."""
    inside = {str(entry["key"]).lower() for part in parts for entry in _entries(part)}
    readable = None if tables is None else {name.lower() for name in tables} | inside
    for part in parts:
        kind = part.get("type")
        if not isinstance(kind, str):
            continue
        if kind.endswith("_NODE") and kind not in _NODES:
            raise QueryError(f"The store is read only; this has a part that writes ({kind}).", _HINT)
        if kind == "TABLE_FUNCTION" and (name := _called(part)) not in _TABLE_FUNCTIONS:
            raise QueryError(
                f"The table function {name!r} is not let through: a query reads the store's tables alone.",
                f"Those that are: {', '.join(sorted(_TABLE_FUNCTIONS))}.",
            )
        if kind == "BASE_TABLE" and readable is not None:
            _check_table(part, readable)


def _check_table(part: dict[str, Any], readable: set[str]) -> None:
    name, schema = str(part.get("table_name", "")).lower(), str(part.get("schema_name", "")).lower()
    of_store = schema in _SCHEMAS and name in readable
    if not of_store and schema != "information_schema":
        raise QueryError(
            f"The store has no table {part.get('table_name')!r}.", f"The tables: {', '.join(sorted(readable))}."
        )


def _called(part: dict[str, Any]) -> str:
    """A table function's name; one with a schema before it, which need not be DuckDB's, has none here."""
    function = part.get("function") or {}
    named = str(function.get("function_name", "")).lower()
    return named if not function.get("schema") and not function.get("catalog") else f"{function.get('schema')}.{named}"


def _entries(part: dict[str, Any]) -> list[Any]:
    """A query's common table expressions."""
    held = part.get("cte_map")
    return list(held.get("map") or ()) if isinstance(held, dict) else []


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """All objects of a tree of JSON."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
