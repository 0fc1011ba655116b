"""Signals as predictors: which are eligible, their contrast within tasks, leakage checks, and results of the models.

Within a stratum (a task under one treatment; or a task, minus treatment means) every solved attempt is compared with
every failed one (design/statistics.md#drivers).

Models then predict outcomes at unseen tasks, to tell whether signals do better than simple baselines: regularised
logistic regression and gradient boosting (scikit-learn), cross-validated over tasks (design/statistics.md#drivers).
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from math import fsum, log1p
from statistics import median
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.errors import UsageError
from agentsignals.questions.compare.attempts import decoded, is_number
from agentsignals.questions.question import Row
from agentsignals.signals import Signal
from agentsignals.signals.catalog import by_path, catalogue
from agentsignals.stats.intervals import FEWEST_CLUSTERS, SEED, Interval, clustered, share_interval, sums_interval
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
            f"--keep names {', '.join(sorted(kept))}: not a signal of eval attempts.",
            "Run `agentsignals inventory --context eval` to list them.",
        )
    return paths, excluded


def hindsight_of(signal: Signal) -> str:
    """Return what the signal, or one it needs, reads of the verdict; empty for nothing. Then it predicts no outcome."""
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
    """Importance of all signals (logistic regression) beyond task difficulty. None with too few mixed strata."""
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


Kind = Literal["logistic", "boosted"]
PERMUTATIONS = 5
_STRENGTHS = (0.003, 0.03, 0.3)
"""Values of C, chosen within the training tasks."""
_RANGES = 10
BASELINES = ("candidate", "prompt length", "task difficulty")
"""Predictors known without looking at the attempt. Difficulty: how other attempts at the task did, if any."""
_ALL = "baselines"

Matrix = Any


class Predictions(NamedTuple):
    """Cross-validated prediction of each attempt, averaged over repeats."""

    values: list[float]
    auc: float | None


def sklearn_available() -> bool:
    """True if scikit-learn is installed."""
    try:
        import sklearn  # noqa: F401, PLC0415
    except ImportError:
        return False
    return True


def fit_models(
    attempts: Sequence[VerifiedAttempt],
    signals: Sequence[Predictor],
    prompts: Mapping[str, int],
    groups: Sequence[tuple[str, ...]],
    within: Within,
) -> Models:
    """Fit and evaluate the models. Deterministic.

    `prompts`: characters of the first prompt by session. `groups`: signals that are permuted together.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    with threadpool_limits(1):  # so many small fits are slower on many cores, and far slower on shared ones
        return _fit(_Study(attempts, signals, prompts, within), signals, groups)


def _fit(study: _Study, signals: Sequence[Predictor], groups: Sequence[tuple[str, ...]]) -> Models:
    """Fit models without and with the signals, and measure what each group of signals adds."""
    attempts = study.attempts
    sets = {name: study.columns[name] for name in BASELINES}
    sets[_ALL] = [c for name in BASELINES for c in study.columns[name]]
    predictions: dict[tuple[str, str], Predictions] = {
        (name, "logistic"): study.cross_validate(columns, "logistic") for name, columns in sets.items()
    }
    predictions[_ALL, "boosted"] = study.cross_validate(sets[_ALL], "boosted")
    importance: list[Importance] = []
    jointly = tuple(p.signal for p in signals)
    groups = [*(g for g in groups if g != jointly), jointly] if groups else []
    every = [*sets[_ALL], *(c for p in signals for c in study.columns[p.signal])]
    kinds: tuple[Kind, ...] = ("logistic", "boosted")
    for kind in kinds:
        rises: dict[tuple[str, ...], list[float]] = {group: [0.0] * len(attempts) for group in groups}
        predictions["signals added", kind] = study.cross_validate(every, kind, rises)
        importance += [
            Importance(signals=group, model=kind, value=_mean(rise), low=ends[0], high=ends[1])
            for group, rise in rises.items()
            for ends in [study.over_tasks(rise) or (None, None)]
        ]
    baselines = {
        ("base rate", "none"): study.cross_validate([], "logistic"),
        **{k: p for k, p in predictions.items() if k[0] in sets},
    }
    scores = [study.score(name, kind, p) for (name, kind), p in baselines.items()]
    best = min(scores, key=lambda score: score.brier)
    baseline = baselines[best.features, best.model]
    scores += [study.score(name, kind, p, baseline) for (name, kind), p in predictions.items() if name not in sets]
    return Models(
        attempts=len(attempts),
        tasks=len(set(study.tasks)),
        best_baseline=f"{best.features} ({best.model})",
        without_others=study.single_attempts,
        scores=scores,
        jointly=next((i for i in importance if i.signals == jointly and i.model == "logistic"), None),
        importance=sorted((i for i in importance if i.signals != jointly), key=lambda entry: -entry.value),
        reliability=study.reliability(predictions["signals added", "logistic"].values),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class _Study:
    """Attempts as a matrix, with the same splits of tasks for every model."""

    def __init__(
        self,
        attempts: Sequence[VerifiedAttempt],
        signals: Sequence[Predictor],
        prompts: Mapping[str, int],
        within: Within,
    ) -> None:
        import numpy as np  # noqa: PLC0415

        self.np = np
        self.attempts = attempts
        self.strata = [stratum(a, within) for a in attempts]
        self.tasks = [a.task for a in attempts]
        self.solved = [float(a.solved) for a in attempts]
        columns: dict[str, list[float]] = {}
        self.columns: dict[str, list[int]] = {}
        treatments = sorted({a.treatment for a in attempts})
        made = {"candidate": [[float(a.treatment == name) for a in attempts] for name in treatments]}
        lengths = [prompts.get(a.session_id) for a in attempts]
        made["prompt length"] = [[log1p(n) if n is not None else float("nan") for n in lengths]]
        # Success of other attempts at the task (Laplace-smoothed).
        sums, n = Counter[str](), Counter(self.tasks)
        for task, solved in zip(self.tasks, self.solved, strict=True):
            sums[task] += int(solved)
        others = zip(self.tasks, self.solved, strict=True)
        made["task difficulty"] = [[(sums[task] - solved + 1) / (n[task] + 1) for task, solved in others]]
        self.single_attempts = sum(n[task] == 1 for task in self.tasks)
        made |= {p.signal: [[_signed_log(p.values.get(a.session_id)) for a in attempts]] for p in signals}
        for name, parts in made.items():
            self.columns[name] = list(range(len(columns), len(columns) + len(parts)))
            columns |= {f"{name} {n}": values for n, values in enumerate(parts)}
        self.matrix = np.array(list(columns.values()), dtype=float).T
        # Training and test rows: no task is in both.
        chance = random.Random(SEED)  # noqa: S311  (draws, no secret)
        names = sorted(set(self.tasks))
        self.splits: list[tuple[list[int], list[int]]] = []
        for _ in range(REPEATS):
            chance.shuffle(names)
            fold = {task: n % FOLDS for n, task in enumerate(names)}
            for held in range(FOLDS):
                tested = [n for n, task in enumerate(self.tasks) if fold[task] == held]
                self.splits.append(([n for n, task in enumerate(self.tasks) if fold[task] != held], tested))

    def cross_validate(
        self,
        columns: list[int],
        kind: Kind,
        rises: dict[tuple[str, ...], list[float]] | None = None,
    ) -> Predictions:
        """Predict each attempt with a model fitted to other tasks; without columns, with their base rate.

        `rises` collects the permutation importance of each group of signals within strata.
        """
        sums, aucs = [0.0] * len(self.attempts), []
        chance = random.Random(SEED + 1)  # noqa: S311
        for fitted, tested in self.splits:
            outcomes = [self.solved[n] for n in fitted]
            is_constant = not columns or len(set(outcomes)) == 1
            predict = partial(_predict, _mean(outcomes) if is_constant else self._model(kind, fitted, columns))
            plain = predict(self.matrix[tested][:, columns])
            for n, p in zip(tested, plain, strict=True):
                sums[n] += p / REPEATS
            solved = [self.attempts[n].solved for n in tested]
            if len(set(solved)) > 1:
                aucs.append(auc(plain, solved))
            for group, rise in (rises or {}).items():
                self._add_importance(predict, group, columns, tested, plain, rise, chance)
        return Predictions(sums, _mean(aucs) if aucs else None)

    def _add_importance(  # noqa: PLR0913
        self,
        predict: Callable[[Matrix], list[float]],
        group: tuple[str, ...],
        columns: list[int],
        tested: list[int],
        plain: list[float],
        rise: list[float],
        chance: random.Random,
    ) -> None:
        """Add the rise of the squared error when the group's values are permuted within strata."""
        permuted = [columns.index(c) for name in group for c in self.columns[name]]
        rows = self.matrix[tested][:, columns]
        by_stratum: dict[str, list[int]] = defaultdict(list)
        for at, n in enumerate(tested):
            by_stratum[self.strata[n]].append(at)
        copies = []
        for _ in range(PERMUTATIONS):
            order = list(range(len(tested)))
            for places in by_stratum.values():
                drawn = places[:]
                chance.shuffle(drawn)
                for at, other in zip(places, drawn, strict=True):
                    order[at] = other
            copy = rows.copy()
            copy[:, permuted] = rows[order][:, permuted]
            copies.append(copy)
        shuffled = predict(self.np.concatenate(copies))
        for at, n in enumerate(tested):
            y = self.solved[n]
            worse = _mean([(shuffled[at + k * len(tested)] - y) ** 2 for k in range(PERMUTATIONS)])
            rise[n] += (worse - (plain[at] - y) ** 2) / REPEATS

    def _model(self, kind: Kind, rows: list[int], columns: list[int]) -> Any:
        """Train one model; the strength of logistic regularisation is chosen by folds of tasks inside of these rows."""
        x, y = self.matrix[rows][:, columns], [self.solved[n] for n in rows]
        if kind == "boosted":
            from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415

            x[:, self.np.isnan(x).all(axis=0)] = (
                0.0  # a column without a value has no bins: of tables, a prompt's length
            )
            return HistGradientBoostingClassifier(
                max_iter=60, learning_rate=0.08, max_leaf_nodes=6, min_samples_leaf=10, l2_regularization=1.0,
                early_stopping=False, random_state=SEED,
            ).fit(x, y)  # fmt: skip
        names = sorted({self.tasks[n] for n in rows})
        fold = {task: n % 3 for n, task in enumerate(names)}
        losses = {}
        for strength in _STRENGTHS:
            loss = 0.0
            for held in range(3):
                inner = [at for at, n in enumerate(rows) if fold[self.tasks[n]] != held]
                outer = [at for at, n in enumerate(rows) if fold[self.tasks[n]] == held]
                if len({y[at] for at in inner}) > 1:
                    p = _Logistic(strength).fit(x[inner], [y[at] for at in inner]).predict_proba(x[outer])[:, 1]
                    loss += sum((float(p[k]) - y[at]) ** 2 for k, at in enumerate(outer))
            losses[strength] = loss
        return _Logistic(min(_STRENGTHS, key=losses.__getitem__)).fit(x, y)

    def score(self, features: str, kind: str, predictions: Predictions, baseline: Predictions | None = None) -> Score:
        """Score a model's cross-validated predictions: Brier score and AUC.

        With `baseline`, also the drop in Brier score against it, with a 95 % interval clustered by task.
        """
        losses = self._losses(predictions.values)
        gains = [b - a for a, b in zip(losses, self._losses(baseline.values), strict=True)] if baseline else None
        low, high = (self.over_tasks(gains) if gains else None) or (None, None)
        return Score(
            features=features,
            model=kind,
            brier=_mean(losses),
            auc=predictions.auc,
            gain=_mean(gains) if gains else None,
            low=low,
            high=high,
        )

    def _losses(self, predictions: list[float]) -> list[float]:
        return [(p - y) ** 2 for p, y in zip(predictions, self.solved, strict=True)]

    def over_tasks(self, values: Sequence[float]) -> Interval | None:
        """Interval of a mean over attempts, with tasks as clusters."""
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for task, value in zip(self.tasks, values, strict=True):
            sums[task][0] += value
            sums[task][1] += 1
        return sums_interval([(total, n) for total, n in sums.values()])

    def reliability(self, predictions: list[float]) -> list[Range]:
        """Ten equal groups of attempts, by predicted probability."""
        order = sorted(range(len(predictions)), key=predictions.__getitem__)
        ranges = []
        for k in range(_RANGES):
            part = order[len(order) * k // _RANGES : len(order) * (k + 1) // _RANGES]
            if part:
                low, high = clustered((self.tasks[n], self.solved[n], 1) for n in part).interval or (None, None)
                mean = _mean([predictions[n] for n in part])
                ranges.append(Range(mean, _mean([self.solved[n] for n in part]), low, high, len(part)))
        return ranges


def _predict(model: Any, rows: Matrix) -> list[float]:
    return [model] * len(rows) if isinstance(model, float) else model.predict_proba(rows)[:, 1].tolist()


def _signed_log(value: float | None) -> float:
    """Signed logarithm, because counts are skewed; NaN if missing."""
    if value is None:
        return float("nan")
    return log1p(value) if value >= 0 else -log1p(-value)


class _Logistic:
    """Logistic regression on standardised columns, medians for missing values, and indicator columns for them.

    Without a scikit-learn pipeline, whose steps took three times as long as the regression.
    """

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def fit(self, x: Matrix, y: Sequence[float]) -> _Logistic:
        import numpy as np  # noqa: PLC0415
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

        self.np = np
        missing = np.isnan(x)
        self.partly = missing.any(axis=0) & ~missing.all(axis=0)
        self.medians = np.array([np.median(c[~np.isnan(c)]) if not np.isnan(c).all() else 0.0 for c in x.T])
        whole = self._whole(x)
        self.mean, spread = whole.mean(axis=0), whole.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        self.model = LogisticRegression(C=self.strength, max_iter=500).fit((whole - self.mean) / self.spread, y)
        return self

    def predict_proba(self, x: Matrix) -> Matrix:
        return self.model.predict_proba((self._whole(x) - self.mean) / self.spread)

    def _whole(self, x: Matrix) -> Matrix:
        missing = self.np.isnan(x)
        return self.np.hstack([self.np.where(missing, self.medians, x), missing[:, self.partly].astype(float)])
