"""What an agent does after a call failed: the same again, another way, a look around, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import COUNTS, bars, histogram_chart
from agentsignals.questions.estimates import bar, by, chart, share_of, table, tally
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, Inputs, Outcome, Row, Study, Table

PATTERNS = {
    "again": "the same call again",
    "varied": "the same tool, otherwise",
    "looked": "a look: read or search",
    "other": "another tool",
    "turn_over": "no call before the next prompt",
    "over": "no call at all",
}
"""What came next, by what is looked at first."""
_FAILED = (
    f"FROM (SELECT session_id, seq, result_seq, turn, name, arguments, error_class {sql.MAIN_CALLS}"
    " AND status = 'error' AND error_class IS DISTINCT FROM 'sibling_cancelled')"
    f" AS failed ASOF LEFT JOIN (SELECT session_id, seq, turn, name, arguments, class, status {sql.MAIN_CALLS}) AS next"
    " ON failed.session_id = next.session_id AND coalesce(failed.result_seq, failed.seq) < next.seq"
)
"""Failed calls with the first call asked for once their result was there: those asked for together answer nothing."""
_PATTERN = (
    "CASE WHEN next.name IS NULL THEN 'over' WHEN next.turn IS DISTINCT FROM failed.turn THEN 'turn_over'"
    " WHEN next.name = failed.name AND next.arguments = failed.arguments THEN 'again'"
    " WHEN next.name = failed.name THEN 'varied' WHEN next.class IN ('read', 'search') THEN 'looked' ELSE 'other' END"
)


def _outcome(inputs: Inputs) -> Outcome:
    places = inputs.places
    failed = inputs.rows["failed"]
    answered = [row for row in failed if row["pattern"] not in ("turn_over", "over") and row["worked"] is not None]
    of, no_call = "failed calls", "no further call before the next prompt, or at all"
    findings = [
        share_of(failed, places, _among("again"), "n").finding(
            "recovery.again", "Failed calls that are made again unchanged at once", of
        ),
        share_of(failed, places, _among("looked"), "n").finding(
            "recovery.looked", "Failed calls after which the agent looks first", of
        ),
        share_of(failed, places, _among("turn_over", "over"), "n").finding(
            "recovery.given_up", "Failed calls with which the agent stops", of, no_call
        ),
        share_of(answered, places, lambda row: row["worked"], "n").finding(
            "recovery.next_worked",
            "Failed calls whose next call succeeds",
            "failed calls with an answered call behind them",
            unit="share of failed calls",
        ),
    ]
    runs = [(row["session_id"], int(row["length"])) for row in inputs.rows["runs"] for _ in range(row["n"])]
    in_a_row = histogram_chart(
        runs, COUNTS, id="recovery.runs", title="Failed calls in a row", unit=of, of="runs of failure"
    )
    limits = [
        "What comes after is the first call asked for once the failure was known.",
        "The same call again is no mistake where something changed meanwhile: a server that starts, a person's refusal"
        " withdrawn. Refused calls are not counted as failed.",
    ]
    tables = [_patterns(failed), _by_error(failed)]
    return Outcome([f for f in findings if f.n], tables, [_chart(failed), in_a_row], limits)


def _among(*patterns: str) -> Callable[[Row], bool]:
    return lambda row: row["pattern"] in patterns


def _patterns(failed: list[Row]) -> Table:
    groups, counted = by(failed, "pattern"), tally(failed, "pattern")
    rows: list[list[Any]] = []
    behind = []
    for pattern, words in PATTERNS.items():
        group = groups.get(pattern, [])
        answered = [row for row in group if row["worked"] is not None]
        of = sum(row["n"] for row in answered)
        worked = sum(row["n"] * row["worked"] for row in answered) / of if of else None
        if group:
            n = counted[pattern]
            rows.append([words, n, n / counted.total(), len({row["session_id"] for row in group}), of, worked])
            behind.append(group)
    return table(
        "recovery.patterns",
        "What comes after a failed call",
        "pattern next | n failed calls:count | share:share | sessions:count | answered next call answered:count"
        " | worked of them succeeded:share",
        rows,
        n=counted.total(),
        of="failed calls",
        evidence=behind,
        note="Main thread; the first that fits counts, from above.",
    )


def _by_error(failed: list[Row]) -> Table:
    """The same by what the failed call said."""
    kinds = by(({**row, "kind": (row["error_class"] or "not said").replace("_", " ")} for row in failed), "kind")
    rows: list[list[Any]] = []
    for kind, group in kinds.items():
        counted = tally(group, "pattern")
        n = counted.total()
        rows.append([kind, n, *(counted[pattern] / n for pattern in PATTERNS)])
    rows.sort(key=lambda row: (-row[1], row[0]))
    header = f"kind error | n failed calls:count | {' | '.join(f'{k} {words}:share' for k, words in PATTERNS.items())}"
    title, n = "What comes after a failed call, by what it said", sum(row[1] for row in rows)
    return table(
        "recovery.by_error", title, header, rows, n=n, of="failed calls", evidence=[kinds[row[0]] for row in rows]
    )


def _chart(failed: list[Row]) -> Chart | None:
    counted, groups = tally(failed, "pattern"), by(failed, "pattern")
    total = counted.total()
    rows: list[Row] = []
    for pattern, words in PATTERNS.items():
        if counted[pattern]:
            share = counted[pattern] / total
            tip = f"{words}: {counted[pattern]:,} of {total:,} failed calls ({formatted(share, 'share')})"
            rows.append(bar(words, share, tip, evidence=groups[pattern]))
    spec = bars(rows, "share of failed calls", "share")
    return chart("recovery.next", "What comes after a failed call", rows, spec, n=total, of="failed calls")


STUDY = Study(
    name="recovery",
    order=100,
    title="After a failure",
    question="What does an agent do when a call has failed?",
    queries={
        "failed": f"SELECT failed.session_id, failed.error_class, {_PATTERN} AS pattern, CASE WHEN next.turn IS"
        " DISTINCT FROM failed.turn THEN NULL WHEN next.status = 'ok' THEN 1 WHEN next.status = 'error' THEN 0 END"
        f" AS worked, count(*) AS n {_FAILED} GROUP BY ALL ORDER BY ALL",
        "runs": "SELECT session_id, length, count(*) AS n FROM (SELECT session_id, island, count(*) AS length FROM"
        " (SELECT session_id, status, row_number() OVER (PARTITION BY session_id ORDER BY seq, call_id)"
        " - row_number() OVER (PARTITION BY session_id, status = 'error' ORDER BY seq, call_id) AS island"
        " FROM tool_calls WHERE thread = 'main' AND error_class IS DISTINCT FROM 'sibling_cancelled')"
        " WHERE status = 'error' GROUP BY ALL) GROUP BY ALL ORDER BY ALL",
    },
    function=_outcome,
)
