"""Whether agents repeat themselves: the mark of a loop."""

from __future__ import annotations

from agentsignals.analysis import rows as sql
from agentsignals.analysis.distributions import COUNTS, SHARES, histogram_chart
from agentsignals.analysis.measures import median_finding, numbers, pooled_finding, share_finding
from agentsignals.analysis.study import Inputs, Outcome, Study, again

_REPETITION = "dynamics.repetition_rate"
STALE = 3
"""Equal calls with no edit between that count as a loop worth a look."""


def _outcome(inputs: Inputs) -> Outcome:
    stale = [int(row["stale_max"]) for row in inputs.rows["values"] if row["stale_max"] is not None]
    rates = numbers(inputs, _REPETITION)
    findings = [
        pooled_finding(
            inputs,
            _REPETITION,
            "calls",
            id="repetition.pooled",
            title="Calls that repeat an earlier call of the session",
            unit="share of calls",
            note="same tool, same arguments; a test run again after an edit is a repeat too",
        ),
        median_finding(
            inputs,
            _REPETITION,
            id="repetition.median",
            title="Repeated calls in the median session",
            unit="share of calls",
            kind="share",
        ),
        share_finding(
            sum(1 for n in stale if n >= STALE),
            len(stale),
            id="repetition.stale",
            title=f"Sessions that made the same call {STALE} times or more with no edit between",
            unit="share of sessions",
            of="sessions with a call",
            signals=(_REPETITION,),
            command=again(
                f"SELECT avg(CAST(CAST(detail->>'stale_max' AS INT) >= {STALE} AS INT)) FROM signals"
                f" WHERE signal = '{_REPETITION}' AND absent IS NULL"
            ),
        ),
    ]
    charts = [
        histogram_chart(
            rates,
            SHARES,
            id="repetition.spread",
            title="Share of calls that repeat an earlier one",
            unit="of calls are repeats",
        ),
        histogram_chart(
            stale,
            COUNTS,
            id="repetition.stale.spread",
            title="Longest run of one call with no edit between",
            unit="equal calls",
        ),
    ]
    return Outcome(findings, [], [c for c in charts if c is not None], [])


STUDY = Study(
    name="repetition",
    place=110,
    title="Repetition",
    question="Do agents go in circles?",
    queries={"values": sql.values(_REPETITION, detail=("stale_max",))},
    function=_outcome,
)
