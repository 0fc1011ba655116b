"""Bubblewrap's arguments: a file system of what is needed and nothing else, no network, ids and processes of its own.

Source: bwrap(1), 0.8.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import cache

from agentsignals.lab.sandbox import python_paths
from agentsignals.lab.sandbox.outcome import Limits

APART = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")


@cache
def program() -> str | None:
    """Where it is, if it is."""
    return shutil.which("bwrap")


def computing(limits: Limits) -> list[str]:
    """For code that is only called: a bare Python, devices, and a small folder in memory."""
    return [
        program() or "bwrap",
        *APART,
        *in_memory(limits.disk_bytes),
        *python(),
        *("--dev", "/dev"),
        *("--chdir", "/tmp"),  # noqa: S108 - a file system of its own
    ]


def in_memory(most_bytes: int) -> tuple[str, ...]:
    """A folder for temporary files. It comes before what may lie in the real one, such as this package."""
    return ("--size", str(most_bytes), "--tmpfs", "/tmp")  # noqa: S108 - a file system of its own


def python(there: tuple[str, ...] = ()) -> list[str]:
    """A bare Python, where it also is outside, and the inside of this package; without any installed package.

    What lies under the folders that are `there` already is not put there again.
    """
    _, _, inside = python_paths.inside()
    folders = [*python_paths.library_folders(), str(python_paths.standard_library()), inside]
    hidden = [argument for folder in python_paths.package_folders() for argument in ("--tmpfs", folder)]
    files = [python_paths.executable(), *python_paths.library_files(), *python_paths.DATA]

    def missing(paths: Iterable[str]) -> list[str]:
        return [path for path in paths if not any(path == root or path.startswith(f"{root}/") for root in there)]

    return [*read_only(missing(folders)), *hidden, *read_only(missing(files))]


def read_only(paths: Iterable[str]) -> list[str]:
    """These paths, where they are there."""
    return [argument for path in paths for argument in ("--ro-bind-try", path, path)]
