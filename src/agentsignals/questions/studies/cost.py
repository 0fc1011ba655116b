"""Tokens and cost of sessions, and cost by cause."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import partial
from itertools import chain
from math import fsum
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import bars, stacked_chart
from agentsignals.questions.cost_causes import BOUNDED, CARRIED, CAUSES, QUERIES
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
    top_sessions,
)
from agentsignals.questions.formatting import formatted, with_bound
from agentsignals.questions.question import (
    Chart,
    Evidence,
    EvidenceQuery,
    Finding,
    Inputs,
    Outcome,
    Part,
    Row,
    Study,
    Table,
)
from agentsignals.questions.sql import BOUND, declared, read_queries
from agentsignals.redaction import redacted
from agentsignals.stats.intervals import median
from agentsignals.views.usage import VISIBLE_ERROR

_SQL = read_queries(__file__)

_CACHE = "tokens.cache_read_ratio"
_KINDS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


def cost_study(inputs: Inputs) -> Outcome:
    sessions = inputs.rows["sessions"]
    counted = [s for s in sessions if s[sql.BOUND] is None]
    by_agent = by(sessions, "agent")
    groups = {agent: by_agent[agent] for agent in agents_by_sessions(sessions)}
    n_bounds = len(sessions) - len(counted)
    left_out = {"left_out": f"{n_bounds:,} whose output is a lower bound" if n_bounds else ""}
    n_priced = len(inputs.present("sessions", "cost_usd"))
    rows: list[Row] = []
    for agent, group in groups.items():
        paid = [(s["session_id"], s["cost_usd"], 1) for s in group if s["cost_usd"] is not None]
        if paid:
            low, n, usd = any(s[sql.BOUND] is not None for s in group), len(group), fsum([usd for _, usd, _ in paid])
            tip = f"{agent}: {formatted(usd, 'usd', low)} over {len(paid):,} of {n:,} sessions"
            rows.append(bar(f"{agent} ({len(paid)}/{n})", usd, tip, low, evidence=paid))
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
        chart("cost.agents", rows, bars(rows, "USD", "usd"), n=n_priced),
    ]
    findings = []
    for column in _KINDS:
        parts = [(s["session_id"], s[column], 1) for s in inputs.rows["sessions"] if s[column] is not None]
        used = count(sum([n for _, n, _ in parts]) if parts else None, len(parts), "tokens", evidence=parts)
        bound = _bounds(inputs) if column == "output_tokens" else ""
        findings.append(used.finding(f"cost.{column}", note=bound, at_least=bool(bound)))
    absent = {row["session_id"]: row for row in inputs.rows["reasons"]}
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for session in inputs.rows["sessions"]:
        if session["cost_usd"] is None:
            row = absent.get(session["session_id"], {})
            # A session that says it used nothing costs nothing by the signal, and has no step with a price.
            reason = row.get("absent") or "no usage", row.get("absent_detail") or "", session["agent"]
            reasons.setdefault(reason, []).append(session["session_id"])
    most = ranked({reason: len(ids) for reason, ids in reasons.items()})
    limits = ["Costs from the price list are what the calls would cost at list price, not what anybody paid."]
    if cost_bound := _bounds(inputs):
        limits.append(f"Output tokens and cost are {cost_bound}.")
    low_price = [row for row in inputs.rows["sessions"] if row["unpriced"]]
    if low_price:
        cost_parts = ranked(Counter(part for row in low_price for part in row["unpriced"].split("; ")))
        limits.append(
            f"The cost of {len(low_price):,} sessions is too low: the price list lacks"
            f" {', '.join(part for part, _ in cost_parts[:3])}{' and more' if len(cost_parts) > 3 else ''}."
        )
    replaced = inputs.present("sessions", "replaced_cost_usd")
    if replaced:
        limits.append(
            f"In {len(replaced):,} sessions agents recorded {formatted(fsum(replaced), 'usd')} that does not count:"
            " they priced models of other makers as their own maker's, or you have prices of your own."
        )
    total, priced = len(inputs.rows["sessions"]), len(inputs.present("sessions", "cost_usd"))
    if priced < total:
        limits.append(f"The cost of {total - priced:,} of {total:,} sessions is unknown, so totals are lower bounds.")
    return Outcome(
        [*_costs(inputs), *[*findings, pooled_finding(inputs, "cost.cached")]],
        [
            _by_agent(groups, len(sessions)),
            table(
                "cost.unpriced",
                [[key[0].replace("_", " "), *key[1:], n] for key, n in most],
                n=sum(n for _, n in most),
                evidence=[reasons[key] for key, _ in most],
            ),
        ],
        charts,
        limits,
    )


def _left_out(inputs: Inputs, n: int) -> str:
    """Describe the cost that the sum over sessions lacks of the sum over model calls."""
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


def _costs(inputs: Inputs) -> list[Finding]:
    costs: list[float] = inputs.present("sessions", "cost_usd")
    n = len(inputs.rows["sessions"])
    left_out = _left_out(inputs, n - len(costs))
    with_price = [s for s in inputs.rows["sessions"] if s["cost_usd"] is not None]
    recorded = [(s["session_id"], s["recorded_cost_usd"] or 0.0, 1) for s in with_price]
    subagents = [
        (s["session_id"], float(s["cost_usd"] if s["is_subagents"] else s["subagent_cost_usd"] or 0.0), 1)
        for s in with_price
    ]
    steps = [(row["session_id"], row["recorded"], row["priced"]) for row in inputs.rows["sources"] if row["priced"]]
    bound = _bounds(inputs)
    usd: dict[str, Any] = {"unit": "USD", "priced": True}
    partly = any(s["unpriced"] for s in inputs.rows["sessions"])
    low = usd | {"at_least": bool(bound) or partly}
    left_out = "; ".join(part for part in (left_out, bound) if part)
    return [
        count(
            _sum(costs), len(costs), "usd", evidence=[(s["session_id"], s["cost_usd"], 1) for s in with_price]
        ).finding("cost.total", note=left_out, **low),
        count(_sum([usd for _, usd, _ in subagents]), len(costs), "usd", evidence=subagents).finding(
            "cost.subagents", **low
        ),
        count(_sum([usd for _, usd, _ in recorded]), len(costs), "usd", evidence=recorded).finding(
            "cost.billed", **usd
        ),
        clustered_median([(s["session_id"], s["cost_usd"]) for s in with_price], inputs.places, "usd").finding(
            "cost.median", note=bound, **low
        ),
        count(n - len(costs), n, evidence=partial(_without_price, inputs.rows["sessions"])).finding("cost.unpriced"),
        clustered_share(steps, inputs.places).finding("cost.recorded"),
    ]


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
    return table("cost.by_agent", rows, n=n, evidence=[[s["session_id"] for s in group] for group in groups.values()])


COST_STUDY = Study(
    **declared("study", "cost"),
    queries={**_SQL["cost"], "sessions": sql.SESSIONS, "values": sql.values(_CACHE), "absent": sql.ABSENT},
    function=cost_study,
)


# -- Cost by cause

_GROUPS = {
    "carried carried": CARRIED,
    "lost caches lost": ("rebuilt", "missed", "compaction"),
    "wasted failed or twice": ("failed", "repeated", "reread"),
    "subagents subagents": ("subagents",),
    "new new": ("cache_write", "input"),
    "output output": ("output",),
    "other other": ("other",),
}
"""Causes together, as columns of the smaller tables; every cause is in one."""
_BY = {"place": "sessions.place", "branch": "sessions.branch", "model": "charges.model", "day": "charges.day"}
"""Columns that the bill is also divided by."""
_CHARGED = "FROM charges JOIN sessions USING (session_id)"
_MOST = 15
_OF = "priced sessions"


def cost_causes_study(inputs: Inputs) -> Outcome:
    paid = inputs.paid
    if not any(paid.values()):
        return Outcome()
    bill = inputs.rows["bill"]
    sums = {cause: fsum(by_session.values()) for cause, by_session in paid.items()}
    low = sum(row[BOUND] is not None for row in bill)
    tables = [_causes(paid, sums, bill, bool(low))]
    tables += [
        _by(name, inputs.rows[name], inputs.rows["sessions_by"][0][name], inputs.rows[f"{name}_sessions"])
        for name in _BY
    ]
    limits = [
        "A dollar is under one cause, the first of the list that claims it; the causes sum to the bill.",
        "Which part of a context is whose is counted in tokens estimated from characters, never beyond what was sent."
        " What was read again or called again counts only where arguments and length of the result are equal and"
        " no edit is seen between: at least so much.",
        "Subagents are one cause: what they were sent and answered is not taken apart.",
    ]
    if low:
        limits.append(f"{low:,} sessions log their output in mid-stream: output, subagents and bill are at least that.")
    total = fsum(row["cost_usd"] for row in bill)
    return Outcome(
        [
            count(usd, len(bill), "usd", evidence=partial(_of_bill, bill, paid[cause])).finding(
                f"cost_causes.{cause}",
                f"Of the cost, {CAUSES[cause]}",
                _OF,
                f"{formatted(usd / total, 'share')} of {formatted(total, 'usd', bool(low))}" if total else "",
                unit="USD",
                priced=True,
                at_least=bool(low) and cause in BOUNDED and usd > 0,
                sessions=top_sessions(paid[cause].items()),
            )
            for cause, usd in sums.items()
        ],
        tables,
        [_cost_causes_chart(paid, sums, len(bill), bool(low))],
        limits,
    )


def _of_bill(bill: list[Row], paid: Mapping[str, float]) -> list[Part]:
    """Return each billed session's cost of a cause."""
    return [(row["session_id"], paid.get(row["session_id"], 0), 1) for row in bill]


def _of_cause(paid: Mapping[str, float]) -> list[Part]:
    return [(session_id, usd, 1) for session_id, usd in paid.items()]


def _causes(paid: Mapping[str, Mapping[str, float]], sums: dict[str, float], bill: list[Row], is_bound: bool) -> Table:
    total = fsum(sums.values())
    rows: list[list[Any]] = [
        [
            CAUSES[cause],
            with_bound(usd, is_bound and cause in BOUNDED and usd > 0),
            usd / total if total else None,
            len(paid[cause]),
        ]
        for cause, usd in sums.items()
    ]
    rows.append(["all", with_bound(total, is_bound), 1.0 if total else None, len(bill)])
    behind: list[Evidence] = [partial(_of_cause, by_session) for by_session in paid.values()]
    behind.append([(row["session_id"], row["cost_usd"], 1) for row in bill])
    return table("cost_causes.causes", rows, n=len(bill), evidence=behind)


def _by(name: str, charged: list[Row], n: int, sessions: list[Row]) -> Table:
    """The bill by something else, each with its causes. `charged`: the charges of each value and cause, summed here,
    exactly, in whatever order they come. `n`: sessions with a value. `sessions`: their costs by value."""
    of_sessions = {row["value"]: row["usd"] for row in sessions}
    grouped: defaultdict[Any, dict[str, list[float]]] = defaultdict(dict)
    is_low: set[Any] = set()
    for row in charged:
        grouped[row["value"]][row["cause"]] = row["usd"]
        if row["is_low"]:
            is_low.add(row["value"])
    totals = {value: fsum(chain.from_iterable(parts.values())) for value, parts in grouped.items() if value is not None}
    named = ranked(totals)[:_MOST]
    rows: list[list[Any]] = []
    for value, usd in named:
        parts = [
            with_bound(part, value in is_low and group[0] in BOUNDED and part > 0)
            for group in _GROUPS.values()
            for part in [fsum(chain.from_iterable(grouped[value].get(cause, ()) for cause in group))]
        ]
        rows.append([redacted(str(value)), with_bound(usd, value in is_low), *parts])
    of_value = (
        f"SELECT session_id, sum(charges.cost_usd) AS k, 1 AS n {_CHARGED} WHERE {_BY[name]} = $value"
        " GROUP BY session_id"
    )
    rest = fsum(chain.from_iterable(row["usd"] for row in charged)) - fsum(usd for _, usd in named)
    note = f"The {_MOST} largest of {len(totals):,}." if len(totals) > _MOST else ""
    unsaid = f"{formatted(rest, 'usd')} more lies elsewhere, or where none is named." if rest > 0.005 else ""
    return table(
        f"cost_causes.by_{name}",
        rows,
        title=f"The bill by {name} and cause",
        header=f"{name}{':code' if name != 'day' else ''} | usd cost:usd | "
        + " | ".join(f"{group}:usd" for group in _GROUPS),
        n=n,
        of=_OF,
        evidence=[EvidenceQuery(of_value, {"value": value}, of_sessions[value]) for value, _ in named],
        note=" ".join(part for part in (note, unsaid) if part),
    )


def _cost_causes_chart(
    paid: Mapping[str, Mapping[str, float]], sums: dict[str, float], n: int, is_bound: bool
) -> Chart | None:
    total = fsum(sums.values())
    rows = []
    for cause, usd in ranked(sums):
        low = is_bound and cause in BOUNDED
        tip = f"{CAUSES[cause]}: {formatted(usd, 'usd', low)} ({formatted(usd / total, 'share')})" if usd > 0 else ""
        rows += [bar(CAUSES[cause], usd, tip, low, evidence=partial(_of_cause, paid[cause]))] if tip else []
    return chart("cost_causes.bill", rows, bars(rows, "USD", "usd"), n=n)


COST_CAUSES_STUDY = Study(
    **declared("study", "cost_causes"),
    queries={
        "bill": QUERIES["bill"],
        **{
            name: f"SELECT {column} AS value, cause, list(charges.cost_usd) AS usd,"
            f" bool_or({BOUND} IS NOT NULL) AS is_low {_CHARGED} GROUP BY value, cause ORDER BY value, cause"
            for name, column in _BY.items()
        },
        **{
            f"{name}_sessions": f"SELECT value, list(usd) AS usd FROM (SELECT {column} AS value, session_id,"
            f" sum(charges.cost_usd) AS usd {_CHARGED} GROUP BY value, session_id) GROUP BY value ORDER BY value"
            for name, column in _BY.items()
        },
        "sessions_by": "SELECT "
        + ", ".join(
            f"count(DISTINCT session_id) FILTER ({column} IS NOT NULL) AS {name}" for name, column in _BY.items()
        )
        + f" {_CHARGED}",
    },
    function=cost_causes_study,
    needs_charges=True,
)
