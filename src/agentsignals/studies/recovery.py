"""What an agent does after a call failed: the same again, another way, a look around, or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from agentsignals.analysis.charts import bars
from agentsignals.analysis.clusters import Estimate
from agentsignals.analysis.distributions import COUNTS, histogram_chart
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.places import by_session
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again_in_report

PATTERNS = {
    "again": "the same call again",
    "varied": "the same tool, otherwise",
    "looked": "a look: read or search",
    "other": "another tool",
    "turn_over": "no call before the next prompt",
    "over": "no call at all",
}
"""What came next, by what is looked at first."""
_MAIN = "FROM tool_calls WHERE thread = 'main'"
_FAILED = (
    f"FROM (SELECT * {_MAIN} AND status = 'error' AND error_class IS DISTINCT FROM 'sibling_cancelled') AS failed ASOF"
    f" LEFT JOIN (SELECT session_id, seq, turn, name, arguments, class, status {_MAIN}) AS next"
    " ON failed.session_id = next.session_id AND coalesce(failed.result_seq, failed.seq) < next.seq"
)
"""Failed calls with the first call asked for once their result was there: those asked for together answer nothing."""
_PATTERN = (
    "CASE WHEN next.name IS NULL THEN 'over' WHEN next.turn IS DISTINCT FROM failed.turn THEN 'turn_over'"
    " WHEN next.name = failed.name AND next.arguments = failed.arguments THEN 'again'"
    " WHEN next.name = failed.name THEN 'varied' WHEN next.class IN ('read', 'search') THEN 'looked' ELSE 'other' END"
)


def _outcome(inputs: Inputs) -> Outcome:
    places = by_session(inputs.rows["sessions"])
    failed = inputs.rows["failed"]
    findings = [
        _share(failed, places, "again", "Failed calls that are made again unchanged at once", ("again",)),
        _share(failed, places, "looked", "Failed calls after which the agent looks first", ("looked",)),
        _share(
            failed,
            places,
            "given_up",
            "Failed calls with which the agent stops",
            ("turn_over", "over"),
            "no further call before the next prompt, or at all",
        ),
        _next_worked(failed, places),
    ]
    runs = [int(row["length"]) for row in inputs.rows["runs"] for _ in range(row["n"])]
    charts = [
        _chart(failed),
        histogram_chart(
            runs, COUNTS, id="recovery.runs", title="Failed calls in a row", unit="failed calls", of="runs of failure"
        ),
    ]
    limits = [
        "What comes after is the first call asked for once the failure was known.",
        "The same call again is no mistake where something changed meanwhile: a server that starts, a person's refusal"
        " withdrawn. Refused calls are not counted as failed.",
    ]
    tables = [_patterns(failed), _by_error(failed)]
    return Outcome([f for f in findings if f.n], tables, [c for c in charts if c is not None], limits)


def _share(  # noqa: PLR0913  (a finding's words, in the order they are read)
    failed: list[Row], places: dict[str, str], name: str, title: str, patterns: Sequence[str], note: str = ""
) -> Finding:
    estimate = Estimate(
        [(row["session_id"], row["n"] * (row["pattern"] in patterns), row["n"]) for row in failed], places
    )
    return estimate.finding(
        note,
        id=f"recovery.{name}",
        title=title,
        unit="share of failed calls",
        of="failed calls",
        command=again_in_report("recovery"),
    )


def _next_worked(failed: list[Row], places: dict[str, str]) -> Finding:
    """Whether the very next call of the turn succeeded."""
    answered = [row for row in failed if row["pattern"] not in ("turn_over", "over") and row["worked"] is not None]
    estimate = Estimate([(row["session_id"], row["n"] * row["worked"], row["n"]) for row in answered], places)
    return estimate.finding(
        id="recovery.next_worked",
        title="Failed calls whose next call succeeds",
        unit="share of failed calls",
        of="failed calls with an answered call behind them",
        command=again_in_report("recovery"),
    )


def _counted(failed: list[Row]) -> Counter[str]:
    by_pattern: Counter[str] = Counter()
    for row in failed:
        by_pattern[row["pattern"]] += row["n"]
    return by_pattern


def _patterns(failed: list[Row]) -> Table:
    counted = _counted(failed)
    rows = []
    for pattern, words in PATTERNS.items():
        group = [row for row in failed if row["pattern"] == pattern]
        answered = [row for row in group if row["worked"] is not None]
        of = sum(row["n"] for row in answered)
        worked = sum(row["n"] * row["worked"] for row in answered) / of if of else None
        if group:
            n = counted[pattern]
            rows.append([words, n, n / counted.total(), len({row["session_id"] for row in group}), of, worked])
    return Table(
        id="recovery.patterns",
        title="What comes after a failed call",
        columns=(
            Column("pattern", "next"),
            Column("n", "failed calls", "count"),
            Column("share", "share", "share"),
            Column("sessions", "sessions", "count"),
            Column("answered", "next call answered", "count"),
            Column("worked", "of them succeeded", "share"),
        ),
        rows=rows,
        n=counted.total(),
        of="failed calls",
        note="Main thread; the first that fits counts, from above.",
    )


def _by_error(failed: list[Row]) -> Table:
    """The same by what the failed call said."""
    kinds: dict[str, list[Row]] = {}
    for row in failed:
        kinds.setdefault((row["error_class"] or "not said").replace("_", " "), []).append(row)
    rows: list[list[Any]] = []
    for kind, group in kinds.items():
        counted = _counted(group)
        n = counted.total()
        rows.append([kind, n, *(counted[pattern] / n for pattern in PATTERNS)])
    return Table(
        id="recovery.by_error",
        title="What comes after a failed call, by what it said",
        columns=(
            Column("kind", "error"),
            Column("n", "failed calls", "count"),
            *(Column(key, words, "share") for key, words in PATTERNS.items()),
        ),
        rows=sorted(rows, key=lambda row: (-row[1], row[0])),
        n=sum(row[1] for row in rows),
        of="failed calls",
    )


def _chart(failed: list[Row]) -> Chart | None:
    counted = _counted(failed)
    total = counted.total()
    rows: list[Row] = [
        {
            "name": words,
            "value": counted[pattern] / total,
            "tip": f"{words}: {counted[pattern]:,} of {total:,} failed calls"
            f" ({formatted(counted[pattern] / total, 'share')})",
        }
        for pattern, words in PATTERNS.items()
        if counted[pattern]
    ]
    if not rows:
        return None
    return Chart(
        id="recovery.next",
        title="What comes after a failed call",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "share of failed calls", "share"),
        n=total,
        of="failed calls",
    )


STUDY = Study(
    name="recovery",
    place=100,
    title="After a failure",
    question="What does an agent do when a call has failed?",
    queries={
        "sessions": "SELECT session_id, repo, cwd FROM sessions ORDER BY session_id",
        "failed": f"SELECT failed.session_id, failed.error_class, {_PATTERN} AS pattern, CASE WHEN next.turn IS"
        " DISTINCT FROM failed.turn THEN NULL WHEN next.status = 'ok' THEN 1 WHEN next.status = 'error' THEN 0 END"
        f" AS worked, count(*) AS n {_FAILED} GROUP BY ALL ORDER BY ALL",
        "runs": "SELECT length, count(*) AS n FROM (SELECT session_id, island, count(*) AS length FROM (SELECT"
        " session_id, status, row_number() OVER (PARTITION BY session_id ORDER BY seq, call_id) - row_number() OVER"
        " (PARTITION BY session_id, status = 'error' ORDER BY seq, call_id) AS island FROM tool_calls WHERE thread ="
        " 'main' AND error_class IS DISTINCT FROM 'sibling_cancelled') WHERE status = 'error' GROUP BY ALL)"
        " GROUP BY length ORDER BY length",
    },
    function=_outcome,
)
