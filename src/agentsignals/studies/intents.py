"""What people ask for, and how they ask: intents of prompts, personas, and writing against reviewing (SWE-chat,
Figures 19a, 24 and 32)."""

from __future__ import annotations

from collections import Counter
from math import fsum
from typing import Any

from agentsignals.analysis.charts import dots
from agentsignals.analysis.clusters import Estimate
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.places import by_session
from agentsignals.analysis.study import Chart, Column, Finding, Inputs, Outcome, Row, Study, Table, again_in_report
from agentsignals.stats.estimates import median

_INTENT, _PERSONA = "chat.prompt_intent", "chat.user_persona"
_TIME, _CUT, _PUSHBACK = "chat.turn_autonomy_s", "chat.hard_interruption", "chat.pushback_type"
INTENTS = {
    "other": 26.6, "understand": 19.0, "git": 13.6, "create_new_code": 13.4, "debug": 13.0, "refactor": 9.2,
    "test": 4.0, "connect": 1.0,
}  # fmt: skip
"""Percent of SWE-chat's prompts, labelled by a model (Figure 19a)."""
PERSONAS = {"nitpicker": 39.7, "vague_requester": 33.5, "other": 19.9, "mind_changer": 7.0}
"""Percent of SWE-chat's sessions, labelled by a model (Figure 24)."""
ACTIVITIES = {
    "writing": ("create_new_code", "refactor", "connect"),
    "reviewing": ("understand", "test"),
}
"""SWE-chat's two kinds of development (Figure 32); debugging and Git are neither."""
_ENOUGH = 0.5
_BY_WORDS = (
    "Intents are told by a table of words: the first telling verb of a prompt, in English. agentsignals label"
    " prompt_intent --by LABELLER and agentsignals measure put a judge's in their place."
)
_NO_PERSONAS = "No session has a persona yet: agentsignals label persona --by LABELLER makes them."


def _outcome(inputs: Inputs) -> Outcome:
    rows = inputs.rows["turns"]
    places = by_session(inputs.rows["sessions"])
    judged = [row for row in rows if row["method"] == "judge"]
    # One way of judging in one number: the judge's prompts alone, once it has judged most of them.
    by_judge = len(judged) > _ENOUGH * len(rows)
    classified = judged if by_judge else [row for row in rows if row["method"] != "judge"]
    shares = {name: _share(classified, places, name) for name in sorted(INTENTS, key=lambda n: -INTENTS[n])}
    of = "prompts with a judge's label" if by_judge else "prompts, by words"
    findings = [
        _finding(f"intent.{name}", f"Prompts that ask for: {_spaced(name)}", estimate, of)
        for name, estimate in shares.items()
    ]
    findings += [_activity(classified, places, name, of) for name in ACTIVITIES]
    personas = _personas(inputs.rows["personas"], places)
    findings += [
        _finding(f"persona.{name}", f"Sessions of persona {_spaced(name)}", estimate, "sessions with a persona")
        for name, estimate in personas.items()
    ]
    charts = [_chart("intents.prompts", "What prompts ask for", shares, INTENTS, of)]
    if personas:
        charts.append(_chart("intents.personas", "Personas", personas, PERSONAS, "sessions with a persona"))
    limits = [*([] if by_judge else [_BY_WORDS]), *([] if personas else [_NO_PERSONAS])]
    if judged and not by_judge:
        limits.append(f"{len(judged):,} of {len(rows):,} prompts have a judge's intent: too few, and left out here.")
    tables = [_by_activity(classified)]
    return Outcome([f for f in findings if f.n], tables, [c for c in charts if c is not None], limits)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _share(rows: list[Row], places: dict[str, str], *names: str) -> Estimate:
    return Estimate([(row["session_id"], float(row["intent"] in names), 1) for row in rows], places)


def _finding(name: str, title: str, estimate: Estimate, of: str) -> Finding:
    kind, _, value = name.partition(".")
    published = {"intent": INTENTS, "persona": PERSONAS}.get(kind, {}).get(value)
    unit = "share of sessions" if kind == "persona" else "share of prompts"
    return estimate.finding(
        f"SWE-chat: {published}%" if published else "",
        id=f"intents.{name}",
        title=title,
        unit=unit,
        of=of,
        signals=(_PERSONA if kind == "persona" else _INTENT,),
        command=again_in_report("intents"),
    )


def _activity(rows: list[Row], places: dict[str, str], name: str, of: str) -> Finding:
    words = ", ".join(_spaced(intent) for intent in ACTIVITIES[name])
    return _finding(
        f"activity.{name}", f"Prompts about {name} code: {words}", _share(rows, places, *ACTIVITIES[name]), of
    )


def _personas(rows: list[Row], places: dict[str, str]) -> dict[str, Estimate]:
    if all(row["rule"] for row in rows):  # too short to be judged, each: that is no judgement
        return {}
    counted = Counter(row["persona"] for row in rows)
    order = [*PERSONAS, *sorted(set(counted) - set(PERSONAS))]
    return {
        name: Estimate([(row["session_id"], float(row["persona"] == name), 1) for row in rows], places)
        for name in order
    }


def _chart(id: str, title: str, shares: dict[str, Estimate], published: dict[str, float], of: str) -> Chart | None:  # noqa: A002  (the chart's field)
    rows: list[Row] = []
    for name, estimate in sorted(shares.items(), key=lambda pair: (-pair[1].k, pair[0])):
        if estimate.n:
            low, high = estimate.interval or (None, None)
            tip = f"{_spaced(name)}: {estimate.k:,.0f} of {estimate.n:,.0f}, {formatted(estimate.value, 'share')}"
            tip += f"; SWE-chat {published[name]}%" if name in published else ""
            row = {
                "name": f"{_spaced(name)} ({estimate.k:,.0f})",
                "value": estimate.value,
                "low": low,
                "high": high,
                "tip": tip,
            }
            rows.append(row)
    if not rows:
        return None
    return Chart(
        id=id,
        title=title,
        says="; ".join(row["tip"] for row in rows),
        spec=dots(rows, "share"),
        n=int(max(estimate.n for estimate in shares.values())),
        of=of,
        note="how many in brackets; the line is the 95% interval",
    )


def _by_activity(rows: list[Row]) -> Table:
    """Writing against reviewing: how long the agent works, and how the turn goes on."""
    shown: list[list[Any]] = []
    for name, intents in (*ACTIVITIES.items(), *((_spaced(i), (i,)) for i in INTENTS)):
        group = [row for row in rows if row["intent"] in intents]
        if group:
            times = [row["seconds"] for row in group if row["seconds"] is not None]
            mean = fsum(times) / len(times) if times else None
            cut = sum(bool(row["cut"]) for row in group) / len(group)
            later = [row for row in group if row["objected"] is not None]
            objected = sum(row["objected"] for row in later) / len(later) if later else None
            sessions = len({row["session_id"] for row in group})
            shown.append([name, len(group), sessions, median(times), mean, cut, objected])
    return Table(
        id="intents.activities",
        title="Turns by what was asked for",
        columns=(
            Column("activity", "asked for"),
            Column("n", "prompts", "count"),
            Column("sessions", "sessions", "count"),
            Column("median", "median time", "seconds"),
            Column("mean", "mean time", "seconds"),
            Column("cut", "cut short", "share"),
            Column("objected", "next prompt objects", "share"),
        ),
        rows=shown,
        n=len(rows),
        of="prompts",
        note="Writing and reviewing are SWE-chat's sums of the intents below. Objections are found by word patterns,"
        " and counted where a prompt in English follows.",
    )


STUDY = Study(
    name="intents",
    place=150,
    title="Intents and personas",
    question="What do people ask for, and how?",
    queries={
        "sessions": "SELECT session_id, repo, cwd FROM sessions ORDER BY session_id",
        "turns": "WITH told AS (SELECT session_id, turn, max(json_extract_string(value, '')) FILTER (signal ="
        f" '{_INTENT}') AS intent, max(detail->>'method') FILTER (signal = '{_INTENT}') AS method, max(number) FILTER"
        f" (signal = '{_TIME}') AS seconds, bool_or(number > 0) FILTER (signal = '{_CUT}') AS cut,"
        f" max(json_extract_string(value, '')) FILTER (signal = '{_PUSHBACK}') AS pushback FROM signals WHERE signal IN"
        f" ('{_INTENT}', '{_TIME}', '{_CUT}', '{_PUSHBACK}') AND absent IS NULL GROUP BY ALL)"
        " SELECT session_id, turn, intent, method, seconds, cut, CAST(lead(pushback) OVER (PARTITION BY session_id"
        " ORDER BY turn) <> 'non_pushback' AS INT) AS objected FROM told WHERE intent IS NOT NULL"
        " ORDER BY session_id, turn",
        "personas": "SELECT session_id, json_extract_string(value, '') AS persona, detail->>'method' AS rule FROM"
        f" signals WHERE signal = '{_PERSONA}' AND absent IS NULL ORDER BY session_id",
    },
    function=_outcome,
    context="product",
)
