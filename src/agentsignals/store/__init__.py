"""The store: a folder of Parquet files, which are the only truth, and an index that can be rebuilt from them."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from agentsignals import on_demand, private_files
from agentsignals.errors import NotComputed, QueryError, StoreError, UnknownSession, install_command
from agentsignals.model.registry import no_such
from agentsignals.store import disk, index, sidecars
from agentsignals.store.disk import StoredFile
from agentsignals.store.index import (
    GONE_FILE,
    RETIRED,
    SESSION,
    SHARDS_FOLDER,
    ArtifactEntry,
    Manifest,
    SessionEntry,
    ShardEntry,
)
from agentsignals.store.index import artifact_id as artifact_id
from agentsignals.store.sidecars import Damage, SidecarList

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import duckdb
    import polars as pl

    from agentsignals.model import Session


PLACE = "user.place"
"""The one signal across sessions that is computed with every run: findings tell sessions by their places."""
ENVIRONMENT = "AGENTSIGNALS_STORE"
_AT_ONCE = 4_096
"""Keys that are looked up together."""


def local_folder(folder: Path | str | None = None, *, create: bool = False) -> Path:
    """Return the folder of the store named; else of `$AGENTSIGNALS_STORE`, else the platform's folder for user data.
    For a remote store (`s3://…`), fetch it and return its local copy. StoreError when it can't be fetched, or does not
    exist and `create` is False."""
    named = folder if folder is not None else os.environ.get(ENVIRONMENT)
    scheme, slash, rest = str(named).partition(":/")  # a Path has one slash where an address has two
    if scheme == "s3" and slash:
        from agentsignals.store import remote  # noqa: PLC0415  (only for such a store)

        return remote.local_copy(f"s3://{rest.lstrip('/')}", create=create)
    if named:
        return Path(named).expanduser()
    import platformdirs  # noqa: PLC0415  (only when nobody names a store)

    return Path(platformdirs.user_data_dir("agentsignals", appauthor=False)) / "store"


def resolve_folder(folder: Path | str | None = None, *, create: bool = False) -> Path:
    """Return the folder of the store named, or of the default one; `create` makes it where there is none."""
    root = local_folder(folder, create=create)
    try:
        if create and not (root / index.INDEX_FILE).exists() and not (root / SHARDS_FOLDER).is_dir():
            private_files.make_folder(root / SHARDS_FOLDER)
            with disk.locked(root):
                if not (root / index.INDEX_FILE).exists() and not any((root / SHARDS_FOLDER).iterdir()):
                    Manifest().create(root)
    except OSError as problem:
        raise StoreError(
            f"The store {root} can't be made: {problem.strerror}.", "Name another folder with --store."
        ) from problem
    return root


_LOOK_AGAIN_S = 1.0
"""Seconds for which a store that was just checked is not checked again."""

# Before pyarrow is loaded, for all that it does: a shard's buffers are made once; mimalloc clears huge pages for them.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
# What that leaves unused need not clean up in a thread: workers are copies of a process that has one alone.
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")


_CONTENT = """
    SELECT session_id, seq, events.turn + 1 AS turn, events.thread,
        CASE WHEN kind = 'human_turn' THEN 'user' WHEN kind IN ('text', 'thinking', 'tool_call') THEN 'assistant'
            WHEN kind = 'tool_result' THEN 'tool' ELSE 'system' END AS role,
        kind AS content_type, coalesce(text, arguments) AS content_text,
        CASE WHEN text IS NULL THEN length(arguments) ELSE n_chars END AS n_chars, name AS tool, timestamp
    FROM events LEFT JOIN tool_calls USING (session_id, seq)
    WHERE coalesce(text, arguments, '') <> '' ORDER BY session_id, seq
"""
_USER_MESSAGES = """
    SELECT session_id, turn + 1 AS turn, n_turns AS "nTurns",
        CASE WHEN n_turns > 1 THEN turn / (n_turns - 1) ELSE 0.0 END AS "normPos",
        coalesce(turns.model, sessions.model) AS model, agent, cost_usd AS cost_total_sum, n_events, n_tool_calls,
        text AS content_text, turns.timestamp, kind, repo, source AS source_dataset, sessions.format, context,
        visible_output_tokens IS NOT NULL AS cost_at_least
    FROM turns JOIN sessions USING (session_id) LEFT JOIN artifacts USING (artifact_id) ORDER BY session_id, turn
"""


class Store:
    """A store on disk, as it was when it was opened.

    A run that goes on meanwhile changes nothing of it, and removes nothing that it holds for an hour. Opening reads the
    index and checks the files. What is damaged is in `damage`, and a warning goes to the logger `agentsignals.store`.

    `create` makes the folder. `write` saves an index that had to be rebuilt; only under the store's lock.
    """

    damage: list[Damage]
    """Files that are not as they were written. Answers are without them."""
    warnings: list[str]
    """The damage in words, and what happened to the index."""
    only: dict[str, str] | None = None
    """The sessions that queries see, with their contexts (`selection.select`). None for all."""

    def __init__(self, folder: Path | str | None = None, *, create: bool = False, write: bool = False) -> None:
        self.folder = resolve_folder(folder, create=create or write)
        if not (self.folder / index.INDEX_FILE).exists() and not (self.folder / SHARDS_FOLDER).is_dir():
            raise StoreError(f"There is no store in {self.folder}.", "Run `agentsignals analyze SOURCE` first.")
        if was := disk.close_to_others(self.folder):
            import logging  # noqa: PLC0415  (once in a store's life)

            logging.getLogger("agentsignals.store").warning("%s: %s", self.folder, was)
        self._retired: list[str] = []
        self._open(write)

    def _open(self, write: bool = False) -> None:
        """Load the index, or rebuild it from the shards where it is missing or damaged, and check the files."""
        manifest, why = index.load(self.folder)
        made_again = manifest is None and (
            (self.folder / SHARDS_FOLDER).is_dir() and any((self.folder / SHARDS_FOLDER).iterdir())
        )
        if made_again:
            from agentsignals.store.shards import rebuild_index  # noqa: PLC0415  (rare)

            manifest = rebuild_index(self.folder)
            if write:
                if why:
                    disk.set_aside(self.folder, self.folder / index.INDEX_FILE)
                manifest.create(self.folder)
        self.manifest = manifest or Manifest()
        self.warnings = []
        if made_again:
            n = len(self.manifest.sessions)
            self.warnings.append(
                f"its index {why or 'is gone'} and is made again from the {n:,} sessions there: `analyze` your sources"
                " again, what else was lost is not known"
            )
        if lost := SidecarList(self.folder).lost:
            self.warnings.append(
                f"{sidecars.LIST_FILE} {lost}: labels and what is known of repositories are as files show"
            )
        self._warn(self.warnings)
        self.damage = []
        self._words: list[str] = []
        self.check_files()

    def check_files(self, *, thorough: bool = False) -> bool:
        """Compare the files with the index again: lengths and times, and bytes where a time differs; `thorough`
        compares all bytes. Return True when the damage is another than before."""
        before, self.damage = self.damage, self._find_damage(thorough)
        self._looked_at = time.monotonic()
        self._broken = {(d.shard, d.table) for d in self.damage if d.shard}
        earlier, self._words = self._words, self._describe_damage()
        self._warn([line for line in self._words if line not in earlier])
        self.warnings = [line for line in self.warnings if line not in earlier] + self._words
        return self.damage != before

    def _find_damage(self, thorough: bool) -> list[Damage]:
        """Return the damaged files of the store, each with the rows that answers lack because of it."""
        broken: list[Damage] = []
        counted: dict[str, int] = {}
        for name, shard in sorted(self.manifest.shards.items()):
            folder = f"{self.folder}/{SHARDS_FOLDER}/{name}"
            for table, part in shard.tables.items():
                if not (what := disk.what_is_wrong(f"{folder}/{table}.parquet", part, thorough)):
                    continue
                if thorough:  # what only its bytes show is looked at by them from now on
                    part.stamp = 0
                counted = counted or self.manifest.sessions_by_shard()
                rows = f"{part.rows:,} rows of {table}, of {counted.get(name, 0):,} sessions, are missing"
                place = f"{SHARDS_FOLDER}/{name}/{table}.parquet"
                broken.append(Damage(place=place, what=what, lacks=rows, shard=name, table=table.partition(".")[0]))
        if thorough and not self.manifest.is_sound():
            broken.append(
                Damage(place=index.INDEX_FILE, what="is garbled", lacks="what it knows of files may be wrong")
            )
        for across in self._files_across():
            if what := disk.what_is_wrong(f"{self.folder}/{across.file}", across, thorough):
                across.stamp = 0 if thorough else across.stamp
                lacks = "values across sessions are missing"
                broken.append(Damage(place=across.file, what=what, lacks=lacks, table="signals"))
        return [*broken, *SidecarList(self.folder).damage(thorough=thorough)]

    def _describe_damage(self) -> list[str]:
        """Return a line for each damaged file, or one for a shard of which nothing is left."""
        by_shard: dict[str, list[Damage]] = {}
        lines = [str(damage) for damage in self.damage if not damage.shard]
        for damage in self.damage:
            if damage.shard:
                by_shard.setdefault(damage.shard, []).append(damage)
        counted = self.manifest.sessions_by_shard() if by_shard else {}
        for name, those in by_shard.items():
            if len(those) == len(self.manifest.shards[name].tables) and len({d.what for d in those}) == 1:
                lines.append(f"{SHARDS_FOLDER}/{name} {those[0].what}: {counted.get(name, 0):,} sessions are missing")
            else:
                lines += map(str, those)
        return sorted(lines)

    def _files_across(self) -> list[StoredFile]:
        """Return the files of values across sessions, without those that are of former shards."""
        manifest = self.manifest
        across = manifest.across if manifest.across_signals else None
        return [file for file in (manifest.places, across) if file is not None]

    def _warn(self, lines: list[str]) -> None:
        if lines:
            import logging  # noqa: PLC0415  (rare)

            for line in lines:
                logging.getLogger("agentsignals.store").warning("the store %s is damaged: %s", self.folder, line)

    def contexts(self) -> dict[str, int]:
        """Return the number of sessions that queries see, by context."""
        return self.manifest.contexts() if self.only is None else dict(sorted(Counter(self.only.values()).items()))

    def refresh(self) -> None:
        """Reopen the store when one of its files is gone, or its index no longer holds its state."""
        if self.is_changed(_LOOK_AGAIN_S) or not self.manifest.is_held():
            self._open()

    def is_changed(self, after_s: float) -> bool:
        """Return True when a check finds other damage than the last one, which must be longer ago than this."""
        return time.monotonic() - self._looked_at > after_s and self.check_files()

    def readable_shards(self, *tables: str) -> list[str]:
        """Return the shards in order, without those in which one of these tables (none named: any) is damaged."""
        if not self._broken:
            return sorted(self.manifest.shards)
        broken = {shard for shard, table in self._broken if not tables or table in tables}
        return sorted(self.manifest.shards.keys() - broken)

    def files(self, table: str) -> list[Path]:
        """Return the undamaged files of a table of sessions."""
        manifest = self.manifest
        shards = self.readable_shards(table)
        if table == "signals":
            paths = [path for name in shards for path in self.signal_files(name)]
            paths += self.without_damaged([self.folder / across.file for across in self._files_across()])
        else:
            folder = self.folder / SHARDS_FOLDER
            paths = [folder / name / f"{table}.parquet" for name in shards if table in manifest.shards[name].tables]
        return paths + (self.without_damaged(sidecars.label_files(self.folder)) if table == "labels" else [])

    def signal_files(self, shard: str) -> list[Path]:
        """Return the files with a shard's values: those computed when it was read, then those computed later."""
        tables = self.manifest.shards[shard].tables
        return [
            self.folder / SHARDS_FOLDER / shard / f"{table}.parquet"
            for table in sorted(tables)
            if table.partition(".")[0] == "signals"
        ]

    def not_computed(self, paths: Iterable[str] | None = None, shard: str | None = None) -> frozenset[str]:
        """Return those of these signals (None: of all) whose values are not computed for every readable shard, or for
        this one. Unknown names are left out."""
        manifest = self.manifest
        shards = [manifest.shards[name].signals for name in self.readable_shards() if shard in (None, name)]
        across = {*manifest.across_signals, *([PLACE] if manifest.places else [])}

        def lacking(paths: Iterable[str]) -> set[str]:
            return {path for path in paths if path not in across and any(path not in held for held in shards)}

        asked = None if paths is None else lacking(paths)
        if asked is not None and not asked:
            return frozenset()
        from agentsignals.signals.catalog import catalogue  # noqa: PLC0415  (loads every signal)

        declared = {signal.path for signal in catalogue().values()}
        return frozenset(lacking(declared) if asked is None else asked & declared)

    def require(self, paths: Iterable[str] | None = None, shard: str | None = None) -> None:
        """Compute values of these signals (None: of all) that no run and nobody who asked computed, and keep them.
        Values of signals across sessions are of all shards; others of this one where it is named. NotComputed where
        the store can't be written."""
        missing = self.not_computed(paths, shard)
        if not missing:
            return
        if on_demand.compute is None or not os.access(self.folder, os.W_OK):
            raise NotComputed(missing, shard)
        on_demand.compute(self, missing, shard)
        self._open()
        if self.not_computed(missing, shard):  # for what only reading shows to be damaged
            self.check_files(thorough=True)

    def without_damaged(self, paths: list[Path]) -> list[Path]:
        """Return these files without damaged ones."""
        broken = {self.folder / d.place for d in self.damage}
        return [path for path in paths if path not in broken]

    def __repr__(self) -> str:
        from agentsignals.store.query import summary_line  # noqa: PLC0415  (DuckDB is loaded when asked)

        return f"<Store {self.folder}: {summary_line(self)}>"

    # -- reading -------------------------------------------------------------------------------------------------

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """Return a DuckDB relation over the store's tables, read only. Trace text is data here, never code."""
        from agentsignals.store.query import computing, connect, run  # noqa: PLC0415  (DuckDB is loaded when asked)

        return computing(self, lambda: run(connect(self), query))

    def frame(self, table: str, context: str | None = None) -> pl.DataFrame:
        """Return a table or view as a Polars frame, whole or of one context; `signals` with how often each is right.
        QueryError for an unknown table."""
        from agentsignals.signals.catalog import caption  # noqa: PLC0415  (loads every signal)
        from agentsignals.store.query import NAMES  # noqa: PLC0415  (DuckDB is loaded when asked)

        if table not in NAMES:
            raise QueryError(*no_such("table", table, NAMES))
        rows = self._frame(f'SELECT * FROM "{table}"', context)  # noqa: S608  (one of the tables' names)
        if table != "signals":
            return rows
        captions = {path: caption(path) for path in rows["signal"].unique()}
        validation = rows["signal"].replace_strict(captions, return_dtype=rows["signal"].dtype)
        return rows.with_columns(validation.alias("validation"))

    def _frame(self, query: str, context: str | None) -> pl.DataFrame:
        try:
            import polars  # noqa: F401, PLC0415  (loaded when asked)
        except ImportError as problem:
            raise StoreError(
                f"Data frames need Polars, which cannot be loaded: {problem}.",
                f"Install it: {install_command('frames')}. Or use `store.sql(…)`, which needs no Polars.",
            ) from problem
        from agentsignals.store.query import run, with_connection  # noqa: PLC0415  (DuckDB is loaded when asked)

        made: pl.DataFrame = with_connection(self, lambda connection: run(connection, query).pl(), context)
        return made

    def sessions(self) -> pl.DataFrame:
        """One row a session."""
        return self.frame("sessions")

    def events(self) -> pl.DataFrame:
        """One row an event, in file order."""
        return self.frame("events")

    def tool_calls(self) -> pl.DataFrame:
        """One row a tool call with its result."""
        return self.frame("tool_calls")

    def content(self, context: str | None = None) -> pl.DataFrame:
        """One row a piece of text: session_id, seq, turn (1-based), thread, role (`user`, `assistant`, `tool`,
        `system`), content_type (the event's kind), content_text (a call's arguments), n_chars (full length of a long
        result that was cut), tool (of a call), timestamp."""
        return self._frame(_CONTENT, context)

    def user_messages(self, context: str | None = "product") -> pl.DataFrame:
        """One row a human turn, in the columns of agent-traces's data set: session_id, turn (1-based), nTurns (of the
        session), normPos (0 at its first turn, 1 at its last), model, provider (None when the model's name does not
        tell), agent, cost_total_sum (USD of the session), n_events, n_tool_calls (of the session), content_text.

        Our own columns follow: timestamp, kind, repo, source_dataset, format, context, cost_at_least (the cost is a
        lower bound). `context="eval"` returns prompts of eval runs, None both.
        """
        from agentsignals.model.prices import maker  # noqa: PLC0415  (as above)

        messages = self._frame(_USER_MESSAGES, context)
        model = messages["model"]
        makers = {name: maker(name) for name in model.unique() if name is not None}
        provider = model.replace_strict(makers, default=None, return_dtype=model.dtype).alias("provider")
        return messages.insert_column(messages.columns.index("model") + 1, provider)

    def signals(self) -> pl.DataFrame:
        """Every value in the long form: level, session, signal, value (JSON), number, absent and more. `validation`
        says how often a signal that claims a meaning was right; empty for counts."""
        return self.frame("signals")

    def session(self, session_id: str) -> Session:
        """Return one session, as `resolve` names it. UnknownSession otherwise; StoreError when it is damaged."""
        from agentsignals.store.shards import read_sessions  # noqa: PLC0415  (pyarrow is loaded when asked)

        self.refresh()
        full = self.resolve(session_id)
        shard = self.manifest.sessions[full].shard
        if shard not in self.readable_shards():
            what = next(str(d) for d in self.damage if d.shard == shard)
            raise StoreError(f"The session {full} can't be read: {what}.", "Run `agentsignals doctor` for a remedy.")
        try:
            return next(read_sessions(self.folder, shard, full))
        except StopIteration:
            raise StoreError(
                f"The session {full} is missing from its part of the store ({shard}).", "Run `agentsignals doctor`."
            ) from None

    def read(self, ids: set[str]) -> Iterator[Session]:
        """Yield the sessions of these ids with all their rows, in order of shard and id; one shard is in memory at a
        time. Sessions of damaged shards are left out."""
        from agentsignals.store.shards import read_sessions  # noqa: PLC0415  (pyarrow is loaded when asked)

        self.refresh()
        entries, whole = self.manifest.sessions, set(self.readable_shards())
        for shard in sorted({entries[i].shard for i in ids if i in entries} & whole):
            try:
                sessions = read_sessions(self.folder, shard, gone=self.manifest.shards[shard].gone)
            except StoreError:  # what only reading it shows
                if not self.check_files(thorough=True):
                    raise
                continue
            yield from (s for s in sessions if s.session_id in ids)

    def resolve(self, session_id: str) -> str:
        """Return the id of the session named by it, by a unique beginning of it, or by its log: the address or its end,
        the file's name, or a unique beginning of that. UnknownSession otherwise."""
        sessions, files = self.manifest.sessions, self.manifest.files
        if session_id in sessions:
            return session_id
        near = [i for i in sessions if i.startswith(session_id)] if session_id else []
        if not near and session_id:
            # Sessions of the files with this name: those the files themselves name, else those of their groups.
            end = f"/{session_id.removeprefix('./')}"
            named = [
                entry
                for uri, entry in files.items()
                if entry.shard and (uri == session_id or uri.endswith(end) or PurePath(uri).name.startswith(session_id))
            ]
            ids = {key.removeprefix("session:") for entry in named for key in entry.keys if key.startswith("session:")}
            groups = {entry.group for entry in named}
            near = sorted(ids & sessions.keys()) or sorted(i for i, entry in sessions.items() if entry.group in groups)
        if len(near) == 1:
            return near[0]
        if near:
            raise UnknownSession(f"{session_id!r} matches {len(near)} sessions.", f"For example {', '.join(near[:3])}.")
        raise UnknownSession(
            f"There is no session {session_id!r} in {self.folder}.", "Run `agentsignals sessions` to list them."
        )

    def artifact_paths(self, ids: set[str], session_id: str) -> dict[str, str]:
        group = self.manifest.sessions[session_id].group
        for uris in ([uri for uri, e in self.manifest.files.items() if e.group == group], self.manifest.files):
            paths = {wanted_id: uri for uri in uris if (wanted_id := artifact_id(uri)) in ids}
            if len(paths) == len(ids):
                break
        return paths

    # -- writing -------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write all that changed, also shards' entries that were changed in place, then mark the shards that the index
        no longer names."""
        if self.manifest.folder is None:  # there was none on the disk
            self.manifest.create(self.folder)
        else:
            self.manifest.commit(whole=True)
        self._retire()

    def commit(self) -> None:
        """Write the rows and shards that changed since the last commit."""
        if self.manifest.folder is None:
            self.save()
            return
        self.manifest.commit()
        self._retire()

    def _retire(self) -> None:
        # Beside each shard stands what left it, for an index that is made again.
        """Mark replaced shards, and write beside each shard which sessions left it."""
        for name in self.manifest.shrunk:
            entry = self.manifest.shards.get(name)
            if entry is not None and (entry.gone or entry.gone_artifacts):
                with suppress(OSError):  # of a shard that is damaged: it is read again
                    data = msgspec.json.encode([entry.gone, entry.gone_artifacts])
                    disk.write_atomically(self.folder / SHARDS_FOLDER / name / GONE_FILE, data)
        self.manifest.shrunk.clear()
        for name in self._retired:
            with suppress(OSError):  # of a shard that is gone; else the next run marks it
                (self.folder / SHARDS_FOLDER / name / RETIRED).touch(private_files.FILE)
        self._retired = []
        disk.checkpoint(self.folder)

    def add_shard(
        self,
        name: str,
        entry: ShardEntry,
        sessions: dict[str, SessionEntry],
        files: dict[str, ArtifactEntry],
        kept: Collection[str] = (),
    ) -> set[str]:
        """Add a shard just written. Its sessions and files are removed from the shards that held them, and so are other
        sessions of its groups but those that are `kept`. Return keys of sessions that files of other groups tell too.
        StoreError when it is not in this folder."""
        manifest = self.manifest
        if entry.tables and not (self.folder / SHARDS_FOLDER / name).is_dir():
            raise StoreError(
                f"A worker process wrote {name}, but it is not in {self.folder}.",
                "Workers on other machines need the store's folder under the same path.",
            )
        late_keys = self._with_shared_keys(sessions, files)
        groups = {e.group for e in sessions.values()} | {e.group for e in files.values()}
        known = manifest.files.known(files)
        groups |= {e.group for e in known.values() if e.group}
        former = {i: e for i, e in manifest.sessions.where("group", groups).items() if i not in kept}
        again = manifest.sessions.known(sessions) | former
        self._drop(again, known, name)
        manifest.shards[name] = entry
        manifest.sessions.update(sessions)
        manifest.files.update(files)
        manifest.shards_changed()
        self.commit()
        return late_keys

    def _with_shared_keys(self, sessions: dict[str, SessionEntry], files: dict[str, ArtifactEntry]) -> set[str]:
        """Note the key of a session with the files of two groups that tell it, one key for two groups. Return these
        keys."""
        manifest = self.manifest
        told = [(f"{SESSION}{session_id}", e.group) for session_id, e in sessions.items()]
        told += {(key, e.group) for e in files.values() for key in e.keys if key.startswith(SESSION)}
        shared: dict[tuple[str, str], str] = {}
        for at in range(0, len(told), _AT_ONCE):
            groups = dict(told[at : at + _AT_ONCE])
            found = manifest.files_with_keys(groups)
            others = {uri for uris in found.values() for uri in uris} - files.keys()
            entries = manifest.files.known(others)
            pairs = [(key, entries[uri].group) for key, uris in found.items() for uri in uris if uri in entries]
            pairs += [(k, e.group) for k in groups if (e := sessions.get(k.removeprefix(SESSION))) is not None]
            shared |= {(groups[key], other): key for key, other in pairs if other != groups[key]}
        for (own, other), key in shared.items():
            for uri, entry in (manifest.files.where("group", [other]) | files).items():
                if entry.group in (own, other) and key not in entry.keys:
                    one = replace(entry, keys=[*entry.keys, key])
                    if uri in files:
                        files[uri] = one
                    else:
                        manifest.files[uri] = one
        return set(shared.values())

    def replace_shards(self, names: list[str], new_name: str, entry: ShardEntry) -> None:
        """Replace shards by another that holds the same sessions and files, without writing the index."""
        manifest = self.manifest
        for name in names:
            del manifest.shards[name]
        manifest.shards[new_name] = entry
        if entry.gone or entry.gone_artifacts:
            manifest.shrunk.add(new_name)
        for session_id, session in manifest.sessions.where("shard", names).items():
            manifest.sessions[session_id] = replace(session, shard=new_name)
        for uri, file in manifest.files.where("shard", names).items():
            manifest.files[uri] = replace(file, shard=new_name)
        self._retired += names

    def new_shard_name(self, of: str) -> str:
        """Return an unused shard name for this content."""
        self.manifest.run += 1
        return f"{self.manifest.run:06d}-{of.rpartition('-')[2]}"

    def drop(self, sessions: set[str], uris: set[str]) -> None:
        """Remove sessions and files from the index, and rewrite all shards that hold rows of them, seen or not."""
        manifest = self.manifest
        files, known = manifest.files.known(uris), manifest.sessions.known(sessions)
        artifacts = {artifact_id(uri) for uri in uris}
        holding = {e.shard for e in known.values()} | {e.shard for e in files.values()}
        for name, entry in manifest.shards.items():
            if not (sessions.isdisjoint(entry.gone) and artifacts.isdisjoint(entry.gone_artifacts)):
                holding.add(name)
        self._drop(known, files)
        for uri in files:
            del manifest.files[uri]
        for shard in sorted(holding & manifest.shards.keys()):
            self.rewrite(shard)

    def rewrite(self, *names: str) -> None:
        """Replace shards by one without the rows of sessions and artifacts that left them, without writing the
        index."""
        from agentsignals.store import shards  # noqa: PLC0415  (pyarrow is loaded when something is written)

        new_name, is_emptied = self.new_shard_name(names[0]), not self.manifest.sessions.where("shard", names)
        entries = {name: self.manifest.shards[name] for name in names}
        self.replace_shards(list(names), new_name, shards.merge(self.folder, entries, new_name, is_emptied))

    def _drop(self, sessions: dict[str, SessionEntry], files: dict[str, ArtifactEntry], keep: str = "") -> None:
        """Take these sessions and files out of the store: a shard that holds nothing else is retired, another one keeps
        them under a tombstone. `keep`: a shard that is left alone, as it is written anew."""
        manifest = self.manifest
        for session_id in sessions:
            del manifest.sessions[session_id]
        holding = {e.shard for e in sessions.values()} | {e.shard for e in files.values() if e.shard}
        for shard in sorted(holding - {keep}):
            gone = {session_id for session_id, e in sessions.items() if e.shard == shard}
            gone_files = {uri for uri, e in files.items() if e.shard == shard}
            if shard not in manifest.shards:
                continue
            is_emptied = not manifest.sessions.where("shard", [shard])
            if is_emptied and manifest.files.where("shard", [shard]).keys() <= gone_files:
                del manifest.shards[shard]
                self._retired.append(shard)
                continue
            manifest.bury(shard, gone, map(artifact_id, gone_files))
            if is_emptied:  # only files without sessions are left, so the shard shrinks to their rows
                self.rewrite(shard)

    def sweep(self) -> None:
        """Remove shards that were superseded an hour ago, and drafts of a run that was killed. A shard that no index
        named and that holds sessions the store lacks is set aside.

        Call it only while no worker writes: a shard is renamed into place before the index names it.
        """
        from agentsignals.store.shards import DRAFT, read_table  # noqa: PLC0415  (pyarrow is loaded when one writes)

        for path in disk.folder_entries(self.folder / SHARDS_FOLDER):
            if path.name.startswith(DRAFT):
                shutil.rmtree(path, ignore_errors=True)
            elif path.name in self.manifest.shards or not os.access(path, os.R_OK | os.X_OK):
                continue
            elif disk.has_entry(path, RETIRED):
                if disk.is_expired(path / RETIRED):
                    shutil.rmtree(path, ignore_errors=True)
            else:
                try:
                    rows = read_table(self.folder, path.name, "sessions", ["session_id"])
                    is_known = all(row["session_id"] in self.manifest.sessions for row in rows)
                except StoreError:
                    is_known = False
                if not is_known:
                    disk.set_aside(self.folder, path)
                    continue
                with suppress(OSError):
                    (path / RETIRED).touch(private_files.FILE)
        # Each stays until its successor is an hour old: while an agent works there is a new one every few seconds.
        self.manifest.purge()
        for live, pattern in ((self.manifest.places, "places.*parquet"), (self.manifest.across, "signals.*parquet")):
            written = sorted(self.folder.glob(pattern), key=lambda p: p.stat().st_mtime_ns)
            for path, successor in pairwise(written):
                if live is not None and path.name != live.file and disk.is_expired(successor):
                    path.unlink(missing_ok=True)

    def strays(self) -> list[Path]:
        """Return what lies in the store's folders and belongs to nothing."""
        from agentsignals.store import tables  # noqa: PLC0415  (as below)
        from agentsignals.store.shards import DRAFT  # noqa: PLC0415  (pyarrow is loaded when asked)

        named = self.manifest.shards
        strays = [
            p
            for p in disk.folder_entries(self.folder / SHARDS_FOLDER)
            if p.name not in named and not p.name.startswith(DRAFT) and not disk.has_entry(p, RETIRED)
        ]
        known = {f"{table}.parquet" for table in tables.NAMES} | {RETIRED, GONE_FILE}
        for name, entry in named.items():
            of_it = known | {f"{table}.parquet" for table in entry.tables}
            with suppress(OSError):  # a shard that can't be listed is damaged, which is said elsewhere
                inside = (self.folder / SHARDS_FOLDER / name).iterdir()
                strays += [p for p in inside if p.name not in of_it]
        return sorted([*strays, *SidecarList(self.folder).strays()])
