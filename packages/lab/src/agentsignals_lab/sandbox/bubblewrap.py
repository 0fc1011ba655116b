"""Bubblewrap's arguments: a file system of what is needed and nothing else, no network, ids and processes of its own.

Source: bwrap(1), 0.8.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import cache

from agentsignals_lab.sandbox import python_paths
from agentsignals_lab.sandbox.outcome import Limits

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
        *sealed(),
        *("--chdir", "/tmp"),  # noqa: S108 - a file system of its own
    ]


def in_memory(most_bytes: int, place: str = "/tmp") -> tuple[str, ...]:  # noqa: S108 - a file system of its own
    """A folder that can be written to. It comes before what may lie in the real one, such as this package."""
    return ("--size", str(most_bytes), "--tmpfs", place)


def sealed() -> tuple[str, ...]:
    """Comes last: the root and the devices are file systems in memory, too, as large as half of the machine's."""
    return ("--remount-ro", "/dev", "--remount-ro", "/")


def python(there: tuple[str, ...] = ()) -> list[str]:
    """A bare Python, where it also is outside, and the inside of this package; without any installed package, and
    without the rest of this one, which knows what is expected.

    What lies under the folders that are `there` already is not put there again.
    """
    package, _, inside = python_paths.inside()
    folders = [*python_paths.library_folders(), str(python_paths.standard_library())]
    hidden = [*python_paths.package_folders(), package]
    files = [python_paths.executable(), *python_paths.library_files(), *python_paths.DATA]

    def missing(paths: Iterable[str]) -> list[str]:
        return [path for path in paths if not any(path == root or path.startswith(f"{root}/") for root in there)]

    return [
        *read_only(missing(folders)),
        *(word for folder in hidden for word in ("--tmpfs", folder)),
        *read_only([inside]),
        *(word for folder in hidden for word in ("--remount-ro", folder)),
        *read_only(missing(files)),
    ]


def read_only(paths: Iterable[str]) -> list[str]:
    """These paths, where they are there."""
    return [argument for path in paths for argument in ("--ro-bind-try", path, path)]
