"""Files and folders for their owner alone: created with mode 0600 and 0700, whatever the umask.

Transcripts are private on every machine that many people share, so is all that is derived from them. A library must not
change its caller's umask, not even for a moment: other threads create files meanwhile. So each file is opened with its
mode. The command line sets a umask besides (`owner_only`), for packages that create files of their own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

FILE, FOLDER = 0o600, 0o700
OTHERS = 0o077
"""Permissions of everybody but the owner."""
_persons: list[int] = []
"""Umask that the person started the program with, while `owner_only` is in force."""


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, each with mode 0700. A folder that exists keeps its mode. OSError when
    it can't be created."""
    try:
        folder.mkdir(FOLDER)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_folder(folder.parent)
        make_folder(folder)
    except OSError:  # there already, made by another process, or on a file system that says otherwise
        if not folder.is_dir():
            raise


def opener(path: str, flags: int) -> int:
    """Open a file as `open` does, created with mode 0600. A file that is there is closed to others before anything is
    written into it."""
    opened = os.open(path, flags, FILE)
    with suppress(OSError):  # another owner's file, which the person named
        found = os.fstat(opened)
        if stat.S_ISREG(found.st_mode) and found.st_mode & OTHERS and hasattr(os, "fchmod"):
            os.fchmod(opened, stat.S_IMODE(found.st_mode) & ~OTHERS)
    return opened


def open_file(path: Path | str, mode: str, **text: Any) -> Any:
    """Open a file for writing and return it. `text` is `open`'s: encoding, errors, newline."""
    return open(path, mode, opener=opener, **text)  # a Path's takes no opener


def create(path: Path | str) -> None:
    """Create an empty file, for a package that opens it by name and leaves its mode. A file that is there stays as it
    is, closed to others. OSError when it can't be created."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE))
    except FileExistsError:
        if found := exposed(path):
            close(found)


def write(path: Path, content: bytes | str, errors: str = "strict") -> None:
    """Write a file; a text as UTF-8."""
    with open_file(path, "wb") as file:
        file.write(content.encode("utf-8", errors) if isinstance(content, str) else content)


class Exposed(NamedTuple):
    """A file or folder that others than its owner have permissions on."""

    path: str
    mode: int

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


def exposed(path: Path | str) -> Exposed | None:
    """Return a file or folder of this user if others have permissions on it. Links are not followed."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    is_plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    if os.name != "posix" or not is_plain or not found.st_mode & OTHERS or found.st_uid != os.geteuid():
        return None
    return Exposed(os.fspath(path), found.st_mode)


def exposed_below(path: Path | str) -> Iterator[Exposed]:
    """Yield what others have permissions on in a folder, then the folder itself; or the file."""
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114  (thousands: no object for each)
        for folder, folders, names in os.walk(path, topdown=False):
            yield from filter(None, (exposed(f"{folder}/{name}") for name in names))
            yield from filter(None, (exposed(f"{folder}/{name}") for name in folders))
    if found := exposed(path):
        yield found


def close(found: Exposed) -> bool:
    """Take all permissions of others from a file or folder. Return False when the system refuses, or when another file
    has its name by now."""
    try:
        opened = os.open(found.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:  # not even its owner may read it
        with suppress(OSError):
            Path(found.path).chmod(stat.S_IMODE(found.mode) & ~OTHERS)
            return True
        return False
    except OSError:
        return False
    try:
        os.fchmod(opened, stat.S_IMODE(os.fstat(opened).st_mode) & ~OTHERS)
    except OSError:
        return False
    finally:
        os.close(opened)
    return True


def own_folder(folder: Path) -> None:
    """Create a folder of this program, or close one that an earlier version left open to others, with all in it.
    OSError when it can't be created."""
    make_folder(folder)
    if exposed(folder):
        for each in exposed_below(folder):
            close(each)


@contextmanager
def owner_only() -> Iterator[None]:
    """Set a umask of 077 for this process and those it starts. For programs; never for a caller's process."""
    before = os.umask(OTHERS)
    _persons.append(before)
    try:
        yield
    finally:
        _persons.pop()
        os.umask(before)


def persons_umask() -> int:
    """Return the umask for a process that works for the person, not for us; -1, which changes nothing, outside of
    `owner_only`."""
    return _persons[0] if _persons else -1


@contextmanager
def as_person() -> Iterator[None]:
    """Set the person's umask, to start a program of theirs by a function that takes none."""
    before = os.umask(_persons[0]) if _persons else None
    try:
        yield
    finally:
        if before is not None:
            os.umask(before)
