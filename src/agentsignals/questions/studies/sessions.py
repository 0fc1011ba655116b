"""How many sessions there are, and how large they are."""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import Any, TypeAlias

from agentsignals.questions import sql
from agentsignals.questions.charts import COUNTS, histogram_chart, quantile_columns, quantiles, stacked_chart
from agentsignals.questions.estimates import (
    agents_by_sessions,
    by,
    clustered_median,
    count,
    median_finding,
    signal_values,
    table,
)
from agentsignals.questions.question import Finding, Inputs, Outcome, Part, Row, Study, Table

_WORK, _WAITING = "infra.work_time_s", "infra.waiting_time_s"
_EVENTS = "corpus.session_length_events"
_LEFT_OUT = "the person's pauses, waits for leave and a machine's sleep are left out"
_TOTALS = (
    ("turns", "n_prompts", "Human prompts", "prompts", True),
    ("tool_calls", "n_tool_calls", "Tool calls", "calls", True),
    ("edits", "n_edits", "File changes", "changes", False),
    ("steps", "n_steps", "Model calls", "calls", False),
    ("subagent_tool_calls", "n_subagent_tool_calls", "Tool calls of subagents", "calls", False),
)
_MEDIANS = (
    ("turns", "n_prompts", "Prompts in the median session", "prompts"),
    ("tool_calls", "n_tool_calls", "Tool calls in the median session", "calls"),
    ("edits", "n_edits", "File changes in the median session", "changes"),
)

_UNTIMED = f"({sql.STARTED.removesuffix(' AS started_at')}) IS NULL"


_Values: TypeAlias = "list[tuple[str, float]]"
_Each: TypeAlias = "dict[str, _Values]"
"""The sessions that have a value of a column, with it, by the column."""


def _outcome(inputs: Inputs) -> Outcome:
    sessions = inputs.rows["sessions"]
    each = {column: inputs.present("sessions", "session_id", column) for _, column, *_ in _TOTALS}
    title = "Sessions started"
    charts = [
        stacked_chart(sessions, None, id="sessions.over_time", title=title, unit="sessions", kind="count"),
        histogram_chart(
            each["n_prompts"], COUNTS, id="sessions.turns.spread", title="Prompts in a session", unit="prompts"
        ),
        histogram_chart(
            each["n_tool_calls"], COUNTS, id="sessions.calls.spread", title="Tool calls in a session", unit="tool calls"
        ),
    ]
    return Outcome(
        [*_counts(sessions), *_totals(each), *_medians(inputs, each)],
        [_spread(inputs, each), _by_agent(sessions)],
        charts,
        [
            "Sessions are what someone kept and pointed this program at: neither a random sample of sessions nor of"
            " people, agents or tasks."
        ],
    )


def _counts(sessions: list[Row]) -> list[Finding]:
    n, ids = len(sessions), [s["session_id"] for s in sessions]
    times = [s["started_at"] for s in sessions if s["started_at"] is not None]
    span = f"{min(times):%Y-%m-%d} to {max(times):%Y-%m-%d} (UTC)" if times else ""
    untimed = [s["started_at"] is None for s in sessions]
    in_no_time = "they are in every figure but those over time"
    without_prompt = [s["n_prompts"] == 0 for s in sessions]
    children = [s["parent_session_id"] is not None for s in sessions]
    by_program = "started by a program or by another agent; they have no calls for each prompt"
    asked = (
        ("count", "Sessions", [True] * n, "true", span),
        ("without_time", "Sessions without a usable time", untimed, _UNTIMED, in_no_time),
        ("without_prompt", "Sessions without a human prompt", without_prompt, "n_prompts = 0", by_program),
        ("children", "Sessions started from another session", children, "parent_session_id IS NOT NULL", ""),
    )
    return [
        count(sum(held), n, evidence=partial(zip, ids, held, repeat(1))).finding(
            f"sessions.{name}",
            title,
            "sessions",
            note,
            unit="sessions",
            sql=f"SELECT count(*) FROM sessions WHERE {where}",
            headline=name == "count",
        )
        for name, title, held, where, note in asked
    ]


def _totals(each: _Each) -> list[Finding]:
    return [
        count(sum([k for _, k in parts]), len(parts), evidence=partial(_each_once, parts)).finding(
            f"sessions.{name}.total",
            title,
            "sessions",
            unit=unit,
            sql=f"SELECT coalesce(sum({column}), 0) FROM sessions",
            headline=headline,
        )
        for name, column, title, unit, headline in _TOTALS
        for parts in [each[column]]
    ]


def _each_once(values: _Values) -> list[Part]:
    return [(session_id, value, 1) for session_id, value in values]


def _medians(inputs: Inputs, each: _Each) -> list[Finding]:
    findings = [
        clustered_median(each[column], inputs.places).finding(
            f"sessions.{name}.median",
            title,
            "sessions",
            unit=unit,
            sql=f"SELECT median({column}) FROM sessions",
        )
        for name, column, title, unit in _MEDIANS
    ]
    worked = "Time the agent worked in the median session"
    waited = "Time it waited in the median session"
    no_work = "for leave, for an answer, or of a machine that slept; no part of the work"
    return [
        *findings,
        median_finding(inputs, _WORK, "sessions.work_s.median", worked, kind="seconds", unit="seconds", note=_LEFT_OUT),
        median_finding(
            inputs, _WAITING, "sessions.waiting_s.median", waited, kind="seconds", unit="seconds", note=no_work
        ),
        median_finding(inputs, _EVENTS, "sessions.events.median", "Events in the median session", unit="events"),
    ]


def _spread(inputs: Inputs, each: _Each) -> Table:
    columns = {"prompts": "n_prompts", "model calls": "n_steps", "tool calls": "n_tool_calls", "edits": "n_edits"}
    spread: dict[str, _Values] = {name: each[column] for name, column in columns.items()}
    for name, path, unit in (
        ("events", _EVENTS, 1),
        ("minutes the agent worked", _WORK, 60),
        ("minutes it waited", _WAITING, 60),
    ):
        spread[name] = [(session_id, number / unit) for session_id, number in signal_values(inputs, path)]
    spread = {name: values for name, values in spread.items() if values}
    return table(
        "sessions.spread",
        "How sessions spread",
        f"measure measure of a session | n:count | {quantile_columns('number')}",
        [[name, len(values), *quantiles([value for _, value in values])] for name, values in spread.items()],
        n=len(inputs.rows["sessions"]),
        of="sessions",
        evidence=[partial(_each_once, values) for values in spread.values()],
        note="Most measures are skewed: the mean says little, so it is not shown.",
    )


def _by_agent(sessions: list[Row]) -> Table:
    columns = ("n_prompts", "n_tool_calls", "n_edits", "n_subagent_tool_calls")
    groups = by(sessions, "agent")
    rows: list[list[Any]] = []
    for agent in agents_by_sessions(sessions):
        group = groups[agent]
        times = [s["started_at"] for s in group if s["started_at"] is not None]
        sums = [sum([s[c] or 0 for s in group]) for c in columns]
        rows.append([agent, len(group), *sums, min(times, default=None), max(times, default=None)])
    return table(
        "sessions.by_agent",
        "Sessions by agent",
        "agent | sessions:count | turns prompts:count | tool_calls tool calls:count | edits:count"
        " | subagent_tool_calls calls of subagents:count | first:date | last:date",
        rows,
        n=len(sessions),
        of="sessions",
        evidence=[[s["session_id"] for s in groups[row[0]]] for row in rows],
    )


STUDY = Study(
    name="sessions",
    order=10,
    title="Sessions",
    question="How many sessions are there, and how large are they?",
    queries={"sessions": sql.SESSIONS, "values": sql.values(_WORK, _WAITING, _EVENTS, detail=()), "absent": sql.ABSENT},
    function=_outcome,
)
