"""Sentiment labels of people's messages: by turn, opening and model, after a negative message (agent-traces)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from agentsignals.questions.charts import bars, dots, intervals_by_position
from agentsignals.questions.estimates import INTERVAL_NOTE, by, chart, count, count_bars, table
from agentsignals.questions.formatting import formatted
from agentsignals.questions.label_shares import QUERIES, Labelled, labelled, no_labels
from agentsignals.questions.question import Inputs, Outcome, Row, Study
from agentsignals.questions.sql import declared, read_queries
from agentsignals.stats.agent_traces import (
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

read_queries(__file__)
_VALUES = (NEUTRAL, NEGATIVE, POSITIVE)
_OF = "labelled messages"


def _study(name: str, of_labels: Callable[[Inputs, Labelled], Outcome]) -> Study:
    """Return a study of the labels of one labeller."""

    def function(inputs: Inputs) -> Outcome:
        labels = labelled(inputs)
        return no_labels(inputs) if labels is None else of_labels(inputs, labels)

    return Study(**declared("study", name, **QUERIES), function=function)


def sentiment(inputs: Inputs, labels: Labelled) -> Outcome:
    findings = []
    for value in _VALUES:
        estimate = labels.estimate(partial(share, value=value))
        more: dict[str, Any] = {"unit": "share of messages", "headline": value == NEGATIVE, "classes": (value,)}
        findings.append(
            labels.finding(estimate, f"sentiment.{value.lower()}", f"Messages labelled {value}", _OF, **more)
        )
    unclear = [pure_neutral(conversation) for conversation in labels.conversations].count(None)
    note = f"{unclear:,} more are neutral as far as they are labelled" if unclear else ""
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
        rows.append([name, *made_by, len(group), n_none, last, "taken here" if name == labels.labeller else ""])
        behind.append([row["session_id"] for row in group])
    labellers = table("sentiment.labellers", rows, n=len(inputs.rows["labels"]), evidence=behind)
    confusion: list[list[Any]] = []
    behind, n_both = [], 0
    for name, group in sorted(groups.items()):
        seen = [(row["session_id"], values.get((row["session_id"], row["turn"])), label(row["value"])) for row in group]
        both = [(here, there) for _, here, there in seen if here and there and name != labels.labeller]
        n_both += len(both)
        agreed = agreement(both, VALUES)
        if agreed is not None:
            cells = [agreed.confusion[a][b] for a in VALUES for b in VALUES if a != b]
            confusion.append([name, agreed.n, agreed.agreement, agreed.chance, agreed.kappa, *cells])
            behind.append([session_id for session_id, here, there in seen if here and there])
    others = " | ".join(f"{f'{a}_{b}'.lower()} {a} → {b}:count" for a in VALUES for b in VALUES if a != b)
    agreements = table(
        "sentiment.agreement",
        confusion,
        title=f"{labels.labeller} and the others",
        header="other other labeller:code | n messages of both:count | agreement agree:share"
        f" | chance by chance:share | kappa:number | {others}",
        n=n_both,
        evidence=behind,
        note=f"{NEGATIVE} → {POSITIVE}: the first is {labels.labeller}'s. Where most is {NEUTRAL}, chance agrees too.",
    )
    drawn = chart("sentiment.labels", marks, bars(marks, "messages"), n=len(values))
    limits = [*labels.limits(), "Short sessions are neutral more often: fewer messages, fewer occasions."]
    return Outcome(findings, [labellers, agreements], [drawn], limits)


def _one_of(labels: list[Row], column: str) -> str | None:
    """The one word all labels say; None when they say several or none."""
    distinct = {row[column] for row in labels if row[column]}
    return distinct.pop() if len(distinct) == 1 else None


SENTIMENT_STUDY = _study("sentiment", sentiment)


# -- By turn

_ALL_SESSIONS, _COHORT = "all sessions", f"sessions that reach turn {PLATEAU}"


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
    across = "number of the turn in its session"
    curve = table(
        "sentiment_turns.curve",
        rows,
        n=n,
        evidence=behind,
        note=f"Few: under {LOW_N} messages; one place: more than half. From turn {PLATEAU} on all sessions reach it.",
    )
    by_turn = chart(
        "sentiment_turns.by_turn",
        drawn,
        intervals_by_position(drawn, across, "share of labelled messages", (_ALL_SESSIONS, _COHORT)),
        n=n,
        note=f"lines are 95% intervals; from turn {PLATEAU} on all sessions reach it; few sessions say little",
    )
    limits = [
        *labels.limits(),
        "Later turns are turns of longer sessions: a rate that climbs with the turn is in part a change of sessions."
        f" The curve of {_COHORT} is free of it up to that turn.",
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

    negative, neutral = "sessions that open NEGATIVE", "sessions that open NEUTRAL"
    first = "sessions whose first message is labelled"
    findings = []
    for name_, title, of, e in (
        ("negative", "Sessions whose first message is NEGATIVE", first, labels.estimate(opens)),
        ("recovery", f"Of {negative}: with a POSITIVE message later", negative, by_opening[NEGATIVE]),
        ("recovery_several", "The same, of sessions with a later message", negative, several[NEGATIVE]),
        ("never", f"Of {negative}: without a POSITIVE message later", negative, labels.estimate(never)),
        ("neutral_recovery", f"Of {neutral}: with a POSITIVE message later", neutral, by_opening[NEUTRAL]),
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
    drawn = chart("sentiment_openings.chart", marks, dots(marks, "share of sessions"), n=n, fewest=2)
    limits = [
        *labels.limits(),
        "An opening labelled NEGATIVE is mostly a reported problem, not a mood: how sessions open stands for what they"
        " are about.",
        "Longer sessions have more occasions for praise: recovery is not held against the number of messages.",
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
            (_AFTER, "after", f"{_OF} behind it", after_negative),
        ):
            e = labels.estimate(partial(counted, value=value))
            id_, title = f"sentiment_after.{value.lower()}_{key}", f"{value}: {name}"
            findings.append(labels.finding(e, id_, title, of, unit="share of messages"))
            n = n or e.n
            if e.n:
                marks.append(e.mark(name, f"{value}, {name}: {e.words()}", at=value))
    both = _ALL_MESSAGES, _AFTER
    spec = intervals_by_position(marks, "label", "share of labelled messages", both)
    drawn = marks if {row["name"] for row in marks} == {*both} else []
    limits = [
        *labels.limits(),
        "Messages after a negative one come from longer sessions than messages in general: part of the difference is"
        " theirs. The intervals are of each share, not of the difference.",
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
            tip = f"{name}: {e.words()}, {e.known_places} places{warning}"
            marks.append(e.mark(f"{name} ({e.n:,.0f})", tip))
    narrow = sum(e.dominated for e in enough.values())
    left_out = f"; of {n - known:,} messages the model is not known" if n - known else ""
    dominated = "Of these, models with more than half of their messages in one place"
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
        note="A message belongs to the model of the last answer before it, a first message to that of the first"
        f" answer. Few: under {ENOUGH} messages; one place: more than half of them.",
    )
    note = f"models with at least {ENOUGH} labelled messages (in brackets); {INTERVAL_NOTE}; no ranking"
    drawn = chart("sentiment_models.chart", marks, dots(marks, "share of labelled messages"), n=known, note=note)
    limits = [
        *labels.limits(),
        "Shares of negative messages by model are no leaderboard: people chose the model, the task and what to share,"
        " and a model that one frustrated person used looks frustrating.",
    ]
    if narrow:
        limits.append(
            f"{narrow} of {len(enough)} models with {ENOUGH} labelled messages have more than half of them"
            " in one place."
        )
    return Outcome(findings, [shares], [drawn], limits)


SENTIMENT_MODELS_STUDY = _study("sentiment_models", sentiment_models)
