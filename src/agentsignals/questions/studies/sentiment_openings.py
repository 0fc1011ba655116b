"""What becomes of a session by how its first message sounds: recovery (agent-traces)."""

from __future__ import annotations

from functools import partial
from typing import Any

from agentsignals.questions.charts import dots
from agentsignals.questions.estimates import INTERVAL_NOTE, ClusteredShare, chart, table
from agentsignals.questions.label_shares import QUERIES, labelled, no_labels
from agentsignals.questions.question import Chart, Inputs, Outcome, Study, Table
from agentsignals.stats.agent_traces import NEGATIVE, NEUTRAL, POSITIVE, Conversation, Part, recovery

_OPENINGS = (NEUTRAL, NEGATIVE, POSITIVE)


def _outcome(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return no_labels(inputs)
    by_opening = {name: labels.estimate(partial(recovery, opening=name)) for name in _OPENINGS}
    several = {name: labels.estimate(partial(recovery, opening=name, several=True)) for name in _OPENINGS}
    opens = "sessions that open NEGATIVE"
    asked = (
        ("negative", "Sessions whose first message is NEGATIVE", labels.estimate(partial(_opens, opening=NEGATIVE)),
         "sessions whose first message is labelled"),
        ("recovery", "Of sessions that open NEGATIVE: with a POSITIVE message later", by_opening[NEGATIVE], opens),
        ("recovery_several", "The same, of sessions with a later message", several[NEGATIVE], opens),
        ("never", "Of sessions that open NEGATIVE: without a POSITIVE message later",
         labels.estimate(partial(_never, opening=NEGATIVE)), opens),
        ("neutral_recovery", "Of sessions that open NEUTRAL: with a POSITIVE message later", by_opening[NEUTRAL],
         "sessions that open NEUTRAL"),
    )  # fmt: skip
    findings = [
        labels.finding(estimate, f"sentiment_openings.{name}", title, of, unit="share of sessions")
        for name, title, estimate, of in asked
    ]
    limits = [
        *labels.limits(),
        "An opening labelled NEGATIVE is mostly a reported problem, not a mood: how sessions open stands for what they"
        " are about.",
        "Longer sessions have more occasions for praise: recovery is not held against the number of messages.",
    ]
    return Outcome(findings, [_table(by_opening, several)], [_chart(by_opening)], limits)


def _never(conversation: Conversation, opening: str) -> Part:
    k, n = recovery(conversation, opening)
    return n - k, n


def _opens(conversation: Conversation, opening: str) -> Part:
    return int(conversation.opening == opening), int(conversation.opening is not None)


def _table(by_opening: dict[str, ClusteredShare], several: dict[str, ClusteredShare]) -> Table:
    rows: list[list[Any]] = [
        [name, int(e.n), int(e.k), e.value, *e.ends, several[name].value, e.note]
        for name, e in by_opening.items()
        if e.n
    ]
    return table(
        "sentiment_openings.recovery_by_opening",
        "A POSITIVE message later, by the label of the first",
        "opening first message | n sessions:count | k POSITIVE later:count | rate share:share | ends:share"
        " | several with a later message:share | note rests on",
        rows,
        n=sum(estimate.n for estimate in by_opening.values()),
        of="sessions whose first message is labelled",
        evidence=[estimate.counted for estimate in by_opening.values() if estimate.n],
        note="Sessions of one message stay in: they can't recover.",
    )


def _chart(by_opening: dict[str, ClusteredShare]) -> Chart | None:
    rows = [e.mark(f"{name} ({e.n:,.0f})", f"{name}: {e.words('sessions')}") for name, e in by_opening.items() if e.n]
    return chart(
        "sentiment_openings.chart",
        "Sessions with a POSITIVE message later, by the first message's label",
        rows,
        dots(rows, "share of sessions"),
        n=sum(estimate.n for estimate in by_opening.values()),
        of="sessions whose first message is labelled",
        note=f"sessions in brackets; {INTERVAL_NOTE}",
        fewest=2,
    )


STUDY = Study(
    name="sentiment_openings",
    order=280,
    title="First messages and recovery",
    question="Does a session that opens badly end badly?",
    queries=QUERIES,
    function=_outcome,
    context="product",
)
