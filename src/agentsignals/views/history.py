"""A session among the others of its place: the ones before it, the one after it, and which place it belongs to.

Pure and independent of the order of its input; O(n log n). Subagents' sessions never count as a person's return.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import combinations
from struct import pack, unpack
from typing import NamedTuple
from zlib import crc32

from msgspec import Struct, field

from agentsignals.model.lazy import deferred_pattern

_HOME = deferred_pattern(r"(?:[A-Za-z]:)?[\\/](?:Users|home)[\\/]([^\\/]+)")
_WORKTREE = re.compile(r"(?:[\\/](?:\.claude[\\/]worktrees|\.worktrees)|(?<=[^\\/])(?:__|\.)worktrees)[\\/].+$")
"""Below a folder, or beside it under its name (`shop__worktrees/fix`)."""
FEW_WORDS = 3
"""Prompts of fewer words ("commit this") are alike without being about the same thing."""
SHORT_LINE = 8
"""A line of no more characters (`return`, `},`) tells no place (design/signals.md#regions)."""
MOST_PRINTS = 2_000
"""Prints kept of one file in one session."""
AHEAD_S = 86_400
"""Time after a session's end in which a following session counts; later ones change no history."""
_AHEAD = AHEAD_S * 1_000_000
MOST_SHARERS = 64
"""For each line the latest sessions that changed it; a file that thousands change would cost the square of that."""


class SessionSummary(Struct, array_like=True, kw_only=True, gc=False):
    """The facts of a session that histories of other sessions need. Times are microseconds since 1970 UTC."""

    session_id: str
    place: str | None
    """The repository, else the folder (see `place_of`); None when neither is known."""
    started_at: int | None
    ended_at: int | None
    files: list[str] = field(default_factory=list)
    parent_session_id: str | None = None
    words: str | None = None
    """Words of the head of the first prompt (`lexicon.words`), in one text: a tenth of the memory of many."""
    user: str | None = None
    """See `user_of`. Unknown users are taken for one."""
    n_turns: int | None = None
    """Human turns; None when not counted, which passes for some."""
    lines: dict[str, str] = field(default_factory=dict)
    """For each file the `prints` of lines that were changed in it."""


class History(Struct, kw_only=True):
    """One session among the others. `next` is the first of the same place and user to start after this one ended."""

    place: str | None
    known_until: int
    """The last moment any session speaks of, at most a day after the end of this one: how far the store can tell what
    followed."""
    known_since: int
    n_prior: int = 0
    """Sessions of the same place, with a human turn, that started earlier."""
    n_prior_same_user: int = 0
    next_id: str | None = None
    next_started_at: int | None = None
    next_shares_file: bool | None = None
    """The next session touches a file that this one touched; None without a next."""
    next_similarity: float | None = None
    """Likeness 0..1 of the two first prompts; None without a next, or when a prompt is unknown or too short."""
    same_lines: dict[str, list[str]] = field(default_factory=dict)
    """Earlier sessions of the same place, with a human turn, that changed lines this one changed too, and in which
    files; in order of time."""


class _Row(NamedTuple):
    """A session with a place and a time. Rows ascend by time; ties are broken by id, so that the order of the input
    never shows."""

    start: int
    session_id: str
    end: int
    outline: SessionSummary
    history: History


@lru_cache(maxsize=256)
def place_of(repo: str | None, cwd: str | None) -> str | None:
    """Return the repository, else the working folder; the worktrees of a folder count as that folder."""
    if repo:
        return repo.lower()
    return (_WORKTREE.sub("", cwd.rstrip("\\/")) or cwd) if cwd else None


def user_of(cwd: str | None) -> str | None:
    """Return the user whose home a working folder lies in; None when the path has none."""
    match = _HOME.match(cwd) if cwd else None
    return match.group(1) if match else None


def time_span(times: Iterable[int | None]) -> tuple[int, int]:
    """Return the first and the last known time."""
    spoken_of = [t for t in times if t is not None]
    return (min(spoken_of), max(spoken_of)) if spoken_of else (0, 0)


def histories(outlines: Iterable[SessionSummary], span: tuple[int, int] | None = None) -> dict[str, History]:
    """Return the history of every session, keyed by its id. `span`: the time span of all sessions, where these are not
    all."""
    known_outlines = list(outlines)
    since, until = span or time_span(t for o in known_outlines for t in (o.started_at, o.ended_at))
    by_session: dict[str, History] = {}
    rows: list[_Row] = []
    for o in known_outlines:
        history = History(place=o.place, known_until=known_until(until, o.started_at, o.ended_at), known_since=since)
        by_session[o.session_id] = history
        if o.place is not None and o.started_at is not None:
            end = o.started_at if o.ended_at is None else max(o.ended_at, o.started_at)
            rows.append(_Row(o.started_at, o.session_id, end, o, history))
    rows.sort()
    for group in _grouped(rows, lambda o: o.place):
        _share_lines([r for r in group if r.outline.lines])
        before = _starts_before(group)
        for row, n in zip(group, before, strict=True):
            row.history.n_prior = n
        several = len({r.outline.user for r in group}) > 1
        for of_user in _grouped(group, lambda o: o.user) if several else (group,):
            humans = [r for r in of_user if _is_human(r.outline)]
            starts = [r.start for r in humans]
            for row, n in zip(of_user, _starts_before(of_user) if several else before, strict=True):
                row.history.n_prior_same_user = n
                after = bisect_right(starts, row.end)
                if after < len(humans):
                    following = humans[after]
                    row.history.next_id, row.history.next_started_at = following.session_id, following.start
                    compare(row.history, row.outline, following.outline)
    return by_session


def _starts_before(group: list[_Row]) -> list[int]:
    """Return for each session the number of the group with a human turn that started earlier."""
    starts = [r.start for r in group if _is_human(r.outline)]
    return [bisect_left(starts, row.start) for row in group]


def known_until(until: int, started_at: int | None, ended_at: int | None) -> int:
    """Return how far the store knows what followed a session, if its last known moment is `until`."""
    return min(until, (ended_at if ended_at is not None else started_at or 0) + _AHEAD)


def _grouped(rows: list[_Row], by: Callable[[SessionSummary], object]) -> Iterable[list[_Row]]:
    groups: dict[object, list[_Row]] = {}
    for row in rows:
        groups.setdefault(by(row.outline), []).append(row)
    return groups.values()


def _is_human(outline: SessionSummary) -> bool:
    return outline.parent_session_id is None and outline.n_turns != 0


def _share_lines(group: list[_Row]) -> None:
    """Fill in the earlier sessions that changed the same lines. A line that several files have is ignored."""
    sessions = Counter([path for row in group for path in row.outline.lines])
    shared = [
        (row, path, unpack(f">{len(packed) // 8}I", bytes.fromhex(packed)))
        for row in group
        for path, packed in sorted(row.outline.lines.items())
        if sessions[path] > 1
    ]
    files: dict[int, str | None] = {}
    for _, path, lines in shared:
        for line_print in lines:
            if files.setdefault(line_print, path) != path:
                files[line_print] = None
    changed: dict[int, deque[_Row]] = {}
    for row, path, lines in shared:
        before: dict[str, _Row] = {}
        for line_print in lines:
            if files[line_print] is None:
                continue
            rows = changed.setdefault(line_print, deque(maxlen=MOST_SHARERS))
            before.update([(r.session_id, r) for r in rows if r.start < row.start])
            if _is_human(row.outline):
                rows.append(row)
        for other in sorted(before.values()):
            row.history.same_lines.setdefault(other.session_id, []).append(path)


def prints(lines: Iterable[str]) -> str:
    """Return prints of the lines that are long enough to identify a place, at most 2,000: eight hex digits each."""
    long = "\n".join([line for line in lines if len(line) > SHORT_LINE])
    checksums = sorted(set(map(crc32, long.encode("utf-8", "replace").split(b"\n")))) if long else []
    # The smallest numbers are kept: the same ones for two equal files.
    return pack(f">{min(len(checksums), MOST_PRINTS)}I", *checksums[:MOST_PRINTS]).hex()


def compare(history: History, this: SessionSummary, following: SessionSummary) -> None:
    """Fill in how similar the next session is."""
    history.next_shares_file = not set(this.files).isdisjoint(following.files)
    history.next_similarity = similarity(this.words, following.words)


def similarity(first: str | None, other: str | None) -> float | None:
    """Return the F1 of the word sets of two prompts' heads, 0..1; None when either is missing or very short."""
    one, two = set((first or "").split()), set((other or "").split())
    return None if min(len(one), len(two)) < FEW_WORDS else 2 * len(one & two) / (len(one) + len(two))


# Sessions of one repository are found by its name, folders, history and files. A log names the folder it ran in, some
# the repository too. Clones have other folders, on one machine or several; counted as many places, they make intervals
# too narrow (design/statistics.md#places).

SHARED_COMMITS = 2
"""Abbreviated commits that two folders' logs have in common: of one, chance is not out of the question."""
SHARED_FILES_OF_A_NAME = 2
"""Changed files in common, of two folders that are called the same."""
SHARED_FILES, SHARED_SHARE = 3, 0.5
"""For folders with different names: at least so many shared files, and so large a part of the smaller set."""
DEEP = 3
"""Parts of a path from which it tells one repository from another; `package.json` and `src/main.py` do not."""
MOST_HOLDERS = 20
"""A file or a commit that more places have tells none apart."""


class Site(Struct, kw_only=True):
    """The place of a session: its repository, working folder, remotes, and the commits and files it names."""

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
    """Number of sessions of one repository and folder that share these facts."""


class _PlaceGroups:
    """Disjoint sets of repositories and folders that are one place. Two named repositories are never united."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}
        self.named: dict[str, str] = {}
        """The repository that a group is named after, keyed by the group's root."""

    def root(self, key: str) -> str:
        while (above := self._above.get(key, key)) != key:
            self._above[key] = self._above.get(above, above)
            key = above
        return key

    def unite(self, this: str, other: str) -> None:
        first, second = sorted((self.root(this), self.root(other)))
        names = {self.named[root] for root in (first, second) if root in self.named}
        if first != second and len(names) < 2:
            self._above[second] = first
            if names:
                self.named[first] = names.pop()


def places(sites: Iterable[Site]) -> dict[str, str]:
    """Return the place of each session that names a folder or a repository, independent of their order."""
    listed = sorted(sites, key=lambda site: site.session_id)
    groups = _PlaceGroups()
    keys: dict[str, str] = {}
    for site in listed:
        if site.repo:
            keys[site.session_id] = f"r:{site.repo.lower()}"
        elif (folder := place_of(None, site.cwd)) is not None:
            keys[site.session_id] = f"f:{folder}"
    of_folder: dict[str, list[Site]] = defaultdict(list)
    for site in listed:
        if site.repo:
            groups.named.setdefault(groups.root(keys[site.session_id]), keys[site.session_id])
        if site.cwd and (folder := place_of(None, site.cwd)) is not None:
            of_folder[folder].append(site)
    for folder, there in sorted(of_folder.items()):
        names = {site.repo.lower() for site in there if site.repo} or {n.lower() for s in there for n in s.remotes}
        if len(names) == 1:  # a folder that held several (`/workspace`) tells nothing of those that name none
            name = f"r:{names.pop()}"
            groups.named.setdefault(groups.root(name), name)
            groups.unite(name, f"f:{folder}")
    # Places of other names that share commits or deep files are united.
    commits: dict[str, set[str]] = defaultdict(set)
    files: dict[str, set[str]] = defaultdict(set)
    for site in listed:
        if (key := keys.get(site.session_id)) is not None:
            commits[groups.root(key)] |= set(site.commits)
            files[groups.root(key)] |= {path for path in site.files if tells(path)}
    for (first, second), n in sorted(_in_common(commits).items()):
        if n >= SHARED_COMMITS:
            groups.unite(first, second)
    for (first, second), n in sorted(_in_common(files).items()):
        fewer = min(len(files[first]), len(files[second]))
        called, other = (key.rstrip("/").rsplit("/", 1)[-1].lower() for key in (first, second))
        if n >= (SHARED_FILES_OF_A_NAME if called == other else max(SHARED_FILES, SHARED_SHARE * fewer)):
            groups.unite(first, second)
    members: dict[str, Counter[str]] = defaultdict(Counter)
    for site in listed:
        if (key := keys.get(site.session_id)) is not None:
            members[groups.root(key)][key] += site.sessions
    called_by = {
        root: (groups.named.get(root) or max(sorted(counted), key=counted.__getitem__))[2:]
        for root, counted in members.items()
    }
    return {session_id: called_by[groups.root(key)] for session_id, key in keys.items()}


def _in_common(held: dict[str, set[str]]) -> Counter[tuple[str, str]]:
    """Count the members that each two places share."""
    holders: dict[str, list[str]] = defaultdict(list)
    for place in sorted(held):
        for thing in held[place]:
            holders[thing].append(place)
    return Counter(
        pair for having in holders.values() if 1 < len(having) <= MOST_HOLDERS for pair in combinations(having, 2)
    )


def tells(path: str) -> bool:
    """Return whether a path distinguishes one repository from another."""
    parts = path.split("/")
    return len(parts) >= DEEP and parts[0] not in ("", "~", "..") and not any(part.startswith(".") for part in parts)
