"""Names the code that is running, so that a run over nothing new need not load it to know that nothing is stale."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agentsignals.registry import adds_units


def code_stamp() -> str:
    """Changes whenever a file of this package does: from the name, size and modification time of each. And when other
    packages, which may add units, are installed, upgraded or removed. A process loads its code once and is of one stamp
    while it looks for packages at the same places."""
    return _stamp(tuple(sys.path))


@cache
def _stamp(places: tuple[str, ...]) -> str:
    parts = sorted({*_files(str(Path(__file__).parents[1])), *_installed(places)})
    return hashlib.blake2b("|".join(parts).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def extended() -> bool:
    """Whether another package adds a unit of any kind: the stamp does not know its files."""
    return adds_units(tuple(sys.path))


def _installed(places: tuple[str, ...]) -> Iterator[str]:
    """Names of packages with their versions; quicker than `importlib.metadata`, which reads each."""
    for folder in places:
        try:
            with os.scandir(folder or ".") as entries:
                yield from (entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue


def _files(folder: str) -> list[str]:
    stamps: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    stamps += _files(entry.path)
            else:
                seen = entry.stat()
                stamps.append(f"{entry.path}:{seen.st_size}:{seen.st_mtime_ns}")
    return stamps
