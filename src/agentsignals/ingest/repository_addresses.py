"""Repositories that somebody named: paths, addresses, folders of clones, lists, saved search results."""

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
"""Levels of folders that a folder of clones is searched: OWNER/NAME."""


class NamedRepository(Struct, frozen=True):
    """A repository that somebody named."""

    place: str
    """A path or an address."""
    is_fork: bool = False
    """True where a search result says so."""


def named_repositories(wanted: Iterable[str]) -> list[NamedRepository]:
    """Return each repository named, once, in order. SourceError for a name that is not understood."""
    by_place: dict[str, NamedRepository] = {}
    for place in wanted:
        for candidate in _of(place):
            earlier = by_place.get(candidate.place)
            by_place[candidate.place] = candidate if earlier is None or candidate.is_fork else earlier
    return list(by_place.values())


def _of(place: str) -> Iterator[NamedRepository]:
    plain = place.removeprefix("git:") if not place.startswith("git://") else place
    if is_address(plain):
        yield NamedRepository(plain)
        return
    path = Path(plain).expanduser()
    if os.path.isfile(path):  # noqa: PTH113  (Path.is_file raises for a name that is too long)
        # Read a list: a repository a line (`#` begins a comment), or JSON with objects that name
        # repositories.
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
            raise SourceError(
                f"{str(path)!r} names no repository.", "Write one a line: a path, an address or OWNER/NAME."
            )
        yield from listed
    elif os.path.isdir(path):  # noqa: PTH112
        if objects.locate(path) is not None and _is_own(path):
            yield NamedRepository(str(path.absolute()))
            return
        inside = [NamedRepository(str(p)) for p in _clones(path.absolute(), _DEEP)]
        if not inside:
            raise SourceError(f"{place!r} holds no Git repository.", "Name a repository, or a folder of clones.")
        yield from inside
    elif _OWNER_AND_NAME.fullmatch(plain):
        yield NamedRepository(f"https://github.com/{plain}")
    else:
        raise SourceError(
            f"Nothing is found under {place!r}.",
            "Name a repository's folder or address, OWNER/NAME, a folder of clones, a list, or a saved search result.",
        )


def _is_own(path: Path) -> bool:
    """True for a folder that is a repository itself, not just inside one."""
    return (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())


def _clones(folder: Path, deep: int) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if not path.is_dir() or path.is_symlink():
            continue
        if _is_own(path):
            yield path
        elif deep > 1:
            yield from _clones(path, deep - 1)


def _candidate(word: str, folder: Path) -> NamedRepository:
    if is_address(word):
        return NamedRepository(word)
    local = (folder / Path(word).expanduser()).absolute()
    if os.path.isdir(local):  # noqa: PTH112  (Path.is_dir raises for a name that is too long)
        return NamedRepository(str(local))
    if _OWNER_AND_NAME.fullmatch(word):
        return NamedRepository(f"https://github.com/{word}")
    return NamedRepository(str(local))


def _named(value: Any) -> Iterator[NamedRepository]:
    """Repositories in a search answer: its items, the repository of a found file, or a plain list."""
    if isinstance(value, list):
        for item in value:
            yield from _named(item)
    elif isinstance(value, str) and (is_address(value) or _OWNER_AND_NAME.fullmatch(value)):
        yield NamedRepository(value if is_address(value) else f"https://github.com/{value}")
    elif isinstance(value, dict):
        if isinstance(items := value.get("items") or value.get("repositories"), list):
            yield from _named(items)
        elif isinstance(inner := value.get("repository"), dict):
            yield from _named(inner)
        else:
            fork = value.get("fork", value.get("is_fork", value.get("isFork"))) is True
            texts = {key: text for key, text in value.items() if isinstance(text, str)}
            addresses = [texts[key] for key in ("clone_url", "html_url", "url") if key in texts]
            addresses = [text for text in addresses if is_address(text) and "://api." not in text]
            names = [texts[key] for key in ("full_name", "nameWithOwner", "name") if key in texts]
            names = [f"https://github.com/{name}" for name in names if _OWNER_AND_NAME.fullmatch(name)]
            for address in [*addresses, *names][:1]:
                yield NamedRepository(address, fork)


class DiscoveredRepository(Struct, kw_only=True):
    """A repository and what its refs tell. Nothing is known of a remote one before it is fetched."""

    place: str
    is_here: bool
    is_fork: bool = False
    layouts: dict[str, int] = field(default_factory=dict)
    """Number of refs by the way they keep checkpoints: `sharded` (a branch or ref of many), `rooted` (a ref each),
    `shadow`."""
    commits: int | None = None
    naming: int | None = None
    """Commits whose message names a checkpoint."""
    trouble: str | None = None


def discover(wanted: Iterable[str]) -> list[DiscoveredRepository]:
    """Look into each repository named, before anything is read or fetched."""
    return [_looked_at(c.place, c.is_fork) for c in named_repositories(wanted)]


def _looked_at(place: str, is_fork: bool) -> DiscoveredRepository:
    if is_address(place):
        return DiscoveredRepository(place=place, is_here=False, is_fork=is_fork)
    repository = DiscoveredRepository(place=place, is_here=True, is_fork=is_fork)
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
