"""Which tools agents use (agent-traces: agents group by working style)."""

from __future__ import annotations

from collections import Counter, defaultdict

from agentsignals.analysis import rows as sql
from agentsignals.analysis.charts import heat
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.measures import median_finding, of_parts
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again
from agentsignals.stats.estimates import share_interval, wilson

_ENTROPY = "corpus.tool_mix_entropy"
_MOST_NAMES = 15


def _outcome(inputs: Inputs) -> Outcome:
    calls = inputs.rows["calls"]
    charts = [chart for chart in (_heat(calls),) if chart is not None]
    limits = ["A shell command is one call however much it does: shares of calls are no shares of work."]
    return Outcome(_findings(inputs, calls), [_classes(calls), _names(inputs.rows["names"])], charts, limits)


def _findings(inputs: Inputs, calls: list[Row]) -> list[Finding]:
    sessions: dict[str, Counter[str]] = defaultdict(Counter)
    for row in calls:
        sessions[row["session_id"]][row["class"]] += row["n"]
    shell = [(c["shell"] + c["test"], c.total()) for c in sessions.values()]
    mcp = sum(1 for c in sessions.values() if c["mcp"])
    total = sum(n for _, n in shell)
    return [
        Finding(
            id="tools.shell_share",
            title="Calls that are shell commands",
            value=of_parts(shell),
            unit="share of calls",
            kind="share",
            n=total,
            of="tool calls",
            interval=share_interval(shell),
            command=again(f"SELECT avg(CAST(class IN ('shell', 'test') AS INT)) {sql.MAIN_CALLS}"),
            note="test runs included; reading and searching through the shell counts as reading and searching",
        ),
        Finding(
            id="tools.mcp_sessions",
            title="Sessions that use an MCP tool",
            value=mcp / len(sessions) if sessions else None,
            unit="share of sessions",
            kind="share",
            n=len(sessions),
            of="sessions with a tool call",
            interval=wilson(mcp, len(sessions)),
            command=again(
                f"SELECT avg(m) FROM (SELECT max(CAST(class = 'mcp' AS INT)) AS m {sql.MAIN_CALLS} GROUP BY session_id)"
            ),
        ),
        Finding(
            id="tools.names",
            title="Different tools by name",
            value=len(inputs.rows["names"]),
            unit="names",
            n=total,
            of="tool calls",
            command=again(f"SELECT count(DISTINCT name) {sql.MAIN_CALLS}"),
        ),
        median_finding(
            inputs,
            _ENTROPY,
            id="tools.entropy.median",
            title="Variety of tools in the median session",
            unit="bits",
            note="entropy of the tool names: 0 is one tool only, 2 is as varied as four tools used equally often",
        ),
    ]


def _order(calls: list[Row], key: str) -> list[str]:
    counted: Counter[str] = Counter()
    for row in calls:
        counted[row[key]] += row["n"]
    return sorted(counted, key=lambda name: (-counted[name], name))


def _heat(calls: list[Row]) -> Chart | None:
    if not calls:
        return None
    classes = _order(calls, "class")
    mix: dict[str, Counter[str]] = defaultdict(Counter)
    for row in calls:
        mix["all agents"][row["class"]] += row["n"]
        mix[row["agent"]][row["class"]] += row["n"]
    rows: list[Row] = [
        {
            "name": f"{agent} ({_brief(counted.total())})",
            "column": class_,
            "value": counted[class_] / counted.total(),
            "tip": f"{agent}: {counted[class_]:,} of {counted.total():,} calls are {class_}"
            f" ({formatted(counted[class_] / counted.total(), 'share')})",
        }
        for agent, counted in mix.items()
        for class_ in classes
    ]
    rows.sort(key=lambda r: -mix[r["name"].rsplit(" (", 1)[0]].total())
    return Chart(
        id="tools.mix",
        title="What each agent's calls are, in percent",
        says="; ".join(r["tip"] for r in rows if r["value"] >= 0.1),
        spec=heat(rows, classes),
        n=mix["all agents"].total(),
        of="tool calls",
        note="each row adds up to 100; calls in brackets",
    )


def _brief(n: int) -> str:
    return f"{n:,}" if n < 1000 else f"{n / 1000:.1f}k"


def _classes(calls: list[Row]) -> Table:
    total = sum(row["n"] for row in calls)
    rows = []
    for class_ in _order(calls, "class"):
        group = [row for row in calls if row["class"] == class_]
        n = sum(row["n"] for row in group)
        rows.append([class_, n, n / total, len({row["session_id"] for row in group})])
    return Table(
        id="tools.classes",
        title="Calls by class",
        columns=(
            Column("class", "class"),
            Column("calls", "calls", "count"),
            Column("share", "share", "share"),
            Column("sessions", "sessions with one", "count"),
        ),
        rows=rows,
        n=total,
        of="tool calls",
        note="Main thread. A shell command that only reads, searches or tests counts in that class.",
    )


def _names(names: list[Row]) -> Table:
    total = sum(row["n"] for row in names)
    more = f"The {_MOST_NAMES} most used of {len(names):,} names." if len(names) > _MOST_NAMES else ""
    return Table(
        id="tools.names",
        title="Calls by tool",
        columns=(
            Column("name", "tool", "code"),
            Column("calls", "calls", "count"),
            Column("share", "share", "share"),
            Column("sessions", "sessions", "count"),
            Column("agents", "agents"),
        ),
        rows=[[r["name"], r["n"], r["n"] / total, r["sessions"], r["agents"]] for r in names[:_MOST_NAMES]],
        n=total,
        of="tool calls",
        note=more,
    )


STUDY = Study(
    name="tools",
    place=40,
    title="Tools",
    question="Which tools do agents use?",
    queries={
        "calls": "SELECT session_id, agent, class, count(*) AS n FROM tool_calls JOIN sessions USING (session_id)"
        " WHERE thread = 'main' GROUP BY ALL ORDER BY ALL",
        "names": "SELECT name, count(*) AS n, count(DISTINCT session_id) AS sessions,"
        " string_agg(DISTINCT agent, ', ' ORDER BY agent) AS agents"
        " FROM tool_calls JOIN sessions USING (session_id) WHERE thread = 'main' GROUP BY name ORDER BY n DESC, name",
        "values": sql.values(_ENTROPY),
    },
    function=_outcome,
)
