"""Files that are on disk before they have their name, and the marks by which the store knows them again."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from msgspec import Struct

from agentsignals.errors import StoreError

KEEP_S = 3600
"""How long what was replaced stays on disk. Whoever opened the store before goes on reading the state he saw: a report
over a large store takes minutes, a notebook's connection lives longer; an hour's superseded shards are what it costs.
"""
_AT_ONCE = 10
"""Flushes asked for together: the disk answers ten at once in the time of one (2.9 ms against 26.9 on ext4)."""


class Part(Struct, array_like=True):
    """A file of the store as it was written."""

    bytes: int
    rows: int
    digest: str
    """BLAKE2b of its bytes; empty where nobody knows what it should be."""
    stamp: int
    """When it was written, in ns since 1970 UTC: while that stands, its bytes are not read to be compared."""
    file: str = ""
    """Its path in the store, where that doesn't follow from what it is."""


Digest = partial(hashlib.blake2b, digest_size=16)
"""What names the content of a file."""


def digest(data: bytes | memoryview) -> str:
    """Names the content of a file."""
    return Digest(data).hexdigest()


def _digest_of(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, Digest).hexdigest()


def replace(target: Path, data: bytes | memoryview) -> None:
    """Writes a file that is there whole or not at all, whatever happens to the program or the machine. OSError when it
    can't be written."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    flush([target.parent])


def flush(paths: Iterable[Path]) -> None:
    """Has the disk take in these files and folders; a folder's entries are flushed apart from what they name."""
    wanted = list(paths)
    if len(wanted) == 1:
        _flush(wanted[0])
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  (only who writes pays for it)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(_flush, wanted))


def _flush(path: Path) -> None:
    if os.name != "posix" and path.is_dir():
        return  # only POSIX opens folders
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def what_is_wrong(path: str, part: Part, thorough: bool = False) -> str:
    """What happened to a file since it was written; empty when nothing did. `thorough`: its bytes are read and compared
    also where length and time are the same.
    """
    try:
        status = os.stat(path)  # noqa: PTH116  (thousands at an opening: no object for each)
        if status.st_size != part.bytes and part.digest:
            return f"has {status.st_size:,} of {part.bytes:,} bytes" if status.st_size else "is empty"
        if not os.access(path, os.R_OK):
            return "can't be read: permission denied"
        if thorough or status.st_mtime_ns != part.stamp:
            return "" if _digest_of(path) == part.digest else "holds something else than was written"
    except FileNotFoundError:
        return "is gone"
    except OSError as problem:
        return f"can't be read: {(problem.strerror or str(problem)).lower()}"
    return ""


def instead_of(path: Path, problem: OSError) -> str:
    """What stands where a list of the store should be and is none, so that it is made again. StoreError where it may be
    the list, and can't be opened.
    """
    if isinstance(problem, IsADirectoryError):
        return "is a folder"
    if problem.errno == errno.ELOOP:
        return "is a link to itself"
    raise StoreError(
        f"{path} can't be read: {(problem.strerror or str(problem)).lower()}.",
        "Make it readable again, or move it away: it is made again from the files beside it.",
    ) from problem


def listed(folder: Path) -> list[Path]:
    """What lies in a folder, in order; nothing where there is none. StoreError where nobody may look."""
    try:
        return sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as problem:
        raise StoreError(f"{folder} can't be read: {problem.strerror}.", "Check its permissions.") from problem


def holds(folder: Path, name: str) -> bool:
    """Whether a folder holds a file of that name, as far as can be seen."""
    return os.access(folder / name, os.F_OK)


def is_old(path: Path) -> bool:
    """Whether a file has stood for so long that nobody reads what it replaced."""
    try:
        return time.time() - path.stat().st_mtime > KEEP_S
    except OSError:
        return False


def put_aside(root: Path, path: Path) -> Path | None:
    """Moves something out of the store's way into its folder `aside`; gives the new place, None when it is gone."""
    place = root / "aside" / f"{path.relative_to(root).as_posix().replace('/', '-')}-{time.time_ns():x}"
    try:
        place.parent.mkdir(exist_ok=True)
        path.rename(place)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise cannot_write(root, problem) from problem
    return place


def cannot_write(root: Path, problem: OSError) -> StoreError:
    """The disk's refusal in words."""
    return StoreError(
        f"The store {root} can't be written: {problem.strerror or problem}.",
        "Free some space, check its permissions, or name another folder with --store.",
    )


# One writer at a time: what a run changes, it has read under the same lock.

RUNS = ".lock"
"""Of runs that read traces or compute values."""
PARTS = ".parts.lock"
"""Of whatever writes labels or what is known of repositories; held for moments, so also beside a run."""
WAIT_S = 60.0
"""How long a run waits for another's end: two of a few sessions follow each other, one of hours is told."""
_LOOK_EVERY_S = 0.05


class Elsewhere(NamedTuple):
    """How what is written in a folder is taken in by the store that it stands for."""

    committed: Callable[[Path, float, Callable[[], None]], AbstractContextManager[None]]
    """Around a change: nobody else writes there meanwhile, and it is taken in at the end."""
    checkpoint: Callable[[Path], None]


elsewhere: dict[Path, Elsewhere] = {}
"""Folders that stand for stores on object stores (`remote`), whose lock is half of the lock of those."""


@contextmanager
def locked(
    root: Path, name: str = RUNS, wait_s: float = WAIT_S, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Only one program at a time comes in. StoreError when another is still there after `wait_s` seconds; `waiting` is
    called once when there is one to wait for.
    """
    try:
        import fcntl  # noqa: PLC0415  (not on Windows, where the lock is left out)
    except ImportError:
        with _taken_in(root, wait_s, waiting):
            yield
        return
    try:
        handle = (root / name).open("a+")
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
                    raise StoreError(
                        f"Another run{_of(handle)} is writing the store {root}; {wait_s:.0f} seconds were waited.",
                        "Wait for it, or name another store.",
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
    return elsewhere[root].committed(root, wait_s, waiting) if root in elsewhere else nullcontext()


def saved(root: Path) -> None:
    """Says that the store in this folder is whole as it stands: one elsewhere takes it in from time to time."""
    if root in elsewhere:
        elsewhere[root].checkpoint(root)


@contextmanager
def tried(root: Path) -> Iterator[bool]:
    """Whether no run of this machine is at work there; while this lasts, none begins."""
    try:
        import fcntl  # noqa: PLC0415  (as above)
    except ImportError:
        yield True
        return
    with (root / RUNS).open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _of(handle: IO[str]) -> str:
    handle.seek(0)
    written = handle.read(20)
    return f" (process {written})" if written.isdigit() else ""
