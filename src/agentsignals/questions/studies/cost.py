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
from agentsignals.questions.question import (
    Evidence,
    EvidenceQuery,
    Finding,
    Inputs,
    Outcome,
    Part,
    Row,
    Study,
    Table,
    formatted,
    times,
    with_bound,
)
from agentsignals.questions.sql import (
    BOUND,
    BOUNDED,
    CARRIED,
    CAUSES,
    IS_COST_BOUND,
    declared,
    is_cost_bound,
    read_queries,
)
from agentsignals.redaction import redacted
from agentsignals.stats.intervals import median
from agentsignals.views.usage import VISIBLE_ERROR

_KINDS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
_BY = {"place": "sessions.place", "branch": "sessions.branch", "model": "charges.model", "day": "charges.day"}
"""Columns that the bill is divided by."""
_COUNTS = (f"count(DISTINCT session_id) FILTER ({column} IS NOT NULL) AS {name}" for name, column in _BY.items())
_SQL = read_queries(__file__, counts=", ".join(_COUNTS), is_cost_bound=IS_COST_BOUND)


def cost_study(inputs: Inputs) -> Outcome:
    sessions = inputs.rows["sessions"]
    priced = [s for s in sessions if s["cost_usd"] is not None]
    low = [s[BOUND] for s in sessions if s[BOUND] is not None]
    bound = (
        f"lower bound: output tokens are under-reported in {len(low):,} of {times(len(sessions), 'session')}; their"
        f" visible text alone is about {formatted(sum(low), 'tokens')} tokens ({VISIBLE_ERROR})"
        if low
        else ""
    )
    groups = by(sessions, "agent")
    marks: list[Row] = []
    rows: list[list[Any]] = []
    agents = agents_by_sessions(sessions)
    for agent in agents:
        group = groups[agent]
        paid = [(s["session_id"], s["cost_usd"], 1) for s in group if s["cost_usd"] is not None]
        costs, n, is_low = [usd for _, usd, _ in paid], len(group), any(map(is_cost_bound, group))
        usd = _sum(costs)
        if usd is not None:
            tip = f"{agent}: {formatted(usd, 'usd', is_low)} over {len(paid):,} of {n:,} sessions"
            marks.append(bar(f"{agent} ({len(paid)}/{n})", usd, tip, is_low, evidence=paid))
        counts = ([s[column] for s in group if s[column] is not None] for column in _KINDS)
        *tokens, output = (sum(values) if values else None for values in counts)
        figures = [with_bound(usd, is_low), with_bound(median(costs), is_low)]
        is_output_low = any(s[BOUND] is not None for s in group)
        rows.append([agent, n, len(costs), n - len(costs), *figures, *tokens, with_bound(output, is_output_low)])
    counted = [s for s in sessions if s[BOUND] is None]
    left_out = f"{len(low):,} with output as a lower bound" if low else ""
    output = "output_tokens", "Output tokens", "output tokens"
    charts = [
        stacked_chart(
            counted, "cost_usd", id="cost.over_time", title="Cost", unit="USD", kind="usd", left_out=left_out
        ),
        stacked_chart(
            counted,
            output[0],
            id="cost.output.over_time",
            title=output[1],
            unit=output[2],
            kind="tokens",
            left_out=left_out,
        ),
        chart("cost.agents", marks, bars("USD", "usd"), n=len(priced)),
    ]
    findings = _costs(inputs, priced, bound)
    for column in _KINDS:
        parts = [(s["session_id"], s[column], 1) for s in sessions if s[column] is not None]
        used = count(sum([n for _, n, _ in parts]) if parts else None, len(parts), "tokens", evidence=parts)
        note = bound if column == "output_tokens" else ""
        findings.append(used.finding(f"cost.{column}", note=note, at_least=bool(note)))
    absent = {row["session_id"]: row for row in inputs.rows["reasons"]}
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for session in sessions:
        if session["cost_usd"] is None:
            row = absent.get(session["session_id"], {})
            # A session that says it used nothing costs nothing by the signal, and has no step with a price.
            reason = row.get("absent") or "no usage", row.get("absent_detail") or "", session["agent"]
            reasons.setdefault(reason, []).append(session["session_id"])
    most = ranked({reason: len(ids) for reason, ids in reasons.items()})
    unpriced = [[key[0].replace("_", " "), *key[1:], n] for key, n in most]
    ids = [[s["session_id"] for s in groups[agent]] for agent in agents]
    behind = [reasons[key] for key, _ in most]
    tables = [
        table("cost.by_agent", rows, n=len(sessions), evidence=ids),
        table("cost.unpriced", unpriced, n=len(sessions) - len(priced), evidence=behind),
    ]
    limits = ["Estimated costs use list prices, not what you paid."]
    if bound:
        limits.append(f"Output tokens and cost are {bound}.")
    if lacking := [row["unpriced"] for row in sessions if row["unpriced"]]:
        models = ranked(Counter(part for text in lacking for part in text.split("; ")))
        limits.append(
            f"The cost of {times(len(lacking), 'session')} is too low: no price is known for"
            f" {', '.join(part for part, _ in models[:3])}{' and more' if len(models) > 3 else ''}."
        )
    if replaced := inputs.present("sessions", "replaced_cost_usd"):
        limits.append(
            f"In {times(len(replaced), 'session')} agents recorded {formatted(fsum(replaced), 'usd')} that is not used:"
            " they priced other vendors' models at their own vendor's prices, or you set your own prices."
        )
    if unknown := len(sessions) - len(priced):
        limits.append(
            f"The cost of {unknown:,} of {times(len(sessions), 'session')} is unknown, so totals are lower bounds."
        )
    return Outcome([*findings, pooled_finding(inputs, "cost.cached")], tables, charts, limits)


def _sum(values: list[float]) -> float | None:
    return fsum(values) if values else None


def _costs(inputs: Inputs, priced: list[Row], bound: str) -> list[Finding]:
    """Return the findings on cost: totals, median, share recorded by the agent, sessions without a price."""
    sessions = inputs.rows["sessions"]
    n, unpriced = len(priced), len(sessions) - len(priced)
    left_out = f"excluded: {times(unpriced, 'session')} without a known price" if unpriced else ""
    costs = [(s["session_id"], s["cost_usd"]) for s in priced]
    of_all = [(s, usd, 1) for s, usd in costs]
    recorded = [(s["session_id"], s["recorded_cost_usd"] or 0.0, 1) for s in priced]
    of_subagents = ("cost_usd" if s["is_subagents"] else "subagent_cost_usd" for s in priced)
    subagents = [(s["session_id"], float(s[column] or 0.0), 1) for s, column in zip(priced, of_subagents, strict=True)]
    steps = [(row["session_id"], row["recorded"], row["priced"]) for row in inputs.rows["sources"] if row["priced"]]
    usd_words: dict[str, Any] = {"unit": "USD", "priced": True}
    low = usd_words | {"at_least": any(map(is_cost_bound, sessions))}

    def total(name: str, parts: list[tuple[str, float, int]], note: str = "", **words: Any) -> Finding:
        return count(_sum([k for _, k, _ in parts]), n, "usd", evidence=parts).finding(name, note=note, **words)

    no_price = [(s["session_id"], s["cost_usd"] is None, 1) for s in sessions]
    without = count(unpriced, len(sessions), evidence=no_price)
    return [
        total("cost.total", of_all, "; ".join(part for part in (left_out, bound) if part), **low),
        total("cost.subagents", subagents, **low),
        total("cost.billed", recorded, **usd_words),
        clustered_median(costs, inputs.places, "usd").finding("cost.median", note=bound, **low),
        without.finding("cost.unpriced"),
        clustered_share(steps, inputs.places).finding("cost.recorded"),
    ]


COST_STUDY = Study(
    **declared("study", "cost", sessions=sql.SESSIONS, values=sql.values("tokens.cache_read_ratio"), absent=sql.ABSENT),
    function=cost_study,
)


# -- Cost by cause

_GROUPS = {
    "carried re-sent context": CARRIED,
    "lost lost caches": ("rebuilt", "missed", "compaction"),
    "wasted failed or repeated": ("failed", "repeated", "reread"),
    "subagents subagents": ("subagents",),
    "new new context": ("cache_write", "input"),
    "output output": ("output",),
    "other other": ("other",),
}
"""Causes together, as columns of the smaller tables; every cause is in one."""
_MOST = 15
_OF = "priced sessions"


def cost_causes_study(inputs: Inputs) -> Outcome:
    paid, bill = inputs.paid, inputs.rows["bill"]
    if not any(paid.values()):
        return Outcome()
    sums = {cause: fsum(by_session.values()) for cause, by_session in paid.items()}
    n_low, is_bound = sum(row[BOUND] is not None for row in bill), any(map(is_cost_bound, bill))
    total, whole = fsum(row["cost_usd"] for row in bill), fsum(sums.values())
    low = {cause: is_bound and cause in BOUNDED for cause in sums}
    findings = []
    rows: list[list[Any]] = []
    marks: dict[str, Row] = {}
    for cause, usd in sums.items():
        words, is_low = CAUSES[cause], low[cause] and usd > 0
        rows.append([words, with_bound(usd, is_low), usd / whole if whole else None, len(paid[cause])])
        note = f"{formatted(usd / total, 'share')} of {formatted(total, 'usd', is_bound)}" if total else ""
        findings.append(
            count(usd, len(bill), "usd", evidence=partial(_of_bill, bill, paid[cause])).finding(
                f"cost_causes.{cause}",
                f"Cost: {words}",
                _OF,
                note,
                unit="USD",
                priced=True,
                at_least=is_low,
                sessions=top_sessions(paid[cause].items()),
                headline=usd > 0 and usd == max(sums.values()),
            )
        )
        if usd > 0:
            tip = f"{words}: {formatted(usd, 'usd', is_low)} ({formatted(usd / whole, 'share')})"
            marks[cause] = bar(words, usd, tip, is_low, evidence=partial(_of_cause, paid[cause]))
    findings.sort(key=lambda finding: -sums[finding.id.partition(".")[2]])
    rows.append(["all", with_bound(whole, is_bound), 1.0 if whole else None, len(bill)])
    behind: list[Evidence] = [partial(_of_cause, by_session) for by_session in paid.values()]
    behind.append([(row["session_id"], row["cost_usd"], 1) for row in bill])
    tables = [table("cost_causes.causes", rows, n=len(bill), evidence=behind)]
    tables += [_by(name, inputs) for name in _BY]
    limits = [
        "Each dollar counts under one cause, the first in the list that claims it. The causes sum to the bill.",
        "Each part of a context is estimated from characters, within the tokens sent. Repeated calls and re-reads are"
        " lower bounds: arguments and result length must be equal, with no edit in between.",
        "Subagents are one cause; it is not split further.",
    ]
    if n_low:
        limits.append(
            f"Output tokens are under-reported in {times(n_low, 'session')}, so output, subagents and the bill are"
            " lower bounds."
        )
    drawn = [marks[cause] for cause, _ in ranked(sums) if cause in marks]
    return Outcome(findings, tables, [chart("cost_causes.bill", drawn, bars("USD", "usd"), n=len(bill))], limits)


def _of_bill(bill: list[Row], paid: Mapping[str, float]) -> list[Part]:
    return [(row["session_id"], paid.get(row["session_id"], 0), 1) for row in bill]


def _of_cause(paid: Mapping[str, float]) -> list[Part]:
    return [(session_id, usd, 1) for session_id, usd in paid.items()]


def _by(name: str, inputs: Inputs) -> Table:
    """The bill by something else, each with its causes; charges are summed exactly, in whatever order they come."""
    charged = inputs.rows[name]
    of_sessions = {row["value"]: row["usd"] for row in inputs.rows[f"{name}_sessions"]}
    grouped: defaultdict[Any, dict[str, list[float]]] = defaultdict(dict)
    for row in charged:
        grouped[row["value"]][row["cause"]] = row["usd"]
    is_low = {row["value"] for row in charged if row["is_bound"]}
    totals = {value: fsum(chain.from_iterable(parts.values())) for value, parts in grouped.items() if value is not None}
    named = ranked(totals)[:_MOST]
    rows: list[list[Any]] = []
    for value, usd in named:
        cells = [redacted(str(value)), with_bound(usd, value in is_low)]
        for group in _GROUPS.values():
            part = fsum(chain.from_iterable(grouped[value].get(cause, ()) for cause in group))
            cells.append(with_bound(part, value in is_low and group[0] in BOUNDED and part > 0))
        rows.append(cells)
    of_value = _SQL["cost_causes_rows"]["of_value"].replace("{column}", _BY[name])
    rest = fsum(chain.from_iterable(row["usd"] for row in charged)) - fsum(usd for _, usd in named)
    note = f"The {_MOST} largest of {len(totals):,}." if len(totals) > _MOST else ""
    unsaid = f"{formatted(rest, 'usd')} more is in smaller groups or has no name." if rest > 0.005 else ""
    columns, words = " | ".join(f"{group}:usd" for group in _GROUPS), "project" if name == "place" else name
    return table(
        f"cost_causes.by_{name}",
        rows,
        title=f"Cost by {words} and cause",
        header=f"{name} {words}{':code' if name != 'day' else ''} | usd cost:usd | {columns}",
        n=inputs.rows["sessions_by"][0][name],
        of=_OF,
        evidence=[EvidenceQuery(of_value, {"value": value}, of_sessions[value]) for value, _ in named],
        note=" ".join(part for part in (note, unsaid) if part),
    )


def _by_column(query: str) -> dict[str, str]:
    return {name: _SQL["cost_causes_rows"][query].replace("{column}", column) for name, column in _BY.items()}


COST_CAUSES_STUDY = Study(
    **declared(
        "study",
        "cost_causes",
        bill=sql.BILL,
        **_by_column("charges"),
        **{f"{name}_sessions": query for name, query in _by_column("sessions").items()},
    ),
    function=cost_causes_study,
    needs_charges=True,
)
