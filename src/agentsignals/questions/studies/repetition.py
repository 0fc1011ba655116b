"""Whether agents repeat themselves: the mark of a loop."""

from __future__ import annotations

from agentsignals.questions import sql
from agentsignals.questions.charts import COUNTS, SHARES, histogram_chart
from agentsignals.questions.estimates import median_finding, pooled_finding, share_of, signal_values
from agentsignals.questions.question import Inputs, Outcome, Study

_REPETITION = "dynamics.repetition_rate"
STALE = 3
"""Equal calls with no edit between that count as a loop worth a look."""


def _outcome(inputs: Inputs) -> Outcome:
    with_calls = [row for row in inputs.rows["values"] if row["stale_max"] is not None]
    repeats = "Calls that repeat an earlier call of the session"
    same = "same tool, same arguments, no successful edit in between; looks at something that runs are left out"
    findings = [
        pooled_finding(inputs, _REPETITION, "repetition.pooled", repeats, "calls", same),
        median_finding(
            inputs,
            _REPETITION,
            "repetition.median",
            "Repeated calls in the median session",
            unit="share of calls",
            kind="share",
        ),
        share_of(with_calls, inputs.places, lambda row: row["stale_max"] >= STALE).finding(
            "repetition.stale",
            f"Sessions that made the same call {STALE} times or more with no edit between",
            "sessions with a call",
            unit="share of sessions",
            sql=f"SELECT avg(CAST(CAST(detail->>'stale_max' AS INT) >= {STALE} AS INT)) FROM signals"
            f" WHERE signal = '{_REPETITION}' AND absent IS NULL",
            signals=(_REPETITION,),
        ),
    ]
    rates = histogram_chart(
        signal_values(inputs, _REPETITION),
        SHARES,
        id="repetition.spread",
        title="Share of calls that repeat an earlier one",
        unit="of calls are repeats",
    )
    runs = histogram_chart(
        [(row["session_id"], int(row["stale_max"])) for row in with_calls],
        COUNTS,
        id="repetition.stale.spread",
        title="Longest run of one call with no edit between",
        unit="equal calls",
    )
    return Outcome(findings, [], [rates, runs], [])


STUDY = Study(
    name="repetition",
    order=110,
    title="Repetition",
    question="Do agents go in circles?",
    queries={"values": sql.values(_REPETITION, detail=(*sql.RATIO, "stale_max")), "absent": sql.ABSENT},
    function=_outcome,
)
