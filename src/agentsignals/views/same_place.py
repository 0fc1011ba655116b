"""Which sessions lie in one repository, however their data came in: by its name, its folders, its history, its files.

A log names the folder it ran in, some the repository, too. Clones of one repository have other folders, on one machine
or several; their sessions are of one place all the same, and whoever takes them for many has intervals that are too
narrow (design/statistics.md#places).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import combinations

from msgspec import Struct

from agentsignals.views.history import place_of

SHARED_COMMITS = 2
"""Abbreviated commits that two folders' logs have in common: of one, chance is not out of the question."""
SHARED_FILES_OF_A_NAME = 2
"""Changed files in common, of two folders that are called the same."""
SHARED_FILES, SHARED_SHARE = 3, 0.5
"""Of two that are not: so many, and so large a part of the smaller one's."""
DEEP = 3
"""Parts of a path from which it tells one repository from another; `package.json` and `src/main.py` do not."""
MOST_HOLDERS = 20
"""A file or a commit that more places have tells none apart."""


class Site(Struct, kw_only=True):
    """What a session says of where it lies."""

    session_id: str
    repo: str | None = None
    cwd: str | None = None
    remotes: list[str] = []
    """Names (`owner/name`) of the repositories that Git spoke of in its folder."""
    commits: list[str] = []
    """Seven digits each."""
    files: list[str] = []
    """Changed ones, relative to its folder."""
    sessions: int = 1
    """Of how many sessions of one repository and folder this is what they say."""


class _Circles:
    """Repositories and folders that are one place. Two repositories that have names of their own are never one."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}
        self._named: dict[str, str] = {}

    def root(self, key: str) -> str:
        while (above := self._above.get(key, key)) != key:
            self._above[key] = self._above.get(above, above)
            key = above
        return key

    def name(self, root: str) -> str | None:
        """The repository that a circle is named after."""
        return self._named.get(root)

    def add_repository(self, key: str) -> None:
        self._named.setdefault(self.root(key), key)

    def unite(self, this: str, other: str) -> None:
        first, second = sorted((self.root(this), self.root(other)))
        names = {name for root in (first, second) if (name := self._named.get(root)) is not None}
        if first != second and len(names) < 2:
            self._above[second] = first
            if names:
                self._named[first] = names.pop()


def places(sites: Iterable[Site]) -> dict[str, str]:
    """The place of each session that names a folder or a repository. Independent of their order."""
    listed = sorted(sites, key=lambda site: site.session_id)
    circles = _Circles()
    keys = {site.session_id: key for site in listed if (key := _key(site)) is not None}
    of_folder: dict[str, list[Site]] = defaultdict(list)
    for site in listed:
        if site.repo:
            circles.add_repository(keys[site.session_id])
        if site.cwd and (folder := place_of(None, site.cwd)) is not None:
            of_folder[folder].append(site)
    for folder, there in sorted(of_folder.items()):
        names = {site.repo.lower() for site in there if site.repo} or {n.lower() for s in there for n in s.remotes}
        if len(names) == 1:  # a folder that held several (`/workspace`) tells nothing of those that name none
            name = f"r:{names.pop()}"
            circles.add_repository(name)
            circles.unite(name, f"f:{folder}")
    _by_content(circles, listed, keys)
    members: dict[str, Counter[str]] = defaultdict(Counter)
    for site in listed:
        if (key := keys.get(site.session_id)) is not None:
            members[circles.root(key)][key] += site.sessions
    called = {
        root: (circles.name(root) or max(sorted(counted), key=counted.__getitem__))[2:]
        for root, counted in members.items()
    }
    return {session_id: called[circles.root(key)] for session_id, key in keys.items()}


def _key(site: Site) -> str | None:
    if site.repo:
        return f"r:{site.repo.lower()}"
    folder = place_of(None, site.cwd)
    return f"f:{folder}" if folder is not None else None


def _by_content(circles: _Circles, listed: list[Site], keys: dict[str, str]) -> None:
    commits: dict[str, set[str]] = defaultdict(set)
    files: dict[str, set[str]] = defaultdict(set)
    for site in listed:
        if (key := keys.get(site.session_id)) is not None:
            commits[circles.root(key)] |= set(site.commits)
            files[circles.root(key)] |= {path for path in site.files if tells(path)}
    for (first, second), n in sorted(_in_common(commits).items()):
        if n >= SHARED_COMMITS:
            circles.unite(first, second)
    for (first, second), n in sorted(_in_common(files).items()):
        fewer = min(len(files[first]), len(files[second]))
        if (n >= SHARED_FILES_OF_A_NAME and _last(first) == _last(second)) or (
            n >= SHARED_FILES and n >= SHARED_SHARE * fewer
        ):
            circles.unite(first, second)


def _in_common(held: dict[str, set[str]]) -> Counter[tuple[str, str]]:
    """How many things each two places have in common."""
    holders: dict[str, list[str]] = defaultdict(list)
    for place in sorted(held):
        for thing in held[place]:
            holders[thing].append(place)
    return Counter(
        pair for having in holders.values() if 1 < len(having) <= MOST_HOLDERS for pair in combinations(having, 2)
    )


def tells(path: str) -> bool:
    """Whether a path tells one repository from another."""
    parts = path.split("/")
    return len(parts) >= DEEP and parts[0] not in ("", "~", "..") and not any(part.startswith(".") for part in parts)


def _last(key: str) -> str:
    return key.rstrip("/").rsplit("/", 1)[-1].lower()
