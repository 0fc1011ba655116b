"""How often tool calls fail, and what follows."""

from __future__ import annotations

from collections import Counter, defaultdict

from agentsignals.analysis import rows as sql
from agentsignals.analysis.charts import bars, dots
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.measures import of_parts, pooled_finding
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again
from agentsignals.stats.estimates import share_interval

_RATE = "user.tool_error_rate"
_RECOVERY = "corpus.error_recovery_rate"


def _outcome(inputs: Inputs) -> Outcome:
    calls = inputs.rows["calls"]
    answered = [row for row in calls if row["status"] in ("ok", "error")]
    charts = [c for c in (_rates("class", answered), _rates("agent", answered), _kinds(calls)) if c is not None]
    limits = [
        "Agents flag failure differently, and some errors are probes (does this file exist?): an error rate compares"
        " sessions of one agent, and is no measure of skill.",
    ]
    return Outcome([*_findings(inputs), *_unanswered(calls)], [_by(answered, "class"), _errors(calls)], charts, limits)


def _findings(inputs: Inputs) -> list[Finding]:
    return [
        pooled_finding(
            inputs,
            _RATE,
            "answered calls",
            id="errors.rate",
            title="Tool calls that failed",
            unit="share of answered calls",
            headline=True,
            note="refusals by the person count on neither side",
        ),
        pooled_finding(
            inputs,
            _RECOVERY,
            "failed calls",
            id="errors.recovery",
            title="Failed calls soon made good",
            unit="share of failed calls",
            note="the same tool on the same target succeeded within five calls of the same turn",
        ),
    ]


def _unanswered(calls: list[Row]) -> list[Finding]:
    total = sum(row["n"] for row in calls)
    told_of = (
        ("rejected", "Calls the person refused"),
        ("cancelled", "Calls cancelled"),
        ("none", "Calls without a result"),
    )
    return [
        Finding(
            id=f"errors.{status}",
            title=title,
            value=sum(row["n"] for row in calls if row["status"] == status),
            unit="calls",
            n=total,
            of="tool calls",
            command=again(f"SELECT count(*) {sql.MAIN_CALLS} AND status = '{status}'"),
        )
        for status, title in told_of
    ]


def _pairs(rows: list[Row]) -> list[tuple[float, float]]:
    """Failed and answered calls of each session."""
    pairs: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        pairs[row["session_id"]][0] += row["n"] * (row["status"] == "error")
        pairs[row["session_id"]][1] += row["n"]
    return [(k, n) for k, n in pairs.values()]


def _by(answered: list[Row], key: str) -> Table:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in answered:
        groups[row[key]].append(row)
    rows = []
    for name, group in groups.items():
        pairs = _pairs(group)
        low, high = share_interval(pairs) or (None, None)
        failed, n = sum(k for k, _ in pairs), sum(n for _, n in pairs)
        rows.append([name, failed, n, of_parts(pairs), low, high, len(pairs)])
    return Table(
        id=f"errors.by_{key}",
        title=f"Failed calls by {key}",
        columns=(
            Column(key, key),
            Column("failed", "failed", "count"),
            Column("answered", "answered", "count"),
            Column("rate", "rate", "share"),
            Column("low", "95% from", "share"),
            Column("high", "to", "share"),
            Column("sessions", "sessions", "count"),
        ),
        rows=sorted(rows, key=lambda r: (-r[2], r[0])),
        n=sum(r["n"] for r in answered),
        of="answered calls",
    )


def _rates(key: str, answered: list[Row]) -> Chart | None:
    table = _by(answered, key)
    if not table.rows:
        return None
    rows = [
        {
            "name": f"{name} ({n:,})",
            "value": rate,
            "low": low,
            "high": high,
            "tip": f"{name}: {failed:,} of {n:,} calls failed, {formatted(rate, 'share')}"
            + (f", 95% {formatted(low, 'share')}–{formatted(high, 'share')}" if low is not None else "")
            + f", {sessions:,} sessions",
        }
        for name, failed, n, rate, low, high, sessions in table.rows
    ]
    return Chart(
        id=f"errors.rate_by_{key}",
        title=f"Share of calls that failed, by {key}",
        says="; ".join(row["tip"] for row in rows),
        spec=dots(rows, "share of answered calls"),
        n=table.n,
        of=table.of,
        note="answered calls in brackets; the line is the 95% interval",
    )


def _kinds(calls: list[Row]) -> Chart | None:
    counted = _kinds_counted(calls)
    total = counted.total()
    rows: list[Row] = [
        {"name": name, "value": n, "tip": f"{name}: {n:,} of {total:,} failed calls ({n / total:.1%})"}
        for name, n in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    if not rows:
        return None
    return Chart(
        id="errors.kinds",
        title="What failed calls say",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "failed calls"),
        n=total,
        of="failed calls",
    )


def _kinds_counted(calls: list[Row]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for row in calls:
        if row["status"] == "error":
            counted[_error_class(row)] += row["n"]
    return counted


def _error_class(row: Row) -> str:
    return (row["error_class"] or "not said").replace("_", " ")


def _errors(calls: list[Row]) -> Table:
    kinds = _kinds_counted(calls)
    rows = []
    for kind, n in sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0])):
        failed = [r for r in calls if r["status"] == "error" and _error_class(r) == kind]
        classes: Counter[str] = Counter()
        for row in failed:
            classes[row["class"]] += row["n"]
        told_classes = ", ".join(f"{class_} {count:,}" for class_, count in classes.most_common())
        rows.append([kind, n, n / kinds.total(), len({r["session_id"] for r in failed}), told_classes])
    return Table(
        id="errors.kinds",
        title="Failed calls by what they say",
        columns=(
            Column("kind", "error"),
            Column("calls", "calls", "count"),
            Column("share", "share", "share"),
            Column("sessions", "sessions", "count"),
            Column("classes", "in calls of class"),
        ),
        rows=rows,
        n=kinds.total(),
        of="failed calls",
    )


STUDY = Study(
    name="errors",
    place=90,
    title="Errors",
    question="How often do tool calls fail, and are they made good?",
    queries={
        "calls": "SELECT session_id, agent, class, status, error_class, count(*) AS n FROM tool_calls"
        " JOIN sessions USING (session_id) WHERE thread = 'main' GROUP BY ALL ORDER BY ALL",
        "values": sql.values(_RATE, _RECOVERY),
    },
    function=_outcome,
)
