"""Answers that cost a call, kept in one file of the store by the question's key. Written as each comes: a run that is
killed has asked for nothing twice.

The key is made from labeller, prompt, schema and material, so a changed prompt asks anew and a repeated message does
not. Failures are kept, too, with their reason, and asked again by the next run. No text of a session lies here.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.errors import StoreError

NAME = "answers.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, labeller TEXT, task TEXT, text TEXT, failure TEXT,
  detail TEXT, input_tokens INTEGER, output_tokens INTEGER, calls INTEGER, created_at INTEGER, model TEXT,
  cut_chars INTEGER DEFAULT 0) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (key TEXT PRIMARY KEY, file TEXT, created_at INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (started_at INTEGER, ended_at INTEGER, told TEXT);
"""

_GET = (
    "SELECT text, failure, detail, input_tokens, output_tokens, calls, created_at, model, cut_chars"
    " FROM answers WHERE key = ?"
)


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of a question: a text that reads as an answer, or a failure with its reason. One of the two is set."""

    text: str | None = None
    failure: str | None = None
    """A word to count by."""
    detail: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    """Of all calls, those that led to nothing included."""
    calls: int = 0
    created_at: int = 0
    """Microseconds since 1970 UTC."""
    model: str | None = None
    """What the server says has answered (a snapshot, the model behind a router), with its fingerprint if it has one."""
    cut_chars: int = 0
    """What stood around the answer: a fence, a thought, a sentence. It is not kept."""


class Answers:
    """The kept answers of a store. Usable from several threads."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._lock = threading.Lock()
        try:
            folder.mkdir(exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
            weakref.finalize(self, self._db.close)  # whoever forgets it: an open database is a warning of Python 3.13
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
            have = {row[1] for row in self._db.execute("PRAGMA table_info(answers)")}
            for column in ("model TEXT", "cut_chars INTEGER DEFAULT 0"):  # paid answers of an older program stay
                if column.split()[0] not in have:
                    self._db.execute(f"ALTER TABLE answers ADD COLUMN {column}")
        except (OSError, sqlite3.DatabaseError) as problem:
            # Paid work may lie in it: unlike other indexes it is not begun anew behind the person's back.
            raise self._unreadable(problem) from problem

    def _unreadable(self, problem: Exception) -> StoreError:
        return StoreError(f"{self.path} can't be opened: {problem}.", "Move it away; what it held will be asked again.")

    def get(self, key: str) -> Outcome | None:
        """What came of a question in an earlier run; None when it was not asked."""
        try:
            with self._lock:
                row = self._db.execute(_GET, (key,)).fetchone()
        except sqlite3.Error as problem:
            raise self._unreadable(problem) from problem
        return Outcome(**dict(zip(Outcome.__struct_fields__, row, strict=True))) if row else None

    def put(self, key: str, labeller: str, task: str, outcome: Outcome) -> None:
        """Keeps what came of a question."""
        row = (key, labeller, task, *msgspec.structs.astuple(outcome))
        self._write(f"INSERT OR REPLACE INTO answers VALUES ({','.join('?' * len(row))})", [row])  # noqa: S608  (marks)

    def note_run(self, started_at: int, summary: dict[str, Any]) -> None:
        """Keeps what a run was: labeller, address, prompt and schema versions, figures."""
        row = (started_at, now(), msgspec.json.encode(summary).decode())
        self._write("INSERT INTO runs VALUES (?, ?, ?)", [row])

    def waiting(self) -> dict[str, str]:
        """Questions that stand in a batch file without a result so far, and in which."""
        try:
            with self._lock:
                return dict(self._db.execute("SELECT key, file FROM batches").fetchall())
        except sqlite3.Error as problem:
            raise self._unreadable(problem) from problem

    def wait_for(self, keys: Iterable[str], file: str) -> None:
        """Keeps that questions stand in a batch file."""
        self._write("INSERT OR REPLACE INTO batches VALUES (?, ?, ?)", [(key, file, now()) for key in keys])

    def wait_no_more(self, keys: Iterable[str]) -> None:
        """A result of these came, whatever it says."""
        self._write("DELETE FROM batches WHERE key = ?", [(key,) for key in keys])

    def _write(self, statement: str, written: list[tuple[Any, ...]]) -> None:
        try:
            with self._lock, self._db:
                self._db.executemany(statement, written)
        except sqlite3.Error as problem:
            raise StoreError(f"{self.path} can't be written: {problem}.", "Free some space.") from problem

    def close(self) -> None:
        """Lets go of the file."""
        with self._lock:
            self._db.close()


def now() -> int:
    """Microseconds since 1970 UTC."""
    return time.time_ns() // 1000
