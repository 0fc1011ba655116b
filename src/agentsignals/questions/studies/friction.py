"""How turns end: undisturbed, with a question, cut short, or with an objection (SWE-chat, Figures 8 and 31)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from agentsignals.questions import sql
from agentsignals.questions.charts import bars, lines_chart
from agentsignals.questions.estimates import Sample, bar, chart, table
from agentsignals.questions.formatting import with_bound
from agentsignals.questions.label_shares import LABELS_NAMED_SHARES as LABELS
from agentsignals.questions.label_shares import NONE, PUSHBACK, at_least_text, pushback_finding, rules_recall_text
from agentsignals.questions.question import Chart, Inputs, Outcome, Row, Study, Table
from agentsignals.questions.written_lines import MODE_SOURCES, MODES, MODES_OF_SOURCE, NAMES
from agentsignals.questions.written_lines import mode_by_session as modes_of

_CUT, _ASKS = "chat.hard_interruption", "chat.agent_clarification_stop"
WINDOW_DAYS = 7
_FEWEST = 20
"""Turns behind a point of a line (this project's choice)."""
_OBJECTS = "pushback"
ENDS = {
    "asked": ("the agent asked by tool", "SWE-chat: 1.4%"),
    "interrupted": ("the person cut it short", "SWE-chat: 5%"),
    _OBJECTS: ("the next prompt objects, at least", "SWE-chat: about 39%, of labels by a model"),
    "undisturbed": ("none of these, at most", "SWE-chat: 51% to 56%"),
}
"""What a turn ended in; a turn that was asked, or cut, and objected to counts for the first of these."""


def _outcome(inputs: Inputs) -> Outcome:
    rows = _ended(inputs.rows["turns"])
    if not rows:
        return Outcome(limits=[_limit()])
    ends, sample = [row["end"] for row in rows], Sample([row["session_id"] for row in rows], inputs.places)
    estimates = {end: sample.among(ends, end) for end in ENDS}
    findings = [
        estimate.finding(
            f"friction.{end}",
            f"Turns that ended so: {ENDS[end][0]}",
            "turns",
            ENDS[end][1]
            if end != "undisturbed"
            else f"{ENDS[end][1]}; at most, for of objections {rules_recall_text()}",
            signals=(_CUT, PUSHBACK, _ASKS) if end == "undisturbed" else (_CUT, _ASKS),
            classes=(NONE,) if end == "undisturbed" else (),
        )
        for end, estimate in estimates.items()
        if end != _OBJECTS
    ]
    findings.insert(
        2,
        pushback_finding(
            inputs,
            {row["next"]: row["end"] == _OBJECTS for row in rows if row["next"]},
            f"friction.{_OBJECTS}",
            "Turns neither asked nor cut whose next prompt objects",
            "such turns before a prompt in English",
            ENDS[_OBJECTS][1],
        ),
    )
    marks = [
        bar(ENDS[end][0], e.k / e.n, f"{ENDS[end][0]}: {words}", evidence=e.counted)
        for end, e in estimates.items()
        for words in [at_least_text(e.k, e.n, "turns") if end == _OBJECTS else e.words("turns")]
    ]
    spec = bars(marks, "share of turns", "share")
    charts = [
        chart("friction.ends", "How turns end", marks, spec, n=len(rows), of="turns", note=rules_recall_text()),
        _lines(rows),
    ]
    return Outcome(findings, [_by_mode(rows, inputs.rows["modes"])], charts, [_limit()])


def _lines(rows: list[Row]) -> Chart | None:
    names = {"asked": "asked", "interrupted": "interrupted", _OBJECTS: "pushback, at least"}
    lines = lines_chart(
        [(row["timestamp"], row["session_id"], row) for row in rows],
        shares={name: _ends_in(end) for end, name in names.items()},
        id="friction.over_time",
        title=f"Friction, {WINDOW_DAYS} days rolling",
        unit="share of turns",
        kind="share",
        of="turns",
        days=WINDOW_DAYS,
        fewest=_FEWEST,
    )
    return lines and replace(lines, note="; ".join(part for part in (lines.note, rules_recall_text()) if part))


def _ended(turns: list[Row]) -> list[Row]:
    """Each turn with how it ended; what objects is the next turn of its session."""
    rows: list[Row] = []
    for at, row in enumerate(turns):
        after = turns[at + 1] if at + 1 < len(turns) else None
        follows = after is not None and after["session_id"] == row["session_id"] and after["turn"] == row["turn"] + 1
        reaction = after["pushback"] if follows and after is not None else None
        objected = reaction not in (None, NONE)
        end = "asked" if row["asked"] else "interrupted" if row["cut"] else _OBJECTS if objected else "undisturbed"
        is_asked_about = reaction is not None and end in (_OBJECTS, "undisturbed")
        rows.append({**row, "end": end, "next": (row["session_id"], row["turn"] + 1) if is_asked_about else None})
    return rows


def _limit() -> str:
    return (
        f"Objections that word rules find are a flag, no share, and in English alone ({rules_recall_text()}): never"
        " beside labels by a model. agentsignals label pushback --by classifier makes labels that a share can rest on;"
        " charts and tables stay with the rules."
    )


def _ends_in(end: str) -> Callable[[list[Row]], list[float]]:
    return lambda rows: [float(row["end"] == end) for row in rows]


def _by_mode(rows: list[Row], modes: list[Row]) -> Table:
    """How turns end, by the coding mode of their session, on both roads to it."""
    shown: list[list[Any]] = []
    behind = []
    for road in MODE_SOURCES:
        mode_of = modes_of(modes, road)
        for mode in (*MODES_OF_SOURCE[road], None) if mode_of else ():
            group = [row for row in rows if mode_of.get(row["session_id"]) == mode]
            ends = [row["end"] for row in group]
            if ends:
                name = f"{NAMES[mode] if mode else 'no mode'}, {road}"
                shown.append(
                    [name, len(ends), *(with_bound(ends.count(end) / len(ends), end == _OBJECTS) for end in ENDS)]
                )
                behind.append(group)
    return table(
        "friction.by_mode",
        "How turns end, by coding mode",
        f"mode | n turns:count | {' | '.join(f'{end} {words}:share' for end, (words, _) in ENDS.items())}",
        shown,
        n=len(rows),
        of="turns",
        evidence=behind,
        note=f"The first that fits counts, from the left. Of objections {rules_recall_text()}.",
    )


_SIGNALS = sql.of_turns(
    cut=(_CUT, sql.HAPPENED),
    pushback=(PUSHBACK, sql.WORD),
    asked=(_ASKS, "bool_or(number > 0 AND detail->>'how' = 'tool')"),
)
STUDY = Study(
    name="friction",
    order=180,
    title="Friction",
    question="How do turns end, and does that change?",
    queries={
        "labels": LABELS,
        "turns": f"WITH {_SIGNALS} SELECT session_id, turn, cut, pushback, asked, {sql.SAID_AT} FROM turns"
        " LEFT JOIN of_turns USING (session_id, turn) ORDER BY session_id, turn",
        "modes": MODES,
    },
    function=_outcome,
    context="product",
)
