"""How long an agent works for a prompt, and whether that grows (SWE-chat, Figure 30)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from agentsignals.analysis.clusters import DOMINANT, Estimate, median_interval
from agentsignals.analysis.distributions import histogram_chart
from agentsignals.analysis.measures import agents_in_order
from agentsignals.analysis.over_days import lines_chart
from agentsignals.analysis.places import by_session
from agentsignals.analysis.study import Column, Finding, Inputs, Outcome, Row, Study, Table, again
from agentsignals.stats.estimates import median, quantile

_TIME = "chat.turn_autonomy_s"
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_MINUTES: tuple[float, ...] = (0, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)
WINDOW_DAYS = 7
_FEWEST = 20
"""Turns behind a point of a line (this project's choice)."""
_MINUTE = 60.0
_ROUNDING = 1e-9


def _outcome(inputs: Inputs) -> Outcome:
    rows = inputs.rows["turns"]
    places = by_session(inputs.rows["sessions"])
    seconds = [row["seconds"] for row in rows]
    over_minute = Estimate([(r["session_id"], float(r["seconds"] > _MINUTE), 1) for r in rows], places)
    findings = [
        Finding(
            id="turn_time.median",
            title="Time the agent worked for the median prompt",
            value=median(seconds),
            unit="seconds",
            kind="seconds",
            n=len(rows),
            of="prompts with an answer and a time",
            interval=median_interval([(r["session_id"], r["seconds"]) for r in rows], places),
            signals=(_TIME,),
            command=again(f"SELECT median(number) FROM signals WHERE signal = '{_TIME}' AND absent IS NULL"),
            note="SWE-chat: under a minute",
        ),
        over_minute.finding(
            id="turn_time.over_minute",
            title="Prompts the agent worked for longer than a minute",
            unit="share of prompts",
            of="prompts with an answer and a time",
            signals=(_TIME,),
            command=again(
                f"SELECT avg(CAST(number > 60 AS INT)) FROM signals WHERE signal = '{_TIME}' AND absent IS NULL"
            ),
        ),
    ]
    charts = [
        histogram_chart(
            [s / _MINUTE for s in seconds],
            _MINUTES,
            id="turn_time.spread",
            title="Minutes an agent worked for a prompt",
            unit="minutes",
            of="prompts",
        ),
        lines_chart(
            [(row["timestamp"], row["seconds"] / _MINUTE) for row in rows if row["timestamp"] is not None],
            {name: _at(share) for name, share in _QUANTILES.items()},
            id="turn_time.over_time",
            title=f"Minutes an agent worked for a prompt, {WINDOW_DAYS} days rolling",
            unit="minutes",
            kind="number",
            of="prompts",
            days=WINDOW_DAYS,
            fewest=_FEWEST,
        ),
    ]
    tables = [_by("agent", rows, places), _by("model", [r for r in rows if r["model"]], places)]
    limits = [
        "Waiting for a permission is part of a turn's time, and so is a night over which a session lay open: the outer"
        " quantiles are mostly that."
    ]
    return Outcome([f for f in findings if f.n], tables, [c for c in charts if c is not None], limits)


def _at(share: float) -> Callable[[list[float]], float | None]:
    """That quantile, where so many values lie beyond it that it is not just the longest; None of fewer."""
    return lambda values: quantile(sorted(values), share) if len(values) * (1 - share) >= 1 - _ROUNDING else None


def _by(key: str, rows: list[Row], places: dict[str, str]) -> Table:
    """Quantiles by agent or model, with what speaks against a comparison."""
    shown: list[list[Any]] = []
    for name in _ranked(key, rows):
        group = [row for row in rows if row[key] == name]
        seconds = [row["seconds"] for row in group]
        held = Counter(places.get(row["session_id"]) for row in group)
        largest = max((n for place, n in held.items() if place is not None), default=0) / len(group)
        shown.append(
            [
                *(name, len(group), len({row["session_id"] for row in group})),
                *(_at(share)(seconds) for share in _QUANTILES.values()),
                largest or None,
                "one place" if largest > DOMINANT else "",
            ]
        )
    return Table(
        id=f"turn_time.by_{key}",
        title=f"Time for a prompt, by {key}",
        columns=(
            Column(key, key, "code" if key == "model" else "text"),
            Column("n", "prompts", "count"),
            Column("sessions", "sessions", "count"),
            *(Column(name, name, "seconds") for name in _QUANTILES),
            Column("largest", "largest place", "share"),
            Column("warning", "says little because"),
        ),
        rows=shown,
        n=len(rows),
        of="prompts with an answer and a time",
        note="p90 is told of ten prompts and more, p99 of a hundred, p99.9 of a thousand: of fewer it is the longest."
        + (" A prompt's model is the one its trace names, else its session's." if key == "model" else ""),
    )


def _ranked(key: str, rows: list[Row]) -> list[str]:
    return agents_in_order([{"agent": row[key]} for row in rows])


STUDY = Study(
    name="turn_time",
    place=170,
    title="Time for a prompt",
    question="How long does an agent work for a prompt?",
    queries={
        "sessions": "SELECT session_id, repo, cwd FROM sessions ORDER BY session_id",
        "turns": "SELECT signals.session_id, signals.turn, number AS seconds, agent, coalesce(turns.model,"
        " sessions.model) AS model, CASE WHEN timestamp BETWEEN TIMESTAMP '2015-01-01' AND TIMESTAMP '2100-01-01' THEN"
        " timestamp END AS timestamp FROM signals JOIN sessions USING (session_id) JOIN turns USING (session_id, turn)"
        f" WHERE signal = '{_TIME}' AND absent IS NULL ORDER BY signals.session_id, signals.turn",
    },
    function=_outcome,
    context="product",
)
