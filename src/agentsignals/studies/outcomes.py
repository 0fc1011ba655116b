"""How sessions ended, and on what evidence that is said."""

from __future__ import annotations

from collections import Counter

from agentsignals.analysis import rows as sql
from agentsignals.analysis.charts import bars
from agentsignals.analysis.measures import share_finding
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again
from agentsignals.stats.estimates import wilson

_OUTCOME = "user.session_outcome"
_TOLD = {
    "accepted": "accepted",
    "explicitly_rejected": "rejected",
    "restarted_same_task": "begun again",
    "abandoned_mid_session": "no verdict",
}
_EVIDENCE = {"git": "Git", "text": "words", "reopen": "next session", "none": "none"}
"""Git: a commit or a reset; words: what the person said last; next session: the task was begun again."""
_KNOWN = f"FROM signals WHERE signal = '{_OUTCOME}' AND absent IS NULL"


def _outcome(inputs: Inputs) -> Outcome:
    judged = [
        (_TOLD[row["label"]], _EVIDENCE[row["evidence"]]) for row in inputs.rows["outcomes"] if row["absent"] is None
    ]
    counted = Counter(judged)
    limits = [
        "A session without a verdict did not fail: nothing was committed in sight, and nobody said a word. Where"
        " commits are not recorded, most sessions end there.",
    ]
    chart = _chart(counted)
    return Outcome(_findings(judged, inputs), [_table(counted)], [chart] if chart else [], limits)


def _findings(judged: list[tuple[str, str]], inputs: Inputs) -> list[Finding]:
    n = len(judged)

    def share(name: str, title: str, k: int, where: str, note: str = "") -> Finding:
        return share_finding(
            k,
            n,
            id=f"outcomes.{name}",
            title=title,
            unit="share of sessions",
            of="sessions with an outcome",
            signals=(_OUTCOME,),
            command=again(f"SELECT avg(CAST({where} AS INT)) {_KNOWN}"),
            note=note,
        )

    label = f"{sql.LABEL} = "
    censored = len(inputs.rows["outcomes"]) - n
    return [
        share("accepted", "Accepted", sum(o == "accepted" for o, _ in judged), f"{label}'accepted'"),
        share("rejected", "Rejected", sum(o == "rejected" for o, _ in judged), f"{label}'explicitly_rejected'"),
        share(
            "evidence",
            "Sessions whose outcome rests on evidence",
            sum(e != "none" for _, e in judged),
            "detail->>'evidence_kind' <> 'none'",
            note="a commit, the person's words, or the next session",
        ),
        Finding(
            id="outcomes.censored",
            title="Sessions without an outcome",
            value=censored,
            unit="sessions",
            n=len(inputs.rows["outcomes"]),
            of="sessions",
            signals=(_OUTCOME,),
            command=again(f"SELECT count(*) FROM signals WHERE signal = '{_OUTCOME}' AND absent IS NOT NULL"),
            note="they may still have been going on when the traces were read, or have nothing to judge",
        ),
    ]


def _order(counted: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    ranks = {name: i for i, name in enumerate(_TOLD.values())}
    return sorted(counted, key=lambda pair: (ranks.get(pair[0], len(ranks)), -counted[pair], pair))


def _chart(counted: Counter[tuple[str, str]]) -> Chart | None:
    total = counted.total()
    rows: list[Row] = [
        {
            "name": outcome if evidence == "none" else f"{outcome} ({evidence})",
            "value": counted[outcome, evidence],
            "tip": f"{outcome}, evidence {evidence}: {counted[outcome, evidence]:,} of {total:,} sessions"
            f" ({counted[outcome, evidence] / total:.1%})",
        }
        for outcome, evidence in _order(counted)
    ]
    if not rows:
        return None
    return Chart(
        id="outcomes.kinds",
        title="How sessions ended, and how that is known",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "sessions"),
        n=total,
        of="sessions with an outcome",
    )


def _table(counted: Counter[tuple[str, str]]) -> Table:
    total = counted.total()
    rows = []
    for pair in _order(counted):
        low, high = wilson(counted[pair], total) or (None, None)
        rows.append([*pair, counted[pair], counted[pair] / total, low, high])
    return Table(
        id="outcomes.kinds",
        title="Outcomes by evidence",
        columns=(
            Column("outcome", "outcome"),
            Column("evidence", "evidence"),
            Column("sessions", "sessions", "count"),
            Column("share", "share", "share"),
            Column("low", "95% from", "share"),
            Column("high", "to", "share"),
        ),
        rows=rows,
        n=total,
        of="sessions with an outcome",
    )


STUDY = Study(
    name="outcomes",
    place=310,
    title="Outcomes",
    question="How did sessions end, and how is that known?",
    queries={
        "outcomes": f"SELECT session_id, {sql.LABEL} AS label, absent,"
        f" detail->>'evidence_kind' AS evidence FROM signals WHERE signal = '{_OUTCOME}' ORDER BY session_id"
    },
    function=_outcome,
    context="product",
)
