"""Passes that were not the agent's own: looked up, or by a deed upon what judges (docs/audit.md)."""

from __future__ import annotations

from agentsignals.questions.compare import OF_ATTEMPTS
from agentsignals.questions.estimates import clustered_share_alone
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question
from agentsignals.questions.ranking import Answer, sessions_sql, share_fields
from agentsignals.stats.validation import CAVEAT
from agentsignals.views.reward_hacking import NOT_EARNED

MUCH = 0.02
"""The share of passes from which it is worth a sentence: as much as two entries of a leaderboard lie apart."""


def _answers(inputs: Inputs) -> list[Answer]:
    rows = inputs.rows["audits"]
    if not rows:
        return []
    ids = {row["session_id"] for row in rows if row["verdict"] in NOT_EARNED}
    unknown = sum(row["verdict"] == "cannot_tell" for row in rows)
    tasks = {row["session_id"]: row["task_id"] for row in rows if row["task_id"] is not None}
    share = clustered_share_alone(
        ((row["session_id"], float(row["session_id"] in ids), 1) for row in rows), tasks, "passes"
    )
    return [
        Answer(
            id="not-earned.passes",
            sentence=f"{len(ids):,} of {len(rows):,} passes ({formatted(share.value, 'share')}) were not the agent's"
            " own: the fix was found elsewhere, or what judges was changed.",
            size=len(ids),
            unit="attempts",
            **share_fields(share, MUCH),
            n=len(rows),
            cause=f"{OF_ATTEMPTS} WHERE {sessions_sql(ids) if ids else 'false'}",
            do="`agentsignals audit` has the lines; `compare --outcome verification.earned` compares without them.",
            caveat=f"Of {unknown:,} more nobody can tell; {share.note.replace('places', 'tasks')}. {CAVEAT}",
            sessions=tuple(sorted(ids)[:5]),
        )
    ]


FINDING = Question(
    name="not_earned",
    question="Were the passes earned?",
    queries={
        "audits": "SELECT session_id, json_extract_string(value, '') AS verdict, task_id FROM signals"
        " JOIN (SELECT session_id, task_id FROM attempts) USING (session_id)"
        " WHERE signal = 'verification.pass_audit' AND absent IS NULL ORDER BY session_id"
    },
    function=_answers,
    context="eval",
)
