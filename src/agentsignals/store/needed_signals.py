"""The signals that a query needs, read from its syntax tree: values of others need not be computed to answer it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

LONG = "signals"
"""The table with a row a value."""
_EVERY_COLUMN = ("STAR", "PIVOT", "NATURAL", "POSITIONAL_REFERENCE")
"""Classes and types of nodes that may read columns without their names."""


def needed_signals(tree: Any, wide: Collection[str], values: Iterable[Any] = ()) -> frozenset[str] | None:
    """Return the signals whose values a parsed query reads, with names that are no signals; None where it reads, or may
    read, those of all. `wide`: views with a column a signal. `values`: those of its parameters.

    The table `signals` is restricted by a condition on its column `signal` in the WHERE of the same SELECT; a wide view
    by the columns that the query names, since signals that every run computes have all of its rows.
    """
    bound = frozenset(_texts(values))
    nodes = list(inner_nodes(tree, into_described=False))
    found: set[str] = set()
    restricted = 0
    for node in nodes:
        if node.get("type") == "SELECT_NODE":
            condition = node.get("where_clause")
            for table in _tables(node.get("from_table")):
                if _name(table) == LONG:
                    name = str(table.get("alias") or LONG).lower()
                    signals = None if condition is None else _restricted(condition, name, bound)
                    if signals is None:
                        return None
                    found |= signals
                    restricted += 1
    read = [node for node in nodes if node.get("type") == "BASE_TABLE"]
    named = [_name(table) for table in read]
    if named.count(LONG) > restricted:  # in a PIVOT, or wherever else a table may be named
        return None
    if any(table.get("column_name_alias") for table in read if _name(table) in {LONG, *wide}):
        return None
    if any(name in wide for name in named):
        if any(node.get(key) in _EVERY_COLUMN for node in nodes for key in ("class", "type", "ref_type")):
            return None
        columns = [str(node["column_names"][-1]) for node in nodes if node.get("class") == "COLUMN_REF"]
        columns += [column for node in nodes for column in node.get("using_columns") or ()]
        aliases = {str(table.get("alias") or "").lower() for table in read}
        if any(column.lower() in {*wide, *aliases} - {""} for column in columns):  # a row as one value
            return None
        found.update(columns)
    return frozenset(found)


def inner_nodes(tree: Any, *, into_described: bool = True) -> Iterator[dict[str, Any]]:
    """Yield all nodes of a parsed query; those of a DESCRIBE, which reads names of columns alone, if asked for."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if not into_described and part.get("type") == "SHOW_REF" and part.get("show_type") == "DESCRIBE":
                continue
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _tables(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the tables of a FROM, without those of its subqueries."""
    if isinstance(part, dict):
        if part.get("type") == "BASE_TABLE":
            yield part
        elif part.get("type") == "JOIN":
            yield from _tables(part.get("left"))
            yield from _tables(part.get("right"))


def _name(table: dict[str, Any]) -> str:
    return str(table.get("table_name", "")).lower()


def _restricted(condition: dict[str, Any], table: str, bound: frozenset[str]) -> frozenset[str] | None:
    """Return the signals to which a condition restricts the rows; None where it may let others through."""
    kind, children = condition.get("type"), condition.get("children") or []
    if kind == "CONJUNCTION_AND":
        either = [found for child in children if (found := _restricted(child, table, bound)) is not None]
        return min(either, key=len, default=None)
    if kind == "CONJUNCTION_OR":
        every = [_restricted(child, table, bound) for child in children]
        return None if None in every else frozenset().union(*(found for found in every if found is not None))
    if kind == "COMPARE_EQUAL":
        others = [side for key in ("left", "right") if not _is_signal(side := condition.get(key), table)]
        return _constants(others, bound) if len(others) == 1 else None
    if kind == "COMPARE_IN" and children and _is_signal(children[0], table):
        return _constants(children[1:], bound)
    if kind == "FUNCTION" and condition.get("function_name") in ("contains", "list_contains"):
        # `signal IN $names`, as DuckDB parses it.
        given = children or [argument.get("expression") for argument in condition.get("arguments") or []]
        if len(given) == 2 and _is_signal(given[1], table):
            return _constants(given[:1], bound)
    return None


def _is_signal(part: Any, table: str) -> bool:
    if not isinstance(part, dict) or part.get("class") != "COLUMN_REF":
        return False
    *of, column = (str(name).lower() for name in part["column_names"])
    return column == "signal" and (not of or of[-1] == table)


def _constants(parts: Iterable[Any], bound: frozenset[str]) -> frozenset[str] | None:
    """Return the texts that these expressions may be; None where one is no constant and no parameter."""
    found: set[str] = set()
    for part in parts:
        if part.get("class") == "PARAMETER":
            found |= bound
        elif part.get("class") == "CONSTANT":
            held = part.get("literal") or part.get("value") or {}
            found.add(str(held.get("text", held.get("value", ""))))
        else:
            return None
    return frozenset(found)


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple | set | frozenset):
            yield from _texts(value)
