"""The model of a search, dropping of hopeless candidates, and the choice of the next one (design/tuning.md).

A Bayesian linear model in pure Python: mean, task difficulty, and effects of each knob's value, of each pair of values,
and of the candidate. Effects shrink towards 0, so a candidate tried a few times is drawn towards its values' effects
elsewhere. A hundred effects take 10 ms.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from math import erfc, sqrt

from msgspec import Struct

from agentsignals.errors import UsageError, install_command
from agentsignals.experiments.tuning.plan import Candidate, Plan
from agentsignals.stats.paired import Arm

_NOISE = 0.20
"""Variance of a yes or no around one half, minus what tasks explain."""
_SPREAD = {"mean": 1.0, "task": 0.30, "value": 0.12, "pair": 0.06, "candidate": 0.05}
"""Prior standard deviations of the effects, as shares of success."""
_CENTRE = 0.5

Effect = tuple[Hashable, ...]
Weights = Sequence[float]


class _Task:
    def __init__(self) -> None:
        self.precision = _SPREAD["task"] ** -2
        self.sum = 0.0
        self.shared: dict[int, float] = {}


class Effects:
    """Posterior of the effects, updated outcome by outcome."""

    def __init__(self) -> None:
        self._index: dict[Effect, int] = {}
        self._precision: list[list[float]] = []
        self._sums: list[float] = []
        self._tasks: dict[str, _Task] = {}
        self._root: list[list[float]] = []
        self.means: list[float] = []
        self._fitted = False

    def add(self, candidate: Candidate, task: str, share: float, n: int) -> None:
        """Add `n` outcomes of a candidate at a task, `share` of them solved."""
        places = []
        for effect in _effects(candidate):
            if effect not in self._index:
                for row in self._precision:
                    row.append(0.0)
                self._precision.append([0.0] * len(self._index) + [1 / _variance(effect)])
                self._sums.append(0.0)
                self._index[effect] = len(self._index)
            places.append(self._index[effect])
        at, weight = self._tasks.setdefault(task, _Task()), n / _NOISE
        at.precision += weight
        at.sum += weight * (share - _CENTRE)
        for i in places:
            row = self._precision[i]
            for j in places:
                row[j] += weight
            at.shared[i] = at.shared.get(i, 0.0) + weight
            self._sums[i] += weight * (share - _CENTRE)
        self._fitted = False

    def fit(self) -> None:
        """Update `means` by a Cholesky factorization.

        Tasks are eliminated first (Schur complement), so the system grows with the knobs, not with the tasks.
        """
        if self._fitted:
            return
        precision, sums = [row.copy() for row in self._precision], self._sums.copy()
        for task in self._tasks.values():
            for i, weight in task.shared.items():
                row, part = precision[i], weight / task.precision
                for j, other in task.shared.items():
                    row[j] -= part * other
                sums[i] -= part * task.sum
        root: list[list[float]] = []
        halfway: list[float] = []
        for i, row in enumerate(precision):
            line = [0.0] * (i + 1)
            for j in range(i):
                above = root[j]
                line[j] = (row[j] - sum(map(float.__mul__, line[:j], above[:j]))) / above[j]
            line[i] = sqrt(row[i] - sum(x * x for x in line[:i]))
            root.append(line)
            halfway.append((sums[i] - sum(map(float.__mul__, line[:i], halfway))) / line[i])
        self._root, self._fitted = root, True
        self.means = self._solved(halfway)

    def _solved(self, right: Sequence[float]) -> list[float]:
        solved = list(right)
        for i in range(len(solved) - 1, -1, -1):
            line = self._root[i]
            solved[i] = value = solved[i] / line[i]
            for j in range(i):
                solved[j] -= line[j] * value
        return solved

    def draw(self, chance: random.Random, candidates: Sequence[Candidate]) -> list[float]:
        """Draw the success rates of these candidates from the posterior."""
        self.fit()
        errors = self._solved([chance.gauss(0, 1) for _ in self.means])
        drawn = {effect: self.means[place] + errors[place] for effect, place in self._index.items()}
        values = []
        for candidate in candidates:
            value = _CENTRE
            for effect in _effects(candidate):
                if effect not in drawn:
                    drawn[effect] = chance.gauss(0, sqrt(_variance(effect)))
                value += drawn[effect]
            values.append(value)
        return values

    def estimate(self, candidate: Candidate) -> float:
        """Return the expected success rate at a task of medium difficulty."""
        self.fit()
        places = (self._index.get(effect) for effect in _effects(candidate))
        return _CENTRE + sum(self.means[place] for place in places if place is not None)

    def better(self, candidate: Candidate, leader: Candidate) -> float:
        """Return the probability that one candidate is better than another; both need outcomes."""
        self.fit()
        difference = [0.0] * len(self.means)
        for sign, effects in ((1.0, _effects(candidate)), (-1.0, _effects(leader))):
            for effect in effects:
                difference[self._index[effect]] += sign
        halfway: list[float] = []
        for line, value in zip(self._root, difference, strict=True):
            halfway.append((value - sum(map(float.__mul__, line, halfway))) / line[-1])
        spread = sqrt(sum(part * part for part in halfway))
        gap = sum(map(float.__mul__, difference, self.means))
        return 0.5 * erfc(-gap / spread / sqrt(2))


def _variance(effect: Effect) -> float:
    return _SPREAD[str(effect[0])] ** 2


def _effects(candidate: Candidate) -> list[Effect]:
    values = list(enumerate(candidate))
    pairs = [("pair", first, second) for i, first in enumerate(values) for second in values[i + 1 :]]
    return [("mean",), *(("value", value) for value in values), *pairs, ("candidate", *values)]


# -- dropping ----------------------------------------------------------------------------------------------------------


HOPELESS = 0.05
"""A candidate is dropped if its probability of beating the leader is smaller."""


class Drop(Struct, frozen=True):
    leader: Candidate
    probability: float


def dropped_candidates(effects: Effects, candidates: Sequence[Candidate]) -> dict[Candidate, Drop]:
    """Return the hopeless candidates. Later outcomes may bring one back."""
    if not candidates:
        return {}
    leader = max(candidates, key=effects.estimate)
    chances = {candidate: effects.better(candidate, leader) for candidate in candidates if candidate != leader}
    return {candidate: Drop(leader, chance) for candidate, chance in chances.items() if chance < HOPELESS}


# -- sampling ----------------------------------------------------------------------------------------------------------


FULL = 10
"""Runs after which Optuna moves to another candidate: fewer are too noisy, more leave too few candidates
(design/tuning.md#measured)."""
_PROPOSALS = 20
"""Optuna prefers its best candidates; after so many proposals that cannot run, one is drawn at random."""


class Race(Struct, frozen=True, kw_only=True):
    """The candidates to choose from."""

    plan: Plan
    arms: Mapping[Candidate, Arm]
    effects: Effects
    runs: Mapping[Candidate, int]
    open: Sequence[Candidate]
    """Candidates not dropped that have tasks left; never empty."""


def next_candidate(race: Race) -> Candidate:
    """Choose the next candidate; the default comes first.

    `thompson` takes the best candidate of a posterior draw (Thompson 1933). `optuna` asks Optuna's tree-structured
    Parzen estimator, told of all outcomes so far. The seed depends on the race, so an interrupted run is proposed
    again.
    """
    if not race.runs and race.plan.start in race.open:
        return race.plan.start
    chance = random.Random(f"{race.plan.seed} {sum(race.runs.values())}")  # noqa: S311  (draws, no secret)
    if race.plan.sampler == "thompson":
        values = race.effects.draw(chance, race.open)
        return max(zip(values, race.open, strict=True), key=lambda pair: pair[0])[1]
    last = [*race.runs][-1:]
    if last and last[0] in race.open and race.runs[last[0]] < FULL:
        return last[0]
    try:
        import optuna  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError as problem:
        raise UsageError(
            "The sampler optuna needs Optuna, which is not installed.",
            f'{install_command("optuna")}, or set sampler = "thompson".',
        ) from problem
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=chance.getrandbits(32))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    space: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.CategoricalDistribution(choices) for name, choices in race.plan.knobs.items()
    }
    for candidate, arm in race.arms.items():
        outcomes = [outcome for task in arm.values() for outcome in task]
        mean, treatment = sum(outcomes) / len(outcomes), race.plan.treatment(candidate)
        study.add_trial(optuna.trial.create_trial(params=treatment, distributions=space, value=mean))
    for _ in range(_PROPOSALS):
        asked = study.ask(space)
        candidate = tuple(asked.params[name] for name in space)
        if candidate in race.open and race.runs.get(candidate, 0) < FULL:
            return candidate
    return chance.choice([candidate for candidate in race.open if candidate not in race.runs] or race.open)
