"""How turns end: undisturbed, with a question, cut short, or with an objection (SWE-chat, Figures 8 and 31)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentsignals.analysis import rows as sql
from agentsignals.analysis.charts import bars
from agentsignals.analysis.clusters import share_of
from agentsignals.analysis.grouped import bar, chart, drawn, table
from agentsignals.analysis.modes import MODES, NAMES, OF_ROAD, ROADS
from agentsignals.analysis.modes import by_session as modes_of
from agentsignals.analysis.over_days import lines_chart
from agentsignals.analysis.places import by_session
from agentsignals.analysis.study import Inputs, Outcome, Row, Study, Table

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
    if not rows:
        return Outcome(limits=[_BY_PATTERNS])
    places = by_session(inputs.rows["sessions"])
    estimates = {end: share_of(rows, places, _is(end)) for end in ENDS}
    findings = [
        estimate.finding(
            f"friction.{end}",
            f"Turns that ended so: {ENDS[end][0]}",
            "turns",
            ENDS[end][1],
            signals=(_CUT, _PUSHBACK, _ASKS),
            classes=("non_pushback",),
        )
        for end, estimate in estimates.items()
    ]
    marks = [
        bar(ENDS[end][0], e.k / e.n, f"{ENDS[end][0]}: {e.words('turns')}", behind=e.counted)
        for end, e in estimates.items()
    ]
    spec = bars(marks, "share of turns", "share")
    charts = drawn(
        chart("friction.ends", "How turns end", marks, spec, n=len(rows), of="turns"),
        lines_chart(
            [(row["timestamp"], row["session_id"], row) for row in rows],
            shares={end: _is(end) for end in ENDS if end != "undisturbed"},
            id="friction.over_time",
            title=f"Friction, {WINDOW_DAYS} days rolling",
            unit="share of turns",
            kind="share",
            of="turns",
            days=WINDOW_DAYS,
            fewest=_FEWEST,
        ),
    )
    return Outcome(findings, [_by_mode(rows, inputs.rows["modes"])], charts, [_BY_PATTERNS])


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


def _is(end: str) -> Callable[[Row], bool]:
    return lambda row: bool(row["end"] == end)


def _by_mode(rows: list[Row], modes: list[Row]) -> Table:
    """How turns end, by the coding mode of their session, on both roads to it."""
    shown: list[list[Any]] = []
    behind = []
    for road in ROADS:
        mode_of = modes_of(modes, road)
        for mode in (*OF_ROAD[road], None):
            group = [row for row in rows if mode_of.get(row["session_id"]) == mode]
            ends = [row["end"] for row in group]
            if ends and mode_of:
                name = f"{NAMES[mode] if mode else 'no mode'}, {road}"
                shown.append([name, len(ends), *(ends.count(end) / len(ends) for end in ENDS)])
                behind.append(group)
    return table(
        "friction.by_mode",
        "How turns end, by coding mode",
        f"mode | n turns:count | {' | '.join(f'{end} {words}:share' for end, (words, _) in ENDS.items())}",
        shown,
        n=len(rows),
        of="turns",
        behind=behind,
        note="The first that fits counts, from the left.",
    )


_BY_PATTERNS = (
    "Objections are found by word patterns, a tenth to a third of what a reader finds, and in English alone; never"
    " compare them with labels by a model."
)
_SIGNALS = sql.of_turns(
    cut=(_CUT, sql.HAPPENED),
    pushback=(_PUSHBACK, sql.WORD),
    asked=(_ASKS, "bool_or(number > 0 AND detail->>'how' = 'tool')"),
)
STUDY = Study(
    name="friction",
    place=180,
    title="Friction",
    question="How do turns end, and does that change?",
    queries={
        "sessions": sql.PLACED,
        "turns": f"WITH {_SIGNALS} SELECT session_id, turn, cut, pushback, asked, {sql.SAID_AT} FROM turns"
        " LEFT JOIN of_turns USING (session_id, turn) ORDER BY session_id, turn",
        "modes": MODES,
    },
    function=_outcome,
    context="product",
)
