"""Removes a folder that untrusted code could write to: deep nests, no permissions and links do not stop it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Level(NamedTuple):
    name: str
    identity: tuple[int, int]
    inner: list[str]


def remove_folder(folder: Path) -> None:
    """Removes it and all in it, links but not what they lead to. What can't be removed stays where it is.

    Goes down and up by open folders, one at a time: a nest of ten thousand has a path longer than the system takes,
    and is deeper than Python's own removal recurses.
    """
    with contextlib.suppress(OSError):
        _empty(os.open(folder, OPEN))
        folder.rmdir()


def empty_folder(folder: Path) -> None:
    """Removes all in it, and leaves the folder. Raises OSError when it is none, and removes what can be removed."""
    _empty(os.open(folder, OPEN))


def _empty(here: int) -> None:
    """Empties an open folder, and closes it."""
    try:
        levels = [_level("", here)]
        while True:
            if levels[-1].inner:
                below = _entered(levels[-1].inner.pop(), here)
                if below is not None:
                    levels.append(below[0])
                    here = _leave_for(here, below[1])
                continue
            done = levels.pop()
            if not levels:
                return
            here = _leave_for(here, os.open("..", OPEN, dir_fd=here))
            if _identity(here) != levels[-1].identity:
                return  # something that still runs has moved it: what is here is not ours to remove
            with contextlib.suppress(OSError):
                os.rmdir(done.name, dir_fd=here)
    finally:
        os.close(here)


def _leave_for(here: int, there: int) -> int:
    """Closes the folder that is left; the one that is entered instead."""
    os.close(here)
    return there


def _entered(name: str, here: int) -> tuple[_Level, int] | None:
    """The folder of that name, open and without files; None when it can't be entered."""
    try:
        os.chmod(name, 0o700, dir_fd=here)
        below = os.open(name, OPEN, dir_fd=here)
    except OSError:
        return None
    try:
        return _level(name, below), below
    except OSError:
        os.close(below)
        return None


def _level(name: str, here: int) -> _Level:
    """Removes the files of an open folder; the folders in it are left to do."""
    inner = []
    with os.scandir(here) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.name, dir_fd=here)
    return _Level(name, _identity(here), inner)


def _identity(here: int) -> tuple[int, int]:
    status = os.fstat(here)
    return status.st_dev, status.st_ino
