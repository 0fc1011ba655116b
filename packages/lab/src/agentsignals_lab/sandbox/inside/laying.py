# ruff: noqa: PTH101, PTH102, PTH115, PTH123, PTH211  (pathlib would double the start of the process)
"""Lays a checkout out in a file system of the sandbox's own, before any lock is on and any foreign code runs."""

from __future__ import annotations

import os
import socket
from typing import Any


def lay_out(wanted: dict[str, Any]) -> None:
    """Copies the folder `from` into `to`, and hands its open folders out to whoever started us.

    Who holds them counts what is in the file systems while code runs, and reads them when all of it has ended: nothing
    that runs in here is asked. Raises OSError when the copy does not fit.
    """
    _copy(wanted["from"], wanted["to"])
    folders = [os.open(place, os.O_RDONLY | os.O_DIRECTORY) for place in wanted["places"]]
    with socket.socket(fileno=wanted["socket"]) as out:
        socket.send_fds(out, [b"."], folders)
    for folder in folders:
        os.close(folder)


def _copy(source: str, target: str) -> None:
    with os.scandir(source) as entries:
        for entry in entries:
            new = f"{target}/{entry.name}"
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), new)
                continue
            state = entry.stat(follow_symlinks=False)
            if entry.is_dir():
                os.mkdir(new)
                _copy(entry.path, new)
            elif entry.is_file():
                _copy_file(entry.path, new)
            else:
                continue
            os.chmod(new, state.st_mode & 0o777 | (0o700 if entry.is_dir() else 0o600))
            os.utime(new, ns=(state.st_mtime_ns, state.st_mtime_ns))


def _copy_file(source: str, target: str) -> None:
    with open(source, "rb") as read, open(target, "xb") as write:
        while chunk := read.read(1 << 20):
            write.write(chunk)
