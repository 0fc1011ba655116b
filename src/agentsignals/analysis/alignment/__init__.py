"""Two or more runs of one task beside each other: what each did step by step, where they part, what each did then.

More than two are aligned as a star: each with one reference, a run that solved the task where one did, so that every
place says where a run left the one that got there (design/alignment.md#more-than-two).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from agentsignals.analysis.alignment.divergence import FAILED, Divergence, divergence
from agentsignals.analysis.alignment.facing import MOST_STEPS, Facing, facing
from agentsignals.analysis.alignment.steps import Names, Step, steps_of
from agentsignals.model import Session

__all__ = ["FACTS", "OF_TASK", "OF_TRIAL", "Alignment", "Facing", "Run", "Step", "align", "reference_of"]

MOST_RUNS = 50
"""Attempts at one task that are aligned."""
FACTS = """
SELECT s.session_id, s.agent, coalesce(a.model_id, s.model) AS model, a.task_id, a.trial_id, a.attempt_index,
  a.outcome, a.patch_outcome_label AS patch, a.exit_status AS ended
FROM sessions s LEFT JOIN attempts a USING (session_id) WHERE list_contains($ids, s.session_id)
"""
_OF = f"""
SELECT session_id FROM attempts JOIN (SELECT session_id, n_tool_calls FROM sessions) USING (session_id)
WHERE {{column}} = $name AND n_tool_calls > 0 ORDER BY attempt_index, session_id LIMIT {MOST_RUNS + 1}
"""
OF_TASK, OF_TRIAL = _OF.format(column="task_id"), _OF.format(column="trial_id")
"""The attempts at a task, or of a trial, that have calls: rows of session_id."""


class Run(Struct, frozen=True, kw_only=True):
    """A run, and how it ended."""

    session_id: str
    agent: str
    model: str | None = None
    task_id: str | None = None
    trial_id: str | None = None
    attempt_index: int | None = None
    outcome: str | None = None
    """On the ladder of attempts; None of a session that is none."""
    patch: str | None = None
    """What became of its patch."""
    ended: str | None = None
    """In the harness's own words."""
    calls: int
    failed: int
    """Of the calls."""


class Alignment(Struct, frozen=True, kw_only=True):
    """Two runs beside each other."""

    left: Run
    right: Run
    rows: list[Facing]
    left_out: tuple[int, int]
    """Steps at the ends that are not aligned, for there are too many."""
    same: int
    """Rows in which both do the same."""
    alike: int
    """Rows in which both do the same kind of thing to the same file."""
    divergence: Divergence


def align(sessions: Sequence[Session], facts: Mapping[str, Mapping[str, Any]]) -> list[Alignment]:
    """Each further session beside the first. `facts`: rows of `FACTS` by session."""
    names = Names(sessions)
    steps = [steps_of(session, names) for session in sessions]
    runs = [
        _run(session, done, facts.get(session.session_id, {})) for session, done in zip(sessions, steps, strict=True)
    ]
    return [_aligned(runs[0], steps[0], run, done) for run, done in zip(runs[1:], steps[1:], strict=True)]


def reference_of(sessions: Sequence[Session], facts: Mapping[str, Mapping[str, Any]]) -> Session:
    """Which of several runs the others are held against: of those that solved the task, or else of all, the one with
    the median number of calls."""
    solved = [s for s in sessions if facts.get(s.session_id, {}).get("outcome") == "solved"]
    ordered = sorted(solved or sessions, key=lambda s: (len(s.tool_calls), s.session_id))
    return ordered[(len(ordered) - 1) // 2]


def _run(session: Session, steps: Sequence[Step], facts: Mapping[str, Any]) -> Run:
    calls = [step for step in steps if step.kind != "prompt"]
    named = {"session_id": session.session_id, "agent": session.agent, "model": session.model}
    recorded = {name: facts[name] for name in Run.__struct_fields__ if name in facts}
    return Run(**{**named, **recorded}, calls=len(calls), failed=sum(step.status in FAILED for step in calls))


def _aligned(left: Run, ours: Sequence[Step], right: Run, theirs: Sequence[Step]) -> Alignment:
    rows = facing(ours[:MOST_STEPS], theirs[:MOST_STEPS])
    left_out = max(len(ours) - MOST_STEPS, 0), max(len(theirs) - MOST_STEPS, 0)
    return Alignment(
        left=left,
        right=right,
        rows=rows,
        left_out=left_out,
        same=sum(row.how == "same" for row in rows),
        alike=sum(row.how == "alike" for row in rows),
        divergence=divergence(rows, any(left_out)),
    )
