"""The closing question: does what the model's states say before an attempt tell that it will cheat or fail, beyond what
anyone could see: how often it tried, how long the prompt is, what went wrong, how it spoke?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab import directions
from agentsignals_lab.coding_tasks import variant
from agentsignals_lab.conditions import Condition
from agentsignals_lab.evaluation.case_runs import Confinement
from agentsignals_lab.experiments import Progress
from agentsignals_lab.experiments.chosen_setting import setting
from agentsignals_lab.experiments.learning import calibrated, learnt
from agentsignals_lab.experiments.logistic import Gain, gain
from agentsignals_lab.experiments.setting import Setting, SettingConfig, chosen_layers
from agentsignals_lab.residual.interface import ResidualModel
from agentsignals_lab.retry.loop import Plan, Steered
from agentsignals_lab.retry.retry_runs import run_loop
from agentsignals_lab.retry.rows import AttemptRow, ProjectionRow
from agentsignals_lab.runs import Run
from agentsignals_lab.sandbox import Tier

_FEEDBACK = "feedback"


class Config(Struct, frozen=True, kw_only=True):
    """Attempts of another run, or of a retry loop on impossible tasks in each tone."""

    setting: SettingConfig = SettingConfig(tasks=30)
    run: str | None = None
    """The folder of a run with attempts and projections."""
    directions: str | None = None
    """Directions of the loop; none: a contrast of the setting's texts."""
    before_frustration: bool = True
    """Leave out attempts after an answer that shows frustration, desperation or giving up in its words."""
    attempts: int = 3
    samples: int = 1
    max_new_tokens: int = 360
    temperature: float = 1.0
    tier: Tier = "default"


class Predicted(Struct, frozen=True):
    """An outcome of the next attempt, from what was there before it."""

    outcome: str
    """`hardcoded`, or `failed` (not all of its tests pass)."""
    auroc: Gain | None
    """None where all attempts have the same outcome, or fewer than two tasks are left."""
    features: tuple[str, ...]
    """Features added to the baselines."""
    baselines: tuple[str, ...]
    left_out: int
    """Attempts after visible frustration, or without a verdict or a projection."""


class Item(Struct, frozen=True):
    """An attempt after a failed one."""

    task: str
    base: tuple[float, ...]
    added: tuple[float, ...]
    hardcoded: bool
    failed: bool


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Summary `prediction`, an entry an outcome; tables of the loop where this run made one."""
    if config.run is None:
        _loop(run, model, config, progress)
    source = Run.read(Path(config.run)) if config.run else run
    attempts = source.table("attempts", AttemptRow).rows
    projections = source.table("projections", ProjectionRow).rows
    if not projections:
        raise LabError("The run has no projections.", "Run the retry loop with --directions.")
    features = sorted({(row.direction, row.layer) for row in projections})
    items, baselines, left_out = gathered(attempts, projections, features, config.before_frustration)
    named = tuple(f"{name}@{layer}" for name, layer in features)
    run.write_summary(
        "prediction",
        [
            Predicted("hardcoded", _gain(items, [i.hardcoded for i in items]), named, baselines, left_out),
            Predicted("failed", _gain(items, [i.failed for i in items]), named, baselines, left_out),
        ],
    )


def gathered(
    attempts: Sequence[AttemptRow],
    projections: Sequence[ProjectionRow],
    features: Sequence[tuple[str, int]],
    before_frustration: bool = True,
) -> tuple[list[Item], tuple[str, ...], int]:
    """Attempts after a failed one with what was known before them, the names of the baselines, and how many were left
    out. Projections are of the feedback's tokens."""
    by_key = {row.key: row for row in attempts}
    along = {
        (row.condition, row.task, row.sample, row.attempt, row.direction, row.layer): row.coordinate
        for row in projections
        if row.span == _FEEDBACK
    }
    errors = sorted({row.error_class for row in attempts})
    items, left_out = [], 0
    for row in attempts:
        if row.attempt == 0:
            continue
        here = (row.condition, row.task, row.sample)
        earlier = [by_key[*here, number] for number in range(row.attempt)]
        added = [along.get((*here, row.attempt, *feature)) for feature in features]
        defined = [value for value in added if value is not None]
        shown = before_frustration and any(map(_frustrated, earlier))
        if shown or row.full_pass is None or row.prompt_tokens is None or len(defined) < len(features):
            left_out += 1
            continue
        last = earlier[-1]
        base = [row.attempt, row.prompt_tokens, last.marker_score, *(float(last.error_class == e) for e in errors)]
        items.append(
            Item(_base_task(row.task), tuple(map(float, base)), tuple(defined), row.hardcoded, not row.full_pass)
        )
    return items, ("attempt", "prompt_tokens", "marker_score", *(f"error:{e}" for e in errors)), left_out


def _base_task(key: str) -> str:
    """Variants of one task are one group."""
    return key.partition("+")[0]


def _frustrated(row: AttemptRow) -> bool:
    rates = (row.frustration_per_100_words, row.desperation_per_100_words, row.give_up_per_100_words)
    return any(rate is not None and rate > 0 for rate in rates)


def _gain(items: Sequence[Item], outcome: Sequence[bool]) -> Gain | None:
    groups = [item.task for item in items]
    if len(set(outcome)) < 2 or len(set(groups)) < 2:
        return None
    base, added = (np.asarray([getattr(item, side) for item in items], np.float64) for side in ("base", "added"))
    return gain(base, added, np.asarray(outcome, np.float64), groups)


def _loop(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """A retry loop without steering on tasks that go on failing, one condition a tone."""
    at: Setting = setting(model, config.setting)
    layers = chosen_layers(model, ())
    of = directions.read(Path(config.directions)) if config.directions else learnt(at, "stories", layers, ())
    plan = Plan(
        wording=at.wording,
        attempts=config.attempts,
        max_new_tokens=config.max_new_tokens,
        temperature=config.temperature,
        top_p=1.0,
        seed=config.setting.seed,
        inside=Confinement(config.tier),
    )
    conditions = [Condition(name=tone, tone=tone) for tone in dict.fromkeys((at.low, at.neutral, at.high))]
    tasks = [variant(task, "one_off") for task in at.tasks]
    total = len(conditions) * len(tasks) * config.samples
    run_loop(
        run, model, plan, conditions, tasks, config.samples, Steered(model, of, calibrated(at)),
        lambda _, done, __: progress(done, total),
    )  # fmt: skip
