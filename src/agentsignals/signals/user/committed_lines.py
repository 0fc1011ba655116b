"""Which of a session's lines lived, and whose they were before.

`agentsignals attribute REPO` leaves its results as labels of the sessions they are about.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.catalog import signal
from agentsignals.git.repository_facts import MOST_TOLD, EarlierSessions, Kind, LinesCommitted, LinesTakenBack, read
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView

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
