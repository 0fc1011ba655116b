"""Which features of a sparse autoencoder tell the tones apart, beyond the best of as many features by chance?

Difference-in-means directions detect better as a rule (AxBench, arXiv 2501.17148): this is a second look only. The
autoencoder is one that others trained and `sae-lens` reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab import directions
from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.directions import Array
from agentsignals_lab.experiments import Progress
from agentsignals_lab.experiments.chosen_setting import setting
from agentsignals_lab.experiments.learning import Source, calibrated, halves, learnt, place_of
from agentsignals_lab.experiments.setting import Floats, Setting, SettingConfig
from agentsignals_lab.residual.interface import Prompt, ResidualModel
from agentsignals_lab.runs import Row, Run
from agentsignals_lab.separation import auroc, aurocs

_LITTLE = 0.5
"""An autoencoder that gives back less than half of the variance misses more than it shows: a limit of ours."""


class Config(Struct, frozen=True, kw_only=True):
    """Which autoencoder reads which tokens."""

    setting: SettingConfig = SettingConfig()
    source: Source = "feedback"
    """Where features are read."""
    sae: str | None = None
    """A folder that sae-lens saved; its layer is what is read."""
    best: int = 10
    """Number of features that are judged."""
    shuffles: int = 200


class FeatureRow(Row, frozen=True, kw_only=True):
    """A feature that told the tones apart best on one half of the tasks, judged on the other."""

    KEY: ClassVar[tuple[str, ...]] = ("feature",)
    feature: int
    auroc_dev: float
    """AUROC of the high tone against the low, the feature's sign as it is."""
    auroc: float
    null_high: float
    """The 95th percentile, over shuffled tones, of the best feature chosen and judged in the same way."""
    cosine: float
    """Cosine of its decoder row with the contrast direction there."""
    active: float
    """The share of judging scenes where it is not 0."""
    explained: float
    """Share of the states' variance that the whole autoencoder gives back: equal in every row."""


class Autoencoder(Protocol):
    """An autoencoder as the experiment asks it."""

    @property
    def decoder(self) -> Array: ...

    def features(self, states: Array) -> Array: ...

    def rebuilt(self, states: Array) -> Array: ...


class Half(Struct, frozen=True):
    """The scenes of some tasks in the high and the low tone, by means over the tokens of the source."""

    values: Array
    """(scenes, features)"""
    states: Array
    """(scenes, d)"""
    high: np.ndarray
    explained: float
    """Share of all tokens' variance."""


class Reading(Struct, frozen=True):
    """Where states are read, and what reads features off them."""

    at: Setting
    source: Source
    layer: int
    sink_norm: float
    """Longer states are sinks, and no autoencoder is made for them."""

    def tokens(self, prompts: list[Prompt]) -> list[tuple[Array, np.ndarray]]:
        """States of each prompt's tokens, (tokens, d), and which are no sinks."""
        states = [recorded[0] for recorded in self.at.model.states(prompts, [self.layer])]
        return [(s, np.linalg.norm(s, axis=1) <= self.sink_norm) for s in states]

    def half(self, tasks: list[Task], by: Autoencoder) -> Half:
        """Scenes of these tasks, those of the high tone first."""
        from agentsignals_lab.residual.batches import meant  # noqa: PLC0415  (as in `run`)

        prompts = [scene.prompt for tone in (self.at.high, self.at.low) for scene in self.at.scenes(tone, tasks)]
        scenes, positions = self.tokens(prompts), place_of(self.source)
        values, means = [], []
        # One scene at a time: of a large autoencoder all tokens of all scenes would not fit.
        for prompt, (states, plain) in zip(prompts, scenes, strict=True):
            there = states[np.asarray(meant(prompt, positions)) & (plain | (not positions.skip_sinks))]
            if not len(there):
                raise LabError(f"A scene has no token of its {self.source} but sinks.", "Take another layer or source.")
            values.append(by.features(there).mean(axis=0))
            means.append(there.mean(axis=0))
        share = explained(by, [states[plain] for states, plain in scenes])
        return Half(np.stack(values), np.stack(means), np.arange(len(prompts)) < len(tasks), share)


def explained(by: Autoencoder, scenes: list[Array]) -> float:
    """The share of the variance of token states, one (tokens, d) a scene, that an autoencoder gives back: 1 is all, 0
    no more than their mean, and less is worse than it."""
    mean = np.concatenate(scenes).mean(axis=0)
    missed = sum(float(((states - by.rebuilt(states)) ** 2).sum()) for states in scenes)
    return 1 - missed / sum(float(((states - mean) ** 2).sum()) for states in scenes)


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Table `features`; summary `sae`: which autoencoder, how much of the variance of judging scenes it gives back, a
    caveat where that is little, and the contrast direction's own AUROC."""
    from agentsignals_lab.residual import public_sae  # noqa: PLC0415  (it loads torch, and says what to install)

    if config.sae is None:
        raise LabError("No autoencoder was named.", 'Write sae = "FOLDER", one that sae-lens saved (docs/lab.md).')
    made = public_sae.read(Path(config.sae), model.card)
    at, layer = setting(model, config.setting), made.layer
    reading = Reading(at, config.source, layer, calibrated(at).sink_norm[layer])
    first, second = halves(at, config.setting.seed)
    progress(1, 2)
    dev, test = (reading.half(tasks, made) for tasks in (first, second))
    vector = directions.unit(learnt(at, config.source, [layer], first).vectors[0, 0])
    run.table("features", FeatureRow).add(_rows(dev, test, made.decoder @ vector, config))
    run.write_summary(
        "sae",
        {
            "of": Path(config.sae).name,
            "made_for": made.made_for,
            "layer": layer,
            "features": len(made.decoder),
            "explained": test.explained,
            "caveat": _caveat(test.explained),
            "direction_auroc": auroc(test.states @ vector, test.high),
        },
    )
    progress(2, 2)


def _caveat(explained: float) -> str | None:
    if explained >= _LITTLE:
        return None
    return (
        f"It gives back {explained:.0%} of the variance of these states: what its features show is little of what is"
        " there, and it may be of another model or place."
    )


def _rows(dev: Half, test: Half, cosines: Array, config: Config) -> list[FeatureRow]:
    chosen_by = aurocs(dev.values, dev.high[None])[0]
    best = np.argsort(np.abs(chosen_by - 0.5))[::-1][: config.best]
    null_high = _null_high(dev, test, config.shuffles, np.random.default_rng(config.setting.seed))
    return [
        FeatureRow(
            feature=int(number),
            auroc_dev=float(chosen_by[number]),
            auroc=auroc(test.values[:, number], test.high),
            null_high=null_high,
            cosine=float(cosines[number]),
            active=float((test.values[:, number] != 0).mean()),
            explained=test.explained,
        )
        for number in best
    ]


def _null_high(dev: Half, test: Half, shuffles: int, chance: np.random.Generator) -> float:
    shuffled: list[Floats] = []
    draws = [(chance.permutation(dev.high), chance.permutation(test.high)) for _ in range(shuffles)]
    by_chance = aurocs(dev.values, np.stack([of_dev for of_dev, _ in draws]))
    for (_, of_test), of_dev in zip(draws, by_chance, strict=True):
        winner = int(np.abs(of_dev - 0.5).argmax())
        shuffled.append(np.abs(auroc(test.values[:, winner], of_test) - 0.5) + 0.5)
    return float(np.percentile(shuffled, 95))
