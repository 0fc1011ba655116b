"""What knobs do to the chance of success, as a Bayesian linear model (design/tuning.md#the-model).

An outcome is a mean, and how hard the task is, and an effect of each knob's value, of each pair of values, and of the
very candidate. All effects are drawn around nothing: what has been tried a few times is drawn towards what its values
did elsewhere. Pure Python: a hundred effects take some 10 ms.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from math import erfc, sqrt

from agentsignals.tuning.plan import Candidate

_NOISE = 0.20
"""The variance of a yes or no whose chance lies about one half, less what tasks explain."""
_SPREAD = {"mean": 1.0, "task": 0.30, "value": 0.12, "pair": 0.06, "candidate": 0.05}
"""Standard deviations of the effects, as shares of success. A knob's values lie some 15 points apart."""
_CENTRE = 0.5

Effect = tuple[Hashable, ...]
Weights = Sequence[float]


class _Task:
    """How hard a task is, as far as its outcomes say, and how much it shares with each effect."""

    def __init__(self) -> None:
        self.precision = _SPREAD["task"] ** -2
        self.sum = 0.0
        self.shared: dict[int, float] = {}


class Effects:
    """The posterior, built outcome by outcome."""

    def __init__(self) -> None:
        self._index: dict[Effect, int] = {}
        self._precision: list[list[float]] = []
        self._sums: list[float] = []
        self._tasks: dict[str, _Task] = {}
        self._root: list[list[float]] = []
        self.means: list[float] = []
        self._fitted = False

    def add(self, candidate: Candidate, task: str, share: float, n: int) -> None:
        """`n` outcomes of a candidate at a task, `share` of them solved."""
        places = [self._place(effect) for effect in _effects(candidate)]
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

    def _place(self, effect: Effect) -> int:
        place = self._index.get(effect)
        if place is None:
            place = self._index[effect] = len(self._index)
            for row in self._precision:
                row.append(0.0)
            self._precision.append([0.0] * (place + 1))
            self._precision[place][place] = 1 / _variance(effect)
            self._sums.append(0.0)
        return place

    def fit(self) -> None:
        """Brings `means` up to date: Cholesky's root of the precision, and two triangular solutions.

        Tasks touch each other only through candidates, so they are taken out first, one by one (Schur's complement):
        what is left grows with the knobs, however many tasks there are.
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
        """The chances of success of these candidates in one world drawn from the posterior (less the mean task)."""
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
        """The chance of success at a task of middling difficulty that is to be expected."""
        self.fit()
        places = (self._index.get(effect) for effect in _effects(candidate))
        return _CENTRE + sum(self.means[place] for place in places if place is not None)

    def better(self, candidate: Candidate, leader: Candidate) -> float:
        """The probability that a candidate is better than another one, both among those with outcomes."""
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
