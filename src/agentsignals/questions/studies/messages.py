"""How much people write: long messages, short ones, and the same ones again (agent-traces)."""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals.questions.charts import QUANTILES, histogram_chart, quantile_columns, quantiles
from agentsignals.questions.estimates import agents_by_sessions, clustered_median, count, table
from agentsignals.questions.question import Finding, Inputs, NoSessions, Outcome, Row, Study, Table
from agentsignals.questions.sql import NAMED, PLACE, SPOKEN

_COMMON = "corpus.top_duplicate_messages[]"
_CHARS = "length(trim(text, concat(' ', chr(9), chr(10), chr(13))))"
_SPOKEN = f"{SPOKEN} AND {_CHARS} > 0"
_LENGTHS: tuple[float, ...] = (1, 5, 20, 50, 100, 200, 500, 1_000, 5_000)
"""Upper ends of the classes of length; 20 is agent-traces's short message."""

_TEXTS = NoSessions(
    "What was said again is kept as it is compared, without its sessions; search finds them by the words."
)


def _outcome(inputs: Inputs) -> Outcome:
    rows = inputs.rows["lengths"]
    common_rows = inputs.rows["common"]
    common = msgspec.json.decode(common_rows[0]["value"]) if common_rows else []
    messages = int(common_rows[0]["messages"]) if common_rows else 0
    typical = clustered_median([(row["session_id"], row["chars"]) for row in rows], inputs.places).finding(
        "messages.median",
        "Length of the median message",
        "messages",
        "plan hand-offs and bare attachments are not counted",
        unit="characters",
        sql=f"SELECT median({_CHARS}) FROM turns JOIN sessions USING (session_id) WHERE {_SPOKEN}",
    )
    lengths = histogram_chart(
        [(row["session_id"], row["chars"]) for row in rows],
        _LENGTHS,
        id="messages.lengths",
        title="Length of people's messages",
        unit="characters",
        of="messages",
        note="agent-traces calls 20 characters short: approval, continuation, a short imperative",
    )
    limits = ["Pasted text counts as written: the longest messages are mostly pastes."]
    tables = [_by_agent(rows), _common(common, messages)]
    return Outcome([typical, _most_common(common, messages)], tables, [lengths], limits)


def _most_common(common: list[dict[str, Any]], messages: int) -> Finding:
    most = common[0] if common else None
    return count(most["text"] if most else None, messages, "text", evidence=_TEXTS).finding(
        "messages.common",
        "Most common message",
        "messages",
        f"{most['n']:,} times in {most['sessions']:,} sessions" if most else "no message came twice",
        unit="words",
        signals=(_COMMON,),
    )


def _by_agent(rows: list[Row]) -> Table:
    agents = agents_by_sessions(rows)
    named = [("all agents", rows), *((agent, [r for r in rows if r["agent"] == agent]) for agent in agents)]
    named = [(name, group) for name, group in named if group][: None if len(agents) > 1 else 1]
    return table(
        "messages.by_agent",
        "Length of people's messages, by agent",
        f"agent | n messages:count | {quantile_columns('count')}",
        [[name, len(group), *quantiles([r["chars"] for r in group])] for name, group in named],
        n=len(rows),
        of="messages",
        evidence=[group for _, group in named],
        note=f"Characters, at the {', '.join(label for _, label in QUANTILES)}.",
    )


def _common(common: list[dict[str, Any]], messages: int) -> Table:
    return table(
        "messages.most_common",
        "Messages that come again",
        "text message | n times:count | share of all messages:share | sessions:count",
        [[row["text"], row["n"], row["n"] / messages, row["sessions"]] for row in common],
        n=messages,
        of="messages",
        evidence=_TEXTS,
        note="Case, outer blanks and a final . or ! put aside; secrets, addresses and paths hidden if recognised.",
    )


STUDY = Study(
    name="messages",
    order=250,
    title="Messages",
    question="How much do people write?",
    queries={
        "lengths": f"SELECT session_id, agent, {PLACE}, {_CHARS} AS chars FROM turns"
        f" JOIN sessions USING (session_id) WHERE {_SPOKEN} ORDER BY session_id, turn",
        "common": "SELECT value, CAST(detail->>'messages' AS BIGINT) AS messages"
        f" FROM {NAMED} WHERE signal = '{_COMMON}' AND absent IS NULL",
    },
    function=_outcome,
    context="product",
)
