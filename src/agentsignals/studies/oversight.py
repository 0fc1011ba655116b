"""How people keep an eye on agents: cutting short, refusing, approving plans, being asked, and for how long they let an
agent work (SWE-chat, Figures 8, 30 and 31 by what exactly happened, and plans beside)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from agentsignals.analysis.charts import dots
from agentsignals.analysis.clusters import Estimate, median_interval
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.measures import agents_in_order
from agentsignals.analysis.modes import MODES, NAMES, OF_ROAD, ROADS, by_session
from agentsignals.analysis.over_days import lines_chart
from agentsignals.analysis.places import by_session as places_of
from agentsignals.analysis.study import (
    Chart,
    Column,
    Finding,
    Inputs,
    Kind,
    Outcome,
    Row,
    Study,
    Table,
    again_in_report,
)
from agentsignals.stats.estimates import median, quantile

WINDOW_DAYS = 7
_FEWEST = 20
"""Turns behind a point of a line (this project's choice)."""
_ASKS, _TIME = "chat.agent_clarification_stop", "chat.turn_autonomy_s"
_SHOWS_PLAN = ("ExitPlanMode", "exit_plan_mode", "ExitSpecMode", "plan_exit", "CreatePlan", "plannotator_submit_plan")
"""Calls that show a plan and wait for leave to follow it."""


class _Act(NamedTuple):
    """Something that happens to a turn. `part` of `whole`: how often, of how many chances it had in the turn."""

    key: str
    title: str
    short: str
    part: Callable[[Row], float]
    whole: Callable[[Row], float]
    unit: str
    of: str
    note: str


def _once(column: str) -> Callable[[Row], float]:
    return lambda row: float(bool(row[column]))


def _times(column: str) -> Callable[[Row], float]:
    return lambda row: float(row[column] or 0)


def _each(_: Row) -> float:
    return 1.0


ACTS = (
    _Act(
        key="interrupted",
        title="Turns that the person interrupted",
        short="interrupted",
        part=_once("interrupts"),
        whole=_each,
        unit="share of turns",
        of="turns",
        note="SWE-chat: 5% (v1, the agent's own marker)",
    ),
    _Act(
        key="refused",
        title="Turns in which the person refused a call",
        short="a call refused",
        part=_once("refused"),
        whole=_each,
        unit="share of turns",
        of="turns",
        note="",
    ),
    _Act(
        key="asked",
        title="Turns in which the agent asked by tool",
        short="asked by tool",
        part=_once("asked"),
        whole=_each,
        unit="share of turns",
        of="turns",
        note="SWE-chat: 1.4% (v1)",
    ),
    _Act(
        key="asked_in_words",
        title="Turns that changed nothing and ended in a question",
        short="asked in words",
        part=_once("asked_in_words"),
        whole=_each,
        unit="share of turns",
        of="turns",
        note="by patterns, in English",
    ),
    _Act(
        key="plans",
        title="Turns in which the agent showed a plan and waited",
        short="showed a plan",
        part=_once("plans"),
        whole=_each,
        unit="share of turns",
        of="turns",
        note="",
    ),
    _Act(
        key="approved",
        title="Plans that the person approved",
        short="plans approved",
        part=_times("approved"),
        whole=_times("decided"),
        unit="share of plans",
        of="plans with an answer",
        note="refused ones are the others; SWE-chat: 32% of the last calls of"
        " interrupted turns show a plan (v1, Figure 21)",
    ),
    _Act(
        key="refused_calls",
        title="Calls that the person refused",
        short="calls refused",
        part=_times("refused"),
        whole=_times("calls"),
        unit="share of calls",
        of="calls",
        note="main thread",
    ),
)


def _outcome(inputs: Inputs) -> Outcome:
    rows = inputs.rows["turns"]
    if not rows:
        return Outcome()
    places = places_of(inputs.rows["sessions"])
    findings = [_estimate(act, rows, places).finding(act.note, **_words(act)) for act in ACTS]
    findings += [
        _median("seconds", "Time the agent worked for the median prompt", "seconds", "seconds", rows, places, (_TIME,)),
        _median("calls", "Calls for the median prompt", "calls", "number", rows, places, ()),
    ]
    timed = [(row["timestamp"], row) for row in rows if row["timestamp"] is not None]
    charts = [
        _chart(rows, places),
        lines_chart(
            timed,
            {act.short: _share(act) for act in ACTS if act.whole is _each},
            id="oversight.over_time",
            title=f"What people and agents do to a turn, {WINDOW_DAYS} days rolling",
            unit="share of turns",
            kind="share",
            of="turns",
            days=WINDOW_DAYS,
            fewest=_FEWEST,
        ),
        lines_chart(
            timed,
            {"median": _calls(0.5), "90%": _calls(0.9)},
            id="oversight.autonomy",
            title=f"Calls for a prompt, {WINDOW_DAYS} days rolling",
            unit="calls",
            kind="number",
            of="turns",
            days=WINDOW_DAYS,
            fewest=_FEWEST,
        ),
    ]
    return Outcome(
        [f for f in findings if f.n],
        [_by_mode(rows, inputs.rows["modes"]), _by_agent(rows)],
        [c for c in charts if c is not None],
        [
            "Not every agent logs an interruption, a refusal or a plan: an agent with none of them may just not say so."
            " SWE-chat's figures are of Claude Code alone.",
        ],
    )


def _words(act: _Act) -> dict[str, Any]:
    return {
        "id": f"oversight.{act.key}",
        "title": act.title,
        "unit": act.unit,
        "of": act.of,
        "signals": (_ASKS,) if act.key.startswith("asked") else (),
        "command": again_in_report("oversight"),
    }


def _estimate(act: _Act, rows: Iterable[Row], places: dict[str, str]) -> Estimate:
    return Estimate([(row["session_id"], act.part(row), act.whole(row)) for row in rows if act.whole(row)], places)


def _median(  # noqa: PLR0913  (a finding's words, each named at the call)
    key: str, title: str, unit: str, kind: Kind, rows: list[Row], places: dict[str, str], signals: tuple[str, ...]
) -> Finding:
    values = [(row["session_id"], float(row[key])) for row in rows if row[key] is not None]
    return Finding(
        id=f"oversight.{key}",
        title=title,
        value=median([value for _, value in values]),
        unit=unit,
        kind=kind,
        n=len(values),
        of="turns",
        interval=median_interval(values, places),
        signals=signals,
        command=again_in_report("oversight"),
    )


def _share(act: _Act) -> Callable[[list[Row]], float]:
    return lambda rows: sum(act.part(row) for row in rows) / len(rows)


def _calls(share: float) -> Callable[[list[Row]], float]:
    return lambda rows: quantile(sorted(row["calls"] or 0 for row in rows), share)


def _chart(rows: list[Row], places: dict[str, str]) -> Chart | None:
    shown: list[Row] = []
    for act in ACTS:
        estimate = _estimate(act, rows, places)
        if estimate.value is not None:
            low, high = estimate.interval or (None, None)
            tip = f"{act.title}: {estimate.k:,.0f} of {estimate.n:,.0f} {act.of}, {formatted(estimate.value, 'share')}"
            name = f"{act.short} ({estimate.k:,.0f})"
            shown.append({"name": name, "value": estimate.value, "low": low, "high": high, "tip": tip})
    return Chart(
        id="oversight.acts",
        title="Oversight",
        says="; ".join(row["tip"] for row in shown),
        spec=dots(shown, "share of turns, plans or calls"),
        n=len(rows),
        of="turns",
        note="how many in brackets; the line is the 95% interval",
    )


def _by_mode(rows: list[Row], modes: list[Row]) -> Table:
    shown = []
    for road in ROADS:
        mode_of = by_session(modes, road)
        for mode in OF_ROAD[road]:
            group = [row for row in rows if mode_of.get(row["session_id"]) == mode]
            shown += [[f"{NAMES[mode]}, {road}", *_figures(group)]] if group else []
    return _table("mode", "mode", shown, sum(row[1] for row in shown if "replayed" in row[0]) or len(rows))


def _by_agent(rows: list[Row]) -> Table:
    shown = [
        [agent, *_figures([row for row in rows if row["agent"] == agent])]
        for agent in agents_in_order({row["session_id"]: row for row in rows}.values())
    ]
    return _table("agent", "agent", shown, len(rows))


def _figures(rows: list[Row]) -> list[Any]:
    shares = []
    for act in ACTS:
        whole = sum(act.whole(row) for row in rows)
        shares.append(sum(act.part(row) for row in rows) / whole if whole else None)
    seconds = [row["seconds"] for row in rows if row["seconds"] is not None]
    return [len(rows), *shares, median([row["calls"] or 0 for row in rows]), median(seconds)]


def _table(key: str, label: str, shown: list[list[Any]], n: int) -> Table:
    return Table(
        id=f"oversight.by_{key}",
        title=f"Oversight, by {label}",
        columns=(
            Column(key, label),
            Column("n", "turns", "count"),
            *(Column(act.key, act.short, "share") for act in ACTS),
            Column("calls", "calls, median", "number"),
            Column("seconds", "time, median", "seconds"),
        ),
        rows=shown,
        n=n,
        of="turns",
    )


_PLANS = ", ".join(f"'{name}'" for name in _SHOWS_PLAN)
_TURN_ROWS = f"""
WITH told AS (SELECT session_id, turn,
 bool_or(number > 0 AND detail->>'how' = 'tool') FILTER (signal = '{_ASKS}') AS asked,
 bool_or(number > 0 AND detail->>'how' = 'question') FILTER (signal = '{_ASKS}') AS asked_in_words,
 max(number) FILTER (signal = '{_TIME}') AS seconds FROM signals
 WHERE signal IN ('{_ASKS}', '{_TIME}') AND absent IS NULL GROUP BY ALL),
did AS (SELECT session_id, turn, count(*) AS calls, count(*) FILTER (status = 'rejected') AS refused,
 count(*) FILTER (name IN ({_PLANS})) AS plans,
 count(*) FILTER (name IN ({_PLANS}) AND status IN ('ok', 'rejected')) AS decided,
 count(*) FILTER (name IN ({_PLANS}) AND status = 'ok') AS approved
 FROM tool_calls WHERE thread = 'main' GROUP BY ALL),
cut AS (SELECT session_id, turn, count(*) AS interrupts FROM events
 WHERE kind = 'interrupt' AND thread = 'main' GROUP BY ALL)
SELECT session_id, turn, agent, asked, asked_in_words, seconds, coalesce(calls, 0) AS calls, refused, plans, decided,
 approved, interrupts, CASE WHEN timestamp BETWEEN TIMESTAMP '2015-01-01' AND TIMESTAMP '2100-01-01' THEN timestamp END
 AS timestamp FROM turns JOIN sessions USING (session_id) LEFT JOIN told USING (session_id, turn)
 LEFT JOIN did USING (session_id, turn) LEFT JOIN cut USING (session_id, turn) ORDER BY session_id, turn"""

STUDY = Study(
    name="oversight",
    place=190,
    title="Oversight",
    question="How do people keep an eye on what agents do?",
    queries={
        "sessions": "SELECT session_id, repo, cwd FROM sessions ORDER BY session_id",
        "modes": MODES,
        "turns": _TURN_ROWS,
    },
    function=_outcome,
    context="product",
)
