"""What the replay says of single sessions, as labels: how much of their lines survived, in what mode they worked, what
became of their work in Git."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import msgspec

from agentsignals.attribution import survival
from agentsignals.attribution.measures import authored, mode_of, share_of
from agentsignals.attribution.outcomes import Outcomes
from agentsignals.attribution.replay import Replayed
from agentsignals.attribution.repository import Point, Repository, Worktree
from agentsignals.git.evidence import LABELLER
from agentsignals.git.evidence import label as told_of
from agentsignals.model import Label
from agentsignals.store import Store, labels
from agentsignals.store.labels import LabelRow

SURVIVAL, MODE = "code_survival", "coding_mode"


def write(
    store: Store, repository: Repository, found: list[Point], done: list[tuple[Worktree, Replayed]]
) -> dict[str, int]:
    """Labels the sessions of a repository, beside those of others; how many sessions have which mode."""
    ours = {one.session_id for tree, _ in done for one in tree.activities}
    modes = _modes(found, done, ours)
    _replace(store, SURVIVAL, ours, _survival(done))
    _replace(store, MODE, ours, modes)
    for task, rows in _outcomes(Outcomes(repository, found, done)).items():
        _replace(store, task, ours, rows)
    return dict(sorted(Counter(row.label.value for row in modes).items()))


def _survival(done: list[tuple[Worktree, Replayed]]) -> list[LabelRow]:
    reason = "lines that reached a commit / lines that edits wrote (Eq 2, any later commit)"
    rows = []
    for session_id, told in sorted(survival.by_session(done).items()):
        rate = told.efficiency
        if rate is not None:
            detail = msgspec.json.encode(told).decode()
            label = Label(
                task=SURVIVAL,
                labeller=LABELLER,
                turn=None,
                value=f"{rate:.4f}",
                reason=reason,
                number=rate,
                detail=detail,
            )
            rows.append(LabelRow(session_id, label))
    return rows


def _outcomes(told: Outcomes) -> dict[str, list[LabelRow]]:
    committed = [
        LabelRow(s, told_of(one, one.verdict, one.lines, "its lines in commits made until it closed"))
        for s, one in told.committed()
    ]
    taken = [
        LabelRow(s, told_of(one, one.verdict, one.share_low, "its lines that others took away again"))
        for s, one in told.taken_back()
    ]
    earlier = [
        LabelRow(s, told_of(one, f"{len(one.sessions)}", len(one.sessions), "whose lines it replaced or wrote beside"))
        for s, one in told.earlier()
    ]
    return {"lines_committed": committed, "lines_taken_back": taken, "earlier_on_same_lines": earlier}


def _modes(found: list[Point], done: list[tuple[Worktree, Replayed]], ours: set[str]) -> list[LabelRow]:
    """Of the lines of all commits that a session is linked to, whoever of its sessions wrote them (paper, M2)."""
    lines = {sha: own for _, one in done for sha, own in one.lines.items()}
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for point in found:
        for session_id in point.sessions & ours:
            tags[session_id] += authored(lines.get(point.commit.sha, []))
    rows = []
    for session_id, counted in sorted(tags.items()):
        share = share_of(counted)
        if share.n:
            detail = msgspec.json.encode(share).decode()
            reason = "the whole interval [surely an agent's, not surely a person's] lies in the mode"
            value = mode_of(share.low, share.high)
            label = Label(
                task=MODE, labeller=LABELLER, turn=None, value=value, reason=reason, number=share.likely, detail=detail
            )
            rows.append(LabelRow(session_id, label))
    return rows


def _replace(store: Store, task: str, ours: set[str], rows: Iterable[LabelRow]) -> None:
    labels.replace(store.folder, task, LABELLER, ours, rows)
