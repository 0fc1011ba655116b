"""How long an agent works for a prompt, and whether that grows (SWE-chat, Figure 30)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import histogram_chart, lines_chart
from agentsignals.questions.estimates import DOMINANT, ONE_PLACE, by, clustered_median, ranked, share_of, table
from agentsignals.questions.question import Inputs, Outcome, Row, Study, Table
from agentsignals.stats.intervals import quantile

_TIME = "chat.turn_autonomy_s"
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_MINUTES: tuple[float, ...] = (0, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)
WINDOW_DAYS = 7
_FEWEST = 20
"""Turns behind a point of a line (this project's choice)."""
_OF = "prompts with an answer and a time"
_MINUTE = 60.0
_ROUNDING = 1e-9


def _outcome(inputs: Inputs) -> Outcome:
    rows = inputs.rows["turns"]
    places = inputs.places
    of_signal = f"FROM signals WHERE signal = '{_TIME}' AND absent IS NULL"
    findings = [
        clustered_median([(row["session_id"], row["seconds"]) for row in rows], places, "seconds").finding(
            "turn_time.median",
            "Time the agent worked for the median prompt",
            _OF,
            "SWE-chat: under a minute",
            unit="seconds",
            sql=f"SELECT median(number) {of_signal}",
            signals=(_TIME,),
        ),
        share_of(rows, places, lambda row: row["seconds"] > _MINUTE).finding(
            "turn_time.over_minute",
            "Prompts the agent worked for longer than a minute",
            _OF,
            unit="share of prompts",
            sql=f"SELECT avg(CAST(number > 60 AS INT)) {of_signal}",
            signals=(_TIME,),
        ),
    ]
    title = "Minutes an agent worked for a prompt"
    charts = [
        histogram_chart(
            [(row["session_id"], row["seconds"] / _MINUTE) for row in rows],
            _MINUTES,
            id="turn_time.spread",
            title=title,
            unit="minutes",
            of="prompts",
        ),
        lines_chart(
            [(row["timestamp"], row["session_id"], row["seconds"] / _MINUTE) for row in rows],
            measures={name: _at(share) for name, share in _QUANTILES.items()},
            id="turn_time.over_time",
            title=f"{title}, {WINDOW_DAYS} days rolling",
            unit="minutes",
            kind="number",
            of="prompts",
            days=WINDOW_DAYS,
            fewest=_FEWEST,
        ),
    ]
    tables = [_by("agent", rows, places), _by("model", [r for r in rows if r["model"]], places)]
    limits = [
        "No log says when a call was allowed: each stretch counts for at most as long as its kind can take, so that"
        " short waits for leave are inside, and longer ones, or a machine that slept, are not."
    ]
    return Outcome([f for f in findings if f.n], tables, charts, limits)


def _at(share: float) -> Callable[[list[float]], float | None]:
    """That quantile, where so many values lie beyond it that it is not just the longest; None of fewer."""
    return lambda values: quantile(sorted(values), share) if len(values) * (1 - share) >= 1 - _ROUNDING else None


def _by(key: str, rows: list[Row], places: dict[str, str]) -> Table:
    """Quantiles by agent or model, with what speaks against a comparison."""
    shown: list[list[Any]] = []
    groups = by(rows, key)
    for name, n in ranked({name: len(group) for name, group in groups.items()}):
        group = groups[name]
        seconds = [row["seconds"] for row in group]
        held = Counter(places.get(row["session_id"]) for row in group)
        largest = max((k for place, k in held.items() if place is not None), default=0) / n
        shown.append(
            [
                *(name, n, len({row["session_id"] for row in group})),
                *(_at(share)(seconds) for share in _QUANTILES.values()),
                largest or None,
                ONE_PLACE if largest > DOMINANT else "",
            ]
        )
    quantiles = " | ".join(f"{name}:seconds" for name in _QUANTILES)
    return table(
        f"turn_time.by_{key}",
        f"Time for a prompt, by {key}",
        f"{key}:{'code' if key == 'model' else 'text'} | n prompts:count | sessions:count | {quantiles}"
        " | largest largest place:share | warning says little because",
        shown,
        n=len(rows),
        of=_OF,
        evidence=[[row["session_id"] for row in groups[cells[0]]] for cells in shown],
        note="p90 is told of ten prompts and more, p99 of a hundred, p99.9 of a thousand: of fewer it is the longest."
        + (" A prompt's model is the one its trace names, else its session's." if key == "model" else ""),
    )


STUDY = Study(
    name="turn_time",
    order=170,
    title="Time for a prompt",
    question="How long does an agent work for a prompt?",
    queries={
        "turns": f"SELECT named.session_id, named.turn, number AS seconds, agent, coalesce(turns.model,"
        f" sessions.model) AS model, {sql.SAID_AT} FROM {sql.NAMED} AS named JOIN sessions USING (session_id)"
        f" JOIN turns USING (session_id, turn) WHERE signal = '{_TIME}' AND absent IS NULL"
        " ORDER BY named.session_id, named.turn",
    },
    function=_outcome,
    context="product",
)
