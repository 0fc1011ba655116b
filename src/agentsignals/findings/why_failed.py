"""Why attempts failed: what the infrastructure broke off, and what nobody judged."""

from __future__ import annotations

from collections import Counter

from agentsignals.analysis.clusters import over_places
from agentsignals.analysis.compared import OF_ATTEMPTS
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.ranking import Answer, Question, among, drawn, shown
from agentsignals.analysis.study import Inputs, Row

MUCH = 0.02
"""The share of attempts from which it is worth a sentence."""
LEAST_REASON = 0.5
"""Of the failed attempts: a reason that most of them share, if it is none of the tests'."""
_TESTS = "tests"
_NO_VERDICT = "no verdict"
"""Says again that nobody judged."""
_RUNGS = {
    "infrastructure": ("were broken off by the infrastructure", "Run them again: they say nothing of who was tried."),
    "not_judged": ("were never judged", "Run the verifier over them: they count on neither side."),
    "failed": ("failed for one reason", "Look at one of them first: they may need one change."),
}


def _answers(inputs: Inputs) -> list[Answer]:
    rows = inputs.rows["rungs"]
    return [_answer(rung, rows) for rung in _RUNGS] if rows else []


def _answer(rung: str, rows: list[Row]) -> Answer:
    words, do = _RUNGS[rung]
    of = [row for row in rows if row["rung"] == rung]
    reason, n = next(iter(Counter(row["reason"] or "not recorded" for row in of).most_common(1)), ("none", 0))
    if rung == "failed":
        of = [row for row in of if row["reason"] == reason] if reason != _TESTS and n >= LEAST_REASON * len(of) else []
    ids = {row["session_id"] for row in of}
    tasks = {row["session_id"]: row["task_id"] for row in rows if row["task_id"] is not None}
    share = over_places(((row["session_id"], float(row["session_id"] in ids), 1) for row in rows), tasks, "attempts")
    return Answer(
        id=f"why-failed.{rung.replace('_', '-')}",
        sentence=f"{len(ids):,} of {len(rows):,} attempts ({formatted(share.value, 'share')}) {words}"
        f"{f', mostly “{shown(reason)}”' if reason != _NO_VERDICT else ''}.",
        size=len(ids),
        unit="attempts",
        **drawn(share, MUCH),
        n=len(rows),
        cause=f"{OF_ATTEMPTS} WHERE {among(ids) if ids else 'false'}",
        do=do,
        caveat=f"As the harness recorded it; {share.note.replace('places', 'tasks')}.",
        sessions=tuple(sorted(ids)[:5]),
        of_data=rung == "not_judged",
    )


FINDING = Question(
    name="why_failed",
    question="Why did it fail?",
    queries={
        "rungs": "SELECT session_id, json_extract_string(value, '') AS rung, detail->>'reason' AS reason, task_id"
        " FROM signals JOIN (SELECT session_id, task_id FROM attempts) USING (session_id)"
        " WHERE signal = 'verification.outcome' AND absent IS NULL ORDER BY session_id"
    },
    function=_answers,
    context="eval",
)
