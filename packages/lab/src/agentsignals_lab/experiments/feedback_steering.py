"""Does adding a direction where the feedback stands (or where code parts ways) change the outcome, beyond any push?

Layer and dose are chosen on some tasks by what the direction does beyond the strongest of random ones of the same
length, and judged on the others (design/lab.md#tiny-models). Every source and place is a road, and one road of many
beats its random directions by chance: p is adjusted over all roads that were asked (Holm).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from agentsignals.stats.paired import holm
from msgspec import Struct
from msgspec.structs import replace

from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.directions import Array, DirectionSet
from agentsignals_lab.experiments import Progress, controls, effects
from agentsignals_lab.experiments.chosen_setting import setting
from agentsignals_lab.experiments.learning import Source, calibrated, halves, learnt
from agentsignals_lab.experiments.setting import Floats, Place, Scene, Setting, SettingConfig, chosen_layers, place
from agentsignals_lab.residual.interface import Add, Calibration, ResidualModel
from agentsignals_lab.runs import Row, Run
from agentsignals_lab.statistics import LEVEL, caveat, mean, p_random


class Config(Struct, frozen=True, kw_only=True):
    """Doses are fractions of a layer's median norm; both signs are tried."""

    setting: SettingConfig = SettingConfig()
    layers: tuple[int, ...] = ()
    sources: tuple[Source, ...] = ("stories", "feedback", "decision")
    places: tuple[Place, ...] = ("feedback", "decision")
    doses: tuple[float, ...] = (0.5, 1.0, 2.0)


class DoseRow(Row, frozen=True, kw_only=True):
    """One dose of one direction, on the tasks that choose (`dev`) or judge (`test`)."""

    KEY: ClassVar[tuple[str, ...]] = ("part", "source", "place", "layer", "dose")
    part: str
    source: str
    """Source that the direction was learnt from."""
    place: str
    layer: int
    dose: float
    effect: float
    low: float
    high: float
    opposed: float
    """The share of scenes that moved against the sign of the dose."""
    sd: float
    """Standard deviation of the effect over scenes."""
    n: int


class Judged(Struct, frozen=True, kw_only=True):
    """Effect of a direction at its chosen layer and dose, on tasks that had no say in the choice."""

    source: str
    place: str
    layer: int
    dose: float
    up: effects.EffectRow
    down: effects.EffectRow
    """At minus the dose."""
    random_mean: float
    random_sd: float
    random_most: float
    """Effects of the random directions at the same place, layer and dose, on the judging tasks."""
    p_random: float
    """The share of them that raise the outcome at least as much, the real one counted among them."""
    p_adjusted: float = 1.0
    """p_random adjusted over the roads of the run (Holm)."""
    specific: bool = False
    """The adjusted p is at most .05, the interval leaves out 0, and minus the direction does not raise it as well: what
    does is a push out of what the model knows."""
    caveat: str | None = None
    """Why no road of the run can be specific, where that is so: too few random directions."""


class Road(Struct, frozen=True):
    """A direction by its source, and where it is added."""

    source: Source
    place: Place
    of: DirectionSet


class Ground(Struct, frozen=True):
    """Data that every dose of a part shares."""

    at: Setting
    scenes: list[Scene]
    plain: Floats
    calibration: Calibration
    part: str


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Tables `doses`, `effects`, `items`; summary `chosen`, one entry a source and place."""
    at, layers = setting(model, config.setting), chosen_layers(model, config.layers)
    calibration = calibrated(at)
    first, second = halves(at, config.setting.seed)
    dev, test = (_ground(at, tasks, calibration, part) for tasks, part in ((first, "dev"), (second, "test")))
    sets = {source: learnt(at, source, layers, first) for source in config.sources}
    chosen: list[Judged] = []
    rows: list[effects.ItemRow] = []
    by_chance: dict[tuple[Place, int, float], list[float]] = {}
    for number, where in enumerate(config.places):
        chance = dict(_pushes(dev, layers, where, config))
        for source in config.sources:
            road = Road(source, where, sets[source])
            up = _curve(run, dev, road, config)
            _curve(run, test, road, config)
            layer, dose = most_specific(up, chance)
            if (where, layer, dose) not in by_chance:
                by_chance[where, layer, dose] = _by_chance(test, layer, dose, where, config)
            judged, items = _judged(test, road, (layer, dose), by_chance[where, layer, dose])
            chosen.append(judged)
            rows += items
        progress(number + 1, len(config.places))
    effects.write(run, [side for judgement in chosen for side in (judgement.up, judgement.down)], rows)
    run.write_summary("chosen", with_verdicts(chosen, config.setting))


def most_specific(
    upward: Mapping[tuple[int, float], float], by_chance: Mapping[tuple[int, float], Sequence[float]]
) -> tuple[int, float]:
    """The layer and dose whose effect goes furthest beyond the strongest random push there; not the largest effect,
    which late layers and high doses have for any direction."""
    return max(upward, key=lambda cell: upward[cell] - max(by_chance[cell]))


def _ground(at: Setting, tasks: Sequence[Task], calibration: Calibration, part: str) -> Ground:
    scenes = at.scenes(at.neutral, tasks)
    return Ground(at, scenes, at.outcome(scenes), calibration, part)


def _steered(ground: Ground, layer: int, vector: Array, dose: float, where: Place) -> Floats:
    push = Add(layer, vector, dose * ground.calibration.median_norm[layer], place(where))
    return ground.at.outcome(ground.scenes, [push])


def _pushes(
    ground: Ground, layers: Sequence[int], where: Place, config: Config
) -> Iterator[tuple[tuple[int, float], list[float]]]:
    """Mean effects of the random directions, by layer and dose."""
    for layer in layers:
        for dose in config.doses:
            yield (layer, dose), _by_chance(ground, layer, dose, where, config)


def _by_chance(ground: Ground, layer: int, dose: float, where: Place, config: Config) -> list[float]:
    drawn = controls.vectors(config.setting, ground.at.model.card.width, chooses=ground.part == "dev")
    return [float((_steered(ground, layer, vector, dose, where) - ground.plain).mean()) for vector in drawn]


def _curve(run: Run, ground: Ground, road: Road, config: Config) -> dict[tuple[int, float], float]:
    """All doses of a direction into the table; the effects of those upward, by layer and dose."""
    keys, upward = [scene.task.key for scene in ground.scenes], {}
    for layer in _known_layers(road.of):
        for dose in sorted({sign * dose for dose in config.doses for sign in (-1, 1)}):
            moved = _steered(ground, layer, road.of.of(road.of.names[0], layer), dose, road.place) - ground.plain
            estimate = mean(moved, keys)
            if dose > 0:
                upward[layer, dose] = estimate.value
            row = DoseRow(
                part=ground.part,
                source=road.source,
                place=road.place,
                layer=layer,
                dose=dose,
                effect=estimate.value,
                low=estimate.low,
                high=estimate.high,
                opposed=float(np.mean(moved * dose < 0)),
                sd=float(moved.std()),
                n=estimate.n,
            )
            run.table("doses", DoseRow).add([row])
    return upward


def _known_layers(of: DirectionSet) -> list[int]:
    """Layers where there is a direction: where the tones' states are the same (before anything was read), is none."""
    return [layer for layer in of.layers if np.linalg.norm(of.of(of.names[0], layer)) > 0]


def with_verdicts(roads: Sequence[Judged], asked: SettingConfig) -> list[Judged]:
    """The roads of a run with p adjusted over all of them, and which of them are specific."""
    return [
        replace(
            road,
            p_adjusted=p,
            specific=p <= LEVEL and road.up.low > 0 and not road.down.low > 0,
            caveat=caveat(asked.randoms, len(roads)),
        )
        for road, p in zip(roads, holm([road.p_random for road in roads]), strict=True)
    ]


def _judged(
    ground: Ground, road: Road, cell: tuple[int, float], by_chance: Sequence[float]
) -> tuple[Judged, list[effects.ItemRow]]:
    layer, dose = cell
    vector, rows = road.of.of(road.of.names[0], layer), []

    def side(signed: float) -> effects.EffectRow:
        name = f"{road.source}/{road.place}/{layer}/{signed:+g}"
        moved = _steered(ground, layer, vector, signed, road.place)
        rows.extend(effects.items(name, ground.scenes, moved, ground.plain))
        return effects.effect(name, ground.scenes, moved, ground.plain, ground.at.unit)

    up, down, chance = side(dose), side(-dose), np.asarray(by_chance)
    return Judged(
        source=road.source,
        place=road.place,
        layer=layer,
        dose=dose,
        up=up,
        down=down,
        random_mean=float(chance.mean()),
        random_sd=float(chance.std()),
        random_most=float(chance.max()),
        p_random=p_random(up.effect, by_chance),
    ), rows
