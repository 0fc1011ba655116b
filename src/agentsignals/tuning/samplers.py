"""Who is tried next: ways to choose among candidates that are still in the race."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from msgspec import Struct

from agentsignals.errors import UsageError
from agentsignals.stats.paired import Arm
from agentsignals.tuning.effects import Effects
from agentsignals.tuning.plan import Candidate, Plan

FULL = 10
"""Runs after which `random` and `optuna` turn to another candidate: fewer are too noisy, more leave too few to try
(design/tuning.md#measured)."""


class Race(Struct, frozen=True, kw_only=True):
    """What is to be chosen from."""

    plan: Plan
    arms: Mapping[Candidate, Arm]
    """Outcomes by task, of those that have any."""
    effects: Effects
    """The model of these outcomes."""
    runs: Mapping[Candidate, int]
    """How often each was run to its end, in the order in which they came."""
    open: Sequence[Candidate]
    """Those not dropped, that have tasks left; never empty."""


def next_candidate(race: Race) -> Candidate:
    """Whom to run next; the default comes first."""
    if not race.runs and race.plan.start in race.open:
        return race.plan.start
    return {"thompson": _thompson, "random": _random, "optuna": _optuna}[race.plan.sampler](race)


def _thompson(race: Race) -> Candidate:
    """The best of a world drawn from the posterior: each is tried as often as it may be the best (Thompson 1933)."""
    values = race.effects.draw(_chance(race), race.open)
    return max(zip(values, race.open, strict=True), key=lambda pair: pair[0])[1]


def _random(race: Race) -> Candidate:
    return _unfinished(race) or _chance(race).choice([c for c in race.open if c not in race.runs] or race.open)


def _unfinished(race: Race) -> Candidate | None:
    """The last one tried, if it has more to run."""
    last = [*race.runs][-1:]
    return next((c for c in last if c in race.open and race.runs[c] < FULL), None)


def _optuna(race: Race) -> Candidate:
    """The proposal of Optuna's tree-structured Parzen estimator, asked anew over all that has been tried: nothing of
    it has to be kept between runs."""
    if (unfinished := _unfinished(race)) is not None:
        return unfinished
    try:
        import optuna  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError as problem:
        raise UsageError(
            "The sampler optuna needs Optuna, which is not installed.",
            'pip install "agentsignals[optuna]", or sampler = "thompson".',
        ) from problem
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=_chance(race).getrandbits(32))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    space: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.CategoricalDistribution(choices) for name, choices in race.plan.knobs.items()
    }
    for candidate, arm in race.arms.items():
        outcomes = [outcome for task in arm.values() for outcome in task]
        mean, treatment = sum(outcomes) / len(outcomes), race.plan.treatment(candidate)
        study.add_trial(optuna.trial.create_trial(params=treatment, distributions=space, value=mean))
    for _ in range(_DRAWS):
        asked = study.ask(space)
        candidate = tuple(asked.params[name] for name in space)
        if candidate in race.open and race.runs.get(candidate, 0) < FULL:
            return candidate
    return _random(race)


_DRAWS = 20
"""Proposals of which one is in the race and not tried to the full; the estimator likes to come back to its best."""


def _chance(race: Race) -> random.Random:
    """The same at the same point of the race: a run that was broken off is proposed again."""
    return random.Random(f"{race.plan.seed} {sum(race.runs.values())}")  # noqa: S311  (draws, no secret)
