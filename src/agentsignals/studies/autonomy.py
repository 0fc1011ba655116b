"""How much an agent does for each prompt (agent-traces's autonomy ratio)."""

from __future__ import annotations

from agentsignals.analysis import rows as sql
from agentsignals.analysis.charts import dots
from agentsignals.analysis.distributions import RATIOS, histogram_chart
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.measures import agents_in_order, median_finding, numbers, of_parts, parts, pooled_finding
from agentsignals.analysis.study import Chart, Column, Inputs, Outcome, Row, Study, Table
from agentsignals.stats.estimates import median, median_interval, quantile

_AUTONOMY = "corpus.autonomy_ratio"
_PER_TURN = "tool calls for each prompt"


def _outcome(inputs: Inputs) -> Outcome:
    findings = [
        median_finding(
            inputs,
            _AUTONOMY,
            id="autonomy.median",
            title="Tool calls for each prompt, median session",
            unit="calls for each prompt",
            headline=True,
        ),
        pooled_finding(
            inputs,
            _AUTONOMY,
            "prompts",
            share=False,
            id="autonomy.pooled",
            title="Tool calls for each prompt, all sessions together",
            unit="calls for each prompt",
            note="all calls over all prompts: long sessions weigh more",
        ),
    ]
    by_agent = _by_agent(inputs)
    spread = histogram_chart(
        numbers(inputs, _AUTONOMY), RATIOS, id="autonomy.spread", title="Tool calls for each prompt", unit=_PER_TURN
    )
    charts = [c for c in (spread, _agents_chart(by_agent)) if c is not None]
    limits = [
        "Agents log tool calls differently (hooks, batches, planning tools): calls for each prompt compare sessions of"
        " one agent, hardly agents with each other."
    ]
    return Outcome(findings, [by_agent], charts, limits)


def _by_agent(inputs: Inputs) -> Table:
    measured = [row for row in inputs.rows["values"] if row["number"] is not None]
    rows = [[agent, *_row([r for r in measured if r["agent"] == agent])] for agent in agents_in_order(measured)]
    return Table(
        id="autonomy.by_agent",
        title="Tool calls for each prompt, by agent",
        columns=(
            Column("agent", "agent"),
            Column("n", "sessions", "count"),
            Column("median", "median", "number"),
            Column("low", "95% from", "number"),
            Column("high", "to", "number"),
            Column("q25", "25%", "number"),
            Column("q75", "75%", "number"),
            Column("pooled", "all together", "number"),
        ),
        rows=rows,
        n=len(measured),
        of="sessions with a prompt",
    )


def _row(rows: list[Row]) -> list[float | None]:
    numbers = sorted(row["number"] for row in rows)
    low, high = median_interval(numbers) or (None, None)
    return [
        len(numbers),
        median(numbers),
        low,
        high,
        quantile(numbers, 0.25),
        quantile(numbers, 0.75),
        of_parts(parts(rows)),
    ]


def _agents_chart(table: Table) -> Chart | None:
    rows = [
        {
            "name": f"{agent} ({n})",
            "value": middle,
            "low": low,
            "high": high,
            "tip": f"{agent}: median {formatted(middle, 'number')} calls for each prompt"
            + (
                f", 95% {formatted(low, 'number')}–{formatted(high, 'number')}"
                if low is not None
                else ", too few for an interval"
            )
            + f", n = {n} sessions",
        }
        for agent, n, middle, low, high, *_ in table.rows
    ]
    if not rows:
        return None
    return Chart(
        id="autonomy.agents",
        title="Median calls for each prompt by agent",
        says="; ".join(row["tip"] for row in rows),
        spec=dots(rows, _PER_TURN, "number"),
        n=table.n,
        of=table.of,
        note="sessions in brackets; the line is the 95% interval, missing under six sessions",
    )


STUDY = Study(
    name="autonomy",
    place=30,
    title="Autonomy",
    question="How much does an agent do for each prompt?",
    queries={"values": sql.values(_AUTONOMY)},
    function=_outcome,
    context="product",
)
