"""Sentiment labels of people's messages: by turn, opening and model, after a negative message (agent-traces)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from math import inf
from typing import Any

from agentsignals.questions.charts import bars, dots, intervals_by_position
from agentsignals.questions.estimates import INTERVAL_NOTE, ClusteredShare, by, chart, count, count_bars, table
from agentsignals.questions.formatting import formatted
from agentsignals.questions.label_shares import QUERIES, Labelled, labelled, no_labels
from agentsignals.questions.question import Chart, Inputs, Outcome, Row, Study
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


def sentiment(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return no_labels(inputs)
    findings = [
        labels.finding(
            labels.estimate(partial(share, value=value)),
            f"sentiment.{value.lower()}",
            f"Messages labelled {value}",
            "labelled messages",
            unit="share of messages",
            headline=value == NEGATIVE,
            classes=(value,),
        )
        for value in (NEUTRAL, NEGATIVE, POSITIVE)
    ]
    unclear = [pure_neutral(conversation) for conversation in labels.conversations].count(None)
    findings.append(
        labels.finding(
            labels.estimate(pure_neutral),
            "sentiment.pure_neutral",
            note=f"{unclear:,} more are neutral as far as they are labelled" if unclear else "",
        )
    )
    limits = [*labels.limits(), "Short sessions are neutral more often: fewer messages, fewer occasions."]
    of_label: dict[str, list[str]] = {value: [] for value in (NEUTRAL, NEGATIVE, POSITIVE)}
    for conversation in labels.conversations:
        for message in conversation.labelled:
            of_label[str(message.value)].append(conversation.session_id)
    counted = Counter({value: len(ids) for value, ids in of_label.items()})
    rows = count_bars([*counted.items()], "messages", evidence=of_label)
    n, _of = counted.total(), "labelled messages"
    groups = by(inputs.rows["labels"], "labeller")
    labellers_rows: list[list[Any]] = [
        [
            name,
            _one_of(row["model"] for row in group),
            _one_of(row["prompt_hash"] for row in group),
            len(group),
            sum(label(row["value"]) is None for row in group),
            max((row["created_at"] for row in group if row["created_at"] is not None), default=None),
            "taken here" if name == labels.labeller else "",
        ]
        for name, group in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    ]
    # This labeller's labels against each other labeller's of the same messages.
    values = {(c.session_id, m.turn - 1): m.value for c in labels.conversations for m in c.labelled}
    pairs: dict[str, list[tuple[str, str]]] = {}
    of_both: dict[str, list[str]] = {}
    for row in inputs.rows["labels"]:
        here, there = values.get((row["session_id"], row["turn"])), label(row["value"])
        if here and there and row["labeller"] != labels.labeller:
            pairs.setdefault(row["labeller"], []).append((here, there))
            of_both.setdefault(row["labeller"], []).append(row["session_id"])
    confusion_rows: list[list[Any]] = []
    for name, both in sorted(pairs.items()):
        agreed = agreement(both, VALUES)
        if agreed is not None:
            cells = [agreed.confusion[a][b] for a in VALUES for b in VALUES if a != b]
            confusion_rows.append([name, agreed.n, agreed.agreement, agreed.chance, agreed.kappa, *cells])
    others = " | ".join(f"{f'{a}_{b}'.lower()} {a} → {b}:count" for a in VALUES for b in VALUES if a != b)
    return Outcome(
        findings,
        [
            table(
                "sentiment.labellers",
                labellers_rows,
                n=len(inputs.rows["labels"]),
                evidence=[[row["session_id"] for row in groups[shown[0]]] for shown in labellers_rows],
            ),
            table(
                "sentiment.agreement",
                confusion_rows,
                title=f"{labels.labeller} and the others",
                header="other other labeller:code | n messages of both:count | agreement agree:share"
                f" | chance by chance:share | kappa:number | {others}",
                n=sum(map(len, pairs.values())),
                evidence=[of_both[shown[0]] for shown in confusion_rows],
                note=f"{NEGATIVE} → {POSITIVE}: the first is {labels.labeller}'s."
                f" Where most is {NEUTRAL}, chance agrees too.",
            ),
        ],
        [chart("sentiment.labels", rows, bars(rows, "messages"), n=n)],
        limits,
    )


def _one_of(words: Any) -> str | None:
    """The one word all labels say; None when they say several or none."""
    distinct = {word for word in words if word}
    return distinct.pop() if len(distinct) == 1 else None


SENTIMENT_STUDY = Study(**declared("study", "sentiment"), queries=QUERIES, function=sentiment)


# -- By turn

_Curve = list[tuple[str, ClusteredShare]]
_ALL_SESSIONS, _COHORT = "all sessions", f"sessions that reach turn {PLATEAU}"


def sentiment_turns(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return no_labels(inputs)
    curves = {_ALL_SESSIONS: _curve(labels, cohort=False), _COHORT: _curve(labels, cohort=True)}
    asked: tuple[tuple[str, str, int, float, bool], ...] = (
        ("first", "NEGATIVE at turn 1", 1, 1, False),
        ("fifth", "NEGATIVE at turn 5", PLATEAU, PLATEAU, False),
        ("plateau", "NEGATIVE from turn 5 on", PLATEAU, inf, False),
        ("cohort_first", f"NEGATIVE at turn 1, {_COHORT}", 1, 1, True),
    )
    findings = [
        labels.finding(
            labels.estimate(partial(negative_between, first=first, last=last, cohort=cohort)),
            f"sentiment_turns.{name}",
            title,
            "labelled messages",
            unit="share of messages",
        )
        for name, title, first, last, cohort in asked
    ]
    limits = [
        *labels.limits(),
        "Later turns are turns of longer sessions: a rate that climbs with the turn is in part a change of sessions."
        f" The curve of {_COHORT} is free of it up to that turn.",
    ]
    rows: list[list[Any]] = [
        [name, at, int(point.n), int(point.k), point.value, *point.ends, point.warning(LOW_N, "messages")]
        for name, curve in curves.items()
        for at, point in curve
        if point.n
    ]
    return Outcome(
        findings,
        [
            table(
                "sentiment_turns.curve",
                rows,
                n=sum(point.n for _, point in curves[_ALL_SESSIONS]),
                evidence=[point.counted for curve in curves.values() for _, point in curve if point.n],
                note=f"Few: under {LOW_N} messages; one place: more than half."
                f" From turn {PLATEAU} on all sessions reach it.",
            )
        ],
        [_sentiment_turns_chart(curves)],
        limits,
    )


def _curve(labels: Labelled, *, cohort: bool) -> _Curve:
    return [
        (
            f"{first}+" if last == inf else str(first),
            labels.estimate(partial(negative_between, first=first, last=last, cohort=cohort)),
        )
        for first, last in bands()
        if first < PLATEAU or not cohort  # from there on only sessions of the cohort have messages
    ]


def _sentiment_turns_chart(curves: dict[str, _Curve]) -> Chart | None:
    rows: list[Row] = []
    for at in dict.fromkeys(at for curve in curves.values() for at, _ in curve):
        for name, curve in curves.items():
            point = dict(curve).get(at)
            if point is not None and point.n:
                tip = f"turn {at}, {name}: {point.k:,.0f} of {point.n:,.0f} NEGATIVE, {formatted(point.value, 'share')}"
                rows.append(point.mark(name, tip, at=at))
    if len({row["at"] for row in rows}) < 2:
        return None
    return chart(
        "sentiment_turns.by_turn",
        rows,
        intervals_by_position(
            rows, "number of the turn in its session", "share of labelled messages", (_ALL_SESSIONS, _COHORT)
        ),
        n=sum(point.n for _, point in curves[_ALL_SESSIONS]),
        note=f"lines are 95% intervals; from turn {PLATEAU} on all sessions reach it; few sessions say little",
    )


SENTIMENT_TURNS_STUDY = Study(**declared("study", "sentiment_turns"), queries=QUERIES, function=sentiment_turns)


# -- First messages and recovery

_OPENINGS = (NEUTRAL, NEGATIVE, POSITIVE)


def sentiment_openings(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return no_labels(inputs)
    by_opening = {name: labels.estimate(partial(recovery, opening=name)) for name in _OPENINGS}
    several = {name: labels.estimate(partial(recovery, opening=name, several=True)) for name in _OPENINGS}
    opens = "sessions that open NEGATIVE"
    asked = (
        ("negative", "Sessions whose first message is NEGATIVE", labels.estimate(partial(_opens, opening=NEGATIVE)),
         "sessions whose first message is labelled"),
        ("recovery", "Of sessions that open NEGATIVE: with a POSITIVE message later", by_opening[NEGATIVE], opens),
        ("recovery_several", "The same, of sessions with a later message", several[NEGATIVE], opens),
        ("never", "Of sessions that open NEGATIVE: without a POSITIVE message later",
         labels.estimate(partial(_never, opening=NEGATIVE)), opens),
        ("neutral_recovery", "Of sessions that open NEUTRAL: with a POSITIVE message later", by_opening[NEUTRAL],
         "sessions that open NEUTRAL"),
    )  # fmt: skip
    findings = [
        labels.finding(estimate, f"sentiment_openings.{name}", title, of, unit="share of sessions")
        for name, title, estimate, of in asked
    ]
    limits = [
        *labels.limits(),
        "An opening labelled NEGATIVE is mostly a reported problem, not a mood: how sessions open stands for what they"
        " are about.",
        "Longer sessions have more occasions for praise: recovery is not held against the number of messages.",
    ]
    rows: list[list[Any]] = [
        [name, int(e.n), int(e.k), e.value, *e.ends, several[name].value, e.note]
        for name, e in by_opening.items()
        if e.n
    ]
    openings_rows = [
        e.mark(f"{name} ({e.n:,.0f})", f"{name}: {e.words('sessions')}") for name, e in by_opening.items() if e.n
    ]
    return Outcome(
        findings,
        [
            table(
                "sentiment_openings.recovery_by_opening",
                rows,
                n=sum(estimate.n for estimate in by_opening.values()),
                evidence=[estimate.counted for estimate in by_opening.values() if estimate.n],
            )
        ],
        [
            chart(
                "sentiment_openings.chart",
                openings_rows,
                dots(openings_rows, "share of sessions"),
                n=sum(estimate.n for estimate in by_opening.values()),
                fewest=2,
            )
        ],
        limits,
    )


def _never(conversation: Conversation, opening: str) -> Part:
    k, n = recovery(conversation, opening)
    return n - k, n


def _opens(conversation: Conversation, opening: str) -> Part:
    return int(conversation.opening == opening), int(conversation.opening is not None)


SENTIMENT_OPENINGS_STUDY = Study(
    **declared("study", "sentiment_openings"), queries=QUERIES, function=sentiment_openings
)


# -- After a negative message

_ALL_MESSAGES, _AFTER = "all messages", "after the first NEGATIVE"


def sentiment_after(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return no_labels(inputs)
    of = "labelled messages"
    estimates = [
        (name, value, labels.estimate(partial(count, value=value)))
        for value in (NEGATIVE, POSITIVE)
        for name, count in ((_ALL_MESSAGES, share), (_AFTER, after_negative))
    ]
    findings = [
        labels.finding(
            estimate,
            f"sentiment_after.{value.lower()}_{'base' if name == _ALL_MESSAGES else 'after'}",
            f"{value}: {name}",
            of if name == _ALL_MESSAGES else f"{of} behind it",
            unit="share of messages",
        )
        for name, value, estimate in estimates
    ]
    rows = [e.mark(name, f"{value}, {name}: {e.words()}", at=value) for name, value, e in estimates if e.n]
    before_and_after = chart(
        "sentiment_after.chart",
        rows if {row["name"] for row in rows} == {_ALL_MESSAGES, _AFTER} else [],
        intervals_by_position(rows, "label", "share of labelled messages", (_ALL_MESSAGES, _AFTER)),
        n=estimates[0][2].n,
    )
    limits = [
        *labels.limits(),
        "Messages after a negative one come from longer sessions than messages in general: part of the difference is"
        " theirs. The intervals are of each share, not of the difference.",
    ]
    return Outcome(findings, [], [before_and_after], limits)


SENTIMENT_AFTER_STUDY = Study(**declared("study", "sentiment_after"), queries=QUERIES, function=sentiment_after)


# -- By model

ENOUGH = 100
"""Labelled messages a model needs to be drawn (agent-traces)."""


def _of_model(model: str, conversation: Conversation) -> Part:
    return by_model(conversation).get(model, (0, 0))


def sentiment_models(inputs: Inputs) -> Outcome:
    labels = labelled(inputs)
    if labels is None:
        return no_labels(inputs)
    names = {model for conversation in labels.conversations for model in by_model(conversation)}
    models = {name: labels.estimate(partial(_of_model, name)) for name in names}
    models = dict(sorted(models.items(), key=lambda pair: (-pair[1].n, pair[0])))
    counted = [(c.session_id, len(c.labelled), len(c.labelled)) for c in labels.conversations]
    n = sum(of_session for _, _, of_session in counted)
    unknown = n - int(sum(estimate.n for estimate in models.values()))
    enough = [estimate for estimate in models.values() if estimate.n >= ENOUGH]
    left_out = f"; of {unknown:,} messages the model is not known" if unknown else ""
    dominated = "Of these, models with more than half of their messages in one place"
    asked = (
        ("count", f"Models with at least {ENOUGH} labelled messages", len(enough), f"{len(models):,} in all{left_out}"),
        ("dominated", dominated, sum(estimate.dominated for estimate in enough), ""),
    )
    rows: list[list[Any]] = [
        [
            *(name, int(estimate.n), estimate.known_places, estimate.largest, int(estimate.k), estimate.value),
            *(*estimate.ends, estimate.warning(ENOUGH, "messages")),
        ]
        for name, estimate in models.items()
    ]
    models_rows: list[Row] = []
    for name, estimate in models.items():
        if estimate.n >= ENOUGH:
            warning = f" ({w})" if (w := estimate.warning()) else ""
            tip = f"{name}: {estimate.words()}, {estimate.known_places} places{warning}"
            models_rows.append(estimate.mark(f"{name} ({estimate.n:,.0f})", tip))
    limits = [
        *labels.limits(),
        "Shares of negative messages by model are no leaderboard: people chose the model, the task and what to share,"
        " and a model that one frustrated person used looks frustrating.",
    ]
    models_enough = {name: estimate for name, estimate in models.items() if estimate.n >= ENOUGH}
    narrow = [name for name, estimate in models_enough.items() if estimate.dominated]
    if narrow:
        limits.append(
            f"{len(narrow)} of {len(models_enough)} models with {ENOUGH} labelled messages have more than half of them"
            " in one place."
        )
    return Outcome(
        [
            labels.finding(
                count(value, n, evidence=counted),
                f"sentiment_models.{name}",
                title,
                "labelled messages",
                note,
                unit="models",
            )
            for name, title, value, note in asked
        ],
        [
            table(
                "sentiment_models.shares",
                rows,
                n=sum(estimate.n for estimate in models.values()),
                evidence=[estimate.counted for estimate in models.values()],
                note="A message belongs to the model of the last answer before it, a first message to that of the first"
                f" answer. Few: under {ENOUGH} messages; one place: more than half of them.",
            )
        ],
        [
            chart(
                "sentiment_models.chart",
                models_rows,
                dots(models_rows, "share of labelled messages"),
                n=sum(estimate.n for estimate in models.values()),
                note=f"models with at least {ENOUGH} labelled messages (in brackets); {INTERVAL_NOTE}; no ranking",
            )
        ],
        limits,
    )


SENTIMENT_MODELS_STUDY = Study(**declared("study", "sentiment_models"), queries=QUERIES, function=sentiment_models)
