"""What became of the lines that agents wrote: on the way to commits, and at the head of the repository today."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from statistics import mean

from msgspec import Struct, field

from agentsignals.attribution.commit_figures import AGENT
from agentsignals.attribution.replay import AddedLine, Fates, Replayed
from agentsignals.attribution.repository import Repository, Worktree
from agentsignals.git import commits as git
from agentsignals.git.objects import GitError

ENOUGH_LINES = 5
"""Commits whose sessions wrote fewer lines are left out of means over commits (design/attribution.md#survival)."""
_BLAMED = re.compile(rb"([0-9a-f]{40,64}) (\d+) \d+(?: \d+)?")
_BLAMERS = 4


class Counts(Struct, kw_only=True):
    """Lines that agents wrote, by what became of them. Ratios are None when nothing was written."""

    produced: int = 0
    overwritten_by_self: int = 0
    overwritten_by_other_session: int = 0
    committed: int = 0
    taken: int = 0
    """Gone from their file when somebody committed it: a person, a command or Git took them away."""
    standing: int = 0
    """Still in the working tree at the end of what is known, and in no commit."""
    efficiency: float | None = None
    """committed / produced (paper, Eq 2; headlined there as survival)."""
    survival: float | None = None
    """committed / (produced - overwritten by the session itself) (paper, Eq 3)."""


class Slices(Struct):
    """Eq 2 and Eq 3 of what was written since the commit before, as the mean over commits and over all their lines."""

    commits: int = 0
    efficiency_mean: float | None = None
    survival_mean: float | None = None
    efficiency_of_lines: float | None = None
    survival_of_lines: float | None = None


class Alive(Struct, kw_only=True):
    """Of the lines that commits added, those still there under the same commit's name."""

    head: str | None = None
    agent: int = 0
    agent_alive: int = 0
    other: int = 0
    other_alive: int = 0
    agent_rate: float | None = None
    other_rate: float | None = None
    commits_not_in_head: int = 0
    """Commits that the head does not descend from; their lines are in none of these counts."""


class Survived(Struct):
    """All definitions side by side: they differ by more than the thing they measure."""

    eventual: Counts = field(default_factory=Counts)
    """A line counts when any commit has it, however much later."""
    strict: Slices = field(default_factory=Slices)
    """In the files that the commit changed."""
    window: Slices = field(default_factory=Slices)
    """In all files of the repository."""
    alive_at_head: Alive = field(default_factory=Alive)


def counts(fates: Iterable[Fates]) -> Counts:
    """Sums over operations."""
    all_fates = list(fates)
    made, by_self = sum(f.made for f in all_fates), sum(f.overwritten_by_self for f in all_fates)
    other, kept = sum(f.overwritten_by_other for f in all_fates), sum(f.committed for f in all_fates)
    taken, standing = sum(f.taken for f in all_fates), sum(f.standing for f in all_fates)
    return Counts(
        produced=made,
        overwritten_by_self=by_self,
        overwritten_by_other_session=other,
        committed=kept,
        taken=taken,
        standing=standing,
        efficiency=_ratio(kept, made),
        survival=_ratio(kept, made - by_self),
    )


def by_session(worktrees: list[tuple[Worktree, Replayed]]) -> dict[str, Counts]:
    """The same of each session that wrote lines."""
    fates_of: dict[str, list[Fates]] = defaultdict(list)
    for tree, done in worktrees:
        for number, fates in done.fates.items():
            fates_of[tree.operations[number].session_id].append(fates)
    return {
        session_id: counted
        for session_id, session_fates in fates_of.items()
        if (counted := counts(session_fates)).produced
    }


class Slice(Struct):
    """What agents wrote between a linked commit and the one before, and what of it this commit has."""

    written: int = 0
    rewritten: int = 0
    """Taken away again by the session that wrote it."""
    written_in_files: int = 0
    """In the files that the commit changed."""
    rewritten_in_files: int = 0
    kept: int = 0


def by_commit(worktrees: list[tuple[Worktree, Replayed]]) -> dict[str, Slice]:
    """The slices of all linked commits."""
    by_sha: dict[str, Slice] = {}
    for tree, done in worktrees:
        at = 0
        for step in tree.steps:
            if not step.is_linked:
                continue
            begin = at
            while at < len(tree.operations) and tree.operations[at].at <= step.at:
                at += 1
            files = {c.path for c in step.changes}
            numbers = [n for n in range(begin, at) if n in done.fates]
            within = [n for n in numbers if tree.operations[n].path in files]
            by_sha[step.sha] = Slice(
                sum(done.fates[n].made for n in numbers),
                sum(done.fates[n].overwritten_by_self for n in numbers),
                sum(done.fates[n].made for n in within),
                sum(done.fates[n].overwritten_by_self for n in within),
                sum(begin <= line.mark < at and line.tag in AGENT for line in done.lines.get(step.sha, ())),
            )
    return by_sha


def slices(of_commits: Iterable[Slice], strict: bool) -> Slices:
    """Means over commits, and over their lines. `strict`: in the files that the commits changed, else in all."""
    rows = [
        (part.written_in_files, part.rewritten_in_files, part.kept)
        if strict
        else (part.written, part.rewritten, part.kept)
        for part in of_commits
    ]
    rows = [row for row in rows if row[0] >= ENOUGH_LINES]
    made, own_lines, kept = (sum(column) for column in zip(*rows, strict=True)) if rows else (0, 0, 0)
    eq2 = [r for m, _, k in rows if (r := _ratio(k, m)) is not None]
    eq3 = [r for m, o, k in rows if (r := _ratio(k, m - o)) is not None]
    return Slices(
        len(rows),
        mean(eq2) if eq2 else None,
        mean(eq3) if eq3 else None,
        _ratio(kept, made),
        _ratio(kept, made - own_lines),
    )


class Living(Struct):
    """The head of a repository, and the lines that `git blame` finds there."""

    head: str | None
    within: set[str] = field(default_factory=set)
    """The head and what it descends from."""
    lines: set[tuple[str, int, str]] = field(default_factory=set)
    """(commit, line, path) as first committed."""

    def has(self, sha: str, line: AddedLine) -> bool | None:
        """Whether a line that this commit added is still there; None when the head does not descend from it."""
        return (sha, line.line, line.path) in self.lines if sha in self.within else None


def living(repository: Repository, lines: Mapping[str, list[AddedLine]]) -> Living:
    """Which lines of the files that these commits changed live today."""
    head = repository.head
    if head is None:
        return Living(None)
    within = _ancestors(repository, head)
    paths = {line.path for sha, added_lines in lines.items() if sha in within for line in added_lines}
    return Living(head, within, _living(repository, head, paths))


def alive_at_head(today: Living, lines: Mapping[str, list[AddedLine]]) -> Alive:
    """How many of the added lines are still there."""
    alive = Alive(head=today.head)
    if today.head is None:
        return alive
    alive.commits_not_in_head = sum(sha not in today.within for sha in lines)
    for sha, added_lines in lines.items():
        for line in added_lines:
            is_alive = today.has(sha, line)
            if is_alive is None:
                break
            if line.tag in AGENT:
                alive.agent += 1
                alive.agent_alive += is_alive
            else:
                alive.other += 1
                alive.other_alive += is_alive
    alive.agent_rate, alive.other_rate = _ratio(alive.agent_alive, alive.agent), _ratio(alive.other_alive, alive.other)
    return alive


def _living(repository: Repository, head: str, paths: set[str]) -> set[tuple[str, int, str]]:
    """(commit, line, path) as first committed, of every line of these files, under whatever name they have today."""
    today = git.files_at(repository.git_dir, head)
    ahead, reached = list(paths), set(paths)
    later: dict[str, set[str]] = defaultdict(set)
    for old, new in repository.renames:
        later[old].add(new)
    while ahead:
        for name in later[ahead.pop()] - reached:
            reached.add(name)
            ahead.append(name)
    living_lines: set[tuple[str, int, str]] = set()
    with ThreadPoolExecutor(_BLAMERS) as blamers:
        for blamed in blamers.map(lambda path: _blame(repository.git_dir, head, path), sorted(reached & today)):
            living_lines |= blamed
    return living_lines


def _blame(git_dir: str, head: str, path: str) -> set[tuple[str, int, str]]:
    try:
        output = git.blame(git_dir, head, path)
    except GitError:  # a blob of its history is missing
        return set()
    blamed: set[tuple[str, int, str]] = set()
    sha, line = "", 0
    names: dict[str, str] = {}
    for row in output.split(b"\n"):
        if row[:1] == b"\t":
            blamed.add((sha, line, names.get(sha, path)))
        elif row.startswith(b"filename "):
            names[sha] = git.unquoted(row[9:])
        elif (at := _BLAMED.fullmatch(row)) is not None:
            sha, line = at[1].decode(), int(at[2])
    return blamed


def _ancestors(repository: Repository, head: str) -> set[str]:
    by_sha = repository.by_sha
    ancestors: set[str] = set()
    ahead = [head]
    while ahead:
        sha = ahead.pop()
        if sha not in ancestors and sha in by_sha:
            ancestors.add(sha)
            ahead += by_sha[sha].parents
    return ancestors


def _ratio(part: int, whole: int) -> float | None:
    return min(part / whole, 1.0) if whole > 0 else None
