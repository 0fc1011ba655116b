"""The index of a store's texts: SQLite's FTS5, a file a shard, beside the shards and made from nothing but them.

It can be thrown away. A file is named by the content it was made from: that of a shard that was replaced is never asked
again, and goes as soon as anybody looks; forgetting is to remove a file, no row of which stays behind.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING
from urllib.parse import quote

from agentsignals.errors import StoreError
from agentsignals.fulltext.passages import Endings, Passage, number_of, passages, spaced, storable
from agentsignals.store import files, manifest
from agentsignals.store.damage import FOLDER as SHARDS
from agentsignals.store.manifest import Manifest

if TYPE_CHECKING:
    from agentsignals.store import Store

FOLDER = ".search"
"""Hidden: what stands for a store elsewhere takes no part of it there."""
VERSION = 2
"""Of what is in a file, and of how texts are cut into words."""
TABLES = ("sessions", "events", "tool_calls")
"""The tables whose texts are looked through."""
Progress = Callable[[str, int, int | None], None]
"""Called with what is being done, how much of it is done, and how much there is."""
_making = Lock()
_in_memory: dict[Path, sqlite3.Connection] = {}
"""Of stores that can't be written, for as long as the program runs."""
_SUFFIX = ".sqlite"
_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE sessions (number INTEGER PRIMARY KEY, session_id TEXT);
CREATE VIRTUAL TABLE passages USING fts5(text, parts, tool, content='', tokenize='unicode61 remove_diacritics 2');
INSERT INTO passages (passages, rank) VALUES ('hashsize', 100000000);
"""


def make(store: Store, progress: Progress = lambda *_: None) -> str:
    """Makes what of the index is missing, and removes what is of no shard any more. Why it could not be written, where
    it could not: it is in memory then. StoreError where this Python can't have one."""
    with _making:
        wanted, why = missing(store), ""
        live = _live(store.folder) if wanted else set()
        sizes = {name: store.manifest.shards[name].tables["events"].bytes for name in wanted}
        for done, name in enumerate(wanted):
            progress("indexing", sum(sizes[n] for n in wanted[:done]), sum(sizes.values()))
            path = file_of(store.folder, store.manifest, name)
            why = why or ("" if path.name in live else "The store was written anew since it was opened.")
            try:
                why = why or _written(store.folder, name, path)
                if why:
                    _in_memory[path] = _filled(":memory:", store.folder / SHARDS / name)
            except StoreError:  # what only reading a shard shows
                if not store.look(thorough=True):
                    raise
        paths = set(_files(store).values())
        for path in _in_memory.keys() - paths:
            if path.parent.parent == store.folder:
                del _in_memory[path]
    sweep(store.folder, {path.name for path in paths})
    return why


def missing(store: Store) -> list[str]:
    """The shards that have no index yet."""
    return [name for name, path in _files(store).items() if path not in _in_memory and not _is_whole(path)]


def sweep(folder: Path, expected: Collection[str] = ()) -> None:
    """Removes the files that are of no shard of the store as it now is, and drafts of programs that died. Nothing where
    only files are there that were `expected`."""
    there = [path for path in files.listed(folder / FOLDER) if path.name not in expected]
    live = {name.partition(".")[0] for name in _live(folder)} if there else set()
    for path in there:
        is_draft = path.suffix != _SUFFIX
        if path.name.partition(".")[0] not in live or (is_draft and files.is_old(path)):
            with suppress(OSError):  # who may not remove it may not write here either
                path.unlink()


@contextmanager
def opened(store: Store, shard: str) -> Iterator[sqlite3.Connection]:
    """The index of a shard, to be read. Of one that is damaged nothing is left: it is made anew, once."""
    path = file_of(store.folder, store.manifest, shard)
    try:
        yield _in_memory[path]
        return
    except KeyError:
        pass
    where = f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(where, uri=True)) as connection:
        yield connection


def drop(store: Store, shard: str) -> None:
    """Removes the index of a shard, which showed that it is damaged."""
    path = file_of(store.folder, store.manifest, shard)
    _in_memory.pop(path, None)
    with suppress(OSError):
        path.unlink(missing_ok=True)


def file_of(folder: Path, index: Manifest, shard: str) -> Path:
    """The index of a shard, there or not. A copy of a shard whose values alone are new has the same."""
    tables = index.shards[shard].tables
    content = [tables[name].digest for name in TABLES]
    mark = hashlib.blake2b("|".join([str(VERSION), *(content if all(content) else [shard])]).encode(), digest_size=16)
    return folder / FOLDER / f"{mark.hexdigest()}{_SUFFIX}"


def searched(store: Store) -> list[str]:
    """The shards that hold texts, without those whose texts were damaged."""
    return [name for name in store.whole(*TABLES) if store.manifest.shards[name].tables.keys() >= set(TABLES)]


def _files(store: Store) -> dict[str, Path]:
    return {name: file_of(store.folder, store.manifest, name) for name in searched(store)}


def _live(folder: Path) -> set[str]:
    """The names of the files that belong to the store as it now is on disk."""
    index = manifest.load(folder)[0] or Manifest()
    whole = [name for name, entry in index.shards.items() if entry.tables.keys() >= set(TABLES)]
    return {file_of(folder, index, name).name for name in whole}


def _is_whole(path: Path) -> bool:
    """Whether a file is there and as long as it says of itself."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return False
    page = int.from_bytes(head[16:18]) or 1
    return head.startswith(b"SQLite format 3\0") and size == (65536 if page == 1 else page) * int.from_bytes(
        head[28:32]
    )


def _written(folder: Path, shard: str, path: Path) -> str:
    """Writes the index of a shard; why it could not."""
    draft = path.with_name(f"{path.stem}.{os.getpid()}-{get_ident()}.tmp")
    try:
        path.parent.mkdir(exist_ok=True)
        draft.unlink(missing_ok=True)
        with closing(_filled(str(draft), folder / SHARDS / shard)):
            pass
        files.flush([draft])
        draft.replace(path)
    except (OSError, sqlite3.Error) as problem:
        return f"{folder / FOLDER} can't be written: {getattr(problem, 'strerror', None) or problem}."
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return ""


def _filled(where: str, shard: Path) -> sqlite3.Connection:
    """A database of the texts of a shard."""
    database = sqlite3.connect(where, check_same_thread=False)
    try:
        database.executescript(_TABLES)
    except sqlite3.OperationalError as problem:
        if "fts5" not in str(problem):
            raise
        raise StoreError(
            "This Python's SQLite has no full-text search (FTS5).", "Use a Python that is built with it: most are."
        ) from problem
    endings = Endings()
    with database:
        for number, of_session in enumerate(passages(shard)):
            if of_session:
                database.execute("INSERT INTO sessions VALUES (?, ?)", (number, of_session[0].session_id))
                database.executemany(
                    "INSERT INTO passages (rowid, text, parts, tool) VALUES (?, ?, ?, ?)",
                    _rows(number, of_session, endings),
                )
    return database


def _rows(number: int, of_session: list[Passage], endings: Endings) -> Iterator[tuple[int, str, str, str]]:
    for passage in of_session:
        text = storable(passage.text)
        yield number_of(number, passage.kind, passage.seq), spaced(text), endings.of(text), storable(passage.tool)
