"""SQLite databases of agents, listed as a file for each session. No other module opens one.

The agent may be writing meanwhile (design/formats.md#databases). Each session is read in its own transaction, which
sees one committed state and lasts only while its rows are copied. Nothing is parsed, and no connection kept,
meanwhile.
"""

import os
import re
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from agentsignals import private_files
from agentsignals.formats import MAX_DOCUMENT_BYTES, Ask, Database, Held, formats, is_state, unread_files
from agentsignals.sources import (
    IN_MEMORY,
    MACHINE_ERRNOS,
    RawFile,
    Unreadable,
    database_head,
    memory_map,
    no_space_error,
    path_of,
    row_uri,
)

MAX_COPY_BYTES = 256 * 1024 * 1024
"""A database with a log that no program has open is copied up to this size. That takes 0.2 s, once a run and worker."""
BUSY_S = 5.0
"""Wait this long for a writer that locks readers out: only without a write-ahead log, and then for milliseconds."""
MAX_QUERY_S = 60.0
"""CPU time of one query at most. No session takes so long; a table made to harm would run for ever."""
_STEPS = 100_000
_LAST_MS = 2**43
"""Milliseconds of the year 2248, the last whose nanoseconds fit into 64 bits."""
_WAL_AT, _WAL = 18, b"\x02"
"""Byte of the header that says the database has a write-ahead log (sqlite.org/fileformat.html)."""

_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of a damaged database. Python can't decode some messages that quote one."""
_REASONS = {
    sqlite3.SQLITE_NOTADB: "bad_database",
    sqlite3.SQLITE_CORRUPT: "bad_database",
    sqlite3.SQLITE_BUSY: "database_locked",
    sqlite3.SQLITE_LOCKED: "database_locked",
    sqlite3.SQLITE_READONLY: "database_locked",  # a writer died: the next one that opens it mends it
    sqlite3.SQLITE_INTERRUPT: "database_too_slow",
    sqlite3.SQLITE_TOOBIG: "document_too_large",
    sqlite3.SQLITE_ERROR: "unknown_database",
    sqlite3.SQLITE_AUTH: "unknown_database",
    sqlite3.SQLITE_PERM: "no_permission",
}

T = TypeVar("T")
_State = tuple[tuple[int, int, int] | None, ...]


def sessions_of(file: RawFile) -> Iterator[RawFile | Unreadable]:
    """List the sessions of a database as files, or why it can't be read."""
    path = path_of(file.uri)
    try:
        files = query(path, partial(_listed, file))
    except _ERRORS as problem:
        files = [Unreadable(file.uri, file.spec, skip_reason(problem), str(problem))]
    except OSError as problem:
        if problem.errno in MACHINE_ERRNOS:
            raise no_space_error(file.uri, problem) from problem
        files = [Unreadable(file.uri, file.spec, "unreadable", str(problem))]
    yield from files


def contents(file: RawFile, limit: int | None) -> bytes | Unreadable:
    """Return the document of a session, or its first `limit` bytes. OSError if there is no space."""
    path, session_id = path_of(file.container), file.key.encode()
    try:
        held = query(path, partial(_document, session_id=session_id, limit=limit))
    except _ERRORS as problem:
        return Unreadable(file.uri, file.spec, skip_reason(problem), str(problem))
    return Unreadable(file.uri, file.spec, "file_gone") if held is None else held


def session_ids(path: str) -> set[str] | None:
    """Return the ids of all sessions of a database, or None if it can't be read."""
    try:
        files = query(path, partial(_listed, RawFile(uri=path, source="local", spec=path, bytes=0, stamp=None)))
    except (*_ERRORS, OSError):
        return None
    return {f.key for f in files if isinstance(f, RawFile)}


def query(path: str, question: Callable[[sqlite3.Connection], T]) -> T:
    """Run a question against a database in one read transaction.

    No file beside it is made or changed, with one exception: if it is larger than `MAX_COPY_BYTES` and its log is
    open in no program, SQLite makes the `-shm` index and leaves it. Raises sqlite3.Error, UnicodeDecodeError,
    OSError.
    """
    state, log = _state(path), os.path.lexists(f"{path}-wal")
    if database_head(path)[_WAL_AT : _WAL_AT + 1] != _WAL:
        return _answer(path, "mode=ro", question)
    if not log:
        # All of it is in the one file. `immutable` makes no files and takes no lock, and is right as long as nobody
        # writes: whether somebody did is looked at afterwards.
        try:
            answer = _answer(path, "immutable=1", question)
        except _ERRORS:
            if _state(path) == state:
                raise
        else:
            if _state(path) == state:
                return answer
    elif not os.path.lexists(f"{path}-shm") and sum(seen[0] for seen in state if seen is not None) <= MAX_COPY_BYTES:
        with suppress(OSError):  # it is read in its place then
            if (copy := _copied(path, state)) is not None:
                return _in_transaction(copy, question)
    try:
        return _answer(path, "mode=ro", question)
    except sqlite3.OperationalError as problem:
        if not log or _code(problem) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        if (copy := _copied(path, _state(path))) is None:
            raise
        return _in_transaction(copy, question)


def skip_reason(problem: sqlite3.Error | UnicodeDecodeError) -> str:
    """Return why a database, or a session in it, is not read."""
    return "bad_database" if isinstance(problem, UnicodeDecodeError) else _REASONS.get(_code(problem), "unreadable")


def _answer(path: str, how: str, question: Callable[[sqlite3.Connection], T]) -> T:
    with closing(_connected(path, how)) as connection:
        return _in_transaction(connection, question)


def _connected(path: str, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?{how}",
        uri=True,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = bytes
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_DOCUMENT_BYTES)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _read_schema(connection: sqlite3.Connection) -> None:
    """Read the schema, and trust it if its only unsafe functions are `json_…`. Kilo's index uses `json_extract`, which
    SQLite 3.40 refuses otherwise; these functions only compute."""
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as problem:
        if "unsafe use of json_" not in str(problem):
            raise
        connection.execute("PRAGMA trusted_schema = ON")


def _in_transaction(connection: sqlite3.Connection, question: Callable[[sqlite3.Connection], T]) -> T:
    until = time.thread_time() + MAX_QUERY_S
    _read_schema(connection)
    connection.set_progress_handler(lambda: time.thread_time() > until, _STEPS)
    connection.execute("BEGIN")
    try:
        return question(connection)
    finally:
        with suppress(*_ERRORS):  # an error may have ended it
            connection.execute("ROLLBACK")
        connection.set_authorizer(None)


_kept_copy: list[tuple[object, sqlite3.Connection]] = []
"""The last copy, kept because the sessions of one database are read one by one."""


def _copied(path: str, state: _State) -> sqlite3.Connection | None:
    """Copy a database and its log in this very state; None if they were written meanwhile. The folder is private and
    deleted as soon as the copy is open. OSError if there is no space."""
    wanted = (path, state, os.getpid(), threading.get_ident())
    if _kept_copy and _kept_copy[0][0] == wanted:
        return _kept_copy[0][1]
    for _, former in _kept_copy:
        former.close()
    _kept_copy.clear()
    folder = tempfile.mkdtemp()
    try:
        copy = str(Path(folder) / "copy.db")
        for end in ("", "-wal"):
            private_files.create(copy + end)
            shutil.copyfile(path + end, copy + end)
        if _state(path) != state:
            return None
        connection = _connected(copy, "mode=rw")
        _read_schema(connection)  # opens the log, too
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _kept_copy.append((wanted, connection))
    return connection


def _listed(file: RawFile, connection: sqlite3.Connection) -> list[RawFile | Unreadable]:
    """List a database's sessions as files to read, or say why it is not read."""
    tables = _tables(connection)
    database, fits = _kind(connection, tables)
    if not fits and is_state(file.uri):
        return [file]
    if database is None:
        whose = next((s for s in unread_files() if s.tables and s.tables <= tables), None)
        if whose is not None:
            return [Unreadable(file.uri, file.spec, whose.reason, whose.note)]
        return [Unreadable(file.uri, file.spec, "unknown_database", f"tables: {', '.join(sorted(tables)) or 'none'}")]
    files: list[RawFile | Unreadable] = []
    held: list[Held] = []
    for session in _until_damaged(database.sessions(_ask(connection, database))):
        if isinstance(session, str):
            files.append(Unreadable(file.uri, file.spec, "bad_database", session))
        elif row_uri(file.uri, _text(session.session_id)) is None:
            files.append(Unreadable(file.uri, file.spec, "bad_shape", "a session without a usable id"))
        else:
            held.append(session)
    rows = sum(session.rows for session in held)
    unread: list[str] = []
    for found in _until_damaged(_unread_tables(connection, database, {session.session_id for session in held})):
        if isinstance(found, str):
            files.append(Unreadable(file.uri, file.spec, "bad_database", found))
        else:
            table, n = found
            unread.append(f"table {table}{f' ({n} sessions)' if n > 1 else ''}")
    if unread:
        files.append(Unreadable(file.uri, file.spec, "newer_database", f"not read: {', '.join(unread)}"))
        held = [session for session in held if session.rows]  # what is said in one without may be there
    # Lengths would cost reading all of it: a row is taken to be of the mean size, which only shares out work.
    row_bytes = sum(seen[0] for seen in _state(path_of(file.uri)) if seen is not None) // max(rows, 1)
    files += (
        RawFile(
            uri=row_uri(file.uri, _text(session.session_id)) or "",
            source="local",
            spec=file.spec,
            bytes=session.rows * row_bytes,
            # The last change to the millisecond, and how many rows there are: one may have been removed since.
            stamp=min(max(session.changed_ms, 0), _LAST_MS) * 1_000_000 + (session.rows + session.mark) % 1_000_000,
            container=file.uri,
            key=_text(session.session_id),
        )
        for session in held
    )
    return files or [Unreadable(file.uri, file.spec, "no_sessions")]


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _until_damaged(rows: Iterator[T]) -> Iterator[T | str]:
    """Yield what can be listed, then the error's text."""
    try:
        yield from rows
    except sqlite3.DatabaseError as problem:
        if _code(problem) != sqlite3.SQLITE_CORRUPT:
            raise
        yield str(problem)


def _document(connection: sqlite3.Connection, session_id: bytes, limit: int | None) -> bytes | None:
    """Return a session's rows as one document, in memory or in a mapped temporary file, up to `limit`."""
    database, _ = _kind(connection, _tables(connection))
    if database is None:
        return None
    most = MAX_DOCUMENT_BYTES + 1 if limit is None else limit
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as out:
        for piece in database.document(_ask(connection, database), session_id):
            out.write(piece)
            if out.tell() >= most:
                break
        length = min(out.tell(), most)
        if length > IN_MEMORY:
            return memory_map(out)
        out.seek(0)
        return out.read(length) or None


def _tables(connection: sqlite3.Connection) -> set[str]:
    """Return the tables. Views are left out: one could run anything."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    return {name.decode("utf-8", "replace") for (name,) in rows if isinstance(name, bytes)}


def _kind(connection: sqlite3.Connection, tables: set[str]) -> tuple[Database | None, bool]:
    """Return whose database it is, and whether its columns fit. Agents name tables alike, so the columns decide; if no
    columns fit, the tables do, since it may be an unknown version."""
    named = [d for d in _databases() if d.columns.keys() <= tables]
    for database in named:
        if all(set(of) <= _columns(connection, table) for table, of in database.columns.items()):
            return database, True
    return named[0] if named else None, False


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    connection.set_authorizer(None)
    return {_text(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


@cache
def _databases() -> list[Database]:
    return [database for f in formats().values() for database in f.databases]


_SESSION = "(?:session|thread|conversation|chat|composer|trajectory)"
_SESSION_ID = re.compile(rf"(?i){_SESSION}_?id")
_SESSIONS = re.compile(rf"(?i){_SESSION}s?(?:_?v?[0-9]+)?")
_LOOKED_AT = 100
_WITHOUT_ROWID = re.compile(r"(?i)\)[^)]*\bwithout\s+rowid\b[^)]*\Z")
"""The options behind the columns of a table."""


def _unread_tables(connection: sqlite3.Connection, database: Database, read: Set[object]) -> Iterator[tuple[str, int]]:
    """Yield tables with sessions that are not read, and how many: a newer version writes them beside older rows.

    Such a table has a session's id beside JSON or a role, or is named for sessions, or the format reads it in another
    shape. State of sessions that are read, such as a list of tasks, has no id of another one. No content leaves SQLite.
    """
    connection.set_authorizer(None)
    for table in sorted(_tables(connection) - database.columns.keys()):
        quoted, columns = _quoted(table), _columns(connection, table)
        key = next((column for column in sorted(columns) if _SESSION_ID.fullmatch(column)), None)
        if key is None and "id" in columns and _SESSIONS.fullmatch(table):
            key = "id"
        elif key is not None and "role" not in columns:
            begins = " OR ".join(f"substr({_quoted(c)}, 1, 1) IN ('{{', '[', x'7b', x'5b')" for c in sorted(columns))
            some = f"SELECT 1 FROM (SELECT * FROM {quoted} LIMIT {_LOOKED_AT}) WHERE {begins} LIMIT 1"  # noqa: S608
            key = key if connection.execute(some).fetchone() is not None else None
        elif (
            key is None
            and not columns.issuperset(database.some_have.get(table, ()))
            and connection.execute(f"SELECT 1 FROM {quoted} LIMIT 1").fetchone() is not None  # noqa: S608
        ):
            yield table, 0
        if key is not None:
            ids = {i for (i,) in connection.execute(f"SELECT DISTINCT {_quoted(key)} FROM {quoted}")}  # noqa: S608
            if unknown := len(ids - read - {None, b""}):
                yield table, unknown


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _Asked:
    def __init__(self, connection: sqlite3.Connection, tables: Mapping[str, Set[str]], without_rowid: Set[str]) -> None:
        self._connection = connection
        self.tables = tables
        self.without_rowid = without_rowid

    def __call__(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        return iter(self._connection.execute(query, values))


def _ask(connection: sqlite3.Connection, database: Database) -> Ask:
    """Permit only the columns that the format names."""
    tables = database.columns.keys() | database.some_have.keys()
    named = {table: (*database.columns.get(table, ()), *database.some_have.get(table, ())) for table in tables}
    permitted = {(table, column) for table, columns in named.items() for column in (*columns, "ROWID")}
    columns = {table: _columns(connection, table) for table in named.keys() & _tables(connection)}
    declared = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    asked = _Asked(connection, columns, {_text(name) for name, sql in declared if _WITHOUT_ROWID.search(_text(sql))})
    harmless = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_TRANSACTION)

    def allow(action: int, table: str | None, column: str | None, *_: Any) -> int:
        if action == sqlite3.SQLITE_READ and (table, column) not in permitted:
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK if action == sqlite3.SQLITE_READ or action in harmless else sqlite3.SQLITE_DENY

    connection.set_authorizer(allow)
    return asked


def _state(path: str) -> _State:
    states: list[tuple[int, int, int] | None] = []
    for name in (path, f"{path}-wal"):
        try:
            seen = Path(name).stat()
        except OSError:
            states.append(None)
        else:
            states.append((seen.st_size, seen.st_mtime_ns, seen.st_ino))
    return tuple(states)


def _code(problem: sqlite3.Error) -> int:
    """Return SQLite's primary error code, the lower byte."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF
