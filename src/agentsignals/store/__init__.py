"""What is kept: a folder of Parquet files, the only truth, and an index beside it that can be thrown away."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentsignals.errors import StoreError, UnknownSession
from agentsignals.store import manifest as index
from agentsignals.store.manifest import FileEntry, Manifest, SessionEntry, ShardEntry

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from agentsignals.model import Session

ENVIRONMENT = "AGENTSIGNALS_STORE"

# Before pyarrow is loaded, for all that it does: a shard's buffers are made once; mimalloc clears huge pages for them.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def default_folder() -> Path:
    """`$AGENTSIGNALS_STORE`, else the platform's folder for a user's data."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        return Path(named).expanduser()
    import platformdirs  # noqa: PLC0415  (only when nobody names a store)

    return Path(platformdirs.user_data_dir("agentsignals", appauthor=False)) / "store"


class Store:
    """A store on disk. Making one reads the index and nothing else; `create` makes the folder."""

    def __init__(self, folder: Path | str | None = None, *, create: bool = False) -> None:
        self.folder = Path(folder).expanduser() if folder is not None else default_folder()
        if create:
            self._create()
        elif not (self.folder / index.NAME).exists() and not (self.folder / "shards").is_dir():
            raise StoreError(f"There is no store in {self.folder}.", "Run `agentsignals analyze SOURCE` first.")
        self.manifest = index.load(self.folder) or self._rebuilt()

    # -- reading -------------------------------------------------------------------------------------------------

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation over the store's tables, read only. Trace text is data here, never code."""
        from agentsignals.store.query import connect, run  # noqa: PLC0415  (DuckDB is loaded when asked)

        return run(connect(self), query)

    def frame(self, table: str) -> pl.DataFrame:
        """A table or view of the store as a Polars frame."""
        from agentsignals.store.frames import frame  # noqa: PLC0415  (Polars is loaded when asked)

        return frame(self, table)

    def sessions(self) -> pl.DataFrame:
        """One row a session."""
        return self.frame("sessions")

    def events(self) -> pl.DataFrame:
        """One row an event, in file order: whatever happened."""
        return self.frame("events")

    def tool_calls(self) -> pl.DataFrame:
        """One row a tool call with its result."""
        return self.frame("tool_calls")

    def content(self, context: str | None = None) -> pl.DataFrame:
        """One row a piece of text: session_id, seq, turn (1-based), thread, role (`user`, `assistant`, `tool`,
        `system`), content_type (the event's kind), content_text (a call's is its arguments), n_chars (more than is
        kept of a long result), tool (a call's), timestamp.
        """
        from agentsignals.store.frames import content  # noqa: PLC0415  (Polars is loaded when asked)

        return content(self, context)

    def user_messages(self, context: str | None = "product") -> pl.DataFrame:
        """One row a human turn, in the columns of agent-traces's data set: session_id, turn (1-based), nTurns (of the
        session), normPos (0 at its first turn, 1 at its last), model, provider (who makes it; None when its name does
        not tell), agent, cost_total_sum (USD of the session), n_events, n_tool_calls (of the session), content_text.
        Then ours: timestamp, kind, repo, source_dataset, format, context. Prompts of eval runs only when asked for with
        `context="eval"`, both with None.
        """
        from agentsignals.store.frames import user_messages  # noqa: PLC0415  (Polars is loaded when asked)

        return user_messages(self, context)

    def signals(self) -> pl.DataFrame:
        """Every value in the long form: level, session, signal, value (JSON), number, absent …"""
        return self.frame("signals")

    def session(self, session_id: str) -> Session:
        """One session with all its rows. A unique beginning of the id will do; UnknownSession otherwise."""
        from agentsignals.store.shards import read_sessions  # noqa: PLC0415  (pyarrow is loaded when asked)

        found = self.resolve(session_id)
        return next(iter(read_sessions(self.folder, self.manifest.sessions[found].shard, found)))

    def read(self, ids: set[str]) -> Iterator[Session]:
        """The sessions of these ids with all their rows, a shard in memory at a time, in order of shard and id."""
        from agentsignals.store.shards import read_sessions  # noqa: PLC0415  (pyarrow is loaded when asked)

        known = self.manifest.sessions
        for shard in sorted({known[i].shard for i in ids if i in known}):
            yield from (s for s in read_sessions(self.folder, shard) if s.session_id in ids)

    def resolve(self, session_id: str) -> str:
        """The full id of a session named by it, or by a unique beginning of it."""
        known = self.manifest.sessions
        if session_id in known:
            return session_id
        near = [s for s in known if s.startswith(session_id)] if session_id else []
        if len(near) == 1:
            return near[0]
        if near:
            raise UnknownSession(
                f"{len(near)} sessions begin with {session_id!r}.", f"For example {', '.join(near[:3])}."
            )
        raise UnknownSession(
            f"There is no session {session_id!r} in {self.folder}.", "`agentsignals sessions` lists them."
        )

    def artifact_paths(self, ids: set[str]) -> dict[str, str]:
        """The path of each artifact of these ids."""
        return {found: uri for uri in self.manifest.files if (found := artifact_id(uri)) in ids}

    # -- writing -------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Writes the index."""
        index.save(self.folder, self.manifest)

    def add_shard(
        self, name: str, entry: ShardEntry, sessions: dict[str, SessionEntry], files: dict[str, FileEntry]
    ) -> None:
        """Takes in a shard just written; the sessions and files it holds anew leave the shards that held them."""
        known = self.manifest
        families = {e.family for e in sessions.values()} | {e.family for e in files.values()}
        families |= {known.files[u].family for u in files if u in known.files and known.files[u].family}
        self._drop({s for s, e in known.sessions.items() if s in sessions or e.family in families}, set(files), name)
        known.shards[name] = entry
        known.sessions.update(sessions)
        known.files.update(files)
        known.history_of = ""
        self.save()

    def fingerprint(self, across: dict[str, int]) -> str:
        """Names the state of all shards, of the signals in them, and of those across sessions (path to version)."""
        told = [f"{n}:{sorted(s.signals.items())}" for n, s in sorted(self.manifest.shards.items())]
        told.append(f"{sorted(across.items())}")
        return hashlib.blake2b("|".join(told).encode(), digest_size=12).hexdigest()

    def _drop(self, sessions: set[str], uris: set[str], keep: str) -> None:
        """Rewrites the shards that hold these sessions or files without them; the shard `keep` is left alone."""
        from agentsignals.store import shards  # noqa: PLC0415  (pyarrow is loaded when something is written)

        known = self.manifest
        holding = {known.sessions[s].shard for s in sessions}
        holding |= {known.files[u].shard for u in uris if u in known.files and known.files[u].shard}
        for shard in sorted(holding - {keep}):
            inside = {s for s, e in known.sessions.items() if e.shard == shard}
            files = {u for u, f in known.files.items() if f.shard == shard}
            entry = known.shards.pop(shard, None)
            for session_id in inside & sessions:
                del known.sessions[session_id]
            if entry is None or not (inside - sessions or files - uris):
                continue
            told = "|".join([shard, *sorted(inside & sessions), *sorted(files & uris)])
            name = hashlib.blake2b(told.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
            shards.without(self.folder, shard, name, inside & sessions, {artifact_id(u) for u in files & uris})
            known.shards[name] = entry
            for session_id in inside - sessions:
                known.sessions[session_id].shard = name
            for uri in files - uris:
                known.files[uri].shard = name

    def sweep(self) -> None:
        """Removes shards the index doesn't name: superseded ones, and drafts of a run that was killed. Only while no
        worker writes: a shard is renamed into place before it is named in the index.
        """
        for path in (self.folder / "shards").iterdir():
            if path.name not in self.manifest.shards:
                shutil.rmtree(path, ignore_errors=True)

    def _create(self) -> None:
        try:
            (self.folder / "shards").mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise StoreError(
                f"The store {self.folder} can't be made: {problem.strerror}.", "Name another folder with --store."
            ) from problem

    def _rebuilt(self) -> Manifest:
        if not (self.folder / "shards").is_dir() or not any((self.folder / "shards").iterdir()):
            return Manifest()
        from agentsignals.store.rebuild import rebuilt  # noqa: PLC0415  (rare)

        return rebuilt(self.folder)


def artifact_id(uri: str) -> str:
    """The id of the file of that address: stable while the file grows."""
    return hashlib.blake2b(uri.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
