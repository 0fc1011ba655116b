"""Models that predict outcomes at unseen tasks: are signals better than simple baselines?

Regularised logistic regression and gradient boosting (scikit-learn), cross-validated over tasks
(design/statistics.md#drivers). Only this file imports scikit-learn, and only when it is called.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import log1p
from typing import Any, Literal, NamedTuple

from agentsignals.questions.drivers.predictors import (
    FOLDS,
    REPEATS,
    Importance,
    Models,
    Predictor,
    Range,
    Score,
    VerifiedAttempt,
    Within,
    auc,
    stratum,
)
from agentsignals.stats.intervals import SEED, Interval, clustered, sums_interval

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


def available() -> bool:
    """True if scikit-learn is installed."""
    try:
        import sklearn  # noqa: F401, PLC0415
    except ImportError:
        return False
    return True


def fit(
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
