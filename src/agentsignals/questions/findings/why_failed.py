"""Why attempts failed: what the infrastructure broke off, what nobody judged, and what most of the rest share."""

from __future__ import annotations

from collections import Counter

from agentsignals.questions.compare import OF_ATTEMPTS
from agentsignals.questions.estimates import clustered_share_alone
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Question, Row
from agentsignals.questions.ranking import Answer, safe_name, sessions_sql, share_fields

MUCH = 0.02
"""The share of attempts from which it is worth a sentence."""
LEAST_REASON = 0.5
"""Of the failed attempts: a class that most of them share, if there is anything to do about it."""
_NO_NEWS = ("tests", "wrong_answer", "cannot_tell")
"""Of these nobody would do anything else tomorrow."""
_NO_VERDICT = "no verdict"
"""Says again that nobody judged."""
_RUNGS = {
    "infrastructure": ("were broken off by the infrastructure", "Run them again: they say nothing of who was tried."),
    "not_judged": ("were never judged", "Run the verifier over them: they count on neither side."),
    "failed": ("failed for one reason", "`agentsignals failures` lists them, by candidate: they may need one change."),
}

_RESTS = {
    "infrastructure": "As the harness recorded it",
    "not_judged": "As the harness recorded it",
    "failed": "By rules over what the run recorded (design/failures.md)",
}


def _answers(inputs: Inputs) -> list[Answer]:
    rows = inputs.rows["rungs"]
    return [_answer(rung, rows) for rung in _RUNGS] if rows else []


def _answer(rung: str, rows: list[Row]) -> Answer:
    words, do = _RUNGS[rung]
    of = [row for row in rows if row["rung"] == rung]
    reason, n = next(iter(Counter(row["reason"] or "not recorded" for row in of).most_common(1)), ("none", 0))
    if rung == "failed":
        of = (
            [row for row in of if row["reason"] == reason]
            if reason not in _NO_NEWS and n >= LEAST_REASON * len(of)
            else []
        )
    ids = {row["session_id"] for row in of}
    tasks = {row["session_id"]: row["task_id"] for row in rows if row["task_id"] is not None}
    share = clustered_share_alone(
        ((row["session_id"], float(row["session_id"] in ids), 1) for row in rows), tasks, "attempts"
    )
    return Answer(
        id=f"why-failed.{rung.replace('_', '-')}",
        sentence=f"{len(ids):,} of {len(rows):,} attempts ({formatted(share.value, 'share')}) {words}"
        f"{_mostly(rung, reason)}.",
        size=len(ids),
        unit="attempts",
        **share_fields(share, MUCH),
        n=len(rows),
        cause=f"{OF_ATTEMPTS} WHERE {sessions_sql(ids) if ids else 'false'}",
        do=do,
        caveat=f"{_RESTS[rung]}; {share.note.replace('places', 'tasks')}.",
        sessions=tuple(sorted(ids)[:5]),
        of_data=rung == "not_judged",
    )


def _mostly(rung: str, reason: str) -> str:
    """The reason as the end of the sentence."""
    words = safe_name(reason.replace("_", " "))
    return f": {words}" if rung == "failed" else f", mostly “{words}”" if reason != _NO_VERDICT else ""


FINDING = Question(
    name="why_failed",
    question="Why did it fail?",
    queries={
        "rungs": "SELECT session_id, rung, CASE WHEN rung = 'failed' THEN coalesce(class, reason) ELSE reason END AS"
        " reason, task_id FROM (SELECT session_id,"
        " max(json_extract_string(value, '')) FILTER (signal = 'verification.outcome') AS rung,"
        " max(detail->>'reason') FILTER (signal = 'verification.outcome') AS reason,"
        " max(json_extract_string(value, '')) FILTER (signal = 'verification.failure_class') AS class FROM signals"
        " WHERE signal IN ('verification.outcome', 'verification.failure_class') AND absent IS NULL"
        " GROUP BY session_id) JOIN (SELECT session_id, task_id FROM attempts) USING (session_id)"
        " WHERE rung IS NOT NULL ORDER BY session_id"
    },
    function=_answers,
    context="eval",
)
