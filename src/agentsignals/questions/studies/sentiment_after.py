"""What follows the first negative message of a session: darker, or louder in both directions (agent-traces)."""

from __future__ import annotations

from functools import partial

from agentsignals.questions.charts import intervals_by_position
from agentsignals.questions.estimates import chart
from agentsignals.questions.label_shares import QUERIES, labelled, no_labels
from agentsignals.questions.question import Inputs, Outcome, Study
from agentsignals.stats.agent_traces import NEGATIVE, POSITIVE, after_negative, share

_ALL, _AFTER = "all messages", "after the first NEGATIVE"


def _outcome(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return no_labels(inputs)
    of = "labelled messages"
    estimates = [
        (name, value, labels.estimate(partial(count, value=value)))
        for value in (NEGATIVE, POSITIVE)
        for name, count in ((_ALL, share), (_AFTER, after_negative))
    ]
    findings = [
        labels.finding(
            estimate,
            f"sentiment_after.{value.lower()}_{'base' if name == _ALL else 'after'}",
            f"{value}: {name}",
            of if name == _ALL else f"{of} behind it",
            unit="share of messages",
        )
        for name, value, estimate in estimates
    ]
    rows = [e.mark(name, f"{value}, {name}: {e.words()}", at=value) for name, value, e in estimates if e.n]
    before_and_after = chart(
        "sentiment_after.chart",
        "Messages before and after a session turns negative",
        rows if {row["name"] for row in rows} == {_ALL, _AFTER} else [],
        intervals_by_position(rows, "label", "share of labelled messages", (_ALL, _AFTER)),
        n=estimates[0][2].n,
        of=of,
        note="behind the first NEGATIVE message, where that is not the session's first; itself not counted",
    )
    limits = [
        *labels.limits(),
        "Messages after a negative one come from longer sessions than messages in general: part of the difference is"
        " theirs. The intervals are of each share, not of the difference.",
    ]
    return Outcome(findings, [], [before_and_after], limits)


STUDY = Study(
    name="sentiment_after",
    order=290,
    title="After a negative message",
    question="Does a session get darker, or louder?",
    queries=QUERIES,
    function=_outcome,
    context="product",
)
