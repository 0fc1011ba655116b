"""Signals as predictors: which are eligible, their contrast within tasks, leakage checks, and results of the models.

Within a stratum (a task under one treatment; or a task, minus treatment means) every solved attempt is compared with
every failed one (design/statistics.md#drivers).
"""

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
    """A signal that is no predictor, with the reason."""

    signal: str
    because: str


class Predictor(Struct, frozen=True):
    """A signal's values by session."""

    signal: str
    values: dict[str, float]
    same_as: tuple[str, ...] = ()
    """Signals with equal values at every attempt, which are tested once."""


def eligible(outcome: str, keep: Collection[str] = ()) -> tuple[list[str], list[Excluded]]:
    """Return the paths of signals that may predict `outcome`, and the excluded ones.

    `keep`: signals let in although they read the gold patch. UsageError for one that reads the verdict, or is no signal
    of attempts.
    """
    signals = catalogue()

    def below(signal: Signal) -> Iterator[str]:
        for name in signal.needs:
            yield signals[name].path
            yield from below(signals[name])

    # Signals that the outcome is computed from, and those computed from it.
    path = by_path(outcome).path
    kin = {*below(by_path(outcome)), *(s.path for s in signals.values() if path in set(below(s)))}
    paths: list[str] = []
    excluded: list[Excluded] = []
    kept = {by_path(name).path for name in keep}
    for signal in sorted(signals.values(), key=lambda s: s.path):
        if signal.context == "product" or signal.level not in ("attempt", "session"):
            continue
        read = hindsight_of(signal)
        reasons = {
            "is the outcome": signal.path == outcome,
            f"reads {read}": bool(read),
            f"is part of {outcome}, or derived from it": signal.path in kin,
            "is a condition of the attempt": signal.path.startswith("treatment.") or signal.path == "loop.condition",
            "is not a number and not yes or no": signal.type not in _NUMERIC,
        }
        because = next((reason for reason, holds in reasons.items() if holds), "")
        if signal.path in kept and not because.startswith(f"reads {GOLD}"):
            kept.discard(signal.path)
            if because:
                raise UsageError(f"{signal.path} cannot be kept: it {because}.", "Remove it from --keep.")
        if because and signal.path not in kept:
            excluded.append(Excluded(signal.path, because))
        else:
            kept.discard(signal.path)
            paths.append(signal.path)
    if kept:
        raise UsageError(
            f"{', '.join(sorted(kept))}: not a signal of eval attempts.",
            "Run `agentsignals inventory --context eval` to list them.",
        )
    return paths, excluded


def hindsight_of(signal: Signal) -> str:
    """Return what the signal, or one it needs, reads of the verdict; empty for nothing. Such a signal cannot predict an
    outcome."""
    if signal.hindsight:
        return signal.hindsight
    for need in (catalogue()[name] for name in signal.needs):
        if read := hindsight_of(need):
            return f"{read}, through {need.path}" if ", through" not in read else read
    return ""


def signals_query(paths: Sequence[str], sessions: str) -> str:
    """Return the query for signal values. `sessions`: SQL that returns session ids."""
    wanted = ", ".join(f"'{path}'" for path in paths)
    return (
        "SELECT session_id, signal, value FROM signals"
        f" WHERE level = 'attempt' AND absent IS NULL AND signal IN ({wanted}) AND session_id IN ({sessions})"
    )


def predictors(
    paths: Sequence[str], rows: Sequence[Row], sessions: Collection[str]
) -> tuple[list[Predictor], list[Excluded]]:
    """Return the signals that vary between these sessions, and those without variation."""
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
            excluded.append(Excluded(path, "is the same in every attempt" if by_session else "has no value here"))
    kept = [Predictor(first, values[first], tuple(others)) for first, *others in alike.values()]
    return kept, excluded


def correlated(columns: Mapping[str, Mapping[str, float]], least: float) -> dict[str, dict[str, float]]:
    """Return for each column (values by session, minus their stratum's mean) the others with at least this absolute
    correlation."""
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
"""With fewer common sessions, a correlation of 0.7 is hardly distinguishable from 0.4."""


# -- contrasts within tasks --------------------------------------------------------------------------------------------


Within = Literal["treatment", "task"]
"""Shared by the attempts of a pair: task and treatment, or the task only."""
_ROUNDS, _STILL = 200, 1e-9


class VerifiedAttempt(Struct, frozen=True, gc=False, kw_only=True):
    """A first attempt with a known outcome."""

    session_id: str
    task: str
    treatment: str
    solved: bool


class Contrast(Struct, frozen=True, kw_only=True):
    """A signal at solved and failed attempts of the same task. A correlation."""

    signal: str
    superiority: float | None
    """Probability that a solved attempt has more of it than a failed one of its stratum, ties counting half (Grissom
    1994). None without a pair."""
    low: float | None = None
    high: float | None = None
    """95 % interval over tasks; None under six."""
    p: float | None = None
    """Two-sided sign-flip test over tasks."""
    q: float | None = None
    """p adjusted for the number of signals (Benjamini and Hochberg)."""
    tasks: int = 0
    """Tasks with a pair."""
    solved: int = 0
    failed: int = 0
    """Attempts in a pair."""
    solved_median: float | None = None
    failed_median: float | None = None
    absent: int = 0
    """Attempts without a value."""
    same_as: tuple[str, ...] = ()
    moves_with: dict[str, float] = {}
    """Signals correlated with it within strata. Data cannot tell which of them matters."""

    @property
    def goes_with(self) -> str:
        return "success" if (self.superiority or 0) > 1 / 2 else "failure"


def stratum(attempt: VerifiedAttempt, within: Within) -> str:
    return f"{attempt.task}\r{attempt.treatment}" if within == "treatment" else attempt.task


def mixed_tasks(attempts: Sequence[VerifiedAttempt], within: Within) -> int:
    """Count tasks with a stratum that has both solved and failed attempts."""
    seen: dict[str, set[bool]] = defaultdict(set)
    task_of: dict[str, str] = {}
    for attempt in attempts:
        name = stratum(attempt, within)
        seen[name].add(attempt.solved)
        task_of[name] = attempt.task
    return len({task_of[name] for name, outcomes in seen.items() if len(outcomes) > 1})


def contrast(signal: str, attempts: Sequence[VerifiedAttempt], values: Mapping[str, float], within: Within) -> Contrast:
    """Return the contrast of one signal, without q. Attempts without a value are counted, not imputed."""
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
        lost = sorted(compared[s] for s in sides[False])
        solved = (compared[s] for s in sides[True])
        won = fsum((bisect_left(lost, v) + bisect_right(lost, v)) / 2 for v in solved)  # ties count half
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
        p=sign_flip([k - n / 2 for k, n in sums], 4) if enough else None,
        tasks=len(sums),
        solved=len(pairs[True]),
        failed=len(pairs[False]),
        solved_median=median(pairs[True]),
        failed_median=median(pairs[False]),
        absent=absent,
    )


def adjusted(attempts: Sequence[VerifiedAttempt], values: Mapping[str, float]) -> dict[str, float]:
    """Return ranks (0 to 1) minus task and treatment means (two-way fixed effects).

    Ranks limit the influence of huge values. Rounding restores ties.
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
    """Return values as compared, minus their stratum's mean rank, for attempts not alone in their stratum."""
    measured = [a for a in attempts if a.session_id in values]
    if within == "treatment":
        measured = [replace(a, task=stratum(a, within), treatment="") for a in measured]
    size = Counter(a.task for a in measured)
    ranks = adjusted(measured, values)
    return {a.session_id: ranks[a.session_id] for a in measured if size[a.task] > 1}


# -- near copies -------------------------------------------------------------------------------------------------------


FEWEST = 10
"""With fewer solved or failed attempts, chance alone looks like a near copy."""
SUSPICIOUS_AUC = ((20, 0.9), (FEWEST, 0.95))
"""AUC from which a signal is suspicious, by number of attempts of each outcome (design/statistics.md#drivers)."""
_BINS = 12


class NearCopy(Struct, frozen=True):
    """A signal set aside because it nearly determines the outcome."""

    signal: str
    auc: float
    how: str
    """By its size, by which values it has (absent is one), or within tasks."""
    n: int


def enough_for_near_copies(attempts: Sequence[VerifiedAttempt]) -> bool:
    """True if enough attempts solved and failed for the check."""
    solved = sum(a.solved for a in attempts)
    return min(solved, len(attempts) - solved) >= FEWEST


def near_copy_of(signal: str, attempts: Sequence[VerifiedAttempt], values: Mapping[str, float]) -> NearCopy | None:
    """Check whether a signal is a near copy of the outcome. None if not, or with too few attempts."""
    measured = [a for a in attempts if a.session_id in values]
    ways: list[tuple[float, str, int]] = []

    def size_auc(group: Sequence[VerifiedAttempt]) -> float:
        return auc([values[a.session_id] for a in group], [a.solved for a in group])

    if enough_for_near_copies(measured):
        size = size_auc(measured)
        ways.append((max(size, 1 - size), "by its size", len(measured)))
        by_task: dict[str, list[VerifiedAttempt]] = defaultdict(list)
        for attempt in measured:
            by_task[attempt.task].append(attempt)
        mixed = [size_auc(group) for group in by_task.values() if len({a.solved for a in group}) > 1]
        if len(mixed) >= FEWEST:
            within = fsum(mixed) / len(mixed)
            ways.append((max(within, 1 - within), "by its size within tasks", len(measured)))
    if enough_for_near_copies(attempts):
        by_values = auc(_rates(attempts, values), [a.solved for a in attempts])
        ways.append((by_values, "by its values", len(attempts)))
    top = max(ways, default=None)
    solved = sum(a.solved for a in attempts)
    least = min(solved, len(attempts) - solved)
    suspicious = next((bound for n, bound in SUSPICIOUS_AUC if least >= n), 1.0)
    return NearCopy(signal, *top) if top is not None and top[0] >= suspicious else None


def auc(scores: Sequence[float], solved: Sequence[bool]) -> float:
    """Return the area under the ROC curve, ties counting half. Both outcomes must occur."""
    failed = sorted(s for s, good in zip(scores, solved, strict=True) if not good)
    won = [
        (bisect_left(failed, s) + bisect_right(failed, s)) / 2 for s, good in zip(scores, solved, strict=True) if good
    ]
    return fsum(won) / (len(won) * len(failed))


def _rates(attempts: Sequence[VerifiedAttempt], values: Mapping[str, float]) -> list[float]:
    """Score each attempt by the success rate of its value (or bin), computed on the other half of the tasks."""
    ascending = sorted(set(values.values()))
    edges = ascending
    if len(ascending) > _BINS:
        edges = [ascending[len(ascending) * n // _BINS] for n in range(_BINS)]
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


# -- results of the models ---------------------------------------------------------------------------------------------


FEWEST_TASKS = 20
"""With fewer tasks a fold has under four, too few to evaluate."""
FEWEST_EACH = 20
"""Solved, and failed, attempts needed."""
FOLDS, REPEATS = 5, 3


class Score(Struct, frozen=True, kw_only=True):
    """Cross-validated performance of a model."""

    features: str
    model: str
    brier: float
    """Mean squared error of the probabilities."""
    auc: float | None
    """Mean over test folds."""
    gain: float | None = None
    """Reduction of the Brier score against the best baseline."""
    low: float | None = None
    high: float | None = None
    """95 % interval of the gain, over tasks."""


class Importance(Struct, frozen=True, kw_only=True):
    """Permutation importance of signals, within strata."""

    signals: tuple[str, ...]
    """Several if they move together and are permuted together."""
    model: str
    value: float
    """Rise of the Brier score."""
    low: float | None
    high: float | None
    """95 % interval over tasks."""


class Range(Struct, frozen=True):
    """A row of the reliability table: attempts with a similar predicted probability."""

    predicted: float
    solved: float
    low: float | None
    high: float | None
    n: int


class Models(Struct, frozen=True, kw_only=True):
    attempts: int
    tasks: int
    folds: int = FOLDS
    repeats: int = REPEATS
    best_baseline: str
    """Baseline with the lowest Brier score; chosen after the fact, which favours it."""
    without_others: int
    """Attempts whose task nobody else tried, so that its difficulty is unknown."""
    scores: list[Score]
    jointly: Importance | None
    """Importance of all signals together (logistic regression): beyond task difficulty. None with too few mixed strata.
    """
    importance: list[Importance]
    reliability: list[Range]
    """Reliability of the logistic regression on baselines and signals."""

    @property
    def adds(self) -> bool:
        """True if signals predict better than the best baseline, with the whole interval."""
        return self.judged.low is not None and self.judged.low > 0

    @property
    def judged(self) -> Score:
        """The model that decides, fixed in advance: the logistic regression."""
        return next(s for s in self.scores if s.gain is not None and s.model == "logistic")


def too_few(attempts: Sequence[VerifiedAttempt]) -> str:
    """Return why no model is fitted, or an empty string."""
    tasks, solved = len({a.task for a in attempts}), sum(a.solved for a in attempts)
    if tasks < FEWEST_TASKS:
        return f"{tasks:,} tasks with a known outcome; models need at least {FEWEST_TASKS}"
    least = min(solved, len(attempts) - solved)
    if least < FEWEST_EACH:
        return f"{solved:,} solved, {len(attempts) - solved:,} failed; models need at least {FEWEST_EACH} of each"
    return ""
