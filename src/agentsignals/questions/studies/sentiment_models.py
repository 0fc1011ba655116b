"""Negative messages by model, and why that is no ranking (agent-traces's warning)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentsignals.questions.charts import dots
from agentsignals.questions.estimates import INTERVAL_NOTE, ClusteredShare, chart, count, table
from agentsignals.questions.label_shares import QUERIES, Labelled, labelled, no_labels
from agentsignals.questions.question import Chart, Finding, Inputs, Outcome, Row, Study, Table
from agentsignals.stats.agent_traces import Conversation, Part, by_model

ENOUGH = 100
"""Labelled messages a model needs to be drawn (agent-traces)."""


def _outcome(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return no_labels(inputs)
    names = {model for conversation in labels.conversations for model in by_model(conversation)}
    models = {name: labels.estimate(_of(name)) for name in names}
    models = dict(sorted(models.items(), key=lambda pair: (-pair[1].n, pair[0])))
    return Outcome(_findings(labels, models), [_table(models)], [_chart(models)], _limits(labels, models))


def _of(model: str) -> Callable[[Conversation], Part]:
    return lambda conversation: by_model(conversation).get(model, (0, 0))


def _findings(labels: Labelled, models: dict[str, ClusteredShare]) -> list[Finding]:
    counted = [(c.session_id, len(c.labelled), len(c.labelled)) for c in labels.conversations]
    n = sum(of_session for _, _, of_session in counted)
    unknown = n - int(sum(estimate.n for estimate in models.values()))
    enough = [estimate for estimate in models.values() if estimate.n >= ENOUGH]
    left_out = f"; of {unknown:,} messages the model is not known" if unknown else ""
    dominated = "Of these, models with more than half of their messages in one place"
    asked = (
        ("count", f"Models with at least {ENOUGH} labelled messages", len(enough), f"{len(models):,} in all{left_out}"),
        ("dominated", dominated, sum(estimate.dominated for estimate in enough), ""),
    )
    return [
        labels.finding(
            count(value, n, evidence=counted),
            f"sentiment_models.{name}",
            title,
            "labelled messages",
            note,
            unit="models",
        )
        for name, title, value, note in asked
    ]


def _table(models: dict[str, ClusteredShare]) -> Table:
    rows: list[list[Any]] = [
        [
            *(name, int(estimate.n), estimate.known_places, estimate.largest, int(estimate.k), estimate.value),
            *(*estimate.ends, estimate.warning(ENOUGH, "messages")),
        ]
        for name, estimate in models.items()
    ]
    return table(
        "sentiment_models.shares",
        "NEGATIVE messages by model",
        "model:code | n labelled:count | places:count | largest largest place:share | negative NEGATIVE:count"
        " | rate share:share | ends:share | warning says little because",
        rows,
        n=sum(estimate.n for estimate in models.values()),
        of="labelled messages",
        evidence=[estimate.counted for estimate in models.values()],
        note="A message belongs to the model of the last answer before it, a first message to that of the first answer."
        f" Few: under {ENOUGH} messages; one place: more than half of them.",
    )


def _chart(models: dict[str, ClusteredShare]) -> Chart | None:
    rows: list[Row] = []
    for name, estimate in models.items():
        if estimate.n >= ENOUGH:
            warning = f" ({w})" if (w := estimate.warning()) else ""
            tip = f"{name}: {estimate.words()}, {estimate.known_places} places{warning}"
            rows.append(estimate.mark(f"{name} ({estimate.n:,.0f})", tip))
    return chart(
        "sentiment_models.chart",
        "NEGATIVE messages by model",
        rows,
        dots(rows, "share of labelled messages"),
        n=sum(estimate.n for estimate in models.values()),
        of="labelled messages",
        note=f"models with at least {ENOUGH} labelled messages (in brackets); {INTERVAL_NOTE}; no ranking",
    )


def _limits(labels: Labelled, models: dict[str, ClusteredShare]) -> list[str]:
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
    order=300,
    title="Sentiment by model",
    question="Are people more negative with some models?",
    queries=QUERIES,
    function=_outcome,
    context="product",
)
