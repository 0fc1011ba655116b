"""Outcome of sessions' work in Git: whose the lines of a commit are, and which were committed, taken back, worked on
again, or live today."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from statistics import mean

from msgspec import Struct, field, structs

from agentsignals.changes import git
from agentsignals.changes.git import Commit
from agentsignals.changes.worktrees import (
    CLOSING_S,
    MOST_TOLD,
    Committed,
    EarlierSessions,
    LinesCommitted,
    LinesTakenBack,
    label,
)
from agentsignals.repositories.replay import AddedLine, Fates, Replayed
from agentsignals.repositories.working_trees import Activity, Point, Repository, Worktree
from agentsignals.store.sidecars import LabelRow

# Figures from the tags of added lines.

SURE = ("agent_exact", "agent_ws", "agent_other_session")
"""Lines that stand in a call's arguments."""
AGENT = (*SURE, "agent_shell")
NOBODY = ("preexisting", "moved", "generated")
"""Added lines whose author is not in question: left out of shares."""
VIBE_FROM = 0.99
"""A session's or commit's lines are `vibe` from this share on, `human_only` at 0 (paper, M2)."""


class Share(Struct):
    """Agent's share of the authored lines: lower bound, upper bound, and an estimate between them."""

    low: float | None = None
    high: float | None = None
    likely: float | None = None
    n: int = 0
    unknown: int = 0
    """Authored lines that nothing explains."""


def authored(lines: list[AddedLine]) -> Counter[str]:
    """Lines by tag: those that are not blank and that somebody wrote."""
    return Counter(line.tag for line in lines if not line.is_blank and line.tag not in NOBODY)


def share_of(tags: Counter[str]) -> Share:
    """The interval [surely an agent's, not surely a person's] of authored lines (design/attribution.md#replay)."""
    n = sum(tags.values())
    if not n:
        return Share()
    sure = sum(tags[t] for t in SURE)
    human = tags["human_observed"]
    likely = sum(tags[t] for t in AGENT)
    # Nobody knows whose the unknown lines are: left out, they would seem to be shared as the others are.
    estimate = (likely + tags["unknown"] / 2) / n if likely + human else None
    return Share(sure / n, (n - human) / n, estimate, n, tags["unknown"])


def mode_of(low: float | None, high: float | None) -> str:
    """`human_only`, `collaborative` or `vibe`; `unknown` where the interval reaches over a border."""
    if low is None or high is None:
        return "unknown"
    names = {"human_only" if share <= 0 else "vibe" if share >= VIBE_FROM else "collaborative" for share in (low, high)}
    return names.pop() if len(names) == 1 else "unknown"


# Outcomes of sessions.

REVERTED_FROM = 0.9
"""So large a share of the peak taken back is a revert (design/signals.md#session-outcome)."""
_SECOND_US = 1_000_000
_CLOSING_US = CLOSING_S * _SECOND_US


class _Line(Struct, frozen=True, gc=False):
    sha: str
    path: str
    line: int
    seq: int


class _SessionRecord(Struct, kw_only=True):
    lines: list[_Line] = field(default_factory=list)
    fates: Fates = field(default_factory=Fates)
    changes: list[tuple[int, str]] = field(default_factory=list)
    """When its calls changed which file."""
    linked: set[str] = field(default_factory=set)
    has_unexplained: bool = False
    """Its commits have lines that nothing explains, or can't be read."""
    has_missing: bool = False
    """A commit that its checkpoint was taken for is not here: its branch was dropped, or not fetched."""


class Outcomes:
    """The evidence of one repository, session by session."""

    def __init__(
        self, repository: Repository, commit_points: list[Point], done: list[tuple[Worktree, Replayed]]
    ) -> None:
        self._repository = repository
        self._commits = repository.by_sha
        self._undoing: dict[str, list[Commit]] = defaultdict(list)
        """By commit, those after it that say they revert it, or bring all its files back to what they were before."""
        brought: dict[tuple[str, str | None], list[Commit]] = defaultdict(list)
        for commit in repository.commits:
            for sha in commit.reverts:
                if sha in self._commits and sha != commit.sha:
                    self._undoing[sha].append(commit)
            for file in repository.history.get(commit.sha, ()):
                brought[file.path, file.new_oid].append(commit)
        for commit in repository.commits:
            files = repository.history.get(commit.sha) or []
            later = [
                {c.sha for c in brought.get((f.path, f.old_oid), ()) if c.committed_at > commit.committed_at}
                for f in files
            ]
            known = {c.sha for c in self._undoing[commit.sha]}
            self._undoing[commit.sha] += [
                self._commits[sha] for sha in (set.intersection(*later) if later else ()) if sha not in known
            ]
        self._activities = {activity.session_id: activity for tree, _ in done for activity in tree.activities}
        self._beside = {session_id: others for _, replayed in done for session_id, others in replayed.beside.items()}
        self._records: dict[str, _SessionRecord] = defaultdict(_SessionRecord)
        ends = [activity.ended_at for activity in self._activities.values() if activity.ended_at is not None]
        self._known_until = max([*ends, *(c.committed_at for c in repository.commits)], default=0)
        unexplained: set[str] = set()
        for tree, replayed in done:
            ours = tree.operations
            for change in ours:
                self._records[change.session_id].changes.append((change.at, change.path))
            for number, fates in replayed.fates.items():
                total = self._records[ours[number].session_id].fates
                for name in fates.__struct_fields__:
                    setattr(total, name, getattr(total, name) + getattr(fates, name))
            for sha, lines in replayed.lines.items():
                for line in lines:
                    if line.tag in ("agent_shell", "unknown") and not line.is_blank:
                        unexplained.add(sha)
                    if line.mark >= 0 and line.tag in AGENT and not line.is_blank:
                        by = ours[line.mark]
                        self._records[by.session_id].lines.append(_Line(sha, line.path, line.line, by.seq))
            for sha, places in replayed.picked_up.items():
                for mark, path, n in places:
                    self._records[ours[mark].session_id].lines.append(_Line(sha, path, n, ours[mark].seq))
        linked = {link.checkpoint_id for link in repository.links}
        for record in repository.recorded:
            if record.checkpoint_id not in linked and record.session_id in self._records:
                self._records[record.session_id].has_missing = True
        for point in commit_points:
            sha = point.commit.sha
            for session_id in point.sessions:
                self._records[session_id].linked.add(sha)
                if sha in unexplained or sha not in repository.history:
                    self._records[session_id].has_unexplained = True

    def labels(self) -> dict[str, list[LabelRow]]:
        """Labels of each session that wrote lines: lines committed, taken back, and worked on by earlier sessions."""
        rows: dict[str, list[LabelRow]] = {"lines_committed": [], "lines_taken_back": [], "earlier_on_same_lines": []}
        for session_id, record in sorted(self._records.items()):
            activity = self._activities.get(session_id)
            if not record.fates.made or activity is None:
                continue
            made = self._committed(record, activity)
            reason = "its lines in commits made until it closed"
            rows["lines_committed"].append(LabelRow(session_id, label(made, made.verdict, made.lines, reason)))
            taken = self._taken_back(record, activity)
            reason = "its lines that others took away again"
            rows["lines_taken_back"].append(LabelRow(session_id, label(taken, taken.verdict, taken.share_low, reason)))
            if activity.started_at is not None:
                met = self._beside.get(session_id, {})
                others = {s: self._activities[s] for s in met if s in self._activities}
                times = {s: a.started_at for s, a in others.items() if a.is_a_persons and a.started_at is not None}
                before = sorted((s for s in times if times[s] < activity.started_at), key=lambda s: (times[s], s))
                earlier = EarlierSessions({other: sorted(met[other]) for other in before})
                reason = "whose lines it replaced or wrote beside"
                told = label(earlier, f"{len(before)}", len(before), reason)
                rows["earlier_on_same_lines"].append(LabelRow(session_id, told))
        return rows

    def _committed(self, record: _SessionRecord, activity: Activity) -> LinesCommitted:
        """Tell whether a session's lines reached commits in time, and which."""
        close = _close(activity)
        by_commit: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        n_lines = Counter(line.sha for line in record.lines)
        for line in record.lines:
            by_commit[line.sha][line.path].add(line.line)
        commits = []
        for sha in sorted(by_commit, key=lambda sha: (self._commits[sha].committed_at, sha)):
            places = {path: spans(sorted(numbers)) for path, numbers in sorted(by_commit[sha].items())[:MOST_TOLD]}
            is_late = sha not in record.linked and close is not None and _made(self._commits[sha]) > close
            commits.append(Committed(sha, n_lines[sha], places, is_late))
        lines_in_time = sum(c.lines for c in commits if not c.is_late)
        verdict = "applied"
        if not lines_in_time:
            placed = record.fates.made - record.fates.unplaced
            verdict = "not_applied" if placed > 0 and close is not None and not record.has_missing else "unknown"
            if close is not None and self._known_until < close:
                verdict = "censored"
        late = {c.sha for c in commits if c.is_late}
        return LinesCommitted(
            verdict=verdict,
            lines=lines_in_time,
            late_lines=sum(c.lines for c in commits if c.is_late),
            produced=record.fates.made,
            n_commits=len(commits),
            commits=commits[:MOST_TOLD],
            calls=sorted({line.seq for line in record.lines if line.sha not in late})[:MOST_TOLD],
            is_sure=not record.has_unexplained,
        )

    def _taken_back(self, record: _SessionRecord, activity: Activity) -> LinesTakenBack:
        """Tell the share of a session's lines that was reverted, as bounds, and by which commits."""
        fates, close = record.fates, _close(activity)
        peak = fates.made - fates.overwritten_by_self
        rest = max(peak - fates.overwritten_by_other - fates.committed, 0)
        taken = min(fates.taken, rest)  # what is gone from one place may have been committed in another
        gone, by, later = 0, set[str](), set[str]()
        for sha, n in Counter(line.sha for line in record.lines).items():
            undoing = [s for s in self._undone_by(sha, close) if not self._is_own(record, sha, s)]
            by.update(undoing)
            gone += n if undoing else 0
            later.update(c.sha for c in self._undoing.get(sha, ()) if sha in c.reverts and _made(c) > (close or 0))
        # Its blank lines went with the others.
        undone = round(fates.committed * gone / len(record.lines)) if gone else 0
        low = (taken + undone) / peak if peak > 0 else 0.0
        high = min((rest + undone) / peak, 1.0) if peak > 0 else 0.0
        verdict = "reverted" if low >= REVERTED_FROM else "kept" if high < REVERTED_FROM else "unknown"
        return LinesTakenBack(
            verdict=verdict,
            peak=max(peak, 0),
            share_low=min(low, 1.0),
            share_high=high,
            taken=taken,
            undone=undone,
            undone_by=sorted(by),
            undone_later_by=sorted(later)[:MOST_TOLD],
        )

    def _is_own(self, record: _SessionRecord, sha: str, undoing: str) -> bool:
        """Return whether the session itself rewrote those files in between: then nothing is reverted."""
        if sha in self._commits[undoing].reverts:
            return False
        paths = {file.path for file in self._repository.history.get(sha, ())}
        since, until = self._commits[sha].committed_at, self._commits[undoing].committed_at + _SECOND_US
        return any(since < at < until and path in paths for at, path in record.changes)

    def _undone_by(self, sha: str, close: int | None, depth: int = 0) -> list[str]:
        """The commits that undid this one before the close, and were not undone themselves."""
        if close is None or depth > MOST_TOLD:
            return []
        made = [c for c in self._undoing.get(sha, ()) if _made(c) <= close]
        return [c.sha for c in made if not self._undone_by(c.sha, close, depth + 1)]


def _close(activity: Activity) -> int | None:
    return activity.ended_at + _CLOSING_US if activity.ended_at is not None else None


def _made(commit: Commit) -> int:
    """When it was first made: a rebase keeps the author's time."""
    return min(commit.authored_at, commit.committed_at)


def spans(numbers: list[int]) -> str:
    """Write rising line numbers as spans: `1-3, 7`."""
    parts: list[str] = []
    start = before = numbers[0]
    for n in [*numbers[1:], -1]:
        if n != before + 1:
            parts.append(f"{start}-{before}" if before > start else f"{start}")
            start = n
        before = n
    return ", ".join(parts[:MOST_TOLD]) + (", …" if len(parts) > MOST_TOLD else "")


# What became of the lines that agents wrote: on the way to commits, and at the head of the repository today.

ENOUGH_LINES = 5
"""Commits whose sessions wrote fewer lines are left out of means over commits (design/attribution.md#survival)."""

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
    """Added lines that are still in the head under the same commit."""

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
    total: Counter[str] = Counter()
    for one in fates:
        total.update(structs.asdict(one))
    made, kept, by_self = total["made"], total["committed"], total["overwritten_by_self"]
    return Counts(
        produced=made,
        overwritten_by_self=by_self,
        overwritten_by_other_session=total["overwritten_by_other"],
        committed=kept,
        taken=total["taken"],
        standing=total["standing"],
        efficiency=_ratio(kept, made),
        survival=_ratio(kept, made - by_self),
    )


def by_session(worktrees: list[tuple[Worktree, Replayed]]) -> dict[str, Counts]:
    fates_of: dict[str, list[Fates]] = defaultdict(list)
    for tree, done in worktrees:
        for number, fates in done.fates.items():
            fates_of[tree.operations[number].session_id].append(fates)
    counted = {session_id: counts(session_fates) for session_id, session_fates in fates_of.items()}
    return {session_id: of_session for session_id, of_session in counted.items() if of_session.produced}


class Slice(Struct):
    """Lines agents wrote between a linked commit and the one before, and those this commit has."""

    written: int = 0
    rewritten: int = 0
    """Taken away again by the session that wrote it."""
    written_in_files: int = 0
    """In the files that the commit changed."""
    rewritten_in_files: int = 0
    kept: int = 0


def by_commit(worktrees: list[tuple[Worktree, Replayed]]) -> dict[str, Slice]:
    by_sha: dict[str, Slice] = {}
    for tree, done in worktrees:
        at = 0
        for step in (step for step in tree.steps if step.is_linked):
            begin = at
            while at < len(tree.operations) and tree.operations[at].at <= step.at:
                at += 1
            files = {c.path for c in step.changes}
            made = by_sha[step.sha] = Slice()
            for fates, path in ((done.fates[n], tree.operations[n].path) for n in range(begin, at) if n in done.fates):
                made.written += fates.made
                made.rewritten += fates.overwritten_by_self
                made.written_in_files += fates.made if path in files else 0
                made.rewritten_in_files += fates.overwritten_by_self if path in files else 0
            made.kept = sum(begin <= line.mark < at and line.tag in AGENT for line in done.lines.get(step.sha, ()))
    return by_sha


def slices(of_commits: Iterable[Slice], strict: bool) -> Slices:
    rows = []
    for part in of_commits:
        made = part.written_in_files if strict else part.written
        if made >= ENOUGH_LINES:
            rows.append((made, part.rewritten_in_files if strict else part.rewritten, part.kept))
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
        return (sha, line.line, line.path) in self.lines if sha in self.within else None


def living(repository: Repository, lines: Mapping[str, list[AddedLine]]) -> Living:
    """Return the lines of the commits' changed files that exist today, also in renamed files."""
    head = repository.head
    if head is None:
        return Living(None)
    within = set(git.ancestors(repository.by_sha, head))
    paths = {line.path for sha, added_lines in lines.items() if sha in within for line in added_lines}
    later: dict[str, set[str]] = defaultdict(set)
    for file in (f for files in repository.history.values() for f in files):
        if file.old_path and file.old_path != file.path:
            later[file.old_path].add(file.path)
    ahead = list(paths)
    while ahead:
        for name in later[ahead.pop()] - paths:
            paths.add(name)
            ahead.append(name)
    today = Living(head, within)

    def blamed(path: str) -> set[tuple[str, int, str]]:
        try:
            return {(line.sha, line.line, line.path) for line in git.blame(repository.git_dir, head, path)}
        except git.GitError:  # a blob of its history is missing
            return set()

    with ThreadPoolExecutor(_BLAMERS) as blamers:
        today.lines.update(*blamers.map(blamed, paths & git.files_at(repository.git_dir, head)))
    return today


def alive_at_head(today: Living, lines: Mapping[str, list[AddedLine]]) -> Alive:
    if today.head is None:
        return Alive()
    alive = Alive(head=today.head, commits_not_in_head=sum(sha not in today.within for sha in lines))
    for sha in lines.keys() & today.within:
        for line in lines[sha]:
            is_alive = bool(today.has(sha, line))
            if line.tag in AGENT:
                alive.agent += 1
                alive.agent_alive += is_alive
            else:
                alive.other += 1
                alive.other_alive += is_alive
    alive.agent_rate, alive.other_rate = _ratio(alive.agent_alive, alive.agent), _ratio(alive.other_alive, alive.other)
    return alive


def _ratio(part: int, whole: int) -> float | None:
    return min(part / whole, 1.0) if whole > 0 else None
