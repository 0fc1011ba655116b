"""The store's index: live shards, every file as it was when it was read, and where each session is stored.

It can be thrown away: `store.shards.rebuild_index` makes it again from the shards. It is read and written whole, in one
rename. It knows each file of a shard by length and content, so that loss and changes are noticed.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct, field

from agentsignals.errors import StoreError
from agentsignals.store import disk
from agentsignals.store.disk import StoredFile

SCHEMA_VERSION = 7
"""Version of the tables' columns and of this index. A store of an older version is read again from its sources; one of
a newer version is refused."""
INDEX_FILE = "manifest.json"
SHARDS_FOLDER = "shards"
RETIRED = ".retired"
"""Marks a shard that others replaced. No index names it; a reader may still have it open."""


class ArtifactEntry(Struct, array_like=True, kw_only=True, gc=False):
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


class SessionEntry(Struct, array_like=True, kw_only=True, gc=False):
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


FIGURES = tuple(name for name in SessionEntry.__struct_fields__ if name not in ("shard", "group", "context"))


class ShardEntry(Struct, kw_only=True):
    """A live shard and the versions of the signals in it."""

    signals: dict[str, int] = field(default_factory=dict)
    embedder: str = ""
    """Embedder of its signals, as named on the command line; empty when not known."""
    internal_errors: dict[str, int] = field(default_factory=dict)
    labels: str = ""
    """Fingerprint of the labels made here that its values were computed with."""
    tables: dict[str, StoredFile] = field(default_factory=dict)
    """Its files by table."""
    values: str = ""
    """Shard that its values were written with, where it is a copy of that without some sessions."""


class Manifest(Struct, kw_only=True):
    """The whole index."""

    schema_version: int = SCHEMA_VERSION
    shards: dict[str, ShardEntry] = field(default_factory=dict)
    sessions: dict[str, SessionEntry] = field(default_factory=dict)
    files: dict[str, ArtifactEntry] = field(default_factory=dict)
    code: str = ""
    """Stamp of the code that read all files and computed all signals; empty when some of it is older."""
    embedder: str = "words"
    """Embedder of this store, as named on the command line."""
    history_of: str = ""
    """Fingerprint of the shards that the corpus signals were computed from; empty when they are stale."""
    across: StoredFile | None = None
    """File of the values across sessions."""
    neighbours: StoredFile | None = field(default=None, name="standings")
    """File of the neighbours those values follow from; it can be thrown away."""
    run: int = 0
    """Counter of what was written, so that no name is used twice: a reader may still have the older file open."""
    mark: str = ""
    """Changes each time the index is written whole. Commits since then are in files that name it."""
    commits: int = 0
    """Number of commits since the index was written whole."""


class Commit(Struct, kw_only=True):
    """A change of the index, written beside it: a commit costs what it holds, not the whole store."""

    run: int = 0
    history_of: str = ""
    across: StoredFile | None = None
    neighbours: StoredFile | None = field(default=None, name="standings")
    shards: dict[str, ShardEntry] = field(default_factory=dict)
    sessions: dict[str, SessionEntry] = field(default_factory=dict)
    files: dict[str, ArtifactEntry] = field(default_factory=dict)
    gone_shards: list[str] = field(default_factory=list)
    gone_sessions: list[str] = field(default_factory=list)

    def apply(self, manifest: Manifest) -> None:
        for name in self.gone_shards:
            manifest.shards.pop(name, None)
        for session_id in self.gone_sessions:
            manifest.sessions.pop(session_id, None)
        manifest.shards.update(self.shards)
        manifest.sessions.update(self.sessions)
        manifest.files.update(self.files)
        manifest.run, manifest.history_of = self.run, self.history_of
        manifest.across, manifest.neighbours = self.across, self.neighbours
        manifest.commits += 1


def contexts(manifest: Manifest) -> set[str]:
    """Return the contexts of the store's sessions. Eval runs and people's sessions are never counted together."""
    return {entry.context for entry in manifest.sessions.values()}


def main_context(manifest: Manifest) -> str:
    """Return the default context: people's sessions when there are any."""
    return "eval" if contexts(manifest) == {"eval"} else "product"


class _Unclaimed(Struct, array_like=True, kw_only=True):
    """Files of one local folder that no format claims, of one reason and note. There may be many."""

    spec: str
    folder: str
    parser: int
    reason: str
    shard: str
    files: dict[str, tuple[int, int]]
    """Bytes and stamp by name."""
    note: str = ""


class _Written(Manifest, kw_only=True):
    """The index as it is written. Unclaimed files are grouped, which saves a hundred bytes for each."""

    unclaimed: list[_Unclaimed] = []


class _Version(Struct):
    schema_version: int


def load(root: Path) -> tuple[Manifest | None, str]:
    """Return the manifest; or None and the reason where it was cut, garbled or of an older version. StoreError when a
    newer version wrote it, or it can't be opened."""
    try:
        data = (root / INDEX_FILE).read_bytes()
    except FileNotFoundError:
        return None, ""
    except OSError as problem:
        return None, disk.unreadable_list(root / INDEX_FILE, problem)
    version = SCHEMA_VERSION
    try:
        loaded = _unpack(msgspec.json.decode(data, type=_Written))
        version = loaded.schema_version
        while loaded.mark and (written := _commit_after(root, loaded)) is not None:
            msgspec.json.decode(written, type=Commit).apply(loaded)
    except msgspec.DecodeError:  # of another version perhaps, whose shape is not known
        try:
            version = msgspec.json.decode(data, type=_Version).schema_version
        except msgspec.DecodeError:
            return None, "is cut or garbled" if data else "is empty"
        if version == SCHEMA_VERSION:
            return None, "is garbled"
    refuse_newer(root, version, SCHEMA_VERSION)
    return (loaded, "") if version == SCHEMA_VERSION else (None, f"is of version {version}, now it is {SCHEMA_VERSION}")


_NONE_SKIPPED: dict[str, int] = {}
_NONE_UNKNOWN: list[str] = []


def intern_texts(of_index: Manifest | Commit) -> None:
    """Share equal texts among entries: 15 MB less for 27,300 sessions, in 40 ms. The shared empty lists must not be
    changed."""
    shared: dict[str, str] = {}
    of = shared.setdefault
    for e in of_index.files.values():
        e.source, e.spec, e.shard = of(e.source, e.source), of(e.spec, e.spec), of(e.shard, e.shard)
        e.group = group = of(e.group, e.group)
        e.keys = [group if key == group else key for key in e.keys]
        e.skipped, e.unknown_fields = e.skipped or _NONE_SKIPPED, e.unknown_fields or _NONE_UNKNOWN
        if e.format is not None:
            e.format = of(e.format, e.format)
    for session in of_index.sessions.values():
        session.shard, session.context = of(session.shard, session.shard), of(session.context, session.context)
        session.group = of(session.group, session.group)


def refuse_newer(root: Path, version: int, newest: int) -> None:
    """Raise StoreError for an index that a newer program wrote: overwriting it would lose data."""
    if version > newest:
        raise StoreError(
            f"The store {root} was written by a newer agentsignals: its index is of version {version}, and this program"
            f" knows versions up to {newest}.",
            "Use the newer program, or name another folder with --store.",
        )


def _committed(root: Path, manifest: Manifest) -> Path:
    return root / f"manifest.{manifest.mark}.{manifest.commits + 1}.json"


def _commit_after(root: Path, manifest: Manifest) -> bytes | None:
    """Return the next commit; None where there is none, or where the index has been written whole since."""
    path = _committed(root, manifest)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        disk.unreadable_list(path, problem)  # refuses what may be a commit and can't be opened
        return b""  # what is none is garbled


def commit(root: Path, manifest: Manifest, change: Commit) -> None:
    """Write a change that the manifest already contains, in one rename."""
    if not manifest.mark:
        save(root, manifest)
        return
    change.run, change.history_of = manifest.run, manifest.history_of
    change.across, change.neighbours = manifest.across, manifest.neighbours
    try:
        disk.write_atomically(_committed(root, manifest), msgspec.json.encode(change))
        if manifest.history_of:  # a run is over: who watches the index looks again
            os.utime(root / INDEX_FILE)
        manifest.commits += 1
        _committed(root, manifest).unlink(missing_ok=True)  # it followed another that was lost
    except OSError as problem:
        raise disk.cannot_write(root, problem) from problem


def save(root: Path, manifest: Manifest) -> None:
    """Write the manifest in one rename, with all that was committed to it."""
    manifest.mark, manifest.commits = f"{time.time_ns():x}-{os.getpid():x}", 0
    try:
        disk.write_atomically(root / INDEX_FILE, msgspec.json.encode(_pack(manifest)))
    except OSError as problem:
        raise disk.cannot_write(root, problem) from problem
    for path in root.glob("manifest.*.json"):
        if not path.name.startswith(f"manifest.{manifest.mark}."):
            with suppress(OSError):  # what nobody may remove is read by nobody
                path.unlink()


def _pack(manifest: Manifest) -> _Written:
    claimed: dict[str, ArtifactEntry] = {}
    unclaimed: dict[tuple[str, str, int, str, str, str], _Unclaimed] = {}
    for uri, e in manifest.files.items():
        key = f"file:{uri}" if e.shard else ""
        is_plain = e.source == "local" and list(e.skipped.values()) == [1] and e.group == key
        is_plain = is_plain and e.keys == ([key] if key else [])
        if (
            e.format is not None
            or e.stamp is None
            or not is_plain
            or (e.error or e.container or e.key or e.session_hint or e.repo_hint)
        ):
            claimed[uri] = e
            continue
        folder, _, name = uri.rpartition("/")
        reason = next(iter(e.skipped))
        place = (e.spec, folder, e.parser, reason, e.shard, e.note)
        group = unclaimed.get(place)
        if group is None:
            group = unclaimed[place] = _Unclaimed(
                spec=e.spec, folder=folder, parser=e.parser, reason=reason, shard=e.shard, files={}, note=e.note
            )
        group.files[name] = (e.bytes, e.stamp)
    rest = {name: getattr(manifest, name) for name in Manifest.__struct_fields__ if name != "files"}
    return _Written(**rest, files=claimed, unclaimed=list(unclaimed.values()))


def _unpack(written: _Written) -> Manifest:
    for group in written.unclaimed:
        skipped = {group.reason: 1}
        for name, (size, stamp) in group.files.items():
            uri = f"{group.folder}/{name}"
            key = f"file:{uri}" if group.shard else ""
            written.files[uri] = ArtifactEntry(
                source="local",
                spec=group.spec,
                bytes=size,
                stamp=stamp,
                container="",
                key="",
                session_hint=None,
                repo_hint=None,
                format=None,
                parser=group.parser,
                group=key,
                keys=[key] if key else [],
                shard=group.shard,
                skipped=skipped,
                note=group.note,
            )
    written.unclaimed = []
    return written


def local_files(manifest: Manifest) -> set[str]:
    """Return the files of this machine that traces were read from."""
    return {uri for uri, entry in manifest.files.items() if entry.shard and entry.source == "local"}


def sessions_only_in(manifest: Manifest, files: set[str]) -> set[str]:
    """Return the sessions that were read from these files and from no other."""
    groups = {manifest.files[uri].group for uri in files}
    groups -= {entry.group for uri, entry in manifest.files.items() if entry.shard and uri not in files}
    return {session_id for session_id, entry in manifest.sessions.items() if entry.group in groups}


def code_stamp() -> str:
    """Return a hash of all files of this package and of the installed packages, which may add units. While it is
    unchanged, nothing in the store is stale because of code."""
    return _stamp(tuple(sys.path))


@cache
def _stamp(places: tuple[str, ...]) -> str:
    parts = sorted({*_files(str(Path(__file__).parents[1])), *_installed(places)})
    return hashlib.blake2b("|".join(parts).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def _installed(places: tuple[str, ...]) -> Iterator[str]:
    """Names of packages with their versions; faster than `importlib.metadata`, which reads each."""
    for folder in places:
        try:
            with os.scandir(folder or ".") as entries:
                yield from (entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue


def _files(folder: str) -> list[str]:
    stamps: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    stamps += _files(entry.path)
            else:
                seen = entry.stat()
                stamps.append(f"{entry.path}:{seen.st_size}:{seen.st_mtime_ns}")
    return stamps
