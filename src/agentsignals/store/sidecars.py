"""Files beside the shards: labels made here, tables of repositories, the list (`parts.json`) that knows them, caches.

A Parquet file is never overwritten. A newer one gets a name of its own, and the list takes it in by one rename. So
readers see the old rows or the new, a writer that dies leaves the old, and a lost file is noticed. Reading traces again
keeps these files. Labels that came with a trace are in its shard; the view `labels` shows both.
Findings and spending are cached in files of their own (the table `findings` reads the former). Their names have a hash
of all that the answers follow from, so a stale one is never read, and they can be thrown away.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from agentsignals import private_files
from agentsignals.errors import StoreError
from agentsignals.model import Label
from agentsignals.model.lazy import deferred_pattern
from agentsignals.store import disk
from agentsignals.store.disk import StoredFile, code_stamp, refuse_newer
from agentsignals.store.index import RETIRED
from agentsignals.store.index import SHARDS_FOLDER as SHARDS

if TYPE_CHECKING:
    from agentsignals.store import Store

LIST_FILE = "parts.json"
LIST_VERSION = 1
LABELS_FOLDER, REPOSITORIES_FOLDER = "labels", "repos"
_WAIT_S = 30.0
"""Seconds to wait for another writer of a single file."""
_NUMBERED = deferred_pattern(r"(?P<key>.+?)(?:\.(?P<number>\d+))?\.parquet")


class Damage(Struct, frozen=True, kw_only=True):
    """A file of the store that is not as it was written."""

    place: str
    """Its path in the store."""
    what: str
    """The harm: gone, empty, shorter, changed, unreadable."""
    lacks: str = ""
    """Rows that answers lack because of it."""
    shard: str = ""
    table: str = ""
    key: str = ""
    """Its name in the list of sidecars, where it is one."""

    def __str__(self) -> str:
        return f"{self.place} {self.what}" + (f": {self.lacks}" if self.lacks else "")


class _List(Struct):
    schema_version: int = LIST_VERSION
    run: int = 0
    parts: dict[str, StoredFile] = field(default_factory=dict)


class SidecarList:
    """The list as it was read. Where it was lost (`lost` says how), it is made again from the files on disk. Changes go
    through `changing`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._list, self.lost = _List(), ""
        why = "is missing"
        try:
            self._list = msgspec.json.decode((root / LIST_FILE).read_bytes(), type=_List)
            refuse_newer(root, self._list.schema_version, LIST_VERSION)
            return
        except FileNotFoundError:
            pass
        except msgspec.DecodeError:
            why = "is truncated or corrupt"
        except OSError as problem:
            why = disk.unreadable_list(root / LIST_FILE, problem)
        for key, path in _on_disk(root):
            number = _number(path.name)
            self._list.run = max(self._list.run, number)
            before = self._list.parts.get(key)
            if before is None or number >= _number(before.file):
                from agentsignals.store import parquet  # noqa: PLC0415  (rare)

                name = path.relative_to(root).as_posix()
                self._list.parts[key] = parquet.examine(path, name)
        self.lost = why if self._list.parts or why != "is missing" else ""

    def path(self, key: str) -> Path | None:
        """Return a sidecar's file; None where there is none. StoreError when it was damaged."""
        part = self._list.parts.get(key)
        if part is None:
            return None
        path = self._root / part.file
        if what := disk.what_is_wrong(str(path), part):
            raise StoreError(
                f"{path} {what}.",
                "Run `agentsignals doctor --repair` to move it away. Then label, attribute or scan again.",
            )
        return path

    def live(self, begins: str = "", ends: str = "") -> Iterator[tuple[str, StoredFile]]:
        """Yield the sidecars whose names begin and end so, in order of name."""
        for key in sorted(self._list.parts):
            if key.startswith(begins) and key.endswith(ends):
                yield key, self._list.parts[key]

    def damage(self, begins: str = "", ends: str = "", thorough: bool = False) -> Iterator[Damage]:
        """Yield the damage of these sidecars; `thorough` compares bytes."""
        for key, part in self.live(begins, ends):
            if what := disk.what_is_wrong(str(self._root / part.file), part, thorough):
                kind = "labels" if key.startswith("labels/") else key.rsplit("/", 1)[-1]
                yield Damage(place=part.file, what=what, lacks=f"{part.rows:,} rows of {kind} are missing", key=key)

    def put(self, key: str, table: Any) -> Path:
        """Write a sidecar anew, take it into the list and return its file. `table` is pyarrow's."""
        from agentsignals.store import parquet  # noqa: PLC0415  (pyarrow is loaded when something is written)

        self._list.run += 1
        file = f"{key}.{self._list.run}.parquet"
        path = self._root / file
        data = parquet.encode(table)
        try:
            private_files.make_folder(path.parent)
            disk.write_atomically(path, data)
            self._list.parts[key] = parquet.stored_file(path, data, table.num_rows, file)
        except OSError as problem:
            raise disk.cannot_write(self._root, problem) from problem
        self.save()
        for former, old in _on_disk(self._root, path.parent):  # former states that nobody reads any more
            live = self._list.parts.get(former)
            if live is not None and old != self._root / live.file and disk.is_expired(self._root / live.file):
                old.unlink(missing_ok=True)
        for draft in path.parent.glob(".*.tmp"):  # of writers that died
            if disk.is_expired(draft):
                draft.unlink(missing_ok=True)
        return path

    def forget(self, begins: str) -> list[str]:
        """Strike sidecars off the list, damaged or not, and return their names. Their files stay where they are."""
        gone = [key for key in self._list.parts if key.startswith(begins)]
        for key in gone:
            del self._list.parts[key]
        self.save()
        return gone

    def distrust(self, keys: set[str]) -> None:
        """Have the bytes of these sidecars compared at each opening until they are written anew."""
        for key in keys & self._list.parts.keys():
            self._list.parts[key].stamp = 0
        self.save()

    def save(self) -> None:
        """Write the list."""
        try:
            disk.write_atomically(self._root / LIST_FILE, msgspec.json.encode(self._list))
        except OSError as problem:
            raise disk.cannot_write(self._root, problem) from problem

    def strays(self) -> list[Path]:
        """Return Parquet files beside the shards that are neither listed nor a former state of one that is."""
        return [p for key, p in _on_disk(self._root) if key not in self._list.parts and not p.name.startswith(".")]


def undamaged(root: Path, begins: str = "", ends: str = "") -> list[Path]:
    """Return the files of sidecars whose names begin and end so, without damaged ones."""
    held = SidecarList(root)
    broken = {d.place for d in held.damage(begins, ends)}
    return [root / part.file for _, part in held.live(begins, ends) if part.file not in broken]


@contextmanager
def changing(root: Path) -> Iterator[SidecarList]:
    """Lock the list of sidecar tables while the caller changes and saves it. A list that can't be read is set aside
    first. StoreError when another writer holds it for too long."""
    with disk.locked(root, disk.SIDECAR_LOCK, _WAIT_S):
        held = SidecarList(root)
        if held.lost:
            disk.set_aside(root, root / LIST_FILE)
        yield held


def _number(name: str) -> int:
    match = _NUMBERED.fullmatch(name)
    return int(match["number"] or 0) if match else 0


def _on_disk(root: Path, folder: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Yield the Parquet files there are, with the name of the sidecar that each is or was."""
    folders = (LABELS_FOLDER, REPOSITORIES_FOLDER)
    paths = (
        folder.glob("*.parquet") if folder is not None else (p for f in folders for p in (root / f).rglob("*.parquet"))
    )
    for path in sorted(paths):
        if named := _NUMBERED.fullmatch(path.name):
            yield f"{path.parent.relative_to(root).as_posix()}/{named['key']}", path


# Labels made here: a file for each task and labeller.


class LabelRow(Struct, gc=False):
    session_id: str
    label: Label


def label_key(task: str, labeller: str) -> str:
    """Name the sidecar of a task's labels by one labeller. Names may hold anything: a model's has slashes."""
    mark = hashlib.blake2b(f"{task}\0{labeller}".encode(), digest_size=4).hexdigest()
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in f"{task}--{labeller}")[:80]
    return f"{LABELS_FOLDER}/{plain}-{mark}"


def write_labels(root: Path, task: str, labeller: str, rows: list[LabelRow]) -> Path:
    """Replace a labeller's labels of a task in one rename and return the file."""
    return update_labels(root, task, labeller, lambda _: rows)


def update_labels(root: Path, task: str, labeller: str, change: Callable[[list[LabelRow]], list[LabelRow]]) -> Path:
    """Replace a labeller's labels of a task by what `change` makes of them. Nobody else writes in between."""
    from agentsignals.store import parquet, tables  # noqa: PLC0415  (only who labels pays for it)

    key = label_key(task, labeller)
    with changing(root) as held:
        path = held.path(key)
        rows = change(list(_label_rows([path], None)) if path is not None else [])
        ids, labels = [row.session_id for row in rows], [row.label for row in rows]
        return held.put(key, parquet.labelled_rows_table(tables.TABLES["labels"], ids, labels))


def replace_labels(root: Path, task: str, labeller: str, sessions: Container[str], rows: Iterable[LabelRow]) -> Path:
    """Replace a labeller's labels of some sessions. Those of other sessions stay, before the new ones."""
    return update_labels(
        root, task, labeller, lambda before: [*(r for r in before if r.session_id not in sessions), *rows]
    )


def label_files(root: Path) -> list[Path]:
    """Return the undamaged files of labels made here."""
    return undamaged(root, f"{LABELS_FOLDER}/")


def read_labels(root: Path, only: str | None = None) -> dict[str, list[Label]]:
    """Return the labels made here by session, or those of one session."""
    by_session: dict[str, list[Label]] = {}
    for row in _label_rows(label_files(root), only):
        by_session.setdefault(row.session_id, []).append(row.label)
    return by_session


def forget_labels(root: Path, sessions: set[str]) -> None:
    """Remove the labels of these sessions from every file that has any."""
    for path in label_files(root):
        rows = list(_label_rows([path], None))
        if rows and any(row.session_id in sessions for row in rows):
            replace_labels(root, rows[0].label.task, rows[0].label.labeller, sessions, [])


def labels_of(root: Path, task: str, labeller: str) -> list[LabelRow]:
    """Return a labeller's labels of a task in the order they were written. StoreError when they were damaged."""
    path = SidecarList(root).path(label_key(task, labeller))
    return list(_label_rows([path], None)) if path is not None else []


def labels_fingerprint(root: Path) -> str:
    """Return a hash that changes when any label made here does; empty when there is none."""
    marks = "|".join(f"{key}:{part.digest}" for key, part in SidecarList(root).live(f"{LABELS_FOLDER}/"))
    return hashlib.blake2b(marks.encode(), digest_size=8).hexdigest() if marks else ""


def _label_rows(paths: Iterable[Path], only: str | None) -> Iterator[LabelRow]:
    from agentsignals.store import parquet  # noqa: PLC0415  (pyarrow is loaded when there are labels)

    for path in paths:
        for row in parquet.read_rows(path, only=only):
            session_id = row.pop("session_id")
            yield LabelRow(session_id, msgspec.convert(row, Label, strict=False))


# Tables and notes of repositories: a folder for each.


def repository_folder(root: Path, repo: str) -> Path:
    """Return the store's folder of a repository, which is named by its own folder or address."""
    mark = hashlib.blake2b(repo.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in "-".join(repo.rstrip("/").split("/")[-2:]))[-60:]
    return root / REPOSITORIES_FOLDER / f"{plain}-{mark}"


def write_repository_rows(root: Path, repo: str, table: str, rows: list[Any]) -> Path:
    """Replace a repository's rows of a table (`commits`, `line_attribution`, `weaknesses`) in one rename."""
    return update_repository_rows(root, repo, table, lambda _: rows)


def update_repository_rows(
    root: Path, repo: str, table: str, change: Callable[[list[dict[str, Any]]], list[Any]]
) -> Path:
    """Replace a repository's rows of a table by what `change` makes of them. Nobody else writes in between."""
    from agentsignals.store import parquet, tables  # noqa: PLC0415  (only who looks into repositories pays for it)

    key = _repository_key(root, repo, table)
    with changing(root) as held:
        path = held.path(key)
        rows = change(list(parquet.read_rows(path)) if path is not None else [])
        return held.put(key, parquet.plain_table(tables.OF_REPOSITORIES[table], rows))


def repository_files(root: Path, table: str) -> list[Path]:
    """Return the undamaged files of a table, of all repositories."""
    return undamaged(root, f"{REPOSITORIES_FOLDER}/", f"/{table}")


def repository_rows(root: Path, repo: str, table: str) -> list[dict[str, Any]]:
    """Return a repository's rows of a table, times in microseconds. StoreError when they were damaged."""
    path = SidecarList(root).path(_repository_key(root, repo, table))
    if path is None:
        return []
    from agentsignals.store import parquet  # noqa: PLC0415  (pyarrow is loaded when there are any)

    return list(parquet.read_rows(path))


def write_note(root: Path, repo: str, name: str, note: Struct) -> Path:
    """Keep a document about a repository."""
    target = repository_folder(root, repo) / f"{name}.json"
    try:
        private_files.make_folder(target.parent)
        disk.write_atomically(target, msgspec.json.encode(note))
    except OSError as problem:
        raise disk.cannot_write(root, problem) from problem
    return target


def read_note(root: Path, repo: str, name: str) -> bytes | None:
    """Return a document about a repository as JSON. None when there is none, and when a table that it sums up was
    damaged: it is to be made again."""
    if any(SidecarList(root).damage(_repository_key(root, repo, ""))):
        return None
    try:
        return (repository_folder(root, repo) / f"{name}.json").read_bytes()
    except OSError:
        return None


def set_aside_damaged(root: Path, repo: str) -> None:
    """Set a repository's tables and notes aside when one table was damaged: they follow from each other."""
    begins = _repository_key(root, repo, "")
    if not any(SidecarList(root).damage(begins)):
        return
    with changing(root) as held:
        gone = held.forget(begins)
    disk.set_aside(root, repository_folder(root, repo))
    import logging  # noqa: PLC0415  (rare)

    logging.getLogger("agentsignals.store").warning(
        "a table of %s was damaged. Moved away: %s. Run `collect`, `attribute` and `scan` again for those you need",
        repo,
        ", ".join(key.rsplit("/", 1)[-1] for key in gone),
    )


def forget_notes(root: Path, folders: set[str] | None) -> None:
    """Remove the notes of repositories in these folders, or of all. The next run that needs one makes it again."""
    for path in (root / REPOSITORIES_FOLDER).glob("*/*.json"):
        if folders is None or path.parent.name in folders:
            path.unlink(missing_ok=True)


def forget_in_repositories(root: Path, sessions: set[str]) -> None:
    """Remove the ids of sessions from the tables and notes of all repositories. Commits, lines and findings stay: they
    belong to the repository, and an agent's line remains one, of a session that nobody names."""
    from agentsignals.store import parquet  # noqa: PLC0415  (pyarrow is loaded when there are any)

    with changing(root) as held:
        damaged = {problem.key for problem in held.damage(f"{REPOSITORIES_FOLDER}/")}
        for key, part in list(held.live(f"{REPOSITORIES_FOLDER}/")):
            if key not in damaged:
                before = parquet.read(root / part.file)
                after = parquet.without_session_ids(before, sessions)
                if not after.equals(before):
                    held.put(key, after)
    for path in (root / REPOSITORIES_FOLDER).glob("*/*.json"):
        if any(session_id.encode() in path.read_bytes() for session_id in sessions):
            path.unlink(missing_ok=True)


def _repository_key(root: Path, repo: str, table: str) -> str:
    return f"{REPOSITORIES_FOLDER}/{repository_folder(root, repo).name}/{table}"


FEW = 0.02
"""Share of files that may be new or changed while earlier findings are still shown. In a store of a thousand sessions
findings are recomputed every twentieth prompt."""
KINDS = ("findings", "spending", "report")
_OF = ".files"
_PROCESS = f"{os.getpid()} {time.time_ns()}"


def cache_file(store: Store, context: str, kind: str = "findings") -> Path:
    """Return the file of a context's answers of a kind. Where part of the store is of other code, or other packages
    add units, only this process uses it."""
    # Without the files of values that were computed on demand: findings do not rest on them.
    tables = {
        name: {table: file for table, file in shard.tables.items() if "." not in table}
        for name, shard in store.manifest.shards.items()
    }
    mark = _mark(_surroundings(store), tables, store.manifest.places)
    return store.folder / f"{kind}.{mark}.{context}.json"


def _surroundings(store: Store) -> list[object]:
    """State that findings follow from besides the sessions."""
    code = code_stamp()
    return [
        code,
        "" if store.manifest.code == code else _PROCESS,
        dict(SidecarList(store.folder).live()),
        [str(damage) for damage in store.damage],
        sorted({(shard.embedder, shard.labels) for shard in store.manifest.shards.values()}),
    ]


def _mark(*state: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(state), digest_size=12).hexdigest()


class _Files(Struct):
    """State of the files that findings were computed from."""

    surroundings: str
    files: set[int]
    """A mark of each trace as it was read."""


def _files(store: Store) -> _Files:
    return _Files(_mark(_surroundings(store)), store.manifest.marks())


def read_cache(store: Store, context: str, kind: str = "findings") -> bytes | None:
    """Return the cached answers of a context; None where nobody computed them, or the store is limited to some
    sessions."""
    if store.only is not None:
        return None
    try:
        return cache_file(store, context, kind).read_bytes()
    except OSError:
        return None


def recent_cache(store: Store, context: str) -> tuple[bytes, int] | None:
    """Return earlier findings of a context and how many files changed since. None where there are none, more than `FEW`
    of the files changed, one is gone, or anything else differs."""
    if store.only is not None:
        return None
    formers = [f for f in store.folder.glob(f"findings.*.{context}.json") if f.with_suffix(_OF).exists()]
    try:
        former = max(formers, key=lambda file: file.stat().st_mtime_ns)
        then = msgspec.msgpack.decode(former.with_suffix(_OF).read_bytes(), type=_Files)
        made = former.read_bytes()
    except (OSError, ValueError):  # none; or removed, or damaged
        return None
    now = _files(store)
    changed, gone = len(now.files - then.files), len(then.files - now.files)
    is_near = now.surroundings == then.surroundings and changed <= FEW * len(now.files) and gone <= changed
    return (made, changed) if is_near else None


def write_cache(store: Store, context: str, made: bytes, kind: str = "findings") -> None:
    """Cache a context's answers, where the folder can be written. Older findings are removed after an hour, other
    answers at once: a status line may ask every second, a report is large. Those of a store that was replaced
    meanwhile are not kept: sessions may have been forgotten."""
    if store.only is not None:
        return
    kept = cache_file(store, context, kind)
    with suppress(OSError, StoreError):
        # A shard of this store was replaced since it was opened. Reading the index again would double its memory.
        folders = (store.folder / SHARDS / name for name, shard in store.manifest.shards.items() if shard.tables)
        if any(disk.has_entry(folder, RETIRED) or not folder.exists() for folder in folders):
            return
        if kind == "findings":  # which are still shown where few files changed
            disk.write_atomically(kept.with_suffix(_OF), msgspec.msgpack.encode(_files(store)))
        disk.write_atomically(kept, made)
        for former in store.folder.glob(f"{kind}.*.{context}.*"):
            if former.stem != kept.stem and (kind != "findings" or disk.is_expired(former)):
                former.unlink(missing_ok=True)


def clear_caches(folder: Path) -> None:
    """Remove all cached answers: they name sessions."""
    for kept in (path for kind in KINDS for path in folder.glob(f"{kind}.*")):
        kept.unlink(missing_ok=True)
