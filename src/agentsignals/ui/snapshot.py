"""The store as the pages see it: one state of it at a time, read anew as soon as it changed on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from copy import copy
from pathlib import Path
from threading import Lock, RLock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from agentsignals.store import Store, index, sidecars
from agentsignals.store.query import Connection, ask, computing, connect

if TYPE_CHECKING:
    from agentsignals.model import Session
    from agentsignals.ui.pages.labels import Annotations

_Made = TypeVar("_Made")
_OF_LAST = """
    SELECT session_id, context FROM sessions WHERE started_at >= $days * INTERVAL '-1 day'
        + (SELECT max(started_at)::DATE FROM sessions WHERE started_at < TIMESTAMP '2100-01-01')
"""
LOOK_EVERY_S = 5.0
"""Seconds between two comparisons of the store's files with its index while pages are asked for."""
MOST_RECENT = 48
"""Answers kept by filter: anybody may type another one, and memory is bounded."""
MOST_SHARDS = 8
"""Shards that stay open for questions about single sessions."""
FileTimes = tuple[int, int, int] | None
Stamp = tuple[tuple[str, int], FileTimes]


class Snapshot:
    """A store as it is now. Its answers agree with each other, also while the store on disk goes on."""

    def __init__(self, store: Store, state: str = "", annotations: Annotations | None = None) -> None:
        """`state` names what the store is now: another one for each that differs."""
        self.store = store
        self.state = state
        self.annotations = annotations
        """The gold file that takes labels; None where pages write nothing."""
        self.contexts = set(store.manifest.contexts())
        self.main_context = index.main_context(store.contexts())
        self._lock = RLock()
        self._connections: dict[str, Connection] = {}
        self._shards: dict[str, Connection] = {}
        self._gates: dict[Hashable, Lock] = {}
        self._kept: dict[Hashable, Any] = {}
        self._recent: dict[Hashable, Any] = {}
        self._begun: dict[Hashable, Future[Any]] = {}
        self._last: Session | None = None

    def rows(self, query: str, values: dict[str, Any] | None = None, context: str = "") -> list[dict[str, Any]]:
        """Rows of a question over all sessions, or those of one context. `values` are bound, never part of the text."""

        def asked() -> list[dict[str, Any]]:
            with self._lock:
                if context not in self._connections:
                    self._connections[context] = connect(self.store, context or None)
                connection = self._connections[context]
            return ask(connection, query, values)

        return self._answered(asked)

    def _answered(self, asked: Callable[[], _Made]) -> _Made:
        """Return an answer; where it needs signals that are not computed, after computing them."""

        def forget() -> None:
            with self._lock:
                self._connections.clear()
                self._shards.clear()

        return computing(self.store, asked, forget)

    def rows_of(self, session_id: str, query: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Rows of a question that concerns one session alone (`$session`): an eighth of the time over thirty shards."""
        entry = self.store.manifest.sessions.get(session_id)
        if entry is None or not entry.shard:
            return self.rows(query, {**(values or {}), "session": session_id})
        shard = entry.shard

        def asked() -> list[dict[str, Any]]:
            with self._lock:
                connection = self._shards.pop(shard, None) or connect(self.store, shard=shard)
                self._shards[shard] = connection
                for oldest in list(self._shards)[:-MOST_SHARDS]:
                    del self._shards[oldest]
            return ask(connection, query, {**(values or {}), "session": session_id})

        return self._answered(asked)

    def holds(self, table: str) -> bool:
        """Return whether a table has a row."""
        asked = f"SELECT 1 AS one FROM {table} LIMIT 1"  # noqa: S608  (our own name)
        return self.kept(("holds", table), lambda: bool(self.rows(asked)))

    def kept(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """Return what is made once for this state of the store: figures over all of it."""
        with self._lock:
            gate = self._gates.setdefault(key, Lock())
        with gate:  # of this key alone: a study that takes seconds keeps no other page waiting
            if key not in self._kept:
                try:
                    self._kept[key] = make()
                finally:
                    if key not in self._kept:  # what nothing can be made of may be anything that somebody typed
                        with self._lock:
                            self._gates.pop(key, None)
            made: _Made = self._kept[key]
            return made

    def soon(self, key: Hashable, make: Callable[[], _Made], wait_s: float) -> _Made | None:
        """As `kept`, but None where it is not made after so many seconds: it goes on in the background. Only the first
        who asks waits."""

        def run(begun: Future[Any]) -> None:
            try:
                begun.set_result(self.kept(key, make))
            except Exception as problem:  # noqa: BLE001  (raised where it is waited for)
                with self._lock:
                    del self._begun[key]  # the next who asks tries anew
                begun.set_exception(problem)

        with self._lock:
            begun = self._begun.get(key)
            waits = begun is None
            if begun is None:
                begun = self._begun[key] = Future()
                Thread(target=run, args=(begun,), daemon=True).start()
        try:
            made: _Made = begun.result(wait_s if waits else 0)
        except TimeoutError:
            return None
        return made

    def of_last(self, days: int) -> Snapshot:
        """Return the store's sessions that began in the last days before its last session, as a snapshot; this one
        where no session has a time."""

        def made() -> Snapshot:
            found = self.rows(_OF_LAST, {"days": days - 1})
            store = copy(self.store)
            store.only = {row["session_id"]: row["context"] for row in found}
            return Snapshot(store, self.state, self.annotations) if found else self

        return self.kept(("of last", days), made)

    def recent(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """As `kept`, of what an address chooses: only the last that were asked for stay."""
        with self._lock:
            if key in self._recent:
                self._recent[key] = self._recent.pop(key)
                made: _Made = self._recent[key]
                return made
        made = make()
        with self._lock:
            self._recent[key] = made
            for oldest in list(self._recent)[:-MOST_RECENT]:
                del self._recent[oldest]
        return made

    def session(self, session_id: str) -> Session:
        """A session with all its rows. The last one read stays, and it alone: a reader asks for one value of it after
        another, and a long one takes seconds and hundreds of MB."""
        full = self.store.resolve(session_id)
        with self._lock:
            last = self._last
        if last is None or last.session_id != full:
            last = self.store.session(full)
            with self._lock:
                self._last = last
        return last

    def close(self) -> None:
        """Lets go of the store's files. Whoever still asks is refused (QueryError)."""
        with self._lock:
            for connection in (*self._connections.values(), *self._shards.values()):
                connection.close()


class Snapshots:
    """Gives the reading of the store's present state. Making it reads the index; StoreError where there is no store."""

    def __init__(self, folder: Path | str | None, annotations: Annotations | None = None) -> None:
        self._store = Store(folder)
        self.annotations = annotations
        self._lock = RLock()
        self._file: FileTimes = None
        self._run = ("", 0)
        self._stamp = self._now()
        self._reading = Snapshot(self._store, _name(self._stamp), annotations)

    @property
    def folder(self) -> Path:
        return self._store.folder

    def current(self) -> Snapshot:
        """The present reading; another one than before when the store changed."""
        with self._lock:
            now = self._now()
            if now != self._stamp or self._reading.store.is_changed(LOOK_EVERY_S):
                self._reading = Snapshot(Store(self.folder), _name(now), self.annotations)
                self._stamp = now
            return self._reading

    def after(self, failed: Snapshot) -> Snapshot:
        """Return the snapshot to ask after that one failed: the next state of the store; or the same state without a
        part that only reading showed to be damaged; or that snapshot itself, where neither is."""
        with self._lock:
            if self.current() is failed and failed.store.check_files(thorough=True):
                self._reading = Snapshot(failed.store, failed.state, self.annotations)
            return self._reading

    def close(self) -> None:
        with self._lock:
            self._reading.close()

    def _now(self) -> Stamp:
        if (file := _stamp(self.folder / index.INDEX_FILE)) != self._file:
            self._file, self._run = file, index.last_run(self.folder)
        return self._run, _stamp(self.folder / sidecars.LIST_FILE)


def _name(stamp: Stamp) -> str:
    return hashlib.sha256(repr(stamp).encode()).hexdigest()[:16]


def _stamp(path: Path) -> FileTimes:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
