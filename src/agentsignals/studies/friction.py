"""How turns end: undisturbed, with a question, cut short, or with an objection (SWE-chat, Figures 8 and 31)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentsignals.analysis.charts import bars
from agentsignals.analysis.clusters import Estimate
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.modes import MODES, NAMES, OF_ROAD, ROADS
from agentsignals.analysis.modes import by_session as modes_of
from agentsignals.analysis.over_days import lines_chart
from agentsignals.analysis.places import by_session
from agentsignals.analysis.study import Chart, Column, Inputs, Outcome, Row, Study, Table, again_in_report

_CUT, _PUSHBACK, _ASKS = "chat.hard_interruption", "chat.pushback_type", "chat.agent_clarification_stop"
WINDOW_DAYS = 7
_FEWEST = 20
"""Turns behind a point of a line (this project's choice)."""
ENDS = {
    "asked": ("the agent asked by tool", "SWE-chat: 1.4%"),
    "interrupted": ("the person cut it short", "SWE-chat: 5%"),
    "pushback": ("the next prompt objects", "SWE-chat: about 39%, of labels by a model"),
    "undisturbed": ("none of these", "SWE-chat: 51% to 56%"),
}
"""What a turn ended in; a turn that was asked, or cut, and objected to counts for the first of these."""


def _outcome(inputs: Inputs) -> Outcome:
    rows = _ended(inputs.rows["turns"])
    places = by_session(inputs.rows["sessions"])
    estimates = {end: _estimate(rows, places, end) for end in ENDS}
    findings = [
        estimate.finding(
            ENDS[end][1],
            id=f"friction.{end}",
            title=f"Turns that ended so: {ENDS[end][0]}",
            unit="share of turns",
            of="turns",
            signals=(_CUT, _PUSHBACK, _ASKS),
            command=again_in_report("friction"),
        )
        for end, estimate in estimates.items()
    ]
    charts = [
        _chart(estimates),
        lines_chart(
            [(row["timestamp"], row["end"]) for row in rows if row["timestamp"] is not None],
            {end: _share_of(end) for end in ENDS if end != "undisturbed"},
            id="friction.over_time",
            title=f"Friction, {WINDOW_DAYS} days rolling",
            unit="share of turns",
            kind="share",
            of="turns",
            days=WINDOW_DAYS,
            fewest=_FEWEST,
        ),
    ]
    limits = [
        "Objections are found by word patterns, a tenth to a third of what a reader finds, and in English alone; never"
        " compare them with labels by a model.",
    ]
    by_mode = _by_mode(rows, inputs.rows["modes"])
    return Outcome([f for f in findings if f.n], [by_mode], [c for c in charts if c is not None], limits)


def _ended(turns: list[Row]) -> list[Row]:
    """Each turn with how it ended; what objects is the next turn of its session."""
    rows: list[Row] = []
    for at, row in enumerate(turns):
        after = turns[at + 1] if at + 1 < len(turns) else None
        follows = after is not None and after["session_id"] == row["session_id"] and after["turn"] == row["turn"] + 1
        objected = follows and after is not None and after["pushback"] not in (None, "non_pushback")
        end = "asked" if row["asked"] else "interrupted" if row["cut"] else "pushback" if objected else "undisturbed"
        rows.append({**row, "end": end})
    return rows


def _estimate(rows: list[Row], places: dict[str, str], end: str) -> Estimate:
    return Estimate([(row["session_id"], float(row["end"] == end), 1) for row in rows], places)


def _share_of(end: str) -> Callable[[list[str]], float]:
    return lambda ends: ends.count(end) / len(ends)


def _chart(estimates: dict[str, Estimate]) -> Chart | None:
    rows: list[Row] = [
        {
            "name": ENDS[end][0],
            "value": estimate.value,
            "tip": f"{ENDS[end][0]}: {estimate.k:,.0f} of {estimate.n:,.0f} turns,"
            f" {formatted(estimate.value, 'share')}",
        }
        for end, estimate in estimates.items()
        if estimate.n
    ]
    if not rows:
        return None
    return Chart(
        id="friction.ends",
        title="How turns end",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "share of turns", "share"),
        n=int(estimates["asked"].n),
        of="turns",
    )


def _by_mode(rows: list[Row], modes: list[Row]) -> Table:
    """How turns end, by the coding mode of their session, on both roads to it."""
    shown: list[list[Any]] = []
    for road in ROADS:
        mode_of = modes_of(modes, road)
        for mode in (*OF_ROAD[road], None):
            ends = [row["end"] for row in rows if mode_of.get(row["session_id"]) == mode]
            if ends and mode_of:
                name = f"{NAMES[mode] if mode else 'no mode'}, {road}"
                shown.append([name, len(ends), *(ends.count(end) / len(ends) for end in ENDS)])
    return Table(
        id="friction.by_mode",
        title="How turns end, by coding mode",
        columns=(
            Column("mode", "mode"),
            Column("n", "turns", "count"),
            *(Column(end, words, "share") for end, (words, _) in ENDS.items()),
        ),
        rows=shown,
        n=len(rows),
        of="turns",
        note="The first that fits counts, from the left.",
    )


STUDY = Study(
    name="friction",
    place=180,
    title="Friction",
    question="How do turns end, and does that change?",
    queries={
        "sessions": "SELECT session_id, repo, cwd FROM sessions ORDER BY session_id",
        "turns": "WITH told AS (SELECT session_id, turn, bool_or(number > 0) FILTER (signal ="
        f" '{_CUT}') AS cut, max(json_extract_string(value, '')) FILTER (signal = '{_PUSHBACK}') AS pushback,"
        f" bool_or(number > 0 AND detail->>'how' = 'tool') FILTER (signal = '{_ASKS}') AS asked FROM signals"
        f" WHERE signal IN ('{_CUT}', '{_PUSHBACK}', '{_ASKS}') AND absent IS NULL GROUP BY ALL)"
        " SELECT session_id, turn, cut, pushback, asked, CASE WHEN timestamp BETWEEN TIMESTAMP '2015-01-01' AND"
        " TIMESTAMP '2100-01-01' THEN timestamp END AS timestamp FROM turns LEFT JOIN told USING (session_id, turn)"
        " ORDER BY session_id, turn",
        "modes": MODES,
    },
    function=_outcome,
    context="product",
)
