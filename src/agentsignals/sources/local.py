"""Files and folders on this machine, and the agents' own folders by name. A database is as a folder of sessions."""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path

import msgspec

from agentsignals.formats import homes
from agentsignals.sources import RawFile, Source, Unreadable, databases, key_of, path_of, sound, uri_of
from agentsignals.sources.contents import OF_THE_MACHINE, contents, no_space, without_waiting

SKIPPED_FOLDERS = frozenset((".git", "node_modules", ".venv", "__pycache__"))
"""What lies in these is no agent's session."""


def accepts(spec: str) -> bool:
    try:
        return os.path.lexists(Path(spec).expanduser()) or spec in homes()
    except (ValueError, RuntimeError):  # a NUL in it; the home of a user that doesn't exist
        return False


def find(spec: str) -> Iterator[RawFile | Unreadable]:
    """Every file under a path, in order of name; an agent's name stands for its folders."""
    for root in places(homes()[spec]) if _is_agent(spec) else [Path(spec).expanduser()]:
        if os.path.isdir(root):
            yield from _walk(os.path.abspath(root), sound(spec))
        elif os.path.lexists(root):
            yield from _files(os.path.abspath(root), sound(spec))


def places(patterns: Iterable[str]) -> list[Path]:
    """The files and folders that are there, of those that an agent's homes name: `~` or `$VARIABLE` may stand for the
    first folder, and `*` in the names below it; `FILE.json:KEY/BELOW` is BELOW in each folder that it lists as KEY."""
    there = (sorted(glob.glob(named)) for pattern in patterns for named in _named(pattern))
    return list(dict.fromkeys(Path(os.path.normpath(place)) for group in there for place in group))


def _named(pattern: str) -> Iterator[str]:
    """What a home stands for, for `glob`. A list that can't be read is a home by itself, and what is wrong is told."""
    path, is_list, listed = pattern.partition(_LIST)
    folder, between, below = path.partition("/")
    named = glob.escape(os.path.expanduser(os.path.expandvars(folder))) + between + below
    if not is_list:
        yield named
        return
    key, _, below = listed.partition("/")
    for file in glob.glob(named + _LIST[:-1]):
        folders = _listed(file, key)
        yield from [glob.escape(file)] if folders is None else (f"{glob.escape(f)}/{below}" for f in folders)


_LIST = ".json:"
_MOST_LISTED_BYTES = 16 * 1024 * 1024


def _listed(file: str, key: str) -> list[str] | None:
    """The folders that a file lists as `key`, wherever that stands; a relative one is below the `path` beside it. None
    where it can't be read."""
    try:
        with open(file, "rb", opener=without_waiting) as handle:
            left = [msgspec.json.decode(handle.read(_MOST_LISTED_BYTES))]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    folders: list[str] = []
    while left:
        value = left.pop()
        if isinstance(value, dict):
            if isinstance(folder := value.get(key), str) and folder and "\0" not in folder:
                beside = value.get("path")
                folders.append(os.path.join(beside if isinstance(beside, str) else "", folder))
            left += value.values()
        elif isinstance(value, list):
            left += value
    return [folder for folder in dict.fromkeys(folders) if os.path.isabs(folder)]


def found_homes() -> dict[str, list[Path]]:
    """The agents whose folders or databases are on this machine."""
    there = {name: places(patterns) for name, patterns in homes().items()}
    return {name: paths for name, paths in there.items() if paths}


def _is_agent(spec: str) -> bool:
    return not os.path.lexists(spec) and spec in homes()


def _walk(root: str, spec: str) -> Iterator[RawFile | Unreadable]:
    """Depth first, by a list of what is still to be seen: folders may be nested deeper than calls can be."""
    left = [(root, True)]
    while left:
        path, is_folder = left.pop()
        if not is_folder:
            for file in _files(path, spec):
                if not (isinstance(file, Unreadable) and file.reason == "linked_folder" and _inside(path, root)):
                    yield file
            continue
        try:
            with os.scandir(path) as entries:
                inside = list(entries)
        except OSError as problem:
            yield Unreadable(uri_of(path), spec, _reason(problem))
            continue
        if len(inside) > 1:
            inside.sort(key=_NAME, reverse=True)
        for entry in inside:
            if not _is_folder(entry):
                left.append((entry.path, False))
            elif entry.name not in SKIPPED_FOLDERS:
                left.append((entry.path, True))


_NAME = attrgetter("name")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False  # what is wrong is said when it is looked at as a file


def _inside(link: str, root: str) -> bool:
    """Whether a link leads to a folder that is read anyway, below the one that was named."""
    return os.path.realpath(link).startswith(os.path.realpath(root) + os.sep)


def _files(path: str, spec: str) -> Iterator[RawFile | Unreadable]:
    """A file; of a database the sessions, and nothing of what belongs to it."""
    if databases.is_beside(path):
        return
    file = _file(path, spec)
    if isinstance(file, RawFile) and databases.is_database(path):
        yield from databases.listed(file)
    else:
        yield file


def _file(path: str, spec: str) -> RawFile | Unreadable:
    """A file by what it is: pipes, sockets and devices are never opened, they may wait or give bytes for ever."""
    try:
        seen = os.stat(path)
    except OSError as problem:
        dangling = problem.errno == errno.ENOENT and os.path.islink(path)
        return Unreadable(uri_of(path), spec, "dangling_link" if dangling else _reason(problem))
    if not stat.S_ISREG(seen.st_mode):
        return Unreadable(uri_of(path), spec, "linked_folder" if stat.S_ISDIR(seen.st_mode) else "not_a_file")
    return RawFile(uri=uri_of(path), source="local", spec=spec, bytes=seen.st_size, stamp=seen.st_mtime_ns)


def read(files: list[RawFile], limit: int | None) -> Iterator[bytes | Unreadable]:
    for file in files:
        try:
            yield databases.contents(file, limit) if file.container else _contents(file, limit)
        except OSError as problem:
            if problem.errno in OF_THE_MACHINE:
                raise no_space(file.uri, problem) from problem
            yield Unreadable(file.uri, file.spec, _reason(problem))


def _contents(file: RawFile, limit: int | None) -> bytes | Unreadable:
    with open(path_of(file.uri), "rb", buffering=0, opener=without_waiting) as handle:
        seen = os.fstat(handle.fileno())
        if not stat.S_ISREG(seen.st_mode):
            return Unreadable(file.uri, file.spec, "not_a_file")
        return contents(file, handle, seen.st_size, limit)


def _reason(problem: OSError) -> str:
    return _REASONS.get(problem.errno or 0, "unreadable")


_REASONS = {
    errno.EACCES: "no_permission",
    errno.EPERM: "no_permission",
    errno.ENOENT: "file_gone",
    errno.ENOTDIR: "file_gone",
    errno.EISDIR: "not_a_file",
    errno.ENXIO: "not_a_file",  # a socket
    errno.ELOOP: "link_loop",
    errno.ENAMETOOLONG: "path_too_long",
}
SOURCE = Source("local", accepts, find, read)


def deleted_files(uris: Iterable[str]) -> set[str]:
    """Those of these files, and of these sessions of databases, that are gone."""
    gone: set[str] = set()
    held: dict[str, set[str] | None] = {}
    for uri in uris:
        path = path_of(uri)
        if not os.path.lexists(path):
            gone.add(uri)
        elif (key := key_of(uri)) is not None:
            if path not in held:
                held[path] = databases.session_ids(path)
            ids = held[path]
            if ids is not None and key not in ids:
                gone.add(uri)
    return gone
