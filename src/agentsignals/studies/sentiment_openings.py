"""What becomes of a session by how its first message sounds: recovery (agent-traces)."""

from __future__ import annotations

from functools import partial
from typing import Any

from agentsignals.analysis.charts import dots
from agentsignals.analysis.clusters import Estimate
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.labelled import QUERIES, Labelled, labelled, unlabelled
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table
from agentsignals.stats.sentiment_counts import NEGATIVE, NEUTRAL, POSITIVE, Conversation, Part, recovery

_OPENINGS = (NEUTRAL, NEGATIVE, POSITIVE)


def _outcome(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return unlabelled(inputs)
    by_opening = {name: labels.estimate(partial(recovery, opening=name)) for name in _OPENINGS}
    several = {name: labels.estimate(partial(recovery, opening=name, several=True)) for name in _OPENINGS}
    chart = _chart(by_opening)
    limits = [
        *labels.limits(),
        "An opening labelled NEGATIVE is mostly a reported problem, not a mood: how sessions open stands for what they"
        " are about.",
        "Longer sessions have more occasions for praise: recovery is not held against the number of messages.",
    ]
    return Outcome(
        _findings(labels, by_opening, several), [_table(by_opening, several)], [chart] if chart else [], limits
    )


def _never(conversation: Conversation, opening: str) -> Part:
    k, n = recovery(conversation, opening)
    return n - k, n


def _opens(conversation: Conversation, opening: str) -> Part:
    return int(conversation.opening == opening), int(conversation.opening is not None)


def _findings(labels: Labelled, by_opening: dict[str, Estimate], several: dict[str, Estimate]) -> list[Finding]:
    same: dict[str, Any] = {"unit": "share of sessions", "command": labels.command("sentiment_openings")}
    negative = "sessions that open NEGATIVE"
    return [
        labels.estimate(partial(_opens, opening=NEGATIVE)).finding(
            id="sentiment_openings.negative",
            title="Sessions whose first message is NEGATIVE",
            of="sessions whose first message is labelled",
            **same,
        ),
        by_opening[NEGATIVE].finding(
            id="sentiment_openings.recovery",
            title="Of sessions that open NEGATIVE: with a POSITIVE message later",
            of=negative,
            **same,
        ),
        several[NEGATIVE].finding(
            id="sentiment_openings.recovery_several",
            title="The same, of sessions with a later message",
            of=negative,
            **same,
        ),
        labels.estimate(partial(_never, opening=NEGATIVE)).finding(
            id="sentiment_openings.never",
            title="Of sessions that open NEGATIVE: without a POSITIVE message later",
            of=negative,
            **same,
        ),
        by_opening[NEUTRAL].finding(
            id="sentiment_openings.neutral_recovery",
            title="Of sessions that open NEUTRAL: with a POSITIVE message later",
            of="sessions that open NEUTRAL",
            **same,
        ),
    ]


def _table(by_opening: dict[str, Estimate], several: dict[str, Estimate]) -> Table:
    rows: list[list[Any]] = [
        [
            name,
            int(estimate.n),
            int(estimate.k),
            estimate.value,
            *(estimate.interval or (None, None)),
            several[name].value,
            estimate.note,
        ]
        for name, estimate in by_opening.items()
        if estimate.n
    ]
    return Table(
        id="sentiment_openings.recovery_by_opening",
        title="A POSITIVE message later, by the label of the first",
        columns=(
            Column("opening", "first message"),
            Column("n", "sessions", "count"),
            Column("k", "POSITIVE later", "count"),
            Column("rate", "share", "share"),
            Column("low", "95% from", "share"),
            Column("high", "to", "share"),
            Column("several", "with a later message", "share"),
            Column("note", "rests on"),
        ),
        rows=rows,
        n=int(sum(estimate.n for estimate in by_opening.values())),
        of="sessions whose first message is labelled",
        note="Sessions of one message stay in: they can't recover.",
    )


def _chart(by_opening: dict[str, Estimate]) -> Chart | None:
    rows: list[Row] = []
    for name, estimate in by_opening.items():
        if estimate.value is not None:
            low, high = estimate.interval or (None, None)
            tip = f"{name}: {estimate.k:,.0f} of {estimate.n:,.0f} sessions, {formatted(estimate.value, 'share')}"
            rows.append(
                {"name": f"{name} ({estimate.n:,.0f})", "value": estimate.value, "low": low, "high": high, "tip": tip}
            )
    if len(rows) < 2:
        return None
    return Chart(
        id="sentiment_openings.chart",
        title="Sessions with a POSITIVE message later, by the first message's label",
        says="; ".join(row["tip"] for row in rows),
        spec=dots(rows, "share of sessions"),
        n=int(sum(estimate.n for estimate in by_opening.values())),
        of="sessions whose first message is labelled",
        note="sessions in brackets; the line is the 95% interval",
    )


STUDY = Study(
    name="sentiment_openings",
    place=280,
    title="First messages and recovery",
    question="Does a session that opens badly end badly?",
    queries=QUERIES,
    function=_outcome,
    context="product",
)
