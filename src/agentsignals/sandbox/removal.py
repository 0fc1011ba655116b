"""Removes a folder that untrusted code could write to: deep nests, no permissions and links do not stop it."""

from __future__ import annotations

import contextlib
import os
from itertools import count
from pathlib import Path


def remove_folder(folder: Path) -> None:
    """Removes it and all in it, links but not what they lead to. What can't be removed stays, in silence of necessity.

    Every inner folder is moved to the top before it is looked into: a nest of ten thousand folders has a path longer
    than the system takes, and is deeper than Python's own removal can recurse.
    """
    numbers = count()
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        with contextlib.suppress(OSError):
            current.chmod(0o700)
            waiting += _emptied(current, folder, numbers)
        if current != folder:
            with contextlib.suppress(OSError):
                current.rmdir()
    with contextlib.suppress(OSError):
        folder.rmdir()


def _emptied(current: Path, top: Path, numbers: count[int]) -> list[Path]:
    inner = []
    with os.scandir(current) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    Path(entry).unlink()
                elif current == top:
                    inner.append(Path(entry))
                else:
                    os.chmod(entry.path, 0o700)  # noqa: PTH101 - a folder without permissions can't be moved
                    moved = top / f".removed-{next(numbers)}"
                    Path(entry).rename(moved)
                    inner.append(moved)
    return inner
