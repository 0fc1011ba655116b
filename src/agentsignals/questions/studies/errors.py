"""How often tool calls fail, and what follows."""

from __future__ import annotations

from functools import partial
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import bars, dots
from agentsignals.questions.estimates import (
    INTERVAL_NOTE,
    Estimate,
    by,
    chart,
    count,
    count_bars,
    pooled_finding,
    ranked,
    share_of,
    table,
    tally,
)
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, Finding, Inputs, Outcome, Part, Row, Study, Table

_RATE = "user.tool_error_rate"
_RECOVERY = "corpus.error_recovery_rate"
FAILED = "a non-zero exit, an error and a time-out failed, and a search that found nothing did not"
"""The rule of `tool_calls.outcome`, where rates of failure are compared."""
_UNANSWERED = {
    "rejected": "Calls the person refused",
    "cancelled": "Calls cancelled",
    "unknown": "Calls of which the trace does not say whether they failed",
    "none": "Calls without a result",
}


def _outcome(inputs: Inputs) -> Outcome:
    calls = inputs.rows["calls"]
    answered = [row for row in calls if row["status"] in ("ok", "error")]
    failed = [{**row, "kind": _kind(row)} for row in calls if row["status"] == "error"]
    places = inputs.places
    by_class = _by(answered, "class", places)
    n = sum(row["n"] for row in answered)
    charts = [_rates("class", by_class, n), _rates("agent", _by(answered, "agent", places), n), _kinds(failed)]
    limits = [
        f"For every agent {FAILED}. Some errors are probes (does this file exist?), and what agents log differs: a rate"
        " is no measure of skill."
    ]
    return Outcome(_findings(inputs), [_classes(by_class, n), _errors(failed)], charts, limits)


def _findings(inputs: Inputs) -> list[Finding]:
    refused = f"{FAILED}; refusals by the person and cancelled calls count on neither side"
    good = "the same tool on the same target succeeded within five calls of the same turn"
    rate, recovery = "Tool calls that failed", "Failed calls soon made good"
    calls = inputs.rows["calls"]
    statuses = tally(calls, "status")
    return [
        pooled_finding(inputs, _RATE, "errors.rate", rate, "answered calls", refused, headline=True),
        pooled_finding(inputs, _RECOVERY, "errors.recovery", recovery, "failed calls", good),
        *(
            count(
                statuses[status],
                statuses.total(),
                evidence=partial(_of_status, calls, status),
            ).finding(
                f"errors.{status}",
                title,
                "tool calls",
                unit="calls",
                sql=f"SELECT count(*) {sql.MAIN_CALLS} AND status = '{status}'",
            )
            for status, title in _UNANSWERED.items()
        ),
    ]


def _of_status(calls: list[Row], status: str) -> list[Part]:
    return [(row["session_id"], row["n"] if row["status"] == status else 0, row["n"]) for row in calls]


def _by(answered: list[Row], key: str, places: dict[str, str]) -> list[tuple[str, Estimate, int]]:
    """The rate of each group, and its sessions; most answered calls first."""
    rates = [
        (name, share_of(rows, places, _is_failed, "n"), len({row["session_id"] for row in rows}))
        for name, rows in by(answered, key).items()
    ]
    return sorted(rates, key=lambda rate: (-rate[1].n, rate[0]))


def _is_failed(row: Row) -> bool:
    return bool(row["status"] == "error")


def _classes(rates: list[tuple[str, Estimate, int]], n: int) -> Table:
    rows: list[list[Any]] = [
        [name, int(rate.k), int(rate.n), rate.value, *rate.ends, sessions] for name, rate, sessions in rates
    ]
    behind = [rate.counted for _, rate, _ in rates]
    header = "class | failed:count | answered:count | rate:share | ends:share | sessions:count"
    return table("errors.by_class", "Failed calls by class", header, rows, n=n, of="answered calls", evidence=behind)


def _rates(key: str, rates: list[tuple[str, Estimate, int]], n: int) -> Chart | None:
    rows: list[Row] = []
    for name, rate, sessions in rates:
        ends = "–".join(formatted(end, "share") for end in rate.ends)
        tip = f"{name}: {rate.k:,.0f} of {rate.n:,.0f} calls failed, {formatted(rate.value, 'share')}"
        tip += f"{f', 95% {ends}' if rate.interval else ''}, {sessions:,} sessions"
        rows.append(rate.mark(f"{name} ({rate.n:,.0f})", tip))
    return chart(
        f"errors.rate_by_{key}",
        f"Share of calls that failed, by {key}",
        rows,
        dots(rows, "share of answered calls"),
        n=n,
        of="answered calls",
        note=f"{FAILED}; answered calls in brackets; {INTERVAL_NOTE}",
    )


def _kind(row: Row) -> str:
    return (row["error_class"] or "not said").replace("_", " ")


def _kinds(failed: list[Row]) -> Chart | None:
    kinds = tally(failed, "kind")
    rows = count_bars(ranked(kinds), "failed calls", evidence=by(failed, "kind"))
    spec = bars(rows, "failed calls")
    return chart("errors.kinds", "What failed calls say", rows, spec, n=kinds.total(), of="failed calls")


def _errors(failed: list[Row]) -> Table:
    kinds, groups = tally(failed, "kind"), by(failed, "kind")
    rows: list[list[Any]] = []
    for kind, n in ranked(kinds):
        classes = ", ".join(f"{name} {calls:,}" for name, calls in tally(groups[kind], "class").most_common())
        rows.append([kind, n, n / kinds.total(), len({r["session_id"] for r in groups[kind]}), classes])
    header = "kind error | calls:count | share:share | sessions:count | classes in calls of class"
    title = "Failed calls by what they say"
    behind = [groups[kind] for kind, _ in ranked(kinds)]
    return table("errors.kinds", title, header, rows, n=kinds.total(), of="failed calls", evidence=behind)


STUDY = Study(
    name="errors",
    order=90,
    title="Errors",
    question="How often do tool calls fail, and are they made good?",
    queries={
        "calls": "SELECT session_id, agent, class, status, error_class, count(*) AS n FROM tool_calls"
        " JOIN sessions USING (session_id) WHERE thread = 'main' GROUP BY ALL ORDER BY ALL",
        "values": sql.values(_RATE, _RECOVERY),
        "absent": sql.ABSENT,
    },
    function=_outcome,
)
