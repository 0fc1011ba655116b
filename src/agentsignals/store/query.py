"""Questions in SQL: DuckDB views over the store's files, read only."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from agentsignals.errors import QueryError
from agentsignals.store import kept_findings, repositories, tables, views
from agentsignals.store.damage import FOLDER as SHARDS
from agentsignals.store.manifest import contexts, share_texts
from agentsignals.store.selecting import Select, one_select

if TYPE_CHECKING:
    from agentsignals.store import Store

_Result = TypeVar("_Result")
_OF_FILES = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException, duckdb.InternalException)
"""What DuckDB raises when a file can't be read."""
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
        _forget(problem)
        raise QueryError(
            f"DuckDB refuses the query: {problem}",
            f"The tables: {', '.join(views.NAMES)}. `DESCRIBE table` names a table's columns.",
        ) from problem


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
        readable = views.listed([path for of_table in files.values() for path in of_table])
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
            for name in views.NAMES if names is None else names:
                self._make(name, is_asked_for=names is not None)
        return self.database

    def _make(self, name: str, *, is_asked_for: bool = True) -> None:
        if name in self._made or name not in views.NAMES:
            return
        if name == "findings":
            self._make_findings(is_asked_for)
            return
        for other in views.needs(name, self._context):
            self._make(other)
        files = self.files.get(name, [])
        rows = views.rows(files, name)
        if files:
            described = self.database.execute(f"DESCRIBE {rows}").fetchall()
            if [row[:2] for row in described] != views.columns(name):
                rows = views.rows_with_all_columns(files, name)
        view = "TEMP VIEW" if self.is_slice else "VIEW"
        self.database.execute(f"CREATE {view} {name} AS {views.of_context(rows, name, self._context)}")
        self._made.add(name)

    def _make_findings(self, is_asked_for: bool) -> None:
        """Of what was kept of this state of the store. Where nothing was, no row is an answer: to ask is refused."""
        kept = self._findings()
        if kept is None and is_asked_for:
            raise QueryError(views.NO_FINDINGS, views.FIND)
        rows = views.of_context(views.findings(kept), "findings", self._context)
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
    paths |= {table: store.sound(repositories.files(store.folder, table)) for table in tables.OF_REPOSITORIES}
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
    with _in_words():
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
        select = one_select(connection.database, query, views.NAMES)
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

    QueryError when DuckDB can't answer: a file it reads may be gone.
    """
    try:
        answer = _ours(connection, query, dict(values) if values else None, apart=True)
        names = names_of(answer)
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    except duckdb.Error as problem:
        _forget(problem)
        raise QueryError(f"DuckDB can't answer: {problem}", "The store may have changed; ask again.") from problem


def _limit_memory(connection: duckdb.DuckDBPyConnection) -> None:
    row = connection.execute("SELECT current_setting('memory_limit')").fetchone()
    amount, unit = str(row[0]).split() if row else ("1", "GiB")
    connection.execute(f"SET memory_limit='{float(amount) * _SHARE_OF_LIMIT:.1f} {unit}'")
