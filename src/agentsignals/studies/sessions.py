"""How many sessions there are, and how large they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentsignals.analysis import rows as sql
from agentsignals.analysis.distributions import COUNTS, histogram_chart, quantile_columns, quantiles
from agentsignals.analysis.measures import agents_in_order, median_finding, numbers
from agentsignals.analysis.study import Column, Finding, Inputs, Outcome, Row, Study, Table, again
from agentsignals.analysis.timeline import over_time_chart
from agentsignals.stats.estimates import median, median_interval

_WALL = "infra.wall_time_s"
_EVENTS = "corpus.session_length_events"
_TOTALS = (
    ("turns", "n_turns", "Human prompts", "prompts", True),
    ("tool_calls", "n_tool_calls", "Tool calls", "calls", True),
    ("edits", "n_edits", "File changes", "changes", False),
    ("steps", "n_steps", "Model calls", "calls", False),
    ("subagent_tool_calls", "n_subagent_tool_calls", "Tool calls of subagents", "calls", False),
)
_MEDIANS = (
    ("turns", "n_turns", "Prompts in the median session", "prompts"),
    ("tool_calls", "n_tool_calls", "Tool calls in the median session", "calls"),
    ("edits", "n_edits", "File changes in the median session", "changes"),
)


def _outcome(inputs: Inputs) -> Outcome:
    sessions = inputs.rows["sessions"]
    charts = [
        over_time_chart(
            sessions, None, id="sessions.over_time", title="Sessions started", unit="sessions", kind="count"
        ),
        histogram_chart(
            inputs.present("sessions", "n_turns"),
            COUNTS,
            id="sessions.turns.spread",
            title="Prompts in a session",
            unit="prompts",
        ),
        histogram_chart(
            inputs.present("sessions", "n_tool_calls"),
            COUNTS,
            id="sessions.calls.spread",
            title="Tool calls in a session",
            unit="tool calls",
        ),
    ]
    return Outcome(
        [*_counts(sessions), *_totals(inputs), *_medians(inputs)],
        [_spread(inputs), _by_agent(sessions)],
        [c for c in charts if c is not None],
        [
            "Sessions are what someone kept and pointed this program at: neither a random sample of sessions nor of"
            " people, agents or tasks."
        ],
    )


def _counts(sessions: list[Row]) -> list[Finding]:
    n = len(sessions)

    def count(name: str, title: str, where: str, value: int, **more: Any) -> Finding:
        command = again(f"SELECT count(*) FROM sessions WHERE {where}")
        return Finding(
            id=f"sessions.{name}",
            title=title,
            value=value,
            unit="sessions",
            n=n,
            of="sessions",
            command=command,
            **more,
        )

    times = [s["started_at"] for s in sessions if s["started_at"] is not None]
    span = f"{min(times):%Y-%m-%d} to {max(times):%Y-%m-%d} (UTC)" if times else ""
    untimed = n - len(times)
    return [
        count("count", "Sessions", "true", n, headline=True, note=span),
        count(
            "without_time",
            "Sessions without a usable time",
            f"({sql.STARTED.removesuffix(' AS started_at')}) IS NULL",
            untimed,
            note="they are in every figure but those over time",
        ),
        count(
            "without_prompt",
            "Sessions without a human prompt",
            "n_turns = 0",
            sum(s["n_turns"] == 0 for s in sessions),
            note="started by a program or by another agent; they have no calls for each prompt",
        ),
        count(
            "children",
            "Sessions started from another session",
            "parent_session_id IS NOT NULL",
            sum(s["parent_session_id"] is not None for s in sessions),
        ),
    ]


def _totals(inputs: Inputs) -> list[Finding]:
    return [
        Finding(
            id=f"sessions.{name}.total",
            title=title,
            value=sum(counts),
            unit=unit,
            n=len(counts),
            of="sessions",
            headline=headline,
            command=again(f"SELECT coalesce(sum({column}), 0) FROM sessions"),
        )
        for name, column, title, unit, headline in _TOTALS
        for counts in [inputs.present("sessions", column)]
    ]


def _medians(inputs: Inputs) -> list[Finding]:
    findings = [
        Finding(
            id=f"sessions.{name}.median",
            title=title,
            value=median(values),
            unit=unit,
            n=len(values),
            of="sessions",
            kind="number",
            interval=median_interval(values),
            command=again(f"SELECT median({column}) FROM sessions"),
        )
        for name, column, title, unit in _MEDIANS
        for values in [inputs.present("sessions", column)]
    ]
    active = [row["active_s"] for row in inputs.rows["values"] if row["active_s"] is not None]
    return [
        *findings,
        Finding(
            id="sessions.active_s.median",
            title="Time the agent worked in the median session",
            value=median(active),
            unit="seconds",
            kind="seconds",
            n=len(active),
            of="sessions",
            interval=median_interval(active),
            signals=(_WALL,),
            command=again(f"SELECT median(CAST(detail->>'active_s' AS DOUBLE)) FROM signals WHERE signal = '{_WALL}'"),
            note="the person's pauses are left out",
        ),
        median_finding(
            inputs,
            _EVENTS,
            id="sessions.events.median",
            title="Events in the median session",
            unit="events",
        ),
    ]


def _spread(inputs: Inputs) -> Table:
    columns = (("prompts", "n_turns"), ("model calls", "n_steps"), ("tool calls", "n_tool_calls"), ("edits", "n_edits"))
    spread: list[tuple[str, Sequence[float]]] = [(name, inputs.present("sessions", column)) for name, column in columns]
    spread.append(("events", numbers(inputs, _EVENTS)))
    active = [row["active_s"] / 60 for row in inputs.rows["values"] if row["active_s"] is not None]
    spread.append(("minutes the agent worked", active))
    return Table(
        id="sessions.spread",
        title="How sessions spread",
        columns=(Column("measure", "measure of a session"), Column("n", "n", "count"), *quantile_columns("number")),
        rows=[[name, len(values), *quantiles(values)] for name, values in spread if values],
        n=len(inputs.rows["sessions"]),
        of="sessions",
        note="Most measures are skewed: the mean says little, so it is not shown.",
    )


def _by_agent(sessions: list[Row]) -> Table:
    columns = ("n_turns", "n_tool_calls", "n_edits", "n_subagent_tool_calls")
    rows: list[list[Any]] = []
    for agent in agents_in_order(sessions):
        group = [s for s in sessions if s["agent"] == agent]
        times = [s["started_at"] for s in group if s["started_at"] is not None]
        sums = [sum(s[c] or 0 for s in group) for c in columns]
        rows.append([agent, len(group), *sums, min(times, default=None), max(times, default=None)])
    return Table(
        id="sessions.by_agent",
        title="Sessions by agent",
        columns=(
            Column("agent", "agent"),
            Column("sessions", "sessions", "count"),
            Column("turns", "prompts", "count"),
            Column("tool_calls", "tool calls", "count"),
            Column("edits", "edits", "count"),
            Column("subagent_tool_calls", "calls of subagents", "count"),
            Column("first", "first", "date"),
            Column("last", "last", "date"),
        ),
        rows=rows,
        n=len(sessions),
        of="sessions",
    )


STUDY = Study(
    name="sessions",
    place=10,
    title="Sessions",
    question="How many sessions are there, and how large are they?",
    queries={"sessions": sql.SESSIONS, "values": sql.values(_WALL, _EVENTS, detail=("active_s",))},
    function=_outcome,
)
