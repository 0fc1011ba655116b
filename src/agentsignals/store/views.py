"""What a query sees: each table of the store as a view over its files, and one row an entity made of its values."""

from __future__ import annotations

from agentsignals.catalog import Signal, catalogue
from agentsignals.store import tables

_TYPES = {"int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "str": "VARCHAR", "enum": "VARCHAR"}
_DUCK = {
    "string": "VARCHAR",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "timestamp[us]": "TIMESTAMP",
    "list<string>": "VARCHAR[]",
}
_CONTEXTS = {"product": "product", "eval": "eval"}
"""What may be asked for, as written into SQL."""
_WIDE = {
    "session_signals": ("session", "session_id"),
    "turn_signals": ("turn", "session_id, turn"),
    "attempt_signals": ("attempt", "trial_id, attempt_index, session_id"),
}
"""Level and keys of the views with a column a signal."""
NAMES = (*tables.NAMES, *tables.OF_REPOSITORIES, *_WIDE)


def needs(name: str, context: str | None) -> tuple[str, ...]:
    """The views that this one is made of."""
    if name in _WIDE:
        return ("signals",)
    of_sessions = context is not None and name != "sessions" and "session_id" in tables.COLUMNS[name]
    return ("sessions",) if of_sessions else ()


def of_context(rows: str, name: str, context: str | None) -> str:
    """The SELECT of a view, without the rows of another context's sessions; the view `sessions` holds no other."""
    if context is None or name in _WIDE or "session_id" not in tables.COLUMNS[name]:
        return rows
    if name == "sessions":
        return f"SELECT * FROM ({rows}) WHERE context = '{_CONTEXTS[context]}'"  # noqa: S608  (one of two words)
    inside = "session_id IS NULL OR session_id IN (SELECT session_id FROM sessions)"
    return f"SELECT * FROM ({rows}) WHERE {inside}"  # noqa: S608  (paths quoted by listed)


def rows(files: list[str], name: str) -> str:
    """The rows of a view, with the columns that its files have."""
    if name in _WIDE:
        return _wide(*_WIDE[name])
    if not files:
        return _none(name)
    return f"SELECT * FROM read_parquet({listed(files)}, union_by_name=true)"  # noqa: S608  (quoted by listed)


def rows_with_all_columns(files: list[str], table: str) -> str:
    """The rows of these files with the columns of today: a file of an older program has NULL in those it lacks."""
    return f"{_none(table)} UNION ALL BY NAME {rows(files, table)}"


def columns(table: str) -> list[tuple[str, str]]:
    """The columns of today with their types in DuckDB."""
    return [(name, _DUCK[kind]) for name, kind in tables.COLUMNS[table].items()]


def listed(paths: list[str]) -> str:
    """Paths as a list in SQL."""
    return "[" + ", ".join("'" + p.replace("'", "''") + "'" for p in paths) + "]"


def _none(table: str) -> str:
    """The columns of a table, and no row."""
    return f"SELECT {', '.join(f'NULL::{kind} AS {_name(name)}' for name, kind in columns(table))} WHERE false"


def _wide(level: str, keys: str) -> str:
    """One row an entity, one column a signal, typed as declared; lists and objects are JSON text."""
    other = "product" if level == "attempt" else "eval"  # a signal of one context has no column in the other's view
    whole = ("attempt", "session", "region") if level in ("attempt", "session") else (level,)
    wanted = [s for s in catalogue().values() if s.level in whole and (level == "turn" or s.context != other)]
    columns = ", ".join(_column(s) for s in wanted)
    return f"SELECT {keys}{', ' if columns else ''}{columns} FROM signals WHERE level = '{level}' GROUP BY {keys}"  # noqa: S608


def _column(signal: Signal) -> str:
    path = signal.path.replace("'", "''")
    raw = (
        f"max(CASE WHEN signal = '{path}' THEN value END)"  # FILTER, a hundred times, takes DuckDB eight times as long
    )
    kind = _TYPES.get(signal.type)
    if kind == "VARCHAR":
        raw = f"json_extract_string({raw}, '$')"
    elif kind:
        raw = f"TRY_CAST({raw} AS {kind})"
    return f"{raw} AS {_name(signal.path)}"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
