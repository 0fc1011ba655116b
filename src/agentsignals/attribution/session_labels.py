"""What the replay says of single sessions, as labels: how much of their lines survived, in what mode they worked, what
became of their work in Git."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec
from msgspec import Struct, field

from agentsignals.attribution import survival
from agentsignals.attribution.commit_figures import authored, mode_of, share_of
from agentsignals.attribution.outcomes import Outcomes
from agentsignals.attribution.replay import Replayed
from agentsignals.attribution.repository import Point, Repository, Worktree
from agentsignals.git.repository_facts import LABELLER
from agentsignals.git.repository_facts import label as told_of
from agentsignals.model import Label
from agentsignals.store import Store, label_files
from agentsignals.store.label_files import LabelRow

SURVIVAL, MODE = "code_survival", "coding_mode"


class OfSessions(Struct):
    """The labels of a repository's sessions, those without one among them."""

    sessions: set[str] = field(default_factory=set)
    by_task: dict[str, list[LabelRow]] = field(default_factory=dict)

    @property
    def modes(self) -> dict[str, int]:
        """How many sessions have which mode."""
        return dict(sorted(Counter(row.label.value for row in self.by_task[MODE]).items()))

    def write(self, store: Store) -> None:
        """Puts them beside those of other sessions, in the place of what these had before."""
        for task, rows in self.by_task.items():
            label_files.replace(store.folder, task, LABELLER, self.sessions, rows)


def of_sessions(
    repository: Repository, commit_points: list[Point], done: list[tuple[Worktree, Replayed]]
) -> OfSessions:
    """What the replay says of the sessions that worked in a repository."""
    ours = {activity.session_id for tree, _ in done for activity in tree.activities}
    of_replay = {SURVIVAL: _survival(done), MODE: _modes(commit_points, done, ours)}
    return OfSessions(ours, of_replay | _outcomes(Outcomes(repository, commit_points, done)))


def _survival(done: list[tuple[Worktree, Replayed]]) -> list[LabelRow]:
    reason = "lines that reached a commit / lines that edits wrote (Eq 2, any later commit)"
    rows = []
    for session_id, survived in sorted(survival.by_session(done).items()):
        rate = survived.efficiency
        if rate is not None:
            detail = msgspec.json.encode(survived).decode()
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


def _outcomes(outcomes: Outcomes) -> dict[str, list[LabelRow]]:
    committed = [
        LabelRow(s, told_of(outcome, outcome.verdict, outcome.lines, "its lines in commits made until it closed"))
        for s, outcome in outcomes.committed()
    ]
    taken = [
        LabelRow(s, told_of(outcome, outcome.verdict, outcome.share_low, "its lines that others took away again"))
        for s, outcome in outcomes.taken_back()
    ]
    earlier = [
        LabelRow(
            s,
            told_of(
                outcome, f"{len(outcome.sessions)}", len(outcome.sessions), "whose lines it replaced or wrote beside"
            ),
        )
        for s, outcome in outcomes.earlier()
    ]
    return {"lines_committed": committed, "lines_taken_back": taken, "earlier_on_same_lines": earlier}


def _modes(commit_points: list[Point], done: list[tuple[Worktree, Replayed]], ours: set[str]) -> list[LabelRow]:
    """Of the lines of all commits that a session is linked to, whoever of its sessions wrote them (paper, M2)."""
    lines = {sha: added_lines for _, replayed in done for sha, added_lines in replayed.lines.items()}
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for point in commit_points:
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
