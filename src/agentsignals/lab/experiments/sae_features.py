"""Which features of a sparse autoencoder tell the tones apart, beyond the best of as many features by chance?

Difference-in-means directions detect better as a rule (AxBench, arXiv 2501.17148): this is a second look only.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from msgspec import Struct

from agentsignals.errors import LabError
from agentsignals.lab import directions
from agentsignals.lab.coding_tasks import Task
from agentsignals.lab.directions import Array
from agentsignals.lab.experiments import Progress
from agentsignals.lab.experiments.chosen_setting import setting
from agentsignals.lab.experiments.learning import Source, calibrated, halves, learnt, scene_states
from agentsignals.lab.experiments.setting import Setting, SettingConfig, chosen_layers
from agentsignals.lab.residual.interface import ResidualModel
from agentsignals.lab.runs import Row, Run
from agentsignals.lab.separation import auroc


class Config(Struct, frozen=True, kw_only=True):
    """An autoencoder of token states of all tones, trained in this run."""

    setting: SettingConfig = SettingConfig()
    source: Source = "feedback"
    """Where features are read."""
    layer: int | None = None
    """None: the middle one."""
    features: int = 256
    k: int = 8
    steps: int = 300
    best: int = 10
    """How many features are judged."""
    shuffles: int = 200


class FeatureRow(Row, frozen=True, kw_only=True):
    """A feature that told the tones apart best on one half of the tasks, judged on the other."""

    KEY: ClassVar[tuple[str, ...]] = ("feature",)
    feature: int
    auroc_dev: float
    """Of the high tone against the low, the feature's sign as it is."""
    auroc: float
    null_high: float
    """The 95th percentile, over shuffled tones, of the best feature chosen and judged in the same way."""
    cosine: float
    """Of its decoder row with the contrast direction there."""
    active: float
    """The share of judging scenes where it is not 0."""


class Half(Struct, frozen=True):
    """Feature values of the scenes of some tasks, and which are of the high tone."""

    values: Array
    high: np.ndarray


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Table `features`; summary `sae`: how much variance is explained, and the contrast direction's own AUROC."""
    from agentsignals.lab.residual import sae  # noqa: PLC0415  (it loads torch, and says what to install)

    if not 0 < config.k <= config.features:
        raise LabError(f"{config.k} of {config.features} features.", "Take k between 1 and features.")
    at, layers = setting(model, config.setting), chosen_layers(model, ())
    layer = layers[len(layers) // 2] if config.layer is None else config.layer
    calibrated(at)
    first, second = halves(at, config.setting.seed)
    tones = tuple(dict.fromkeys((at.low, at.neutral, at.high)))
    learns = [scene.prompt for tone in tones for scene in at.scenes(tone, first)]
    tokens = np.concatenate([states[0] for states in model.states(learns, [layer])])
    trained = sae.trained(tokens, config.features, config.k, steps=config.steps, seed=config.setting.seed)
    progress(1, 2)
    states = [_states(at, tasks, layer, config) for tasks in (first, second)]
    dev, test = (Half(trained.features(values), high) for values, high in states)
    along = learnt(at, config.source, [layer], first)
    vector = directions.unit(along.vectors[0, 0])
    run.table("features", FeatureRow).add(_rows(dev, test, trained.decoder @ vector, config))
    run.write_summary(
        "sae",
        {
            "layer": layer,
            "explained": trained.explained(tokens),
            "direction_auroc": auroc(states[1][0] @ vector, states[1][1]),
        },
    )
    progress(2, 2)


def _states(at: Setting, tasks: list[Task], layer: int, config: Config) -> tuple[Array, np.ndarray]:
    states = [scene_states(at, at.scenes(tone, tasks), config.source, [layer])[:, 0] for tone in (at.high, at.low)]
    return np.concatenate(states), np.arange(2 * len(tasks)) < len(tasks)


def _aurocs(half: Half, high: np.ndarray) -> np.ndarray:
    return np.asarray([auroc(column, high) for column in half.values.T])


def _rows(dev: Half, test: Half, cosines: Array, config: Config) -> list[FeatureRow]:
    chosen_by = _aurocs(dev, dev.high)
    best = np.argsort(np.abs(chosen_by - 0.5))[::-1][: config.best]
    chance, shuffled = np.random.default_rng(config.setting.seed), []
    for _ in range(config.shuffles):
        by_chance = _aurocs(dev, chance.permutation(dev.high))
        winner = int(np.abs(by_chance - 0.5).argmax())
        shuffled.append(abs(auroc(test.values[:, winner], chance.permutation(test.high)) - 0.5) + 0.5)
    limit = float(np.percentile(shuffled, 95))
    return [
        FeatureRow(
            feature=int(number),
            auroc_dev=float(chosen_by[number]),
            auroc=auroc(test.values[:, number], test.high),
            null_high=limit,
            cosine=float(cosines[number]),
            active=float((test.values[:, number] > 0).mean()),
        )
        for number in best
    ]
