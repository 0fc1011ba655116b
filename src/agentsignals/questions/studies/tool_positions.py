"""What an agent does first and last for a prompt, and what it was doing when it was cut short (SWE-chat, Figure 21)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import heatmap
from agentsignals.questions.estimates import chart, mark, share_of, table
from agentsignals.questions.question import Chart, EvidenceQuery, Finding, Inputs, Outcome, Row, Study, Table
from agentsignals.questions.tool_kinds import HANDS_IN_PLAN, KIND, PUBLISHED

_CUT = "chat.hard_interruption"
_BANDS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 10), (11, 20), (21, 29), (30, 10**9))
"""Positions in a turn, counted from 1; the paper draws each up to 30."""
_HEADLINES = (
    ("first_looks", "First calls of a turn that read or search", "first", None, ("read", "grep", "glob"), ""),
    ("last_git", "Last calls of finished turns that are git or gh", "last", False, ("git/gh",), "SWE-chat: 27%"),
    (
        "last_plan",
        "Last calls of interrupted turns that hand in a plan",
        "last",
        True,
        (HANDS_IN_PLAN,),
        "SWE-chat: 32%",
    ),
)


def _outcome(inputs: Inputs) -> Outcome:
    places = inputs.places
    turns = inputs.rows["turns"]
    findings = [_finding(turns, places, headline) for headline in _HEADLINES]
    calls = inputs.rows["calls"]
    finished, interrupted = [r for r in calls if not r["cut"]], [r for r in calls if r["cut"]]
    charts = [
        _chart("forward", "Calls by position from the beginning of the turn", None, calls),
        _chart("natural", "Calls by position from the end of finished turns", False, finished),
        _chart("interrupted", "Calls by position from the end of interrupted turns", True, interrupted),
    ]
    limits = [
        "A turn is interrupted when the person stopped it, refused a call, or queued a stop; where a trace does not say"
        " so, it counts as finished."
    ]
    return Outcome([f for f in findings if f.n], [_ends(turns)], charts, limits)


def _finding(turns: list[Row], places: dict[str, str], headline: tuple[Any, ...]) -> Finding:
    name, title, column, cut, kinds, note = headline
    of_cut = [row for row in turns if cut is None or row["cut"] == cut]
    whose = "turns with a call" if cut is None else "interrupted turns" if cut else "finished turns"
    return share_of(of_cut, places, lambda row: row[column] in kinds, "n").finding(
        f"tool_positions.{name}", title, whose, note, unit="share of turns", signals=(_CUT,)
    )


def _name(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}+" if high > 1000 else f"{low}–{high}"


def _chart(name: str, title: str, cut: bool | None, calls: list[Row]) -> Chart | None:
    """Shares of kinds at each position: a column a position, adding up to 100. `cut`: of interrupted turns, of
    finished ones, or from the beginning of both."""
    direction = "forward" if cut is None else "back"
    at = {low: Counter[str]() for low, _ in _BANDS}
    for row in calls:
        band = next(low for low, high in _BANDS if low <= row[direction] <= high)
        at[band][row["kind"]] += row["n"]
    total = sum(counted.total() for counted in at.values())
    order = [kind for kind in PUBLISHED if any(counted[kind] for counted in at.values())]
    # from the end the last call stands on the right, as it happened
    bands = [b for b in _BANDS if at[b[0]].total()][:: -1 if direction == "back" else 1]
    columns = {low: ("−" if direction == "back" else "") + _name(low, high) for low, high in bands}
    rows: list[Row] = [
        mark(
            {
                "name": kind,
                "column": columns[low],
                "value": at[low][kind] / at[low].total(),
                "tip": f"{kind} at call {columns[low]}: {at[low][kind]:,} of {at[low].total():,} calls",
            },
            EvidenceQuery(
                f"{_OF_CELL} WHERE {direction} BETWEEN $low AND $high AND kind = $kind AND ($cut IS NULL OR cut = $cut)"
                " GROUP BY session_id",
                {"low": low, "high": high, "kind": kind, "cut": cut},
            )
            if at[low][kind]
            else (),
        )
        for kind in order
        for low, high in bands
    ]
    tops = (max((r for r in rows if r["column"] == c), key=lambda r: float(r["value"])) for c in columns.values())
    return chart(
        f"tool_positions.{name}",
        f"{title}, in percent",
        rows,
        heatmap(rows, list(columns.values())),
        n=total,
        of="tool calls",
        note="each column adds up to 100",
        says="the commonest kind of each position: " + "; ".join(row["tip"] for row in tops),
    )


def _ends(turns: list[Row]) -> Table:
    """How turns begin and end, by kind."""
    first: Counter[str] = Counter()
    last: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    for row in turns:
        first[row["first"]] += row["n"]
        last[row["cut"]][row["last"]] += row["n"]
    counted = (first, last[False], last[True])
    kinds = sorted(set().union(*counted), key=lambda kind: (-first[kind], kind))
    ends = {"first": "first call", "last": "last, finished", "cut": "last, interrupted"}
    return table(
        "tool_positions.ends",
        "First and last calls of turns, by kind",
        f"kind | {' | '.join(f'{key} {words}:count | {key}_share share:share' for key, words in ends.items())}",
        [
            [kind, *(v for c in counted for v in (c[kind], c[kind] / c.total() if c.total() else None))]
            for kind in kinds
        ],
        n=first.total(),
        of="turns with a call",
        evidence=[
            [
                (row["session_id"], row["n"] if row["first"] == kind else 0, row["n"])
                for row in turns
                if kind in (row["first"], row["last"])
            ]
            for kind in kinds
        ],
        note=f"{last[True].total():,} of these turns were interrupted.",
    )


_CALLS = (
    "WITH cut AS (SELECT session_id, turn, number > 0 AS cut"
    f" FROM {sql.NAMED} WHERE signal = '{_CUT}' AND absent IS NULL),"
    f" placed AS (SELECT session_id, turn, seq, {KIND} AS kind, row_number() OVER down AS forward,"
    " count(*) OVER (PARTITION BY session_id, turn) - row_number() OVER down + 1 AS back"
    " FROM tool_calls WHERE thread = 'main' AND turn IS NOT NULL"
    " WINDOW down AS (PARTITION BY session_id, turn ORDER BY seq, call_id))"
)
_OF_CELL = (
    f"{_CALLS} SELECT session_id, count(*) AS n FROM (SELECT placed.*, coalesce(cut, false) AS cut FROM placed"
    " LEFT JOIN cut USING (session_id, turn))"
)
STUDY = Study(
    name="tool_positions",
    order=60,
    title="From the first call to the last",
    question="What does an agent do first, last, and when it is cut short?",
    queries={
        "calls": f"{_CALLS} SELECT least(forward, 30) AS forward, least(back, 30) AS back, kind, coalesce(cut, false)"
        " AS cut, count(*) AS n FROM placed LEFT JOIN cut USING (session_id, turn) GROUP BY ALL ORDER BY ALL",
        "turns": f"{_CALLS} SELECT session_id, first, last, coalesce(cut, false) AS cut, count(*) AS n FROM (SELECT"
        " session_id, turn, max(kind) FILTER (forward = 1) AS first, max(kind) FILTER (back = 1) AS last FROM placed"
        " GROUP BY ALL) LEFT JOIN cut USING (session_id, turn) GROUP BY ALL ORDER BY ALL",
    },
    function=_outcome,
    context="product",
)
