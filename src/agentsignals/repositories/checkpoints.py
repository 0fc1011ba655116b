"""Checkpoints as Entire recorded them, and the commits that carry their names
(design/attribution.md#checkpoint-layouts)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from statistics import StatisticsError, correlation, mean

import msgspec
from msgspec import Struct, field

from agentsignals.changes import git
from agentsignals.changes.git import Commit
from agentsignals.errors import SourceError
from agentsignals.model import from_iso
from agentsignals.sources import RawFile, open_source, read
from agentsignals.sources import git as checkpoints
from agentsignals.store.tables import CommitRow

ORIGINAL_WITHIN_US = 120_000_000
"""A commit made no further than this from when its checkpoint was taken is the one it was taken for (e.1)."""


class Attributed(Struct, gc=False, kw_only=True):
    """Entire's own count of a session's lines in a commit (design/attribution.md#what-entire-recorded)."""

    calculated_at: str | None = None
    agent_lines: int | None = None
    human_added: int | None = None
    human_modified: int | None = None
    human_removed: int | None = None
    total_committed: int | None = None
    agent_percentage: float | None = None
    metric_version: int | None = None


class _Metadata(Struct, gc=False):
    checkpoint_id: str | None = None
    session_id: str | None = None
    created_at: str | None = None
    branch: str | None = None
    initial_attribution: Attributed | None = None


class Recorded(Struct, gc=False):
    """One session of one checkpoint. Times in microseconds since 1970 UTC."""

    checkpoint_id: str
    session_id: str
    created_at: int | None
    branch: str | None
    attributed: Attributed | None

    @property
    def taken_at(self) -> int | None:
        """When the lines were counted, else when the record was written."""
        counted = from_iso(self.attributed.calculated_at) if self.attributed else None
        return counted if counted is not None else self.created_at


class Link(Struct):
    """A checkpoint with its commit."""

    checkpoint_id: str
    sha: str
    relation: str
    """`original`, `rewritten` (made later than the checkpoint: a rebase, an amend), `further` (another commit with
    the same trailer and changes of its own), `copy` (the same change again: a cherry-pick, a rebase)."""
    off_s: float | None = None
    """Seconds from when the checkpoint was taken to the commit."""


_decode = msgspec.json.Decoder(_Metadata).decode


def recorded(spec: str) -> list[Recorded]:
    """Read the checkpoint records of a repository (`git:…`), one a session and checkpoint."""
    try:
        files = [f for f in open_source(spec) if isinstance(f, RawFile) and f.uri.endswith("/metadata.json")]
    except SourceError:
        return []
    records: dict[tuple[str, str], Recorded] = {}
    for data in read(files):
        if not isinstance(data, bytes):
            continue
        try:
            metadata = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if metadata.checkpoint_id and metadata.session_id:
            session_id = checkpoints.undated_session_id(metadata.session_id)
            row = Recorded(
                metadata.checkpoint_id,
                session_id,
                from_iso(metadata.created_at),
                metadata.branch,
                metadata.initial_attribution,
            )
            earlier = records.get((metadata.checkpoint_id, session_id))
            if earlier is None or earlier.attributed is None:
                records[metadata.checkpoint_id, session_id] = row
    return list(records.values())


def links(commits: Iterable[Commit], rows: Iterable[Recorded]) -> list[Link]:
    """Each commit that names a checkpoint, with what it is to it; merges name none of their own."""
    taken_at: dict[str, int | None] = {}
    for row in rows:
        taken_at[row.checkpoint_id] = taken_at.get(row.checkpoint_id) or row.taken_at
    naming: dict[str, list[Commit]] = defaultdict(list)
    for commit in commits:
        if not commit.is_merge:
            for checkpoint_id in commit.checkpoint_ids:
                naming[checkpoint_id].append(commit)
    linked: list[Link] = []
    for checkpoint_id, named in naming.items():
        taken = taken_at.get(checkpoint_id)
        off = {c.sha: abs(c.committed_at - taken) if taken is not None else 0 for c in named}
        by_nearness = sorted(named, key=lambda c: (off[c.sha], c.committed_at))
        changes: set[tuple[int, str, str]] = set()
        for commit in by_nearness:
            change = (commit.authored_at, commit.author, commit.subject)  # kept by rebase, cherry-pick and amend
            if change in changes:
                relation = "copy"
            elif commit is not by_nearness[0]:
                relation = "further"
            else:
                relation = "original" if taken is None or off[commit.sha] < ORIGINAL_WITHIN_US else "rewritten"
            changes.add(change)
            seconds = (commit.committed_at - taken) / 1e6 if taken is not None else None
            linked.append(Link(checkpoint_id, commit.sha, relation, seconds))
    return linked


def unlinked(commits: list[Commit], rows: list[Recorded], links: list[Link], branches: set[str]) -> dict[str, str]:
    """Why each checkpoint without a commit has none."""
    linked = {link.checkpoint_id for link in links}
    merges = {i for c in commits if c.is_merge for i in c.checkpoint_ids}
    reasons: dict[str, str] = {}
    for row in rows:
        if row.checkpoint_id in linked or row.checkpoint_id in reasons:
            continue
        taken = row.taken_at
        near = [c for c in commits if taken is not None and abs(c.committed_at - taken) < ORIGINAL_WITHIN_US]
        if row.checkpoint_id in merges:
            reason = "named_by_merges_only"
        elif near:
            reason = "commit_without_trailer"
        elif row.branch and row.branch not in branches:
            reason = "branch_not_in_clone"
        else:
            reason = "commit_not_in_history"
        reasons[row.checkpoint_id] = reason
    return reasons


def counted(reasons: dict[str, str]) -> dict[str, int]:
    """Count checkpoints by reason."""
    return dict(sorted(Counter(reasons.values()).items()))


# The commits of a repository with the sessions that checkpoints link them to, before any line is attributed.


class Gathered(Struct):
    """Commits, what checkpoints say of themselves, and what links them."""

    commits: list[Commit]
    recorded: list[Recorded]
    links: list[Link]

    @property
    def checkpoint_ids(self) -> set[str]:
        """The checkpoints that are there."""
        return {row.checkpoint_id for row in self.recorded}

    def rows(self, name: str) -> list[CommitRow]:
        """A row a commit for the store, the repository called `name`."""
        sessions: dict[str, set[str]] = {}
        for record in self.recorded:
            sessions.setdefault(record.checkpoint_id, set()).add(record.session_id)
        relations: dict[str, str] = {}
        for link in self.links:
            if relations.get(link.sha) != "original":
                relations[link.sha] = link.relation
        return [row(name, c, relations.get(c.sha), {s for i in c.checkpoint_ids for s in sessions.get(i, ())})
                for c in self.commits]  # fmt: skip


def gather(git_dir: str, spec: str) -> Gathered:
    """The code history of a Git folder, and the checkpoints that the source `spec` (`git:…`) gives."""
    commits = git.commits(git_dir)
    rows = recorded(spec)
    return Gathered(commits, rows, links(commits, rows))


def row(name: str, commit: Commit, relation: str | None, sessions: set[str] | frozenset[str]) -> CommitRow:
    """A commit as the store keeps it."""
    return CommitRow(
        repo=name,
        commit_sha=commit.sha,
        parent_sha=commit.parents[0] if commit.parents else None,
        authored_at=commit.authored_at,
        committed_at=commit.committed_at,
        author=commit.author,
        subject=commit.subject,
        is_merge=commit.is_merge,
        checkpoint_ids=list(commit.checkpoint_ids),
        relation=relation,
        session_ids=sorted(sessions),
    )


# Entire's recorded figures against the replay's, and what parts them (design/attribution.md#what-entire-recorded).

FAR_POINTS = 7.0
"""A difference from Entire's percentage that asks for a cause."""
_FLAGS = {
    "in_turn": "made in mid-turn: the record is of the turn before",
    "not_original": "the commit was made again since",
    "metric_v2": "the record's newer measure",
}


class Difference(Struct, kw_only=True):
    """A commit whose replayed share is far from the recorded one, on a row that should be comparable."""

    commit_sha: str
    recorded: float
    replayed: float
    low: float | None
    high: float | None
    """The interval of the replay: surely an agent's at least, not surely a person's at most."""
    added: int
    cause: str


class Agreement(Struct, kw_only=True):
    """Entire's figures against the replay's, in percentage points."""

    n: int = 0
    mae: float | None = None
    r: float | None = None
    basis: str = "original commit, one session, no agent at work at that moment, recorded total near the added lines"
    within_interval: int = 0
    """Rows whose recorded percentage lies in the replay's interval, a point more or less."""
    unknown_n: int = 0
    unknown_mae: float | None = None
    """The error of the estimate, an unknown line counting for half, on those of these rows that have unknown lines."""
    all_rows: int = 0
    all_mae: float | None = None
    lines_n: int = 0
    lines_mae: float | None = None
    lines_r: float | None = None
    """Same figures over all rows, by the recorded agent's lines as a share of the commit's added lines. Lines that
    the record counts in files outside the commit are left out."""
    causes: dict[str, int] = field(default_factory=dict)
    """Most likely cause of each large difference, over all rows."""
    far: list[Difference] = field(default_factory=list)
    """The comparable rows that are far apart."""


def agreement(rows: list[CommitRow]) -> Agreement:
    """The recorded percentages against the replayed ones, on rows where both mean the same; and on all of them."""
    pairs = [
        (row, row.recorded_percentage, 100 * row.agent_likely)
        for row in rows
        if row.recorded_percentage is not None and row.agent_likely is not None
    ]
    far = []
    within = 0
    for row, a, b in pairs:
        if row.flags:
            continue
        low, high = (None if share is None else 100 * share for share in (row.agent_low, row.agent_high))
        within += low is not None and high is not None and low - 1 <= a <= high + 1
        if abs(a - b) > FAR_POINTS:
            n = max(_shares(row).values())
            far.append(
                Difference(
                    commit_sha=row.commit_sha,
                    recorded=a,
                    replayed=b,
                    low=low,
                    high=high,
                    added=row.added or 0,
                    cause=_cause(row) + (f": {n} of {row.added or 1}" if n else ""),
                )
            )
    n, mae, r = _errors((a, b) for row, a, b in pairs if not row.flags)
    unknown_n, unknown_mae, _ = _errors((a, b) for row, a, b in pairs if not row.flags and row.unknown)
    all_rows, all_mae, _ = _errors((a, b) for _, a, b in pairs)
    lines_n, lines_mae, lines_r = _errors((share, b) for row, _, b in pairs if (share := _of_lines(row)) is not None)
    return Agreement(
        n=n, mae=mae, r=r, within_interval=within, unknown_n=unknown_n, unknown_mae=unknown_mae, all_rows=all_rows,
        all_mae=all_mae, lines_n=lines_n, lines_mae=lines_mae, lines_r=lines_r, far=far,
        causes=dict(Counter(_cause(row) for row, a, b in pairs if abs(a - b) > FAR_POINTS).most_common()),
    )  # fmt: skip


def _errors(pairs: Iterable[tuple[float, float]]) -> tuple[int, float | None, float | None]:
    """How many pairs there are, their mean absolute difference and their correlation."""
    known = list(pairs)
    r: float | None = None
    with suppress(StatisticsError, TypeError):  # fewer than two, or no spread
        r = round(correlation(*zip(*known, strict=True)), 12)  # the last digits depend on the version of Python
    return len(known), mean(abs(a - b) for a, b in known) if known else None, r


def _of_lines(row: CommitRow) -> float | None:
    """The recorded agent's lines in percent of the added ones; None where nothing was recorded or added."""
    if row.recorded_agent_lines is None or not row.added:
        return None
    return 100 * min(row.recorded_agent_lines / row.added, 1.0)


def _cause(row: CommitRow) -> str:
    """Name the most likely cause of a difference: lines the record counts elsewhere, then its time, then the tags."""
    by_lines, ours = _of_lines(row), 100 * (row.agent_likely or 0)
    if "total_differs" in row.flags and by_lines is not None and abs(by_lines - ours) <= FAR_POINTS:
        return "the record counts lines that are not in the commit"
    for flag, words in _FLAGS.items():
        if flag in row.flags:
            return words
    cause, n = max(_shares(row).items(), key=lambda pair: pair[1])
    if "total_differs" in row.flags and not row.recorded_agent_lines:
        return "the record has none of the agent's lines"
    return cause if n else "the record counts what the calls do not show"


def _shares(row: CommitRow) -> dict[str, int]:
    return {
        "lines that only other sessions' calls have": row.agent_other_session or 0,
        "lines that nothing in the transcripts explains": row.unknown or 0,
        "lines inferred to come from commands": row.agent_shell or 0,
        "lines a person wrote between turns": row.human_observed or 0,
        "lines moved, generated or there before": (row.moved or 0) + (row.generated or 0) + (row.preexisting or 0),
    }
