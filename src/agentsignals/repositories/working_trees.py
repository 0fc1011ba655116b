"""A repository with the sessions that worked on it, as working trees: what the replay is given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator

from msgspec import Struct

from agentsignals.changes import git
from agentsignals.changes.git import Commit, FileChange
from agentsignals.changes.worktrees import Naming, Tree, plain_folder
from agentsignals.model import Session
from agentsignals.repositories.checkpoints import Link, Recorded, gather
from agentsignals.repositories.operations import Activity, Operation, activity, operations
from agentsignals.repositories.replay import Step

_SECOND_US = 1_000_000
BEFORE_US = 30 * 24 * 3600 * _SECOND_US
"""Sessions begin no longer before their first linked commit: what older commits changed is not asked for."""
RECENT_US = 14 * 24 * 3600 * _SECOND_US
"""Without checkpoints, a commit is a session's when it changes a file that the session changed no longer before."""


class Point(Struct):
    """A commit with the sessions whose work it is."""

    commit: Commit
    sessions: frozenset[str]
    relation: str
    checkpoint_ids: tuple[str, ...] = ()
    at: int = 0
    """The moment until which operations precede it, microseconds."""


class Worktree(Struct):
    """Operations, activity and commits of one working tree, in order of time."""

    root: str
    operations: list[Operation]
    activities: list[Activity]
    steps: list[Step]


class Repository(Struct, kw_only=True):
    """The history, its checkpoints, and what connects them."""

    git_dir: str
    commits: list[Commit]
    recorded: list[Recorded]
    links: list[Link]
    history: dict[str, list[FileChange]]
    """Changes of each commit; commits whose objects are missing are left out."""

    head: str | None
    """The commit that the repository stands at."""

    @property
    def renames(self) -> set[tuple[str, str]]:
        """Old and new path of every rename."""
        file_changes = (f for files in self.history.values() for f in files)
        return {(f.old_path, f.path) for f in file_changes if f.old_path and f.old_path != f.path}

    @property
    def by_sha(self) -> dict[str, Commit]:
        return {c.sha: c for c in self.commits}


def opened(git_dir: str, spec: str) -> Repository:
    """The code history of a Git folder, and the checkpoints that the source `spec` (`git:…`) gives."""
    gathered = gather(git_dir, spec)
    linked = {link.sha for link in gathered.links}
    began = min((c.committed_at for c in gathered.commits if c.sha in linked), default=0) - BEFORE_US
    history = dict(git.changes(git_dir, [c.sha for c in gathered.commits if c.committed_at >= began]))
    return Repository(
        git_dir=git_dir,
        commits=gathered.commits,
        recorded=gathered.recorded,
        links=gathered.links,
        history=history,
        head=git.head(git_dir),
    )


def points(repository: Repository) -> list[Point]:
    """The commits that trailers link to sessions; a change made again (a cherry-pick) counts once."""
    sessions: dict[str, set[str]] = defaultdict(set)
    taken: dict[str, int] = {}
    for row in repository.recorded:
        sessions[row.checkpoint_id].add(row.session_id)
        if row.taken_at is not None:
            taken.setdefault(row.checkpoint_id, row.taken_at)
    by_sha = repository.by_sha
    met: dict[str, Point] = {}
    for link in repository.links:
        if link.relation == "copy":
            continue
        commit = by_sha[link.sha]
        at = commit.committed_at
        if link.relation == "rewritten":
            at = min(at, taken.get(link.checkpoint_id, at))
        point = met.get(link.sha)
        session_ids = frozenset(sessions[link.checkpoint_id])
        if point is None:
            met[link.sha] = Point(commit, session_ids, link.relation, (link.checkpoint_id,), at + _SECOND_US - 1)
        else:
            point.sessions |= session_ids
            point.checkpoint_ids += (link.checkpoint_id,)
            if point.relation != "original" and link.relation == "original":
                point.relation, point.at = "original", commit.committed_at + _SECOND_US - 1
    return sorted(met.values(), key=lambda p: (p.at, p.commit.committed_at, p.commit.sha))


def worktrees(
    repository: Repository, commit_points: list[Point], sessions: Iterator[Session]
) -> tuple[list[Worktree], list[Point]]:
    """The sessions by the folder they worked in, each with its operations and the commits on its way.

    Also gives the commits to attribute: those of `found`; without any, those that changed what sessions had changed.
    """
    history = repository.history
    paths = {path for files in history.values() for f in files for path in (f.path, f.old_path) if path}
    tree = Tree(paths | (git.files_at(repository.git_dir, repository.head) if repository.head else set()))
    by_root: dict[str, tuple[list[Operation], list[Activity]]] = {}
    home: dict[str, str] = {}
    timed: set[str] = set()
    read = [(s.session_id, s.cwd, operations(s), activity(s)) for s in sessions]
    folders = {plain_folder(cwd) for _, cwd, _, _ in read}
    for session_id, cwd, made, busy in read:
        naming = Naming(tree, cwd, [p for operation in made for p in (operation.path, operation.to) if p], folders)
        home[session_id] = naming.root
        ours, active = by_root.setdefault(naming.root, ([], []))
        active.append(busy)
        if busy.busy:  # without times nobody knows when a person had the chance
            timed.add(session_id)
        for operation in made:
            path = naming.of(operation.path)
            if path is not None:
                operation.path = path
                operation.to = (naming.of(operation.to) or "") if operation.to else ""
                ours.append(operation)
    # Folders of sessions that share a checkpoint are one working tree, whatever the folders are called.
    for point in commit_points:
        first, *others = sorted({home[s] for s in point.sessions if s in home}) or [""]
        for other in others:
            ours, active = by_root.pop(other)
            by_root[first][0].extend(ours)
            by_root[first][1].extend(active)
            home = {session_id: first if root == other else root for session_id, root in home.items()}
    if not repository.recorded:
        commit_points = _by_files(repository.commits, history, by_root)
    made_trees = []
    for root, (ours, active) in sorted(by_root.items()):
        ours.sort(key=lambda o: (o.at, o.session_id, o.seq))
        points_here = [p for p in commit_points if any(home.get(s) == root for s in p.sessions)]
        made_trees.append(Worktree(root, ours, active, _steps(repository, points_here, ours, timed)))
    strays = [p for p in commit_points if not any(s in home for s in p.sessions)]
    if strays:  # their transcripts are missing: nothing is known but the commit
        made_trees.append(Worktree("", [], [], _steps(repository, strays, [], timed)))
    return made_trees, commit_points


def _steps(repository: Repository, points: list[Point], ours: list[Operation], timed: Container[str]) -> list[Step]:
    """The linked commits of a working tree, and between them those of others that came into it."""
    by_sha, history = repository.by_sha, repository.history
    linked = {p.commit.sha for p in points}
    began = ours[0].at if ours else None
    seen: set[str] = set()
    steps: list[Step] = []

    def step(commit: Commit, at: int) -> Step:
        parent = by_sha.get(commit.parents[0]) if commit.parents else None
        return Step(
            sha=commit.sha,
            parent=parent.sha if parent else None,
            at=at,
            parent_at=min(parent.committed_at if parent else 0, at),
            changes=history.get(commit.sha, []),
        )

    for point in points:
        for sha in _not_seen(point.commit, by_sha, seen):
            commit = by_sha[sha]
            if sha not in linked and not commit.is_merge and began is not None and commit.committed_at >= began:
                steps.append(step(commit, min(commit.committed_at + _SECOND_US - 1, point.at)))
        own = step(point.commit, point.at)
        own.sessions, own.is_linked = point.sessions, True
        commit = point.commit
        while commit.parents and commit.parents[0] in by_sha:  # its first parents, back to the first operation
            commit = by_sha[commit.parents[0]]
            own.trunk.append((commit.committed_at, commit.sha))
            if began is None or commit.committed_at <= began:
                break
        own.is_witnessed = bool(point.sessions) and all(session_id in timed for session_id in point.sessions)
        steps.append(own)
    head = by_sha.get(repository.head or "")
    if points and head is not None:  # what came after: lines may reach a commit that nothing links to a session
        last = max(p.at for p in points)
        for sha in [head.sha, *_not_seen(head, by_sha, seen)]:
            commit = by_sha[sha]
            if not commit.is_merge and commit.committed_at > last and sha not in linked:
                steps.append(step(commit, commit.committed_at + _SECOND_US - 1))
    return sorted(steps, key=lambda s: s.at)


def _not_seen(commit: Commit, by_sha: dict[str, Commit], seen: set[str]) -> list[str]:
    """The ancestors of a commit that were not met before."""
    shas = []
    ahead = [commit.sha]
    while ahead:
        sha = ahead.pop()
        if sha in seen or sha not in by_sha:
            continue
        seen.add(sha)
        shas.append(sha)
        ahead += by_sha[sha].parents
    return shas[1:]


def _by_files(
    commits: list[Commit],
    history: dict[str, list[FileChange]],
    by_root: dict[str, tuple[list[Operation], list[Activity]]],
) -> list[Point]:
    """Commits that change a file which sessions changed shortly before, and whose change nobody committed since."""
    waiting: dict[str, list[Operation]] = defaultdict(list)
    ours = sorted((o for operations, _ in by_root.values() for o in operations), key=lambda o: o.at)
    matched = []
    at = 0
    for commit in sorted((c for c in commits if not c.is_merge), key=lambda c: c.committed_at):
        until = commit.committed_at + _SECOND_US - 1
        while at < len(ours) and ours[at].at <= until:
            waiting[ours[at].path].append(ours[at])
            at += 1
        touched = [o for f in history.get(commit.sha, ()) for o in waiting.pop(f.path, ())]
        who = frozenset(o.session_id for o in touched if o.at >= until - RECENT_US)
        if who:
            matched.append(Point(commit, who, "by_files", (), until))
    return matched
