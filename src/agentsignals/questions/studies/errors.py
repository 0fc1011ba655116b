"""Failed tool calls, what agents do next, and repeated calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import COUNTS, SHARES, bars, dots, histogram_chart
from agentsignals.questions.estimates import (
    INTERVAL_NOTE,
    Estimate,
    bar,
    by,
    chart,
    count,
    count_bars,
    median_finding,
    pooled_finding,
    ranked,
    share_of,
    signal_values,
    table,
    tally,
)
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, Inputs, Outcome, Part, Row, Study
from agentsignals.questions.sql import declared, read_queries

_SQL = read_queries(__file__)

_RATE = "user.tool_error_rate"
_RECOVERY = "corpus.error_recovery_rate"
FAILED = "a non-zero exit, an error and a time-out failed, and a search that found nothing did not"
"""The rule of `tool_calls.outcome`, where rates of failure are compared."""
_UNANSWERED = ("rejected", "cancelled", "unknown", "none")


def errors(inputs: Inputs) -> Outcome:
    calls = inputs.rows["calls"]
    answered = [row for row in calls if row["status"] in ("ok", "error")]
    failed = [
        {**row, "kind": (row["error_class"] or "not said").replace("_", " ")}
        for row in calls
        if row["status"] == "error"
    ]
    places = inputs.places
    by_class = _by(answered, "class", places)
    n = sum(row["n"] for row in answered)
    kinds = tally(failed, "kind")
    kinds_rows = count_bars(ranked(kinds), "failed calls", evidence=by(failed, "kind"))
    charts = [
        _rates("class", by_class, n),
        _rates("agent", _by(answered, "agent", places), n),
        chart("errors.kinds", kinds_rows, bars(kinds_rows, "failed calls"), n=kinds.total()),
    ]
    rows: list[list[Any]] = [
        [name, int(rate.k), int(rate.n), rate.value, *rate.ends, sessions] for name, rate, sessions in by_class
    ]
    behind = [rate.counted for _, rate, _ in by_class]
    statuses = tally(calls, "status")
    groups = by(failed, "kind")
    words_rows: list[list[Any]] = []
    for kind, words_n in ranked(kinds):
        classes = ", ".join(f"{name} {n_calls:,}" for name, n_calls in tally(groups[kind], "class").most_common())
        words_rows.append(
            [kind, words_n, words_n / kinds.total(), len({r["session_id"] for r in groups[kind]}), classes]
        )
    words_behind = [groups[kind] for kind, _ in ranked(kinds)]
    return Outcome(
        [
            pooled_finding(inputs, "errors.rate"),
            pooled_finding(inputs, "errors.recovery"),
            *(
                count(statuses[status], statuses.total(), evidence=partial(_of_status, calls, status)).finding(
                    f"errors.{status}"
                )
                for status in _UNANSWERED
            ),
        ],
        [
            table("errors.by_class", rows, n=n, evidence=behind),
            table("errors.kinds", words_rows, n=kinds.total(), evidence=words_behind),
        ],
        charts,
    )


def _of_status(calls: list[Row], status: str) -> list[Part]:
    return [(row["session_id"], row["n"] if row["status"] == status else 0, row["n"]) for row in calls]


def _by(answered: list[Row], key: str, places: dict[str, str]) -> list[tuple[str, Estimate, int]]:
    """The rate of each group, and its sessions; most answered calls first."""
    rates = [
        (
            name,
            share_of(rows, places, lambda row: row["status"] == "error", "n"),
            len({row["session_id"] for row in rows}),
        )
        for name, rows in by(answered, key).items()
    ]
    return sorted(rates, key=lambda rate: (-rate[1].n, rate[0]))


def _rates(key: str, rates: list[tuple[str, Estimate, int]], n: int) -> Chart | None:
    rows: list[Row] = []
    for name, rate, sessions in rates:
        ends = "–".join(formatted(end, "share") for end in rate.ends)
        tip = f"{name}: {rate.k:,.0f} of {rate.n:,.0f} calls failed, {formatted(rate.value, 'share')}"
        tip += f"{f', 95% {ends}' if rate.interval else ''}, {sessions:,} sessions"
        rows.append(rate.mark(f"{name} ({rate.n:,.0f})", tip))
    return chart(
        f"errors.rate_by_{key}",
        rows,
        dots(rows, "share of answered calls"),
        title=f"Share of calls that failed, by {key}",
        n=n,
        of="answered calls",
        note=f"{FAILED}; answered calls in brackets; {INTERVAL_NOTE}",
    )


ERRORS_STUDY = Study(
    **declared("study", "errors"),
    queries={**_SQL["errors"], "values": sql.values(_RATE, _RECOVERY), "absent": sql.ABSENT},
    function=errors,
)


# -- After a failure

PATTERNS = {
    "again": "the same call again",
    "varied": "the same tool, otherwise",
    "looked": "a look: read or search",
    "other": "another tool",
    "turn_over": "no call before the next prompt",
    "over": "no call at all",
}
"""Next actions, in the order in which they are matched."""


def recovery(inputs: Inputs) -> Outcome:
    places = inputs.places
    failed = inputs.rows["failed"]
    answered = [row for row in failed if row["pattern"] not in ("turn_over", "over") and row["worked"] is not None]
    of, _no_call = "failed calls", "no further call before the next prompt, or at all"
    findings = [
        share_of(failed, places, _among("again"), "n").finding("recovery.again"),
        share_of(failed, places, _among("looked"), "n").finding("recovery.looked"),
        share_of(failed, places, _among("turn_over", "over"), "n").finding("recovery.given_up"),
        share_of(answered, places, lambda row: row["worked"], "n").finding("recovery.next_worked"),
    ]
    runs = [(row["session_id"], int(row["length"])) for row in inputs.rows["runs"] for _ in range(row["n"])]
    in_a_row = histogram_chart(
        runs, COUNTS, id="recovery.runs", title="Failed calls in a row", unit=of, of="runs of failure"
    )
    patterns_groups, patterns_counted = by(failed, "pattern"), tally(failed, "pattern")
    patterns_rows: list[list[Any]] = []
    behind = []
    for patterns_pattern, patterns_words in PATTERNS.items():
        group = patterns_groups.get(patterns_pattern, [])
        patterns_answered = [row for row in group if row["worked"] is not None]
        patterns_of = sum(row["n"] for row in patterns_answered)
        worked = sum(row["n"] * row["worked"] for row in patterns_answered) / patterns_of if patterns_of else None
        if group:
            n = patterns_counted[patterns_pattern]
            patterns_rows.append(
                [
                    patterns_words,
                    n,
                    n / patterns_counted.total(),
                    len({row["session_id"] for row in group}),
                    patterns_of,
                    worked,
                ]
            )
            behind.append(group)
    # Next actions by the error of the failed call.
    kinds = by(
        ({**error_row, "kind": (error_row["error_class"] or "not said").replace("_", " ")} for error_row in failed),
        "kind",
    )
    error_rows: list[list[Any]] = []
    for kind, error_group in kinds.items():
        error_counted = tally(error_group, "pattern")
        error_n = error_counted.total()
        error_rows.append([kind, error_n, *(error_counted[pattern] / error_n for pattern in PATTERNS)])
    error_rows.sort(key=lambda error_row: (-error_row[1], error_row[0]))
    header = f"kind error | n failed calls:count | {' | '.join(f'{k} {words}:share' for k, words in PATTERNS.items())}"
    error_n = sum(error_row[1] for error_row in error_rows)
    tables = [
        table("recovery.patterns", patterns_rows, n=patterns_counted.total(), evidence=behind),
        table(
            "recovery.by_error",
            error_rows,
            header=header,
            n=error_n,
            evidence=[kinds[error_row[0]] for error_row in error_rows],
        ),
    ]
    counted, groups = tally(failed, "pattern"), by(failed, "pattern")
    total = counted.total()
    rows: list[Row] = []
    for pattern, words in PATTERNS.items():
        if counted[pattern]:
            share = counted[pattern] / total
            tip = f"{words}: {counted[pattern]:,} of {total:,} failed calls ({formatted(share, 'share')})"
            rows.append(bar(words, share, tip, evidence=groups[pattern]))
    spec = bars(rows, "share of failed calls", "share")
    return Outcome(
        [f for f in findings if f.n],
        tables,
        [chart("recovery.next", rows, spec, n=total), in_a_row],
    )


def _among(*patterns: str) -> Callable[[Row], bool]:
    return lambda row: row["pattern"] in patterns


RECOVERY_STUDY = Study(
    **declared("study", "recovery"),
    queries=_SQL["recovery"],
    function=recovery,
)


# -- Repetition

_REPETITION = "dynamics.repetition_rate"
STALE = 3
"""Equal calls with no edit between that count as a loop worth a look."""


def repetition(inputs: Inputs) -> Outcome:
    with_calls = [row for row in inputs.rows["values"] if row["stale_max"] is not None]
    findings = [
        pooled_finding(inputs, "repetition.pooled"),
        median_finding(inputs, "repetition.median"),
        share_of(with_calls, inputs.places, lambda row: row["stale_max"] >= STALE).finding(
            "repetition.stale",
            title=f"Sessions that made the same call {STALE} times or more with no edit between",
            sql=f"SELECT avg(CAST(CAST(detail->>'stale_max' AS INT) >= {STALE} AS INT)) FROM signals"
            f" WHERE signal = '{_REPETITION}' AND absent IS NULL",
        ),
    ]
    rates = histogram_chart(
        signal_values(inputs, _REPETITION),
        SHARES,
        id="repetition.spread",
        title="Share of calls that repeat an earlier one",
        unit="of calls are repeats",
    )
    runs = histogram_chart(
        [(row["session_id"], int(row["stale_max"])) for row in with_calls],
        COUNTS,
        id="repetition.stale.spread",
        title="Longest run of one call with no edit between",
        unit="equal calls",
    )
    return Outcome(findings, [], [rates, runs], [])


REPETITION_STUDY = Study(
    **declared("study", "repetition"),
    queries={"values": sql.values(_REPETITION, detail=(*sql.RATIO, "stale_max")), "absent": sql.ABSENT},
    function=repetition,
)
