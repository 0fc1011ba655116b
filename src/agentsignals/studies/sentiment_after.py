"""What follows the first negative message of a session: darker, or louder in both directions (agent-traces)."""

from __future__ import annotations

from functools import partial

from agentsignals.analysis.charts import by_position
from agentsignals.analysis.clusters import Estimate
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.labelled import QUERIES, labelled, unlabelled
from agentsignals.analysis.study import Chart, Finding, Inputs, Outcome, Row, Study
from agentsignals.stats.sentiment_counts import NEGATIVE, POSITIVE, after_negative, share

_ALL, _AFTER = "all messages", "after the first NEGATIVE"


def _outcome(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return unlabelled(inputs)
    estimates = {
        (name, value): labels.estimate(partial(count, value=value))
        for value in (NEGATIVE, POSITIVE)
        for name, count in ((_ALL, share), (_AFTER, after_negative))
    }
    chart = _chart(estimates)
    limits = [
        *labels.limits(),
        "Messages after a negative one come from longer sessions than messages in general: part of the difference is"
        " theirs. The intervals are of each share, not of the difference.",
    ]
    command = labels.command("sentiment_after")
    return Outcome(
        [_finding(*key, estimate, command) for key, estimate in estimates.items()], [], [chart] if chart else [], limits
    )


def _finding(name: str, value: str, estimate: Estimate, command: str) -> Finding:
    return estimate.finding(
        id=f"sentiment_after.{value.lower()}_{'base' if name == _ALL else 'after'}",
        title=f"{value}: {name}",
        unit="share of messages",
        of="labelled messages" if name == _ALL else "labelled messages behind it",
        command=command,
    )


def _chart(estimates: dict[tuple[str, str], Estimate]) -> Chart | None:
    rows: list[Row] = []
    for (name, value), estimate in estimates.items():
        if estimate.value is not None:
            low, high = estimate.interval or (None, None)
            tip = f"{value}, {name}: {estimate.k:,.0f} of {estimate.n:,.0f}, {formatted(estimate.value, 'share')}"
            rows.append({"name": name, "at": value, "value": estimate.value, "low": low, "high": high, "tip": tip})
    if {row["name"] for row in rows} != {_ALL, _AFTER}:
        return None
    return Chart(
        id="sentiment_after.chart",
        title="Messages before and after a session turns negative",
        says="; ".join(row["tip"] for row in rows),
        spec=by_position(rows, "label", "share of labelled messages", (_ALL, _AFTER)),
        n=int(estimates[_ALL, NEGATIVE].n),
        of="labelled messages",
        note="behind the first NEGATIVE message, where that is not the session's first; itself not counted",
    )


STUDY = Study(
    name="sentiment_after",
    place=290,
    title="After a negative message",
    question="Does a session get darker, or louder?",
    queries=QUERIES,
    function=_outcome,
    context="product",
)
