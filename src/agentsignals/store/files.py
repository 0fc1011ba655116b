"""Files that are on disk before they have their name, and the marks by which the store knows them again."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

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
