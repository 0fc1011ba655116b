"""What people ask for, and how they ask: intents of prompts, personas, and writing against reviewing (SWE-chat,
Figures 19a, 24 and 32)."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Any

from agentsignals.questions import sql
from agentsignals.questions.charts import dots
from agentsignals.questions.estimates import INTERVAL_NOTE, ClusteredShare, Sample, by, chart, table
from agentsignals.questions.formatting import with_bound
from agentsignals.questions.label_shares import (
    NONE,
    PUSHBACK,
    class_rates,
    corrected_share,
    rules_recall_text,
    validation_of,
)
from agentsignals.questions.question import Chart, Inputs, Outcome, Row, Study, Table
from agentsignals.signals.catalog import caption
from agentsignals.stats.intervals import ClassRates, median

_INTENT, _PERSONA = "chat.prompt_intent", "chat.user_persona"
_TIME, _CUT = "chat.turn_autonomy_s", "chat.hard_interruption"
INTENTS = {
    "other": 26.6, "understand": 19.0, "git": 13.6, "create_new_code": 13.4, "debug": 13.0, "refactor": 9.2,
    "test": 4.0, "connect": 1.0,
}  # fmt: skip
"""Percent of SWE-chat's prompts, labelled by a model (Figure 19a)."""
PERSONAS = {"nitpicker": 39.7, "vague_requester": 33.5, "other": 19.9, "mind_changer": 7.0}
"""Percent of SWE-chat's sessions, labelled by a model (Figure 24)."""
ACTIVITIES = {"writing": ("create_new_code", "refactor", "connect"), "reviewing": ("understand", "test")}
"""SWE-chat's two kinds of development (Figure 32); debugging and Git are neither."""
_ENOUGH = 0.5
_BY_WORDS = (
    "Intents are told by a table of words: the first telling verb of a prompt, in English. agentsignals label"
    " prompt_intent --by LABELLER and agentsignals measure put a judge's in their place."
)
_CORRECTED = "corrected by the classifier's recall and false alarms; what cannot be told is not drawn"
_SUMS = "Writing and reviewing are sums of classes: how much of them the classifier finds was not measured."
_NO_PERSONAS = "No session has a persona yet: agentsignals label persona --by LABELLER makes them."


def _outcome(inputs: Inputs) -> Outcome:
    rows = inputs.rows["turns"]
    places = inputs.places
    judged = [row for row in rows if row["method"] == "judge"]
    # One way of judging in one number: the judge's prompts alone, once it has judged most of them.
    by_judge = len(judged) > _ENOUGH * len(rows)
    classified = judged if by_judge else [row for row in rows if row["method"] != "judge"]
    order = sorted(INTENTS, key=lambda n: -INTENTS[n])
    asked_for = [row["intent"] for row in classified]
    sample = Sample([row["session_id"] for row in classified], places)
    shares = {name: sample.among(asked_for, name) for name in order}
    of = "prompts with a judge's label" if by_judge else "prompts, by words"
    prompts: dict[str, Any] = {"unit": "share of prompts", "signals": (_INTENT,)}
    measured: dict[str, ClassRates] = {}
    if by_judge:  # what was measured is the rules
        labellers = sorted({row["labeller"] or "a judge" for row in judged})
        by = " and ".join(labellers)
        measured = class_rates(by, "prompt_intent") if len(labellers) == 1 else {}
        prompts["validation"] = validation_of(by, "prompt_intent")
        shares = {name: corrected_share(share, by, measured.get(name)) for name, share in shares.items()}
    findings = [
        estimate.finding(
            f"intents.intent.{name}",
            f"Prompts that ask for: {_spaced(name)}",
            of,
            _published(INTENTS[name]),
            classes=(name,),
            **prompts,
        )
        for name, estimate in shares.items()
    ]
    for activity, intents in {} if measured else ACTIVITIES.items():
        title = f"Prompts about {activity} code: {', '.join(_spaced(intent) for intent in intents)}"
        estimate = sample.among(asked_for, *intents)
        findings.append(estimate.finding(f"intents.activity.{activity}", title, of, classes=intents, **prompts))
    personas = _personas(inputs.rows["personas"], places)
    of_sessions = "sessions with a persona"
    findings += [
        estimate.finding(
            f"intents.persona.{name}",
            f"Sessions of persona {_spaced(name)}",
            of_sessions,
            _published(PERSONAS.get(name)),
            unit="share of sessions",
            signals=(_PERSONA,),
        )
        for name, estimate in personas.items()
    ]
    caveat = _CORRECTED if measured else "" if by_judge else f"named by words: {caption(_INTENT)}"
    charts = [
        _chart("intents.prompts", "What prompts ask for", shares, INTENTS, of, caveat),
        _chart("intents.personas", "Personas", personas, PERSONAS, of_sessions),
    ]
    limits = [*([] if by_judge else [_BY_WORDS]), *([] if personas else [_NO_PERSONAS]), *([_SUMS] if measured else [])]
    if judged and not by_judge:
        limits.append(f"{len(judged):,} of {len(rows):,} prompts have a judge's intent: too few, and left out here.")
    return Outcome([f for f in findings if f.n], [_by_activity(classified)], charts, limits)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _published(percent: float | None) -> str:
    return f"SWE-chat: {percent}%" if percent else ""


def _personas(rows: list[Row], places: dict[str, str]) -> dict[str, ClusteredShare]:
    if all(row["rule"] for row in rows):  # too short to be judged, each: that is no judgement
        return {}
    order = dict.fromkeys([*PERSONAS, *sorted({row["persona"] for row in rows})])
    sample = Sample([row["session_id"] for row in rows], places)
    return {name: sample.among([row["persona"] for row in rows], name) for name in order}


def _chart(  # noqa: PLR0913  (a chart's words, in the order they are read)
    id: str,  # noqa: A002  (the chart's field)
    title: str,
    shares: dict[str, ClusteredShare],
    published: Mapping[str, float],
    of: str,
    caveat: str = "",
) -> Chart | None:
    rows: list[Row] = []
    for name, estimate in sorted(shares.items(), key=lambda pair: (-pair[1].k, pair[0])):
        if estimate.n and estimate.value is not None:
            paper = f"; SWE-chat {published[name]}%" if name in published else ""
            label = f"{_spaced(name)} ({estimate.k:,.0f})"
            rows.append(estimate.mark(label, f"{_spaced(name)}: {estimate.words()}{paper}"))
    n = max((estimate.n for estimate in shares.values()), default=0)
    notes = ["how many in brackets, as they were named", INTERVAL_NOTE, *([caveat] if caveat else [])]
    return chart(id, title, rows, dots(rows, "share"), n=n, of=of, note="; ".join(notes))


def _by_activity(rows: list[Row]) -> Table:
    """Writing against reviewing: how long the agent works, and how the turn goes on."""
    shown: list[list[Any]] = []
    behind = []
    of_intent = by(rows, "intent")
    for name, intents in (*ACTIVITIES.items(), *((_spaced(i), (i,)) for i in INTENTS)):
        group = [row for intent in intents for row in of_intent.get(intent, ())]
        if group:
            times = [row["seconds"] for row in group if row["seconds"] is not None]
            mean = fsum(times) / len(times) if times else None
            cut = sum(bool(row["cut"]) for row in group) / len(group)
            later = [row for row in group if row["objected"] is not None]
            objected = sum(row["objected"] for row in later) / len(later) if later else None
            sessions = len({row["session_id"] for row in group})
            shown.append([name, len(group), sessions, median(times), mean, cut, with_bound(objected, True)])
            behind.append(group)
    return table(
        "intents.activities",
        "Turns by what was asked for",
        "activity asked for | n prompts:count | sessions:count | median median time:seconds | mean mean time:seconds"
        " | cut cut short:share | objected next prompt objects:share",
        shown,
        n=len(rows),
        of="prompts",
        evidence=behind,
        note="Writing and reviewing are SWE-chat's sums of the intents below. Objections are counted where a"
        f" prompt in English follows, by a flag that is no share ({rules_recall_text()}).",
    )


_SIGNALS = sql.of_turns(
    intent=(_INTENT, sql.WORD),
    method=(_INTENT, "max(detail->>'method')"),
    labeller=(_INTENT, "max(detail->>'labeller')"),
    seconds=(_TIME, sql.NUMBER),
    cut=(_CUT, sql.HAPPENED),
    pushback=(PUSHBACK, sql.WORD),
)
STUDY = Study(
    name="intents",
    order=150,
    title="Intents and personas",
    question="What do people ask for, and how?",
    queries={
        "turns": f"WITH {_SIGNALS} SELECT session_id, turn, intent, method, labeller, seconds, cut,"
        f" CAST(lead(pushback) OVER (PARTITION BY session_id ORDER BY turn) <> '{NONE}' AS INT) AS objected"
        " FROM of_turns WHERE intent IS NOT NULL ORDER BY session_id, turn",
        "personas": "SELECT session_id, json_extract_string(value, '') AS persona, detail->>'method' AS rule"
        f" FROM {sql.NAMED} WHERE signal = '{_PERSONA}' AND absent IS NULL ORDER BY session_id",
    },
    function=_outcome,
    context="product",
)
