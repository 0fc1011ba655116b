"""SQL over the store: DuckDB views over its files, read only, and the signals that a query needs, by its syntax tree.

Values of signals that no query names need not be computed to answer it.
"""

# ruff: noqa: S608  (SQL is made of names and texts of ours, and of quoted paths; values are bound)

from __future__ import annotations

import base64
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import duckdb
import msgspec

from agentsignals.errors import AgentSignalsError, NotComputed, QueryError, out_of_memory
from agentsignals.model.registry import no_such
from agentsignals.store import sidecars, tables
from agentsignals.store.index import SHARDS_FOLDER as SHARDS

if TYPE_CHECKING:
    import duckdb

    from agentsignals.store import Store


# Views

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
"""Allowed contexts, as they are written into SQL."""
_WIDE = {
    "session_signals": ("session", "session_id"),
    "turn_signals": ("turn", "session_id, turn"),
    "attempt_signals": ("attempt", "trial_id, attempt_index, session_id"),
}
"""Level and keys of the views with a column a signal."""
_OF_SIGNALS = frozenset(("signals", *_WIDE))
_SIGNALS_NAMED = re.compile(rf"\b(?:{'|'.join(_OF_SIGNALS)})\b", re.IGNORECASE)
NO_FINDINGS = "The findings of this store are not computed, or the store has changed since."
FIND = "Run `agentsignals findings`, or agentsignals.find(store) for each context."
NAMES = (*tables.NAMES, *tables.OF_REPOSITORIES, *_WIDE, "findings")


Gone = Mapping[str, tuple[list[str], list[str]]]
"""Sessions and artifacts that left a shard, by its folder."""


def duckdb_columns(table: str) -> list[tuple[str, str]]:
    """Return the columns of a table with their types in DuckDB."""
    return [(name, _DUCK[kind]) for name, kind in tables.COLUMNS[table].items()]


def path_list(paths: list[str]) -> str:
    """Return paths as a list in SQL."""
    return "[" + ", ".join("'" + p.replace("'", "''") + "'" for p in paths) + "]"


def _none(table: str) -> str:
    """The columns of a table without rows."""
    return f"SELECT {', '.join(f'NULL::{kind} AS {_name(name)}' for name, kind in duckdb_columns(table))} WHERE false"


def findings_rows(kept: list[bytes] | None) -> str:
    """Return a SELECT of `findings` out of cached findings (JSON). They hold text of traces, so they are base64: no
    quote gets out. Without any, reading a row is an error."""
    if kept is None:
        return f"{_none('findings')} OR error('{NO_FINDINGS} {FIND}') IS NULL"
    inside = {n: kind for n, kind in duckdb_columns("findings") if n not in ("context", "rank", "low", "high")}
    held = {n: [kind[:-2]] if kind.endswith("[]") else kind for n, kind in inside.items()}
    shape = json.dumps([{"context": "VARCHAR", "answers": [{**held, "interval": ["DOUBLE"]}]}])
    text = base64.b64encode(b"[" + b",".join(kept) + b"]").decode()
    lists = f"SELECT unnest(from_json(decode(from_base64('{text}')), '{shape}')) AS list"
    ranks = "generate_subscripts(list.answers, 1) AS rank, unnest(list.answers) AS made"
    rows = f"SELECT list.context AS context, {ranks} FROM ({lists})"
    ends = {"context": "context", "rank": "rank", "low": "made.interval[1]", "high": "made.interval[2]"}
    chosen = (f"{ends.get(n, f'made.{_name(n)}')} AS {_name(n)}" for n, _ in duckdb_columns("findings"))
    return f"SELECT {', '.join(chosen)} FROM ({rows}) ORDER BY context DESC, rank"


def _wide(level: str, keys: str) -> str:
    """One row an entity, one column a signal, typed as declared; lists and objects are JSON text."""
    other = "product" if level == "attempt" else "eval"  # a signal of one context has no column in the other's view
    whole = ("attempt", "session", "region") if level in ("attempt", "session") else (level,)
    from agentsignals.signals.catalog import catalogue  # noqa: PLC0415  (most queries name no signal)

    wanted = [s for s in catalogue().values() if s.level in whole and (level == "turn" or s.context != other)]
    columns = [keys]
    for signal in wanted:
        path = signal.path.replace("'", "''")
        raw = f"max(CASE WHEN signal = '{path}' THEN value END)"  # FILTER takes DuckDB eight times as long
        kind = _TYPES.get(signal.type)
        if kind:
            is_text = kind == "VARCHAR"
            raw = f"json_extract_string({raw}, '$')" if is_text else f"TRY_CAST({raw} AS {kind})"
        columns.append(f"{raw} AS {_name(signal.path)}")
    return f"SELECT {', '.join(columns)} FROM signals WHERE level = '{level}' GROUP BY {keys}"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# Checking queries

_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""Kinds of nodes of a parsed query that only read."""
_TABLE_FUNCTIONS = frozenset({"generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest"})
"""Functions that make rows from their arguments."""
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
    """Tables it names, and its own common table expressions; None when it asks which tables exist."""
    tree: list[Any]
    """It as DuckDB parses it, where it may read signals."""


_HINT = (
    "One SELECT, FROM, WITH, VALUES, TABLE, DESCRIBE, SHOW TABLES, SUMMARIZE, or PIVOT … IN (…) over the store's"
    " tables, or EXPLAIN of one of these."
)


def parse_select(connection: duckdb.DuckDBPyConnection, query: str, tables: Collection[str] | None = None) -> Select:
    """Check that a query is one SELECT, or the EXPLAIN of one. QueryError says what is allowed.

    `tables`: tables it may read, besides its own common table expressions and `information_schema`; None for any. A
    statement's type is not enough: a SELECT may hold `COPY … TO` or INSERT as a common table expression, and table
    functions read files or secrets. So each node of DuckDB's parse tree must be on a list.
    """
    if "\0" in query or any("\ud800" <= c <= "\udfff" for c in query):
        raise QueryError("The query contains an invalid character: NUL, or half of a surrogate pair.", _HINT)
    tree = _tree(connection, query)
    explained = _EXPLAIN.match(query) if tree is None else None
    if explained is not None:
        # What we have seen to is the rest alone, so it is put behind words of our own: where a comment ends, and what
        # an option is, is not decided here.
        query = query[explained.end() :]
        tree = _tree(connection, query)
    if tree is None:
        raise QueryError("Queries can only read the store, and this is not a SELECT.", _HINT)
    if len(tree) != 1:
        raise QueryError(f"The query has {len(tree)} statements.", "Give one SELECT at a time.")
    parts = list(inner_nodes(tree))
    _check(parts, tables)
    if explained is not None:
        analyze = "ANALYZE " if explained["analyze"] else ""
        query = f"EXPLAIN {analyze}{explained['options'] or ''} {query}"
    read = [part for part in parts if part.get("type") == "BASE_TABLE"]
    asks_for_names = any(part.get("type") == "SHOW_REF" and part.get("query") is None for part in parts)
    names = frozenset(str(part.get("table_name", "")).lower() for part in read)
    kept = tree if names & _OF_SIGNALS else []
    if asks_for_names or any(str(part.get("schema_name", "")).lower() not in _SCHEMAS for part in read):
        return Select(query, None, kept)
    return Select(query, names, kept)


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
    raise QueryError(f"DuckDB rejects the query: {parsed.get('error_message')}", _HINT)


def _check(parts: list[dict[str, Any]], tables: Collection[str] | None) -> None:
    """Raise QueryError when a node does more than read the tables."""
    expressions = [held for part in parts if isinstance(held := part.get("cte_map"), dict)]
    inside = {str(entry["key"]).lower() for held in expressions for entry in held.get("map") or ()}
    readable = None if tables is None else {name.lower() for name in tables} | inside
    for part in parts:
        kind = part.get("type")
        if not isinstance(kind, str):
            continue
        if kind.endswith("_NODE") and kind not in _NODES:
            raise QueryError(f"Queries can only read the store, and a part of this one may write ({kind}).", _HINT)
        if kind == "TABLE_FUNCTION":
            function = part.get("function") or {}
            name = str(function.get("function_name", "")).lower()
            if function.get("schema") or function.get("catalog"):  # which need not be DuckDB's
                name = f"{function.get('schema')}.{name}"
            if name not in _TABLE_FUNCTIONS:
                raise QueryError(
                    f"The table function {name!r} is not allowed: a query reads only the store's tables.",
                    f"Allowed are: {', '.join(sorted(_TABLE_FUNCTIONS))}.",
                )
        if kind == "BASE_TABLE" and readable is not None:
            name, schema = str(part.get("table_name", "")).lower(), str(part.get("schema_name", "")).lower()
            if not (schema in _SCHEMAS and name in readable) and schema != "information_schema":
                raise QueryError(*no_such("table", str(part.get("table_name")), readable))


_Result = TypeVar("_Result")
_OF_FILES = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException, duckdb.InternalException)
"""Exceptions of DuckDB when a file can't be read."""
CHANGED = "The store may have changed; ask again."
OURS = "This is an error of agentsignals. Please report it, with this text."
_ROWS_A_FETCH = 10_000
_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+([a-z_]+)", re.IGNORECASE)
_SHARE_OF_LIMIT = 0.5 / 0.8
"""Half of the memory of the machine or container, as a share of DuckDB's default of 80 %."""
_LIMITS: dict[str, str | bool | int | float | list[str]] = {
    "temp_directory": "",  # no spilling, which for a database in memory goes to the folder we were started in
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_persistent_secrets": "false",  # which are in the person's home
    "python_enable_replacements": "false",  # a name of no table would be looked up among Python's variables
}


@contextmanager
def _in_words(*, is_ours: bool = False) -> Iterator[None]:
    """Turn errors of DuckDB into QueryErrors. `is_ours`: the SQL is this program's, and so is its error."""
    try:
        yield
    except duckdb.OutOfMemoryException as problem:
        raise out_of_memory(problem) or QueryError(
            "The query needs more than half of this machine's memory, which is the limit.",
            "Name the columns, filter, aggregate, or add LIMIT.",
        ) from problem
    except duckdb.Error as problem:
        _forget(problem)
        tables_there = f"The tables: {', '.join(NAMES)}. `DESCRIBE table` names a table's columns."
        raise QueryError(f"DuckDB rejects the query: {problem}", OURS if is_ours else tables_there) from problem


_CLOSING_S = 10.0
_CHOSEN = "chosen_sessions"
"""Table of the ids that queries see, where a store is limited to some sessions."""


class Connection:
    """DuckDB over a store's tables as they were when it was made. It can read these files and nothing else, and write
    nothing. A view is made when a query first names it, because DuckDB opens its files for that."""

    database: duckdb.DuckDBPyConnection
    """Database in which only the views exist that a query named."""
    is_slice: bool
    """True for a connection to some of the shards."""

    def __init__(
        self,
        files: dict[str, list[str]],
        context: str | None,
        gone: Gone,
        threads: int = 0,
        chosen: Collection[str] | None = None,
    ) -> None:
        self.files = files
        self._is_chosen = chosen is not None
        self._gone = gone
        self._context = context
        self.is_slice = False
        self._made: set[str] = set()
        self._findings: Callable[[], list[bytes] | None] = lambda: None
        self._not_computed: Callable[[frozenset[str] | None], frozenset[str]] = lambda _: frozenset()
        self.shard: str | None = None
        """The one shard that it reads, where it reads one alone."""
        self._one_at_a_time = Lock()
        self.held: set[str] = set()
        self.database = duckdb.connect(":memory:", config=_LIMITS | ({"threads": threads} if threads else {}))
        row = self.database.execute("SELECT current_setting('memory_limit')").fetchone()
        amount, unit = str(row[0]).split() if row else ("1", "GiB")
        self.database.execute(f"SET memory_limit='{float(amount) * _SHARE_OF_LIMIT:.1f} {unit}'")
        # What is allowed by name may also be written by name, so these are files, never the folder; that nothing writes
        # is seen to in `run`.
        readable = path_list([path for of_table in files.values() for path in of_table])
        self.database.execute(
            f"SET allowed_paths={readable}; SET enable_external_access=false; SET lock_configuration=true"
        )
        if chosen is not None:
            self.database.execute(f"CREATE TABLE {_CHOSEN} AS SELECT unnest($1) AS session_id", [list(chosen)])

    def again(
        self,
        findings: Callable[[], list[bytes] | None],
        not_computed: Callable[[frozenset[str] | None], frozenset[str]],
    ) -> Connection:
        """Return another connection to the same database; interrupting or closing one leaves the other alone.
        `findings`: returns the cached findings when a query names them. `not_computed`: returns those of the signals
        (None: of all) that have no values yet."""
        other = copy(self)
        other._findings, other._not_computed = findings, not_computed
        other.held = set()
        other.database = self.database.cursor()
        return other

    def close(self) -> None:
        """Interrupt the running query and close the files. QueryError where it does not end."""
        until = time.monotonic() + _CLOSING_S
        while True:
            self.database.interrupt()
            try:
                self.database.close()
                return
            except duckdb.Error as problem:  # DuckDB 2 refuses to close what another thread is asking
                if time.monotonic() > until:
                    raise QueryError(f"Cannot close DuckDB: {problem}", "Restart the program.") from problem
                time.sleep(0.01)

    def over(self, shards: set[str]) -> Connection:
        """Return a connection to these shards (folders), without held tables."""
        other = self.again(self._findings, self._not_computed)
        other.files = {table: [f for f in of if str(Path(f).parent) in shards] for table, of in self.files.items()}
        other.is_slice, other._made = True, set()
        return other

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """Return the relation of one SELECT. QueryError for anything that would write."""
        return run(self, query)

    def hold(self, table: str, query: str, most_rows: int | None = None) -> None:
        """Store the rows of a query of ours under a table's name, for this connection alone: a table that many queries
        join is then read once. Nothing is stored of a table of more than `most_rows`."""
        if table in self.held:
            return
        self.check_computed(query)
        self.held.add(table)
        database = self.seeing(_named(query))
        counted = f"SELECT count(*) FROM {table}"
        if most_rows is None or database.execute(counted).fetchall()[0][0] <= most_rows:
            database.execute(f"CREATE TEMP TABLE {table} AS {query}")

    def show(self, table: str, query: str) -> None:
        """Replace a table by a query of ours, for this connection alone. The query names the table `memory.main.…`."""
        if table not in self.held:
            self.check_computed(query)
            self.held.add(table)
            self.seeing({table}).execute(f"CREATE TEMP VIEW {table} AS {query}")

    def check_computed(self, query: str, values: Collection[Any] = (), tree: list[Any] | None = None) -> None:
        """Raise NotComputed where a query reads values of signals that are not computed. `tree`: it as DuckDB parses
        it."""
        if _SIGNALS_NAMED.search(query) is None:
            return
        if tree is None:
            tree = _trees.get(query)
            if tree is None:
                if len(_trees) >= _MOST_SELECTS:
                    _trees.clear()
                tree = _trees[query] = _tree(self.database, query) or []
        needed = needed_signals(tree, _WIDE, values)
        if missing := self._not_computed(needed) if needed is None or needed else ():
            raise NotComputed(frozenset(missing), self.shard)

    def seeing(self, names: Collection[str] | None) -> duckdb.DuckDBPyConnection:
        """Return the database after making the views of these names, None for all. Other names are ignored."""
        with self._one_at_a_time:
            for name in NAMES if names is None else names:
                self._make(name, is_asked_for=names is not None)
        return self.database

    def _make(self, name: str, *, is_asked_for: bool = True) -> None:
        """Define a table of the store as a view, when a query first names it."""
        if name in self._made or name not in NAMES:
            return
        is_limited = (self._context is not None or self._is_chosen) and name not in _WIDE
        if name == "findings":
            kept = self._findings()
            if kept is None and is_asked_for:  # no row would be an answer
                raise QueryError(NO_FINDINGS, FIND)
            rows = findings_rows(kept)
        elif name in _WIDE:
            self._make("signals")
            rows = _wide(*_WIDE[name])
        else:
            rows = self._rows(name)
        if is_limited and name in ("sessions", "findings"):
            if self._context is not None:
                rows = f"SELECT * FROM ({rows}) WHERE context = '{_CONTEXTS[self._context]}'"
            if self._is_chosen and name == "sessions":
                rows = f"SELECT * FROM ({rows}) WHERE session_id IN (SELECT session_id FROM {_CHOSEN})"
        elif is_limited and "session_id" in tables.COLUMNS[name]:
            self._make("sessions")
            inside = "session_id IS NULL OR session_id IN (SELECT session_id FROM sessions)"
            rows = f"SELECT * FROM ({rows}) WHERE {inside}"
        view = "OR REPLACE VIEW" if name == "findings" else "TEMP VIEW" if self.is_slice else "VIEW"
        self.database.execute(f"CREATE {view} {name} AS {rows}")
        if name != "findings" or kept is not None:
            self._made.add(name)

    def _rows(self, table: str) -> str:
        """Return a SELECT of the rows of a table in its files. Rows that left a shard are not seen; what older files
        lack is NULL."""
        files = self.files.get(table, [])
        if not files:
            return _none(table)
        column, which = ("artifact_id", 1) if table == "artifacts" else ("session_id", 0)
        shrunk = [file for file in files if (left := self._gone.get(_folder(file))) is not None and left[which]]
        whole = [file for file in files if file not in shrunk] if shrunk else files
        parts = [f"SELECT * FROM read_parquet({path_list(whole)}, union_by_name=true)"] if whole else []
        for file in shrunk:
            among = f"coalesce({column} IN ({path_list(self._gone[_folder(file)][which])[1:-1]}), false)"
            parts.append(f"SELECT * FROM read_parquet({path_list([file])}, union_by_name=true) WHERE NOT {among}")
        rows = " UNION ALL BY NAME ".join(parts)
        described = self.database.execute(f"DESCRIBE {rows}").fetchall()
        if [row[:2] for row in described] != duckdb_columns(table):
            rows = f"{_none(table)} UNION ALL BY NAME {rows}"
        return rows


_kept: dict[tuple[str | None, str, str, int], Connection] = {}
"""Recent connections: starting DuckDB takes 20 ms, a query of a small store 3 (design/speed.md#questions)."""
_MOST_KEPT = 4
_selects: dict[str, Select] = {}
"""Queries that were checked: checking one takes a fifth of the time of a small one."""
_MOST_SELECTS = 500
_trees: dict[str, list[Any]] = {}
"""Queries of this program as DuckDB parses them, where they may read signals."""


@_in_words()
def connect(store: Store, context: str | None = None, shard: str | None = None, threads: int = 0) -> Connection:
    """Connect to a store as it is now.

    `context`: only rows of sessions of this context (`product`, `eval`), and rows of no session. `shard`: only this
    shard, where one session is asked for, so that fewer files are planned. `threads`: 0 is one a core; each takes
    memory.
    """
    store.refresh()
    paths = {table: store.files(table) for table in tables.NAMES}
    if shard is not None:
        there = store.folder / SHARDS
        paths = {t: [p for p in of if p.parent.parent != there or p.parent.name == shard] for t, of in paths.items()}
    paths |= {
        table: store.without_damaged(sidecars.repository_files(store.folder, table)) for table in tables.OF_REPOSITORIES
    }
    files = {table: [str(path) for path in of_table] for table, of_table in paths.items()}
    only = context if context is not None and store.contexts().keys() - {context} else None
    shards = store.manifest.shards.items()
    gone = {
        str(store.folder / SHARDS / name): (e.gone, e.gone_artifacts)
        for name, e in shards
        if e.gone or e.gone_artifacts
    }
    key = only, str(store.folder.absolute()), f"{files}{gone}{store.only}", threads
    opened = _kept.pop(key, None)
    if opened is None:
        opened = Connection(files, only, gone, threads, store.only)
    _kept[key] = opened
    for oldest in list(_kept)[:-_MOST_KEPT]:
        _kept.pop(oldest, None)  # another thread may have

    def kept_findings() -> list[bytes] | None:
        kept = [sidecars.read_cache(store, of) for of in sorted(store.contexts())]
        return None if None in kept else [found for found in kept if found is not None]

    made = opened.again(kept_findings, partial(store.not_computed, shard=shard))
    made.shard = shard
    return made


def run(connection: Connection, query: str, values: list[Any] | None = None) -> duckdb.DuckDBPyRelation:
    """Return the relation of one SELECT, or of its EXPLAIN. QueryError for anything else. `values` replace its `?`."""
    with _in_words():
        select = _select(connection, query, values)
        return connection.seeing(select.tables).sql(select.sql, params=values)


def execute(connection: Connection, query: str, values: list[Any] | None = None) -> duckdb.DuckDBPyConnection:
    """Execute one SELECT; faster than `run`, whose relation is planned for its columns and again for its rows."""
    with _in_words():
        select = _select(connection, query, values)
        return connection.seeing(select.tables).execute(select.sql, values)


def execute_ours(connection: Connection, query: str, values: dict[str, Any] | None = None) -> duckdb.DuckDBPyConnection:
    """Execute SQL of this program or of a package it loads, without checking it, which takes as long as a small query.
    Nothing that came from elsewhere may be in it: `values` are bound."""
    with _in_words(is_ours=True):
        return _ours(connection, query, values)


def _ours(
    connection: Connection, query: str, values: dict[str, Any] | None = None, *, apart: bool = False
) -> duckdb.DuckDBPyConnection:
    """`apart` uses a cursor of its own, because other threads may query at the same time."""
    connection.check_computed(query, list(values.values()) if values else ())
    database = connection.seeing(_named(query))
    try:
        return (database.cursor() if apart else database).execute(query, values)
    except duckdb.CatalogException:  # a table that stands elsewhere than behind FROM or JOIN
        database = connection.seeing(None)
        return (database.cursor() if apart else database).execute(query, values)


def _named(query: str) -> set[str]:
    """Tables that a query of ours names, and other words."""
    return {name.lower() for name in _TABLE.findall(query)}


def _select(connection: Connection, query: str, values: list[Any] | None) -> Select:
    select = _selects.get(query)
    if select is None:
        select = parse_select(connection.database, query, NAMES)
        if len(_selects) >= _MOST_SELECTS:
            _selects.clear()
        _selects[query] = select
    if select.tree:
        connection.check_computed(query, values or (), select.tree)
    return select


def rows(
    store: Store, query: str, context: str | None = None, values: list[Any] | None = None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return column names and rows of a query, over all sessions or those of one context. `values` replace its `?`."""

    def take(connection: Connection) -> tuple[list[str], list[tuple[Any, ...]]]:
        asked = execute(connection, query, values)
        return column_names(asked), asked.fetchall()

    return with_connection(store, take, context)


def with_connection(
    store: Store,
    take: Callable[[Connection], _Result],
    context: str | None = None,
    connections: dict[str | None, Connection] | None = None,
    threads: int = 0,
) -> _Result:
    """Call `take` with a connection and return its result. QueryError when DuckDB can't answer. Where only reading
    shows that a file is damaged, the answer is without it, and a warning says so.

    `connections`: earlier connections by context, used again. `threads`: as in `connect`.
    """
    connections = {} if connections is None else connections

    def take_now() -> _Result:
        if context not in connections:
            connections[context] = connect(store, context, threads=threads)
        connection = connections[context]
        with _in_words():
            return _awaited(connection.database, lambda: take(connection))

    return _without_what_is_damaged(store, take_now, connections.clear)


def column_names(asked: duckdb.DuckDBPyConnection) -> list[str]:
    return [column[0] for column in asked.description or ()]


def stream(store: Store, query: str, context: str | None = None) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Return column names and an iterator over the rows, which are not all in memory at once."""

    def begin() -> tuple[list[str], list[tuple[Any, ...]], duckdb.DuckDBPyConnection]:
        connection = connect(store, context)
        with _in_words():
            asked = _awaited(connection.database, lambda: execute(connection, query))
            first = _awaited(asked, lambda: asked.fetchmany(_ROWS_A_FETCH))
            return column_names(asked), first, asked

    def fetch(first: list[tuple[Any, ...]], asked: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
        yield from first
        with _in_words():
            while some := _awaited(asked, lambda: asked.fetchmany(_ROWS_A_FETCH)):
                yield from some

    names, first, asked = _without_what_is_damaged(store, begin)
    return names, fetch(first, asked)


def readable(store: Store) -> duckdb.DuckDBPyConnection:
    """Connect after reading every table once, so that damage which only reading shows is known before any answer."""

    def read() -> duckdb.DuckDBPyConnection:
        connection = connect(store)
        with _in_words():
            connection.check_computed("SELECT * FROM signals")
            database = connection.seeing(None)
            for table in (*tables.NAMES, *tables.OF_REPOSITORIES):
                database.execute(f"SELECT count(COLUMNS(*)) FROM {table}").fetchall()
        return database

    return _without_what_is_damaged(store, read)


def _without_what_is_damaged(
    store: Store, asked: Callable[[], _Result], forget: Callable[[], None] = lambda: None
) -> _Result:
    """Answer again where the first try needs values that are not computed, or failed on damage that only reading shows.
    `forget` closes connections."""
    try:
        return computing(store, asked, forget)
    except NotComputed:
        raise
    except QueryError as problem:
        cause = problem.__cause__
        # What the Parquet reader itself throws comes as the bare class.
        if not (isinstance(cause, _OF_FILES) or type(cause) is duckdb.Error) or not store.check_files(thorough=True):
            raise
        forget()
        return asked()


def computing(store: Store, asked: Callable[[], _Result], forget: Callable[[], None] = lambda: None) -> _Result:
    """Return what is asked; where it needs signals that are not computed, after computing and keeping them. `forget`
    closes connections, which see the store as it was."""
    for _ in range(2):  # values across sessions that were there are gone where what was computed changes them
        try:
            return asked()
        except NotComputed as problem:
            store.require(problem.signals, problem.shard)
            forget()
    return asked()


def _forget(problem: duckdb.Error) -> None:
    """Keep no connection after an error that may be of the database itself: DuckDB answers nothing after some."""
    if not isinstance(problem, duckdb.ProgrammingError):
        _kept.clear()


def _awaited(connection: duckdb.DuckDBPyConnection, call: Callable[[], _Result]) -> _Result:
    """Return the call's result. Ctrl-C interrupts it, which DuckDB alone would notice after its current step."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  (most queries are not awaited)

    with ThreadPoolExecutor(1) as apart:
        asked = apart.submit(call)
        try:
            return asked.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def ask(connection: Connection, query: str, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return rows of one of our own queries, from any thread. What people typed is in `values`, never in the SQL.
    QueryError when DuckDB can't answer: because a file is gone, or by an error of ours, as its hint says."""
    try:
        answer = _ours(connection, query, dict(values) if values else None, apart=True)
        names = column_names(answer)
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    except duckdb.Error as problem:
        _forget(problem)
        of_files = isinstance(problem, _OF_FILES) or type(problem) is duckdb.Error
        raise QueryError(f"DuckDB cannot answer: {problem}", CHANGED if of_files else OURS) from problem


# Tables held for many queries

_OFTEN_ASKED = ("turns", "tool_calls", "steps")
_LONG_TEXTS = frozenset(("text", "arguments", "command", "argument_roles"))
_MOST_HELD = 40_000
"""Rows up to which a table is held: beyond, memory costs more than reading the columns again."""
_ID, _REASON = "numbered_session", "numbered_reason"
_NUMBERED = (
    f"CREATE TEMP TYPE {_ID} AS ENUM "
    "(SELECT session_id FROM (SELECT session_id FROM signals UNION SELECT session_id FROM sessions)"
    " WHERE session_id IS NOT NULL ORDER BY 1);"
    f" CREATE TEMP TYPE {_REASON} AS ENUM (SELECT DISTINCT absent FROM signals WHERE absent IS NOT NULL ORDER BY 1)"
)
"""Ids and reasons as enums: half of the memory, and faster joins. Queries see the same texts in the same order."""


def materialize(
    connection: Connection, queries: Collection[str], sessions: str, named: str, signals: Collection[str]
) -> None:
    """Hold what these queries read: `sessions` under that name, columns of small tables that are often read, and these
    signals as `named`."""
    if "sessions" in connection.held:
        return
    connection.seeing({"signals", "sessions"}).execute(_NUMBERED)
    numbered = f"SELECT * REPLACE (CAST(session_id AS {_ID}) AS session_id) FROM ({sessions})"
    connection.hold("sessions", numbered)
    for table in _OFTEN_ASKED:
        # Long texts only where a query names them or selects `*`; the rest always: rows behind a figure name others.
        starred = re.compile(rf"\*[^()]*\b(?:FROM|JOIN) {table}\b|\b{table}\.\*")
        words = {word for sql in queries for word in re.findall(r"\w+", sql)}
        used = [f'"{name}"' for name in tables.COLUMNS[table] if name in words or name not in _LONG_TEXTS]
        columns = "*" if any(map(starred.search, queries)) else ", ".join(used)
        connection.hold(table, f"SELECT {columns} FROM {table}", _MOST_HELD)
    paths = ", ".join(f"'{path}'" for path in signals)
    numbers = {"session_id": _ID, "absent": _REASON, "signal": f"ENUM({paths})"} if signals else {}
    cast = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in numbers.items())
    replaced = f"REPLACE ({cast}) " if cast else ""
    connection.hold(named, f"SELECT * {replaced}FROM ({signal_rows_query(signals)})")


def signal_rows_query(signals: Collection[str]) -> str:
    among = ", ".join(f"'{path}'" for path in signals)
    wanted = f"signal IN ({among})" if signals else "false"
    return f"SELECT session_id, turn, signal, value, number, absent, absent_detail, detail FROM signals WHERE {wanted}"


def split_by_rows(connection: Connection, table: str, most_rows: int) -> list[Connection]:
    """Split a connection into some over fewer shards each, with at most that many rows of `table`, so that DuckDB's
    memory does not grow with the store. For queries whose rows are each of one session."""
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


_WHOSE = {"product": "of people", "eval": "of eval runs"}


def summary_line(store: Store) -> str:
    """Describe a store in one line: sessions, agents and days."""
    counted = Counter(store.manifest.contexts())
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
                if _table_name(table) == LONG:
                    name = str(table.get("alias") or LONG).lower()
                    signals = None if condition is None else _restricted(condition, name, bound)
                    if signals is None:
                        return None
                    found |= signals
                    restricted += 1
    read = [node for node in nodes if node.get("type") == "BASE_TABLE"]
    named = [_table_name(table) for table in read]
    if named.count(LONG) > restricted:  # in a PIVOT, or wherever else a table may be named
        return None
    if any(table.get("column_name_alias") for table in read if _table_name(table) in {LONG, *wide}):
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


def _table_name(table: dict[str, Any]) -> str:
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
