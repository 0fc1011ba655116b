"""The store's index: which shards are live, what each file looked like when it was read, where each session lies.

It can be thrown away: `rebuilt` makes it again from the shards. It is read and written whole, in one rename. It knows
every file of a shard by length and content, so that what was lost or changed behind its back is seen.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.errors import StoreError
from agentsignals.model.registry import adds_units
from agentsignals.store import files
from agentsignals.store import files as lock
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


# What lies beside the shards: files of labels and of repositories, each a Parquet file, and the list that knows
# them.
#
# A file is never written over: a newer one gets a name of its own and the list takes it in, in one rename. So
# whoever reads sees the old rows or the new, a writer that dies leaves the old, and a file that was lost is missed.

NAME_PARTS = "parts.json"
VERSION = 1
FOLDERS = ("labels", "repos")
_WAIT_S = 30.0
"""For a writer of a single file."""
_NUMBERED = re.compile(r"(?P<key>.+?)(?:\.(?P<number>\d+))?\.parquet")


class Damage(Struct, frozen=True, kw_only=True):
    """A part of the store that is not as it was written."""

    place: str
    """Its path in the store."""
    what: str
    """What happened to it."""
    lacks: str = ""
    """What answers lack because of it."""
    shard: str = ""
    table: str = ""
    key: str = ""
    """Which of the parts it is, where it is one."""

    def __str__(self) -> str:
        return f"{self.place} {self.what}" + (f": {self.lacks}" if self.lacks else "")


class _List(Struct):
    schema_version: int = VERSION
    run: int = 0
    parts: dict[str, Part] = field(default_factory=dict)


class Parts:
    """The list as it was read; `changing` gives one that can be changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._list, self.lost = _load(root)

    def path(self, key: str) -> Path | None:
        """The file of a part; None where there is none. StoreError when it was damaged."""
        part = self._list.parts.get(key)
        if part is None:
            return None
        path = self._root / part.file
        if what := files.what_is_wrong(str(path), part):
            raise StoreError(
                f"{path} {what}.",
                "`agentsignals doctor --repair` puts it aside; run what made it again afterwards.",
            )
        return path

    def live(self, begins: str = "", ends: str = "") -> Iterator[tuple[str, Part]]:
        """The parts whose names begin and end so, in order of name."""
        for key in sorted(self._list.parts):
            if key.startswith(begins) and key.endswith(ends):
                yield key, self._list.parts[key]

    def damage(self, begins: str = "", ends: str = "", thorough: bool = False) -> Iterator[Damage]:
        """Those of them that are not as they were written."""
        for key, part in self.live(begins, ends):
            if what := files.what_is_wrong(str(self._root / part.file), part, thorough):
                kind = "labels" if key.startswith("labels/") else key.rsplit("/", 1)[-1]
                yield Damage(place=part.file, what=what, lacks=f"{part.rows:,} rows of {kind} are missing", key=key)

    def put(self, key: str, table: Any) -> Path:
        """Writes a part anew and takes it into the list; gives its file. `table` is pyarrow's."""
        from agentsignals.store import parquet as table_files  # noqa: PLC0415  (pyarrow is loaded when something is written)

        self._list.run += 1
        file = f"{key}.{self._list.run}.parquet"
        path = self._root / file
        data = table_files.encoded(table)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.replace(path, data)
            self._list.parts[key] = table_files.part_of(path, data, table.num_rows, file)
        except OSError as problem:
            raise files.cannot_write(self._root, problem) from problem
        self.save()
        self._sweep(path.parent)
        return path

    def forget(self, begins: str) -> list[str]:
        """Strikes parts off the list, whole or not; gives their names. Their files stay where they are."""
        gone = [key for key in self._list.parts if key.startswith(begins)]
        for key in gone:
            del self._list.parts[key]
        self.save()
        return gone

    def distrust(self, keys: set[str]) -> None:
        """Has the bytes of these parts compared at each opening until they are written anew."""
        for key in keys & self._list.parts.keys():
            self._list.parts[key].stamp = 0
        self.save()

    def save(self) -> None:
        """Writes the list."""
        try:
            files.replace(self._root / NAME_PARTS, msgspec.json.encode(self._list))
        except OSError as problem:
            raise files.cannot_write(self._root, problem) from problem

    def strays(self) -> list[Path]:
        """Parquet files among the parts that are in no list and are no former state of one that is."""
        return [p for key, p in _on_disk(self._root) if key not in self._list.parts and not p.name.startswith(".")]

    def _sweep(self, folder: Path) -> None:
        """Removes former states that nobody reads any more, and drafts of writers that died."""
        for key, path in _on_disk(self._root, folder):
            live = self._list.parts.get(key)
            if live is not None and path != self._root / live.file and files.is_old(self._root / live.file):
                path.unlink(missing_ok=True)
        for path in folder.glob(".*.tmp"):
            if files.is_old(path):
                path.unlink(missing_ok=True)


def load_parts(root: Path) -> Parts:
    """The list as it is. Where it was lost, it is made again from the files that are there."""
    return Parts(root)


def whole(root: Path, begins: str = "", ends: str = "") -> list[Path]:
    """The files of parts whose names begin and end so, without those that were damaged."""
    held = load_parts(root)
    broken = {d.place for d in held.damage(begins, ends)}
    return [root / part.file for _, part in held.live(begins, ends) if part.file not in broken]


def damage(root: Path, begins: str = "") -> list[Damage]:
    """The parts whose names begin so and that are not as they were written."""
    return list(load_parts(root).damage(begins))


@contextmanager
def changing(root: Path) -> Iterator[Parts]:
    """The list, which nobody else changes meanwhile. StoreError when somebody does for too long."""
    with lock.locked(root, lock.PARTS, _WAIT_S):
        held = Parts(root)
        if held.lost:
            files.put_aside(root, root / NAME_PARTS)
        yield held


def _load(root: Path) -> tuple[_List, str]:
    """The list, and what is wrong with it where it had to be made again."""
    why = "is gone"
    try:
        data = (root / NAME_PARTS).read_bytes()
        loaded = msgspec.json.decode(data, type=_List)
        refuse_newer(root, loaded.schema_version, VERSION)
        return loaded, ""
    except FileNotFoundError:
        pass
    except msgspec.DecodeError:
        why = "is cut or garbled"
    except OSError as problem:
        why = files.instead_of(root / NAME_PARTS, problem)
    made = _List()
    for key, path in _on_disk(root):
        number = int(_NUMBERED.fullmatch(path.name)["number"] or 0)  # type: ignore[index]  # _on_disk gives no other
        made.run = max(made.run, number)
        before = made.parts.get(key)
        if before is None or number >= int(_NUMBERED.fullmatch(before.file)["number"] or 0):  # type: ignore[index]
            made.parts[key] = _as_it_is(root, path)
    return made, why if made.parts or why != "is gone" else ""


def _as_it_is(root: Path, path: Path) -> Part:
    from agentsignals.store import parquet as table_files  # noqa: PLC0415  (rare)

    file = path.relative_to(root).as_posix()
    try:
        return table_files.as_it_is(path, file)
    except StoreError:
        return Part(0, 0, "", 0, file)  # matches nothing: damaged until it is written anew


def _on_disk(root: Path, folder: Path | None = None) -> Iterator[tuple[str, Path]]:
    """The Parquet files there are, with the name of the part that each is or was."""
    paths = (
        folder.glob("*.parquet") if folder is not None else (p for f in FOLDERS for p in (root / f).rglob("*.parquet"))
    )
    for path in sorted(paths):
        if named := _NUMBERED.fullmatch(path.name):
            yield f"{path.parent.relative_to(root).as_posix()}/{named['key']}", path


# Compares the store with what its index says was written.

FOLDER = "shards"
RETIRED = ".retired"
"""Marks a shard that others took the place of: no index names it, a reader may still hold it."""


def damage_damage(root: Path, manifest: Manifest, thorough: bool = False) -> list[Damage]:
    """What is not as it was written. Lengths and times are compared, and the bytes where a time differs; with
    `thorough` all bytes are.
    """
    counted = Counter(entry.shard for entry in manifest.sessions.values())
    broken: list[Damage] = []
    for name, shard in sorted(manifest.shards.items()):
        folder, n = f"{root}/{FOLDER}/{name}", counted[name]
        wrong = {
            table: what
            for table, part in shard.tables.items()
            if (what := files.what_is_wrong(f"{folder}/{table}.parquet", part, thorough))
        }
        for table, what in wrong.items():
            if thorough:  # what only its bytes show is looked at by them from now on
                shard.tables[table].stamp = 0
            rows = f"{shard.tables[table].rows:,} rows of {table}, of {n:,} sessions, are missing"
            broken.append(
                Damage(place=f"{FOLDER}/{name}/{table}.parquet", what=what, lacks=rows, shard=name, table=table)
            )
    across = manifest.across
    if across is not None and (what := files.what_is_wrong(f"{root}/{across.file}", across, thorough)):
        across.stamp = 0 if thorough else across.stamp
        broken.append(Damage(place=across.file, what=what, lacks="values across sessions are missing", table="signals"))
    return [*broken, *load_parts(root).damage(thorough=thorough)]


def in_words(damages: list[Damage], manifest: Manifest) -> list[str]:
    """A line for each damaged part; a shard of which nothing is left is one."""
    by_shard: dict[str, list[Damage]] = {}
    lines = []
    for damage in damages:
        if damage.shard:
            by_shard.setdefault(damage.shard, []).append(damage)
        else:
            lines.append(str(damage))
    counted = Counter(entry.shard for entry in manifest.sessions.values())
    for name, those in by_shard.items():
        if len(those) == len(manifest.shards[name].tables) and len({d.what for d in those}) == 1:
            lines.append(f"{FOLDER}/{name} {those[0].what}: {counted[name]:,} sessions are missing")
        else:
            lines += map(str, those)
    return sorted(lines)


# Names the code that is running, so that a run over nothing new need not load it to know that nothing is stale.


def code_stamp() -> str:
    """Changes whenever a file of this package does: from the name, size and modification time of each. And when other
    packages, which may add units, are installed, upgraded or removed. A process loads its code once and is of one stamp
    while it looks for packages at the same places."""
    return _stamp(tuple(sys.path))


@cache
def _stamp(places: tuple[str, ...]) -> str:
    parts = sorted({*_files(str(Path(__file__).parents[1])), *_installed(places)})
    return hashlib.blake2b("|".join(parts).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def extended() -> bool:
    """Whether another package adds a unit of any kind: the stamp does not know its files."""
    return adds_units(tuple(sys.path))


def _installed(places: tuple[str, ...]) -> Iterator[str]:
    """Names of packages with their versions; quicker than `importlib.metadata`, which reads each."""
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
