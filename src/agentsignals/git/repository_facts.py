"""What a repository says of one session: a label each, left by who reads the history, read by who measures sessions."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct, field

from agentsignals.model import Label

LABELLER = "attribution"
"""Only its labels count as evidence: those that come with a trace may say anything."""
MOST_TOLD = 20
"""Commits, calls and sessions that are named; the counts tell of all."""
CLOSING_S = 1800
"""A session is closed so long after its last event (design/signals.md#output-applied)."""


class Committed(Struct):
    """A commit that has lines a session wrote."""

    sha: str
    lines: int
    """None of them blank."""
    files: dict[str, str]
    """Path to line numbers in the file as committed: `3-9, 12`."""
    is_late: bool
    """Made after the session had closed, and not linked to it by a checkpoint."""


class LinesCommitted(Struct, tag_field="kind", tag="lines_committed", kw_only=True):
    """Which lines that a session's calls wrote reached a commit, whoever made it."""

    verdict: str
    """`applied`, `not_applied`, `censored` (the repository tells of nothing so late as the session's close), `unknown`.
    """
    lines: int
    """In commits made until the session's close, or linked to it."""
    late_lines: int
    produced: int
    """Lines that its calls wrote, blank ones included."""
    n_commits: int
    commits: list[Committed] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    """Events (`seq`) of calls that wrote them."""
    is_sure: bool = True
    """False when its commits have lines that nothing explains: some of them may be its own all the same."""


class LinesTakenBack(Struct, tag_field="kind", tag="lines_taken_back", kw_only=True):
    """What of a session's lines somebody took away again, the agents' own rewriting aside."""

    verdict: str
    """`reverted`, `kept`, `unknown`."""
    peak: int
    """Lines that its calls wrote and did not overwrite themselves."""
    share_low: float
    share_high: float
    """Shares of the peak: taken back for certain, and with all lines of which nothing is known."""
    taken: int
    """Gone from a file when it was committed."""
    undone: int
    """In commits that others undid before the session closed."""
    undone_by: list[str] = field(default_factory=list)
    undone_later_by: list[str] = field(default_factory=list)
    """Commits that say they revert one of its commits, made after the close: no part of the value."""


class EarlierSessions(Struct, tag_field="kind", tag="earlier_on_same_lines"):
    """Sessions that began earlier, and wrote lines that this one replaced or wrote beside."""

    sessions: dict[str, list[str]]
    """Each with the files."""


Kind = TypeVar("Kind", LinesCommitted, LinesTakenBack, EarlierSessions)


def label(evidence: Kind, value: str, number: float, reason: str) -> Label:
    """The evidence as a label of its session."""
    task = str(evidence.__struct_config__.tag)
    return Label(
        task=task,
        labeller=LABELLER,
        turn=None,
        value=value,
        reason=reason,
        number=number,
        detail=msgspec.json.encode(evidence).decode(),
    )


def read(labels: list[Label], kind: type[Kind]) -> Kind | None:
    """The evidence of a kind among a session's labels; None when nobody left any."""
    for label in labels:
        if label.labeller == LABELLER and label.detail and label.task == kind.__struct_config__.tag:
            try:
                return msgspec.json.decode(label.detail, type=kind)
            except (msgspec.DecodeError, RecursionError):  # of an older version, or made up
                return None
    return None
