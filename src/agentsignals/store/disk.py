"""Files that are written whole or not at all, checks whether they still are as written, the writer's lock, and the
stamp of the code that wrote a store."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from fnmatch import fnmatchcase
from functools import cache, partial, reduce
from operator import or_
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from agentsignals import private_files
from agentsignals.errors import StoreError
from agentsignals.model.prices import own_prices

KEEP_S = 3600
"""Seconds that replaced files stay on disk, so that a reader who opened the store before can go on reading. A report
over a large store takes minutes, a notebook's connection lives longer."""
_CHECK_BYTES = 4
_FLUSH_THREADS = 10
"""Flushes requested together: the disk answers ten at once in the time of one (2.9 ms against 26.9 on ext4)."""


class StoredFile(Struct, array_like=True):
    """Size, rows, digest and modification time of a file of the store, as it was written."""

    bytes: int
    rows: int
    digest: str
    """BLAKE2b of its bytes; empty where nobody knows what it should be."""
    stamp: int
    """Modification time in ns since 1970 UTC. While it is unchanged, the bytes are not read for comparison."""
    file: str = ""
    """Path in the store, where it does not follow from the table and shard."""


Digest = partial(hashlib.blake2b, digest_size=16)
"""Hash of a file's content."""


def digest(data: bytes | memoryview) -> str:
    """Return the hash of a file's content."""
    return Digest(data).hexdigest()


def write_atomically(target: Path, data: bytes | memoryview) -> None:
    """Write a file so that it is there whole or not at all, whatever happens to the program or the machine. OSError
    when it can't be written."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with private_files.open_file(draft, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    flush([target.parent])


def keep(path: Path, data: bytes) -> None:
    """Write a file that can be thrown away, for `read_kept`; nothing where its folder can't be written."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with suppress(OSError):
        private_files.make_folder(path.parent)
        private_files.write(draft, zlib.crc32(data).to_bytes(_CHECK_BYTES) + data)
        draft.replace(path)


def read_kept(path: Path) -> memoryview:
    """Return what was kept in a file; nothing where a crash cut it short, or it is garbled. OSError."""
    data = memoryview(path.read_bytes())
    return data[_CHECK_BYTES:] if zlib.crc32(data[_CHECK_BYTES:]) == int.from_bytes(data[:_CHECK_BYTES]) else data[:0]


def flush(paths: Iterable[Path]) -> None:
    """Flush files and folders to the disk. A folder's entries are flushed separately from the files they name."""
    wanted = list(paths)
    if len(wanted) == 1:
        _flush(wanted[0])
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  (only who writes pays for it)

    done = 0
    try:
        with ThreadPoolExecutor(_FLUSH_THREADS) as pool:
            for _ in pool.map(_flush, wanted):
                done += 1
    except RuntimeError:  # there is no memory for a thread
        for path in wanted[done:]:
            _flush(path)


def _flush(path: Path) -> None:
    if os.name != "posix" and path.is_dir():
        return  # only POSIX opens folders
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def what_is_wrong(path: str, part: StoredFile, thorough: bool = False) -> str:
    """Say what happened to a file since it was written; empty when it is unchanged. `thorough` compares the bytes even
    where length and time are the same."""
    try:
        status = os.stat(path)  # noqa: PTH116  (thousands at an opening: no object for each)
        if status.st_size != part.bytes and part.digest:
            return f"has {status.st_size:,} of {part.bytes:,} bytes" if status.st_size else "is empty"
        if not os.access(path, os.R_OK):
            return "cannot be read: permission denied"
        if thorough or status.st_mtime_ns != part.stamp:
            with Path(path).open("rb") as file:
                digest = hashlib.file_digest(file, Digest).hexdigest()
            return "" if digest == part.digest else "has other content than was written"
    except FileNotFoundError:
        return "is missing"
    except OSError as problem:
        return f"can't be read: {(problem.strerror or str(problem)).lower()}"
    return ""


def unreadable_list(path: Path, problem: OSError) -> str:
    """Say why the store's list at this path is none, so that it is rebuilt. StoreError where it may be a valid list
    that can't be opened."""
    if isinstance(problem, IsADirectoryError):
        return "is a folder"
    if problem.errno == errno.ELOOP:
        return "is a link to itself"
    raise StoreError(
        f"{path} can't be read: {(problem.strerror or str(problem)).lower()}.",
        "Make it readable, or move it away: it is rebuilt from the files next to it.",
    ) from problem


def folder_entries(folder: Path) -> list[Path]:
    """Return the entries of a folder in order, none where it does not exist. StoreError when access is denied."""
    try:
        return sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as problem:
        raise StoreError(f"{folder} can't be read: {problem.strerror}.", "Check its permissions.") from problem


def has_entry(folder: Path, name: str) -> bool:
    """Return True when a folder is seen to hold a file of that name."""
    return os.access(folder / name, os.F_OK)


def is_expired(path: Path) -> bool:
    """Return True when a file is older than `KEEP_S`: nobody reads what it replaced any more."""
    try:
        return time.time() - path.stat().st_mtime > KEEP_S
    except OSError:
        return False


def set_aside(root: Path, path: Path) -> Path | None:
    """Move something out of the store's way into its folder `aside`. Return the new place, or None when it is gone."""
    place = root / "aside" / f"{path.relative_to(root).as_posix().replace('/', '-')}-{time.time_ns():x}"
    try:
        private_files.make_folder(place.parent)
        path.rename(place)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise cannot_write(root, problem) from problem
    return place


OWN = (
    *("shards", "labels", "repos", ".search", ".answers", "briefs", "aside"),
    *("manifest.json", "manifest.*.json", "index.sqlite*", "parts.json", ".remote.json", ".lock", ".parts.lock"),
    *("*.[0-9]*.parquet", "*.[0-9]*.msgpack", "findings.*", "embeddings.sqlite*"),
    *(".exposure.json", ".index.checked", ".*.tmp"),
)
"""What a store has in its folder, by patterns of names."""
EXPOSURE_FILE = ".exposure.json"


class Exposure(Struct, kw_only=True):
    """Permissions that other users of the machine had on a store, until they were taken away."""

    until: str
    """Time in UTC."""
    files: int
    folders: int
    who: str
    was_writable: bool

    def __str__(self) -> str:
        could = "read and change" if self.was_writable else "read"
        return (
            f"{self.who} could {could} this store ({self.files:,} files, {self.folders:,} folders) until {self.until}"
            " UTC; now only you can"
        )


def close_to_others(root: Path) -> Exposure | None:
    """Take other users' permissions on a store of this user, which an earlier version or a copy left open. Return them
    where others could reach the store; they are also kept for `exposure`. None where nothing was open to anybody.

    A folder that holds more than a store keeps its mode: only what is the store's is closed.
    """
    if os.name != "posix":
        return None  # modes mean nothing there
    try:
        with os.scandir(root) as listed:
            held = [(entry, entry.stat(follow_symlinks=False)) for entry in listed]
        modes = [root.stat().st_mode, *(status.st_mode for _, status in held)]
        if not any(mode & private_files.OTHERS for mode in modes):
            return None
        entries = [entry for entry, status in held if status.st_uid == os.geteuid()]
        tops = [entry.path for entry in entries if any(fnmatchcase(entry.name, own) for own in OWN)]
        if len(tops) == len(entries):
            tops.append(os.fspath(root))
        if not any(private_files.exposed(top) for top in tops):
            return None
        found = {each.path: each for top in tops for each in private_files.exposed_below(top)}
        closed_each = [private_files.close(each) for each in found.values()]
        if not all(closed_each):
            return None
        taken = reduce(or_, (each.mode for each in found.values()))
        may_enter = 0o001 if taken & 0o007 else 0o011
        if not all(parent.stat().st_mode & may_enter for parent in root.resolve().parents):
            return None
        former = exposure(root)
        closed = Exposure(
            until=time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
            files=sum(not each.is_folder for each in found.values()) + (former.files if former else 0),
            folders=sum(each.is_folder for each in found.values()) + (former.folders if former else 0),
            who="every user of this machine" if taken & 0o007 else "the group of its files",
            was_writable=bool(taken & 0o022),
        )
        write_atomically(root / EXPOSURE_FILE, msgspec.json.encode(closed))
    except OSError:  # a folder that can't be listed or written: the doctor says so
        return None
    return closed


def exposure(root: Path) -> Exposure | None:
    """Return the permissions that others had on a store before they were taken away; None where they had none."""
    try:
        return msgspec.json.decode((root / EXPOSURE_FILE).read_bytes(), type=Exposure)
    except (OSError, msgspec.MsgspecError):
        return None


def cannot_write(root: Path, problem: Exception) -> StoreError:
    """Return the error to raise when the disk, or SQLite, refuses a write."""
    return StoreError(
        f"The store {root} can't be written: {getattr(problem, 'strerror', None) or problem}.",
        "Free some space, check its permissions, or name another folder with --store.",
    )


# One writer at a time: what a run changes, it has read under the same lock.

RUN_LOCK = ".lock"
"""Lock file of runs that read traces or compute values."""
SIDECAR_LOCK = ".parts.lock"
"""Lock file of writers of labels and repository tables. It is held for moments, also during a run."""
WAIT_S = 60.0
"""Seconds a run waits for another to end: two short runs follow each other, a long one is reported."""
_LOOK_EVERY_S = 0.05


class RemoteHooks(NamedTuple):
    """Callbacks by which changes of a local copy are committed to its remote store."""

    committed: Callable[[Path, float, Callable[[], None]], AbstractContextManager[None]]
    """Context of a change: locks the remote store, and commits at the end."""
    checkpoint: Callable[[Path], None]


remote_stores: dict[Path, RemoteHooks] = {}
"""Local copies of stores on object stores (`store.remote`), by folder. Their lock is half of the remote lock."""


@contextmanager
def locked(
    root: Path, name: str = RUN_LOCK, wait_s: float = WAIT_S, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Let only one program in at a time. StoreError when another is still there after `wait_s` seconds. `waiting` is
    called once when there is one to wait for."""
    try:
        import fcntl  # noqa: PLC0415  (not on Windows, where the lock is left out)
    except ImportError:
        with _taken_in(root, wait_s, waiting):
            yield
        return
    try:
        handle = private_files.open_file(root / name, "a+")
    except OSError as problem:
        raise StoreError(
            f"The store {root} can't be written: {problem.strerror}.", "Name another folder with --store."
        ) from problem
    with handle:
        until = time.monotonic() + wait_s
        waits = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as problem:
                if time.monotonic() >= until:
                    handle.seek(0)
                    written = handle.read(20)
                    process = f" (process {written})" if written.isdigit() else ""
                    raise StoreError(
                        f"Another run{process} is writing the store {root}; waited {wait_s:.0f} seconds.",
                        "Wait for it, or use another store with --store.",
                    ) from problem
            if not waits:
                waits = True
                waiting()
            time.sleep(_LOOK_EVERY_S)
        handle.seek(0)
        handle.truncate()
        handle.write(str(os.getpid()))
        handle.flush()
        with _taken_in(root, max(0.0, until - time.monotonic()), waiting):
            yield


def _taken_in(root: Path, wait_s: float, waiting: Callable[[], None]) -> AbstractContextManager[None]:
    return remote_stores[root].committed(root, wait_s, waiting) if root in remote_stores else nullcontext()


def checkpoint(root: Path) -> None:
    """Tell a remote store that the folder is consistent as it is, so that it may be committed now."""
    if root in remote_stores:
        remote_stores[root].checkpoint(root)


@contextmanager
def free_of_runs(root: Path) -> Iterator[bool]:
    """Yield True when no run of this machine writes there; none can begin while this context lasts."""
    try:
        import fcntl  # noqa: PLC0415  (as above)
    except ImportError:
        yield True
        return
    with private_files.open_file(root / RUN_LOCK, "a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def refuse_newer(root: Path, version: int, newest: int) -> None:
    """Raise StoreError for an index that a newer program wrote: overwriting it would lose data."""
    if version > newest:
        raise StoreError(
            f"The store {root} was written by a newer agentsignals: its index is of version {version}, and this program"
            f" knows versions up to {newest}.",
            "Use the newer program, or name another folder with --store.",
        )


def code_stamp() -> str:
    """Return a hash of all files of this package and of the installed packages, which may add units, and of the
    person's own prices. While it is unchanged, nothing in the store is stale because of code or prices."""
    return _stamp(tuple(sys.path)) + own_prices().digest.hex()


@cache
def _stamp(places: tuple[str, ...]) -> str:
    parts = set(files_and_times(str(Path(__file__).parents[1])))
    for folder in places:  # packages with their versions; `importlib.metadata` reads each, which takes longer
        with suppress(OSError), os.scandir(folder or ".") as entries:
            parts.update(entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
    return hashlib.blake2b("|".join(sorted(parts)).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def files_and_times(folder: str) -> list[str]:
    """Return all files below a folder, each with its length and time."""
    stamps: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    stamps += files_and_times(entry.path)
            else:
                seen = entry.stat()
                stamps.append(f"{entry.path}:{seen.st_size}:{seen.st_mtime_ns}")
    return stamps
