"""SQLite databases that agents keep their sessions in, as files of a session each; the one place that opens any.

Its agent may be writing (design/formats.md#databases). Each session is read in a transaction of its own, which sees one
committed state and lasts as long as copying its rows does; nothing is parsed, and no connection kept, meanwhile.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from agentsignals.formats import MAX_DOCUMENT_BYTES, Ask, Database, Held, database_of, formats
from agentsignals.sources import RawFile, Unreadable, path_of, row_uri
from agentsignals.sources.contents import IN_MEMORY, OF_THE_MACHINE, mapped, no_space, without_waiting

if TYPE_CHECKING:
    import sqlite3

MAGIC = b"SQLite format 3\0"
NAMES = (".db", ".sqlite", ".sqlite3", ".vscdb")
"""How agents call them: every file would have to be opened to go by its first bytes alone."""
BESIDE = ("-wal", "-shm", "-journal")
"""Ends the names of what belongs to a database and is no file of its own."""
COPIED_BYTES = 256 * 1024 * 1024
"""A database with a log that nobody has open is copied up to here: it takes 0.2 s, once a run and worker."""
BUSY_S = 5.0
"""How long to wait for a writer that lets nobody read: only without a write-ahead log, and then for milliseconds."""
MOST_S = 60.0
"""No session's rows take so long; a table made to harm would for ever."""
_STEPS = 100_000
_LAST_MS = 2**43
"""The year 2248: in nanoseconds it is the last that 64 bits hold."""
_WAL_AT, _WAL = 18, b"\x02"
"""Where a database says that it has a write-ahead log (sqlite.org/fileformat.html)."""

T = TypeVar("T")
_State = tuple[tuple[int, int, int] | None, ...]


def is_database(path: str) -> bool:
    """Whether a file is an SQLite database, by its name and its first bytes."""
    return path.endswith(NAMES) and _head(path)[: len(MAGIC)] == MAGIC


def is_beside(path: str) -> bool:
    """Whether a file belongs to a database next to it."""
    return path.endswith(BESIDE) and is_database(path.rpartition("-")[0])


def listed(file: RawFile) -> Iterator[RawFile | Unreadable]:
    """The sessions of a database, as files; one that is nobody's known, or can't be read, says why."""
    path = path_of(file.uri)
    try:
        files = asked(path, partial(_listed, file))
    except _errors() as problem:
        files = [Unreadable(file.uri, file.spec, reason(problem), str(problem))]
    except OSError as problem:
        if problem.errno in OF_THE_MACHINE:
            raise no_space(file.uri, problem) from problem
        files = [Unreadable(file.uri, file.spec, "unreadable", str(problem))]
    yield from files


def contents(file: RawFile, limit: int | None) -> bytes | Unreadable:
    """The document of a session; its first bytes alone where a limit says so. OSError where there is no space."""
    path, session_id = path_of(file.container), file.key.encode()
    try:
        held = asked(path, partial(_document, session_id=session_id, limit=limit))
    except _errors() as problem:
        return Unreadable(file.uri, file.spec, reason(problem), str(problem))
    return Unreadable(file.uri, file.spec, "file_gone") if held is None else held


def session_ids(path: str) -> set[str] | None:
    """The ids of all sessions of a database; None where it can't say."""
    try:
        files = asked(path, partial(_listed, RawFile(uri=path, source="local", spec=path, bytes=0, stamp=None)))
    except (*_errors(), OSError):
        return None
    return {f.key for f in files if isinstance(f, RawFile)}


def asked(path: str, question: Callable[[sqlite3.Connection], T]) -> T:
    """What a database answers, in one read transaction. Nothing beside it is made or changed, save where one of more
    than `COPIED_BYTES` has a log that no program has open: SQLite makes the index (`-shm`) then that it reads a log
    by, and leaves it.

    sqlite3.Error; UnicodeDecodeError; OSError.
    """
    import sqlite3  # noqa: PLC0415  (loaded where such a file is met)

    state, log = _state(path), os.path.lexists(f"{path}-wal")
    if _head(path)[_WAL_AT : _WAL_AT + 1] != _WAL:
        return _answer(path, "mode=ro", question)
    if not log:
        # All of it is in the one file. `immutable` makes no files and takes no lock, and is right as long as nobody
        # writes: whether somebody did is looked at afterwards.
        try:
            answer = _answer(path, "immutable=1", question)
        except _errors():
            if _state(path) == state:
                raise
        else:
            if _state(path) == state:
                return answer
    elif not os.path.lexists(f"{path}-shm") and sum(seen[0] for seen in state if seen is not None) <= COPIED_BYTES:
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


def reason(problem: sqlite3.Error | UnicodeDecodeError) -> str:
    """Why a database, or a session in it, is not read."""
    import sqlite3  # noqa: PLC0415  (as above)

    if isinstance(problem, UnicodeDecodeError):
        return "bad_database"
    reasons = {
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
    return reasons.get(_code(problem), "unreadable")


def _answer(path: str, how: str, question: Callable[[sqlite3.Connection], T]) -> T:
    with closing(_connected(path, how)) as connection:
        return _in_transaction(connection, question)


def _connected(path: str, how: str) -> sqlite3.Connection:
    import sqlite3  # noqa: PLC0415  (as above)

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
    """Kilo's has an index by `json_extract`, which SQLite 3.40 takes for unsafe in a schema: without such functions it
    would read none of it. They only compute."""
    import sqlite3  # noqa: PLC0415  (as above)

    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as problem:
        if "unsafe use of json_" not in str(problem):
            raise
        connection.execute("PRAGMA trusted_schema = ON")


def _in_transaction(connection: sqlite3.Connection, question: Callable[[sqlite3.Connection], T]) -> T:
    until = time.monotonic() + MOST_S
    _read_schema(connection)
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    connection.execute("BEGIN")
    try:
        return question(connection)
    finally:
        with suppress(*_errors()):  # an error may have ended it
            connection.execute("ROLLBACK")
        connection.set_authorizer(None)


_kept_copy: list[tuple[object, sqlite3.Connection]] = []
"""The last copy that was made: the sessions of one database are asked for one by one."""


def _copied(path: str, state: _State) -> sqlite3.Connection | None:
    """A copy of a database and its log, of this very state; None where they were written meanwhile. Its folder is its
    owner's alone, and gone as soon as it is open. OSError where there is no space."""
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
    tables = _tables(connection)
    database = _kind(connection, tables)
    if database is None:
        whose = database_of(tables)
        if whose is not None:
            return [Unreadable(file.uri, file.spec, whose.reason, whose.note)]
        return [Unreadable(file.uri, file.spec, "unknown_database", f"tables: {', '.join(sorted(tables)) or 'none'}")]
    files: list[RawFile | Unreadable] = []
    held: list[Held] = []
    for session in _until_damaged(database.sessions(_ask(connection, database))):
        if isinstance(session, str):
            files.append(Unreadable(file.uri, file.spec, "bad_database", session))
        elif row_uri(file.uri, _text(session.session_id)) is None:
            files.append(Unreadable(file.uri, file.spec, "bad_shape", "a session without an id that can be kept"))
        else:
            held.append(session)
    rows = sum(session.rows for session in held)
    if not rows and database.newer in tables and _has_rows(connection, database.newer):
        return [Unreadable(file.uri, file.spec, "newer_database", f"its sessions are in {database.newer}")]
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


def _until_damaged(sessions: Iterator[Held]) -> Iterator[Held | str]:
    """Sessions as far as they can be listed, and what is wrong from there on."""
    import sqlite3  # noqa: PLC0415  (as above)

    try:
        yield from sessions
    except sqlite3.DatabaseError as problem:
        if _code(problem) != sqlite3.SQLITE_CORRUPT:
            raise
        yield str(problem)


def _document(connection: sqlite3.Connection, session_id: bytes, limit: int | None) -> bytes | None:
    database = _kind(connection, _tables(connection))
    if database is None:
        return None
    most = MAX_DOCUMENT_BYTES + 1 if limit is None else limit
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as out:
        for piece in database.document(_ask(connection, database), session_id):
            out.write(piece)
            if out.tell() >= most:
                break
        return _held(out, min(out.tell(), most)) if out.tell() else None


def _held(out: IO[bytes], length: int) -> bytes:
    if length > IN_MEMORY:
        return mapped(out)
    out.seek(0)
    return out.read(length)


def _tables(connection: sqlite3.Connection) -> set[str]:
    """The tables alone: a view of such a name could ask for anything."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    return {name.decode("utf-8", "replace") for (name,) in rows if isinstance(name, bytes)}


def _kind(connection: sqlite3.Connection, tables: set[str]) -> Database | None:
    """Whose it is: agents call tables alike, so that their columns tell. Without all of one's it may be a version of it
    that is not known."""
    named = [d for d in _databases() if d.columns.keys() <= tables]
    whole = (d for d in named if all(set(of) <= _columns(connection, table) for table, of in d.columns.items()))
    return next(whole, named[0] if named else None)


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    connection.set_authorizer(None)
    return {_text(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


@cache
def _databases() -> list[Database]:
    return [database for f in formats().values() for database in f.databases]


def _has_rows(connection: sqlite3.Connection, table: str) -> bool:
    connection.set_authorizer(None)
    return connection.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchone() is not None  # noqa: S608  (a format's word)


class _Asked:
    """The answers of one connection."""

    def __init__(self, connection: sqlite3.Connection, tables: Mapping[str, Set[str]]) -> None:
        self._connection = connection
        self.tables = tables

    def __call__(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        return iter(self._connection.execute(query, values))


def _ask(connection: sqlite3.Connection, database: Database) -> Ask:
    """Asks for nothing but the columns that are named."""
    import sqlite3  # noqa: PLC0415  (as above)

    tables = database.columns.keys() | database.some_have.keys()
    named = {table: (*database.columns.get(table, ()), *database.some_have.get(table, ())) for table in tables}
    permitted = {(table, column) for table, columns in named.items() for column in (*columns, "ROWID")}
    asked = _Asked(connection, {table: _columns(connection, table) for table in named.keys() & _tables(connection)})
    harmless = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_TRANSACTION)

    def allow(action: int, table: str | None, column: str | None, *_: Any) -> int:
        if action == sqlite3.SQLITE_READ and (table, column) not in permitted:
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK if action == sqlite3.SQLITE_READ or action in harmless else sqlite3.SQLITE_DENY

    connection.set_authorizer(allow)
    return asked


def _head(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0, opener=without_waiting) as handle:
            return handle.read(_WAL_AT + 2)
    except OSError:  # said when it is looked at as a file
        return b""


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


def _errors() -> tuple[type[sqlite3.Error], type[UnicodeDecodeError]]:
    """What goes wrong with a database; Python can't put a message that quotes a damaged one into words."""
    import sqlite3  # noqa: PLC0415  (as above)

    return sqlite3.Error, UnicodeDecodeError


def _code(problem: sqlite3.Error) -> int:
    """The kind of an error, of those that SQLite names (the lower byte: the rest says more of the same)."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF
