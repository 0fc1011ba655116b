"""Whether people get more negative as a session goes on (agent-traces), and how much of that is other sessions."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

from agentsignals.questions.charts import intervals_by_position
from agentsignals.questions.estimates import ClusteredShare, chart, table
from agentsignals.questions.formatting import formatted
from agentsignals.questions.label_shares import QUERIES, Labelled, labelled, no_labels
from agentsignals.questions.question import Chart, Inputs, Outcome, Row, Study, Table
from agentsignals.stats.agent_traces import LOW_N, PLATEAU, bands, negative_between

_Curve = list[tuple[str, ClusteredShare]]
_ALL, _COHORT = "all sessions", f"sessions that reach turn {PLATEAU}"


def _outcome(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return no_labels(inputs)
    curves = {_ALL: _curve(labels, cohort=False), _COHORT: _curve(labels, cohort=True)}
    asked: tuple[tuple[str, str, int, float, bool], ...] = (
        ("first", "NEGATIVE at turn 1", 1, 1, False),
        ("fifth", "NEGATIVE at turn 5", PLATEAU, PLATEAU, False),
        ("plateau", "NEGATIVE from turn 5 on", PLATEAU, inf, False),
        ("cohort_first", f"NEGATIVE at turn 1, {_COHORT}", 1, 1, True),
    )
    findings = [
        labels.finding(
            labels.estimate(partial(negative_between, first=first, last=last, cohort=cohort)),
            f"sentiment_turns.{name}",
            title,
            "labelled messages",
            unit="share of messages",
        )
        for name, title, first, last, cohort in asked
    ]
    limits = [
        *labels.limits(),
        "Later turns are turns of longer sessions: a rate that climbs with the turn is in part a change of sessions."
        f" The curve of {_COHORT} is free of it up to that turn.",
    ]
    return Outcome(findings, [_table(curves)], [_chart(curves)], limits)


def _curve(labels: Labelled, *, cohort: bool) -> _Curve:
    return [
        (
            f"{first}+" if last == inf else str(first),
            labels.estimate(partial(negative_between, first=first, last=last, cohort=cohort)),
        )
        for first, last in bands()
        if first < PLATEAU or not cohort  # from there on only sessions of the cohort have messages
    ]


def _table(curves: dict[str, _Curve]) -> Table:
    rows: list[list[Any]] = [
        [name, at, int(point.n), int(point.k), point.value, *point.ends, point.warning(LOW_N, "messages")]
        for name, curve in curves.items()
        for at, point in curve
        if point.n
    ]
    return table(
        "sentiment_turns.curve",
        "NEGATIVE messages by turn",
        "sessions of | turn | n labelled:count | negative NEGATIVE:count | rate share:share | ends:share"
        " | warning says little because",
        rows,
        n=sum(point.n for _, point in curves[_ALL]),
        of="labelled messages",
        evidence=[point.counted for curve in curves.values() for _, point in curve if point.n],
        note=f"Few: under {LOW_N} messages; one place: more than half. From turn {PLATEAU} on all sessions reach it.",
    )


def _chart(curves: dict[str, _Curve]) -> Chart | None:
    rows: list[Row] = []
    for at in dict.fromkeys(at for curve in curves.values() for at, _ in curve):
        for name, curve in curves.items():
            point = dict(curve).get(at)
            if point is not None and point.n:
                tip = f"turn {at}, {name}: {point.k:,.0f} of {point.n:,.0f} NEGATIVE, {formatted(point.value, 'share')}"
                rows.append(point.mark(name, tip, at=at))
    if len({row["at"] for row in rows}) < 2:
        return None
    return chart(
        "sentiment_turns.by_turn",
        "NEGATIVE messages by turn",
        rows,
        intervals_by_position(rows, "number of the turn in its session", "share of labelled messages", (_ALL, _COHORT)),
        n=sum(point.n for _, point in curves[_ALL]),
        of="labelled messages",
        note=f"lines are 95% intervals; from turn {PLATEAU} on all sessions reach it; few sessions say little",
    )


STUDY = Study(
    name="sentiment_turns",
    order=270,
    title="Sentiment by turn",
    question="Do people get more negative as a session goes on?",
    queries=QUERIES,
    function=_outcome,
    context="product",
)
