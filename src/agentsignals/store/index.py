"""The store's index in SQLite: live shards, every file as it was when it was read, and where each session is stored.

It can be thrown away: `store.shards.rebuild_index` makes it again from the shards. Each row holds from the commit that
wrote it until the one that replaced it. So an opened store stays as it was, and loads only the rows that are asked for.
Replaced rows are removed after an hour, as replaced shards are.
"""

# ruff: noqa: S608  (SQL is made of texts of ours; values are bound)

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, KeysView, MutableMapping, Set, ValuesView
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote
from zlib import crc32

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from agentsignals import private_files
from agentsignals.errors import StoreError
from agentsignals.model.lazy import deferred_pattern
from agentsignals.store import disk
from agentsignals.store.disk import StoredFile, refuse_newer

SCHEMA_VERSION = 12
"""Version of the tables' columns and of this index. A store of an older version is read again from its sources; one of
a newer version is refused."""
INDEX_FILE = "index.sqlite"
JOURNAL_FILE = f"{INDEX_FILE}-journal"
"""Rollback journal of SQLite: there while a commit is written, and after one that was killed."""
CHECKED_FILE = ".index.checked"
"""Length and time of the index after the last commit. It can be thrown away."""
SHARDS_FOLDER = "shards"
GONE_FILE = "gone.json"
"""Names the sessions and artifacts that left a shard, for an index that is made again."""
RETIRED = ".retired"
"""Marks a shard that others replaced. No index names it; a reader may still have it open."""


SESSION = "session:"
"""Prefix of the key of a session. Keys of the sessions that a file tells are not kept with it: `sessions` has them."""


class ArtifactEntry(Struct, kw_only=True, gc=False):
    """A file as it was when it was last read: enough to notice a change, and to read it again with its group."""

    source: str
    spec: str
    bytes: int
    stamp: int | None
    container: str
    key: str
    session_hint: str | None
    repo_hint: str | None
    format: str | None
    parser: int
    """Version of the parser that read it; 0 when no format claims it."""
    group: str
    """Name of the file group it was read with."""
    keys: list[str]
    shard: str = ""
    """Shard of its row in `artifacts`; empty for a file that is no trace and has no row."""
    skipped: dict[str, int] = {}
    error: str = ""
    """Our own error that cost some or all of it. It is shown, so that no defect hides among skipped files."""
    note: str = ""
    """Description of a file that no format reads, as far as its content tells."""
    version: str = ""
    """Version of the agent, from the file's first session; empty where none tells."""
    unknown_fields: list[str] = []
    """Fields that no file of this format had before."""
    head: str = ""
    """Hash of the beginning it was recognised by, where more follows. While it is the same, so is the format."""


class SessionEntry(Struct, kw_only=True, gc=False):
    """Shard and group of a session, and the figures that the summary shows."""

    shard: str
    group: str
    context: str
    n_turns: int | None
    n_prompts: int | None
    n_tool_calls: int | None
    n_edits: int | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None
    visible_output_tokens: int | None = None
    """Set where output and cost are lower bounds (`views.usage`)."""
    unpriced: str | None = None
    """Parts that the cost leaves out."""


FIGURES = tuple(name for name in SessionEntry.__struct_fields__ if name not in ("shard", "group", "context"))


class ShardEntry(Struct, kw_only=True):
    """A live shard and the versions of the signals in it."""

    signals: dict[str, int] = field(default_factory=dict)
    """Version of each signal that it has the values of. Others are computed when somebody asks for them."""
    embedder: str = ""
    """Embedder of its signals, as named on the command line; empty when not known."""
    internal_errors: dict[str, int] = field(default_factory=dict)
    labels: str = ""
    """Fingerprint of the labels made here that its values were computed with."""
    tables: dict[str, StoredFile] = field(default_factory=dict)
    """Its files by table. Values computed later are in further files of the table `signals`: `signals.2` and so on."""
    gone: list[str] = field(default_factory=list)
    """Sessions with rows in its files that other shards hold now, or none: no reader sees these rows."""
    gone_artifacts: list[str] = field(default_factory=list)
    """Artifacts likewise."""

    @property
    def n_sessions(self) -> int:
        """Sessions with rows in its files that did not leave it."""
        return self.tables["sessions"].rows - len(self.gone)


class FileStamp(NamedTuple):
    """A file as a run knows it: its state at its last reading, where a difference means that it is read again, and what
    it was found to be."""

    bytes: int
    stamp: int | None
    key: str
    group: str
    parser: int
    error: str
    is_local: int
    """1 for a file of this machine."""
    kind: tuple[int, str | None, str, str]
    """1 for a file that has a row in `artifacts`, format, specification, and more as JSON: one tuple for many files."""

    @property
    def is_trace(self) -> bool:
        return bool(self.kind[0])

    @property
    def format(self) -> str | None:
        return self.kind[1]


class FileKind(Struct, kw_only=True):
    """Files that are alike but for their names."""

    files: int
    bytes: int
    example: str
    """Path of one of them: the first in order."""
    is_trace: bool
    format: str | None
    spec: str
    skipped: dict[str, int]
    note: str
    version: str
    unknown_fields: list[str]


TOTALS = {
    "sessions": "count(*)",
    "attempts": "total(context = 'eval')",
    "prompts": "total(n_prompts)",
    "tool_calls": "total(n_tool_calls)",
    "edits": "total(n_edits)",
    "input_tokens": "total(input_tokens)",
    "output_tokens": "total(output_tokens)",
    "cache_read_tokens": "total(cache_read_tokens)",
    "cache_write_tokens": "total(cache_write_tokens)",
    "cost_usd": "total(cost_usd)",
    "unpriced_sessions": "count(*) - count(cost_usd)",
    "lower_bounds": "count(visible_output_tokens)",
    "visible_output_tokens": "total(visible_output_tokens)",
    "partly_priced": "count(unpriced)",
}
"""Sums over sessions, in SQL. A figure that is not known counts as 0."""


class _State(Struct, kw_only=True):
    """Facts about the whole store."""

    code: str = ""
    embedder: str = "words"
    history_of: str = ""
    places: StoredFile | None = None
    across: StoredFile | None = None
    across_signals: dict[str, int] = {}
    run: int = 0
    mark: str = ""
    """Random text of this index. An index that was made again has another."""
    generation: int = 0
    """Number of the last commit."""
    settled: int = 0
    """Number of the last commit that ended a run."""
    purged: int = 0
    """Readers of earlier generations lack rows."""


class _MoreOfFile(Struct, kw_only=True, omit_defaults=True):
    """Fields of a file that nothing is found by."""

    container: str = ""
    session_hint: str | None = None
    repo_hint: str | None = None
    skipped: dict[str, int] = {}
    note: str = ""
    version: str = ""
    unknown_fields: list[str] = []


T = TypeVar("T")
_LIVE = "born <= :generation AND (died IS NULL OR died > :generation)"
_FIGURES = ", ".join(FIGURES)
_AMONG = "(SELECT value FROM json_each(:values))"
_SESSION_COLUMNS = f"session_id, shard, file_group, context, {_FIGURES}"
_FILE_COLUMNS = "uri, shard, file_group, source, spec, bytes, stamp, key, format, parser, head, error, keys, more"
_STAMP_COLUMNS = """
    uri, bytes, stamp, key, file_group, parser, error, source = 'local', shard != '', format, spec, more
"""
_OF_KIND = 8
"""The first of these columns that is of the kind."""
_PLAIN_FIELDS = ("source", "spec", "bytes", "stamp", "key", "format", "parser", "head", "error")
_MORE_FIELDS = _MoreOfFile.__struct_fields__
_BY_END = """
CREATE INDEX IF NOT EXISTS sessions_by_end ON sessions (died) WHERE died IS NOT NULL;
CREATE INDEX IF NOT EXISTS files_by_end ON files (died) WHERE died IS NOT NULL;
"""
"""Indices of replaced rows, which an index that was made before December 2026 lacks until they are removed."""
_TABLES = f"""
CREATE TABLE state (body BLOB NOT NULL);
CREATE TABLE commits (generation INTEGER PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE shards (name TEXT NOT NULL, body BLOB NOT NULL, born INTEGER NOT NULL, died INTEGER);
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, shard TEXT NOT NULL, file_group TEXT NOT NULL,
  context TEXT NOT NULL, {_FIGURES}, born INTEGER NOT NULL, died INTEGER
);
CREATE TABLE files (
  id INTEGER PRIMARY KEY, uri TEXT NOT NULL, shard TEXT NOT NULL, file_group TEXT NOT NULL, source TEXT NOT NULL,
  spec TEXT NOT NULL, bytes INTEGER NOT NULL, stamp INTEGER, key TEXT NOT NULL, format TEXT, parser INTEGER NOT NULL,
  head TEXT NOT NULL, error TEXT NOT NULL, keys TEXT, more TEXT NOT NULL, born INTEGER NOT NULL, died INTEGER
);
CREATE TABLE file_keys (key TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY (key, file)) WITHOUT ROWID;
{_BY_END}
CREATE INDEX sessions_by_id ON sessions (session_id);
CREATE INDEX sessions_by_shard ON sessions (shard);
CREATE INDEX sessions_by_group ON sessions (file_group);
CREATE INDEX files_by_uri ON files (uri);
CREATE INDEX files_by_shard ON files (shard);
CREATE INDEX files_by_group ON files (file_group);
PRAGMA user_version = {SCHEMA_VERSION};
"""


def _session_of(row: tuple[Any, ...]) -> SessionEntry:
    return SessionEntry(shard=row[1], group=row[2], context=row[3], **dict(zip(FIGURES, row[4:], strict=True)))


def _row_of_session(session_id: str, entry: SessionEntry) -> tuple[Any, ...]:
    figures = (getattr(entry, name) for name in FIGURES)
    return (session_id, entry.shard, entry.group, entry.context, *figures)


def _file_of(row: tuple[Any, ...]) -> ArtifactEntry:
    more = msgspec.json.decode(row[13], type=_MoreOfFile)
    return ArtifactEntry(
        shard=row[1],
        group=row[2],
        keys=_keys_of(row[2], row[12]),
        **dict(zip(_PLAIN_FIELDS, row[3:12], strict=True)),
        **{name: getattr(more, name) for name in _MORE_FIELDS},
    )


def _keys_of(group: str, keys: str | None) -> list[str]:
    return [group] if keys is None else msgspec.json.decode(keys, type=list[str])


def _row_of_file(uri: str, entry: ArtifactEntry) -> tuple[Any, ...]:
    more = msgspec.json.encode(_MoreOfFile(**{name: getattr(entry, name) for name in _MORE_FIELDS}), order="sorted")
    keys = None if entry.keys == [entry.group] else _json(entry.keys)
    plain = (getattr(entry, name) for name in _PLAIN_FIELDS)
    return (uri, entry.shard, entry.group, *plain, keys, more.decode())


_POINTS = 32
"""Rows that are read one by one; whoever asks for more gets all of them loaded."""


class Rows(MutableMapping[str, T], Generic[T]):
    """The sessions or files of an index by id. Rows are read when they are asked for; changes wait for a commit."""

    def __init__(self, index: Manifest, table: str) -> None:
        self._index, self._table = index, table
        is_files = table == "files"
        self._id, self._columns = ("uri", _FILE_COLUMNS) if is_files else ("session_id", _SESSION_COLUMNS)
        self._made: Any = _file_of if is_files else _session_of
        self._row: Any = _row_of_file if is_files else _row_of_session
        self._all: dict[str, T] | None = None
        self._few: dict[str, T | None] = {}
        self.changed: dict[str, T | None] = {}
        """Rows that the next commit writes; None for one that goes."""

    def _select(self, where: str, **values: Any) -> dict[str, T]:
        sql = f"SELECT {self._columns} FROM {self._table} WHERE {where} AND {_LIVE}"
        return {row[0]: self._made(row) for row in self._index.select(sql, **values)}

    def all(self) -> dict[str, T]:
        """Return all rows. Who wants to change one puts it back."""
        if self._all is None:
            made = self._select("true")
            for key, entry in self.changed.items():
                made.pop(key, None)
                if entry is not None:
                    made[key] = entry
            self._all, self._few = made, {}
        return self._all

    def where(self, column: str, values: Iterable[str]) -> dict[str, T]:
        """Return the rows with one of these values of `shard` or `group`."""
        wanted = set(values)
        if self._all is None:
            name = "file_group" if column == "group" else column
            found = self._select(f"{name} IN {_AMONG}", values=_json(wanted))
            found = {key: entry for key, entry in found.items() if key not in self.changed}
            others: Iterable[tuple[str, T | None]] = self.changed.items()
        else:
            found, others = {}, self._all.items()
        return found | {k: e for k, e in others if e is not None and getattr(e, column) in wanted}

    def known(self, keys: Iterable[str]) -> dict[str, T]:
        """Return the rows there are of these keys."""
        wanted = sorted(set(keys))
        if self._all is not None:
            return {key: self._all[key] for key in wanted if key in self._all}
        found = self._select(f"{self._id} IN {_AMONG}", values=_json(wanted))
        found = {key: entry for key, entry in found.items() if key not in self.changed}
        return found | {k: e for k in wanted if (e := self.changed.get(k)) is not None}

    def __getitem__(self, key: str) -> T:
        entry: T | None
        if self._all is not None:
            return self._all[key]
        if key in self.changed:
            entry = self.changed[key]
        elif key in self._few:
            entry = self._few[key]
        elif len(self._few) >= _POINTS:
            return self.all()[key]
        else:
            entry = self._few[key] = self._select(f"{self._id} = :key", key=key).get(key)
        if entry is None:
            raise KeyError(key)
        return entry

    def __setitem__(self, key: str, entry: T) -> None:
        self.changed[key] = entry
        if self._all is not None:
            self._all[key] = entry

    def __delitem__(self, key: str) -> None:
        """Remove a row. One that is not there is no error: to look would read a million one by one."""
        self.changed[key] = None
        if self._all is not None:
            self._all.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        if self._all is not None or self.changed:
            return iter(self.all())
        return (key for (key,) in self._index.select(f"SELECT {self._id} FROM {self._table} WHERE {_LIVE}"))

    def __len__(self) -> int:
        if self._all is not None or self.changed:
            return len(self.all())
        (((n,),)) = self._index.select(f"SELECT count(*) FROM {self._table} WHERE {_LIVE}")
        return int(n)

    def keys(self) -> KeysView[str]:
        return self.all().keys()

    def values(self) -> ValuesView[T]:
        return self.all().values()

    def flush(self, database: sqlite3.Connection, generation: int) -> None:
        """Write the changes. They count once `written` is called."""
        if not self.changed:
            return
        gone = f"UPDATE {self._table} SET died = ? WHERE {self._id} = ? AND died IS NULL"
        database.executemany(gone, ((generation, key) for key in self.changed))
        ((last,),) = database.execute(f"SELECT coalesce(max(id), 0) FROM {self._table}").fetchall()
        new = [(key, entry) for key, entry in self.changed.items() if entry is not None]
        places = ", ".join("?" * (len(self._columns.split(", ")) + 2))
        added = f"INSERT INTO {self._table} (id, {self._columns}, born) VALUES ({places})"
        database.executemany(
            added, ((last + n, *self._row(key, entry), generation) for n, (key, entry) in enumerate(new, 1))
        )
        if self._table == "files":
            named = ((key, last + n) for n, (_, entry) in enumerate(new, 1) for key in dict.fromkeys(entry.keys))  # type: ignore[attr-defined]
            database.executemany("INSERT INTO file_keys (key, file) VALUES (?, ?)", named)


class Condition(NamedTuple):
    """A condition on files of an index, in SQL, and the values in it."""

    sql: str
    values: dict[str, str]
    uris: Set[str] | None
    """The files for which it holds; None for all."""


EVERY_FILE = Condition("true", {}, None)


def among_files(uris: set[str], all_files: Iterable[str]) -> Condition:
    """Return the condition for these files out of all, in the fewest words."""
    others = set(all_files) - uris
    if not others:
        return EVERY_FILE
    few, word = (others, "NOT IN") if len(others) < len(uris) else (uris, "IN")
    return Condition(f"uri {word} {_AMONG}", {"values": _json(few)}, uris)


class Manifest:
    """The index of a store as it was when it was opened. Without a folder it is in memory alone."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.shards: dict[str, ShardEntry] = {}
        self.sessions: Rows[SessionEntry] = Rows(self, "sessions")
        self.files: Rows[ArtifactEntry] = Rows(self, "files")
        self.code = ""
        """Stamp of the code that read all files and computed all signals; empty when some of it is older."""
        self.embedder = "words"
        """Embedder of this store, as named on the command line."""
        self.history_of = ""
        """Fingerprint of the shards that the places of sessions were computed from; empty when they are stale."""
        self.places: StoredFile | None = None
        """File of the places of sessions."""
        self.across: StoredFile | None = None
        """File of the other values across sessions, as they were when somebody last asked for them."""
        self._settled_history = ""
        """`history_of` at the commit that ended the last run."""
        self.across_signals: dict[str, int] = {}
        """Versions of the signals in that file; empty when it is of former shards."""
        self.run = 0
        """Counter of what was written, so that no name is used twice: a reader may still have the older file open."""
        self.mark = ""
        self.generation = self.settled = self.purged = 0
        self._written: dict[str, bytes] = {}
        """Shards as they are in the database."""
        self._touched: set[str] = set()
        self.shrunk: set[str] = set()
        """Shards that lost sessions, of which nothing is written beside them yet."""
        self._memory: sqlite3.Connection | None = None
        self._lock = RLock()
        self._seen: tuple[int, int] | None = None
        self._stamps: tuple[int, dict[str, FileStamp]] | None = None
        self._contexts: tuple[int, dict[str, int]] | None = None
        self._kinds: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    # -- reading -------------------------------------------------------------------------------------------------

    def select(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return rows of the committed index as it was when it was opened; `:generation` is bound. StoreError where
        it was replaced since, or is damaged."""
        return self._selected(list, sql, values)

    def _selected(self, made: Callable[[Iterable[tuple[Any, ...]]], T], sql: str, values: dict[str, Any]) -> T:
        """Return what is `made` of the rows, which need not all be in memory."""
        bound = {"generation": self.generation, **values}
        if self.folder is None:
            with self._lock:
                return made(self._in_memory().execute(sql, bound))
        try:
            with _opened(self.folder / INDEX_FILE) as database:
                database.execute("BEGIN")
                now = _state_in(database)
                if now.mark != self.mark or now.purged > self.generation:
                    raise StoreError(
                        f"Another run replaced the store {self.folder} while it was open.", "Open it again."
                    )
                return made(database.execute(sql, bound))
        except UnicodeEncodeError:  # half of a surrogate pair, which no text of the index has
            return made(())
        except sqlite3.Error as problem:
            raise _cannot_read(self.folder, problem) from problem

    def is_held(self) -> bool:
        """Return False where the index was replaced, or an hour later lacks rows of this state: the store is to be
        opened again."""
        if self.folder is None:
            return True
        try:
            status = (self.folder / INDEX_FILE).stat()
            if (seen := (status.st_ino, status.st_mtime_ns)) == self._seen:
                return True
            with _opened(self.folder / INDEX_FILE) as database:
                now = _state_in(database)
        except (OSError, sqlite3.Error, msgspec.DecodeError):
            return False
        if now.mark != self.mark or now.purged > self.generation:
            return False
        self._seen = seen
        return True

    def is_sound(self) -> bool:
        """Check all of the database."""
        if self.folder is None:
            return True
        try:
            with _opened(self.folder / INDEX_FILE) as database:
                return database.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
        except sqlite3.Error:
            return False

    def contexts(self) -> dict[str, int]:
        """Return the number of sessions by context. Eval runs and people's sessions are never counted together."""
        if self._contexts is None or self._contexts[0] != self.generation or self.sessions.changed:
            found = self._live("context, count(*)", "sessions", "true GROUP BY 1 ORDER BY 1")
            self._contexts = self.generation, dict(found)
        return dict(self._contexts[1])

    def has_lower_bounds(self, context: str, shards: Iterable[str]) -> bool:
        """Return True where the output of a session of these shards is a lower bound."""
        where = f"context = :context AND visible_output_tokens IS NOT NULL AND shard IN {_AMONG} LIMIT 1"
        return bool(self._live("1", "sessions", where, context=context, values=_json(shards)))

    def sessions_by_shard(self) -> dict[str, int]:
        return dict(self._live("shard, count(*)", "sessions", "true GROUP BY 1"))

    def stamps(self) -> dict[str, FileStamp]:
        """Return what a run asks of each file."""
        if self._stamps is None or self._stamps[0] != self.generation or self.files.changed:
            self._check_committed()
            sql = f"SELECT {_STAMP_COLUMNS} FROM files WHERE {_LIVE}"
            self._stamps = self.generation, self._selected(partial(self._with_stamps, {}), sql, {})
        return self._stamps[1]

    def _with_stamps(self, stamps: dict[str, FileStamp], rows: Iterable[tuple[Any, ...]]) -> dict[str, FileStamp]:
        made = partial(tuple.__new__, FileStamp)  # thrice as fast as its own constructor
        for row in rows:
            kind = row[_OF_KIND:]
            stamps[row[0]] = made((*row[1:_OF_KIND], self._kinds.setdefault(kind, kind)))
        return stamps

    def marks(self) -> set[int]:
        """Return a number for each trace as it was read, which another state of it would not have."""
        state = "CAST(bytes || ',' || coalesce(stamp, 0) || ',' || parser AS BLOB)"
        traces = self._live(f"CAST(uri AS BLOB), {state}", "files", "shard != ''")
        return {crc32(uri) << 32 | crc32(read) for uri, read in traces}

    def _stamps_among(self, among: Condition) -> Iterable[tuple[str, FileStamp]]:
        stamps = self.stamps()
        return stamps.items() if among.uris is None else [(uri, stamps[uri]) for uri in among.uris if uri in stamps]

    def local_files(self) -> set[str]:
        """Return the files of this machine that traces were read from."""
        if self._stamps is not None:
            return {uri for uri, stamp in self.stamps().items() if stamp.is_trace and stamp.is_local}
        return {uri for (uri,) in self._live("uri", "files", "shard != '' AND source = 'local'")}

    def kinds(self, among: Condition = EVERY_FILE) -> list[FileKind]:
        """Return the kinds of all files or of those `among`."""
        found: dict[tuple[int, str | None, str, str], list[Any]] = {}
        for uri, stamp in self._stamps_among(among):
            if (one := found.get(stamp.kind)) is None:
                found[stamp.kind] = [1, stamp.bytes, uri]
                continue
            one[0] += 1
            one[1] += stamp.bytes
            one[2] = min(one[2], uri)
        kinds: list[FileKind] = []
        for (is_trace, name, spec, more), (n, size, example) in sorted(found.items(), key=lambda kind: kind[1][2]):
            rest = msgspec.json.decode(more, type=_MoreOfFile)
            told = {key: getattr(rest, key) for key in ("skipped", "note", "version", "unknown_fields")}
            same = {"is_trace": bool(is_trace), "format": name, "spec": spec, **told}
            kinds.append(FileKind(files=n, bytes=size, example=example, **same))
        return kinds

    def file_errors(self, among: Condition = EVERY_FILE) -> list[tuple[str, str]]:
        """Return the traces of which our own errors cost something, each with its error."""
        return [(uri, stamp.error) for uri, stamp in self._stamps_among(among) if stamp.error and stamp.is_trace]

    def repeated(self, among: Condition = EVERY_FILE) -> int:
        """Return the number of files with the content of another, as sources tell, without those that reading tells."""
        named = [
            stamp for _, stamp in self._stamps_among(among) if stamp.stamp is None and stamp.key and stamp.is_trace
        ]
        keys = [s.key for s in named if "repeated_file" not in msgspec.json.decode(s.kind[3], type=_MoreOfFile).skipped]
        return len(keys) - len(set(keys))

    def totals(self, among: Condition = EVERY_FILE) -> dict[str, float]:
        """Return sums over the sessions that were read from these files (`TOTALS`)."""
        groups = f"SELECT file_group FROM files WHERE shard != '' AND {among.sql} AND {_LIVE}"
        (row,) = self._live(", ".join(TOTALS.values()), "sessions", f"file_group IN ({groups})", **among.values)
        return dict(zip(TOTALS, row, strict=True))

    def silent_groups(self, among: Condition = EVERY_FILE) -> list[tuple[int, set[str]]]:
        """Return for each group with sessions of people without prompt, call and tokens: their number, and the formats
        of the group's files."""
        sql = f"""
            SELECT n, json_group_array(DISTINCT format) FROM files JOIN (
              SELECT file_group, count(*) AS n FROM sessions
              WHERE n_turns = 0 AND n_tool_calls = 0 AND context = 'product' AND coalesce(input_tokens, 0) = 0
                AND coalesce(output_tokens, 0) = 0 AND {_LIVE} GROUP BY 1
            ) AS silent ON files.file_group = silent.file_group
            WHERE shard != '' AND format IS NOT NULL AND {among.sql} AND {_LIVE} GROUP BY files.file_group ORDER BY 2
        """
        return [(n, set(msgspec.json.decode(names))) for n, names in self.committed(sql, **among.values)]

    def local_specs(self) -> dict[str, str]:
        """Return the specifications that files of this machine were listed by, each with one of its files."""
        return dict(self._live("spec, min(uri)", "files", "source = 'local' GROUP BY 1"))

    def no_traces(self) -> list[str]:
        """Return the files under the sources that are no traces."""
        return [uri for (uri,) in self._live("uri", "files", "shard = ''")]

    def parsers(self) -> set[tuple[str | None, int]]:
        """Return the formats of the files, each with the versions of the parsers that read them."""
        return {(stamp.format, stamp.parser) for stamp in self.stamps().values()}

    def files_with_keys(self, keys: Iterable[str]) -> dict[str, list[str]]:
        """Return the files that have each of these keys. Those of a session have its key."""
        found: dict[str, list[str]] = {}
        live = _LIVE.replace("born", "files.born").replace("died", "files.died")
        sql = f"""
            SELECT file_keys.key, uri FROM json_each(:keys) AS wanted JOIN file_keys ON file_keys.key = wanted.value
            JOIN files ON files.id = file_keys.file WHERE {live}
            UNION SELECT wanted.value, uri FROM json_each(:ids) AS wanted
            JOIN (SELECT session_id, file_group FROM sessions WHERE {_LIVE}) AS told
            ON told.session_id = substr(wanted.value, {len(SESSION) + 1})
            JOIN files ON files.file_group = told.file_group WHERE {live}
        """
        wanted = set(keys)
        ids = [key for key in wanted if key.startswith(SESSION)]
        for key, uri in self.committed(sql, keys=_json(wanted), ids=_json(ids)):
            found.setdefault(key, []).append(uri)
        return found

    def keys_with_prefix(self, *prefixes: str) -> dict[str, list[str]]:
        """Return the keys that begin so, by file."""
        found: dict[str, list[str]] = {}
        sql = f"""
            SELECT uri, file_keys.key FROM file_keys JOIN files ON files.id = file_keys.file
            WHERE file_keys.key >= :first AND file_keys.key < :last AND {_LIVE}
        """
        for prefix in prefixes:
            for uri, key in self.committed(sql, first=prefix, last=f"{prefix[:-1]}{chr(ord(prefix[-1]) + 1)}"):
                found.setdefault(uri, []).append(key)
        return found

    def _live(self, columns: str, table: str, where: str = "true", **values: Any) -> list[tuple[Any, ...]]:
        return self.committed(f"SELECT {columns} FROM {table} WHERE {_LIVE} AND {where}", **values)

    def committed(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Rows of the index, with the changes that wait."""
        self._check_committed()
        return self.select(sql, **values)

    def _check_committed(self) -> None:
        if self.folder is None and (self.sessions.changed or self.files.changed):
            self.commit()
        if self.sessions.changed or self.files.changed:
            raise RuntimeError("the index is asked before its changes are committed")

    # -- writing -------------------------------------------------------------------------------------------------

    def shards_changed(self) -> None:
        """Mark the values across sessions as stale."""
        self.history_of, self.across_signals = "", {}

    def commit(self, whole: bool = False) -> None:
        """Write the changes in one transaction. `whole`: also of shards whose entries were changed in place. StoreError
        when the disk refuses it, or another run wrote meanwhile."""
        state = self._next_state()
        names = self.shards.keys()
        due = set(names) if whole else (names - self._written.keys()) | (self._touched & names)
        shards = {name: msgspec.json.encode(self.shards[name]) for name in sorted(due)}
        shards = {name: body for name, body in shards.items() if self._written.get(name) != body}
        gone = [name for name in self._written if name not in names]
        if self.folder is None:
            with self._lock:
                self._write(self._in_memory(), state, shards, gone)
        else:
            try:
                with _opened(self.folder / INDEX_FILE) as database:
                    database.execute("BEGIN IMMEDIATE")
                    now = _state_in(database)
                    if (now.mark, now.generation) != (self.mark, self.generation):
                        raise StoreError(f"Another run changed the store {self.folder} in the meantime.", "Run again.")
                    self._write(database, state, shards, gone)
                    database.execute("COMMIT")
            except sqlite3.Error as problem:
                raise disk.cannot_write(self.folder, problem) from problem
            _note_sound(self.folder)
        self._take_note(state, shards, gone)

    def _next_state(self) -> _State:
        state = _State(**{name: getattr(self, name) for name in _State.__struct_fields__})
        state.mark = self.mark or f"{time.time_ns():x}-{os.getpid():x}"
        state.generation += 1
        if self.history_of not in ("", self._settled_history):
            # Values that were computed on demand leave the sessions as they are: pages need not be shown anew.
            state.settled = state.generation
        return state

    def _write(self, database: sqlite3.Connection, state: _State, shards: dict[str, bytes], gone: list[str]) -> None:
        now = state.generation
        replaced = [name for name in shards if name in self._written]
        database.executemany(
            "UPDATE shards SET died = ? WHERE name = ? AND died IS NULL", ((now, name) for name in (*gone, *replaced))
        )
        added = ((name, body, now) for name, body in shards.items())
        database.executemany("INSERT INTO shards (name, body, born) VALUES (?, ?, ?)", added)
        self.sessions.flush(database, now)
        self.files.flush(database, now)
        database.execute("INSERT INTO commits (generation, at) VALUES (?, ?)", (now, time.time()))
        database.execute("UPDATE state SET body = ?", (msgspec.json.encode(state),))

    def _take_note(self, state: _State, shards: dict[str, bytes], gone: list[str]) -> None:
        """Bring this manifest up to date after its changes were written."""
        self.mark, self.generation, self.settled = state.mark, state.generation, state.settled
        self._settled_history = state.history_of or self._settled_history
        self._written |= shards
        for name in gone:
            del self._written[name]
        self._touched = set()
        if self._stamps is not None:  # brought up to date: it is asked for again at the end of a run
            stamps, rows = self._stamps[1], []
            for uri, entry in self.files.changed.items():
                stamps.pop(uri, None)
                if entry is not None:
                    _, shard, group, source, spec, *plain, error, _, more = _row_of_file(uri, entry)
                    size, stamp, key, name, parser, _ = plain
                    is_local, is_trace = int(source == "local"), int(shard != "")
                    rows.append((uri, size, stamp, key, group, parser, error, is_local, is_trace, name, spec, more))
            self._stamps = state.generation, self._with_stamps(stamps, rows)
        for table in (self.sessions, self.files):
            table.changed, table._few = {}, {}

    def bury(self, shard: str, sessions: Iterable[str], artifacts: Iterable[str]) -> None:
        """Hide rows of a shard from all who open the store after the next commit."""
        entry = self.shards[shard]
        self.shards[shard] = replace(
            entry,
            gone=sorted({*entry.gone, *sessions}),
            gone_artifacts=sorted({*entry.gone_artifacts, *artifacts}),
        )
        self._touched.add(shard)
        self.shrunk.add(shard)

    def create(self, root: Path) -> None:
        """Write the index anew into a folder: it is there whole or not at all. StoreError when the disk refuses it."""
        self.sessions.changed, self.files.changed = dict(self.sessions.all()), dict(self.files.all())
        self.mark, self.generation, self._written = "", 0, {}
        draft = root / f".{INDEX_FILE}.{os.getpid()}.tmp"
        state = self._next_state()
        shards = {name: msgspec.json.encode(entry) for name, entry in self.shards.items()}
        try:
            draft.unlink(missing_ok=True)
            private_files.create(draft)
            with _opened(draft) as database:
                database.executescript(f"PRAGMA journal_mode = OFF; BEGIN; {_TABLES}")
                database.execute("INSERT INTO state (body) VALUES (?)", (b"",))
                self._write(database, state, shards, [])
                database.execute("COMMIT")
            (root / JOURNAL_FILE).unlink(missing_ok=True)  # of an index that is gone: it would be played into this one
            draft.replace(root / INDEX_FILE)
            disk.flush([root])
        except OSError as problem:
            raise disk.cannot_write(root, problem) from problem
        except sqlite3.Error as problem:
            raise disk.cannot_write(root, problem) from problem
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        self.folder = root
        self._take_note(state, shards, [])
        _note_sound(root)

    def purge(self) -> None:
        """Remove the rows that were replaced more than an hour ago."""
        if self.folder is None:
            return
        try:
            with _opened(self.folder / INDEX_FILE) as database:
                ((last,),) = database.execute(
                    "SELECT max(generation) FROM commits WHERE at < ?", (time.time() - disk.KEEP_S,)
                ).fetchall()
                if last is None or last <= self.purged:
                    return
                database.executescript(_BY_END)
                database.execute("PRAGMA secure_delete = ON")  # nothing of forgotten sessions stays in free pages
                database.execute("BEGIN IMMEDIATE")
                state = _state_in(database)
                files = database.execute("SELECT id, file_group, keys FROM files WHERE died <= ?", (last,)).fetchall()
                named = ((key, file) for file, group, keys in files for key in _keys_of(group, keys))
                database.executemany("DELETE FROM file_keys WHERE key = ? AND file = ?", named)
                for table in ("shards", "sessions", "files"):
                    database.execute(f"DELETE FROM {table} WHERE died <= ?", (last,))
                database.execute("DELETE FROM commits WHERE generation < ?", (last,))
                state.purged = last
                database.execute("UPDATE state SET body = ?", (msgspec.json.encode(state),))
                database.execute("COMMIT")
                self.purged = last
            _note_sound(self.folder)
        except sqlite3.Error as problem:
            raise disk.cannot_write(self.folder, problem) from problem

    def _in_memory(self) -> sqlite3.Connection:
        if self._memory is None:
            self._memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            self._memory.executescript(_TABLES)
            self._memory.execute("INSERT INTO state (body) VALUES (?)", (msgspec.json.encode(_State()),))
        return self._memory


def last_run(root: Path) -> tuple[str, int]:
    """Return the mark of the index, and the number of the commit that ended the last run. Another one than before says
    that there is something new to read; ("", 0) where the index can't be read."""
    try:
        with _opened(root / INDEX_FILE) as database:
            state = _state_in(database)
    except (sqlite3.Error, msgspec.DecodeError):
        return "", 0
    return state.mark, state.settled


def _json(values: Iterable[str]) -> str:
    return msgspec.json.encode(list(values)).decode()


def _state_in(database: sqlite3.Connection) -> _State:
    row = database.execute("SELECT body FROM state").fetchone()
    if row is None:
        raise sqlite3.DatabaseError("it has no state")
    return msgspec.json.decode(row[0], type=_State)


MODE = "rw"
"""SQLite reads a file that may not be written all the same."""


@contextmanager
def _opened(path: Path, mode: str = "") -> Iterator[sqlite3.Connection]:
    """Open the index for one transaction. No connection outlives it, so none is open when a worker is forked."""
    where = f"file:{quote(os.fsencode(path.absolute()))}?mode={mode or MODE}"
    with closing(sqlite3.connect(where, uri=True, timeout=disk.WAIT_S, isolation_level=None)) as database:
        yield database


_GARBLED = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR))
"""Errors of a file that is no index of ours; the last is that of a table or column that is not there."""


def _cannot_read(folder: Path, problem: sqlite3.Error) -> StoreError:
    return StoreError(
        f"{folder / INDEX_FILE} can't be read: {problem}.",
        "Run `agentsignals doctor --repair` to rebuild it from the stored sessions.",
    )


def main_context(contexts: Iterable[str]) -> str:
    """Return the default of these contexts: people's sessions when there are any."""
    return "eval" if set(contexts) == {"eval"} else "product"


def load(root: Path) -> tuple[Manifest | None, str]:
    """Return the index; or None and the reason where it was cut, garbled or of an older version. StoreError when a
    newer version wrote it, or it can't be opened."""
    path = root / INDEX_FILE
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            raise IsADirectoryError
        if not os.access(path, os.R_OK):
            raise PermissionError(0, "permission denied")
    except FileNotFoundError:
        return None, ""
    except OSError as problem:
        return None, disk.unreadable_list(path, problem)
    try:
        return _loaded(root, path)
    except sqlite3.Error as problem:
        if _error_code(problem) != sqlite3.SQLITE_READONLY:
            return _unless_unreadable(root, problem)
    # A commit was killed, and who reads may not write: SQLite rolls it back in a copy.
    with tempfile.TemporaryDirectory() as folder:
        for name in (INDEX_FILE, JOURNAL_FILE):
            with suppress(FileNotFoundError):
                shutil.copyfile(root / name, Path(folder) / name)
        try:
            found, why = _loaded(Path(folder), Path(folder) / INDEX_FILE, "rw")
        except sqlite3.Error as problem:
            return _unless_unreadable(root, problem)
        if found is not None:  # its file goes
            found._memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            with _opened(Path(folder) / INDEX_FILE) as database:
                database.backup(found._memory)
            found.folder = None
        return found, why


def _loaded(root: Path, path: Path, mode: str = "") -> tuple[Manifest | None, str]:
    """Load an index file. Without a manifest the second value says what is wrong with it."""
    with _opened(path, mode) as database:
        ((version,),) = database.execute("PRAGMA user_version").fetchall()
        refuse_newer(root, version, SCHEMA_VERSION)
        if version != SCHEMA_VERSION:
            n = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            return None, f"is of version {version}, now it is {SCHEMA_VERSION}" if n else "is empty"
        is_noted_sound = False
        with suppress(OSError, ValueError):
            is_noted_sound = path.with_name(CHECKED_FILE).read_text("utf-8") == _length_and_time(path)
        if not is_noted_sound and database.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
            return None, "is truncated or corrupt"
        made = Manifest(root)
        try:
            database.execute("BEGIN")
            state = _state_in(database)
            for name in _State.__struct_fields__:
                setattr(made, name, getattr(state, name))
            made._settled_history = made.history_of
            live = f"SELECT name, body FROM shards WHERE {_LIVE}"
            made._written = dict(database.execute(live, {"generation": state.generation}))
            made.shards = {name: msgspec.json.decode(body, type=ShardEntry) for name, body in made._written.items()}
        except msgspec.DecodeError:
            return None, "is garbled"
        return made, ""


def _note_sound(root: Path) -> None:
    """Remember length and time of the index, which is as it was just written: openings do without a check of all of
    it, which takes 2 ms a MB."""
    with suppress(OSError):  # then each opening checks it
        private_files.write(root / CHECKED_FILE, _length_and_time(root / INDEX_FILE))


def _length_and_time(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _unless_unreadable(root: Path, problem: sqlite3.Error) -> tuple[None, str]:
    """Say that the index is garbled. StoreError where it may be a valid one that can't be read."""
    if _error_code(problem) in _GARBLED:
        return None, "is truncated or corrupt"
    raise _cannot_read(root, problem) from problem


def _error_code(problem: sqlite3.Error) -> int:
    return getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


def artifact_id(uri: str) -> str:
    """Return the id of the file of that address: stable while the file grows."""
    return hashlib.blake2b(uri.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def files_of_namesakes(manifest: Manifest, files: Iterable[str]) -> dict[str, str]:
    """Return the sessions whose id other people's have too, in the groups of these files: each with its artifact."""
    groups = f"SELECT file_group FROM files WHERE uri IN {_AMONG} AND {_LIVE}"
    sql = f"SELECT file_group FROM sessions WHERE file_group IN ({groups}) AND session_id LIKE '%~________' AND {_LIVE}"
    shared = {group for (group,) in manifest.committed(sql, values=_json(files))}
    if not shared or manifest.folder is None:
        return {}
    from agentsignals.store import parquet  # noqa: PLC0415  (rare)

    known = manifest.sessions.where("group", shared)
    people = Counter(map(name_of, known))
    found: dict[str, str] = {}
    for shard in {e.shard for e in known.values()}:
        own = {i for i, e in known.items() if e.shard == shard and people[name_of(i)] > 1}
        with suppress(StoreError):  # a damaged shard is read again, or lost
            table = parquet.read(manifest.folder / SHARDS_FOLDER / shard / "sessions.parquet", _OF_FILE)
            found.update(
                (row["session_id"], row["artifact_id"]) for row in table.to_pylist() if row["session_id"] in own
            )
    return found


_OF_FILE = ["session_id", "artifact_id"]


def name_of(session_id: str) -> str:
    """Return the id that a file gives a session, without the mark that tells it from other people's: eight digits in
    hex behind a tilde. An agent's own id may have a tilde, too."""
    return _MARK.sub("", session_id)


_MARK = deferred_pattern(r"~[0-9a-f]{8}\Z")


def sessions_only_in(manifest: Manifest, files: set[str]) -> set[str]:
    """Return the sessions that were read from these files and from no other. Where several people's have one id, those
    are among them whose group has no other files than those of the others."""
    if not files:
        return set()
    groups = f"SELECT file_group FROM files WHERE uri IN {_AMONG} AND {_LIVE}"
    others = f"SELECT file_group FROM files WHERE shard != '' AND uri NOT IN {_AMONG} AND {_LIVE}"
    sql = f"SELECT session_id FROM sessions WHERE file_group IN ({groups} EXCEPT {others}) AND {_LIVE}"
    found = {session_id for (session_id,) in manifest.committed(sql, values=_json(files))}
    if held := files_of_namesakes(manifest, files):
        gone, entries = {artifact_id(uri) for uri in files}, manifest.sessions.known(held)
        here: dict[str, set[str]] = {}
        for uri, file in manifest.files.where("group", {e.group for e in entries.values()}).items():
            here.setdefault(file.group, set()).update({artifact_id(uri)} - gone if file.shard else ())
        theirs: dict[str, set[str]] = {}
        for session_id, artifact in held.items():
            theirs.setdefault(name_of(session_id), set()).add(artifact)
        for session_id, entry in entries.items():
            if held[session_id] in gone and here[entry.group] <= theirs[name_of(session_id)]:
                found.add(session_id)
    return found
