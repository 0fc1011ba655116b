"""What the index says of a question: how many passages of which kinds fit in each session, and the first of them."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from agentsignals.errors import StoreError
from agentsignals.fulltext import index
from agentsignals.fulltext.passages import KIND_SHIFT, KINDS, SESSION_SHIFT

if TYPE_CHECKING:
    from agentsignals.store import Store

_Answer = TypeVar("_Answer")
_AT_ONCE = 4
"""Shards that are asked together: SQLite works without Python's lock."""
_COUNTED = f"""
SELECT session_id, at & 7, n FROM (
  SELECT at, count(*) AS n FROM (
    SELECT rowid >> {KIND_SHIFT} AS at FROM passages WHERE passages MATCH ? ORDER BY rowid
  ) GROUP BY at
) JOIN sessions ON number = at >> 3
"""  # noqa: S608  (numbers of ours)
_FIRST = f"""
SELECT rowid >> {KIND_SHIFT} & 7, rowid & {(1 << KIND_SHIFT) - 1} FROM passages
WHERE passages MATCH ? AND rowid >= ? << {SESSION_SHIFT} AND rowid < (? + 1) << {SESSION_SHIFT} ORDER BY rowid
"""  # noqa: S608  (numbers of ours)


def counted(store: Store, expression: str, shards: Collection[str]) -> dict[str, Counter[str]]:
    """The passages of each kind that fit, by session. `shards`: those that have an index."""

    def of_shard(shard: str) -> list[tuple[str, int, int]]:
        return _asked(store, shard, lambda database: database.execute(_COUNTED, (expression,)).fetchall())

    by_session: dict[str, Counter[str]] = defaultdict(Counter)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for rows in pool.map(of_shard, shards):
            for session_id, kind, n in rows:
                by_session[session_id][KINDS[kind]] += n
    return by_session


def first(
    store: Store, expression: str, sessions: Collection[str], kinds: Collection[str], most: int
) -> dict[str, list[tuple[str, int]]]:
    """The first passages of these sessions that fit, the most telling kinds first: kind and event; in this order."""
    by_shard: dict[str, list[str]] = defaultdict(list)
    for session_id in sessions:
        by_shard[store.manifest.sessions[session_id].shard].append(session_id)
    chosen = {KINDS.index(kind) for kind in kinds}

    def of_shard(ids: list[str], database: sqlite3.Connection) -> dict[str, list[tuple[str, int]]]:
        hits: dict[str, list[tuple[str, int]]] = {}
        for session_id in ids:
            number = database.execute("SELECT number FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
            rows = database.execute(_FIRST, (expression, *number, *number)) if number else ()
            of_it = ((KINDS[kind], seq) for kind, seq in rows if kind in chosen)
            hits[session_id] = [hit for hit, _ in zip(of_it, range(most), strict=False)]
        return hits

    of_all: dict[str, list[tuple[str, int]]] = {session_id: [] for session_id in sessions}
    for shard, ids in by_shard.items():
        of_all |= _asked(store, shard, partial(of_shard, ids))
    return of_all


def _asked(store: Store, shard: str, ask: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
    """The answer of a shard's index; of one made anew where this is damaged, or was removed meanwhile."""
    try:
        with index.opened(store, shard) as database:
            return ask(database)
    except sqlite3.DatabaseError:
        index.drop(store, shard)
    index.make(store)
    try:
        with index.opened(store, shard) as database:
            return ask(database)
    except sqlite3.DatabaseError as problem:
        raise StoreError(
            f"The index of {store.folder} can't be read: {problem}.",
            f"Remove {store.folder / index.FOLDER}: it is made again.",
        ) from problem
