"""Sentiment of people's messages as labellers judged it, and agent-traces's findings over all sessions.

The values of a whole store are of one labeller only: the one with most labels, then with the youngest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agentsignals.model import Absent, Label
from agentsignals.signals import Measured, Row, signals_with
from agentsignals.stats import agent_traces as counts
from agentsignals.stats.agent_traces import LOW_N, NEGATIVE, NEUTRAL, POSITIVE, UNJUDGED, Conversation, Message, Part
from agentsignals.stats.agreement import agreement
from agentsignals.stats.intervals import wilson
from agentsignals.views.session import Evidence, SessionView

signal = signals_with(level="corpus", source="llm_judge", priority="P1", status="needs a judge", origin="agent-traces")

_NO_LABEL = Absent("backend_disabled", "no sentiment label")
ENOUGH = 100
"""Models with fewer messages are left out (agent-traces)."""
_Labelled = dict[str, dict[str, Any]]


@signal("corpus.sentiment_label", "enum", "label", level="turn")
def sentiment_label(view: SessionView, why: Evidence) -> list[Measured | Absent] | Absent:
    """POSITIVE, NEUTRAL or NEGATIVE: what the labeller said of a human message, with its `reason`.

    The judge's label of task sentiment for the turn, the youngest of the labeller.

    Pitfalls: A label is a labeller's output: two labellers agreed with a kappa of 0.43. Of several labellers the one
    with most labels in the session counts: `labeller`.
    """
    labels = _by_turn(view.judgements(counts.TASK))
    if not labels:
        return _NO_LABEL
    why.support([t for t in view.turns if t.turn in labels])
    values: list[Measured | Absent] = []
    for turn in view.turns:
        label = labels.get(turn.turn)
        if turn.kind in UNJUDGED:
            values.append(Absent("not_applicable", turn.kind))
        elif label is None:
            values.append(_NO_LABEL)
        elif (value := counts.label(label.value)) is None:
            values.append(Absent("parse_error", f"{label.labeller}: {label.value[:40]}"))
        else:
            said = {name: getattr(label, name) for name in ("labeller", "model", "prompt_hash", "reason")}
            values.append(Measured(value, {name: word for name, word in said.items() if word is not None}))
    return values


def _by_turn(labels: Iterable[Label]) -> dict[int, Label]:
    by_turn: dict[int, Label] = {}
    for label in labels:
        if label.turn is not None:
            before = by_turn.get(label.turn)
            if before is None or (label.created_at or 0) >= (before.created_at or 0):
                by_turn[label.turn] = label
    return by_turn


@signal("corpus.sentiment_messages", "obj", "labels by labeller", level="session", origin="agentsignals")
def sentiment_messages(view: SessionView, why: Evidence) -> _Labelled | Absent:
    """For each labeller the session's human messages: turn number, label, and the model each was said to.

    {labeller: {at: time of the last label in microseconds, messages: [[turn from 1, label or null, model]]}} over turns
    that are spoken and no command. The model is that of the last step before the turn, for turn 0 of the first.

    Pitfalls: Raw material of the findings over all sessions: turns are numbered from 1 there.
    """
    by_labeller: dict[str, list[Label]] = {}
    for label in view.session.labels:
        if label.task == counts.TASK and label.turn is not None:
            by_labeller.setdefault(label.labeller, []).append(label)
    if not by_labeller:
        return _NO_LABEL
    messages = [t for t in view.turns if t.kind not in UNJUDGED]
    why.support(messages)
    # The model of the last answer before each turn; for the first turn that of the first answer; else the session's.
    answers = [(s.seq, s.model) for s in view.steps if s.model]
    models: dict[int, str | None] = {}
    n_before = 0
    for turn in view.turns:
        while n_before < len(answers) and answers[n_before][0] < turn.seq:
            n_before += 1
        first = answers[0][1] if answers and not turn.turn else None
        models[turn.turn] = (answers[n_before - 1][1] if n_before else first) or view.session.model
    judged: _Labelled = {}
    for name in sorted(by_labeller):
        labels = _by_turn(by_labeller[name])
        values = {n: counts.label(label.value) for n, label in labels.items()}
        judged[name] = {
            "at": max(label.created_at or 0 for label in labels.values()),
            "messages": [[t.turn + 1, values.get(t.turn), models[t.turn]] for t in messages],
        }
    return judged


class _Judged:
    """The sessions that the chosen labeller judged, and the labeller; None where nobody judged any."""

    def __init__(self, sessions: Sequence[_Labelled]) -> None:
        judged_messages: dict[str, tuple[int, int]] = {}
        for session in sessions:
            for name, judgement in session.items():
                n, at = judged_messages.get(name, (0, 0))
                n += sum(value is not None for _, value, _ in judgement["messages"])
                judged_messages[name] = n, max(at, judgement["at"])
        self.labeller = chosen = counts.main_labeller(judged_messages)
        judged = (
            [session[chosen]["messages"] for session in sessions if chosen in session] if chosen is not None else []
        )
        self.conversations = [Conversation("", [Message(*m) for m in messages]) for messages in judged]

    def total(self, count: Callable[..., Part], *args: Any, **options: Any) -> Part:
        """Sum what is counted in each conversation."""
        return counts.total(count(conversation, *args, **options) for conversation in self.conversations)

    def ratio(self, part: Part, **detail: Any) -> Measured | Absent:
        """Return a share with Wilson's interval and its labeller."""
        k, n = part
        if self.labeller is None:
            return _NO_LABEL
        if not n:
            return Absent("not_computable", "zero_denominator")
        low, high = wilson(k, n) or (None, None)
        return Measured(k / n, {"num": k, "den": n, "ci": [low, high], "labeller": self.labeller, **detail})


def _of(part: Part) -> float | None:
    return part[0] / part[1] if part[1] else None


@signal("corpus.neutral_share", "float", "ratio")
def neutral_share(sentiment_messages: Sequence[_Labelled]) -> Measured | Absent:
    """NEUTRAL messages / labelled messages; `neg_share` and `pos_share` are the others'.

    Pitfalls: Two contributors wrote three in four messages of the published data: whose sessions these are tells.
    """
    judged = _Judged(sentiment_messages)
    neg, pos, neutral = (judged.total(counts.share, v) for v in (NEGATIVE, POSITIVE, NEUTRAL))
    return judged.ratio(neutral, neg_share=_of(neg), pos_share=_of(pos))


@signal("corpus.pure_neutral_session_share", "float", "ratio")
def pure_neutral_session_share(sentiment_messages: Sequence[_Labelled]) -> Measured | Absent:
    """Sessions with neither a POSITIVE nor a NEGATIVE message / sessions with a label; neutral as far as they were
    labelled, with messages that were not, they are left out (`n_excluded`).

    Pitfalls: Grows as sessions get shorter.
    """
    judged = _Judged(sentiment_messages)
    parts = [counts.pure_neutral(conversation) for conversation in judged.conversations]
    return judged.ratio(counts.total(p for p in parts if p is not None), n_excluded=parts.count(None))


class Point(Row, kw_only=True):
    """A point of the curve; the last `turn` stands for itself and all later ones."""

    turn: int
    n: int
    neg: int
    rate: float | None
    ci_low: float | None
    ci_high: float | None
    low_n: bool


@signal("corpus.neg_by_turn_curve[]", "list[obj]", "points")
def neg_by_turn_curve(sentiment_messages: Sequence[_Labelled]) -> Measured | Absent:
    """NEGATIVE share of turns 1 to 10, and of all later ones (turn 11) together; `plateau` is that of turn 5 on.

    Pitfalls: Later turns are turns of longer sessions: `cohort` is the same curve of sessions that reach turn 5.
    """
    judged = _Judged(sentiment_messages)
    if judged.labeller is None:
        return _NO_LABEL
    plateau = judged.total(counts.negative_between, counts.PLATEAU, float("inf"))
    cohort = [{"turn": p.turn, "n": p.n, "neg": p.neg, "rate": p.rate} for p in _curve(judged, cohort=True)]
    detail = {"plateau": _of(plateau), "plateau_n": plateau[1], "cohort": cohort, "labeller": judged.labeller}
    return Measured(_curve(judged), detail)


def _curve(judged: _Judged, *, cohort: bool = False) -> list[Point]:
    points = []
    for first, last in counts.bands():
        k, n = part = judged.total(counts.negative_between, first, last, cohort=cohort)
        low, high = wilson(k, n) or (None, None)
        points.append(Point(turn=first, n=n, neg=k, rate=_of(part), ci_low=low, ci_high=high, low_n=n < LOW_N))
    return points


@signal("corpus.neg_pct_turn5", "float", "ratio")
def neg_pct_turn5(sentiment_messages: Sequence[_Labelled]) -> Measured | Absent:
    """NEGATIVE share of the messages that are their session's fifth human turn.

    Pitfalls: Only longer sessions reach turn 5: part of the rise from turn 1 is other sessions.
    """
    judged = _Judged(sentiment_messages)
    part = judged.total(counts.negative_between, counts.PLATEAU, counts.PLATEAU)
    if judged.labeller is not None and not part[1]:
        return Absent("not_computable", "no session reaches turn 5")
    return judged.ratio(part, n=part[1])


@signal("corpus.recovery_rate", "float", "ratio")
def recovery_rate(sentiment_messages: Sequence[_Labelled]) -> Measured | Absent:
    """Of the sessions whose first turn is NEGATIVE, those with a POSITIVE message later; `multi_turn` leaves out those
    of one message, `neutral_first` is the same of NEUTRAL openings.

    Pitfalls: Openings labelled NEGATIVE are mostly bug reports: a proxy for the task, not for a mood.
    """
    judged = _Judged(sentiment_messages)
    negative, neutral = (judged.total(counts.recovery, opening) for opening in (NEGATIVE, NEUTRAL))
    several = judged.total(counts.recovery, NEGATIVE, several=True)
    return judged.ratio(negative, multi_turn=_of(several), neutral_first=_of(neutral), neutral_n=neutral[1])


@signal("corpus.post_negative_shift", "obj", "ratios")
def post_negative_shift(sentiment_messages: Sequence[_Labelled]) -> Measured | Absent:
    """NEGATIVE and POSITIVE shares of all messages, and of messages after a session's first NEGATIVE one, without that
    message and without sessions that start with it.

    Pitfalls: Louder, not only darker; and `after` is of longer sessions than `base`.
    """
    judged = _Judged(sentiment_messages)
    if judged.labeller is None:
        return _NO_LABEL
    shares = {
        f"{name}_{when}": judged.total(count, label)
        for name, label in (("neg", NEGATIVE), ("pos", POSITIVE))
        for when, count in (("base", counts.share), ("after", counts.after_negative))
    }
    detail = {"n_base": shares["neg_base"][1], "n_after": shares["neg_after"][1], "labeller": judged.labeller}
    return Measured({name: _of(part) for name, part in shares.items()}, detail)


class OfModel(Row):
    """A model's row; `ci` is Wilson's interval."""

    model: str
    n: int
    neg_rate: float
    ci: list[float]


@signal("corpus.neg_share_by_model[]", "list[obj]", "rows", priority="P2")
def neg_share_by_model(sentiment_messages: Sequence[_Labelled]) -> Measured | Absent:
    """NEGATIVE share of the messages said to each model, of models with at least 100; the lowest first.

    Pitfalls: No leaderboard: people chose the model, the task and whether to share the session.
    """
    judged = _Judged(sentiment_messages)
    if judged.labeller is None:
        return _NO_LABEL
    models: dict[str, list[Part]] = {}
    for conversation in judged.conversations:
        for model, part in counts.by_model(conversation).items():
            models.setdefault(model, []).append(part)
    totals = {model: counts.total(parts) for model, parts in models.items()}
    rows = [OfModel(model, n, k / n, list(wilson(k, n) or ())) for model, (k, n) in totals.items() if n >= ENOUGH]
    rows.sort(key=lambda row: (row.neg_rate, row.model))
    return Measured(rows, {"models": len(models), "hidden": len(models) - len(rows), "labeller": judged.labeller})


@signal("corpus.labeller_agreement", "obj", "stats", source="derived", priority="P2")
def labeller_agreement(sentiment_messages: Sequence[_Labelled]) -> Measured | Absent:
    """Raw agreement and Cohen's kappa of two labellers on the messages both labelled, with the confusion matrix: the
    labeller with the newest labels (rows) against the one who labelled most of the same messages (columns).

    Pitfalls: Where most is neutral, chance agrees too: `chance` was 0.62 in the published data.
    """
    labeller = _Judged(sentiment_messages).labeller
    shared: dict[str, list[tuple[str, str]]] = {}
    for session in sentiment_messages:
        labelled = {turn: value for turn, value, _ in session[labeller]["messages"]} if labeller in session else {}
        for name in session.keys() - {labeller}:
            pairs = [(labelled.get(turn), value) for turn, value, _ in session[name]["messages"]]
            shared.setdefault(name, []).extend((a, b) for a, b in pairs if a and b)
    other = min(shared, key=lambda name: (-len(shared[name]), name), default=None)
    if labeller is None or other is None:
        return Absent("backend_disabled", "fewer than 2 labellers")
    agreed = agreement(shared[other], (NEGATIVE, NEUTRAL, POSITIVE))
    if agreed is None:
        return Absent("not_computable", "no message has labels of both")
    value = {"agreement": agreed.agreement, "kappa": agreed.kappa, "n": agreed.n, "confusion": agreed.confusion}
    return Measured(value, {"chance": agreed.chance, "labellers": [labeller, other]})
