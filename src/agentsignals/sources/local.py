"""Files and folders of this machine, and agents' own folders by name. A database is listed as a folder of sessions, and
a repository's branch of checkpoints as files of the folder that it is in."""

import errno
import glob
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from operator import attrgetter
from pathlib import Path

import msgspec

from agentsignals.formats import homes
from agentsignals.sources import (
    DATABASE_SUFFIXES,
    MACHINE_ERRNOS,
    SIDECAR_SUFFIXES,
    RawFile,
    Source,
    Unreadable,
    contents,
    internal_error,
    is_database,
    is_sidecar,
    key_of,
    no_space_error,
    nonblocking,
    path_of,
    storable_text,
    uri_of,
)

REPEATED_FILE = "repeated_file"
"""Reason not to list a file that is listed under another name."""
SKIPPED_FOLDERS = frozenset((".git", "node_modules", ".venv", "__pycache__"))
"""Folders that hold no sessions of an agent."""


def accepts(spec: str) -> bool:
    try:
        return os.path.lexists(Path(spec).expanduser()) or spec in homes()
    except (ValueError, RuntimeError):  # a NUL in it; the home of a user that doesn't exist
        return False


def find(spec: str) -> Iterator[RawFile | Unreadable]:
    """List every file under a path in order of name, by the absolute path. An agent's name stands for its folders."""
    is_agent = not os.path.lexists(spec) and spec in homes()
    for root in existing_paths(homes()[spec]) if is_agent else [Path(spec).expanduser()]:
        place = os.path.abspath(root)
        named = storable_text(spec if is_agent else place)
        if os.path.isdir(root):
            yield from _walk(place, named)
        elif os.path.lexists(root):
            yield from _files(place, named)


def existing_paths(patterns: Iterable[str]) -> list[Path]:
    """Return the files and folders that exist, of an agent's homes.

    `~` or `$VARIABLE` may stand for the first folder, and `*` in the names below it. `FILE.json:KEY/BELOW` is BELOW
    in each folder that the file lists as KEY.
    """
    there = (sorted(glob.glob(named)) for pattern in patterns for named in _named(pattern))
    return list(dict.fromkeys(Path(os.path.normpath(place)) for group in there for place in group))


def _named(pattern: str) -> Iterator[str]:
    """Expand a home to patterns for `glob`. A list that can't be read stands for itself, so its error is reported."""
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
    """Return the folders that a JSON file lists as `key` at any depth; a relative one is below the `path` beside it.
    None if the file can't be read."""
    try:
        with open(file, "rb", opener=nonblocking) as handle:
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
    """Return the agents whose folders or databases exist on this machine."""
    there = {name: existing_paths(patterns) for name, patterns in homes().items()}
    return {name: paths for name, paths in there.items() if paths}


def _walk(root: str, spec: str) -> Iterator[RawFile | Unreadable]:
    """List files depth first, without recursion: folders may be nested deeper than calls can be. A file counts once,
    however many links to it there are."""
    left = [(root, True, False)]
    links = Links(root)
    while left:
        path, is_folder, is_link = left.pop()
        if not is_folder:
            if not (is_link or links.caches or path.endswith(_OF_DATABASES)):  # as nearly all files are
                yield _file(path, spec)
                continue
            if links.repeat(path, is_link):
                yield Unreadable(uri_of(path), spec, REPEATED_FILE)
                continue
            for file in _files(path, spec):
                is_linked = isinstance(file, Unreadable) and file.reason == "linked_folder"
                if not (is_linked and links.is_walked(os.path.realpath(path))):
                    yield file  # else a link to a folder that is walked anyway
            continue
        try:
            with os.scandir(path) as entries:
                inside = list(entries)
        except OSError as problem:
            yield Unreadable(uri_of(path), spec, _reason(problem))
            continue
        if len(inside) > 1:
            inside.sort(key=_NAME, reverse=True)
        names = [entry.name for entry in inside]
        if "blobs" in names and "snapshots" in names:  # a cache of the Hub's: the files are links to blobs
            links.caches.append(path + os.sep)
            left += [(commit, True, False) for commit in reversed(commits_in(path))]
            continue
        is_bare = "HEAD" in names and "objects" in names and "refs" in names
        if is_bare or ".git" in names:
            from agentsignals.sources import git  # noqa: PLC0415  (which loads what files alone need not)

            if git.holds_checkpoints(path if is_bare else os.path.join(path, ".git")):
                yield from git.find_in(path, spec)
                if is_bare:
                    continue
        for entry in inside:
            try:
                is_inner, is_link = entry.is_dir(follow_symlinks=False), entry.is_symlink()
            except OSError:  # what is wrong is said when it is looked at as a file
                is_inner = is_link = False
            if not is_inner or entry.name not in SKIPPED_FOLDERS:
                left.append((entry.path, is_inner, is_link))


def commits_in(cache: str) -> list[str]:
    """Return the snapshots of a data set in a cache of the Hub's: that of its main branch first, then the newest."""
    folder = os.path.join(cache, "snapshots")
    main = ""
    with suppress(OSError, UnicodeDecodeError):
        main = Path(cache, "refs", "main").read_text("utf-8").strip()
    with suppress(OSError):
        commits = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
        commits.sort(key=lambda entry: (entry.name != main, -entry.stat().st_mtime_ns, entry.name))
        return [entry.path for entry in commits]
    return []


class Links:
    """The files that a walk has met: a link to one of them, or an older commit's file of its path, repeats it."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._met: set[str] = set()
        self.caches: list[str] = []
        """Folders of data sets in caches of the Hub's."""

    def is_walked(self, real: str) -> bool:
        """Return whether a walk comes to a file or folder by its own path, too."""
        if not real.startswith(self._root + os.sep):
            return False
        inner = real[len(self._root) :].split(os.sep)
        return SKIPPED_FOLDERS.isdisjoint(inner) and not any(real.startswith(f"{c}blobs{os.sep}") for c in self.caches)

    def repeat(self, path: str, is_link: bool) -> bool:
        """Return whether a file is listed under another name, or in a newer commit."""
        names = [os.path.realpath(path)] if is_link else []
        if is_link and os.path.isfile(names[0]) and self.is_walked(names[0]):
            return True
        for cache in self.caches:
            if path.startswith(cache):
                names.append(cache + os.sep + os.sep.join(path[len(cache) :].split(os.sep)[2:]))
        is_met = not self._met.isdisjoint(names)
        self._met.update(names)
        return is_met


_NAME = attrgetter("name")
_OF_DATABASES = (*DATABASE_SUFFIXES, *SIDECAR_SUFFIXES)


def _files(path: str, spec: str) -> Iterator[RawFile | Unreadable]:
    """List a file, or the sessions of a database and nothing of its sidecar files."""
    if is_sidecar(path):
        return
    file = _file(path, spec)
    if isinstance(file, RawFile) and is_database(path):
        from agentsignals.sources import databases  # noqa: PLC0415  (loaded where such a file is met)

        yield from databases.sessions_of(file)
    else:
        yield file


def _file(path: str, spec: str) -> RawFile | Unreadable:
    """List a file by its type. Pipes, sockets and devices are never opened: they may wait or give bytes for ever."""
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
            if file.container:
                from agentsignals.sources import databases  # noqa: PLC0415  (as above)

                yield databases.contents(file, limit)
                continue
            with open(path_of(file.uri), "rb", buffering=0, opener=nonblocking) as handle:
                seen = os.fstat(handle.fileno())
                is_file = stat.S_ISREG(seen.st_mode)
                data = contents(file, handle, seen.st_size, limit) if is_file else None
            yield data if data is not None else Unreadable(file.uri, file.spec, "not_a_file")
        except OSError as problem:
            if problem.errno in MACHINE_ERRNOS:
                raise no_space_error(file.uri, problem) from problem
            if problem.errno == errno.ENOMEM:
                yield internal_error(file.uri, file.spec, problem)
            else:
                yield Unreadable(file.uri, file.spec, _reason(problem))


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


def place(file: RawFile) -> Path | str:
    """Return the path of a file that is not part of a database."""
    return Path(path_of(file.uri)) if not file.container else "elsewhere"


SOURCE = Source("local", accepts, find, read, place=place)


_SEVERAL = 8
"""Files of a folder from which it is listed."""


def deleted_files(uris: Iterable[str]) -> set[str]:
    """Return the files, and the sessions of databases, that no longer exist."""
    gone: set[str] = set()
    held: dict[str, set[str] | None] = {}
    by_folder: dict[str, list[str]] = {}
    for uri in uris:
        by_folder.setdefault(uri.rpartition("/")[0], []).append(uri)
    for folder, files in by_folder.items():
        unseen = files
        if len(files) >= _SEVERAL and "//" not in f"{folder}/"[1:]:
            with suppress(OSError):  # one look into a folder takes less than one for each of its files
                there = set(os.listdir(folder))
                unseen = [uri for uri in files if uri[len(folder) + 1 :] not in there]
        for uri in unseen:
            path = path_of(uri)
            if not os.path.lexists(path):
                gone.add(uri)
            elif (key := key_of(uri)) is not None:
                if path not in held:
                    from agentsignals.sources import databases  # noqa: PLC0415  (as above)

                    held[path] = databases.session_ids(path)
                ids = held[path]
                if ids is not None and key not in ids:
                    gone.add(uri)
    return gone
