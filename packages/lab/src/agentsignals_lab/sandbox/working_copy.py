"""A checkout while code runs on it: a copy in memory of bounded size. What may come back of it comes back at the end.

The real folder is never within the code's reach. So what it writes takes no disk, and no file of it was ever on the
host with the rights that the code gave it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

from agentsignals.errors import SandboxError

from agentsignals_lab.sandbox import bubblewrap
from agentsignals_lab.sandbox.outcome import Limits
from agentsignals_lab.sandbox.process import Stopped
from agentsignals_lab.sandbox.removal import empty_folder

PLACE = "/checkout"
"""Where the copy is, for what runs in it."""

ORIGINAL = "/original"
WRITABLE = (PLACE, "/tmp", "/dev/shm")  # noqa: S108 - inside, file systems of their own
MOST_DEPTH = 100
"""Folders in folders; a package manager's nest of dependencies has some 40."""

TRIES, BETWEEN_TRIES_S = 4, 0.1
CHUNK = 1 << 20
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class TooMuch(Exception):
    """More is there than the limits let come back."""


class WorkingCopy:
    """The working copy of one run, with the limits `disk_bytes` (of each of its file systems) and `disk_files` (of
    all together)."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self.left_out: Counter[str] = Counter()
        self._ours, self._theirs = socket.socketpair()
        self._open: list[int] = []

    def close(self) -> None:
        """Lets go of it, and so of the memory that it takes."""
        for folder in self._open:
            os.close(folder)
        self._ours.close()
        self._theirs.close()

    @property
    def passed(self) -> int:
        """The open file that the inside answers on."""
        return self._theirs.fileno()

    def mounts(self) -> list[str]:
        """Bubblewrap's arguments, but for /tmp; they come after those for the system."""
        size = self.limits.disk_bytes
        shared = bubblewrap.in_memory(size, "/dev/shm")  # noqa: S108 - inside
        return [
            *(*shared, *bubblewrap.in_memory(size, PLACE)),
            *("--ro-bind", str(self.folder.resolve()), ORIGINAL, *bubblewrap.sealed(), "--chdir", PLACE),
        ]

    def request(self) -> dict[str, Any]:
        """Return what the inside is to do before it locks itself in."""
        return {"from": ORIGINAL, "to": PLACE, "places": WRITABLE, "socket": self.passed}

    def check(self) -> Stopped:
        """`disk` when there are too many files by now; of bytes the file systems themselves take no more."""
        self._receive()
        made = sum(s.f_files - s.f_ffree for s in map(os.fstatvfs, self._open))
        return "disk" if made > self.limits.disk_files + len(self._open) else ""

    def take_back(self) -> Stopped:
        """Replaces the folder's contents by the copy's, or leaves all as it was and says `disk`.

        Plain files, folders, and links that stay inside, with permissions of the plain kind. The rest is counted.
        """
        self._receive()
        for left in reversed(range(TRIES)):
            try:
                self._take_back()
                break
            except TooMuch:
                return "disk"
            except OSError as error:
                # What still changes it is about to end: bubblewrap is gone a moment before the processes within.
                if not left:
                    problem = f"The copy could not be taken back into {self.folder}: {error}"
                    raise SandboxError(problem, "Start over with another copy.") from error
                time.sleep(BETWEEN_TRIES_S)
        return ""

    def _take_back(self) -> None:
        self._walk(self._open[0], None, _Budget(self.limits), 0)
        self.left_out.clear()
        empty_folder(self.folder)
        target = os.open(self.folder, FOLDER)
        try:
            self._walk(self._open[0], target, _Budget(self.limits), 0)
        finally:
            os.close(target)

    def _receive(self) -> None:
        # Sent before the first line of foreign code, which closes what is left of the socket: never waited for.
        if not self._open:
            with contextlib.suppress(BlockingIOError):
                self._ours.setblocking(False)
                self._open = socket.recv_fds(self._ours, 1, len(WRITABLE))[1]

    def _walk(self, source: int, target: int | None, budget: _Budget, depth: int) -> None:
        if depth > MOST_DEPTH:
            raise TooMuch
        with os.scandir(source) as entries:
            for entry in entries:
                budget.spend(1, 0)
                if entry.is_symlink():
                    self._link(entry.name, source, target, depth)
                elif entry.is_dir(follow_symlinks=False):
                    self._inner(entry.name, source, target, budget, depth)
                elif entry.is_file(follow_symlinks=False):
                    self._file(entry.name, source, target, budget)
                else:
                    self.left_out["device, pipe or socket"] += 1

    def _inner(self, name: str, source: int, target: int | None, budget: _Budget, depth: int) -> None:
        below = _opened(name, source, FOLDER, 0o700)
        made = None
        try:
            if target is not None:
                os.mkdir(name, 0o700, dir_fd=target)
                made = os.open(name, FOLDER, dir_fd=target)
            self._walk(below, made, budget, depth + 1)
            if made is not None:
                self._as_it_was(below, made, 0o700)
        finally:
            os.close(below)
            if made is not None:
                os.close(made)

    def _file(self, name: str, source: int, target: int | None, budget: _Budget) -> None:
        read = _opened(name, source, FILE, 0o600)
        try:
            if target is None:
                budget.spend(0, os.fstat(read).st_size)
                return
            write = os.open(name, NEW_FILE, 0o600, dir_fd=target)
            try:
                while chunk := os.read(read, CHUNK):
                    budget.spend(0, len(chunk))
                    while chunk:
                        chunk = chunk[os.write(write, chunk) :]
                self._as_it_was(read, write, 0o600)
            finally:
                os.close(write)
        finally:
            os.close(read)

    def _link(self, name: str, source: int, target: int | None, depth: int) -> None:
        to = os.readlink(name, dir_fd=source)
        if not _stays_inside(to, depth):
            self.left_out["link that leads outside"] += 1
        elif target is not None:
            os.symlink(to, name, dir_fd=target)

    def _as_it_was(self, source: int, target: int, at_least: int) -> None:
        state = os.fstat(source)
        if state.st_mode & 0o7000:
            self.left_out["setuid, setgid or sticky bit"] += 1
        os.fchmod(target, state.st_mode & 0o777 | at_least)
        os.utime(target, ns=(state.st_mtime_ns, state.st_mtime_ns))


class _Budget:
    """Files that may still come back. A file counts by its length, each of its names anew: holes and hard links
    come back as files in full."""

    def __init__(self, limits: Limits) -> None:
        self.files, self.size = limits.disk_files, limits.disk_bytes

    def spend(self, files: int, size: int) -> None:
        """Raises TooMuch."""
        self.files, self.size = self.files - files, self.size - size
        if self.files < 0 or self.size < 0:
            raise TooMuch


def _opened(name: str, folder: int, how: int, rights: int) -> int:
    """Open for reading, whatever its owner, the code, may no longer do with it."""
    try:
        return os.open(name, how, dir_fd=folder)
    except PermissionError:
        os.chmod(name, rights, dir_fd=folder)
        return os.open(name, how, dir_fd=folder)


def _stays_inside(to: str, depth: int) -> bool:
    """Return whether a link in a folder so deep below the top leads to nothing above the top, through whatever
    other such links. Steps up come first: after a name, which may itself be a link, they would lead anywhere."""
    parts = [part for part in to.split("/") if part not in ("", ".")]
    up = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    return not to.startswith("/") and up <= depth and ".." not in parts[up:]
