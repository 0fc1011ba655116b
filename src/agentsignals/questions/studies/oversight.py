"""How people keep an eye on agents: cutting short, refusing, approving plans, being asked, and for how long they let an
agent work (SWE-chat, Figures 8, 30 and 31 by what exactly happened, and plans beside)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from agentsignals.questions import sql
from agentsignals.questions.charts import dots, lines_chart
from agentsignals.questions.estimates import (
    INTERVAL_NOTE,
    ClusteredShare,
    Sample,
    agents_by_sessions,
    chart,
    clustered_median,
    clustered_share,
    table,
)
from agentsignals.questions.question import Chart, Evidence, Inputs, Outcome, Row, Study, Table
from agentsignals.questions.written_lines import MODE_SOURCES, MODES, MODES_OF_SOURCE, NAMES, mode_by_session
from agentsignals.stats.intervals import median, nonzero_sums, quantile

WINDOW_DAYS = 7
_FEWEST = 20
"""Turns behind a point of a line (this project's choice)."""
_ASKS, _TIME = "chat.agent_clarification_stop", "chat.turn_autonomy_s"


_Column = Callable[[list[Row]], list[float]]


def _once(column: str) -> _Column:
    return lambda rows: list(map(float, map(bool, map(itemgetter(column), rows))))


def _times(column: str) -> _Column:
    return lambda rows: [float(row[column] or 0) for row in rows]


def _each(rows: list[Row]) -> list[float]:
    return [1.0] * len(rows)


class _Act(NamedTuple):
    """Something that happens to a turn. `part` of `whole`: how often, of how many chances it had in each turn."""

    key: str
    title: str
    short: str
    part: _Column
    whole: _Column = _each
    of: str = "turns"
    unit: str = "share of turns"
    note: str = ""


ACTS = (
    _Act(
        key="interrupted",
        title="Turns that the person interrupted",
        short="interrupted",
        part=_once("interrupts"),
        note="SWE-chat: 5% (v1, the agent's own marker)",
    ),
    _Act(
        key="refused", title="Turns in which the person refused a call", short="a call refused", part=_once("refused")
    ),
    _Act(
        key="asked",
        title="Turns in which the agent asked by tool",
        short="asked by tool",
        part=_once("asked"),
        note="SWE-chat: 1.4% (v1)",
    ),
    _Act(
        key="asked_in_words",
        title="Turns that changed nothing and ended in a question",
        short="asked in words",
        part=_once("asked_in_words"),
        note="by patterns, in English",
    ),
    _Act(
        key="plans",
        title="Turns in which the agent showed a plan and waited",
        short="showed a plan",
        part=_once("plans"),
    ),
    _Act(
        key="approved",
        title="Plans that the person approved",
        short="plans approved",
        part=_times("approved"),
        whole=_times("decided"),
        of="plans with an answer",
        unit="share of plans",
        note="refused ones are the others; SWE-chat: 32% of the last calls of"
        " interrupted turns show a plan (v1, Figure 21)",
    ),
    _Act(
        key="refused_calls",
        title="Calls that the person refused",
        short="calls refused",
        part=_times("refused"),
        whole=_times("calls"),
        of="calls",
        unit="share of calls",
        note="main thread",
    ),
)


class _Turns:
    """Turns by column: `parts` and `wholes` of each act, by its key."""

    def __init__(self, rows: list[Row]) -> None:
        self.sessions: list[str] = [row["session_id"] for row in rows]
        self.parts = {act.key: act.part(rows) for act in ACTS}
        self.wholes = {act.key: act.whole(rows) for act in ACTS}
        self.calls: list[float] = [row["calls"] or 0 for row in rows]
        self.seconds: list[float | None] = [row["seconds"] for row in rows]

    def estimates(self, places: dict[str, str]) -> list[tuple[_Act, ClusteredShare]]:
        turns = Sample(self.sessions, places)
        return [
            (act, turns.share(self.parts[act.key]) if act.whole is _each else self._of_chances(act, places))
            for act in ACTS
        ]

    def _of_chances(self, act: _Act, places: dict[str, str]) -> ClusteredShare:
        parts = zip(self.sessions, self.parts[act.key], self.wholes[act.key], strict=True)
        return clustered_share([part for part in parts if part[2]], places)

    def figures(self, groups: Sequence[Any]) -> dict[Any, list[Any]]:
        """Those of each group, where `groups` are what each turn belongs to."""
        shares = [
            (nonzero_sums(groups, self.parts[act.key]), nonzero_sums(groups, self.wholes[act.key])) for act in ACTS
        ]
        calls, seconds = defaultdict(list), defaultdict(list)
        for group, n, took in zip(groups, self.calls, self.seconds, strict=True):
            calls[group].append(n)
            if took is not None:
                seconds[group].append(took)
        return {
            group: [
                len(each),
                *(part.get(group, 0.0) / whole[group] if group in whole else None for part, whole in shares),
                median(each),
                median(seconds[group]),
            ]
            for group, each in calls.items()
        }

    def of(self, groups: Sequence[Any], wanted: Any) -> list[str]:
        """The sessions of a group's turns."""
        return [session_id for session_id, group in zip(self.sessions, groups, strict=True) if group == wanted]


def _outcome(inputs: Inputs) -> Outcome:
    rows = inputs.rows["turns"]
    if not rows:
        return Outcome()
    places = inputs.places
    turns = _Turns(rows)
    estimates = turns.estimates(places)
    findings = [
        estimate.finding(
            f"oversight.{act.key}",
            act.title,
            act.of,
            act.note,
            unit=act.unit,
            signals=(_ASKS,) if act.key.startswith("asked") else (),
        )
        for act, estimate in estimates
    ]
    seconds = [(s, float(took)) for s, took in zip(turns.sessions, turns.seconds, strict=True) if took is not None]
    calls = list(zip(turns.sessions, map(float, turns.calls), strict=True))
    findings += [
        clustered_median(seconds, places, "seconds").finding(
            "oversight.seconds",
            "Time the agent worked for the median prompt",
            "turns",
            unit="seconds",
            signals=(_TIME,),
        ),
        clustered_median(calls, places).finding(
            "oversight.calls", "Calls for the median prompt", "turns", unit="calls"
        ),
    ]
    of_turns = [act for act in ACTS if act.whole is _each]
    charts = [
        _chart(estimates, len(rows)),
        _over_time(
            rows,
            "oversight.over_time",
            "What people and agents do to a turn",
            unit="share of turns",
            kind="share",
            shares={act.short: partial(_taken, turns.parts[act.key]) for act in of_turns},
        ),
        _over_time(
            rows,
            "oversight.autonomy",
            "Calls for a prompt",
            unit="calls",
            kind="number",
            measures={"median": _calls(turns, 0.5), "90%": _calls(turns, 0.9)},
        ),
    ]
    limits = [
        "Not every agent logs an interruption, a refusal or a plan: an agent with none of them may just not say so."
        " SWE-chat's figures are of Claude Code alone."
    ]
    tables = [_by_mode(turns, inputs.rows["modes"]), _by_agent(turns, rows)]
    return Outcome([f for f in findings if f.n], tables, charts, limits)


def _over_time(rows: list[Row], name: str, title: str, **lines: Any) -> Chart | None:
    return lines_chart(
        [(row["timestamp"], row["session_id"], n) for n, row in enumerate(rows)],
        id=name,
        title=f"{title}, {WINDOW_DAYS} days rolling",
        of="turns",
        days=WINDOW_DAYS,
        fewest=_FEWEST,
        **lines,
    )


def _taken(column: list[float], turns: list[int]) -> list[float]:
    return list(map(column.__getitem__, turns))


def _calls(turns: _Turns, share: float) -> Callable[[list[int]], float]:
    return lambda of: quantile(sorted(_taken(turns.calls, of)), share)


def _chart(estimates: list[tuple[_Act, ClusteredShare]], n: int) -> Chart | None:
    rows = [
        estimate.mark(f"{act.short} ({estimate.k:,.0f})", f"{act.title}: {estimate.words(act.of)}")
        for act, estimate in estimates
        if estimate.n
    ]
    spec = dots(rows, "share of turns, plans or calls")
    return chart(
        "oversight.acts", "Oversight", rows, spec, n=n, of="turns", note=f"how many in brackets; {INTERVAL_NOTE}"
    )


def _by_mode(turns: _Turns, modes: list[Row]) -> Table:
    shown: list[list[Any]] = []
    behind: list[Evidence] = []
    for road in MODE_SOURCES:
        if mode_of := mode_by_session(modes, road):
            groups = list(map(mode_of.get, turns.sessions))
            figures = turns.figures(groups)
            held = [mode for mode in MODES_OF_SOURCE[road] if mode in figures]
            shown += [[f"{NAMES[mode]}, {road}", *figures[mode]] for mode in held]
            behind += [partial(turns.of, groups, mode) for mode in held]
    n = sum(row[1] for row in shown if "replayed" in row[0]) or len(turns.sessions)
    return _table("mode", "mode", shown, n, behind)


def _by_agent(turns: _Turns, rows: list[Row]) -> Table:
    groups = [row["agent"] for row in rows]
    figures = turns.figures(groups)
    order = agents_by_sessions({row["session_id"]: row for row in rows}.values())
    behind = [partial(turns.of, groups, agent) for agent in order]
    return _table("agent", "agent", [[agent, *figures[agent]] for agent in order], len(rows), behind)


def _table(key: str, label: str, shown: list[list[Any]], n: int, behind: Sequence[Evidence]) -> Table:
    acts = " | ".join(f"{act.key} {act.short}:share" for act in ACTS)
    header = f"{key} {label} | n turns:count | {acts} | calls calls, median:number | seconds time, median:seconds"
    return table(f"oversight.by_{key}", f"Oversight, by {label}", header, shown, n=n, of="turns", evidence=behind)


_SIGNALS = sql.of_turns(
    asked=(_ASKS, "bool_or(number > 0 AND detail->>'how' = 'tool')"),
    asked_in_words=(_ASKS, "bool_or(number > 0 AND detail->>'how' = 'question')"),
    seconds=(_TIME, sql.NUMBER),
)
_TURN_ROWS = f"""
WITH {_SIGNALS},
did AS (SELECT session_id, turn, count(*) AS calls, count(*) FILTER (status = 'rejected') AS refused,
 count(*) FILTER (purpose = 'plan_handoff') AS plans,
 count(*) FILTER (purpose = 'plan_handoff' AND status IN ('ok', 'rejected')) AS decided,
 count(*) FILTER (purpose = 'plan_handoff' AND status = 'ok') AS approved
 FROM tool_calls WHERE thread = 'main' GROUP BY ALL),
cut AS (SELECT session_id, turn, count(*) AS interrupts FROM events
 WHERE kind = 'interrupt' AND thread = 'main' GROUP BY ALL)
SELECT session_id, turn, agent, asked, asked_in_words, seconds, coalesce(calls, 0) AS calls, refused, plans, decided,
 approved, interrupts, {sql.SAID_AT} FROM turns JOIN sessions USING (session_id)
 LEFT JOIN of_turns USING (session_id, turn) LEFT JOIN did USING (session_id, turn)
 LEFT JOIN cut USING (session_id, turn) ORDER BY session_id, turn"""

STUDY = Study(
    name="oversight",
    order=190,
    title="Oversight",
    question="How do people keep an eye on what agents do?",
    queries={"modes": MODES, "turns": _TURN_ROWS},
    function=_outcome,
    context="product",
)
