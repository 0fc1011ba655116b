"""Answers of queries by shard, so that a line appended to one session costs one shard and not the store.

A shard's files never change. The rows of a query that each depend on one session are kept, a file a shard and query,
in the folder `.answers`. Rows of sessions that left the shard since are not seen; sums over its sessions are computed
anew once one leaves. The files can be thrown away: they are computed anew.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentsignals.store import disk, tables
from agentsignals.store.disk import code_stamp
from agentsignals.store.query import NAMES, Connection, column_names, execute_ours, path_list

if TYPE_CHECKING:
    import duckdb

    from agentsignals.store import Store

FOLDER = ".answers"
LARGE = 2_000
"""Tool calls from which the answers of a shard are kept. Smaller shards are asked together, which takes less time than
a file each."""
_PLAIN = frozenset(("varchar", "bigint", "hugeint", "integer", "double", "boolean", "list"))
"""Types of columns that MessagePack gives back as they were; a list has to be of these."""
_OF_SHARD = (tables.TABLES.keys() - {"labels"}) | {
    "artifacts", "attempts", "cache_losses", "charges", "repeated_calls", "sessions", "signals",
}  # fmt: skip
"""Tables whose rows follow from the shard alone."""


class Answer(NamedTuple):
    """The answer of a query over one shard, by column."""

    names: list[str]
    columns: list[list[Any]]

    @classmethod
    def of(cls, asked: duckdb.DuckDBPyConnection) -> Answer:
        """Return what a query found."""
        return _by_column(column_names(asked), asked.fetchall())


class ShardAnswers:
    """Answers over the large shards of a store, computed where they are not kept. `context`: as in `connect`.

    `slices`: returns connections to these shards, a few at a time, with sessions of all contexts.
    """

    def __init__(self, store: Store, context: str | None, slices: Callable[[list[str]], list[Connection]]) -> None:
        self._store, self._context, self._slices = store, context, slices
        self._root = store.folder / FOLDER
        self._sessions: set[str] | None = None
        """Sessions of the context."""
        self._shards_of: dict[Connection, dict[str, str]] = {}

    def shards(self, query: str, is_sum: bool = False) -> list[str]:
        """Return the shards that `of` or `sums` answers for: none of a damaged store, of one that is limited to some
        sessions, or for a query that other tables than the shard's have a part in; and no sums of one of several
        contexts."""
        if (
            (is_sum and self._context)
            or self._store.damage
            or self._store.only is not None
            or not set(NAMES) & set(_WORD.findall(query)) <= _OF_SHARD
        ):
            return []
        whole, entries = self._store.readable_shards(), self._store.manifest.shards
        large = {n for n, e in entries.items() if "tool_calls" in e.tables and e.tables["tool_calls"].rows >= LARGE}
        return [name for name in whole if name in large]

    def of(self, query: str, connection: Connection) -> list[Answer]:
        """Return the answers of a query, one a large shard. `connection`: to the sessions of the context."""
        kept = {name: self._read(name, query) for name in self.shards(query)}
        if missing := [name for name, answer in kept.items() if answer is None]:
            kept |= self._ask(missing, query)
        return [self._among(name, answer, connection) for name, answer in kept.items() if answer is not None]

    def sums(self, query: str) -> list[Answer]:
        """Return the answers of a query whose rows are sums over the sessions of a shard, one a large shard."""
        answers = []
        for name in self.shards(query, is_sum=True):
            answer = self._read(name, query, is_sum=True)
            if answer is None:
                (part,) = self._slices([name])
                asked = execute_ours(part, query)
                kinds = {column[1].id for column in asked.description or ()}
                answer = self._keep(name, query, Answer.of(asked), kinds)
            answers.append(answer)
        return answers

    def _among(self, name: str, answer: Answer, connection: Connection) -> Answer:
        """Return the rows of the sessions that are still in the shard, and of the context."""
        gone = set(self._store.manifest.shards[name].gone)
        if not (gone or self._context):
            return answer
        if self._context and self._sessions is None:
            asked = execute_ours(connection, "SELECT session_id FROM sessions").fetchall()
            self._sessions = {session_id for (session_id,) in asked}
        at, among = answer.names.index("session_id"), self._sessions
        seen = [s not in gone and (among is None or s in among) for s in answer.columns[at]]
        return Answer(answer.names, [list(compress(column, seen)) for column in answer.columns])

    def _ask(self, missing: list[str], query: str) -> dict[str, Answer | None]:
        """Compute the answers of a query over these shards, and keep them where the folder can be written."""
        rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in missing}
        names: list[str] = []
        kinds: set[str] = set()
        for part in self._slices(missing):
            if part not in self._shards_of:
                self._shards_of[part] = self._shard_by_session(part)
            shard_of = self._shards_of[part]
            asked = execute_ours(part, query)
            names, kinds = column_names(asked), {column[1].id for column in asked.description or ()}
            at = names.index("session_id")
            for row in asked.fetchall():
                rows[shard_of[row[at]]].append(row)
        answers = {name: _by_column(names, of) for name, of in rows.items()}
        for name, answer in answers.items():
            self._keep(name, query, answer, kinds)
        if kinds <= _PLAIN:
            # Answers of shards that are gone, and of other code, are removed.
            entries = self._store.manifest.shards
            with suppress(OSError):
                for path in disk.folder_entries(self._root):
                    name, code, *_ = f"{path.name}.".split(".")
                    if (name not in entries or code != code_stamp()) and (name or disk.is_expired(path)):
                        path.unlink(missing_ok=True)
        return dict(answers)

    def _path(self, name: str, query: str) -> Path:
        mark = hashlib.blake2b(query.encode(), digest_size=8)
        if "signals" in _WORD.findall(query):  # whose values may be computed again, and others be added
            files = self._store.manifest.shards[name].tables
            mark.update(msgspec.json.encode([files[table].digest for table in sorted(files) if "signals" in table]))
        return self._root / f"{name}.{code_stamp()}.{mark.hexdigest()}"

    def _keep(self, name: str, query: str, answer: Answer, kinds: Collection[str]) -> Answer:
        """Keep an answer whose columns have types that can be kept, and return it."""
        if _PLAIN.issuperset(kinds):
            disk.keep(self._path(name, query), msgspec.msgpack.encode((self._n_gone(name), answer)))
        return answer

    def _read(self, name: str, query: str, *, is_sum: bool = False) -> Answer | None:
        with suppress(OSError, msgspec.MsgspecError):
            kept = disk.read_kept(self._path(name, query))
            n_gone, answer = msgspec.msgpack.decode(kept, type=tuple[int, Answer])
            # Rows of fewer than are gone by now lack sessions that this store still sees there.
            if n_gone == self._n_gone(name) or (n_gone < self._n_gone(name) and not is_sum):
                return answer
        return None

    def _n_gone(self, name: str) -> int:
        """Return how many sessions and files left a shard."""
        entry = self._store.manifest.shards[name]
        return len(entry.gone) + len(entry.gone_artifacts)

    def _shard_by_session(self, connection: Connection) -> dict[str, str]:
        files = path_list(connection.files["sessions"])
        asked = connection.database.execute(f"SELECT session_id, filename FROM read_parquet({files}, filename=true)")  # noqa: S608  (quoted)
        found = [(session_id, Path(file).parent.name) for session_id, file in asked.fetchall()]
        gone = {(left, name) for name, entry in self._store.manifest.shards.items() for left in entry.gone}
        return dict(pair for pair in found if pair not in gone)


_WORD = re.compile(r"[a-z_]+")


def clear(folder: Path) -> None:
    """Remove all kept answers: they name sessions."""
    for path in disk.folder_entries(folder / FOLDER):
        path.unlink(missing_ok=True)


def _by_column(names: list[str], rows: list[tuple[Any, ...]]) -> Answer:
    return Answer(names, [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names])
