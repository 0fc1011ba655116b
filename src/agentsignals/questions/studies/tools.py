"""Which tools agents use (agent-traces: agents group by working style)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import heatmap
from agentsignals.questions.estimates import (
    by,
    chart,
    clustered_share,
    count,
    mark,
    median_finding,
    ranked,
    share_of,
    table,
    tally,
)
from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Chart, EvidenceQuery, Finding, Inputs, Outcome, Row, Study, Table

_ENTROPY = "corpus.tool_mix_entropy"
_MOST_NAMES = 15
_OF_NAME = f"SELECT session_id, count(*) AS n {sql.MAIN_CALLS} AND name = $name GROUP BY session_id"


def _outcome(inputs: Inputs) -> Outcome:
    calls = inputs.rows["calls"]
    limits = ["A shell command is one call however much it does: shares of calls are no shares of work."]
    return Outcome(_findings(inputs, calls), [_classes(calls), _names(inputs.rows["names"])], [_heat(calls)], limits)


def _findings(inputs: Inputs, calls: list[Row]) -> list[Finding]:
    sessions = {row["session_id"] for row in calls}
    with_mcp = {row["session_id"] for row in calls if row["class"] == "mcp"}
    places = inputs.places
    shell = share_of(calls, places, lambda row: row["class"] in ("shell", "test"), "n")
    return [
        shell.finding(
            "tools.shell_share",
            "Calls that are shell commands",
            "tool calls",
            "test runs included; reading and searching through the shell counts as reading and searching",
            unit="share of calls",
            sql=f"SELECT avg(CAST(class IN ('shell', 'test') AS INT)) {sql.MAIN_CALLS}",
        ),
        clustered_share(((s, float(s in with_mcp), 1) for s in sorted(sessions)), places).finding(
            "tools.mcp_sessions",
            "Sessions that use an MCP tool",
            "sessions with a tool call",
            unit="share of sessions",
            sql=f"SELECT avg(m) FROM (SELECT max(CAST(class = 'mcp' AS INT)) AS m {sql.MAIN_CALLS}"
            " GROUP BY session_id)",
        ),
        count(len(inputs.rows["names"]), int(shell.n), evidence=calls).finding(
            "tools.names",
            "Different tools by name",
            "tool calls",
            unit="names",
            sql=f"SELECT count(DISTINCT name) {sql.MAIN_CALLS}",
        ),
        median_finding(
            inputs,
            _ENTROPY,
            "tools.entropy.median",
            "Variety of tools in the median session",
            unit="bits",
            note="entropy of the tool names: 0 is one tool only, 2 is as varied as four tools used equally often",
        ),
    ]


def _heat(calls: list[Row]) -> Chart | None:
    classes = [class_ for class_, _ in ranked(tally(calls, "class"))]
    mix: dict[str, Counter[str]] = {"all agents": tally(calls, "class")}
    of_agent = {"all agents": by(calls, "class")}
    for agent, of in by(calls, "agent").items():
        mix[agent], of_agent[agent] = tally(of, "class"), by(of, "class")
    rows: list[Row] = []
    for agent, counted in sorted(mix.items(), key=lambda pair: -pair[1].total()):
        for class_ in classes:
            value = counted[class_] / counted.total()
            tip = (
                f"{agent}: {counted[class_]:,} of {counted.total():,} calls are {class_} ({formatted(value, 'share')})"
            )
            cell = {"name": f"{agent} ({_brief(counted.total())})", "column": class_, "value": value, "tip": tip}
            rows.append(mark(cell, of_agent[agent].get(class_, ())))
    return chart(
        "tools.mix",
        "What each agent's calls are, in percent",
        rows,
        heatmap(rows, classes),
        n=mix["all agents"].total(),
        of="tool calls",
        note="each row adds up to 100; calls in brackets",
        says="; ".join(r["tip"] for r in rows if r["value"] >= 0.1),
    )


def _brief(n: int) -> str:
    return f"{n:,}" if n < 1000 else f"{n / 1000:.1f}k"


def _classes(calls: list[Row]) -> Table:
    counted, groups = tally(calls, "class"), by(calls, "class")
    total = counted.total()
    sessions = {class_: len({row["session_id"] for row in rows}) for class_, rows in groups.items()}
    rows: list[list[Any]] = [[class_, n, n / total, sessions[class_]] for class_, n in ranked(counted)]
    return table(
        "tools.classes",
        "Calls by class",
        "class | calls:count | share:share | sessions sessions with one:count",
        rows,
        n=total,
        of="tool calls",
        evidence=[groups[class_] for class_, _ in ranked(counted)],
        note="Main thread. A shell command that only reads, searches or tests counts in that class.",
    )


def _names(names: list[Row]) -> Table:
    total = sum(row["n"] for row in names)
    return table(
        "tools.names",
        "Calls by tool",
        "name tool:code | calls:count | share:share | sessions:count | agents",
        [[r["name"], r["n"], r["n"] / total, r["sessions"], r["agents"]] for r in names[:_MOST_NAMES]],
        n=total,
        of="tool calls",
        evidence=[EvidenceQuery(_OF_NAME, {"name": r["name"]}) for r in names[:_MOST_NAMES]],
        note=f"The {_MOST_NAMES} most used of {len(names):,} names." if len(names) > _MOST_NAMES else "",
    )


STUDY = Study(
    name="tools",
    order=40,
    title="Tools",
    question="Which tools do agents use?",
    queries={
        "calls": "SELECT session_id, agent, class, count(*) AS n FROM tool_calls JOIN sessions USING (session_id)"
        " WHERE thread = 'main' GROUP BY ALL ORDER BY ALL",
        "names": "SELECT name, count(*) AS n, count(DISTINCT session_id) AS sessions,"
        " string_agg(DISTINCT agent, ', ' ORDER BY agent) AS agents"
        " FROM tool_calls JOIN sessions USING (session_id) WHERE thread = 'main' GROUP BY name ORDER BY n DESC, name",
        "values": sql.values(_ENTROPY, detail=()),
        "absent": sql.ABSENT,
    },
    function=_outcome,
)
