"""The store's index: which shards are live, what each file looked like when it was read, where each session lies.

It can be thrown away: `rebuilt` makes it again from the shards. It is read and written whole, in one rename. It knows
every file of a shard by length and content, so that what was lost or changed behind its back is seen.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct, field

from agentsignals.errors import StoreError
from agentsignals.store import files
from agentsignals.store.files import Part

SCHEMA_VERSION = 6
"""Version of the tables' columns and of this index. A store of an older version is read again from its sources, one of
a newer is refused."""
NAME = "manifest.json"


class FileEntry(Struct, array_like=True, kw_only=True, gc=False):
    """A file as it was when it was last read; enough to notice a change, and to read it again with its family."""

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
    family: str
    keys: list[str]
    shard: str = ""
    """Where its artifact row lies; empty for a file that is no trace at all and has none."""
    skipped: dict[str, int] = {}
    error: str = ""
    """The error of this program that cost some of it or all; to be shown, so that no defect hides among the skipped."""
    note: str = ""
    """Of a file that no format reads: what it is, as far as it says."""
    version: str = ""
    """The agent's, as the file's first session says it; empty where none does."""
    unknown_fields: list[str] = []
    """Fields in it that no file of its format had before, as far as was looked."""
    head: str = ""
    """Names the beginning that it was recognised by alone, where more follows: while that stays, so does its format."""


class SessionEntry(Struct, array_like=True, kw_only=True, gc=False):
    """Where a session lies, and the figures the summary shows."""

    shard: str
    family: str
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
    """Where output and cost are lower bounds (`views.ledger`)."""


FIGURES = tuple(name for name in SessionEntry.__struct_fields__ if name not in ("shard", "family", "context"))


class ShardEntry(Struct, kw_only=True):
    """A live shard, and the versions of the signals in it."""

    signals: dict[str, int] = field(default_factory=dict)
    embedder: str = ""
    """What compared texts for them, as named on the command line; empty when not known."""
    internal_errors: dict[str, int] = field(default_factory=dict)
    labels: str = ""
    """Fingerprint of the labels made here that its values were computed with."""
    tables: dict[str, Part] = field(default_factory=dict)
    """Its files by table."""
    values: str = ""
    """The shard that its values were written with, where it is a copy of that without some sessions."""


class Manifest(Struct, kw_only=True):
    """The whole index."""

    schema_version: int = SCHEMA_VERSION
    shards: dict[str, ShardEntry] = field(default_factory=dict)
    sessions: dict[str, SessionEntry] = field(default_factory=dict)
    files: dict[str, FileEntry] = field(default_factory=dict)
    code: str = ""
    """The code that read all files and computed all signals last; empty when some of it is older."""
    embedder: str = "words"
    """What compares texts in this store, as named on the command line."""
    history_of: str = ""
    """Fingerprint of the shards that the values across sessions were computed from; empty when they are stale."""
    across: Part | None = None
    """The file of the values across sessions."""
    standings: Part | None = None
    """The file of what they followed from; it can be thrown away."""
    run: int = 0
    """Counts what was written, so that no name is used twice: a reader may still hold what had it."""
    mark: str = ""
    """Another each time that it is written whole: what was committed since is in files that name it."""
    commits: int = 0
    """How many these are."""


class Commit(Struct, kw_only=True):
    """What taking in a shard changes, or the values across sessions, written beside the index: a commit costs what it
    holds, not the store."""

    run: int = 0
    history_of: str = ""
    across: Part | None = None
    standings: Part | None = None
    shards: dict[str, ShardEntry] = field(default_factory=dict)
    sessions: dict[str, SessionEntry] = field(default_factory=dict)
    files: dict[str, FileEntry] = field(default_factory=dict)
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
        manifest.across, manifest.standings = self.across, self.standings
        manifest.commits += 1


def contexts(manifest: Manifest) -> set[str]:
    """The contexts of the store's sessions: eval runs and people's sessions are never counted together."""
    return {entry.context for entry in manifest.sessions.values()}


def main_context(manifest: Manifest) -> str:
    """The context that is meant where nobody chose: people's sessions when there are any."""
    return "eval" if contexts(manifest) == {"eval"} else "product"


class _Unclaimed(Struct, array_like=True, kw_only=True):
    """Files of one folder of this machine that no format claims, of one reason and note: there may be many."""

    spec: str
    folder: str
    parser: int
    reason: str
    shard: str
    files: dict[str, tuple[int, int]]
    """Bytes and stamp by name."""
    note: str = ""


class _Written(Manifest, kw_only=True):
    """The index as it is written: those files are not among `files`, where each would take a hundred bytes more."""

    unclaimed: list[_Unclaimed] = []


class _Version(Struct):
    schema_version: int


def load(root: Path) -> tuple[Manifest | None, str]:
    """The manifest; or None, and why where one was there that can't be taken: it was cut or garbled, is something else,
    or of an older version. StoreError when a newer version wrote it, or it can't be opened.
    """
    try:
        data = (root / NAME).read_bytes()
    except FileNotFoundError:
        return None, ""
    except OSError as problem:
        return None, files.instead_of(root / NAME, problem)
    version = SCHEMA_VERSION
    try:
        loaded = _whole(msgspec.json.decode(data, type=_Written))
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


def share_texts(of_index: Manifest | Commit) -> None:
    """One text takes the place of all that are alike: a shard is named by thousands of entries, a family by its files'
    keys. Nothing is written into an entry's lists of what was skipped or not known, and most are empty. For who keeps
    the index while much else is in memory: of 27,300 sessions it takes 15 MB less, and 40 ms."""
    shared: dict[str, str] = {}
    of = shared.setdefault
    for e in of_index.files.values():
        e.source, e.spec, e.shard = of(e.source, e.source), of(e.spec, e.spec), of(e.shard, e.shard)
        e.family = family = of(e.family, e.family)
        e.keys = [family if key == family else key for key in e.keys]
        e.skipped, e.unknown_fields = e.skipped or _NONE_SKIPPED, e.unknown_fields or _NONE_UNKNOWN
        if e.format is not None:
            e.format = of(e.format, e.format)
    for session in of_index.sessions.values():
        session.shard, session.context = of(session.shard, session.shard), of(session.context, session.context)
        session.family = of(session.family, session.family)


def refuse_newer(root: Path, version: int, newest: int) -> None:
    """StoreError for an index that a newer program wrote: writing it over would lose what that one knew."""
    if version > newest:
        raise StoreError(
            f"The store {root} was written by a newer agentsignals: its index is of version {version}, and this program"
            f" knows versions up to {newest}.",
            "Use the newer program, or name another folder with --store.",
        )


def _committed(root: Path, manifest: Manifest) -> Path:
    """The next commit."""
    return root / f"manifest.{manifest.mark}.{manifest.commits + 1}.json"


def _commit_after(root: Path, manifest: Manifest) -> bytes | None:
    """What was committed next; None where nothing was, or where the index has been written whole since: who reads then
    has the state before."""
    path = _committed(root, manifest)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        files.instead_of(path, problem)  # refuses what may be a commit and can't be opened
        return b""  # what is none is garbled


def commit(root: Path, manifest: Manifest, change: Commit) -> None:
    """Writes what the manifest has already, in one rename."""
    if not manifest.mark:
        save(root, manifest)
        return
    change.run, change.history_of = manifest.run, manifest.history_of
    change.across, change.standings = manifest.across, manifest.standings
    try:
        files.replace(_committed(root, manifest), msgspec.json.encode(change))
        if manifest.history_of:  # a run is over: who watches the index looks again
            os.utime(root / NAME)
        manifest.commits += 1
        _committed(root, manifest).unlink(missing_ok=True)  # it followed another that was lost
    except OSError as problem:
        raise files.cannot_write(root, problem) from problem


def save(root: Path, manifest: Manifest) -> None:
    """Writes the manifest in one rename, with all that was committed to it."""
    manifest.mark, manifest.commits = f"{time.time_ns():x}-{os.getpid():x}", 0
    try:
        files.replace(root / NAME, msgspec.json.encode(_short(manifest)))
    except OSError as problem:
        raise files.cannot_write(root, problem) from problem
    for path in root.glob("manifest.*.json"):
        if not path.name.startswith(f"manifest.{manifest.mark}."):
            with suppress(OSError):  # what nobody may remove is read by nobody
                path.unlink()


def _short(manifest: Manifest) -> _Written:
    claimed: dict[str, FileEntry] = {}
    unclaimed: dict[tuple[str, str, int, str, str, str], _Unclaimed] = {}
    for uri, e in manifest.files.items():
        if e.format is not None or e.stamp is None or not _is_plain(uri, e):
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


def _is_plain(uri: str, e: FileEntry) -> bool:
    """Whether nothing is known of an unclaimed file but what a folder's list says."""
    key = f"file:{uri}"
    return (
        e.keys == ([key] if e.shard else [])
        and e.family == (key if e.shard else "")
        and list(e.skipped.values()) == [1]
        and e.source == "local"
        and not (e.error or e.container or e.key or e.session_hint or e.repo_hint)
    )


def _whole(written: _Written) -> Manifest:
    for group in written.unclaimed:
        skipped = {group.reason: 1}
        for name, (size, stamp) in group.files.items():
            uri = f"{group.folder}/{name}"
            key = f"file:{uri}" if group.shard else ""
            written.files[uri] = FileEntry(
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
                family=key,
                keys=[key] if key else [],
                shard=group.shard,
                skipped=skipped,
                note=group.note,
            )
    written.unclaimed = []
    return written


def local_files(manifest: Manifest) -> set[str]:
    """The files of this machine that traces were read from."""
    return {uri for uri, entry in manifest.files.items() if entry.shard and entry.source == "local"}


def only_in(manifest: Manifest, files: set[str]) -> set[str]:
    """The sessions that were read from these files and from no other."""
    families = {manifest.files[uri].family for uri in files}
    families -= {entry.family for uri, entry in manifest.files.items() if entry.shard and uri not in files}
    return {session_id for session_id, entry in manifest.sessions.items() if entry.family in families}
