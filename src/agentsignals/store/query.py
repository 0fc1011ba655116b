"""Questions in SQL: DuckDB views over the store's files, read only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from agentsignals.catalog import Signal, catalogue
from agentsignals.errors import QueryError
from agentsignals.store import repositories, tables
from agentsignals.store.selecting import one_select

if TYPE_CHECKING:
    from agentsignals.store import Store

_Result = TypeVar("_Result")
_TYPES = {"int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "str": "VARCHAR", "enum": "VARCHAR"}
_CONTEXTS = {"product": "product", "eval": "eval"}
"""What may be asked for, as written into SQL."""
_OF_FILES = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException, duckdb.InternalException)
"""What DuckDB raises when a file can't be read."""
_ROWS_A_FETCH = 10_000
_SHARE_OF_LIMIT = 0.5 / 0.8
"""DuckDB would take 80 % of the machine's (or the container's) memory: a query that needs more than half of it ends
with an error."""
_LIMITS: dict[str, str | bool | int | float | list[str]] = {
    "temp_directory": "",  # no spilling, which for a database in memory goes to the folder we were started in
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_persistent_secrets": "false",  # which are in the person's home
    "python_enable_replacements": "false",  # a name of no table would be looked up among Python's variables
}


@contextmanager
def _in_words() -> Iterator[None]:
    """What DuckDB refuses, as a QueryError."""
    try:
        yield
    except duckdb.OutOfMemoryException as problem:
        raise QueryError(
            "The query needs more than half of this machine's memory, which is what it may take.",
            "Name the columns, filter, aggregate, or add LIMIT.",
        ) from problem
    except duckdb.Error as problem:
        raise QueryError(
            f"DuckDB refuses the query: {problem}",
            f"The tables: {', '.join(view_names())}. `DESCRIBE table` names a table's columns.",
        ) from problem


@_in_words()
def connect(store: Store, context: str | None = None) -> duckdb.DuckDBPyConnection:
    """A connection that sees the store's views and can read nothing else, and write nothing at all.

    `context`: the views hold only what belongs to sessions of this context (`product`, `eval`), and what belongs to no
    session.
    """
    store.refresh()
    connection = duckdb.connect(":memory:", config=_LIMITS)
    _limit_memory(connection)
    readable = []
    wanted = context if context is not None and contexts(store) - {context} else None
    for table in tables.NAMES:
        files = [str(path) for path in store.files(table)]
        readable += files
        connection.execute(f"CREATE VIEW {table} AS {_of_context(_over(files, table), table, wanted)}")
    for table in tables.OF_REPOSITORIES:
        held = [str(path) for path in store.sound(repositories.files(store.folder, table))]
        readable += held
        whole = f"{_over(held, table)} UNION ALL BY NAME {_empty(table)}"  # an older file has not all the columns
        connection.execute(f"CREATE VIEW {table} AS {_of_context(whole, table, wanted)}")
    for name, level, keys in (
        ("session_signals", "session", "session_id"),
        ("turn_signals", "turn", "session_id, turn"),
        ("attempt_signals", "attempt", "trial_id, attempt_index, session_id"),
    ):
        connection.execute(f"CREATE VIEW {name} AS {_wide(level, keys)}")
    # What is allowed by name may also be written by name, so these are files, never the folder; that nothing writes is
    # seen to in `run`.
    connection.execute(f"SET allowed_paths={_list(readable)}")
    connection.execute("SET enable_external_access=false")
    connection.execute("SET lock_configuration=true")
    return connection


def contexts(store: Store) -> set[str]:
    """The contexts of the store's sessions: eval runs and people's sessions are never counted together."""
    return {entry.context for entry in store.manifest.sessions.values()}


def run(connection: duckdb.DuckDBPyConnection, query: str, values: list[Any] | None = None) -> duckdb.DuckDBPyRelation:
    """The relation of one SELECT, or of the plan for one. QueryError for anything else, with DuckDB's words when it
    refuses. `values` stand for its `?`.
    """
    with _in_words():
        return connection.sql(one_select(connection, query, view_names()), params=values)


def rows(
    store: Store, query: str, context: str | None = None, values: list[Any] | None = None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of a query, over all sessions or those of one context. `values` stand for its `?`."""
    return answered(store, query, lambda r: (list(r.columns), r.fetchall()), context, values)


def answered(  # noqa: PLR0913  (a question, what is made of its answer, and over what)
    store: Store,
    query: str,
    take: Callable[[duckdb.DuckDBPyRelation], _Result],
    context: str | None = None,
    values: list[Any] | None = None,
    connections: dict[str | None, duckdb.DuckDBPyConnection] | None = None,
) -> _Result:
    """What `take` makes of a query's relation. QueryError when DuckDB can't give its rows. Where that is because of a
    part that only reading it shows to be damaged, the answer is without it, and a warning says so.

    `values` stand for the query's `?`. `connections`: those of earlier questions by context, to be used again.
    """
    connections = {} if connections is None else connections

    def take_now() -> _Result:
        connection = connections.get(context) or connections.setdefault(context, connect(store, context))
        with _in_words():
            return _awaited(connection, lambda: take(run(connection, query, values)))

    return _without_what_is_damaged(store, take_now, connections.clear)


def stream(store: Store, query: str, context: str | None = None) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Column names, and the rows as DuckDB makes them: not all are in memory at once."""

    def begin() -> tuple[list[str], list[tuple[Any, ...]], duckdb.DuckDBPyConnection]:
        connection = connect(store, context)
        with _in_words():
            select = one_select(connection, query, view_names())
            asked = _awaited(connection, lambda: connection.execute(select))
            first = _awaited(asked, lambda: asked.fetchmany(_ROWS_A_FETCH))
            return [column[0] for column in asked.description or ()], first, asked

    names, first, asked = _without_what_is_damaged(store, begin)
    return names, _fetched(first, asked)


def readable(store: Store) -> duckdb.DuckDBPyConnection:
    """As `connect`, to a store every table of which was read once: what only reading it shows to be damaged is known,
    and told by a warning, before any answer rests on it.
    """

    def read() -> duckdb.DuckDBPyConnection:
        connection = connect(store)
        with _in_words():
            for table in (*tables.NAMES, *tables.OF_REPOSITORIES):
                connection.execute(f"SELECT count(COLUMNS(*)) FROM {table}").fetchall()  # noqa: S608  (names of ours)
        return connection

    return _without_what_is_damaged(store, read)


def _without_what_is_damaged(
    store: Store, asked: Callable[[], _Result], forget: Callable[[], None] = lambda: None
) -> _Result:
    """The answer; a second one where the first failed for a part whose damage only reading it shows. `forget` lets go
    of what was opened before.
    """
    try:
        return asked()
    except QueryError as problem:
        cause = problem.__cause__
        # What the Parquet reader itself throws comes as the bare class.
        if not (isinstance(cause, _OF_FILES) or type(cause) is duckdb.Error) or not store.look(thorough=True):
            raise
        forget()
        return asked()


def _fetched(first: list[tuple[Any, ...]], asked: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    yield from first
    with _in_words():
        while some := _awaited(asked, lambda: asked.fetchmany(_ROWS_A_FETCH)):
            yield from some


def _awaited(connection: duckdb.DuckDBPyConnection, call: Callable[[], _Result]) -> _Result:
    """What the call gives. Ctrl-C ends it, which DuckDB would not hear before a step of its own is done."""
    with ThreadPoolExecutor(1) as apart:
        asked = apart.submit(call)
        try:
            return asked.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def ask(
    connection: duckdb.DuckDBPyConnection, query: str, values: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Rows of one of our own questions, from any thread. What people typed is in `values`, never in its text.

    QueryError when DuckDB can't answer: a file it reads may be gone.
    """
    try:
        answer = connection.cursor().execute(query, dict(values) if values else None)
        names = [column[0] for column in answer.description or ()]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    except duckdb.Error as problem:
        raise QueryError(f"DuckDB can't answer: {problem}", "The store may have changed; ask again.") from problem


def view_names() -> list[str]:
    """The tables a query sees."""
    return [*tables.NAMES, *tables.OF_REPOSITORIES, "session_signals", "turn_signals", "attempt_signals"]


def _limit_memory(connection: duckdb.DuckDBPyConnection) -> None:
    row = connection.execute("SELECT current_setting('memory_limit')").fetchone()
    amount, unit = str(row[0]).split() if row else ("1", "GiB")
    connection.execute(f"SET memory_limit='{float(amount) * _SHARE_OF_LIMIT:.1f} {unit}'")


def _over(files: list[str], table: str) -> str:
    """The rows of these files, with the columns of today: a file of an older program has NULL in those it lacks."""
    if files:
        rows = f"SELECT * FROM read_parquet({_list(files)}, union_by_name=true)"  # noqa: S608  (quoted by _list)
        return f"{_empty(table)} UNION ALL BY NAME {rows}"
    return _empty(table)


def _empty(table: str) -> str:
    """The columns of a table, and no row."""
    columns = ", ".join(f"NULL::{_duck(f.type)} AS {_name(f.name)}" for f in tables.SCHEMAS[table])
    return f"SELECT {columns} WHERE false"


def _of_context(rows: str, table: str, context: str | None) -> str:
    """The rows without those of another context's sessions. The view `sessions` is made first, and holds no other."""
    if context is None or "session_id" not in tables.SCHEMAS[table].names:
        return rows
    if table == "sessions":
        return f"SELECT * FROM ({rows}) WHERE context = '{_CONTEXTS[context]}'"  # noqa: S608  (one of two words)
    inside = "session_id IS NULL OR session_id IN (SELECT session_id FROM sessions)"
    return f"SELECT * FROM ({rows}) WHERE {inside}"  # noqa: S608  (paths quoted by _list)


def _wide(level: str, keys: str) -> str:
    """One row an entity, one column a signal, typed as declared; lists and objects are JSON text."""
    other = "product" if level == "attempt" else "eval"  # a signal of one context has no column in the other's view
    whole = ("attempt", "session", "region") if level in ("attempt", "session") else (level,)
    wanted = [s for s in catalogue().values() if s.level in whole and (level == "turn" or s.context != other)]
    columns = ", ".join(_column(s) for s in wanted)
    return f"SELECT {keys}{', ' if columns else ''}{columns} FROM signals WHERE level = '{level}' GROUP BY {keys}"  # noqa: S608


def _column(signal: Signal) -> str:
    path = signal.path.replace("'", "''")
    raw = f"max(value) FILTER (signal = '{path}')"
    kind = _TYPES.get(signal.type)
    if kind == "VARCHAR":
        raw = f"json_extract_string({raw}, '$')"
    elif kind:
        raw = f"TRY_CAST({raw} AS {kind})"
    return f"{raw} AS {_name(signal.path)}"


def _duck(kind: Any) -> str:
    name = str(kind)
    if name.startswith("list<"):
        return "VARCHAR[]"
    return {"int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN", "timestamp[us]": "TIMESTAMP"}.get(name, "VARCHAR")


def _list(paths: list[str]) -> str:
    return "[" + ", ".join("'" + p.replace("'", "''") + "'" for p in paths) + "]"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
