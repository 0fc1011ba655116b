"""What a query sees: each table of the store as a view over its files, and one row an entity made of its values."""

from __future__ import annotations

import base64
import json

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
NO_FINDINGS = "The findings of the store as it now is are not computed."
FIND = "`agentsignals findings`, or agentsignals.find(store) for each context, computes and keeps them."
NAMES = (*tables.NAMES, *tables.OF_REPOSITORIES, *_WIDE, "findings")


def needs(name: str, context: str | None) -> tuple[str, ...]:
    """The views that this one is made of."""
    if name in _WIDE:
        return ("signals",)
    of_sessions = context is not None and name != "sessions" and "session_id" in tables.COLUMNS[name]
    return ("sessions",) if of_sessions else ()


def of_context(rows: str, name: str, context: str | None) -> str:
    """The SELECT of a view, without the rows of another context's sessions; the view `sessions` holds no other."""
    if context is None or name in _WIDE or not {"session_id", "context"} & tables.COLUMNS[name].keys():
        return rows
    if name in ("sessions", "findings"):
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


def findings(kept: list[bytes] | None) -> str:
    """The rows of `findings`, out of the lists that were kept (JSON). They hold words of traces: no quote gets out. Of
    none the columns alone; to read them is an error."""
    if kept is None:
        return f"{_none('findings')} OR error('{NO_FINDINGS} {FIND}') IS NULL"
    inside = {n: kind for n, kind in columns("findings") if n not in ("context", "rank", "low", "high")}
    held = {n: [kind[:-2]] if kind.endswith("[]") else kind for n, kind in inside.items()}
    shape = json.dumps([{"context": "VARCHAR", "answers": [{**held, "interval": ["DOUBLE"]}]}])
    text = base64.b64encode(b"[" + b",".join(kept) + b"]").decode()
    lists = f"SELECT unnest(from_json(decode(from_base64('{text}')), '{shape}')) AS list"
    ranks = "generate_subscripts(list.answers, 1) AS rank, unnest(list.answers) AS made"
    rows = f"SELECT list.context AS context, {ranks} FROM ({lists})"  # noqa: S608
    ends = {"context": "context", "rank": "rank", "low": "made.interval[1]", "high": "made.interval[2]"}
    chosen = (f"{ends.get(n, f'made.{_name(n)}')} AS {_name(n)}" for n, _ in columns("findings"))
    return f"SELECT {', '.join(chosen)} FROM ({rows}) ORDER BY context DESC, rank"  # noqa: S608


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
