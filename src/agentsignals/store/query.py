"""Questions in SQL: DuckDB views over the store's files, read only."""

from __future__ import annotations

import base64
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import duckdb
import msgspec

from agentsignals.errors import AgentSignalsError, QueryError, StoreError
from agentsignals.model.prices import candidates
from agentsignals.signals import Signal
from agentsignals.signals.catalog import caption, catalogue
from agentsignals.store import findings_cache as kept_findings
from agentsignals.store import sidecars as repositories
from agentsignals.store import tables
from agentsignals.store.index import FOLDER as SHARDS
from agentsignals.store.index import contexts, share_texts

if TYPE_CHECKING:
    import duckdb

    from agentsignals.store import Store


# What a query sees: each table of the store as a view over its files, and one row an entity made of its values.

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


def rows_views(files: list[str], name: str) -> str:
    """The rows of a view, with the columns that its files have."""
    if name in _WIDE:
        return _wide(*_WIDE[name])
    if not files:
        return _none(name)
    return f"SELECT * FROM read_parquet({listed(files)}, union_by_name=true)"  # noqa: S608  (quoted by listed)


def rows_with_all_columns(files: list[str], table: str) -> str:
    """The rows of these files with the columns of today: a file of an older program has NULL in those it lacks."""
    return f"{_none(table)} UNION ALL BY NAME {rows_views(files, table)}"


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


# Which SQL a question may be: one SELECT that reads tables, as DuckDB's own parser sees it.
#
# A statement's type is not enough: a SELECT may hold a `COPY … TO` or an INSERT as a common table expression, and
# table functions that read files, pointers, secrets, or SQL out of a text. So what stands anywhere in the parsed
# tree is let through by name, and all else is refused.

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
    return Select(query, _named_selecting(parts))


def _named_selecting(parts: Iterable[dict[str, Any]]) -> frozenset[str] | None:
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


_Result = TypeVar("_Result")
_OF_FILES = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException, duckdb.InternalException)
"""What DuckDB raises when a file can't be read."""
CHANGED = "The store may have changed; ask again."
OURS = "This is an error of agentsignals. Please report it, with this text."
_ROWS_A_FETCH = 10_000
_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+([a-z_]+)", re.IGNORECASE)
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
def _in_words(*, is_ours: bool = False) -> Iterator[None]:
    """What DuckDB refuses, as a QueryError. `is_ours`: the SQL is this program's, and so is its error."""
    try:
        yield
    except duckdb.OutOfMemoryException as problem:
        raise QueryError(
            "The query needs more than half of this machine's memory, which is what it may take.",
            "Name the columns, filter, aggregate, or add LIMIT.",
        ) from problem
    except duckdb.Error as problem:
        _forget(problem)
        tables_there = f"The tables: {', '.join(NAMES)}. `DESCRIBE table` names a table's columns."
        raise QueryError(f"DuckDB refuses the query: {problem}", OURS if is_ours else tables_there) from problem


_CLOSING_S = 10.0


class Connection:
    """A store's tables for DuckDB, which can read these files, as they were when it was made, and nothing else, and
    write nothing at all. A view is made when a query first names it: DuckDB opens its files for that.
    """

    database: duckdb.DuckDBPyConnection
    """Without the views that nobody named."""
    is_slice: bool
    """Whether it is over some of the shards."""

    def __init__(self, files: dict[str, list[str]], context: str | None, threads: int = 0) -> None:
        self.files = files
        self._context = context
        self.is_slice = False
        self._made: set[str] = set()
        self._findings: Callable[[], list[bytes] | None] = lambda: None
        self._one_at_a_time = Lock()
        self.held: set[str] = set()
        self.database = duckdb.connect(":memory:", config=_LIMITS | ({"threads": threads} if threads else {}))
        _limit_memory(self.database)
        # What is allowed by name may also be written by name, so these are files, never the folder; that nothing writes
        # is seen to in `run`.
        readable = listed([path for of_table in files.values() for path in of_table])
        self.database.execute(
            f"SET allowed_paths={readable}; SET enable_external_access=false; SET lock_configuration=true"
        )

    def again(self, findings: Callable[[], list[bytes] | None]) -> Connection:
        """Another connection to the same database; to interrupt or close one leaves the other alone. `findings`: those
        kept of the store, asked for when a query names them."""
        other = copy(self)
        other._findings = findings
        other.held = set()
        other.database = self.database.cursor()
        return other

    def close(self) -> None:
        """Ends whatever is being asked, and lets go of the files. QueryError where a question does not end."""
        until = time.monotonic() + _CLOSING_S
        while True:
            self.database.interrupt()
            try:
                self.database.close()
                return
            except duckdb.Error as problem:  # DuckDB 2 refuses to close what another thread is asking
                if time.monotonic() > until:
                    raise QueryError(f"DuckDB can't be closed: {problem}", "End the process.") from problem
                time.sleep(0.01)

    def over(self, shards: set[str]) -> Connection:
        """A connection to these shards (folders) of the same database; what was held is not there."""
        other = self.again(self._findings)
        other.files = {table: [f for f in of if str(Path(f).parent) in shards] for table, of in self.files.items()}
        other.is_slice, other._made = True, set()
        return other

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """The answer to one SELECT or the like, over the tables as they were when this was opened. QueryError for what
        would write."""
        return run(self, query)

    def hold(self, table: str, query: str, most_rows: int | None = None) -> None:
        """Keeps the rows of a query of ours under the name of a table, for this connection alone: a table that many
        questions join is then read once, and each of them planned in half the time. Of a table of more rows than
        `most_rows` nothing is kept."""
        if table in self.held:
            return
        self.held.add(table)
        database = self.seeing(_named(query))
        counted = f"SELECT count(*) FROM {table}"  # noqa: S608  (a table of ours)
        if most_rows is None or database.execute(counted).fetchall()[0][0] <= most_rows:
            database.execute(f"CREATE TEMP TABLE {table} AS {query}")

    def show(self, table: str, query: str) -> None:
        """Has a query of ours stand for a table, for this connection alone: of columns that nobody asks for it holds
        none. It calls the table itself `memory.main.…`."""
        if table not in self.held:
            self.held.add(table)
            self.seeing({table}).execute(f"CREATE TEMP VIEW {table} AS {query}")

    def seeing(self, names: Collection[str] | None) -> duckdb.DuckDBPyConnection:
        """The database with the views of these names, None for all; names of no view are passed over."""
        with self._one_at_a_time:
            for name in NAMES if names is None else names:
                self._make(name, is_asked_for=names is not None)
        return self.database

    def _make(self, name: str, *, is_asked_for: bool = True) -> None:
        if name in self._made or name not in NAMES:
            return
        if name == "findings":
            self._make_findings(is_asked_for)
            return
        for other in needs(name, self._context):
            self._make(other)
        files = self.files.get(name, [])
        rows = rows_views(files, name)
        if files:
            described = self.database.execute(f"DESCRIBE {rows}").fetchall()
            if [row[:2] for row in described] != columns(name):
                rows = rows_with_all_columns(files, name)
        view = "TEMP VIEW" if self.is_slice else "VIEW"
        self.database.execute(f"CREATE {view} {name} AS {of_context(rows, name, self._context)}")
        self._made.add(name)

    def _make_findings(self, is_asked_for: bool) -> None:
        """Of what was kept of this state of the store. Where nothing was, no row is an answer: to ask is refused."""
        kept = self._findings()
        if kept is None and is_asked_for:
            raise QueryError(NO_FINDINGS, FIND)
        rows = of_context(findings(kept), "findings", self._context)
        self.database.execute(f"CREATE OR REPLACE VIEW findings AS {rows}")
        if kept is not None:
            self._made.add("findings")


_kept: dict[tuple[str | None, str, str, int], Connection] = {}
"""The last connections: DuckDB takes 20 ms to be there, and a question to a small store 3 (design/speed.md#questions).
"""
_MOST_KEPT = 4
_selects: dict[str, Select] = {}
"""Queries that were let through: to read one takes a fifth of the time of a small one."""
_MOST_SELECTS = 500


@_in_words()
def connect(store: Store, context: str | None = None, shard: str | None = None, threads: int = 0) -> Connection:
    """A connection to a store as it stands.

    `context`: the views hold only what belongs to sessions of this context (`product`, `eval`), and what belongs to no
    session. `shard`: of what lies in shards they hold this one's alone, where one session is asked for: a question is
    planned over every file that it might concern. `threads`: each takes memory; 0 is one a core.
    """
    store.refresh()
    paths = {table: store.files(table) for table in tables.NAMES}
    if shard is not None:
        there = store.folder / SHARDS
        paths = {t: [p for p in of if p.parent.parent != there or p.parent.name == shard] for t, of in paths.items()}
    paths |= {
        table: store.sound(repositories.files_repositories(store.folder, table)) for table in tables.OF_REPOSITORIES
    }
    files = {table: [str(path) for path in of_table] for table, of_table in paths.items()}
    only = context if context is not None and contexts(store.manifest) - {context} else None
    key = only, str(store.folder.absolute()), str(files), threads
    opened = _kept.pop(key, None)
    if opened is None:
        if shard is None:
            share_texts(store.manifest)
        opened = Connection(files, only, threads)
    _kept[key] = opened
    for oldest in list(_kept)[:-_MOST_KEPT]:
        _kept.pop(oldest, None)  # another thread may have
    return opened.again(partial(kept_findings.every_context, store))


def run(connection: Connection, query: str, values: list[Any] | None = None) -> duckdb.DuckDBPyRelation:
    """The relation of one SELECT, or of the plan for one. QueryError for anything else, with DuckDB's words when it
    refuses. `values` stand for its `?`.
    """
    with _in_words():
        select = _select(connection, query)
        return connection.seeing(select.tables).sql(select.sql, params=values)


def execute(connection: Connection, query: str, values: list[Any] | None = None) -> duckdb.DuckDBPyConnection:
    """As `run`, with the query begun: planned once, where a relation is planned for its columns and for its rows."""
    with _in_words():
        select = _select(connection, query)
        return connection.seeing(select.tables).execute(select.sql, values)


def execute_ours(connection: Connection, query: str, values: dict[str, Any] | None = None) -> duckdb.DuckDBPyConnection:
    """As `execute`, of SQL that stands in this program or in a package that it loads, and holds nothing that came from
    elsewhere: it is not looked through, which takes as long as the answer to a small question. `values` are bound."""
    with _in_words(is_ours=True):
        return _ours(connection, query, values)


def _ours(
    connection: Connection, query: str, values: dict[str, Any] | None = None, *, apart: bool = False
) -> duckdb.DuckDBPyConnection:
    """`apart`: on a cursor of its own, as other threads may ask at the same time."""
    database = connection.seeing(_named(query))
    try:
        return (database.cursor() if apart else database).execute(query, values)
    except duckdb.CatalogException:  # a table that stands elsewhere than behind FROM or JOIN
        database = connection.seeing(None)
        return (database.cursor() if apart else database).execute(query, values)


def _named(query: str) -> set[str]:
    """The tables that a query of ours names, with words that are none."""
    return {name.lower() for name in _TABLE.findall(query)}


def _select(connection: Connection, query: str) -> Select:
    """What was made out of a query is the same over any store."""
    select = _selects.get(query)
    if select is None:
        select = one_select(connection.database, query, NAMES)
        if len(_selects) >= _MOST_SELECTS:
            _selects.clear()
        _selects[query] = select
    return select


def rows(
    store: Store, query: str, context: str | None = None, values: list[Any] | None = None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of a query, over all sessions or those of one context. `values` stand for its `?`."""

    def take(connection: Connection) -> tuple[list[str], list[tuple[Any, ...]]]:
        asked = execute(connection, query, values)
        return names_of(asked), asked.fetchall()

    return answered(store, take, context)


def answered(
    store: Store,
    take: Callable[[Connection], _Result],
    context: str | None = None,
    connections: dict[str | None, Connection] | None = None,
    threads: int = 0,
) -> _Result:
    """What `take` makes of a query. QueryError when DuckDB can't give its rows. Where that is because of a part that
    only reading it shows to be damaged, the answer is without it, and a warning says so.

    `connections`: those of earlier questions by context, to be used again. `threads`: as in `connect`.
    """
    connections = {} if connections is None else connections

    def take_now() -> _Result:
        if context not in connections:
            connections[context] = connect(store, context, threads=threads)
        connection = connections[context]
        with _in_words():
            return _awaited(connection.database, lambda: take(connection))

    return _without_what_is_damaged(store, take_now, connections.clear)


def names_of(asked: duckdb.DuckDBPyConnection) -> list[str]:
    """The columns of what was asked."""
    return [column[0] for column in asked.description or ()]


def stream(store: Store, query: str, context: str | None = None) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Column names, and the rows as DuckDB makes them: not all are in memory at once."""

    def begin() -> tuple[list[str], list[tuple[Any, ...]], duckdb.DuckDBPyConnection]:
        connection = connect(store, context)
        with _in_words():
            asked = _awaited(connection.database, lambda: execute(connection, query))
            first = _awaited(asked, lambda: asked.fetchmany(_ROWS_A_FETCH))
            return names_of(asked), first, asked

    names, first, asked = _without_what_is_damaged(store, begin)
    return names, _fetched(first, asked)


def readable(store: Store) -> duckdb.DuckDBPyConnection:
    """As `connect`, to a store every table of which was read once: what only reading it shows to be damaged is known,
    and told by a warning, before any answer rests on it.
    """

    def read() -> duckdb.DuckDBPyConnection:
        connection = connect(store)
        with _in_words():
            database = connection.seeing(None)
            for table in (*tables.NAMES, *tables.OF_REPOSITORIES):
                database.execute(f"SELECT count(COLUMNS(*)) FROM {table}").fetchall()  # noqa: S608  (names of ours)
        return database

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


def _forget(problem: duckdb.Error) -> None:
    """Keeps no connection after an error that may be of the database itself: DuckDB answers nothing after some."""
    if not isinstance(problem, duckdb.ProgrammingError):
        _kept.clear()


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


def ask(connection: Connection, query: str, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Rows of one of our own questions, from any thread. What people typed is in `values`, never in its text.

    QueryError when DuckDB can't answer: because a file is gone, or by an error of ours, as its hint says.
    """
    try:
        answer = _ours(connection, query, dict(values) if values else None, apart=True)
        names = names_of(answer)
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    except duckdb.Error as problem:
        _forget(problem)
        of_files = isinstance(problem, _OF_FILES) or type(problem) is duckdb.Error
        raise QueryError(f"DuckDB can't answer: {problem}", CHANGED if of_files else OURS) from problem


def _limit_memory(connection: duckdb.DuckDBPyConnection) -> None:
    row = connection.execute("SELECT current_setting('memory_limit')").fetchone()
    amount, unit = str(row[0]).split() if row else ("1", "GiB")
    connection.execute(f"SET memory_limit='{float(amount) * _SHARE_OF_LIMIT:.1f} {unit}'")


# The store as Polars frames (extra `frames`): tables and views, and the frames that readers of agent-traces know.

try:
    import polars as pl
except ImportError as problem:
    raise StoreError(
        f"Frames need Polars, which can't be loaded: {problem}.",
        "Install it: pip install 'agentsignals[frames]'; `store.sql(…)` does without it.",
    ) from problem

_CONTENT = """
    SELECT session_id, seq, events.turn + 1 AS turn, events.thread,
        CASE WHEN kind = 'human_turn' THEN 'user' WHEN kind IN ('text', 'thinking', 'tool_call') THEN 'assistant'
            WHEN kind = 'tool_result' THEN 'tool' ELSE 'system' END AS role,
        kind AS content_type, coalesce(text, arguments) AS content_text,
        CASE WHEN text IS NULL THEN length(arguments) ELSE n_chars END AS n_chars, name AS tool, timestamp
    FROM events LEFT JOIN tool_calls USING (session_id, seq)
    WHERE coalesce(text, arguments, '') <> '' ORDER BY session_id, seq
"""
_USER_MESSAGES = """
    SELECT session_id, turn + 1 AS turn, n_turns AS "nTurns",
        CASE WHEN n_turns > 1 THEN turn / (n_turns - 1) ELSE 0.0 END AS "normPos",
        coalesce(turns.model, sessions.model) AS model, agent, cost_usd AS cost_total_sum, n_events, n_tool_calls,
        text AS content_text, turns.timestamp, kind, repo, source AS source_dataset, sessions.format, context,
        visible_output_tokens IS NOT NULL AS cost_at_least
    FROM turns JOIN sessions USING (session_id) LEFT JOIN artifacts USING (artifact_id) ORDER BY session_id, turn
"""
_MAKERS = (
    ("anthropic", re.compile(r"claude")),
    ("openai", re.compile(r"gpt|codex|chatgpt|o[1345](?:-|$)")),
    ("google", re.compile(r"gemini|gemma")),
    ("mistral", re.compile(r"mistral|ministral|devstral|codestral|magistral")),
    ("moonshot", re.compile(r"kimi")),
    ("zai", re.compile(r"glm")),
    ("alibaba", re.compile(r"qwen|qwq")),
    ("deepseek", re.compile(r"deepseek")),
    ("minimax", re.compile(r"minimax")),
    ("xai", re.compile(r"grok")),
    ("meta", re.compile(r"llama")),
)
"""Who makes a model, by how its name begins once the way to it (`openrouter/anthropic/`) is put aside."""


def frame(store: Store, table: str, context: str | None = None) -> pl.DataFrame:
    """A table or view, whole or of one context; `signals` with how often each is right. QueryError when there is no
    such table."""
    if table not in NAMES:
        raise QueryError(f"There is no table {table!r}.", f"The tables are: {', '.join(NAMES)}.")
    rows = _frame(store, f'SELECT * FROM "{table}"', context)  # noqa: S608  (one of the tables' names)
    if table != "signals":
        return rows
    captions = {path: caption(path) for path in rows["signal"].unique()}
    return rows.with_columns(pl.Series("validation", [captions[path] for path in rows["signal"]], pl.String))


def content(store: Store, context: str | None = None) -> pl.DataFrame:
    """What was said, thought, called and answered: one row an event with text, with the role that said it."""
    return _frame(store, _CONTENT, context)


def user_messages(store: Store, context: str | None = None) -> pl.DataFrame:
    """One row a human turn, in the columns of agent-traces's data set; see `Store.user_messages`."""
    messages = _frame(store, _USER_MESSAGES, context)
    makers = {name: maker(name) for name in messages["model"].unique() if name is not None}
    provider = pl.Series("provider", [makers.get(name) for name in messages["model"]], pl.String)
    return messages.insert_column(messages.columns.index("model") + 1, provider)


def _frame(store: Store, query: str, context: str | None) -> pl.DataFrame:
    made: pl.DataFrame = answered(store, lambda connection: run(connection, query).pl(), context)
    return made


def maker(model: str) -> str | None:
    """Who makes a model, from its name as logged; None when the name does not tell."""
    *_, name = candidates(model)
    return next((who for who, begins in _MAKERS if begins.match(name)), None)


# What many questions ask, read once and held by DuckDB for one connection.

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


# A store asked over some of its shards at a time: what DuckDB holds in memory does not grow with the store.


def slices(connection: Connection, table: str, most_rows: int) -> list[Connection]:
    """The connection, or several over some of the shards each, of no more rows of `table` together than that, or of one
    shard: for a question whose rows are each of one session, which lies in one shard. Asked one after the other, DuckDB
    holds no more than a slice in memory."""
    files = connection.files.get(table, [])
    of_file = "SELECT file_name, num_rows FROM parquet_file_metadata($files)"
    counted = connection.database.execute(of_file, {"files": files}).fetchall() if len(files) > 1 else []
    if sum(n for _, n in counted) <= most_rows:
        return [connection]
    # A shard whose `table` can't be read has sessions all the same.
    rows_of = {_folder(file): 0 for file in connection.files.get("sessions", [])}
    rows_of |= {_folder(file): n for file, n in counted}
    made: list[Connection] = []
    shards: set[str] = set()
    rows = 0
    for shard, n in sorted(rows_of.items()):
        if shards and rows + n > most_rows:
            made.append(connection.over(shards))
            shards, rows = set(), 0
        shards.add(shard)
        rows += n
    return [*made, connection.over(shards)]


def _folder(file: str) -> str:
    return str(Path(file).parent)


# A store in one line: how many sessions of whom, of which agents, from when to when.

_WHOSE = {"product": "of people", "eval": "of eval runs"}


def outline(store: Store) -> str:
    """Counts from the index; agents and days from the sessions, where they can be read."""
    counted = Counter(entry.context for entry in store.manifest.sessions.values())
    if not counted:
        return "no sessions"
    whose = " and ".join(f"{n:,} {_WHOSE[context]}" for context, n in counted.most_common())
    parts = [f"{whose.replace(' of', ' session of' if counted.total() == 1 else ' sessions of', 1)}"]
    try:
        agents = rows(store, "SELECT agent, count(*) AS n FROM sessions GROUP BY agent ORDER BY n DESC, agent")[1]
        days = rows(store, "SELECT min(started_at)::DATE::TEXT, max(started_at)::DATE::TEXT FROM sessions")[1]
    except AgentSignalsError:  # a word on a damaged store must not fail
        return "; ".join([*parts, "damaged"])
    parts.append(", ".join(f"{agent} {n:,}" for agent, n in agents))
    first, last = days[0]
    if first is not None:
        parts.append(first if first == last else f"{first} to {last}")
    if store.damage:
        parts.append("damaged")
    return "; ".join(parts)
