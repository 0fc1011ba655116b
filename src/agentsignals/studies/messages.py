"""How much people write: long messages, short ones, and the same ones again (agent-traces)."""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.analysis.clusters import median_interval
from agentsignals.analysis.distributions import QUANTILES, histogram_chart, quantile_columns, quantiles
from agentsignals.analysis.measures import agents_in_order
from agentsignals.analysis.places import Places
from agentsignals.analysis.study import Column, Finding, Inputs, Outcome, Row, Study, Table, again, again_in_report
from agentsignals.stats.estimates import median

_COMMON = "corpus.top_duplicate_messages[]"
_CHARS = "length(trim(text, concat(' ', chr(9), chr(10), chr(13))))"
_SPOKEN = f"kind NOT IN ('plan_handoff', 'attachment') AND {_CHARS} > 0"
_LENGTHS: tuple[float, ...] = (1, 5, 20, 50, 100, 200, 500, 1_000, 5_000)
"""Upper ends of the classes of length; 20 is agent-traces's short message."""


def _outcome(inputs: Inputs) -> Outcome:
    rows = inputs.rows["lengths"]
    common_rows = inputs.rows["common"]
    common = msgspec.json.decode(common_rows[0]["value"]) if common_rows else []
    messages = int(common_rows[0]["messages"]) if common_rows else 0
    lengths = [row["chars"] for row in rows]
    chart = histogram_chart(
        lengths,
        _LENGTHS,
        id="messages.lengths",
        title="Length of people's messages",
        unit="characters",
        of="messages",
        note="agent-traces calls 20 characters short: approval, continuation, a short imperative",
    )
    findings = [_median(rows, lengths), _most_common(common, messages)]
    limits = [
        "Pasted text counts as written: the longest messages are mostly pastes.",
    ]
    return Outcome(findings, [_by_agent(rows), _common(common, messages)], [chart] if chart else [], limits)


def _median(rows: list[Row], lengths: list[int]) -> Finding:
    where = Places(rows)
    places = {row["session_id"]: place for row in rows if (place := where.of(row)) is not None}
    return Finding(
        id="messages.median",
        title="Length of the median message",
        value=median(lengths),
        unit="characters",
        kind="number",
        n=len(lengths),
        of="messages",
        interval=median_interval([(row["session_id"], row["chars"]) for row in rows], places),
        command=again(f"SELECT median({_CHARS}) FROM turns JOIN sessions USING (session_id) WHERE {_SPOKEN}"),
        note="plan hand-offs and bare attachments are not counted",
    )


def _most_common(common: list[dict[str, Any]], messages: int) -> Finding:
    most = common[0] if common else None
    return Finding(
        id="messages.common",
        title="Most common message",
        value=most["text"] if most else None,
        unit="words",
        kind="text",
        n=messages,
        of="messages",
        signals=(_COMMON,),
        command=again_in_report("messages"),
        note=f"{most['n']:,} times in {most['sessions']:,} sessions" if most else "no message came twice",
    )


def _by_agent(rows: list[Row]) -> Table:
    agents = agents_in_order(rows)
    named = [("all agents", rows), *((agent, [r for r in rows if r["agent"] == agent]) for agent in agents)]
    shown = [[name, len(group), *quantiles([r["chars"] for r in group])] for name, group in named if group]
    return Table(
        id="messages.by_agent",
        title="Length of people's messages, by agent",
        columns=(Column("agent", "agent"), Column("n", "messages", "count"), *quantile_columns("count")),
        rows=shown if len(agents) > 1 else shown[:1],
        n=len(rows),
        of="messages",
        note=f"Characters, at the {', '.join(label for _, label in QUANTILES)}.",
    )


def _common(common: list[dict[str, Any]], messages: int) -> Table:
    return Table(
        id="messages.most_common",
        title="Messages that come again",
        columns=(
            Column("text", "message"),
            Column("n", "times", "count"),
            Column("share", "of all messages", "share"),
            Column("sessions", "sessions", "count"),
        ),
        rows=[[row["text"], row["n"], row["n"] / messages, row["sessions"]] for row in common],
        n=messages,
        of="messages",
        note="Case, outer blanks and a final . or ! put aside; secrets, addresses and paths hidden if recognised.",
    )


STUDY = Study(
    name="messages",
    place=250,
    title="Messages",
    question="How much do people write?",
    queries={
        "lengths": f"SELECT session_id, agent, repo, cwd, {_CHARS} AS chars FROM turns"
        f" JOIN sessions USING (session_id) WHERE {_SPOKEN} ORDER BY session_id, turn",
        "common": "SELECT value, CAST(detail->>'messages' AS BIGINT) AS messages FROM signals"
        f" WHERE signal = '{_COMMON}' AND absent IS NULL",
    },
    function=_outcome,
    context="product",
)
