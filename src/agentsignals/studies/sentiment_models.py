"""Negative messages by model, and why that is no ranking (agent-traces's warning)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentsignals.analysis.charts import dots
from agentsignals.analysis.clusters import Estimate
from agentsignals.analysis.figures import told
from agentsignals.analysis.labelled import QUERIES, Labelled, labelled, unlabelled
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table
from agentsignals.stats.sentiment_counts import Conversation, Part, by_model

ENOUGH = 100
"""Labelled messages a model needs to be drawn (agent-traces)."""


def _function(inputs: Inputs) -> Outcome:
    found = labelled(inputs)
    if found is None:
        return unlabelled(inputs)
    names = {model for one in found.conversations for model in by_model(one)}
    models = {name: found.estimate(_of(name)) for name in names}
    models = dict(sorted(models.items(), key=lambda pair: (-pair[1].n, pair[0])))
    chart = _chart(models)
    return Outcome(_findings(found, models), [_table(models)], [chart] if chart else [], _limits(found, models))


def _of(model: str) -> Callable[[Conversation], Part]:
    return lambda one: by_model(one).get(model, (0, 0))


def _findings(found: Labelled, models: dict[str, Estimate]) -> list[Finding]:
    n = sum(len(one.labelled) for one in found.conversations)
    unknown = n - int(sum(one.n for one in models.values()))
    enough = [one for one in models.values() if one.n >= ENOUGH]
    return [
        Finding(
            id="sentiment_models.count",
            title=f"Models with at least {ENOUGH} labelled messages",
            value=len(enough),
            unit="models",
            n=n,
            of="labelled messages",
            command=found.command("sentiment_models"),
            note=f"{len(models):,} in all" + (f"; of {unknown:,} messages the model is not known" if unknown else ""),
        ),
        Finding(
            id="sentiment_models.dominated",
            title="Of these, models with more than half of their messages in one place",
            value=sum(one.dominated for one in enough),
            unit="models",
            n=n,
            of="labelled messages",
            command=found.command("sentiment_models"),
        ),
    ]


def _warning(one: Estimate) -> str:
    return ", ".join([*(["few messages"] if one.n < ENOUGH else []), *(["one place"] if one.dominated else [])])


def _table(models: dict[str, Estimate]) -> Table:
    rows: list[list[Any]] = [
        [
            *(name, int(one.n), one.known, one.places.largest if one.known else None, int(one.k), one.value),
            *(one.interval or (None, None)),
            _warning(one),
        ]
        for name, one in models.items()
    ]
    return Table(
        id="sentiment_models.shares",
        title="NEGATIVE messages by model",
        columns=(
            Column("model", "model", "code"),
            Column("n", "labelled", "count"),
            Column("places", "places", "count"),
            Column("largest", "largest place", "share"),
            Column("negative", "NEGATIVE", "count"),
            Column("rate", "share", "share"),
            Column("low", "95% from", "share"),
            Column("high", "to", "share"),
            Column("warning", "says little because"),
        ),
        rows=rows,
        n=int(sum(one.n for one in models.values())),
        of="labelled messages",
        note="A message belongs to the model of the last answer before it, a first message to that of the first answer."
        f" Few: under {ENOUGH} messages; one place: more than half of them.",
    )


def _chart(models: dict[str, Estimate]) -> Chart | None:
    rows: list[Row] = []
    for name, one in models.items():
        if one.n >= ENOUGH and one.value is not None:
            low, high = one.interval or (None, None)
            warning = f" ({_warning(one)})" if _warning(one) else ""
            tip = f"{name}: {one.k:,.0f} of {one.n:,.0f}, {told(one.value, 'share')}, {one.known} places{warning}"
            rows.append({"name": f"{name} ({one.n:,.0f})", "value": one.value, "low": low, "high": high, "tip": tip})
    if not rows:
        return None
    return Chart(
        id="sentiment_models.chart",
        title="NEGATIVE messages by model",
        says="; ".join(row["tip"] for row in rows),
        spec=dots(rows, "share of labelled messages"),
        n=int(sum(one.n for one in models.values())),
        of="labelled messages",
        note=f"models with at least {ENOUGH} labelled messages (in brackets); the line is the 95% interval; no ranking",
    )


def _limits(found: Labelled, models: dict[str, Estimate]) -> list[str]:
    limits = [
        *found.limits(),
        "Shares of negative messages by model are no leaderboard: people chose the model, the task and what to share,"
        " and a model that one frustrated person used looks frustrating.",
    ]
    enough = {name: one for name, one in models.items() if one.n >= ENOUGH}
    narrow = [name for name, one in enough.items() if one.dominated]
    if narrow:
        limits.append(
            f"{len(narrow)} of {len(enough)} models with {ENOUGH} labelled messages have more than half of them in one"
            " place."
        )
    return limits


STUDY = Study(
    name="sentiment_models",
    title="Sentiment by model",
    question="Are people more negative with some models?",
    queries=QUERIES,
    function=_function,
    context="product",
)
