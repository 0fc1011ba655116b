"""What takes a checkout to say: which of an agent's lines lived, and what came with them.

`agentsignals attribute REPO` and `scan REPO` leave their results as labels of the sessions they are about.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.catalog import Measured, signal
from agentsignals.git.evidence import MOST_TOLD, EarlierSessions, Kind, LinesCommitted, LinesTakenBack, read
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView


def _measured(view: SessionView, why: Evidence, task: str, missing: Absent) -> Measured | Absent:
    label = next(
        (judgement for judgement in view.judgements(task) if judgement.turn is None and judgement.number is not None),
        None,
    )
    if label is None or label.number is None:
        return missing
    detail = msgspec.json.decode(label.detail) if label.detail else {}
    why.support(view.session.edits)
    why.rule(label.reason or f"measured by {label.labeller}")
    return Measured(label.number, {"labeller": label.labeller, **detail})


@signal(
    "chat.code_survival_rate",
    type="float",
    unit="ratio",
    origin="swe-chat",
    source="git",
    priority="P1",
    status="needs a repository",
    why="How much of what an agent wrote reached a commit.",
    pitfalls="Several published rates go by this name; the detail says which lines are divided by which.",
)
def code_survival_rate(view: SessionView, why: Evidence) -> Measured | Absent:
    """Lines of the agent that are in the commits of the session, over the lines its successful edits added."""
    if not view.session.edits:
        return Absent("not_applicable", "no_edit")
    return _measured(view, why, "code_survival", Absent("missing_artifact", "git_attribution"))


@signal(
    "chat.vulnerabilities_introduced_per_kloc",
    type="float",
    unit="findings_per_kloc",
    origin="swe-chat",
    source="git",
    priority="P3",
    status="needs a repository",
    why="Which weaknesses came with an agent's lines.",
    pitfalls="Findings of a static scanner are not confirmed weaknesses; rates of different rule sets don't compare.",
)
def vulnerabilities_introduced_per_kloc(view: SessionView, why: Evidence) -> Measured | Absent:
    """New findings of a scanner in the files that the session's commits changed, per 1 000 added lines."""
    return _measured(view, why, "vulnerabilities", Absent("backend_disabled", "scanner"))


_NOT_ATTRIBUTED = Absent("missing_artifact", "git_attribution")


def _attribution(view: SessionView, kind: type[Kind]) -> Kind | Absent:
    """What `attribute` left of this session."""
    if not view.session.edits:
        return Absent("not_applicable", "no_edit")
    attribution = read(view.session.labels, kind)
    return _NOT_ATTRIBUTED if attribution is None else attribution


@signal(
    "user.lines_committed",
    type="obj",
    unit="lines",
    origin="agentsignals",
    source="git",
    priority="P1",
    status="needs a repository",
    why="Which commits have the work of a session, whoever made them: user.output_applied rests on it.",
    pitfalls="A line is a session's where the replay of its calls put it. Lines that only a command wrote are none.",
)
def lines_committed(view: SessionView, why: Evidence) -> dict[str, Any] | Absent:
    """The lines that the session's calls wrote and that stand in commits: how many, in which, in which files."""
    attribution = _attribution(view, LinesCommitted)
    if isinstance(attribution, Absent):
        return attribution
    calls = set(attribution.calls)
    why.support([e for e in view.session.edits if e.seq in calls])
    for commit in attribution.commits:
        places = "; ".join(f"{path} {lines}" for path, lines in commit.files.items())
        late = " (after the session had closed)" if commit.is_late else ""
        why.rule(f"commit {commit.sha[:12]} has {commit.lines} lines of the session{late}: {places}")
    return _plain(attribution)


@signal(
    "user.lines_taken_back",
    type="obj",
    unit="lines",
    origin="agentsignals",
    source="git",
    priority="P1",
    status="needs a repository",
    why="What of a session's work others removed again: user.changes_reverted rests on it.",
    pitfalls="Shares lie between what is certain and what is possible: of a line that nobody committed nothing is"
    " known until its file is in a commit.",
)
def lines_taken_back(view: SessionView, why: Evidence) -> dict[str, Any] | Absent:
    """Of the lines that the session's calls wrote and left standing: those that were gone from their files, or whose
    commit was undone before the session had closed."""
    attribution = _attribution(view, LinesTakenBack)
    if isinstance(attribution, Absent):
        return attribution
    why.support(view.session.edits)
    for sha in attribution.undone_by:
        why.rule(f"commit {sha[:12]} undoes a commit of the session")
    for sha in attribution.undone_later_by:
        why.rule(f"commit {sha[:12]} reverts a commit of the session after it had closed")
    return _plain(attribution)


@signal(
    "user.earlier_sessions_on_lines",
    type="obj",
    unit="files by session",
    origin="agentsignals",
    source="git",
    priority="P2",
    status="needs a repository",
    why="Which lines were whose, followed through every commit: user.prior_sessions_same_region rests on it.",
    pitfalls="Followed within one working tree; lines of other trees are known by their text only.",
)
def earlier_sessions_on_lines(view: SessionView, why: Evidence) -> dict[str, list[str]] | Absent:
    """Sessions that began earlier and wrote lines that this one replaced, or wrote within three lines of; and the
    files."""
    attribution = _attribution(view, EarlierSessions)
    if isinstance(attribution, Absent):
        return attribution
    why.support(view.session.edits)
    for session_id, files in list(attribution.sessions.items())[:MOST_TOLD]:
        why.rule(f"session {session_id} wrote lines in {', '.join(files)}")
    return attribution.sessions


def _plain(attribution: LinesCommitted | LinesTakenBack) -> dict[str, Any]:
    """As a value, without the name of its kind."""
    fields: dict[str, Any] = msgspec.to_builtins(attribution)
    del fields["kind"]
    return fields
