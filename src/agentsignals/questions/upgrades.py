"""Compares sessions before and after a change of an agent's version or model, within projects.

Each first session of a version or model is a change. The nearest sessions before and after it are compared in seven
measures, within strata of sessions that are alike. All comparisons of a store share one error rate
(docs/upgrades.md has the measured one).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property, partial
from itertools import compress, groupby, islice, pairwise
from math import exp, fsum, log
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.model.prices import same_models
from agentsignals.questions.estimates import ranked
from agentsignals.questions.question import Inputs, Kind, times
from agentsignals.questions.sql import BOUND, CALLED, FACTS, LOOPS, LOST, OBJECTIONS, read_queries
from agentsignals.stats.intervals import Interval
from agentsignals.stats.paired import FEWEST_OF_A_SERIES, Stratified, holm, stratified
from agentsignals.stats.validation import HALF, figures_of

QUERIES = {
    **read_queries(__file__)["upgrades"],
    "sessions": FACTS, "losses": LOST, "turns": OBJECTIONS, "calls": CALLED, "runs": LOOPS,
}  # fmt: skip
SLICED = frozenset(("sessions", "calls", "edited", "losses", "rewinds", "runs", "turns"))
FEWEST, MOST = FEWEST_OF_A_SERIES, 60
"""Comparable sessions on either side of a change: fewer say nothing, and more are of another time."""
FEWEST_DAYS = 3
"""Days of them on either side: sessions of one day and project are alike."""
ERROR_RATE = 0.05
"""Chance that a store in which nothing changed has a change that is said (this project's choice)."""
CLEARLY = 7.35
"""Least gain of the squared t at a clearly better day: the 95 % point of the likelihood ratio of a moment
that was searched for (Hansen 2000)."""
Axis = Literal["version", "model"]
_TOO_FEW = f"fewer than {FEWEST} alike sessions, or {FEWEST_DAYS} days of them, on a side"
_NUMBERED = re.compile(r"v?(\d+(?:\.\d+)+)(?:[-+.].*)?")
"""A version that is a number, and not a hash or a name."""


class Metric(NamedTuple):
    """A measure of a session. Higher is worse."""

    name: str
    kind: Kind
    of: str
    """The sentence's subject, with the share or amount in braces: `{} of tool calls fail`."""
    unit: str
    """Unit of the excess."""

    @property
    def is_share(self) -> bool:
        return self.kind == "share"


METRICS = (
    Metric("failed-calls", "share", "{} of tool calls fail", "failed calls"),
    Metric("loops", "share", "{} of tool calls repeat an equal failure", "calls"),
    Metric("cost", "usd", "a prompt costs {}", "USD"),
    Metric("cache-misses", "share", "{} of the input is sent again after a cache miss", "tokens"),
    Metric("pushback", "share", "you object to {} of the agent's answers", "prompts"),
    Metric("rewinds", "share", "you go back behind {} of your prompts", "rewinds"),
    Metric("first-edit", "seconds", "the first edit comes after {}", "hours"),
)


class Change(Struct, frozen=True, kw_only=True):
    """One measure before and after one change."""

    axis: Axis
    agent: str
    name: str
    """The version or model."""
    taken_with: tuple[str, ...] = ()
    """Later versions of too few sessions, which are compared together with it."""
    former: str
    """The version just before; the model of most sessions before."""
    day: datetime
    """Start of its first session."""
    metric: str
    n_before: int = 0
    n_after: int = 0
    left_out: int = 0
    """Sessions around the change that no session of the other side is like."""
    before: float | None = None
    after: float | None = None
    """Means of shares; geometric means of amounts. None where it could not be compared."""
    interval: Interval | None = None
    """95 % interval of `after` less `before`; of amounts, of their ratio."""
    absent: str = ""
    """Why it could not be compared."""
    excess: float = 0.0
    """Surplus (or saving, below 0) of the sessions after it, in the measure's unit."""
    share: float = 0.0
    """Share of that in the total of all sessions."""
    p: float | None = None
    q: float | None = None
    """p adjusted for all comparisons of the store (Holm)."""
    is_said: bool = False
    """Sure, and the surest of the changes around it."""
    also_changed: str = ""
    """Model or version that changed with it, in more than half of the compared sessions."""
    sessions_before: tuple[str, ...] = ()
    sessions_after: tuple[str, ...] = ()


class Value(NamedTuple):
    """A measure of a session."""

    value: float
    """Share, or logarithm of an amount."""
    n: float
    """Number of things that the share or amount is of."""


class MeasuredSession(Struct, frozen=True, dict=True):
    """A session with its measures, by name."""

    id: str
    agent: str
    version: str | None
    model: str | None
    place: Hashable
    started: datetime
    has_edits: bool
    measure: Callable[[], Mapping[str, Value]]
    """Called when the values are first read: few sessions are near a change."""

    @cached_property
    def values(self) -> Mapping[str, Value]:
        return self.measure()


_Total = Callable[[Metric], float]
"""A measure over all sessions."""


def changes(inputs: Inputs) -> list[Change]:
    """Return every comparison of the store, also those that could not be made, in order of time."""
    return compared(measured(inputs))


def why_none(made: Sequence[Change]) -> str:
    """Return why comparisons could not be made, each reason with their number; empty if all could."""
    if not made:
        return f"no version or model has {FEWEST} sessions with a time before it and {FEWEST} since"
    reasons = Counter(change.absent for change in made if change.absent)
    return "; ".join(f"{why} ({times(n, 'comparison')})" for why, n in ranked(reasons))


def compared(sessions: Sequence[MeasuredSession]) -> list[Change]:
    """Return every comparison of these sessions, with one error rate over all."""

    @cache
    def total(metric: Metric) -> float:
        values = [session.values[metric.name] for session in sessions if metric.name in session.values]
        return fsum((value if metric.is_share else exp(value)) * n for value, n in values)

    made: list[Change] = []
    for _, of in groupby(sorted(sessions, key=attrgetter("agent", "started", "id")), attrgetter("agent")):
        series = list(of)
        for change, before, after in (*_versions(series), *_models(series)):
            made += [_compared(change, metric, before, after, total) for metric in METRICS]
    tested = [n for n, change in enumerate(made) if change.p is not None]
    for n, q in zip(tested, holm([made[n].p or 0.0 for n in tested]), strict=True):
        made[n] = replace(made[n], q=q)
    by_id = {session.id: session for session in sessions}
    for n in sorted((n for n in tested if is_sure(made[n])), key=lambda n: made[n].p or 0.0):
        placed = _placed(made[n], by_id, total)
        if placed is not None and not any(other.is_said and _is_same(other, placed) for other in made):
            made[n] = replace(placed, is_said=True)
    return sorted(made, key=lambda change: (change.day, change.agent, change.axis))


def is_sure(change: Change) -> bool:
    """Return whether a comparison is below the error rate, and its interval leaves out no change."""
    low, high = change.interval or (0.0, 0.0)
    none = 0.0 if _METRIC[change.metric].is_share else 1.0
    return change.q is not None and change.q <= ERROR_RATE and not low <= none <= high


def _placed(change: Change, by_id: Mapping[str, MeasuredSession], total: _Total) -> Change | None:
    """Return a sure change at the version that parts the compared sessions best, of those taken together. None where
    another day parts them clearly better: something changed, but not with a version or model."""
    held = [by_id[id_] for id_ in (*change.sessions_before, *change.sessions_after)]

    def parting(is_after: Sequence[bool]) -> float:
        found = _stratified(change, held, is_after)
        return found.t * found.t if _is_enough(found) else 0.0

    starts = {change.name: len(change.sessions_before)}
    for at in range(starts[change.name], len(held)):
        if held[at].version in change.taken_with:
            starts.setdefault(held[at].version or "", at)
    of_versions = {name: parting([at >= start for at in range(len(held))]) for name, start in starts.items()}
    days = sorted({session.started.date() for session in held})
    best_day = max((parting([s.started.date() >= day for s in held]) for day in days[1:]), default=0.0)
    name = max(of_versions, key=lambda name: of_versions[name])
    if of_versions[name] < best_day - CLEARLY:
        return None
    if name == change.name:
        return change
    start, later = starts[name], change.taken_with.index(name)
    moved = replace(
        change, name=name, taken_with=change.taken_with[later + 1 :], former=held[start - 1].version or "",
        day=held[start].started,
    )  # fmt: skip
    moved = _compared(moved, _METRIC[change.metric], held[:start], held[start:], total)
    moved = replace(moved, p=change.p, q=change.q, left_out=change.left_out)
    return moved if is_sure(moved) else None


_METRIC = {metric.name: metric for metric in METRICS}


def _is_same(one: Change, other: Change) -> bool:
    """Return whether two changes compare sessions of each other's, so that one effect makes both."""
    return (
        one.metric == other.metric
        and one.agent == other.agent
        and not {*one.sessions_before, *one.sessions_after}.isdisjoint({*other.sessions_before, *other.sessions_after})
    )


def measured(inputs: Inputs) -> list[MeasuredSession]:
    """Return the sessions with a time and a version or model, with their measures."""
    sessions, calls = inputs.many["sessions"], inputs.many["calls"]
    ids, *counts = calls.columns("session_id", "failed", "answered")
    answered = dict(zip(ids, zip(*counts, strict=True), strict=True))
    (looping,) = inputs.many["runs"].columns("session_id")
    loops = Counter(looping)
    lost: Counter[str] = Counter()
    for session_id, thread, tokens in zip(
        *inputs.many["losses"].columns("session_id", "thread", "tokens"), strict=True
    ):
        if thread == "main":
            lost[session_id] += tokens
    rewinds = dict(zip(*inputs.many["rewinds"].columns("session_id", "n"), strict=True))
    figures = [f for f in figures_of("chat.pushback_type") if f.value != "non_pushback"]
    right = {f.value for f in figures if f.precision is not None and f.precision >= HALF}
    judged: Counter[str] = Counter()
    objections: Counter[str] = Counter()
    for session_id, label, n in zip(*inputs.many["turns"].columns("session_id", "label", "n"), strict=True):
        judged[session_id] += n
        if label in right:
            objections[session_id] += n
    edited = dict(zip(*inputs.many["edited"].columns("session_id", "seconds"), strict=True))
    seen = [not is_subagents for is_subagents in sessions.columns("is_subagents")[0]]
    facts, amounts = (
        list(compress(zip(*sessions.columns(*columns), strict=True), seen))
        for columns in (
            ("session_id", "agent", "agent_version", "model", "place", "started_at", "n_edits"),
            ("n_prompts", "sent_tokens", "logs_rewinds", "main_cost_usd", BOUND, "unpriced"),
        )
    )
    logged = Counter(model for _, _, _, model, *_ in facts if model)
    same = same_models(logged)
    names = {same[model]: model for model, _ in reversed(logged.most_common())}  # as most sessions spell it

    def measure(key: str, amounts: tuple[Any, ...]) -> Mapping[str, Value]:
        n_prompts, sent, logs_rewinds, usd, *bounds = amounts
        failed, n = answered.get(key, (0, 0))
        seconds, back = edited.get(key) or 0, rewinds.get(key, 0)
        parts = {
            "failed-calls": (failed, n),
            "loops": (loops[key], n),
            "cost": (usd, n_prompts if (usd or 0) > 0 and bounds == [None, None] else 0),
            "cache-misses": (lost[key], sent),
            "pushback": (objections[key], judged[key]),
            "rewinds": (back, n_prompts + back if logs_rewinds or back else 0),
            "first-edit": (seconds, int(seconds > 0)),
        }
        held = ((metric, *parts[metric.name]) for metric in METRICS if parts[metric.name][1])
        return {m.name: Value(min(1.0, k / n) if m.is_share else log(k / n), n) for m, k, n in held}

    return [
        MeasuredSession(
            key, agent, version, names[same[model]] if model else None, place, started, bool(n_edits),
            partial(measure, key, of),
        )
        for (key, agent, version, model, place, started, n_edits), of in zip(facts, amounts, strict=True)
        if started is not None
    ]  # fmt: skip


_VERSION, _STARTED = attrgetter("version"), attrgetter("started")
_Sides = tuple[Change, Sequence[MeasuredSession], Sequence[MeasuredSession]]


def _versions(series: Sequence[MeasuredSession]) -> Iterator[_Sides]:
    """Yield the changes of an agent's version, each with the nearest sessions of former versions and of it and later
    ones. `series`: an agent's sessions in order of time.

    Versions that are numbers are in their order, so an old one on a second machine is before; others in order of time.
    A version of too few sessions is taken together with those after it.
    """
    held = [s for s in series if s.version]
    order: dict[str, Any] = {name: at for at, name in enumerate(dict.fromkeys(map(_VERSION, held)))}
    numbers = [found[1] for name in order if (found := _NUMBERED.fullmatch(name))]
    if len(numbers) == len(order):  # equal numbers in order of time
        order = {
            name: (tuple(map(int, number.split("."))), at)
            for (name, at), number in zip(order.items(), numbers, strict=True)
        }
    held.sort(key=lambda s: order[_VERSION(s)])  # of one version they are in order of time
    starts, at = [0], 0
    for _, of in groupby(map(_VERSION, held)):
        if at - starts[-1] >= FEWEST and at <= len(held) - FEWEST:
            starts.append(at)
        at += len(list(of))
    for start, end in pairwise([*starts[1:], len(held)]):
        taken = tuple(dict.fromkeys(map(_VERSION, held[start:end])))
        change = Change(
            axis="version", agent=held[start].agent, name=taken[0], taken_with=taken[1:],
            former=held[start - 1].version or "", day=min(map(_STARTED, held[start:end])), metric="",
        )  # fmt: skip
        yield change, held[max(0, start - MOST) : start], held[start : start + MOST]


def _models(series: Sequence[MeasuredSession]) -> Iterator[_Sides]:
    """Yield the changes of an agent's model: the first sessions of a model, and the nearest with models seen before."""
    held = [s for s in series if s.model]
    of_model: dict[str, list[MeasuredSession]] = {}
    for session in held:
        of_model.setdefault(session.model or "", []).append(session)
    former: list[str] = []
    for model, of in of_model.items():
        after = of[:MOST]
        back = reversed(held[: bisect_left(held, after[-1].started, key=_STARTED)])
        before = list(islice((s for s in back if s.model in former), MOST))[::-1]
        former.append(model)
        if min(len(before), len(after)) >= FEWEST:
            earlier = Counter(s.model or "" for s in before).most_common(1)[0][0]
            change = Change(axis="model", agent=of[0].agent, name=model, former=earlier, day=of[0].started, metric="")
            yield change, before, after


def _compared(
    change: Change, metric: Metric, before: Sequence[MeasuredSession], after: Sequence[MeasuredSession], total: _Total
) -> Change:
    """Compare a measure in the sessions before and after a change, within projects and kinds of session."""
    change = replace(change, metric=metric.name)
    sides = [[s for s in side if metric.name in s.values] for side in (before, after)]
    if not all(sides):
        return replace(change, absent="the logs lack it" if not any(sides) else "the logs of one side lack it")
    both = {_stratum(change, s) for s in sides[0]} & {_stratum(change, s) for s in sides[1]}
    kept = [[s for s in side if _stratum(change, s) in both and s.place is not None] for side in sides]
    days = [{(s.place, s.started.date()) for s in side} for side in kept]
    left_out = len(before) + len(after) - sum(map(len, kept))
    change = replace(change, n_before=len(kept[0]), n_after=len(kept[1]), left_out=left_out)
    found = None
    if min(map(len, days)) >= FEWEST_DAYS:
        found = _stratified(change, [*kept[0], *kept[1]], [False] * len(kept[0]) + [True] * len(kept[1]))
    if found is None or not _is_enough(found):
        return replace(change, absent=_TOO_FEW)
    is_constant = len({s.values[metric.name].value for side in kept for s in side}) == 1  # nothing to test
    write: Callable[[float], float] = float if metric.is_share else exp
    ns = fsum(s.values[metric.name].n for s in kept[1])
    excess = (write(found.after) - write(found.before)) * ns
    is_version = change.axis == "version"
    others = [(s.model if is_version else s.version) for s in kept[1]]
    known = {(s.model if is_version else s.version) for s in kept[0]}
    new = sum(other is not None and other not in known for other in others)
    return replace(
        change,
        before=write(found.before),
        after=write(found.after),
        interval=None if found.interval is None else (write(found.interval[0]), write(found.interval[1])),
        excess=excess / 3600 if metric.kind == "seconds" else excess,
        share=min(1.0, abs(excess) / of_all) if (of_all := total(metric)) else 0.0,
        p=None if is_constant else found.p,
        also_changed=("the model" if is_version else "the agent's version") if new > len(others) / 2 else "",
        sessions_before=tuple(s.id for s in kept[0]),
        sessions_after=tuple(s.id for s in kept[1]),
    )


def _stratum(change: Change, session: MeasuredSession) -> Hashable:
    """Return the facts that have to be alike: project, edits or none, and at a change of version the model."""
    return session.place, session.has_edits, session.model if change.axis == "version" else None


def _stratified(change: Change, sessions: Sequence[MeasuredSession], is_after: Sequence[bool]) -> Stratified | None:
    return stratified(
        [s.values[change.metric].value for s in sessions],
        is_after,
        [_stratum(change, s) for s in sessions],
        [(s.place, s.started.date(), side) for s, side in zip(sessions, is_after, strict=True)],
    )


def _is_enough(found: Stratified | None) -> TypeGuard[Stratified]:
    return found is not None and found.interval is not None and min(found.n_before, found.n_after) >= FEWEST
