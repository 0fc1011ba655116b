"""Cache of vectors that took a model to compute: one file of a store, keyed by the text's hash. Safe to delete."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
import weakref
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentsignals import private_files
from agentsignals.embedding import Dense, Profile, Vector
from agentsignals.errors import StoreError

NAME = "embeddings.sqlite"
_AT_ONCE = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (embedder TEXT, sha256 BLOB, vector BLOB, PRIMARY KEY (embedder, sha256))
WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS profiles (embedder TEXT PRIMARY KEY, aligned REAL, unrelated REAL, origin TEXT);
"""


class Cache:
    """The vectors of one embedder in a store. A damaged file is replaced by a new one."""

    def __init__(self, folder: Path, embedder: str) -> None:
        self._path = folder / NAME
        self._embedder = embedder
        try:
            self._db = self._open()
        except sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)
            self._db = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            private_files.create(self._path)
            db = sqlite3.connect(self._path, timeout=10, check_same_thread=False)
            weakref.finalize(self, db.close)  # whoever forgets it: an open database is a warning of Python 3.13
        except (OSError, sqlite3.OperationalError) as problem:
            raise StoreError(f"{self._path} can't be opened: {problem}.", "Check the store's permissions.") from problem
        try:
            db.executescript(_SCHEMA)
        except sqlite3.DatabaseError:
            db.close()
            raise
        return db

    def get(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors of those texts that are known."""
        wanted = {_key(text): text for text in texts}
        vectors: dict[str, Vector] = {}
        every = list(wanted)
        for keys in (every[n : n + _AT_ONCE] for n in range(0, len(every), _AT_ONCE)):
            marks = ",".join("?" * len(keys))
            query = f"SELECT sha256, vector FROM vectors WHERE embedder = ? AND sha256 IN ({marks})"  # noqa: S608  (marks)
            for key, blob in self._all(query, (self._embedder, *keys)):
                values: array[float] = array("f")
                values.frombytes(blob)
                vectors[wanted[key]] = Dense(_little_endian(values))
        return vectors

    def _all(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """The rows of a query; none where the file turns out to be damaged, which is begun anew then."""
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.OperationalError as problem:
            raise StoreError(f"{self._path} can't be read: {problem}.", "Wait for other runs to end.") from problem
        except sqlite3.DatabaseError:
            self._db.close()
            self._path.unlink(missing_ok=True)
            self._db = self._open()
            return []

    def _change(self, query: str, rows: Sequence[Sequence[object]]) -> None:
        try:
            with self._db:
                self._db.executemany(query, rows)
        except sqlite3.DatabaseError as problem:
            raise StoreError(
                f"{self._path} can't be written: {problem}.", "Free some space, or delete it."
            ) from problem

    def put(self, vectors: dict[str, Vector]) -> None:
        """Store vectors in one transaction: a run that is killed has all of them or none."""
        rows = [
            (self._embedder, _key(t), _little_endian(v.values).tobytes())
            for t, v in vectors.items()
            if isinstance(v, Dense)
        ]
        self._change("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def profile(self) -> Profile | None:
        """The profile that was fitted for this embedder in this store."""
        query = "SELECT aligned, unrelated, origin FROM profiles WHERE embedder = ?"
        rows = self._all(query, (self._embedder,))
        return Profile(*rows[0]) if rows else None

    def keep_profile(self, profile: Profile) -> None:
        """Keeps a profile, so that values measured later are on the same scale."""
        row = (self._embedder, profile.aligned, profile.unrelated, profile.origin)
        self._change("INSERT OR REPLACE INTO profiles VALUES (?, ?, ?, ?)", [row])

    def close(self) -> None:
        """Lets go of the file."""
        self._db.close()


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _little_endian(values: array[float]) -> array[float]:
    if sys.byteorder == "little":
        return values
    turned = array("f", values)
    turned.byteswap()
    return turned
