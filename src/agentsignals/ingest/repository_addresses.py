"""Where repositories are named: paths, addresses, folders of clones, lists, saved results of a search."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.changes import git
from agentsignals.changes import git as objects
from agentsignals.changes.git import GitError
from agentsignals.errors import SourceError
from agentsignals.sources import git as checkpoints
from agentsignals.sources.git import is_address

_OWNER_AND_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9._-]{1,100}")
_LARGEST_LIST = 64 * 1024 * 1024
_DEEP = 2
"""Levels of folders that a folder of clones is searched for: OWNER/NAME."""


class Candidate(Struct, frozen=True):
    """A repository that somebody named."""

    place: str
    """A path or an address."""
    is_fork: bool = False
    """Only a search result says so."""


def candidates(wanted: Iterable[str]) -> list[Candidate]:
    """Each repository named, once, in order. SourceError for a name that is none of what this understands."""
    by_place: dict[str, Candidate] = {}
    for place in wanted:
        for candidate in _of(place):
            earlier = by_place.get(candidate.place)
            by_place[candidate.place] = candidate if earlier is None or candidate.is_fork else earlier
    return list(by_place.values())


def _of(place: str) -> Iterator[Candidate]:
    plain = place.removeprefix("git:") if not place.startswith("git://") else place
    if is_address(plain):
        yield Candidate(plain)
        return
    path = Path(plain).expanduser()
    if os.path.isfile(path):  # noqa: PTH113  (Path.is_file raises for a name that is too long)
        yield from _of_list(path)
    elif os.path.isdir(path):  # noqa: PTH112
        if objects.locate(path) is not None and _is_own(path):
            yield Candidate(str(path.absolute()))
            return
        inside = [Candidate(str(p)) for p in _clones(path.absolute(), _DEEP)]
        if not inside:
            raise SourceError(f"{place!r} holds no Git repository.", "Name a repository, or a folder of clones.")
        yield from inside
    elif _OWNER_AND_NAME.fullmatch(plain):
        yield Candidate(f"https://github.com/{plain}")
    else:
        raise SourceError(
            f"Nothing is found under {place!r}.",
            "Name a repository's folder or address, OWNER/NAME, a folder of clones, a list, or a saved search result.",
        )


def _is_own(path: Path) -> bool:
    """Whether a folder is a repository itself, not just inside one."""
    return (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())


def _clones(folder: Path, deep: int) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if not path.is_dir() or path.is_symlink():
            continue
        if _is_own(path):
            yield path
        elif deep > 1:
            yield from _clones(path, deep - 1)


def _of_list(path: Path) -> Iterator[Candidate]:
    """A line a repository (`#` begins a remark), or a JSON document in which objects say where their repository is."""
    with path.open("rb") as file:
        data = file.read(_LARGEST_LIST)
    try:
        listed = list(_named(msgspec.json.decode(data)))
    except (msgspec.DecodeError, RecursionError):
        listed = []
        for line in data.decode("utf-8", "replace").splitlines():
            word = line.partition("#")[0].strip()
            if word:
                listed.append(_candidate(word, path.parent))
    if not listed:
        raise SourceError(f"{str(path)!r} names no repository.", "Write one a line: a path, an address or OWNER/NAME.")
    yield from listed


def _candidate(word: str, folder: Path) -> Candidate:
    if is_address(word):
        return Candidate(word)
    local = (folder / Path(word).expanduser()).absolute()
    if os.path.isdir(local):  # noqa: PTH112  (Path.is_dir raises for a name that is too long)
        return Candidate(str(local))
    if _OWNER_AND_NAME.fullmatch(word):
        return Candidate(f"https://github.com/{word}")
    return Candidate(str(local))


def _named(value: Any) -> Iterator[Candidate]:
    """Repositories in the answer of a search: its items, the repository of a found file, or a plain list."""
    if isinstance(value, list):
        for item in value:
            yield from _named(item)
    elif isinstance(value, str) and (is_address(value) or _OWNER_AND_NAME.fullmatch(value)):
        yield Candidate(value if is_address(value) else f"https://github.com/{value}")
    elif isinstance(value, dict):
        if isinstance(items := value.get("items") or value.get("repositories"), list):
            yield from _named(items)
        elif isinstance(inner := value.get("repository"), dict):
            yield from _named(inner)
        else:
            yield from _of_object(value)


def _of_object(record: dict[str, Any]) -> Iterator[Candidate]:
    fork = record.get("fork", record.get("is_fork", record.get("isFork"))) is True
    for key in ("clone_url", "html_url", "url"):
        address = record.get(key)
        if isinstance(address, str) and is_address(address) and "://api." not in address:
            yield Candidate(address, fork)
            return
    for key in ("full_name", "nameWithOwner", "name"):
        name = record.get(key)
        if isinstance(name, str) and _OWNER_AND_NAME.fullmatch(name):
            yield Candidate(f"https://github.com/{name}", fork)
            return


# Which of the repositories that somebody names hold checkpoints, before anything of them is read or fetched.


class Discovered(Struct, kw_only=True):
    """A repository, and what its refs say. Of one behind an address nothing is known before it is fetched."""

    place: str
    is_here: bool
    is_fork: bool = False
    layouts: dict[str, int] = field(default_factory=dict)
    """How many refs keep checkpoints in which way: `sharded` (a branch or ref of many), `rooted` (a ref each),
    `shadow`."""
    commits: int | None = None
    naming: int | None = None
    """Commits whose message names a checkpoint."""
    trouble: str | None = None


def discovered(wanted: Iterable[str]) -> list[Discovered]:
    """Each repository named by paths, addresses, folders of clones, lists or saved search results."""
    return [_looked_at(c.place, c.is_fork) for c in candidates(wanted)]


def _looked_at(place: str, is_fork: bool) -> Discovered:
    if is_address(place):
        return Discovered(place=place, is_here=False, is_fork=is_fork)
    repository = Discovered(place=place, is_here=True, is_fork=is_fork)
    located = objects.locate(Path(place))
    if located is None:
        repository.trouble = "no Git repository"
        return repository
    try:
        kept = (checkpoints.checkpoint_layout(name) for name, _ in objects.refs(located[0]))
        repository.layouts = dict(sorted(Counter(layout[0] for layout in kept if layout).items()))
        commits = git.commits(located[0])
    except GitError as failed:
        repository.trouble = str(failed) or "git said nothing"
        return repository
    repository.commits, repository.naming = len(commits), sum(bool(c.checkpoint_ids) for c in commits)
    return repository
