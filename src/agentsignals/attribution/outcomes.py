"""What became of each session's work in Git: which of its lines were committed, taken back, or worked on again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from agentsignals.attribution.commit_figures import AGENT
from agentsignals.attribution.operations import Activity
from agentsignals.attribution.replay import Fates, Replayed
from agentsignals.attribution.repository import Point, Repository, Worktree
from agentsignals.git.commits import Commit
from agentsignals.git.repository_facts import (
    CLOSING_S,
    MOST_TOLD,
    Committed,
    EarlierSessions,
    LinesCommitted,
    LinesTakenBack,
)

REVERTED_FROM = 0.9
"""So large a share of the peak taken back is a revert (design/signals.md#session-outcome)."""
_SECOND_US = 1_000_000
_CLOSING_US = CLOSING_S * _SECOND_US


class _Line(Struct, frozen=True, gc=False):
    """A line of a session in a commit."""

    sha: str
    path: str
    line: int
    seq: int


class _SessionRecord(Struct, kw_only=True):
    """What the replay has of one session."""

    lines: list[_Line] = field(default_factory=list)
    fates: Fates = field(default_factory=Fates)
    changes: list[tuple[int, str]] = field(default_factory=list)
    """When its calls changed which file."""
    linked: set[str] = field(default_factory=set)
    """Commits that checkpoints link to it."""
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
        self._undoing = _undoing(repository)
        self._activities = {activity.session_id: activity for tree, _ in done for activity in tree.activities}
        self._beside = {session_id: others for _, replayed in done for session_id, others in replayed.beside.items()}
        self._records: dict[str, _SessionRecord] = defaultdict(_SessionRecord)
        ends = [activity.ended_at for activity in self._activities.values() if activity.ended_at is not None]
        self._known_until = max([*ends, *(c.committed_at for c in repository.commits)], default=0)
        self._gather(done)
        self._link(commit_points, done)

    def committed(self) -> Iterator[tuple[str, LinesCommitted]]:
        """Of each session whose calls wrote lines: those in commits."""
        for session_id, record in sorted(self._records.items()):
            activity = self._activities.get(session_id)
            if record.fates.made and activity is not None:
                yield session_id, self._committed(record, activity)

    def taken_back(self) -> Iterator[tuple[str, LinesTakenBack]]:
        """Of each session whose calls wrote lines: those that went again."""
        for session_id, record in sorted(self._records.items()):
            activity = self._activities.get(session_id)
            if record.fates.made and activity is not None:
                yield session_id, self._taken_back(record, activity)

    def earlier(self) -> Iterator[tuple[str, EarlierSessions]]:
        """Of each session whose calls wrote lines: the sessions before it on the same lines."""
        for session_id, record in sorted(self._records.items()):
            activity = self._activities.get(session_id)
            if record.fates.made and activity is not None and activity.started_at is not None:
                met = self._beside.get(session_id, {})
                yield (
                    session_id,
                    EarlierSessions({other: sorted(met[other]) for other in self._before(activity.started_at, met)}),
                )

    def _gather(self, done: list[tuple[Worktree, Replayed]]) -> None:
        for tree, replayed in done:
            ours = tree.operations
            for change in ours:
                self._records[change.session_id].changes.append((change.at, change.path))
            for number, fates in replayed.fates.items():
                _add(self._records[ours[number].session_id].fates, fates)
            for sha, lines in replayed.lines.items():
                for line in lines:
                    if line.mark >= 0 and line.tag in AGENT and not line.is_blank:
                        by = ours[line.mark]
                        self._records[by.session_id].lines.append(_Line(sha, line.path, line.line, by.seq))
            for sha, places in replayed.picked_up.items():
                for mark, path, n in places:
                    self._records[ours[mark].session_id].lines.append(_Line(sha, path, n, ours[mark].seq))

    def _link(self, commit_points: list[Point], done: list[tuple[Worktree, Replayed]]) -> None:
        unexplained = {
            sha
            for _, replayed in done
            for sha, lines in replayed.lines.items()
            if any(line.tag in ("agent_shell", "unknown") and not line.is_blank for line in lines)
        }
        linked = {link.checkpoint_id for link in self._repository.links}
        for record in self._repository.recorded:
            if record.checkpoint_id not in linked and record.session_id in self._records:
                self._records[record.session_id].has_missing = True
        for point in commit_points:
            sha = point.commit.sha
            for session_id in point.sessions:
                self._records[session_id].linked.add(sha)
                if sha in unexplained or sha not in self._repository.history:
                    self._records[session_id].has_unexplained = True

    def _before(self, started_at: int, met: Iterable[str]) -> list[str]:
        activities = {s: self._activities[s] for s in met if s in self._activities}
        times = {s: a.started_at for s, a in activities.items() if a.is_a_persons and a.started_at is not None}
        return sorted((s for s, began in times.items() if began < started_at), key=lambda s: (times[s], s))

    def _committed(self, record: _SessionRecord, activity: Activity) -> LinesCommitted:
        close = _close(activity)
        by_commit: dict[str, list[_Line]] = defaultdict(list)
        for line in record.lines:
            by_commit[line.sha].append(line)
        commits = []
        for sha in sorted(by_commit, key=lambda sha: (self._commits[sha].committed_at, sha)):
            lines = by_commit[sha]
            is_late = sha not in record.linked and close is not None and _made(self._commits[sha]) > close
            commits.append(Committed(sha, len(lines), _places(lines), is_late))
        lines_in_time = sum(c.lines for c in commits if not c.is_late)
        verdict = "applied"
        if not lines_in_time:
            placed = record.fates.made - record.fates.unplaced
            verdict = "not_applied" if placed > 0 and close is not None and not record.has_missing else "unknown"
            if close is not None and self._known_until < close:
                verdict = "censored"
        late = {c.sha for c in commits if c.is_late}
        seqs = sorted({line.seq for line in record.lines if line.sha not in late})
        return LinesCommitted(
            verdict=verdict,
            lines=lines_in_time,
            late_lines=sum(c.lines for c in commits if c.is_late),
            produced=record.fates.made,
            n_commits=len(commits),
            commits=commits[:MOST_TOLD],
            calls=seqs[:MOST_TOLD],
            is_sure=not record.has_unexplained,
        )

    def _taken_back(self, record: _SessionRecord, activity: Activity) -> LinesTakenBack:
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
        undone = (
            round(fates.committed * gone / len(record.lines)) if gone else 0
        )  # its blank lines went with the others
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
        """Whether the session itself wrote those files anew in between: replacing one's own lines reverts nothing."""
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


def _undoing(repository: Repository) -> dict[str, list[Commit]]:
    """By commit, those after it that say they revert it, or bring all its files back to what they were before it."""
    by_sha = repository.by_sha
    undone_by: dict[str, list[Commit]] = defaultdict(list)
    for commit in repository.commits:
        for sha in commit.reverts:
            if sha in by_sha and sha != commit.sha:
                undone_by[sha].append(commit)
    brought: dict[tuple[str, str | None], list[Commit]] = defaultdict(list)
    for commit in repository.commits:
        for file in repository.history.get(commit.sha, ()):
            brought[file.path, file.new_oid].append(commit)
    for commit in repository.commits:
        files = repository.history.get(commit.sha) or []
        same: set[str] | None = None
        for file in files:
            back = {c.sha for c in brought.get((file.path, file.old_oid), ()) if c.committed_at > commit.committed_at}
            same = back if same is None else same & back
        undone_by[commit.sha] += [by_sha[s] for s in same or () if all(c.sha != s for c in undone_by[commit.sha])]
    return undone_by


def _close(activity: Activity) -> int | None:
    return activity.ended_at + _CLOSING_US if activity.ended_at is not None else None


def _made(commit: Commit) -> int:
    """When it was first made: a rebase keeps the author's time."""
    return min(commit.authored_at, commit.committed_at)


def _places(lines: list[_Line]) -> dict[str, str]:
    """Line numbers of each file, as spans."""
    by_path: dict[str, set[int]] = defaultdict(set)
    for line in lines:
        by_path[line.path].add(line.line)
    return {path: _spans(sorted(numbers)) for path, numbers in sorted(by_path.items())[:MOST_TOLD]}


def _spans(numbers: list[int]) -> str:
    spans: list[str] = []
    start = before = numbers[0]
    for n in [*numbers[1:], -1]:
        if n != before + 1:
            spans.append(f"{start}-{before}" if before > start else f"{start}")
            start = n
        before = n
    return ", ".join(spans[:MOST_TOLD]) + (", …" if len(spans) > MOST_TOLD else "")


def _add(total: Fates, part: Fates) -> None:
    for name in part.__struct_fields__:
        setattr(total, name, getattr(total, name) + getattr(part, name))
