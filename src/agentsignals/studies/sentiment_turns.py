"""Whether people get more negative as a session goes on (agent-traces), and how much of that is other sessions."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

from agentsignals.analysis.charts import by_position
from agentsignals.analysis.clusters import Estimate
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.labelled import QUERIES, Labelled, labelled, unlabelled
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table
from agentsignals.stats.sentiment_counts import PLATEAU, bands, negative_at

LOW_N = 30
"""A turn with fewer labelled messages is marked (design/signals.md#sentiment-by-turn)."""
_ALL, _COHORT = "all sessions", f"sessions that reach turn {PLATEAU}"


def _outcome(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return unlabelled(inputs)
    curves = {_ALL: _curve(labels, cohort=False), _COHORT: _curve(labels, cohort=True)}
    chart = _chart(curves)
    limits = [
        *labels.limits(),
        "Later turns are turns of longer sessions: a rate that climbs with the turn is in part a change of sessions."
        f" The curve of {_COHORT} is free of it up to that turn.",
    ]
    return Outcome(_findings(labels), [_table(curves)], [chart] if chart else [], limits)


def _findings(labels: Labelled) -> list[Finding]:
    asked: tuple[tuple[str, str, int, float, bool], ...] = (
        ("first", "NEGATIVE at turn 1", 1, 1, False),
        ("fifth", "NEGATIVE at turn 5", PLATEAU, PLATEAU, False),
        ("plateau", "NEGATIVE from turn 5 on", PLATEAU, inf, False),
        ("cohort_first", f"NEGATIVE at turn 1, {_COHORT}", 1, 1, True),
    )
    return [
        labels.estimate(partial(negative_at, first=first, last=last, cohort=cohort)).finding(
            id=f"sentiment_turns.{name}",
            title=title,
            unit="share of messages",
            of="labelled messages",
            command=labels.command("sentiment_turns"),
        )
        for name, title, first, last, cohort in asked
    ]


def _curve(labels: Labelled, *, cohort: bool) -> list[tuple[str, Estimate]]:
    return [
        (
            f"{first}+" if last == inf else str(first),
            labels.estimate(partial(negative_at, first=first, last=last, cohort=cohort)),
        )
        for first, last in bands()
        if first < PLATEAU or not cohort  # from there on only sessions of the cohort have messages
    ]


def _table(curves: dict[str, list[tuple[str, Estimate]]]) -> Table:
    rows: list[list[Any]] = [
        [name, at, int(point.n), int(point.k), point.value, *(point.interval or (None, None)), _warning(point)]
        for name, curve in curves.items()
        for at, point in curve
        if point.n
    ]
    return Table(
        id="sentiment_turns.curve",
        title="NEGATIVE messages by turn",
        columns=(
            Column("sessions", "of"),
            Column("turn", "turn"),
            Column("n", "labelled", "count"),
            Column("negative", "NEGATIVE", "count"),
            Column("rate", "share", "share"),
            Column("low", "95% from", "share"),
            Column("high", "to", "share"),
            Column("warning", "says little because"),
        ),
        rows=rows,
        n=int(sum(point.n for _, point in curves[_ALL])),
        of="labelled messages",
        note=f"Few: under {LOW_N} messages; one place: more than half. From turn {PLATEAU} on all sessions reach it.",
    )


def _warning(point: Estimate) -> str:
    return ", ".join([*(["few messages"] if point.n < LOW_N else []), *(["one place"] if point.dominated else [])])


def _chart(curves: dict[str, list[tuple[str, Estimate]]]) -> Chart | None:
    rows: list[Row] = []
    for at in dict.fromkeys(at for curve in curves.values() for at, _ in curve):
        for name, curve in curves.items():
            point = dict(curve).get(at)
            if point is None or point.value is None:
                continue
            low, high = point.interval or (None, None)
            tip = f"turn {at}, {name}: {point.k:,.0f} of {point.n:,.0f} NEGATIVE, {formatted(point.value, 'share')}"
            rows.append({"name": name, "at": at, "value": point.value, "low": low, "high": high, "tip": tip})
    if len({row["at"] for row in rows}) < 2:
        return None
    return Chart(
        id="sentiment_turns.by_turn",
        title="NEGATIVE messages by turn",
        says="; ".join(row["tip"] for row in rows),
        spec=by_position(rows, "number of the turn in its session", "share of labelled messages", (_ALL, _COHORT)),
        n=int(sum(point.n for _, point in curves[_ALL])),
        of="labelled messages",
        note=f"lines are 95% intervals; from turn {PLATEAU} on all sessions reach it; few sessions say little",
    )


STUDY = Study(
    name="sentiment_turns",
    place=270,
    title="Sentiment by turn",
    question="Do people get more negative as a session goes on?",
    queries=QUERIES,
    function=_outcome,
    context="product",
)
