"""What models foretell of held-out tasks, and from how many attempts on they are fitted."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agentsignals.analysis.drivers.contrasts import Judged

FEWEST_TASKS = 20
"""Of fewer a fifth is under four tasks, and what is foretold of these says nothing."""
FEWEST_EACH = 20
"""Attempts solved, and failed."""
FOLDS, REPEATS = 5, 3


class Scored(Struct, frozen=True, kw_only=True):
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
    scores: list[Scored]
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
    def judged(self) -> Scored:
        """The model that decides, chosen before a look: the logistic regression. Boosting is a second opinion."""
        return next(s for s in self.scores if s.gain is not None and s.model == "logistic")


def too_few(attempts: Sequence[Judged]) -> str:
    """Why no model is fitted; empty where it is."""
    tasks, solved = len({a.task for a in attempts}), sum(a.solved for a in attempts)
    if tasks < FEWEST_TASKS:
        return f"{tasks:,} tasks with a known outcome: models are fitted from {FEWEST_TASKS} on"
    least = min(solved, len(attempts) - solved)
    if least < FEWEST_EACH:
        return f"{solved:,} solved, {len(attempts) - solved:,} failed: models are fitted from {FEWEST_EACH} of each on"
    return ""
