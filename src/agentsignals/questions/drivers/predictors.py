"""Which signals may go with an outcome, and which can't but by being it: told by what they declare to read."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import fsum
from statistics import median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import UsageError
from agentsignals.questions.compare.attempts import decoded, is_number
from agentsignals.questions.question import Row
from agentsignals.signals import Signal
from agentsignals.signals.catalog import by_path, catalogue
from agentsignals.stats.intervals import FEWEST_CLUSTERS, SEED, share_interval
from agentsignals.stats.paired import sign_flip

_NUMERIC = ("int", "float", "bool")
GOLD = "the gold patch"


class Excluded(Struct, frozen=True):
    """A signal that foretells nothing here, and why."""

    signal: str
    because: str


class Predictor(Struct, frozen=True):
    """A signal's values by session."""

    signal: str
    values: dict[str, float]
    same_as: tuple[str, ...] = ()
    """Signals with the same value at every attempt: they are asked once."""


def eligible(outcome: str, keep: Collection[str] = ()) -> tuple[list[str], list[Excluded]]:
    """Paths of the signals of attempts that may foretell `outcome`, and the others. `keep`: signals that are let in
    although they read the gold patch. UsageError of one there that reads the verdict, or is none of attempts."""
    aside = _kin(by_path(outcome))
    paths: list[str] = []
    excluded: list[Excluded] = []
    kept = {by_path(name).path for name in keep}
    for signal in sorted(catalogue().values(), key=lambda s: s.path):
        if signal.context == "product" or signal.level not in ("attempt", "session"):
            continue
        because = _because(signal, outcome, aside)
        if signal.path in kept and not because.startswith(f"reads {GOLD}"):
            kept.discard(signal.path)
            if because:
                raise UsageError(f"{signal.path} can't be kept: it {because}.", "Leave it out of --keep.")
        if because and signal.path not in kept:
            excluded.append(Excluded(signal.path, because))
        else:
            kept.discard(signal.path)
            paths.append(signal.path)
    if kept:
        raise UsageError(
            f"{', '.join(sorted(kept))}: no signal of attempts.", "`agentsignals inventory --context eval`"
        )
    return paths, excluded


def _because(signal: Signal, outcome: str, aside: Collection[str]) -> str:
    if signal.path == outcome:
        return "is the outcome"
    if read := hindsight_of(signal):
        return f"reads {read}"
    if signal.path in aside:
        return f"makes up {outcome}, or is made of it"
    if signal.path.startswith("treatment.") or signal.path == "loop.condition":
        return "is what the attempt was to work under"
    return "" if signal.type in _NUMERIC else "is no number and no yes or no"


def hindsight_of(signal: Signal) -> str:
    """What the signal, or one that it needs, reads of how the attempt was judged; empty: nothing. Such a signal can't
    foretell an outcome, nor be what brought it about."""
    if signal.hindsight:
        return signal.hindsight
    for need in (catalogue()[name] for name in signal.needs):
        if read := hindsight_of(need):
            return f"{read}, through {need.path}" if ", through" not in read else read
    return ""


def _kin(outcome: Signal) -> set[str]:
    """What the outcome is made of, and what is made of it."""
    signals = catalogue()

    def below(signal: Signal) -> Iterator[str]:
        for name in signal.needs:
            yield signals[name].path
            yield from below(signals[name])

    return {*below(outcome), *(s.path for s in signals.values() if outcome.path in set(below(s)))}


def signals_query(paths: Sequence[str], sessions: str) -> str:
    """SQL for the values of signals. `sessions`: SQL whose rows are the ids of sessions."""
    wanted = ", ".join(f"'{path}'" for path in paths)
    return (
        "SELECT session_id, signal, value FROM signals"
        f" WHERE level = 'attempt' AND absent IS NULL AND signal IN ({wanted}) AND session_id IN ({sessions})"
    )


def predictors(
    paths: Sequence[str], rows: Sequence[Row], sessions: Collection[str]
) -> tuple[list[Predictor], list[Excluded]]:
    """The signals of `paths` that differ between these sessions, and those that have no value, or one only."""
    wanted = set(sessions)
    values: dict[str, dict[str, float]] = {path: {} for path in paths}
    for row in rows:
        value = decoded(row["value"])
        if row["session_id"] in wanted and row["signal"] in values and is_number(value):
            values[row["signal"]][row["session_id"]] = float(value)
    excluded: list[Excluded] = []
    alike: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for path, by_session in values.items():
        if len(set(by_session.values())) > 1:
            alike.setdefault(tuple(sorted(by_session.items())), []).append(path)
        else:
            excluded.append(Excluded(path, "is the same at every attempt" if by_session else "has no value here"))
    kept = [Predictor(first, values[first], tuple(others)) for first, *others in alike.values()]
    return kept, excluded


def correlated(columns: Mapping[str, Mapping[str, float]], least: float) -> dict[str, dict[str, float]]:
    """Of each column (values by session, already less their stratum's mean) those whose correlation with it is `least`
    or more, either way, over the sessions that have both; strongest first."""
    names = list(columns)
    near: dict[str, dict[str, float]] = {name: {} for name in names}
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            rho = _correlation(columns[first], columns[second])
            if abs(rho) >= least:
                near[first][second] = near[second][first] = rho
    return {name: dict(sorted(others.items(), key=lambda pair: -abs(pair[1]))) for name, others in near.items()}


def _correlation(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    both = first.keys() & second.keys()
    a, b = [first[s] for s in both], [second[s] for s in both]
    if len(both) < _FEWEST:
        return 0.0
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    product = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    scale = sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)
    return product / scale**0.5 if scale > 0 else 0.0


_FEWEST = 30
"""Sessions with both values: of fewer a correlation of 0.7 is hardly told from one of 0.4."""


# Solved against failed attempts of one task: which of the two had more of a signal (design/statistics.md#drivers).
#
# Within a stratum (a task under one treatment; or a task, with each treatment's mean taken off) every solved
# attempt is held against every failed one. Pure and deterministic.

Within = Literal["treatment", "task"]
"""What the attempts of a pair share: task and treatment, or the task alone."""
_ROUNDS, _STILL = 200, 1e-9


class VerifiedAttempt(Struct, frozen=True, gc=False, kw_only=True):
    """A first attempt whose outcome is known."""

    session_id: str
    task: str
    treatment: str
    solved: bool


class Contrast(Struct, frozen=True, kw_only=True):
    """A signal at solved and failed attempts of the same task. What it shows is a correlation."""

    signal: str
    superiority: float | None
    """How often a solved attempt had more of it than a failed one of its stratum, ties counting half: 0.5 where
    neither goes with the other (probability of superiority, Grissom 1994). None without a pair."""
    low: float | None = None
    high: float | None = None
    """At 95 percent, over tasks; None under six."""
    p: float | None = None
    """Two-sided, by flips of whole tasks."""
    q: float | None = None
    """The same, adjusted for the number of signals (Benjamini and Hochberg); None where a signal has no p."""
    tasks: int = 0
    """Those with a pair."""
    solved: int = 0
    failed: int = 0
    """Attempts in a pair."""
    solved_median: float | None = None
    failed_median: float | None = None
    absent: int = 0
    """Attempts without a value of it."""
    same_as: tuple[str, ...] = ()
    moves_with: dict[str, float] = {}
    """Signals that rise and fall with it within strata, with the correlation: which of them it is, data can't tell."""

    @property
    def goes_with(self) -> str:
        """`success` or `failure`, as its share of pairs says."""
        return "success" if (self.superiority or 0) > 1 / 2 else "failure"


def stratum(attempt: VerifiedAttempt, within: Within) -> str:
    return f"{attempt.task}\r{attempt.treatment}" if within == "treatment" else attempt.task


def mixed_tasks(attempts: Sequence[VerifiedAttempt], within: Within) -> int:
    """Tasks with a stratum in which something was solved and something failed."""
    seen: dict[str, set[bool]] = defaultdict(set)
    task_of: dict[str, str] = {}
    for attempt in attempts:
        name = stratum(attempt, within)
        seen[name].add(attempt.solved)
        task_of[name] = attempt.task
    return len({task_of[name] for name, outcomes in seen.items() if len(outcomes) > 1})


def contrast(signal: str, attempts: Sequence[VerifiedAttempt], values: Mapping[str, float], within: Within) -> Contrast:
    """The contrast of one signal, without q. `values` by session; attempts without one are counted, not guessed."""
    measured = [a for a in attempts if a.session_id in values]
    compared = values if within == "treatment" else adjusted(measured, values)
    strata: dict[str, list[VerifiedAttempt]] = defaultdict(list)
    for attempt in measured:
        strata[stratum(attempt, within)].append(attempt)
    by_task: dict[str, list[tuple[float, float]]] = defaultdict(list)
    pairs: dict[bool, list[float]] = {True: [], False: []}
    for group in strata.values():
        sides = {kind: [a.session_id for a in group if a.solved is kind] for kind in (True, False)}
        if not (sides[True] and sides[False]):
            continue
        won = _wins([compared[s] for s in sides[True]], sorted(compared[s] for s in sides[False]))
        # Pairs grow with the square of attempts, what they tell does not (van Elteren 1960).
        weight = 1 / len(group)
        by_task[group[0].task].append((won * weight, len(sides[True]) * len(sides[False]) * weight))
        for kind, sessions in sides.items():
            pairs[kind] += [values[s] for s in sessions]
    sums = [(fsum([k for k, _ in parts]), fsum([n for _, n in parts])) for parts in by_task.values()]
    absent = len(attempts) - len(measured)
    if not sums:
        return Contrast(signal=signal, superiority=None, absent=absent)
    enough = len(sums) >= FEWEST_CLUSTERS
    interval = share_interval(sums) if enough else None
    return Contrast(
        signal=signal,
        superiority=fsum([k for k, _ in sums]) / fsum([n for _, n in sums]),
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        p=sign_flip([k - n / 2 for k, n in sums]) if enough else None,
        tasks=len(sums),
        solved=len(pairs[True]),
        failed=len(pairs[False]),
        solved_median=median(pairs[True]),
        failed_median=median(pairs[False]),
        absent=absent,
    )


def _wins(solved: Sequence[float], failed: Sequence[float]) -> float:
    """Pairs in which the solved one had more; ties are halves. `failed` ascends."""
    return fsum((bisect_left(failed, v) + bisect_right(failed, v)) / 2 for v in solved)


def adjusted(attempts: Sequence[VerifiedAttempt], values: Mapping[str, float]) -> dict[str, float]:
    """The values' ranks, 0 to 1, less the means of their task and of their treatment (two-way fixed effects, by turns).

    Ranks, so that a few huge values say no more than others; rounded, so that what was equal is so again.
    """
    ascending = sorted(values[a.session_id] for a in attempts)
    last = max(1, len(ascending) - 1)
    current = [
        (bisect_left(ascending, v) + bisect_right(ascending, v) - 1) / 2 / last
        for v in (values[a.session_id] for a in attempts)
    ]
    groupings = [[a.task for a in attempts], [a.treatment for a in attempts]]
    for _ in range(_ROUNDS):
        moved = 0.0
        for keys in groupings:
            sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
            for key, value in zip(keys, current, strict=True):
                sums[key][0] += value
                sums[key][1] += 1
            means = {key: total / n for key, (total, n) in sums.items()}
            moved = max(moved, *(abs(mean) for mean in means.values())) if means else 0.0
            current = [value - means[key] for key, value in zip(keys, current, strict=True)]
        if moved < _STILL:
            break
    return {a.session_id: round(value, 7) for a, value in zip(attempts, current, strict=True)}


def centred(attempts: Sequence[VerifiedAttempt], values: Mapping[str, float], within: Within) -> dict[str, float]:
    """Values as they are compared, less their stratum's mean rank, of attempts that are not alone in their stratum:
    what correlations within strata are made of."""
    measured = [a for a in attempts if a.session_id in values]
    if within == "treatment":
        measured = [replace(a, task=stratum(a, within), treatment="") for a in measured]
    size = Counter(a.task for a in measured)
    ranks = adjusted(measured, values)
    return {a.session_id: ranks[a.session_id] for a in measured if size[a.task] > 1}


# Signals that nearly tell the outcome by themselves: more likely a copy of it than what brought it about.

FEWEST = 10
"""Solved, and failed, attempts below which chance alone comes near a copy."""
SUSPICIOUS_AUC = ((20, 0.9), (FEWEST, 0.95))
"""From so many of each on: no trait of a run that was measured before its verdict tells outcomes so well
(design/statistics.md#drivers)."""
_BINS = 12


class NearCopy(Struct, frozen=True):
    """A signal that is set aside because it tells solved from failed attempts almost by itself."""

    signal: str
    auc: float
    how: str
    """By its size, by which values it has (with being absent as one), or within tasks."""
    n: int


def enough_for_near_copies(attempts: Sequence[VerifiedAttempt]) -> bool:
    """Whether so many solved and failed that a near copy can be told from chance."""
    solved = sum(a.solved for a in attempts)
    return min(solved, len(attempts) - solved) >= FEWEST


def near_copy_of(signal: str, attempts: Sequence[VerifiedAttempt], values: Mapping[str, float]) -> NearCopy | None:
    """The signal as a near copy of the outcome; None where it is none, or too few attempts say so."""
    measured = [a for a in attempts if a.session_id in values]
    ways: list[tuple[float, str, int]] = []
    if enough_for_near_copies(measured):
        size = auc([values[a.session_id] for a in measured], [a.solved for a in measured])
        ways.append((max(size, 1 - size), "by its size", len(measured)))
        if (within := _within_tasks(measured, values)) is not None:
            ways.append((max(within, 1 - within), "by its size within tasks", len(measured)))
    if enough_for_near_copies(attempts):
        ways.append(
            (auc(_rates(attempts, values), [a.solved for a in attempts]), "by which values it has", len(attempts))
        )
    top = max(ways, default=None)
    return NearCopy(signal, *top) if top is not None and top[0] >= _suspicious(attempts) else None


def _suspicious(attempts: Sequence[VerifiedAttempt]) -> float:
    solved = sum(a.solved for a in attempts)
    least = min(solved, len(attempts) - solved)
    return next((bound for n, bound in SUSPICIOUS_AUC if least >= n), 1.0)


def auc(scores: Sequence[float], solved: Sequence[bool]) -> float:
    """The share of pairs of a solved and a failed attempt in which the solved one scores higher; ties are halves. There
    must be one of each."""
    failed = sorted(s for s, good in zip(scores, solved, strict=True) if not good)
    won = [
        (bisect_left(failed, s) + bisect_right(failed, s)) / 2 for s, good in zip(scores, solved, strict=True) if good
    ]
    return fsum(won) / (len(won) * len(failed))


def _within_tasks(measured: Sequence[VerifiedAttempt], values: Mapping[str, float]) -> float | None:
    """The same of pairs of one task, all pairs alike; None of fewer than ten tasks with a pair."""
    by_task: dict[str, list[VerifiedAttempt]] = defaultdict(list)
    for attempt in measured:
        by_task[attempt.task].append(attempt)
    mixed = [group for group in by_task.values() if len({a.solved for a in group}) > 1]
    if len(mixed) < FEWEST:
        return None
    shares = [auc([values[a.session_id] for a in group], [a.solved for a in group]) for group in mixed]
    return fsum(shares) / len(shares)


def _rates(attempts: Sequence[VerifiedAttempt], values: Mapping[str, float]) -> list[float]:
    """For each attempt how often others with its value (one of up to twelve, or ranges; absent is one) were solved,
    counted over the other half of the tasks: no attempt's score has its own outcome in it."""
    ascending = sorted(set(values.values()))
    edges = ascending if len(ascending) <= _BINS else [
        ascending[len(ascending) * n // _BINS] for n in range(_BINS)
    ]  # fmt: skip
    bins = {s: bisect_right(edges, v) for s, v in values.items()}
    names = sorted({a.task for a in attempts})
    random.Random(SEED).shuffle(names)  # noqa: S311  (draws, no secret; names in order may alternate as outcomes do)
    half = {task: n % 2 for n, task in enumerate(names)}
    counts: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for a in attempts:
        cell = counts[half[a.task], bins.get(a.session_id, 0)]
        cell[0] += a.solved
        cell[1] += 1
    base = sum(a.solved for a in attempts) / len(attempts)
    scores = []
    for a in attempts:
        solved, n = counts.get((1 - half[a.task], bins.get(a.session_id, 0)), (0, 0))
        scores.append((solved + base) / (n + 1))
    return scores


# What models foretell of held-out tasks, and from how many attempts on they are fitted.

FEWEST_TASKS = 20
"""Of fewer a fifth is under four tasks, and what is foretold of these says nothing."""
FEWEST_EACH = 20
"""Attempts solved, and failed."""
FOLDS, REPEATS = 5, 3


class Score(Struct, frozen=True, kw_only=True):
    """What was foretold of held-out tasks, against what came."""

    features: str
    model: str
    brier: float
    """Mean squared error of the probabilities; 0 is perfect."""
    auc: float | None
    """The mean over held-out folds, so that no fold's level is held against another's."""
    gain: float | None = None
    """How much lower the Brier score is than the best baseline's."""
    low: float | None = None
    high: float | None = None
    """Of the gain, at 95 percent, over tasks."""


class Importance(Struct, frozen=True, kw_only=True):
    """How much worse held-out outcomes are foretold where a signal's values are dealt out anew within strata."""

    signals: tuple[str, ...]
    """More than one where they move together: they are dealt out together."""
    model: str
    value: float
    """Rise of the Brier score."""
    low: float | None
    high: float | None
    """At 95 percent, over tasks."""


class Range(Struct, frozen=True):
    """Attempts of about one probability: a row of the reliability table."""

    foretold: float
    solved: float
    low: float | None
    high: float | None
    n: int


class Models(Struct, frozen=True, kw_only=True):
    """What the models say."""

    attempts: int
    tasks: int
    folds: int = FOLDS
    repeats: int = REPEATS
    best_baseline: str
    """What the gain is over: the baseline whose Brier score is lowest, chosen after a look, which favours it."""
    without_others: int
    """Attempts whose task nobody else tried: their difficulty is not there."""
    scores: list[Score]
    jointly: Importance | None
    """Of all signals at once, by the logistic regression: what they say beyond how hard the task is. None where too few
    strata are mixed."""
    importance: list[Importance]
    reliability: list[Range]
    """Of the logistic regression on baselines and signals."""

    @property
    def adds(self) -> bool:
        """Whether the signals foretell better than the best baseline: the whole interval says so."""
        return self.judged.low is not None and self.judged.low > 0

    @property
    def judged(self) -> Score:
        """The model that decides, chosen before a look: the logistic regression. Boosting is a second opinion."""
        return next(s for s in self.scores if s.gain is not None and s.model == "logistic")


def too_few(attempts: Sequence[VerifiedAttempt]) -> str:
    """Why no model is fitted; empty where it is."""
    tasks, solved = len({a.task for a in attempts}), sum(a.solved for a in attempts)
    if tasks < FEWEST_TASKS:
        return f"{tasks:,} tasks with a known outcome: models are fitted from {FEWEST_TASKS} on"
    least = min(solved, len(attempts) - solved)
    if least < FEWEST_EACH:
        return f"{solved:,} solved, {len(attempts) - solved:,} failed: models are fitted from {FEWEST_EACH} of each on"
    return ""
