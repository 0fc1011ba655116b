"""What sessions used and cost."""

from __future__ import annotations

from collections import Counter
from math import fsum
from typing import Any

from agentsignals.analysis import rows as sql
from agentsignals.analysis.charts import bars
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.measures import agents_in_order, of_parts, pooled_finding
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again
from agentsignals.analysis.timeline import over_time_chart
from agentsignals.stats.estimates import median, median_interval, share_interval

_COST, _ALL_COST = "tokens.cost_usd", "corpus.session_cost_usd"
_CACHE = "tokens.cache_read_ratio"
_OUTPUT = "tokens.output_tokens_total"
_KINDS = (
    ("input_tokens", "Input tokens that came from no cache"),
    ("cache_read_tokens", "Input tokens read from a cache"),
    ("cache_write_tokens", "Input tokens written to a cache"),
    ("output_tokens", "Output tokens"),
)


def _outcome(inputs: Inputs) -> Outcome:
    sessions = inputs.rows["sessions"]
    charts = [
        over_time_chart(sessions, "cost_usd", id="cost.over_time", title="Cost", unit="USD", kind="usd"),
        over_time_chart(
            sessions,
            "output_tokens",
            id="cost.output.over_time",
            title="Output tokens",
            unit="output tokens",
            kind="tokens",
        ),
        _by_agent_chart(sessions),
    ]
    return Outcome(
        [*_costs(inputs), *_tokens(inputs)],
        [_by_agent(sessions), _unpriced(inputs)],
        [c for c in charts if c is not None],
        _limits(inputs),
    )


def _costs(inputs: Inputs) -> list[Finding]:
    costs: list[float] = inputs.present("sessions", "cost_usd")
    n = len(inputs.rows["sessions"])
    signal_rows = [row for row in inputs.rows["values"] if row["signal"] == _ALL_COST]
    with_subagents = [row["number"] for row in signal_rows if row["number"] is not None]
    common: dict[str, Any] = {"unit": "USD", "kind": "usd", "priced": True}
    return [
        Finding(
            id="cost.total",
            title="Cost",
            value=fsum(costs) if costs else None,
            n=len(costs),
            of="priced sessions",
            command=again("SELECT sum(cost_usd) FROM sessions"),
            headline=True,
            note=f"left out: {n - len(costs):,} without a known price" if n > len(costs) else "",
            **common,
        ),
        Finding(
            id="cost.with_subagents",
            title="Cost with subagents",
            value=fsum(with_subagents) if with_subagents else None,
            n=len(with_subagents),
            of="priced sessions",
            signals=(_ALL_COST,),
            command=again(f"SELECT sum(number) FROM signals WHERE signal = '{_ALL_COST}'"),
            **common,
        ),
        Finding(
            id="cost.median",
            title="Cost of the median session",
            value=median(costs),
            n=len(costs),
            of="priced sessions",
            interval=median_interval(costs),
            command=again("SELECT median(cost_usd) FROM sessions"),
            **common,
        ),
        Finding(
            id="cost.unpriced",
            title="Sessions without a known price",
            value=n - len(costs),
            unit="sessions",
            n=n,
            of="sessions",
            priced=True,
            command=again("SELECT count(*) - count(cost_usd) FROM sessions"),
            note="not zero: unknown",
        ),
        _recorded(inputs),
    ]


def _recorded(inputs: Inputs) -> Finding:
    pairs = [(row["recorded"], row["priced"]) for row in inputs.rows["sources"] if row["priced"]]
    return Finding(
        id="cost.recorded",
        title="Priced model calls whose cost the trace itself records",
        value=of_parts(pairs),
        unit="share of priced model calls",
        kind="share",
        n=int(sum(n for _, n in pairs)),
        of="priced model calls",
        interval=share_interval(pairs),
        priced=True,
        command=again(
            "SELECT avg(CAST(cost_source = 'recorded' AS INT)) FROM steps"
            " WHERE thread = 'main' AND cost_usd IS NOT NULL"
        ),
        note="the others are priced from a list",
    )


def _tokens(inputs: Inputs) -> list[Finding]:
    findings = [
        Finding(
            id=f"cost.{column}",
            title=title,
            value=sum(counts) if counts else None,
            unit="tokens",
            kind="tokens",
            n=len(counts),
            of="sessions that say",
            headline=column == "output_tokens",
            command=again(f"SELECT sum({column}) FROM sessions"),
        )
        for column, title in _KINDS
        for counts in [inputs.present("sessions", column)]
    ]
    cached = pooled_finding(
        inputs,
        _CACHE,
        "input tokens",
        id="cost.cached",
        title="Input tokens read from a cache, of those read or new",
        unit="share of input tokens",
    )
    return [*findings, cached]


def _by_agent_chart(sessions: list[Row]) -> Chart | None:
    rows: list[Row] = []
    for agent in agents_in_order(sessions):
        costs = [s["cost_usd"] for s in sessions if s["agent"] == agent and s["cost_usd"] is not None]
        n = sum(s["agent"] == agent for s in sessions)
        if costs:
            tip = f"{agent}: {formatted(fsum(costs), 'usd')} over {len(costs):,} of {n:,} sessions"
            rows.append({"name": f"{agent} ({len(costs)}/{n})", "value": fsum(costs), "tip": tip})
    if not rows:
        return None
    priced = sum(s["cost_usd"] is not None for s in sessions)
    return Chart(
        id="cost.agents",
        title="Cost by agent",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "USD", "usd"),
        n=priced,
        of="priced sessions",
        note="priced sessions of all in brackets",
    )


def _by_agent(sessions: list[Row]) -> Table:
    rows: list[list[Any]] = []
    for agent in agents_in_order(sessions):
        group = [s for s in sessions if s["agent"] == agent]
        costs = [s["cost_usd"] for s in group if s["cost_usd"] is not None]
        sums = []
        for column, _ in _KINDS:
            counts = [s[column] for s in group if s[column] is not None]
            sums.append(sum(counts) if counts else None)
        rows.append(
            [
                agent,
                len(group),
                len(costs),
                len(group) - len(costs),
                fsum(costs) if costs else None,
                median(costs),
                *sums,
            ]
        )
    return Table(
        id="cost.by_agent",
        title="Tokens and cost by agent",
        columns=(
            Column("agent", "agent"),
            Column("sessions", "sessions", "count"),
            Column("priced", "priced", "count"),
            Column("unpriced", "unpriced", "count"),
            Column("cost", "cost", "usd"),
            Column("median", "median session", "usd"),
            Column("input", "input", "tokens"),
            Column("cache_read", "cache read", "tokens"),
            Column("cache_write", "cache write", "tokens"),
            Column("output", "output", "tokens"),
        ),
        rows=rows,
        n=len(sessions),
        of="sessions",
        note="A dash is unknown, never zero. Subagents are not in it.",
    )


def _unpriced(inputs: Inputs) -> Table:
    cost_rows = {row["session_id"]: row for row in inputs.rows["values"] if row["signal"] == _COST}
    reasons: Counter[tuple[str, str, str]] = Counter()
    for session in inputs.rows["sessions"]:
        if session["cost_usd"] is None:
            row = cost_rows.get(session["session_id"], {})
            # A session that says it used nothing costs nothing by the signal, and has no step with a price.
            reasons[row.get("absent") or "no usage", row.get("absent_detail") or "", session["agent"]] += 1
    return Table(
        id="cost.unpriced",
        title="Why sessions have no price",
        columns=(
            Column("reason", "reason"),
            Column("detail", "detail", "code"),
            Column("agent", "agent"),
            Column("sessions", "sessions", "count"),
        ),
        rows=[
            [key[0].replace("_", " "), *key[1:], n]
            for key, n in sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
        ],
        n=sum(reasons.values()),
        of="sessions without a price",
    )


def _limits(inputs: Inputs) -> list[str]:
    limits = ["Costs from the price list are what the calls would cost at list price, not what anybody paid."]
    outputs = [row for row in inputs.rows["values"] if row["signal"] == _OUTPUT and row["number"] is not None]
    low = [row for row in outputs if row["agent"].startswith("claude") and (row["final_share"] or 0) < 0.5]
    if low:
        limits.append(
            f"{len(low):,} of {len(outputs):,} sessions log output tokens as they stood in mid-stream: their output,"
            " and its cost, is too low."
        )
    total, priced = len(inputs.rows["sessions"]), len(inputs.present("sessions", "cost_usd"))
    if priced < total:
        limits.append(f"The cost of {total - priced:,} of {total:,} sessions is unknown, so totals are lower bounds.")
    return limits


STUDY = Study(
    name="cost",
    place=320,
    title="Tokens and cost",
    question="What did it take?",
    queries={
        "sessions": sql.SESSIONS,
        "values": sql.values(_COST, _ALL_COST, _CACHE, _OUTPUT, detail=("final_share",)),
        "sources": "SELECT session_id, count(*) AS priced, count(*) FILTER (cost_source = 'recorded') AS recorded"
        " FROM steps WHERE thread = 'main' AND cost_usd IS NOT NULL GROUP BY session_id ORDER BY session_id",
    },
    function=_outcome,
)
