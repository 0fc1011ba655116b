"""What is kept: a folder of Parquet files, the only truth, and an index beside it that can be thrown away."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from agentsignals.errors import StoreError, UnknownSession
from agentsignals.store import files as disk
from agentsignals.store import files as lock
from agentsignals.store import index
from agentsignals.store import index as parts
from agentsignals.store import sidecars as label_files
from agentsignals.store.files import Part
from agentsignals.store.index import (
    FOLDER,
    RETIRED,
    Commit,
    Damage,
    FileEntry,
    Manifest,
    SessionEntry,
    ShardEntry,
    in_words,
    share_texts,
)
from agentsignals.store.index import damage_damage as damage

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from agentsignals.model import Session


# What each shard holds, and which sessions a family has, so that a commit looks through no index for it.


class Holdings:
    """Of a manifest that is changed through this alone; `change` is what of that is not written yet."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._sessions: dict[str, set[str]] = defaultdict(set)
        self._files: dict[str, set[str]] = defaultdict(set)
        self._families: dict[str, set[str]] = defaultdict(set)
        self.change = Commit()
        self._note(manifest.sessions, manifest.files)

    def sessions_of(self, shard: str) -> set[str]:
        """The sessions that a shard holds."""
        return self._sessions[shard]

    def files_of(self, shard: str) -> set[str]:
        """The files whose rows a shard holds."""
        return self._files[shard]

    def in_families(self, families: set[str]) -> set[str]:
        """The sessions of these families."""
        return {session_id for family in families for session_id in self._families[family]}

    def add(self, name: str, entry: ShardEntry, sessions: dict[str, SessionEntry], files: dict[str, FileEntry]) -> None:
        """Takes in a shard. No other holds its sessions and files any more."""
        share_texts(Commit(sessions=sessions, files=files))
        for held in (self._manifest, self.change):
            held.shards[name] = entry
            held.sessions.update(sessions)
            held.files.update(files)
        self._note(sessions, files)

    def drop(self, shard: str, sessions: set[str], files: set[str]) -> None:
        """Takes sessions and files out of a shard; where files lie is said by whoever takes them."""
        for session_id in sessions:
            self._families[self._manifest.sessions.pop(session_id).family].discard(session_id)
            self.change.sessions.pop(session_id, None)
        self.change.gone_sessions += sessions
        self._sessions[shard] -= sessions
        self._files[shard] -= files

    def remove(self, shard: str) -> None:
        """Takes a shard out that holds nothing any more."""
        self._manifest.shards.pop(shard)
        self.change.shards.pop(shard, None)
        self.change.gone_shards.append(shard)

    def put(self, shards: list[str], name: str, entry: ShardEntry) -> None:
        """Has another stand for shards."""
        manifest, change = self._manifest, self.change
        for shard in shards:
            self.remove(shard)
            self._sessions[name] |= self._sessions.pop(shard, set())
            self._files[name] |= self._files.pop(shard, set())
        manifest.shards[name] = change.shards[name] = entry
        for session_id in self._sessions[name]:
            change.sessions[session_id] = manifest.sessions[session_id]
            change.sessions[session_id].shard = name
        for uri in self._files[name]:
            change.files[uri] = manifest.files[uri]
            change.files[uri].shard = name

    def _note(self, sessions: dict[str, SessionEntry], files: dict[str, FileEntry]) -> None:
        for session_id, entry in sessions.items():
            self._sessions[entry.shard].add(session_id)
            self._families[entry.family].add(session_id)
        for uri, file in files.items():
            self._files[file.shard].add(uri)


# Where a store lies: a folder named, the default one, or the folder here that stands for a store elsewhere.

ENVIRONMENT = "AGENTSIGNALS_STORE"


def local_folder(folder: Path | str | None = None, *, create: bool = False) -> Path:
    """The folder of the store named; else of `$AGENTSIGNALS_STORE`, else the platform's for a user's data. Of a store
    elsewhere (`s3://…`) the one here that stands for it, as that is now: StoreError when it can't be fetched, or
    is not there and not to be made (`create`).
    """
    named = folder if folder is not None else os.environ.get(ENVIRONMENT)
    scheme, slash, rest = str(named).partition(":/")  # a Path has one slash where an address has two
    if scheme == "s3" and slash:
        from agentsignals.store import remote  # noqa: PLC0415  (only for such a store)

        return remote.folder_of(f"s3://{rest.lstrip('/')}", create=create)
    if named:
        return Path(named).expanduser()
    import platformdirs  # noqa: PLC0415  (only when nobody names a store)

    return Path(platformdirs.user_data_dir("agentsignals", appauthor=False)) / "store"


def place(folder: Path | str | None = None, *, create: bool = False) -> Path:
    """The folder of the store named, or of the default one; `create` makes it where there is none."""
    root = local_folder(folder, create=create)
    try:
        if create and not (root / index.NAME).exists() and not (root / FOLDER).is_dir():
            (root / FOLDER).mkdir(parents=True, exist_ok=True)
            with lock.locked(root):
                if not (root / index.NAME).exists() and not any((root / FOLDER).iterdir()):
                    index.save(root, Manifest())
    except OSError as problem:
        raise StoreError(
            f"The store {root} can't be made: {problem.strerror}.", "Name another folder with --store."
        ) from problem
    return root


# Which session a person means: by its id, by the beginning of it, or by the file that holds it.

_KEY = "session:"


def full_id(manifest: Manifest, name: str, place: str) -> str:
    """The id of the session named by it, by a unique beginning of it, or by its log: the address or the end of it, the
    file's name, or a unique beginning of the name. UnknownSession otherwise; `place` is the store's, for its words.
    """
    if name in manifest.sessions:
        return name
    near = [i for i in manifest.sessions if i.startswith(name)] if name else []
    if not near and name:
        near = _of_files(manifest, name)
    if len(near) == 1:
        return near[0]
    if near:
        raise UnknownSession(f"{name!r} names {len(near)} sessions.", f"For example {', '.join(near[:3])}.")
    raise UnknownSession(f"There is no session {name!r} in {place}.", "`agentsignals sessions` lists them.")


def _of_files(manifest: Manifest, name: str) -> list[str]:
    """The sessions of the files that are named so: those the files themselves name, else those of their families."""
    files = [entry for uri, entry in manifest.files.items() if entry.shard and _is_named(uri, name)]
    ids = {key.removeprefix(_KEY) for entry in files for key in entry.keys if key.startswith(_KEY)}
    families = {entry.family for entry in files}
    return sorted(ids & manifest.sessions.keys()) or sorted(
        i for i, entry in manifest.sessions.items() if entry.family in families
    )


def _is_named(uri: str, name: str) -> bool:
    return uri == name or uri.endswith(f"/{name.removeprefix('./')}") or PurePath(uri).name.startswith(name)


_LOOK_AGAIN_S = 1.0
"""A store that was just opened is not looked at again."""

# Before pyarrow is loaded, for all that it does: a shard's buffers are made once; mimalloc clears huge pages for them.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
# What that leaves unused need not clean up in a thread: workers are copies of a process that has one alone.
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")


class Store:
    """A store on disk, as it stood when it was opened: a run that goes on meanwhile changes nothing of it, and removes
    nothing that it holds for an hour. Opening reads the index and looks whether its files are as they were written;
    what is not is in `damage`, and a warning goes to the logger `agentsignals.store`.

    `create` makes the folder. `write`: the index is saved where it had to be made again; only under the store's lock.
    """

    damage: list[Damage]
    """What is not as it was written. Answers are without it."""
    warnings: list[str]
    """The same in words, with what happened to the index."""

    def __init__(self, folder: Path | str | None = None, *, create: bool = False, write: bool = False) -> None:
        self.folder = place(folder, create=create or write)
        if not (self.folder / index.NAME).exists() and not (self.folder / FOLDER).is_dir():
            raise StoreError(f"There is no store in {self.folder}.", "Run `agentsignals analyze SOURCE` first.")
        self._retired: list[str] = []
        self._holdings: Holdings | None = None
        self._open(write)

    def _open(self, write: bool = False) -> None:
        manifest, why = index.load(self.folder)
        self._holdings = None
        made_again = manifest is None and ((self.folder / FOLDER).is_dir() and any((self.folder / FOLDER).iterdir()))
        self.manifest = manifest or (self._rebuilt(write, why) if made_again else Manifest())
        self.warnings = []
        if made_again:
            n = len(self.manifest.sessions)
            self.warnings.append(
                f"its index {why or 'is gone'} and is made again from the {n:,} sessions there: `analyze` your sources"
                " again, what else was lost is not known"
            )
        if lost := parts.load_parts(self.folder).lost:
            self.warnings.append(
                f"{parts.NAME_PARTS} {lost}: labels and what is known of repositories are as files show"
            )
        self._warn(self.warnings)
        self.damage = []
        self._words: list[str] = []
        self.look()

    def look(self, *, thorough: bool = False) -> bool:
        """Compares the files with the index again; `thorough`: byte for byte. Whether anything else is wrong now."""
        before, self.damage = self.damage, damage(self.folder, self.manifest, thorough)
        self._looked_at = time.monotonic()
        self._broken = {(d.shard, d.table) for d in self.damage if d.shard}
        earlier, self._words = self._words, in_words(self.damage, self.manifest)
        self._warn([line for line in self._words if line not in earlier])
        self.warnings = [line for line in self.warnings if line not in earlier] + self._words
        return self.damage != before

    def _warn(self, lines: list[str]) -> None:
        if lines:
            import logging  # noqa: PLC0415  (rare)

            for line in lines:
                logging.getLogger("agentsignals.store").warning("the store %s is damaged: %s", self.folder, line)

    def refresh(self) -> None:
        """Opens the store again when something of it went since it was opened: a run may have replaced it."""
        if self.is_changed(_LOOK_AGAIN_S):
            self._open()

    def is_changed(self, after_s: float) -> bool:
        """Whether something else is wrong than was, where the last look is longer ago than this."""
        return time.monotonic() - self._looked_at > after_s and self.look()

    def whole(self, *tables: str) -> list[str]:
        """The shards in order, without those in which one of these tables (none named: any) was damaged."""
        if not self._broken:
            return sorted(self.manifest.shards)
        broken = {shard for shard, table in self._broken if not tables or table in tables}
        return sorted(self.manifest.shards.keys() - broken)

    def files(self, table: str) -> list[Path]:
        """The files of a table of sessions that can be read."""
        manifest = self.manifest
        paths = [
            self.folder / FOLDER / name / f"{table}.parquet"
            for name in self.whole(table)
            if table in manifest.shards[name].tables
        ]
        if manifest.across is not None and table == "signals":
            paths += self.sound([self.folder / manifest.across.file])
        return paths + (self.sound(label_files.files(self.folder)) if table == "labels" else [])

    def sound(self, paths: list[Path]) -> list[Path]:
        """Files beside the shards without those of which something showed that they are damaged."""
        broken = {self.folder / d.place for d in self.damage}
        return [path for path in paths if path not in broken]

    def __repr__(self) -> str:
        from agentsignals.store.query import outline  # noqa: PLC0415  (DuckDB is loaded when asked)

        return f"<Store {self.folder}: {outline(self)}>"

    # -- reading -------------------------------------------------------------------------------------------------

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation over the store's tables, read only. Trace text is data here, never code."""
        from agentsignals.store.query import connect, run  # noqa: PLC0415  (DuckDB is loaded when asked)

        return run(connect(self), query)

    def frame(self, table: str) -> pl.DataFrame:
        """A table or view of the store as a Polars frame."""
        from agentsignals.store.query import frame  # noqa: PLC0415  (Polars is loaded when asked)

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
        from agentsignals.store.query import content  # noqa: PLC0415  (Polars is loaded when asked)

        return content(self, context)

    def user_messages(self, context: str | None = "product") -> pl.DataFrame:
        """One row a human turn, in the columns of agent-traces's data set: session_id, turn (1-based), nTurns (of the
        session), normPos (0 at its first turn, 1 at its last), model, provider (who makes it; None when its name does
        not tell), agent, cost_total_sum (USD of the session), n_events, n_tool_calls (of the session), content_text.
        Then ours: timestamp, kind, repo, source_dataset, format, context, cost_at_least (output was logged in
        mid-stream: the cost is a lower bound). Prompts of eval runs only when asked for with
        `context="eval"`, both with None.
        """
        from agentsignals.store.query import user_messages  # noqa: PLC0415  (Polars is loaded when asked)

        return user_messages(self, context)

    def signals(self) -> pl.DataFrame:
        """Every value in the long form: level, session, signal, value (JSON), number, absent … and `validation`: what a
        signal that claims a meaning rests on, and how often that was right (empty of one that counts)."""
        return self.frame("signals")

    def session(self, session_id: str) -> Session:
        """One session, as `resolve` names it; UnknownSession otherwise. StoreError when damaged."""
        from agentsignals.store.shards import read_sessions  # noqa: PLC0415  (pyarrow is loaded when asked)

        self.refresh()
        full = self.resolve(session_id)
        shard = self.manifest.sessions[full].shard
        if shard not in self.whole():
            what = next(str(d) for d in self.damage if d.shard == shard)
            raise StoreError(f"The session {full} can't be read: {what}.", "`agentsignals doctor` says what helps.")
        try:
            return next(read_sessions(self.folder, shard, full))
        except StopIteration:
            raise StoreError(
                f"The session {full} is not in the shard {shard} that should hold it.", "Run `agentsignals doctor`."
            ) from None

    def read(self, ids: set[str]) -> Iterator[Session]:
        """The sessions of these ids with all their rows, a shard in memory at a time, in order of shard and id; without
        those whose shard was damaged."""
        from agentsignals.store.shards import read_sessions  # noqa: PLC0415  (pyarrow is loaded when asked)

        self.refresh()
        entries, whole = self.manifest.sessions, set(self.whole())
        for shard in sorted({entries[i].shard for i in ids if i in entries} & whole):
            try:
                sessions = read_sessions(self.folder, shard)
            except StoreError:  # what only reading it shows
                if not self.look(thorough=True):
                    raise
                continue
            yield from (s for s in sessions if s.session_id in ids)

    def resolve(self, session_id: str) -> str:
        """The full id of a session named by it, by a unique beginning of it, or by its log's own file name."""
        return full_id(self.manifest, session_id, str(self.folder))

    def artifact_paths(self, ids: set[str], session_id: str) -> dict[str, str]:
        """The path of each artifact of these ids, which a session rests on: most were read with it."""
        family = self.manifest.sessions[session_id].family
        for uris in ([uri for uri, e in self.manifest.files.items() if e.family == family], self.manifest.files):
            paths = {wanted_id: uri for uri in uris if (wanted_id := artifact_id(uri)) in ids}
            if len(paths) == len(ids):
                break
        return paths

    # -- writing -------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Writes the index whole; afterwards marks the shards that it no longer names."""
        index.save(self.folder, self.manifest)
        self._holdings = None
        self._retire()

    def commit(self) -> None:
        """Writes what shards that were added, dropped or put in place change; else as `save`."""
        index.commit(self.folder, self.manifest, self.holdings.change)
        self.holdings.change = Commit()
        self._retire()

    def _retire(self) -> None:
        for name in self._retired:
            with suppress(OSError):  # of a shard that is gone; else the next run marks it
                (self.folder / FOLDER / name / RETIRED).touch()
        self._retired = []
        lock.saved(self.folder)

    @property
    def holdings(self) -> Holdings:
        """What each shard holds, since the index was written whole."""
        if self._holdings is None:
            self._holdings = Holdings(self.manifest)
        return self._holdings

    def add_shard(
        self, name: str, entry: ShardEntry, sessions: dict[str, SessionEntry], files: dict[str, FileEntry]
    ) -> None:
        """Takes in a shard just written; the sessions and files it holds anew leave the shards that held them.
        StoreError when it is not in this folder.
        """
        manifest = self.manifest
        if entry.tables and not (self.folder / FOLDER / name).is_dir():
            raise StoreError(
                f"A worker wrote the shard {name}, and it is not in {self.folder}.",
                "Workers on other machines must see the store's folder, by the same path.",
            )
        families = {e.family for e in sessions.values()} | {e.family for e in files.values()}
        families |= {manifest.files[u].family for u in files if u in manifest.files and manifest.files[u].family}
        again = {session_id for session_id in sessions if session_id in manifest.sessions}
        self.drop(again | self.holdings.in_families(families), set(files), name)
        self.holdings.add(name, entry, sessions, files)
        manifest.history_of = ""
        self.commit()

    def put_in_place(self, name: str, new_name: str, tables: dict[str, Part]) -> None:
        """Has a copy stand for a shard. Not written."""
        entry = self.manifest.shards[name]
        entry.tables = tables
        self.holdings.put([name], new_name, entry)
        self._retired.append(name)

    def unite(self, names: list[str], new_name: str, entry: ShardEntry) -> None:
        """Has one shard stand for several."""
        self.holdings.put(names, new_name, entry)
        self._retired += names
        self.manifest.history_of = ""
        self.commit()

    def next_name(self, of: str) -> str:
        """A name for a shard of this content that none ever had."""
        self.manifest.run += 1
        return f"{self.manifest.run:06d}-{of.rpartition('-')[2]}"

    def fingerprint(self, across: dict[str, int]) -> str:
        """Names the state of all shards, of the signals in them, and of those across sessions (path to version)."""
        state = [f"{n}:{sorted(s.signals.items())}" for n, s in sorted(self.manifest.shards.items())]
        state.append(f"{sorted(across.items())}|{sorted(self._broken)}")
        return hashlib.blake2b("|".join(state).encode(), digest_size=12).hexdigest()

    def drop(self, sessions: set[str], uris: set[str], keep: str = "") -> None:
        """Writes the shards that hold these sessions or files again without them; the shard `keep` is left alone."""
        from agentsignals.store import shards  # noqa: PLC0415  (pyarrow is loaded when something is written)

        manifest, holdings = self.manifest, self.holdings
        holding = {manifest.sessions[s].shard for s in sessions}
        holding |= {manifest.files[u].shard for u in uris if u in manifest.files and manifest.files[u].shard}
        for shard in sorted(holding - {keep}):
            gone, gone_files = holdings.sessions_of(shard) & sessions, holdings.files_of(shard) & uris
            holdings.drop(shard, gone, gone_files)
            if shard not in manifest.shards:
                continue
            if not (holdings.sessions_of(shard) or holdings.files_of(shard)):
                holdings.remove(shard)
                self._retired.append(shard)
                continue
            named = "|".join([shard, *sorted(gone), *sorted(gone_files)])
            name = self.next_name(hashlib.blake2b(named.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest())
            entry, artifacts = manifest.shards[shard], {artifact_id(u) for u in gone_files}
            is_emptied = not holdings.sessions_of(shard)
            tables = shards.without(self.folder, shard, name, entry.tables, gone, artifacts, is_emptied)
            entry.values = entry.values or shard
            self.put_in_place(shard, name, tables)

    def sweep(self) -> None:
        """Removes shards that were superseded an hour ago and drafts of a run that was killed. A shard that no index
        named and that holds sessions the store does not have is put aside. Only while no worker writes: a shard is
        renamed into place before it is named in the index.
        """
        from agentsignals.store.shards import DRAFT  # noqa: PLC0415  (pyarrow is loaded when something is written)

        for path in disk.listed(self.folder / FOLDER):
            if path.name.startswith(DRAFT):
                shutil.rmtree(path, ignore_errors=True)
            elif path.name in self.manifest.shards or not os.access(path, os.R_OK | os.X_OK):
                continue
            elif disk.holds(path, RETIRED):
                if disk.is_old(path / RETIRED):
                    shutil.rmtree(path, ignore_errors=True)
            elif self._is_known(path):
                with suppress(OSError):
                    (path / RETIRED).touch()
            else:
                disk.put_aside(self.folder, path)
        # Of what runs alone read the last stays; of what others read, each until its successor is an hour old: while an
        # agent works there is a new one every few seconds.
        across, standings = self.manifest.across, self.manifest.standings
        for live, pattern, is_read in ((across, "signals.*parquet", True), (standings, "standings.*", False)):
            written = sorted(self.folder.glob(pattern), key=lambda p: p.stat().st_mtime_ns) if live is not None else ()
            for path, successor in pairwise(written):
                if live is not None and path.name != live.file and (not is_read or disk.is_old(successor)):
                    path.unlink(missing_ok=True)

    def strays(self) -> list[Path]:
        """What lies in the store's folders and belongs to nothing: no part, no former state, no draft."""
        from agentsignals.store.shards import DRAFT  # noqa: PLC0415  (pyarrow is loaded when asked)

        named = self.manifest.shards
        strays = [
            p
            for p in disk.listed(self.folder / FOLDER)
            if p.name not in named and not p.name.startswith(DRAFT) and not disk.holds(p, RETIRED)
        ]
        for name, entry in named.items():
            with suppress(OSError):  # a shard that can't be listed is damaged, which is said elsewhere
                inside = (self.folder / FOLDER / name).iterdir()
                strays += [p for p in inside if p.name not in {f"{t}.parquet" for t in entry.tables} | {RETIRED}]
        return sorted([*strays, *parts.load_parts(self.folder).strays()])

    def _is_known(self, shard: Path) -> bool:
        """Whether all sessions of a shard that the index doesn't name are in the store."""
        from agentsignals.store.shards import read_table  # noqa: PLC0415  (rare)

        try:
            rows = read_table(self.folder, shard.name, "sessions", ["session_id"])
        except StoreError:
            return False
        return all(row["session_id"] in self.manifest.sessions for row in rows)

    def _rebuilt(self, write: bool, why: str) -> Manifest:
        from agentsignals.store.shards import rebuilt  # noqa: PLC0415  (rare)

        made = rebuilt(self.folder, write)
        if write:
            if why:
                disk.put_aside(self.folder, self.folder / index.NAME)
            index.save(self.folder, made)
        return made


def artifact_id(uri: str) -> str:
    """The id of the file of that address: stable while the file grows."""
    return hashlib.blake2b(uri.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
