"""Checkpoints as Entire recorded them, and the commits that carry their names
(design/attribution.md#checkpoint-layouts)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from agentsignals.errors import SourceError
from agentsignals.git.commits import Commit
from agentsignals.model.times import from_iso
from agentsignals.sources import RawFile, checkpoints, open_source, read

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
    """What the checkpoints of a repository (`git:…`) say of themselves, each session of each once."""
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
            session_id = checkpoints.without_date(metadata.session_id)
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
    taken: dict[str, int | None] = {}
    for row in rows:
        taken[row.checkpoint_id] = taken.get(row.checkpoint_id) or row.taken_at
    naming: dict[str, list[Commit]] = defaultdict(list)
    for commit in commits:
        if not commit.is_merge:
            for checkpoint_id in commit.checkpoint_ids:
                naming[checkpoint_id].append(commit)
    linked: list[Link] = []
    for checkpoint_id, named in naming.items():
        linked += _of_checkpoint(checkpoint_id, named, taken.get(checkpoint_id))
    return linked


def _of_checkpoint(checkpoint_id: str, named: list[Commit], taken: int | None) -> list[Link]:
    def off(commit: Commit) -> int:
        return abs(commit.committed_at - taken) if taken is not None else 0

    by_nearness = sorted(named, key=lambda c: (off(c), c.committed_at))
    first = by_nearness[0]
    linked = []
    changes: set[tuple[int, str, str]] = set()
    for commit in by_nearness:
        change = (commit.authored_at, commit.author, commit.subject)  # kept by rebase, cherry-pick and amend
        if change in changes:
            relation = "copy"
        elif commit is not first:
            relation = "further"
        else:
            relation = "original" if taken is None or off(commit) < ORIGINAL_WITHIN_US else "rewritten"
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
    """How many checkpoints each reason has."""
    return dict(sorted(Counter(reasons.values()).items()))
