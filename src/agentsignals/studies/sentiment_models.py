"""Negative messages by model, and why that is no ranking (agent-traces's warning)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentsignals.analysis.charts import dots
from agentsignals.analysis.clusters import Estimate
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.labelled import QUERIES, Labelled, labelled, unlabelled
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table
from agentsignals.stats.sentiment_counts import Conversation, Part, by_model

ENOUGH = 100
"""Labelled messages a model needs to be drawn (agent-traces)."""


def _outcome(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return unlabelled(inputs)
    names = {model for conversation in labels.conversations for model in by_model(conversation)}
    models = {name: labels.estimate(_of(name)) for name in names}
    models = dict(sorted(models.items(), key=lambda pair: (-pair[1].n, pair[0])))
    chart = _chart(models)
    return Outcome(_findings(labels, models), [_table(models)], [chart] if chart else [], _limits(labels, models))


def _of(model: str) -> Callable[[Conversation], Part]:
    return lambda conversation: by_model(conversation).get(model, (0, 0))


def _findings(labels: Labelled, models: dict[str, Estimate]) -> list[Finding]:
    n = sum(len(conversation.labelled) for conversation in labels.conversations)
    unknown = n - int(sum(estimate.n for estimate in models.values()))
    enough = [estimate for estimate in models.values() if estimate.n >= ENOUGH]
    return [
        Finding(
            id="sentiment_models.count",
            title=f"Models with at least {ENOUGH} labelled messages",
            value=len(enough),
            unit="models",
            n=n,
            of="labelled messages",
            command=labels.command("sentiment_models"),
            note=f"{len(models):,} in all" + (f"; of {unknown:,} messages the model is not known" if unknown else ""),
        ),
        Finding(
            id="sentiment_models.dominated",
            title="Of these, models with more than half of their messages in one place",
            value=sum(estimate.dominated for estimate in enough),
            unit="models",
            n=n,
            of="labelled messages",
            command=labels.command("sentiment_models"),
        ),
    ]


def _warning(estimate: Estimate) -> str:
    return ", ".join(
        [*(["few messages"] if estimate.n < ENOUGH else []), *(["one place"] if estimate.dominated else [])]
    )


def _table(models: dict[str, Estimate]) -> Table:
    rows: list[list[Any]] = [
        [
            *(
                name,
                int(estimate.n),
                estimate.known_places,
                estimate.places.largest if estimate.known_places else None,
                int(estimate.k),
                estimate.value,
            ),
            *(estimate.interval or (None, None)),
            _warning(estimate),
        ]
        for name, estimate in models.items()
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
        n=int(sum(estimate.n for estimate in models.values())),
        of="labelled messages",
        note="A message belongs to the model of the last answer before it, a first message to that of the first answer."
        f" Few: under {ENOUGH} messages; one place: more than half of them.",
    )


def _chart(models: dict[str, Estimate]) -> Chart | None:
    rows: list[Row] = []
    for name, estimate in models.items():
        if estimate.n >= ENOUGH and estimate.value is not None:
            low, high = estimate.interval or (None, None)
            warning = f" ({_warning(estimate)})" if _warning(estimate) else ""
            share = formatted(estimate.value, "share")
            places = f"{estimate.known_places} places{warning}"
            tip = f"{name}: {estimate.k:,.0f} of {estimate.n:,.0f}, {share}, {places}"
            rows.append(
                {"name": f"{name} ({estimate.n:,.0f})", "value": estimate.value, "low": low, "high": high, "tip": tip}
            )
    if not rows:
        return None
    return Chart(
        id="sentiment_models.chart",
        title="NEGATIVE messages by model",
        says="; ".join(row["tip"] for row in rows),
        spec=dots(rows, "share of labelled messages"),
        n=int(sum(estimate.n for estimate in models.values())),
        of="labelled messages",
        note=f"models with at least {ENOUGH} labelled messages (in brackets); the line is the 95% interval; no ranking",
    )


def _limits(labels: Labelled, models: dict[str, Estimate]) -> list[str]:
    limits = [
        *labels.limits(),
        "Shares of negative messages by model are no leaderboard: people chose the model, the task and what to share,"
        " and a model that one frustrated person used looks frustrating.",
    ]
    enough = {name: estimate for name, estimate in models.items() if estimate.n >= ENOUGH}
    narrow = [name for name, estimate in enough.items() if estimate.dominated]
    if narrow:
        limits.append(
            f"{len(narrow)} of {len(enough)} models with {ENOUGH} labelled messages have more than half of them in one"
            " place."
        )
    return limits


STUDY = Study(
    name="sentiment_models",
    place=300,
    title="Sentiment by model",
    question="Are people more negative with some models?",
    queries=QUERIES,
    function=_outcome,
    context="product",
)
