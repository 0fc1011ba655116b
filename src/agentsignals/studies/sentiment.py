"""How people feel, in labels: how much of it is neutral (agent-traces)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from agentsignals.analysis.charts import bars
from agentsignals.analysis.labelled import QUERIES, Labelled, labelled, unlabelled
from agentsignals.analysis.study import Chart, Column, Inputs, Outcome, Row, Study, Table
from agentsignals.stats.agreement import agreement
from agentsignals.stats.sentiment_counts import NEGATIVE, NEUTRAL, POSITIVE, VALUES, label, pure_neutral, share


def _outcome(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return unlabelled(inputs)
    findings = [
        labels.estimate(partial(share, value=value)).finding(
            id=f"sentiment.{value.lower()}",
            title=f"Messages labelled {value}",
            unit="share of messages",
            of="labelled messages",
            command=labels.command("sentiment"),
            headline=value == NEGATIVE,
        )
        for value in (NEUTRAL, NEGATIVE, POSITIVE)
    ]
    unclear = [pure_neutral(conversation) for conversation in labels.conversations].count(None)
    findings.append(
        labels.estimate(pure_neutral).finding(
            f"{unclear:,} more are neutral as far as they are labelled" if unclear else "",
            id="sentiment.pure_neutral",
            title="Sessions with neither a POSITIVE nor a NEGATIVE message",
            unit="share of sessions",
            of="sessions with a label",
            command=labels.command("sentiment"),
        )
    )
    limits = [*labels.limits(), "Short sessions are neutral more often: fewer messages, fewer occasions."]
    return Outcome(findings, [_labellers(inputs, labels), _confusion(inputs, labels)], [_chart(labels)], limits)


def _chart(labels: Labelled) -> Chart:
    counted = Counter(m.value for conversation in labels.conversations for m in conversation.labelled)
    n = counted.total()
    rows: list[Row] = [
        {"name": v, "value": counted[v], "tip": f"{v}: {counted[v]:,} of {n:,} messages ({counted[v] / n:.1%})"}
        for v in (NEUTRAL, NEGATIVE, POSITIVE)
    ]
    return Chart(
        id="sentiment.labels",
        title="Labels of messages",
        says="; ".join(row["tip"] for row in rows),
        spec=bars(rows, "messages"),
        n=n,
        of="labelled messages",
    )


def _labellers(inputs: Inputs, labels: Labelled) -> Table:
    by: dict[str, list[Row]] = {}
    for row in inputs.rows["labels"]:
        by.setdefault(row["labeller"], []).append(row)
    rows: list[list[Any]] = [
        [
            name,
            _one_of(row["model"] for row in group),
            _one_of(row["prompt_hash"] for row in group),
            len(group),
            sum(label(row["value"]) is None for row in group),
            max((row["created_at"] for row in group if row["created_at"] is not None), default=None),
            "taken here" if name == labels.labeller else "",
        ]
        for name, group in sorted(by.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    ]
    return Table(
        id="sentiment.labellers",
        title="Who labelled",
        columns=(
            Column("labeller", "labeller", "code"),
            Column("model", "model", "code"),
            Column("prompt", "prompt", "code"),
            Column("labels", "labels", "count"),
            Column("no_label", "no label", "count"),
            Column("last", "last", "date"),
            Column("taken", "taken"),
        ),
        rows=rows,
        n=len(inputs.rows["labels"]),
        of="labels",
        note="Figures of two labellers are never put together. No label: what was said was none of the three.",
    )


def _one_of(words: Any) -> str | None:
    """The one word all labels say; None when they say several or none."""
    distinct = {word for word in words if word}
    return distinct.pop() if len(distinct) == 1 else None


def _confusion(inputs: Inputs, labels: Labelled) -> Table:
    """This labeller's labels against each other labeller's of the same messages."""
    values = {(c.session_id, m.turn - 1): m.value for c in labels.conversations for m in c.labelled}
    pairs: dict[str, list[tuple[str, str]]] = {}
    for row in inputs.rows["labels"]:
        here, there = values.get((row["session_id"], row["turn"])), label(row["value"])
        if here and there and row["labeller"] != labels.labeller:
            pairs.setdefault(row["labeller"], []).append((here, there))
    rows: list[list[Any]] = []
    for name, both in sorted(pairs.items()):
        agreed = agreement(both, VALUES)
        if agreed is not None:
            cells = [agreed.confusion[a][b] for a in VALUES for b in VALUES if a != b]
            rows.append([name, agreed.n, agreed.agreement, agreed.chance, agreed.kappa, *cells])
    return Table(
        id="sentiment.agreement",
        title=f"{labels.labeller} and the others",
        columns=(
            Column("other", "other labeller", "code"),
            Column("n", "messages of both", "count"),
            Column("agreement", "agree", "share"),
            Column("chance", "by chance", "share"),
            Column("kappa", "kappa", "number"),
            *(Column(f"{a}_{b}".lower(), f"{a} → {b}", "count") for a in VALUES for b in VALUES if a != b),
        ),
        rows=rows,
        n=sum(map(len, pairs.values())),
        of="messages with two labels",
        note=f"{NEGATIVE} → {POSITIVE}: the first is {labels.labeller}'s. Where most is {NEUTRAL}, chance agrees too.",
    )


STUDY = Study(
    name="sentiment",
    place=260,
    title="Sentiment",
    question="How much do people's messages say of how they feel?",
    queries=QUERIES,
    function=_outcome,
    context="product",
)
