"""What sessions used and cost."""

from __future__ import annotations

from collections import Counter
from functools import partial
from math import fsum
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import bars, stacked_chart
from agentsignals.questions.estimates import (
    agents_by_sessions,
    bar,
    by,
    chart,
    clustered_median,
    clustered_share,
    count,
    pooled_finding,
    ranked,
    table,
)
from agentsignals.questions.formatting import formatted, with_bound
from agentsignals.questions.question import Chart, Finding, Inputs, Outcome, Part, Row, Study, Table
from agentsignals.stats.intervals import median
from agentsignals.views.usage import VISIBLE_ERROR

_COST = "tokens.cost_usd"
_CACHE = "tokens.cache_read_ratio"
_KINDS = {
    "input_tokens": "Input tokens that came from no cache",
    "cache_read_tokens": "Input tokens read from a cache",
    "cache_write_tokens": "Input tokens written to a cache",
    "output_tokens": "Output tokens",
}


def _outcome(inputs: Inputs) -> Outcome:
    sessions = inputs.rows["sessions"]
    counted = [s for s in sessions if s[sql.BOUND] is None]
    by_agent = by(sessions, "agent")
    groups = {agent: by_agent[agent] for agent in agents_by_sessions(sessions)}
    n_bounds = len(sessions) - len(counted)
    left_out = {"left_out": f"{n_bounds:,} whose output is a lower bound" if n_bounds else ""}
    charts = [
        stacked_chart(counted, "cost_usd", id="cost.over_time", title="Cost", unit="USD", kind="usd", **left_out),
        stacked_chart(
            counted,
            "output_tokens",
            id="cost.output.over_time",
            title="Output tokens",
            unit="output tokens",
            kind="tokens",
            **left_out,
        ),
        _by_agent_chart(groups, len(inputs.present("sessions", "cost_usd"))),
    ]
    return Outcome(
        [*_costs(inputs), *_tokens(inputs)],
        [_by_agent(groups, len(sessions)), _unpriced(inputs)],
        charts,
        _limits(inputs),
    )


def _left_out(inputs: Inputs, n: int) -> str:
    """What the sum over sessions lacks of the sum over model calls, so that the two can be compared."""
    if not n:
        return ""
    usd = fsum(row["usd"] or 0.0 for row in inputs.rows["left_out"])
    return f"left out: {n:,} without a known price" + (f", of which {formatted(usd, 'usd')} is known" if usd else "")


def _bounds(inputs: Inputs) -> str:
    """Why figures of output and of cost are lower bounds; empty where they are not."""
    low = [s[sql.BOUND] for s in inputs.rows["sessions"] if s[sql.BOUND] is not None]
    if not low:
        return ""
    return (
        f"at least: {len(low):,} of {len(inputs.rows['sessions']):,} sessions log output in mid-stream; their visible"
        f" text alone comes to about {formatted(sum(low), 'tokens')} tokens ({VISIBLE_ERROR})"
    )


def _sum(values: list[float]) -> float | None:
    return fsum(values) if values else None


def _without_price(sessions: list[Row]) -> list[Part]:
    return [(s["session_id"], s["cost_usd"] is None, 1) for s in sessions]


def _of_subagents(session: Row) -> float:
    return float(session["cost_usd"] if session["is_subagents"] else session["subagent_cost_usd"] or 0.0)


def _costs(inputs: Inputs) -> list[Finding]:
    costs: list[float] = inputs.present("sessions", "cost_usd")
    n = len(inputs.rows["sessions"])
    left_out = _left_out(inputs, n - len(costs))
    with_price = [s for s in inputs.rows["sessions"] if s["cost_usd"] is not None]
    recorded = [(s["session_id"], s["recorded_cost_usd"] or 0.0, 1) for s in with_price]
    subagents = [(s["session_id"], _of_subagents(s), 1) for s in with_price]
    steps = [(row["session_id"], row["recorded"], row["priced"]) for row in inputs.rows["sources"] if row["priced"]]
    bound = _bounds(inputs)
    usd: dict[str, Any] = {"unit": "USD", "priced": True}
    low = usd | {"at_least": bool(bound)}
    left_out = "; ".join(part for part in (left_out, bound) if part)
    priced = "priced sessions"
    return [
        count(
            _sum(costs), len(costs), "usd", evidence=[(s["session_id"], s["cost_usd"], 1) for s in with_price]
        ).finding(
            "cost.total", "Cost", priced, left_out, sql="SELECT sum(cost_usd) FROM sessions", headline=True, **low
        ),
        count(_sum([usd for _, usd, _ in subagents]), len(costs), "usd", evidence=subagents).finding(
            "cost.subagents",
            "Of the cost, subagents' model calls",
            priced,
            sql=f"SELECT sum(CASE WHEN {sql.IS_SUBAGENTS} THEN cost_usd ELSE subagent_cost_usd END) FROM sessions"
            " WHERE cost_usd IS NOT NULL",
            **low,
        ),
        count(_sum([usd for _, usd, _ in recorded]), len(costs), "usd", evidence=recorded).finding(
            "cost.billed",
            "Of the cost, as the traces themselves record it",
            priced,
            "the rest is list price",
            sql="SELECT sum(recorded_cost_usd) FROM sessions WHERE cost_usd IS NOT NULL",
            **usd,
        ),
        clustered_median([(s["session_id"], s["cost_usd"]) for s in with_price], inputs.places, "usd").finding(
            "cost.median",
            "Cost of the median session",
            priced,
            bound,
            sql="SELECT median(cost_usd) FROM sessions",
            **low,
        ),
        count(n - len(costs), n, evidence=partial(_without_price, inputs.rows["sessions"])).finding(
            "cost.unpriced",
            "Sessions without a known price",
            "sessions",
            "not zero: unknown",
            unit="sessions",
            sql="SELECT count(*) - count(cost_usd) FROM sessions",
            priced=True,
        ),
        clustered_share(steps, inputs.places).finding(
            "cost.recorded",
            "Priced model calls whose cost the trace itself records",
            "priced model calls",
            "the others are priced from a list",
            sql="SELECT avg(CAST(cost_source = 'recorded' AS INT)) FROM steps WHERE cost_usd IS NOT NULL",
            priced=True,
        ),
    ]


def _tokens(inputs: Inputs) -> list[Finding]:
    findings = []
    for column, title in _KINDS.items():
        parts = [(s["session_id"], s[column], 1) for s in inputs.rows["sessions"] if s[column] is not None]
        used = count(sum([n for _, n, _ in parts]) if parts else None, len(parts), "tokens", evidence=parts)
        asked, is_output = f"SELECT sum({column}) FROM sessions", column == "output_tokens"
        bound = _bounds(inputs) if is_output else ""
        findings.append(
            used.finding(
                f"cost.{column}",
                title,
                "sessions that say",
                bound,
                unit="tokens",
                sql=asked,
                headline=is_output,
                at_least=bool(bound),
            )
        )
    title = "Input tokens read from a cache, of those read, written or new"
    return [*findings, pooled_finding(inputs, _CACHE, "cost.cached", title, "input tokens")]


def _by_agent_chart(groups: dict[str, list[Row]], n_priced: int) -> Chart | None:
    rows: list[Row] = []
    for agent, group in groups.items():
        paid = [(s["session_id"], s["cost_usd"], 1) for s in group if s["cost_usd"] is not None]
        if paid:
            low, n, usd = any(s[sql.BOUND] is not None for s in group), len(group), fsum([usd for _, usd, _ in paid])
            tip = f"{agent}: {formatted(usd, 'usd', low)} over {len(paid):,} of {n:,} sessions"
            rows.append(bar(f"{agent} ({len(paid)}/{n})", usd, tip, low, evidence=paid))
    return chart(
        "cost.agents",
        "Cost by agent",
        rows,
        bars(rows, "USD", "usd"),
        n=n_priced,
        of="priced sessions",
        note="priced sessions of all in brackets",
    )


def _by_agent(groups: dict[str, list[Row]], n: int) -> Table:
    rows: list[list[Any]] = []
    for agent, group in groups.items():
        costs = [s["cost_usd"] for s in group if s["cost_usd"] is not None]
        counts = ([s[column] for s in group if s[column] is not None] for column in _KINDS)
        sums: list[Any] = [sum(values) if values else None for values in counts]
        low = any(s[sql.BOUND] is not None for s in group)
        sums[-1] = with_bound(sums[-1], low)
        priced = [len(costs), len(group) - len(costs), with_bound(_sum(costs), low), with_bound(median(costs), low)]
        rows.append([agent, len(group), *priced, *sums])
    return table(
        "cost.by_agent",
        "Tokens and cost by agent",
        "agent | sessions:count | priced:count | unpriced:count | cost:usd | median median session:usd | input:tokens"
        " | cache_read cache read:tokens | cache_write cache write:tokens | output:tokens",
        rows,
        n=n,
        of="sessions",
        evidence=[[s["session_id"] for s in group] for group in groups.values()],
        note="A dash is unknown, never zero; >= is a lower bound. Subagents are in it.",
    )


def _unpriced(inputs: Inputs) -> Table:
    absent = {row["session_id"]: row for row in inputs.rows["reasons"]}
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for session in inputs.rows["sessions"]:
        if session["cost_usd"] is None:
            row = absent.get(session["session_id"], {})
            # A session that says it used nothing costs nothing by the signal, and has no step with a price.
            reason = row.get("absent") or "no usage", row.get("absent_detail") or "", session["agent"]
            reasons.setdefault(reason, []).append(session["session_id"])
    most = ranked({reason: len(ids) for reason, ids in reasons.items()})
    return table(
        "cost.unpriced",
        "Why sessions have no price",
        "reason | detail:code | agent | sessions:count",
        [[key[0].replace("_", " "), *key[1:], n] for key, n in most],
        n=sum(n for _, n in most),
        of="sessions without a price",
        evidence=[reasons[key] for key, _ in most],
    )


def _limits(inputs: Inputs) -> list[str]:
    limits = ["Costs from the price list are what the calls would cost at list price, not what anybody paid."]
    if bound := _bounds(inputs):
        limits.append(f"Output tokens and cost are {bound}.")
    low_price = [row for row in inputs.rows["sessions"] if row["unpriced"]]
    if low_price:
        parts = ranked(Counter(part for row in low_price for part in row["unpriced"].split("; ")))
        limits.append(
            f"The cost of {len(low_price):,} sessions is too low: the price list lacks"
            f" {', '.join(part for part, _ in parts[:3])}{' and more' if len(parts) > 3 else ''}."
        )
    total, priced = len(inputs.rows["sessions"]), len(inputs.present("sessions", "cost_usd"))
    if priced < total:
        limits.append(f"The cost of {total - priced:,} of {total:,} sessions is unknown, so totals are lower bounds.")
    return limits


STUDY = Study(
    name="cost",
    order=320,
    title="Tokens and cost",
    question="What did it take?",
    queries={
        "sessions": sql.SESSIONS,
        "values": sql.values(_CACHE),
        "absent": sql.ABSENT,
        "reasons": f"SELECT session_id, absent, absent_detail FROM signals WHERE signal = '{_COST}'"
        " AND absent IS NOT NULL",
        "left_out": "SELECT sum(steps.cost_usd) AS usd FROM steps JOIN sessions USING (session_id)"
        " WHERE sessions.cost_usd IS NULL",
        "sources": "SELECT session_id, count(*) AS priced, count(*) FILTER (cost_source = 'recorded') AS recorded"
        " FROM steps WHERE cost_usd IS NOT NULL GROUP BY session_id ORDER BY session_id",
    },
    function=_outcome,
)
