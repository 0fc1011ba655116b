"""The ten behavioural metrics of agent-traces side by side, an agent a row."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.estimates import pooled_finding, ranked, table
from agentsignals.questions.formatting import with_bound
from agentsignals.questions.label_shares import rules_recall_text
from agentsignals.questions.question import EvidenceQuery, Inputs, Outcome, Row, Study

_ALL = "all agents"
_RATIO = "corpus.output_input_token_ratio"
_EVENTS = "corpus.session_length_events"


def _over(path: str) -> str:
    return f"sum(num) FILTER (signal = '{path}') / nullif(sum(den) FILTER (signal = '{path}'), 0)"


def _median(path: str) -> str:
    return f"median(number) FILTER (signal = '{path}')"


_SHORT = "corpus.short_messages"
_METRICS = {
    "autonomy calls a prompt:number": _median("corpus.autonomy_ratio"),
    "errors failed calls:share": _over("user.tool_error_rate"),
    "recovery made good:share": _over("corpus.error_recovery_rate"),
    "entropy tool variety, bits:number": _median("corpus.tool_mix_entropy"),
    "events events a session:number": _median(_EVENTS),
    "read_first edits of known files:share": _over("corpus.read_before_edit_rate"),
    "cost cost a session:usd": _median("corpus.session_cost_usd"),
    "output output/input tokens:share": _over(_RATIO),
    "short messages ≤20 characters:share": _over(_SHORT),
    "pushback prompts that object, by words, or follow a cut:share": _over("chat.pushback_rate"),
}
"""The columns of the table, each with what makes it."""
_KEYS = [header.partition(" ")[0] for header in _METRICS]
_BOUND = ("cost", "output")
"""Lower bounds where output is."""
_EACH = [f"{expression} AS {key}" for key, expression in zip(_KEYS, _METRICS.values(), strict=True)]
_SELECT = ", ".join([f"bool_or({sql.BOUND} IS NOT NULL) AS low", *_EACH])
_PATHS = sorted(set(re.findall(r"signal = ('[^']+')", _SELECT)))
_FROM = f"FROM {sql.NAMED} JOIN sessions USING (session_id)"
_PARTS = (
    f"SELECT session_id, signal, number, CASE WHEN signal <> '{_SHORT}' THEN detail->>['num', 'den']"
    " WHEN absent IS NULL THEN value->>['le_20', 'n'] END AS parts"
    f" FROM {sql.NAMED} WHERE signal IN ({', '.join(_PATHS)})"
)
"""The signals of the table, each with what it is a ratio of: JSON is read once a row."""
_ROWS = (
    "FROM (SELECT session_id, signal, number, TRY_CAST(parts[1] AS DOUBLE) AS num, TRY_CAST(parts[2] AS DOUBLE) AS den"
    f" FROM ({_PARTS})) JOIN sessions USING (session_id)"
)

_BEHIND = f"SELECT DISTINCT session_id {_ROWS} WHERE $agent = $all OR sessions.agent = $agent"


def _outcome(inputs: Inputs) -> Outcome:
    agents, openings = inputs.rows["agents"], _openings(inputs)
    metrics = table(
        "agents.metrics",
        "Behaviour by agent",
        f"agent | n sessions:count | {' | '.join(_METRICS)} | opening most common opening",
        [[row["agent"], row["n"], *_cells(row), openings.get(row["agent"])] for row in agents if row["n"]],
        n=max((row["n"] for row in agents), default=0),
        of="sessions",
        evidence=[EvidenceQuery(_BEHIND, {"agent": row["agent"], "all": _ALL}) for row in agents if row["n"]],
        note="Calls a prompt, variety, events and cost are medians of sessions; the shares are sums over sums. A dash:"
        " no session has a value; >= is a lower bound: of cost and output, for output is logged in mid-stream; of"
        f" prompts that object, for words are a flag and no share ({rules_recall_text()}).",
    )
    low = sum(row["estimated"] is not None for row in inputs.rows["values"])
    title = "Output tokens for each input token, cached ones included"
    ratio = pooled_finding(
        inputs,
        _RATIO,
        "agents.output_input",
        title,
        "input tokens",
        f"at least: {low:,} sessions log output in mid-stream" if low else "",
        is_share=False,
        kind="share",
        unit="of input tokens",
        at_least=low > 0,
    )
    caveat = "Agents were used by different people for different tasks: a difference is no effect of the agent."
    return Outcome([ratio], [metrics], [], [caveat])


def _cells(row: Row) -> list[Any]:
    return [with_bound(row[key], key == "pushback" or (key in _BOUND and row["low"])) for key in _KEYS]


def _openings(inputs: Inputs) -> dict[str, str]:
    """The most common opening of each agent and of all; of equally common ones the first by name."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for row in inputs.rows["openings"]:
        counted[row["agent"]][row["label"]] += row["n"]
        counted[_ALL][row["label"]] += row["n"]
    return {agent: ranked(names)[0][0].replace("_", " ") for agent, names in counted.items()}


STUDY = Study(
    name="agents",
    order=340,
    title="Behaviour by agent",
    question="How do the agents differ in the ten measures of agent-traces?",
    queries={
        "agents": f"SELECT CASE WHEN grouping(sessions.agent) = 1 THEN '{_ALL}' ELSE sessions.agent END AS agent,"
        f" count(DISTINCT session_id) AS n, {_SELECT} {_ROWS}"
        " GROUP BY GROUPING SETS ((), (sessions.agent)) ORDER BY n DESC, grouping(sessions.agent) DESC, sessions.agent",
        "openings": f"SELECT agent, {sql.LABEL} AS label, count(*) AS n {_FROM}"
        " WHERE signal = 'corpus.first_message_pattern' AND absent IS NULL GROUP BY ALL ORDER BY ALL",
        "values": sql.values(_RATIO, detail=(*sql.RATIO, "estimated")),
        "absent": sql.ABSENT,
    },
    function=_outcome,
)
