"""People's messages: length, openings, objections, intents, personas, topics, and sentiment labels (agent-traces)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import fsum, inf
from typing import Any

import msgspec

from agentsignals.model import CLASSIFIER, RULES, Absent, labeller_rank
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
    n_sessions,
    ranked,
    signal_rows,
    table,
)
from agentsignals.questions.label_shares import (
    NONE,
    PUSHBACK_LABELS,
    QUERIES,
    Labelled,
    as_labelled,
    at_least_text,
    calibration_of,
    cut_short,
    cut_short_finding,
    labelled,
    made_from,
    no_labels,
    probable_share,
    pushback_finding,
    rules_recall_text,
    validation_of,
)
from agentsignals.questions.prompts import MOST, MOST_OF_PLACE, TopicPrompts
from agentsignals.questions.question import (
    Chart,
    Inputs,
    NoSessions,
    Outcome,
    Row,
    Study,
    Table,
    formatted,
    times,
    with_bound,
)
from agentsignals.questions.question import cut as cut_off
from agentsignals.questions.sql import declared, read_queries
from agentsignals.stats.agent_traces import (
    FAILURE_PATTERNS,
    LOW_N,
    NEGATIVE,
    NEUTRAL,
    PLATEAU,
    POSITIVE,
    VALUES,
    Conversation,
    Part,
    after_negative,
    bands,
    by_model,
    label,
    negative_between,
    pure_neutral,
    recovery,
    share,
)
from agentsignals.stats.agreement import agreement
from agentsignals.stats.grouping import (
    MISSING,
    NOISE,
    install_hint,
    naming_words,
    stable_groups,
    text_groups,
)
from agentsignals.stats.intervals import SEED, median

read_queries(__file__)

_LENGTHS: tuple[float, ...] = (1, 5, 20, 50, 100, 200, 500, 1_000, 5_000)
"""Upper ends of the classes of length; 20 is agent-traces's short message."""

_TEXTS = NoSessions("Repeated messages are stored without their sessions. Use search to find them.")


def messages_study(inputs: Inputs) -> Outcome:
    rows = inputs.rows["lengths"]
    found = inputs.rows["common"]
    common = msgspec.json.decode(found[0]["value"]) if found else []
    messages = int(found[0]["messages"]) if found else 0
    said = [(row["session_id"], row["chars"]) for row in rows]
    most = common[0] if common else None
    note = f"{most['n']:,} times in {most['sessions']:,} sessions" if most else "no repeated message"
    findings = [
        clustered_median(said, inputs.places).finding("messages.median"),
        count(most and most["text"], messages, "text", evidence=_TEXTS).finding("messages.common", note=note),
    ]
    lengths = histogram_chart(
        said,
        _LENGTHS,
        id="messages.lengths",
        title="Message length",
        unit="characters",
        of="messages",
        note="agent-traces calls messages of up to 20 characters short: approvals, continuations, short imperatives",
    )
    of_agent = by(rows, "agent")
    agents = agents_by_sessions(rows)
    groups = {"all agents": rows, **{agent: of_agent[agent] for agent in agents if len(agents) > 1}} if rows else {}
    by_agent = table(
        "messages.by_agent",
        [[name, len(group), *quantiles([row["chars"] for row in group])] for name, group in groups.items()],
        header=f"agent | n messages:count | {quantile_columns('count')}",
        n=len(rows),
        evidence=[*groups.values()],
        note=f"Characters at {', '.join(label for _, label in QUANTILES)}.",
    )
    again = [[row["text"], row["n"], row["n"] / messages, row["sessions"]] for row in common]
    most_common = table("messages.most_common", again, n=messages, evidence=_TEXTS)
    return Outcome(findings, [by_agent, most_common], [lengths])


MESSAGES_STUDY = Study(**declared("study", "messages"), function=messages_study)


# -- People: openings, short messages, objections, interruptions

_LAST = 6
"""Prompts from this number on are one class."""
_OBJECTS, _BRAKES = "pushback, at least", "cut short"


def people(inputs: Inputs) -> Outcome:
    places, turns = inputs.places, inputs.rows["turns"]
    flagged = {(row["session_id"], row["turn"]): row["objects"] for row in inputs.rows["later"]}
    cut = cut_short(inputs.rows["cuts"], places)
    short = clustered_share(((row["session_id"], row["le_20"], row["n"]) for row in inputs.rows["short"]), places)
    opened = [
        {**row, "label": row["label"].replace("_", " ")} for row in signal_rows(inputs, "corpus.first_message_pattern")
    ]
    named = {name: [row["session_id"] for row in rows] for name, rows in by(opened, "label").items()}
    openings = [(name, named[name]) for name, _ in ranked({name: len(ids) for name, ids in named.items()})]
    marks = count_bars([(name, len(ids)) for name, ids in openings], "first messages", evidence=named)
    name, ids = openings[0] if openings else (None, [])
    parts = [(row["session_id"], row["label"] == name, 1) for row in opened]
    note = times(len(ids), "session") if name else "no session has a first message"
    findings = [
        pushback_finding(inputs, flagged, "people.pushback", "Prompts with pushback", "later prompts in English"),
        cut_short_finding(cut, "people.cut"),
        short.finding("people.short"),
        count(name, len(opened), "text", evidence=parts).finding("people.opening", note=note),
    ]
    drawn: list[Row] = []
    for number, group in sorted(by(turns, "at").items()):
        at = f"{number}+" if number == _LAST else str(number)
        for name, k, n in ((_OBJECTS, "objects", "judged"), (_BRAKES, "cut", "n")):
            estimate = clustered_share(((row["session_id"], row[k], row[n]) for row in group), places)
            if estimate.n:
                words = at_least_text(estimate.k, estimate.n, "prompts") if k == "objects" else estimate.words()
                drawn.append(estimate.mark(name, f"prompt {at}, {name}: {words}", at=at))
    if len({row["at"] for row in drawn}) < 2:
        drawn = []
    positions = chart(
        "people.positions",
        drawn,
        intervals_by_position("prompt number in the session", "share of prompts", (_OBJECTS, _BRAKES)),
        n=sum(row["n"] for row in turns),
        note="lines are 95% intervals of detected pushback; a first prompt has nothing to object to;"
        f" {rules_recall_text()}",
    )
    limits = [
        f"Pushback found by word rules is a lower bound ({rules_recall_text()}). Compare it with no other labeller.",
        "Later prompts come from longer sessions, so a rising rate is partly a change of sessions.",
    ]
    return Outcome(findings, [], [positions, chart("people.openings", marks, bars("sessions"), n=len(opened))], limits)


PEOPLE_STUDY = Study(
    **declared(
        "study",
        "people",
        values=sql.values("corpus.first_message_pattern", more=f"{sql.LABEL} AS label, "),
        labels=PUSHBACK_LABELS,
    ),
    function=people,
)


# -- Intents and personas (SWE-chat, Figures 19a, 24 and 32)

_INTENT = "chat.prompt_intent"
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
_BY_CLASSIFIER = (
    "Intents are by the shipped classifier, for English prompts. Run `agentsignals labels label"
    " prompt_intent --by LABELLER`, then `agentsignals measure`, to use another labeller."
)
_BY_RULES = (
    "Rules find a part of each intent: their counts are lower bounds. Run `agentsignals labels label prompt_intent` for"
    " shares."
)
_NO_PERSONAS = "No session has a persona yet. Run `agentsignals labels label persona --by LABELLER`."


def intents_study(inputs: Inputs) -> Outcome:
    rows, places = inputs.rows["turns"], inputs.places
    # One labeller in one number: the most trusted that judged most of the prompts, else the one with the most.
    by_labeller = by(rows, "labeller")
    able = [name for name, of in by_labeller.items() if len(of) > _ENOUGH * len(rows)]
    ranked_by = {name: (name in able, labeller_rank(name), len(of)) for name, of in by_labeller.items()}
    who = max(ranked_by, key=lambda name: ranked_by[name], default=CLASSIFIER)
    classified = by_labeller.get(who, [])
    asked_for = [row["intent"] for row in classified]
    sample = Sample([row["session_id"] for row in classified], places)
    shares = {name: sample.among(asked_for, name) for name in INTENTS}
    of = f"prompts labelled by {who}"
    prompts: dict[str, Any] = {"signals": (_INTENT,), "validation": validation_of(who, "prompt_intent")}
    errors = calibration_of(who, "prompt_intent")
    chances = [msgspec.json.decode(row["probabilities"]) for row in classified if row["probabilities"]]
    findings = []
    if who == RULES:
        for name, estimate in shares.items():
            lower = count(int(estimate.k), int(estimate.n), evidence=estimate.counted)
            title = f"Prompts that ask for: {_spaced(name)}"
            id_ = f"intents.intent.{name}"
            findings.append(lower.finding(id_, title, of, unit="prompts", at_least=True, classes=(name,), **prompts))
        shares = {}
    elif errors and len(chances) == len(classified):
        for name, estimate in shares.items():
            of_class = [chance.get(name, 0.0) for chance in chances]
            shares[name] = probable_share(estimate, sample.share(of_class), of_class, who, errors.get(name, 0.5))
    else:
        shares = {name: as_labelled(share, who) for name, share in shares.items()}
    prompts["unit"] = "share of prompts"
    for name, estimate in shares.items():
        title, id_ = f"Prompts that ask for: {_spaced(name)}", f"intents.intent.{name}"
        note = f"the SWE-chat paper reports {INTENTS[name]}%"
        findings.append(estimate.finding(id_, title, of, note, classes=(name,), **prompts))
    for activity, intents in ACTIVITIES.items() if shares else ():
        title = f"Prompts about {activity} code: {', '.join(_spaced(intent) for intent in intents)}"
        estimate = sample.among(asked_for, *intents)
        if errors and len(chances) == len(classified):
            of_class = [sum(chance.get(name, 0.0) for name in intents) for chance in chances]
            error = fsum(errors.get(name, 0.5) ** 2 for name in intents) ** 0.5
            estimate = probable_share(estimate, sample.share(of_class), of_class, who, error)
        findings.append(estimate.finding(f"intents.activity.{activity}", title, of, classes=intents, **prompts))
    persona_rows = inputs.rows["personas"]
    personas: dict[str, ClusteredShare] = {}
    if not all(row["rule"] for row in persona_rows):  # too short to be judged, each: that is no judgement
        who_asked = [row["persona"] for row in persona_rows]
        sample = Sample([row["session_id"] for row in persona_rows], places)
        personas = {name: sample.among(who_asked, name) for name in dict.fromkeys([*PERSONAS, *sorted({*who_asked})])}
    of_sessions = "sessions with a persona"
    for name, estimate in personas.items():
        title, note = (
            f"Sessions with persona {_spaced(name)}",
            f"the SWE-chat paper reports {PERSONAS[name]}%" if name in PERSONAS else "",
        )
        finding = estimate.finding(
            f"intents.persona.{name}",
            title,
            of_sessions,
            note,
            unit="share of sessions",
            signals=("chat.user_persona",),
        )
        findings.append(finding)
    caveat = f"by {who}" if shares else ""
    charts: list[Chart | None] = []
    for id_, title, named, published, what, more in (
        ("intents.prompts", "Intents of prompts", shares, INTENTS, of, caveat),
        ("intents.personas", "Personas", personas, PERSONAS, of_sessions, ""),
    ):
        marks: list[Row] = []
        for name, estimate in sorted(named.items(), key=lambda pair: (-pair[1].k, pair[0])):
            if estimate.n and estimate.value is not None:
                paper = f"; SWE-chat {published[name]}%" if name in published else ""
                tip = f"{_spaced(name)}: {estimate.words()}{paper}"
                marks.append(estimate.mark(f"{_spaced(name)} ({estimate.k:,.0f})", tip))
        n = max((estimate.n for estimate in named.values()), default=0)
        note = "; ".join(part for part in ("counts in brackets, uncorrected", INTERVAL_NOTE, more) if part)
        charts.append(chart(id_, marks, dots("share"), title=title, n=n, of=what, note=note))
    limits = [*([_BY_RULES] if who == RULES else [_BY_CLASSIFIER] if who == CLASSIFIER else []),
              *([] if personas else [_NO_PERSONAS])]  # fmt: skip
    limits += [
        f"Labels by {name} are not shown here: {len(of_other):,} of {times(len(rows), 'prompt')}."
        for name, of_other in by_labeller.items()
        if name != who
    ]
    return Outcome([f for f in findings if f.n], [_by_activity(classified)], charts, limits)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _by_activity(rows: list[Row]) -> Table:
    """Writing against reviewing: how long the agent works, and how the turn goes on."""
    of_intent = by(rows, "intent")
    shown: list[list[Any]] = []
    behind = []
    for name, intents in (*ACTIVITIES.items(), *((_spaced(i), (i,)) for i in INTENTS)):
        group = [row for intent in intents for row in of_intent.get(intent, ())]
        if group:
            times = [row["seconds"] for row in group if row["seconds"] is not None]
            later = [row["objected"] for row in group if row["objected"] is not None]
            mean, objected = (sum_of(of) / len(of) if of else None for sum_of, of in ((fsum, times), (sum, later)))
            cut = sum(bool(row["cut"]) for row in group) / len(group)
            shown.append([name, len(group), n_sessions(group), median(times), mean, cut, with_bound(objected, True)])
            behind.append(group)
    note = (
        "Writing and reviewing are SWE-chat's sums of intents. Pushback is a lower bound, among turns followed by an"
        f" English prompt ({rules_recall_text()})."
    )
    return table("intents.activities", shown, n=len(rows), evidence=behind, note=note)


INTENTS_STUDY = Study(**declared("study", "intents"), function=intents_study)


# -- Topics of prompts (SWE-chat)

FEWEST, SMALLEST, MOST_TOPICS = 40, 5, 40
"""Prompts that are grouped at all; prompts of a topic; topics."""
_NAMING, _EXAMPLES, _EXAMPLE_CHARS = 4, 3, 160

_UNLISTED = NoSessions("Excluded prompts are counted by reason only.")


def topics(inputs: Inputs) -> Outcome:
    kept = TopicPrompts(inputs.rows["prompts"], inputs.places)
    prompts = kept.prompts
    n = len(prompts)
    if n < FEWEST:
        return Outcome(limits=[f"{n:,} prompts have enough words for a topic; at least {FEWEST} are needed."])
    wanted = min(MOST_TOPICS, max(2, round(math.sqrt(n / 2))))
    texts, ids = [prompt.text for prompt in prompts], [prompt.row["session_id"] for prompt in prompts]
    groups = text_groups(texts, wanted)
    if isinstance(groups, Absent):
        return Outcome(limits=[install_hint() if groups is MISSING else f"There are no topics: {groups.detail}."])
    of = stable_groups(groups.of, groups.fit, SMALLEST)
    if max(of) < 0:
        return Outcome(limits=["No topic has five prompts."])
    telling = naming_words(texts, of, _NAMING, [prompt.place for prompt in prompts])
    names = {topic: ", ".join(words) or "no common word" for topic, words in enumerate(telling)}
    rows: list[list[Any]] = []
    behind = []
    marks: list[Row] = []
    examples: list[list[Any]] = []
    for topic in [*names, *([NOISE] if NOISE in of else [])]:
        members = [at for at, t in enumerate(of) if t == topic]
        sessions, alike = [ids[at] for at in members], [prompts[at].row for at in members]
        places = Counter(prompts[at].place for at in members)
        largest = max(places.values()) / len(members)
        later = [row["pushback"] for row in alike if row["pushback"] is not None]
        objections = sum(value != NONE for value in later) / len(later) if later else None
        fit = math.fsum(groups.fit[at] for at in members) / len(members)
        name = names.get(topic, "(no topic)")
        size = [name, len(members), len(members) / n, len(set(sessions)), len(places), largest]
        cut = sum(bool(row["cut"]) for row in alike) / len(members)
        times = median([row["seconds"] for row in alike if row["seconds"] is not None])
        warning = ONE_PLACE if largest > DOMINANT and topic >= 0 else ""
        rows.append([*size, fit, with_bound(objections, True), cut, times, warning])
        behind.append(sessions)
        if topic == NOISE:
            continue
        tip = f"{name}: {len(members):,} of {n:,} prompts, in {len(places):,} projects"
        marks.append(bar(f"{topic + 1}. {name}", len(members), tip, evidence=sessions))
        # The prompts nearest to the middle of each topic, of different sessions where there are any.
        nearest = sorted(members, key=lambda at: (groups.distance[at], at))
        first = {ids[at]: at for at in reversed(nearest)}
        chosen = [at for at in nearest if first[ids[at]] == at]
        for at in [*chosen, *(at for at in nearest if first[ids[at]] != at)][:_EXAMPLES]:
            examples.append([name, cut_off(texts[at], _EXAMPLE_CHARS), ids[at]])
    noise = [(session_id, float(topic == NOISE), 1) for session_id, topic in zip(ids, of, strict=True)]
    how = f"of {len(inputs.rows['prompts']):,} prompts; tf-idf and k-means, {len(names)} clusters kept, seed {SEED}"
    findings = [
        count(max(of) + 1, n, evidence=noise).finding("topics.count", note=how),
        clustered_share(noise, inputs.places).finding("topics.noise"),
        count(names[0], of.count(0), "text", evidence=behind[0]).finding("topics.largest"),
    ]
    note = (
        "Named by class-based tf-idf over words used in at least two projects. Pushback is a lower bound, without"
        f" first prompts ({rules_recall_text()})."
    )
    left_out = [[reason, k] for reason, k in ranked(kept.left_out) if k]
    tables = [
        table("topics.topics", rows, n=n, evidence=behind, note=note),
        table("topics.examples", examples, n=n, evidence=[[row[2]] for row in examples]),
        table("topics.left_out", left_out, n=kept.left_out.total(), evidence=_UNLISTED),
    ]
    note = f"{of.count(NOISE):,} have no topic"
    limits = [
        f"The number of topics follows a rule: the root of half the prompts, {wanted} here. Another number or seed"
        " gives other topics. Some topics are projects rather than activities: see the largest project.",
        "Prompts are compared by shared words, not by meaning. English prompts only.",
    ]
    if kept.is_sample:
        limits.append(
            f"Topics are of a sample: {MOST:,} different prompts, those with the lowest hash of their text, at most"
            f" {MOST_OF_PLACE:,} from one project."
        )
    return Outcome(findings, tables, [chart("topics.sizes", marks, bars("prompts"), n=n, note=note)], limits)


TOPICS_STUDY = Study(**declared("study", "topics"), function=topics)


# -- Sentiment labels of one labeller

_VALUES = (NEUTRAL, NEGATIVE, POSITIVE)
_OF = "labelled messages"


def _study(name: str, of_labels: Callable[[Inputs, Labelled], Outcome]) -> Study:
    def function(inputs: Inputs) -> Outcome:
        labels = labelled(inputs)
        return no_labels(inputs) if labels is None else of_labels(inputs, labels)

    return Study(**declared("study", name, **QUERIES), function=function)


def sentiment(inputs: Inputs, labels: Labelled) -> Outcome:
    findings = []
    for value in _VALUES:
        estimate = labels.estimate(partial(share, value=value))
        more: dict[str, Any] = {"headline": value == NEGATIVE, "classes": (value,)}
        title = f"Messages labelled {value}"
        if labels.labeller != RULES:
            more["unit"] = "share of messages"
            findings.append(labels.finding(estimate, f"sentiment.{value.lower()}", title, _OF, **more))
        elif value != NEUTRAL:  # the rest is what rules did not find, and no class
            found = count(int(estimate.k), int(estimate.n), evidence=estimate.counted)
            more |= {"unit": "messages", "at_least": True}
            findings.append(labels.finding(found, f"sentiment.{value.lower()}", title, _OF, **more))
    unclear = [pure_neutral(conversation) for conversation in labels.conversations].count(None)
    note = f"{unclear:,} more are neutral in the labelled part" if unclear else ""
    if labels.labeller != RULES:
        findings.append(labels.finding(labels.estimate(pure_neutral), "sentiment.pure_neutral", note=note))
    of_label: dict[str, list[str]] = {value: [] for value in _VALUES}
    # This labeller's labels against each other labeller's of the same messages.
    values: dict[tuple[str, int], str | None] = {}
    for conversation in labels.conversations:
        for message in conversation.labelled:
            of_label[str(message.value)].append(conversation.session_id)
            values[conversation.session_id, message.turn - 1] = message.value
    marks = count_bars([(value, len(ids)) for value, ids in of_label.items()], "messages", evidence=of_label)
    groups = by(inputs.rows["labels"], "labeller")
    rows: list[list[Any]] = []
    behind = []
    for name, group in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        last = max((row["created_at"] for row in group if row["created_at"] is not None), default=None)
        n_none = sum(label(row["value"]) is None for row in group)
        made_by = (_one_of(group, "model"), _one_of(group, "prompt_hash"))
        rows.append([name, *made_by, len(group), n_none, last, "used here" if name == labels.labeller else ""])
        behind.append([row["session_id"] for row in group])
    labellers = table("sentiment.labellers", rows, n=len(inputs.rows["labels"]), evidence=behind)
    confusion: list[list[Any]] = []
    behind, n_both, n_taught = [], 0, 0
    errors: list[Row] = []
    is_made_from = {name: made_from(name, "sentiment") for name in groups}
    for name, group in sorted(groups.items()):
        seen = [(row["session_id"], values.get((row["session_id"], row["turn"])), label(row["value"])) for row in group]
        if name != labels.labeller:
            taught = {s for s, *_ in seen if is_made_from[labels.labeller](s) or is_made_from[name](s)}
            n_taught += sum(s in taught and bool(here and there) for s, here, there in seen)
            seen = [each for each in seen if each[0] not in taught]
        both = [(here, there) for _, here, there in seen if here and there and name != labels.labeller]
        n_both += len(both)
        agreed = agreement(both, VALUES)
        if agreed is not None:
            cells = [agreed.confusion[a][b] for a in VALUES for b in VALUES if a != b]
            confusion.append([name, agreed.n, agreed.agreement, agreed.chance, agreed.kappa, *cells])
            behind.append([session_id for session_id, here, there in seen if here and there])
            for (there, here), called in FAILURE_PATTERNS.items():
                ids = [session_id for session_id, ours, theirs in seen if (theirs, ours) == (there, here)]
                tip = f"{name} {there}, {labels.labeller} {here}: {len(ids):,} of {len(both):,} messages"
                errors.append(bar(called if len(groups) == 2 else f"{called}, {name}", len(ids), tip, evidence=ids))
    others = " | ".join(f"{f'{a}_{b}'.lower()} {a} → {b}:count" for a in VALUES for b in VALUES if a != b)
    agreements = table(
        "sentiment.agreement",
        confusion,
        title=f"Agreement of {labels.labeller} with other labellers",
        header="other other labeller:code | n messages labelled by both:count | agreement:share"
        f" | chance chance agreement:share | kappa:number | {others}",
        n=n_both,
        evidence=behind,
        note=f"In {NEGATIVE} → {POSITIVE} the first label is {labels.labeller}'s. Chance agreement is high if most"
        f" messages are {NEUTRAL}.",
    )
    drawn = chart("sentiment.labels", marks, bars("messages"), n=len(values))
    apart = chart("sentiment.patterns", errors, bars("messages"), n=n_both)
    limits = [*labels.limits(), "Short sessions are neutral more often because they have fewer messages."]
    if n_taught:
        n = times(n_taught, "message")
        limits.append(f"Agreement leaves out {n} in sessions that a labeller was made from: it knows these answers.")
    return Outcome(findings, [labellers, agreements], [drawn, apart], limits)


def _one_of(labels: list[Row], column: str) -> str | None:
    """The one word all labels say; None when they say several or none."""
    distinct = {row[column] for row in labels if row[column]}
    return distinct.pop() if len(distinct) == 1 else None


SENTIMENT_STUDY = _study("sentiment", sentiment)


# -- By turn

_ALL_SESSIONS, _COHORT = "all sessions", f"sessions with at least {PLATEAU} turns"


def sentiment_turns(_: Inputs, labels: Labelled) -> Outcome:
    findings = []
    for name, title, first, last, cohort in (
        ("first", "NEGATIVE at turn 1", 1, 1, False),
        ("fifth", "NEGATIVE at turn 5", PLATEAU, PLATEAU, False),
        ("plateau", "NEGATIVE from turn 5 on", PLATEAU, inf, False),
        ("cohort_first", f"NEGATIVE at turn 1, {_COHORT}", 1, 1, True),
    ):
        estimate = labels.estimate(partial(negative_between, first=first, last=last, cohort=cohort))
        findings.append(labels.finding(estimate, f"sentiment_turns.{name}", title, _OF, unit="share of messages"))
    rows: list[list[Any]] = []
    behind = []
    marks: dict[str, list[Row]] = {}
    n = 0
    for name, cohort in ((_ALL_SESSIONS, False), (_COHORT, True)):
        for first, last in bands():
            if first >= PLATEAU and cohort:  # from there on only sessions of the cohort have messages
                continue
            at = f"{first}+" if last == inf else str(first)
            e = labels.estimate(partial(negative_between, first=first, last=last, cohort=cohort))
            n += 0 if cohort else int(e.n)
            if e.n:
                rows.append([name, at, int(e.n), int(e.k), e.value, *e.ends, e.warning(LOW_N, "messages")])
                behind.append(e.counted)
                tip = f"turn {at}, {name}: {e.k:,.0f} of {e.n:,.0f} NEGATIVE, {formatted(e.value, 'share')}"
                marks.setdefault(at, []).append(e.mark(name, tip, at=at))
    drawn = [row for at in marks.values() for row in at] if len(marks) > 1 else []
    across = "turn number in the session"
    curve = table(
        "sentiment_turns.curve",
        rows,
        n=n,
        evidence=behind,
        note=f"Few: under {LOW_N} messages; one project: it has more than half. From turn {PLATEAU} on both groups"
        " are equal.",
    )
    by_turn = chart(
        "sentiment_turns.by_turn",
        drawn,
        intervals_by_position(across, "share of labelled messages", (_ALL_SESSIONS, _COHORT)),
        n=n,
        note=f"lines are 95% intervals; from turn {PLATEAU} on both groups are equal",
    )
    limits = [
        *labels.limits(),
        "Later turns come from longer sessions, so a rising rate is partly a change of sessions. The curve of"
        f" {_COHORT} avoids this up to that turn.",
    ]
    return Outcome(findings, [curve], [by_turn], limits)


SENTIMENT_TURNS_STUDY = _study("sentiment_turns", sentiment_turns)


# -- First messages and recovery


def sentiment_openings(_: Inputs, labels: Labelled) -> Outcome:
    by_opening = {name: labels.estimate(partial(recovery, opening=name)) for name in _VALUES}
    several = {name: labels.estimate(partial(recovery, opening=name, several=True)) for name in _VALUES}

    def opens(conversation: Conversation) -> Part:
        return int(conversation.opening == NEGATIVE), int(conversation.opening is not None)

    def never(conversation: Conversation) -> Part:
        k, n = recovery(conversation, NEGATIVE)
        return n - k, n

    negative, neutral = "sessions with a NEGATIVE first message", "sessions with a NEUTRAL first message"
    first = "sessions with a labelled first message"
    findings = []
    for name_, title, of, e in (
        ("negative", "Sessions with a NEGATIVE first message", first, labels.estimate(opens)),
        ("recovery", "Negative first message, POSITIVE message later", negative, by_opening[NEGATIVE]),
        (
            "recovery_several",
            "Negative first message, POSITIVE later, among sessions with a later message",
            negative,
            several[NEGATIVE],
        ),
        ("never", "Negative first message, no POSITIVE message later", negative, labels.estimate(never)),
        ("neutral_recovery", "Neutral first message, POSITIVE message later", neutral, by_opening[NEUTRAL]),
    ):
        findings.append(labels.finding(e, f"sentiment_openings.{name_}", title, of, unit="share of sessions"))
    n = sum(e.n for e in by_opening.values())
    seen = {name: e for name, e in by_opening.items() if e.n}
    rows: list[list[Any]] = [
        [name, int(e.n), int(e.k), e.value, *e.ends, several[name].value, e.note] for name, e in seen.items()
    ]
    marks = [e.mark(f"{name} ({e.n:,.0f})", f"{name}: {e.words('sessions')}") for name, e in seen.items()]
    behind = [e.counted for e in seen.values()]
    recovered = table("sentiment_openings.recovery_by_opening", rows, n=n, evidence=behind)
    drawn = chart("sentiment_openings.chart", marks, dots("share of sessions"), n=n, fewest=2)
    limits = [
        *labels.limits(),
        "A NEGATIVE first message is mostly a reported problem, not a mood.",
        "Longer sessions have more chances for a POSITIVE message; this is not corrected.",
    ]
    return Outcome(findings, [recovered], [drawn], limits)


SENTIMENT_OPENINGS_STUDY = _study("sentiment_openings", sentiment_openings)


# -- After a negative message

_ALL_MESSAGES, _AFTER = "all messages", "after the first NEGATIVE"


def sentiment_after(_: Inputs, labels: Labelled) -> Outcome:
    findings = []
    marks: list[Row] = []
    n = 0.0
    for value in (NEGATIVE, POSITIVE):
        for name, key, of, counted in (
            (_ALL_MESSAGES, "base", _OF, share),
            (_AFTER, "after", f"{_OF} after it", after_negative),
        ):
            e = labels.estimate(partial(counted, value=value))
            id_, title = f"sentiment_after.{value.lower()}_{key}", f"{value}: {name}"
            findings.append(labels.finding(e, id_, title, of, unit="share of messages"))
            n = n or e.n
            if e.n:
                marks.append(e.mark(name, f"{value}, {name}: {e.words()}", at=value))
    both = _ALL_MESSAGES, _AFTER
    spec = intervals_by_position("label", "share of labelled messages", both)
    drawn = marks if {row["name"] for row in marks} == {*both} else []
    limits = [
        *labels.limits(),
        "Messages after a negative one come from longer sessions, which explains part of the difference. Intervals"
        " are for each share, not for the difference.",
    ]
    return Outcome(findings, [], [chart("sentiment_after.chart", drawn, spec, n=n)], limits)


SENTIMENT_AFTER_STUDY = _study("sentiment_after", sentiment_after)


# -- By model

ENOUGH = 100
"""Labelled messages a model needs to be drawn (agent-traces)."""


def sentiment_models(_: Inputs, labels: Labelled) -> Outcome:
    def of_model(model: str, conversation: Conversation) -> Part:
        return by_model(conversation).get(model, (0, 0))

    names = {model for conversation in labels.conversations for model in by_model(conversation)}
    models = {name: labels.estimate(partial(of_model, name)) for name in names}
    models = dict(sorted(models.items(), key=lambda pair: (-pair[1].n, pair[0])))
    counted = [(c.session_id, len(c.labelled), len(c.labelled)) for c in labels.conversations]
    n, known = sum(of_session for _, _, of_session in counted), int(sum(e.n for e in models.values()))
    rows: list[list[Any]] = []
    marks: list[Row] = []
    enough = {name: e for name, e in models.items() if e.n >= ENOUGH}
    for name, e in models.items():
        share_of_model = [int(e.k), e.value, *e.ends, e.warning(ENOUGH, "messages")]
        rows.append([name, int(e.n), e.known_places, e.largest, *share_of_model])
        if name in enough:
            warning = f" ({w})" if (w := e.warning()) else ""
            tip = f"{name}: {e.words()}, {e.known_places} projects{warning}"
            marks.append(e.mark(f"{name} ({e.n:,.0f})", tip))
    narrow = sum(e.dominated for e in enough.values())
    left_out = f"; of {n - known:,} messages the model is unknown" if n - known else ""
    dominated = "Models with more than half of their messages in one project"
    findings = [
        labels.finding(count(value, n, evidence=counted), f"sentiment_models.{name}", title, _OF, note, unit="models")
        for name, title, value, note in (
            (
                "count",
                f"Models with at least {ENOUGH} labelled messages",
                len(enough),
                f"{len(models):,} in all{left_out}",
            ),
            ("dominated", dominated, narrow, ""),
        )
    ]
    shares = table(
        "sentiment_models.shares",
        rows,
        n=known,
        evidence=[e.counted for e in models.values()],
        note="A message counts for the model of the answer before it; a first message for the model of the first"
        f" answer. Few: under {ENOUGH} messages; one project: it has more than half.",
    )
    note = f"models with at least {ENOUGH} labelled messages (in brackets); {INTERVAL_NOTE}; not a ranking"
    drawn = chart("sentiment_models.chart", marks, dots("share of labelled messages"), n=known, note=note)
    limits = [
        *labels.limits(),
        "Not a leaderboard: people chose the model, the task and what to share. One frustrated person can dominate a"
        " model's figure.",
    ]
    if narrow:
        limits.append(
            f"{narrow} of {times(len(enough), 'model')} with {ENOUGH} labelled messages: more than half are in one"
            " project."
        )
    return Outcome(findings, [shares], [drawn], limits)


SENTIMENT_MODELS_STUDY = _study("sentiment_models", sentiment_models)
