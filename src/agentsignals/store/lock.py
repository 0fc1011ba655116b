"""One writer at a time: what a run changes, it has read under the same lock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, NamedTuple

from agentsignals.errors import StoreError

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
