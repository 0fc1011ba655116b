"""How much an agent does for each prompt (agent-traces's autonomy ratio)."""

from __future__ import annotations

from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import RATIOS, dots, histogram_chart
from agentsignals.questions.estimates import (
    INTERVAL_NOTE,
    agents_by_sessions,
    by,
    chart,
    clustered_median,
    median_finding,
    pooled_finding,
    pooled_ratio,
    signal_values,
    table,
)
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Inputs, Outcome, Row, Study
from agentsignals.stats.intervals import quantile

_AUTONOMY = "corpus.autonomy_ratio"
_PER_TURN = "tool calls for each prompt"
_UNIT = "calls for each prompt"


def _outcome(inputs: Inputs) -> Outcome:
    title = "Tool calls for each prompt"
    weigh = "all calls over all prompts: long sessions weigh more"
    findings = [
        median_finding(inputs, _AUTONOMY, "autonomy.median", f"{title}, median session", unit=_UNIT, headline=True),
        pooled_finding(
            inputs, _AUTONOMY, "autonomy.pooled", f"{title}, all sessions together", "prompts", weigh, is_share=False,
            unit=_UNIT,
        ),
    ]  # fmt: skip
    measured = [row for row in inputs.rows["values"] if row["number"] is not None]
    rows: list[list[Any]] = []
    marks: list[Row] = []
    of_agent = by(measured, "agent")
    for agent in agents_by_sessions(measured):
        group = of_agent[agent]
        calls = sorted([row["number"] for row in group])
        typical = clustered_median([(row["session_id"], row["number"]) for row in group], inputs.places)
        quarters = quantile(calls, 0.25), quantile(calls, 0.75)
        together = pooled_ratio(group, inputs.places, is_share=False).value
        rows.append([agent, len(calls), typical.value, *typical.ends, *quarters, together])
        ends = "–".join(formatted(end, "number") for end in typical.ends)
        sure = f"95% {ends}" if typical.interval else "too few for an interval"
        tip = f"{agent}: median {formatted(typical.value, 'number')} {_UNIT}, {sure}, n = {len(calls)} sessions"
        marks.append(typical.mark(f"{agent} ({len(calls)})", tip))
    n, of = len(measured), "sessions with a prompt"
    header = "agent | n sessions:count | median:number | ends:number | q25 25%:number | q75 75%:number"
    by_agent = table(
        "autonomy.by_agent",
        f"{title}, by agent",
        f"{header} | pooled all together:number",
        rows,
        n=n,
        of=of,
        evidence=[[row["session_id"] for row in of_agent[shown[0]]] for shown in rows],
    )
    spread = histogram_chart(
        signal_values(inputs, _AUTONOMY), RATIOS, id="autonomy.spread", title=title, unit=_PER_TURN
    )
    note = f"sessions in brackets; {INTERVAL_NOTE} over places, missing where there is too little"
    spec = dots(marks, _PER_TURN, "number")
    agents = chart("autonomy.agents", "Median calls for each prompt by agent", marks, spec, n=n, of=of, note=note)
    limits = [
        "Agents log tool calls differently (hooks, batches, planning tools): calls for each prompt compare sessions of"
        " one agent, hardly agents with each other."
    ]
    return Outcome(findings, [by_agent], [spread, agents], limits)


STUDY = Study(
    name="autonomy",
    order=30,
    title="Autonomy",
    question="How much does an agent do for each prompt?",
    queries={"values": sql.values(_AUTONOMY), "absent": sql.ABSENT},
    function=_outcome,
    context="product",
)
