"""What changed in the folders that a store was read from: the few files at work often, all of them seldom."""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Iterable
from pathlib import Path

from agentsignals.errors import SourceError
from agentsignals.formats import homes
from agentsignals.sources import RawFile, databases, local, path_of
from agentsignals.store.manifest import Manifest

AT_WORK = 32
"""The files last changed: who writes at all writes there, and their folders show a file that is new."""
SHARE = 0.01
"""Looking takes no more of one core: 27,300 files take 0.5 s and are looked at once a minute; 300 each second."""

_Seen = tuple[int, int | None]


def sources_of(manifest: Manifest) -> tuple[list[str], list[str]]:
    """The specifications on this machine that a store was read from; and those that name another place from here (a
    relative path, read from another folder) or none."""
    example: dict[str, str] = {}
    for uri, entry in manifest.files.items():
        if entry.source == "local":
            example.setdefault(entry.spec, uri)
    here = {spec for spec, uri in example.items() if _names(spec, path_of(uri))}
    return sorted(here), sorted(example.keys() - here)


def _names(spec: str, path: str) -> bool:
    """Whether a specification, read here and now, is where that file lies."""
    return local.accepts(spec) and any(path == root or path.startswith(root + os.sep) for root in _roots(spec))


def _roots(spec: str) -> list[str]:
    """The files and folders that a specification stands for."""
    places = [Path(spec)] if os.path.lexists(spec) or spec not in homes() else local.places(homes()[spec])
    return [os.path.normpath(place.expanduser().absolute()) for place in places]


class Looking:
    """Looks at local sources again and again. What is as the store has it is no change; each is reported once."""

    def __init__(self, specs: Iterable[str], manifest: Manifest) -> None:
        self._roots = {spec: frozenset(_roots(spec)) for spec in specs}
        self._seen: dict[str, _Seen] = {uri: (e.bytes, e.stamp) for uri, e in manifest.files.items()}
        self._hot: dict[str, tuple[str, _Seen | None]] = {}
        """Paths of the files at work and of the folders above them: of which specification, and as they were."""
        self._next_s = 0.0

    def changed(self) -> set[str]:
        """The specifications under which a file is new or another than at the last look."""
        specs = set()
        for path, (spec, before) in self._hot.items():
            if (now := _state(path)) != before:
                self._hot[path] = spec, now
                specs.add(spec)
        return specs | self._changed_anywhere() if time.monotonic() >= self._next_s else specs

    def _changed_anywhere(self) -> set[str]:
        began = time.thread_time()
        specs: set[str] = set()
        latest: list[tuple[int, str, str]] = []
        held: dict[tuple[str, str], int] = {}
        for spec in self._roots:
            try:
                for file in local.find(spec):
                    if isinstance(file, RawFile):
                        if self._seen.get(file.uri) != (now := (file.bytes, file.stamp)):
                            self._seen[file.uri] = now
                            specs.add(spec)
                        if file.container:  # of all its sessions a database stands once
                            at = path_of(file.uri), spec
                            held[at] = max(held.get(at, 0), file.stamp or 0)
                        else:
                            _keep(latest, (file.stamp or 0, path_of(file.uri), spec))
            except (OSError, SourceError):  # a folder that goes while it is listed is looked at again next time
                continue
        for (path, spec), stamp in held.items():
            _keep(latest, (stamp, path, spec))
        self._hot = {}
        for _, path, spec in latest:
            log = (f"{path}-wal",) if path.endswith(databases.NAMES) else ()
            for place in (path, *log, *_above(path, self._roots[spec])):
                self._hot.setdefault(place, (spec, _state(place)))
        self._next_s = time.monotonic() + (time.thread_time() - began) / SHARE
        return specs


def _keep(latest: list[tuple[int, str, str]], file: tuple[int, str, str]) -> None:
    if len(latest) < AT_WORK:
        heapq.heappush(latest, file)
    elif file > latest[0]:
        heapq.heapreplace(latest, file)


def _above(path: str, roots: frozenset[str]) -> list[str]:
    """The folders from the file up to what was named."""
    folders: list[str] = []
    while path not in roots and (above := path.rpartition("/")[0]):
        folders.append(path := above)
    return folders


def _state(path: str) -> _Seen | None:
    try:
        now = Path(path).stat()
    except OSError:
        return None
    return now.st_size, now.st_mtime_ns


def sessions_changed(before: Manifest, after: Manifest) -> list[str]:
    """The sessions that are new, or read anew from a file that grew, in the later of two states of a store."""
    families = {
        entry.family
        for uri, entry in after.files.items()
        if (was := before.files.get(uri)) is not entry
        and (was is None or (was.bytes, was.stamp, was.family) != (entry.bytes, entry.stamp, entry.family))
    }
    return [
        session_id
        for session_id, entry in after.sessions.items()
        if session_id not in before.sessions or entry.family in families
    ]
