"""How people feel, in labels: how much of it is neutral (agent-traces)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from agentsignals.questions.charts import bars
from agentsignals.questions.estimates import by, chart, count_bars, table
from agentsignals.questions.label_shares import QUERIES, Labelled, labelled, no_labels
from agentsignals.questions.question import Chart, Inputs, Outcome, Study, Table
from agentsignals.stats.agent_traces import NEGATIVE, NEUTRAL, POSITIVE, VALUES, label, pure_neutral, share
from agentsignals.stats.agreement import agreement


def _outcome(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return no_labels(inputs)
    findings = [
        labels.finding(
            labels.estimate(partial(share, value=value)),
            f"sentiment.{value.lower()}",
            f"Messages labelled {value}",
            "labelled messages",
            unit="share of messages",
            headline=value == NEGATIVE,
            classes=(value,),
        )
        for value in (NEUTRAL, NEGATIVE, POSITIVE)
    ]
    unclear = [pure_neutral(conversation) for conversation in labels.conversations].count(None)
    findings.append(
        labels.finding(
            labels.estimate(pure_neutral),
            "sentiment.pure_neutral",
            "Sessions with neither a POSITIVE nor a NEGATIVE message",
            "sessions with a label",
            f"{unclear:,} more are neutral as far as they are labelled" if unclear else "",
            unit="share of sessions",
        )
    )
    limits = [*labels.limits(), "Short sessions are neutral more often: fewer messages, fewer occasions."]
    return Outcome(findings, [_labellers(inputs, labels), _confusion(inputs, labels)], [_chart(labels)], limits)


def _chart(labels: Labelled) -> Chart | None:
    of_label: dict[str, list[str]] = {value: [] for value in (NEUTRAL, NEGATIVE, POSITIVE)}
    for conversation in labels.conversations:
        for message in conversation.labelled:
            of_label[str(message.value)].append(conversation.session_id)
    counted = Counter({value: len(ids) for value, ids in of_label.items()})
    rows = count_bars([*counted.items()], "messages", evidence=of_label)
    n, of = counted.total(), "labelled messages"
    return chart("sentiment.labels", "Labels of messages", rows, bars(rows, "messages"), n=n, of=of)


def _labellers(inputs: Inputs, labels: Labelled) -> Table:
    groups = by(inputs.rows["labels"], "labeller")
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
        for name, group in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    ]
    return table(
        "sentiment.labellers",
        "Who labelled",
        "labeller:code | model:code | prompt:code | labels:count | no_label no label:count | last:date | taken",
        rows,
        n=len(inputs.rows["labels"]),
        of="labels",
        evidence=[[row["session_id"] for row in groups[shown[0]]] for shown in rows],
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
    of_both: dict[str, list[str]] = {}
    for row in inputs.rows["labels"]:
        here, there = values.get((row["session_id"], row["turn"])), label(row["value"])
        if here and there and row["labeller"] != labels.labeller:
            pairs.setdefault(row["labeller"], []).append((here, there))
            of_both.setdefault(row["labeller"], []).append(row["session_id"])
    rows: list[list[Any]] = []
    for name, both in sorted(pairs.items()):
        agreed = agreement(both, VALUES)
        if agreed is not None:
            cells = [agreed.confusion[a][b] for a in VALUES for b in VALUES if a != b]
            rows.append([name, agreed.n, agreed.agreement, agreed.chance, agreed.kappa, *cells])
    others = " | ".join(f"{f'{a}_{b}'.lower()} {a} → {b}:count" for a in VALUES for b in VALUES if a != b)
    return table(
        "sentiment.agreement",
        f"{labels.labeller} and the others",
        "other other labeller:code | n messages of both:count | agreement agree:share | chance by chance:share"
        f" | kappa:number | {others}",
        rows,
        n=sum(map(len, pairs.values())),
        of="messages with two labels",
        evidence=[of_both[shown[0]] for shown in rows],
        note=f"{NEGATIVE} → {POSITIVE}: the first is {labels.labeller}'s. Where most is {NEUTRAL}, chance agrees too.",
    )


STUDY = Study(
    name="sentiment",
    order=260,
    title="Sentiment",
    question="How much do people's messages say of how they feel?",
    queries=QUERIES,
    function=_outcome,
    context="product",
)
