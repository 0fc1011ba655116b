"""How sessions ended, and on what evidence that is said."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import bars
from agentsignals.questions.estimates import Sample, bar, chart, count, table
from agentsignals.questions.question import Finding, Inputs, Outcome, Row, Study

_OUTCOME = "user.session_outcome"
_OUTCOMES = {
    "accepted": "accepted",
    "explicitly_rejected": "rejected",
    "restarted_same_task": "begun again",
    "abandoned_mid_session": "left off",
}
_UNSEEN = "no verdict"
_EVIDENCE = {
    "git": "Git",
    "text": "words",
    "reopen": "next session",
    "cut": "response cut short",
    "question": "question left open",
}
"""Git: a commit or a reset; words: what the person said last; next session: the task was begun again; the last two: the
person stopped the agent, or owed it an answer, and never came back."""
_ENDED = f"FROM signals WHERE signal = '{_OUTCOME}' AND (absent IS NULL OR absent = 'none_found')"
_OF = "sessions that ended"


def _outcome(inputs: Inputs) -> Outcome:
    judged = [row for row in inputs.rows["outcomes"] if row["absent"] in (None, "none_found")]
    kinds_of = [_ended(row) for row in judged]
    sample = Sample([row["session_id"] for row in judged], inputs.places)
    counted, total = Counter(kinds_of), len(judged)
    ranks = {name: i for i, name in enumerate((*_OUTCOMES.values(), _UNSEEN))}
    rows: list[list[Any]] = []
    marks: list[Row] = []
    behind = []
    for ended, evidence in sorted(counted, key=lambda pair: (ranks[pair[0]], -counted[pair], pair)):
        n = counted[ended, evidence]
        estimate = sample.among(kinds_of, (ended, evidence))
        rows.append([ended, evidence, n, estimate.value, *estimate.ends])
        behind.append([s for s, k, _ in estimate.counted() if k])
        tip = f"{ended}, evidence {evidence}: {n:,} of {total:,} sessions ({n / total:.1%})"
        marks.append(bar(ended if evidence == "none" else f"{ended} ({evidence})", n, tip, evidence=behind[-1]))
    header = "outcome | evidence | sessions:count | share:share | ends:share"
    by_evidence = table("outcomes.kinds", "Outcomes by evidence", header, rows, n=total, of=_OF, evidence=behind)
    title = "How sessions ended, and how that is known"
    limits = [
        "A session without a verdict neither failed nor succeeded: nothing was committed in sight, and nobody said a"
        " word. Where commits are not recorded, most sessions end there: the shares accepted and rejected are lower"
        " bounds."
    ]
    kinds = chart("outcomes.kinds", title, marks, bars(marks, "sessions"), n=total, of=_OF)
    return Outcome(_findings(judged, sample, inputs.rows["outcomes"]), [by_evidence], [kinds], limits)


def _ended(row: Row) -> tuple[str, str]:
    """How a session ended, and on what evidence that is said."""
    if row["absent"] is not None:
        return _UNSEEN, "none"
    return _OUTCOMES[row["label"]], _EVIDENCE[row["evidence"]]


def _findings(judged: list[Row], sample: Sample, rows: list[Row]) -> list[Finding]:
    labels = [row["label"] if row["absent"] is None else None for row in judged]
    on_evidence, rests_on = (
        "Sessions whose outcome rests on evidence",
        "a commit, the person's words, the next session, a response cut short, or a question left open",
    )
    at_least = "a lower bound: of the sessions without a verdict nobody knows"
    asked: tuple[tuple[str, str, tuple[str, ...], str, str, tuple[str, ...]], ...] = (
        ("accepted", "Accepted", ("accepted",), f"absent IS NULL AND {sql.LABEL} = 'accepted'", at_least,
         ("accepted",)),
        ("rejected", "Rejected", ("explicitly_rejected",), f"absent IS NULL AND {sql.LABEL} = 'explicitly_rejected'",
         at_least, ("explicitly_rejected",)),
        ("evidence", on_evidence, tuple(_OUTCOMES), "absent IS NULL", rests_on, ()),
    )  # fmt: skip
    shares = [
        sample.among(labels, *wanted).finding(
            f"outcomes.{name}",
            title,
            _OF,
            note,
            unit="share of sessions",
            sql=f"SELECT avg(CAST({where} AS INT)) {_ENDED}",
            signals=(_OUTCOME,),
            classes=classes,
        )
        for name, title, wanted, where, note, classes in asked
    ]
    ended, n = {row["session_id"] for row in judged}, len(rows)
    parts = [(row["session_id"], row["session_id"] not in ended, 1) for row in rows]
    censored = count(n - len(judged), n, evidence=parts).finding(
        "outcomes.censored",
        "Sessions that may not have ended",
        "sessions",
        "they may still have been going on when the traces were read, or have nothing to judge",
        unit="sessions",
        sql=f"SELECT count(*) FROM signals WHERE signal = '{_OUTCOME}' AND absent IS NOT NULL"
        " AND absent <> 'none_found'",
        signals=(_OUTCOME,),
    )
    return [*shares, censored]


STUDY = Study(
    name="outcomes",
    order=310,
    title="Outcomes",
    question="How did sessions end, and how is that known?",
    queries={
        "outcomes": f"SELECT session_id, {sql.PLACE}, {sql.LABEL} AS label, absent,"
        f" detail->>'evidence_kind' AS evidence FROM {sql.NAMED} JOIN sessions USING (session_id)"
        f" WHERE signal = '{_OUTCOME}' ORDER BY session_id"
    },
    function=_outcome,
    context="product",
)
