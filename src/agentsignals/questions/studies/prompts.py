"""People's messages: length, openings, objections, intents, personas and topics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from math import fsum
from typing import Any

import msgspec

from agentsignals.model import Absent
from agentsignals.questions import sql
from agentsignals.questions.charts import (
    QUANTILES,
    bars,
    dots,
    histogram_chart,
    intervals_by_position,
    quantile_columns,
    quantiles,
)
from agentsignals.questions.estimates import (
    DOMINANT,
    INTERVAL_NOTE,
    ONE_PLACE,
    ClusteredShare,
    Sample,
    agents_by_sessions,
    bar,
    by,
    chart,
    clustered_median,
    clustered_share,
    count,
    count_bars,
    ranked,
    signal_rows,
    table,
)
from agentsignals.questions.formatting import with_bound
from agentsignals.questions.label_shares import (
    NONE,
    at_least_text,
    class_rates,
    corrected_share,
    pushback_finding,
    rules_recall_text,
    validation_of,
)
from agentsignals.questions.label_shares import PUSHBACK_LABELS as LABELS
from agentsignals.questions.prompts import Prompt, TopicPrompts
from agentsignals.questions.question import Chart, Inputs, NoSessions, Outcome, Row, Study, Table
from agentsignals.questions.sql import declared, read_queries
from agentsignals.signals.catalog import caption
from agentsignals.stats.grouping import (
    INSTALL,
    MISSING,
    NOISE,
    Groups,
    naming_words,
    stable_groups,
    text_groups,
)
from agentsignals.stats.intervals import SEED, ClassRates, median

_SQL = read_queries(__file__)

_LENGTHS: tuple[float, ...] = (1, 5, 20, 50, 100, 200, 500, 1_000, 5_000)
"""Upper ends of the classes of length; 20 is agent-traces's short message."""

_TEXTS = NoSessions(
    "What was said again is kept as it is compared, without its sessions; search finds them by the words."
)


def messages_study(inputs: Inputs) -> Outcome:
    rows = inputs.rows["lengths"]
    common_rows = inputs.rows["common"]
    common = msgspec.json.decode(common_rows[0]["value"]) if common_rows else []
    messages = int(common_rows[0]["messages"]) if common_rows else 0
    typical = clustered_median([(row["session_id"], row["chars"]) for row in rows], inputs.places).finding(
        "messages.median"
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
    agents = agents_by_sessions(rows)
    named = [("all agents", rows), *((agent, [r for r in rows if r["agent"] == agent]) for agent in agents)]
    named = [(name, group) for name, group in named if group][: None if len(agents) > 1 else 1]
    tables = [
        table(
            "messages.by_agent",
            [[name, len(group), *quantiles([r["chars"] for r in group])] for name, group in named],
            header=f"agent | n messages:count | {quantile_columns('count')}",
            n=len(rows),
            evidence=[group for _, group in named],
            note=f"Characters, at the {', '.join(label for _, label in QUANTILES)}.",
        ),
        table(
            "messages.most_common",
            [[row["text"], row["n"], row["n"] / messages, row["sessions"]] for row in common],
            n=messages,
            evidence=_TEXTS,
        ),
    ]
    most = common[0] if common else None
    return Outcome(
        [
            typical,
            count(most["text"] if most else None, messages, "text", evidence=_TEXTS).finding(
                "messages.common",
                note=f"{most['n']:,} times in {most['sessions']:,} sessions" if most else "no message came twice",
            ),
        ],
        tables,
        [lengths],
    )


MESSAGES_STUDY = Study(**declared("study", "messages"), queries=_SQL["messages"], function=messages_study)


# -- People: openings, short messages, objections, interruptions

_OPENING = "corpus.first_message_pattern"
_LAST = 6
"""Prompts from this number on are one class."""
_OBJECTS, _BRAKES = "objects, at least", "cuts the response"


def people(inputs: Inputs) -> Outcome:
    opened = signal_rows(inputs, _OPENING)
    labels = [row["label"] for row in opened]
    openings = [(name.replace("_", " "), n) for name, n in ranked(Counter(labels))]
    named = {name: [row["session_id"] for row in rows] for name, rows in by(opened, "label").items()}
    marks = count_bars(
        openings, "first messages", evidence={name.replace("_", " "): ids for name, ids in named.items()}
    )
    charts = [
        _positions(inputs.rows["turns"], inputs.places),
        chart("people.openings", marks, bars(marks, "sessions"), n=len(labels)),
    ]
    limits = [
        f"Objections that word rules find are a flag, no share ({rules_recall_text()}); never beside"
        " another labeller's.",
        "Later prompts come from longer sessions: a rate that climbs with the prompt's number is in part a change of"
        " sessions, not of mood.",
    ]
    name, most = openings[0] if openings else (None, 0)
    parts = [(row["session_id"], row["label"].replace("_", " ") == name, 1) for row in opened]
    places = inputs.places
    cut = clustered_share(((row["session_id"], row["cut"], row["n"]) for row in inputs.rows["cuts"]), places)
    short = clustered_share(((row["session_id"], row["le_20"], row["n"]) for row in inputs.rows["short"]), places)
    flagged = {(row["session_id"], row["turn"]): row["objects"] for row in inputs.rows["later"]}
    return Outcome(
        [
            *[
                pushback_finding(
                    inputs, flagged, "people.pushback", "Prompts that object, in words", "later prompts in English"
                ),
                cut.finding("people.interrupted"),
                short.finding("people.short"),
            ],
            count(name, len(opened), "text", evidence=parts).finding(
                "people.opening", note=f"{most:,} sessions" if name else "no session has a first message"
            ),
        ],
        [],
        charts,
        limits,
    )


def _positions(turns: list[Row], places: dict[str, str]) -> Chart | None:
    rows: list[Row] = []
    for number, group in sorted(by(turns, "at").items()):
        at = f"{number}+" if number == _LAST else str(number)
        for name, k, n in ((_OBJECTS, "objects", "judged"), (_BRAKES, "cut", "n")):
            estimate = clustered_share(((row["session_id"], row[k], row[n]) for row in group), places)
            if estimate.n:
                words = at_least_text(estimate.k, estimate.n, "prompts") if k == "objects" else estimate.words()
                rows.append(estimate.mark(name, f"prompt {at}, {name}: {words}", at=at))
    if len({row["at"] for row in rows}) < 2:
        return None
    return chart(
        "people.positions",
        rows,
        intervals_by_position(rows, "number of the prompt in its session", "share of prompts", (_OBJECTS, _BRAKES)),
        n=sum(row["n"] for row in turns),
        note=f"lines are 95% intervals of what is found; a first prompt has nothing to object to yet;"
        f" {rules_recall_text()}",
    )


PEOPLE_STUDY = Study(
    **declared("study", "people"),
    queries={**_SQL["people"], "values": sql.values(_OPENING, more=f"{sql.LABEL} AS label, "), "labels": LABELS},
    function=people,
)


# -- Intents and personas (SWE-chat, Figures 19a, 24 and 32)

_INTENT, _PERSONA = "chat.prompt_intent", "chat.user_persona"
_INTENTS_TIME, _CUT = "chat.turn_autonomy_s", "chat.hard_interruption"
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


def intents_study(inputs: Inputs) -> Outcome:
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
        _intents_chart("intents.prompts", "What prompts ask for", shares, INTENTS, of, caveat),
        _intents_chart("intents.personas", "Personas", personas, PERSONAS, of_sessions),
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


def _intents_chart(  # noqa: PLR0913  (a chart's words, in the order they are read)
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
    return chart(id, rows, dots(rows, "share"), title=title, n=n, of=of, note="; ".join(notes))


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
        shown,
        n=len(rows),
        evidence=behind,
        note="Writing and reviewing are SWE-chat's sums of the intents below. Objections are counted where a"
        f" prompt in English follows, by a flag that is no share ({rules_recall_text()}).",
    )


INTENTS_STUDY = Study(**declared("study", "intents"), queries=_SQL["intents"], function=intents_study)


# -- Topics of prompts (SWE-chat)

FEWEST, SMALLEST, MOST_TOPICS = 40, 5, 40
"""Prompts that are grouped at all; prompts of a topic; topics."""
_NAMING, _EXAMPLES, _EXAMPLE_CHARS = 4, 3, 160
_TOPICS_TIME, _CUT_TOPICS, _LANGUAGE = "chat.turn_autonomy_s", "chat.hard_interruption", "chat.prompt_language"

_UNLISTED = "What was left out is counted by reason alone."


def topics(inputs: Inputs) -> Outcome:
    places = inputs.places
    kept = TopicPrompts(inputs.rows["prompts"], places)
    prompts = kept.prompts
    if len(prompts) < FEWEST:
        return Outcome(limits=[f"{len(prompts):,} prompts have words enough for a topic: {FEWEST} are needed."])
    wanted = min(MOST_TOPICS, max(2, round(math.sqrt(len(prompts) / 2))))
    groups = text_groups([prompt.text for prompt in prompts], wanted)
    if isinstance(groups, Absent):
        return Outcome(limits=[INSTALL if groups is MISSING else f"There are no topics: {groups.detail}."])
    of = stable_groups(groups.of, groups.fit, SMALLEST)
    if max(of) < 0:
        return Outcome(limits=["No topic has five prompts that fit it."])
    telling = naming_words([prompt.text for prompt in prompts], of, _NAMING, [prompt.place for prompt in prompts])
    names = [", ".join(words) or "without a common word" for words in telling]
    parts = [(prompt.row["session_id"], float(topic == NOISE), 1) for prompt, topic in zip(prompts, of, strict=True)]
    whole, _compared = len(inputs.rows["prompts"]), "prompts compared"
    how = f"of {whole:,} prompts; tf-idf, {len(names)} of the groups that k-means made, seed {SEED}"
    # The prompts nearest to the middle of each topic, of different sessions where there are any.
    rows = []
    for topic, name in enumerate(names):
        members = [(groups.distance[n], n) for n, t in enumerate(of) if t == topic]
        chosen: list[int] = []
        for _, n in sorted(members):
            if prompts[n].row["session_id"] not in {prompts[m].row["session_id"] for m in chosen}:
                chosen.append(n)
        chosen += [n for _, n in sorted(members) if n not in chosen]
        for n in chosen[:_EXAMPLES]:
            text = prompts[n].text
            brief = text if len(text) <= _EXAMPLE_CHARS else text[: _EXAMPLE_CHARS - 1] + "…"
            rows.append([name, brief, prompts[n].row["session_id"]])
    left_out = [[reason, n] for reason, n in ranked(kept.left_out) if n]
    n_left_out = kept.left_out.total()
    topics_rows: list[Row] = []
    for topic, name in enumerate(names):
        alike = _members(prompts, of, topic)
        tip = f"{name}: {len(alike):,} of {len(prompts):,} prompts, in {len({p.place for p in alike}):,} places"
        topics_rows.append(bar(f"{topic + 1}. {name}", len(alike), tip, evidence=_sessions_of(alike)))
    return Outcome(
        [
            count(max(of) + 1, len(prompts), evidence=parts).finding("topics.count", note=how),
            clustered_share(parts, places).finding("topics.noise"),
            count(names[0], of.count(0), "text", evidence=_sessions_of(_members(prompts, of, 0))).finding(
                "topics.largest"
            ),
        ],
        [
            _topics_table(prompts, of, names, groups),
            table("topics.examples", rows, n=len(prompts), evidence=[[row[2]] for row in rows]),
            table("topics.left_out", left_out, n=n_left_out, evidence=NoSessions(_UNLISTED)),
        ],
        [
            chart(
                "topics.sizes",
                topics_rows,
                bars(topics_rows, "prompts"),
                n=len(prompts),
                note=f"{of.count(NOISE):,} have no topic",
            )
        ],
        [
            f"Topics are groups of words, and their number is a rule, the root of half the prompts: {wanted} here."
            " Another number, or another seed, cuts them otherwise. Some are projects rather than activities: see the"
            " largest place.",
            "Prompts are compared by the words they share, not by what they mean; English prompts alone.",
        ],
    )


def _members(prompts: list[Prompt], of: list[int], topic: int) -> list[Prompt]:
    return [prompt for prompt, t in zip(prompts, of, strict=True) if t == topic]


def _sessions_of(prompts: list[Prompt]) -> list[str]:
    return [prompt.row["session_id"] for prompt in prompts]


def _topics_table(prompts: list[Prompt], of: list[int], names: list[str], groups: Groups) -> Table:
    rows: list[list[Any]] = []
    behind = []
    for topic in [*range(len(names)), *([NOISE] if NOISE in of else [])]:
        members = _members(prompts, of, topic)
        later = [p.row["pushback"] for p in members if p.row["pushback"] is not None]
        objections = sum(value != NONE for value in later)
        times = [p.row["seconds"] for p in members if p.row["seconds"] is not None]
        cut = sum(bool(p.row["cut"]) for p in members) / len(members)
        largest = max(Counter(prompt.place for prompt in members).values()) / len(members)
        behind.append(_sessions_of(members))
        fit = [f for f, t in zip(groups.fit, of, strict=True) if t == topic]
        rows.append(
            [
                *(names[topic] if topic >= 0 else "(no topic)", len(members), len(members) / len(prompts)),
                *(len({p.row["session_id"] for p in members}), len({p.place for p in members}), largest),
                *(
                    math.fsum(fit) / len(fit),
                    with_bound(objections / len(later) if later else None, True),
                    cut,
                    median(times),
                ),
                ONE_PLACE if largest > DOMINANT and topic >= 0 else "",
            ]
        )
    return table(
        "topics.topics",
        rows,
        n=len(prompts),
        evidence=behind,
        note="Named by class-based tf-idf, of words that two places use. Objections are counted among"
        f" prompts that are not the first, by a flag that is no share ({rules_recall_text()}).",
    )


TOPICS_STUDY = Study(**declared("study", "topics"), queries=_SQL["topics"], function=topics)
