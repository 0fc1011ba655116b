"""What follows what: pairs of neighbouring calls, and how they change from a session's beginning to its end."""

from __future__ import annotations

from typing import Any

from agentsignals.questions.charts import heatmap
from agentsignals.questions.estimates import by, chart, mark, ranked, share_of, table, tally
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, EvidenceQuery, Inputs, Outcome, Row, Study, Table
from agentsignals.questions.tool_kinds import KIND

FEWEST_CALLS = 10
"""A shorter session has no beginning, middle and end to speak of (as chat.tool_calls_by_position)."""
_MOST_PAIRS = 20
_THIRDS = ("beginning", "middle", "end")
_NEXT = "lead(class) OVER (PARTITION BY session_id ORDER BY seq, call_id)"
_NEIGHBOURS = f"FROM (SELECT session_id, class, {_NEXT} AS following FROM tool_calls WHERE thread = 'main')"


def _outcome(inputs: Inputs) -> Outcome:
    places = inputs.places
    classes, kinds = inputs.rows["classes"], inputs.rows["kinds"]
    edits = [row for row in classes if row["class"] == "edit"]
    edited_next = [row for row in classes if row["following"] == "edit"]
    findings = [
        share_of(classes, places, lambda row: row["class"] == row["following"], "n").finding(
            "transitions.same",
            "Calls followed by one of their class",
            "neighbouring calls",
            sql=f"SELECT avg(CAST(class = following AS INT)) {_NEIGHBOURS} WHERE following IS NOT NULL",
        ),
        share_of(edits, places, lambda row: row["following"] == "test", "n").finding(
            "transitions.tested",
            "Edits followed at once by a test run",
            "edits with a call behind them",
            sql=f"SELECT avg(CAST(following = 'test' AS INT)) {_NEIGHBOURS}"
            " WHERE class = 'edit' AND following IS NOT NULL",
        ),
        share_of(edited_next, places, lambda row: row["class"] in ("read", "search"), "n").finding(
            "transitions.looked",
            "Edits that follow a read or a search at once",
            "edits with a call before them",
            sql=f"SELECT avg(CAST(class IN ('read', 'search') AS INT)) {_NEIGHBOURS} WHERE following = 'edit'",
        ),
    ]
    limits = [
        "Neighbours are calls in the order they were asked for; calls that an agent asks for at once follow each other"
        " here, too. A pair says what came next, not why."
    ]
    tables = [_pairs(kinds), _thirds(inputs.rows["thirds"])]
    return Outcome([f for f in findings if f.n], tables, [_matrix(classes)], limits)


def _matrix(rows: list[Row]) -> Chart | None:
    """Of the calls of a class, the shares of what came next."""
    pairs, before, groups = tally(rows, "class", "following"), tally(rows, "class"), by(rows, "class", "following")
    after = sorted({following for _, following in pairs}, key=lambda c: (-before[c], c))
    marks: list[Row] = []
    for class_, n in ranked(before):
        for following in after:
            k = pairs[class_, following]
            tip = f"after {class_}: {following} {k:,} of {n:,} times ({formatted(k / n, 'share')})"
            cell = {"name": f"{class_} ({n:,})", "column": following, "value": k / n, "tip": tip}
            marks.append(mark(cell, groups.get((class_, following), ())))
    return chart(
        "transitions.matrix",
        "What comes after a call, by class, in percent",
        marks,
        heatmap(marks, after),
        n=before.total(),
        of="neighbouring calls",
        note="each row adds up to 100; calls with another behind them in brackets",
        says="; ".join(row["tip"] for row in marks if row["value"] >= 0.25),
    )


def _pairs(rows: list[Row]) -> Table:
    """The commonest pairs of kinds, and how much commoner than chance."""
    pairs, first, second = tally(rows, "kind", "following"), tally(rows, "kind"), tally(rows, "following")
    groups = by(rows, "kind", "following")
    total = pairs.total()
    shown: list[list[Any]] = [
        [a, b, n, n / total, n * total / (first[a] * second[b]), len(groups[a, b])]
        for (a, b), n in ranked(pairs)[:_MOST_PAIRS]
    ]
    more = f" The {_MOST_PAIRS} most frequent of {len(pairs):,}." if len(pairs) > _MOST_PAIRS else ""
    return table(
        "transitions.pairs",
        "Commonest pairs of neighbouring calls",
        "first call | second next call | n times:count | share of all pairs:share | lift times chance:number"
        " | sessions:count",
        shown,
        n=total,
        of="neighbouring calls",
        evidence=[groups[pair] for pair, _ in ranked(pairs)[:_MOST_PAIRS]],
        note=f"In the kinds of SWE-chat. Times chance: against calls in any order; 1 is as often as that.{more}",
    )


def _thirds(rows: list[Row]) -> Table:
    """How the commonest transitions are spread over a session."""
    together, groups = tally(rows, "class", "following"), by(rows, "third")
    thirds = [tally(groups.get(third, ()), "class", "following") for third in range(3)]
    shown: list[list[Any]] = [
        [*pair, n, *(third[pair] / third.total() if third.total() else None for third in thirds)]
        for pair, n in ranked(together)[:_MOST_PAIRS]
    ]
    return table(
        "transitions.thirds",
        "Transitions from the beginning of a session to its end",
        f"first call | second next call | n times:count | {' | '.join(f'{name}:share' for name in _THIRDS)}",
        shown,
        n=together.total(),
        of=f"transitions in sessions of at least {FEWEST_CALLS} calls",
        evidence=[
            EvidenceQuery(_OF_PAIR, {"class": a, "following": b}) for (a, b), _ in ranked(together)[:_MOST_PAIRS]
        ],
        note="By class: the share of all transitions in the first, second and last third of a session's calls.",
    )


_OF_PAIR = (
    "SELECT session_id, count(*) AS n FROM (SELECT session_id, class, lead(class) OVER down AS following,"
    " count(*) OVER whole AS calls FROM tool_calls WHERE thread = 'main' WINDOW down AS (PARTITION BY session_id"
    " ORDER BY seq, call_id), whole AS (PARTITION BY session_id))"
    f" WHERE class = $class AND following = $following AND calls >= {FEWEST_CALLS} GROUP BY session_id"
)
STUDY = Study(
    name="transitions",
    order=70,
    title="What follows what",
    question="In which order are tools used, and does it change in the course of a session?",
    queries={
        "classes": f"SELECT session_id, class, following, count(*) AS n {_NEIGHBOURS} WHERE following IS NOT NULL"
        " GROUP BY ALL ORDER BY ALL",
        "kinds": "SELECT session_id, kind, following, count(*) AS n FROM (SELECT session_id, kind, lead(kind) OVER"
        f" (PARTITION BY session_id ORDER BY seq, call_id) AS following FROM (SELECT session_id, seq, call_id, {KIND}"
        " AS kind FROM tool_calls WHERE thread = 'main')) WHERE following IS NOT NULL GROUP BY ALL ORDER BY ALL",
        "thirds": "SELECT third, class, following, count(*) AS n FROM (SELECT class, lead(class) OVER down AS"
        " following, CAST(floor(3 * (row_number() OVER down - 1) / count(*) OVER whole) AS BIGINT) AS third, count(*)"
        " OVER whole AS calls FROM tool_calls WHERE thread = 'main' WINDOW down AS (PARTITION BY session_id ORDER BY"
        " seq, call_id), whole AS (PARTITION BY session_id)) WHERE following IS NOT NULL AND calls >="
        f" {FEWEST_CALLS} GROUP BY ALL ORDER BY ALL",
    },
    function=_outcome,
)
