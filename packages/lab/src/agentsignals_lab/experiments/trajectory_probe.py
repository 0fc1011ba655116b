"""Projection of prompts on emotions as a failure goes on: by stage, stretch, sentence; against random directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from msgspec import Struct

from agentsignals_lab import directions
from agentsignals_lab.directions import Array, DirectionSet, Recipe
from agentsignals_lab.experiments import Progress, steps
from agentsignals_lab.experiments.setting import (
    SettingConfig,
    by_recipe,
    calibrated,
    chosen_layers,
    setting,
    text_states,
)
from agentsignals_lab.residual import Calibration, Prompt
from agentsignals_lab.runs import Row, Run
from agentsignals_lab.statistics import Difference, paired_difference

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel

ALL = "all"


class Config(Struct, frozen=True):
    """Stages are those of the setting: a failure's, or its tones."""

    setting: SettingConfig = SettingConfig(tasks=20)
    layers: tuple[int, ...] = ()
    recipe: Recipe = "grand_mean"
    scenes: bool = True
    """Measures norms on scenes, too. They are long: on a large model without a GPU they take most of the time."""


class ProbeRow(Row, frozen=True, kw_only=True):
    """A stretch of one prompt on one direction at one layer; means over its tokens, sinks left out."""

    KEY: ClassVar[tuple[str, ...]] = ("stage", "item", "span", "label", "direction", "layer")
    stage: str
    item: int
    """Number of the task, equal at every stage."""
    span: str
    """A role, or `all`."""
    label: str
    """Which sentence or attempt of that role."""
    direction: str
    layer: int
    coordinate: float
    """In median norms of the layer, from the directions' centre."""
    z: float
    """The coordinate over the standard deviation of those along random directions, whose mean is 0:
    near 0, it lies there as it lies anywhere."""
    tokens: int


class Trend(Struct, frozen=True):
    """Last stage less first, of the whole prompt, paired by task."""

    direction: str
    layer: int
    change: Difference
    """Change of z."""


def run(run: Run, model: HookedModel, config: Config, progress: Progress) -> None:
    """Table `probe`, file `directions.npz`, summary `trends`."""
    at, layers = setting(model, config.setting), chosen_layers(model, config.layers)
    stages = at.stages()
    step = steps(progress, 1 + len(at.texts()) + len(stages))
    calibration = calibrated(at, scenes=config.scenes)
    step()
    of = by_recipe(at, config.recipe, text_states(at, layers, step), layers)
    directions.write(of, run.folder / "directions.npz")
    table = run.table("probe", ProbeRow)
    for stage, chats in stages.items():
        prompts = [model.encode(chat) for chat in chats]
        for item, (prompt, states) in enumerate(zip(prompts, model.states(prompts, layers), strict=True)):
            table.add(_rows((stage, item), prompt, states, (of, calibration)))
        step()
    run.write_summary("trends", _trends(table.rows, list(stages)))


def _rows(
    of: tuple[str, int], prompt: Prompt, states: Array, against: tuple[DirectionSet, Calibration]
) -> list[ProbeRow]:
    made, calibration = against
    places = [(ALL, "", range(len(prompt.tokens)))]
    places += [(s.role, s.label, range(s.start, s.end)) for s in prompt.spans if s.role != "template"]
    rows = []
    for place, layer in enumerate(made.layers):
        here = states[place]
        usual = np.linalg.norm(here, axis=1) <= calibration.sink_norm[layer]
        for span, label, tokens in places:
            kept = [token for token in tokens if usual[token]]
            if not kept:
                continue
            seen = here[kept].mean(axis=0) - made.centre[place]
            along = directions.unit(made.vectors[:, place]) @ seen
            # Of the coordinates along random directions: exact, for each of d axes holds as much of the length.
            spread = float(np.linalg.norm(seen)) / float(np.sqrt(len(seen)))
            rows += [
                ProbeRow(
                    stage=of[0],
                    item=of[1],
                    span=span,
                    label=label,
                    direction=name,
                    layer=layer,
                    coordinate=float(value) / calibration.median_norm[layer],
                    z=float(value) / spread if spread else 0.0,
                    tokens=len(kept),
                )
                for name, value in zip(made.names, along, strict=True)
            ]
    return rows


def _trends(rows: Sequence[ProbeRow], stages: Sequence[str]) -> list[Trend]:
    by_direction: dict[tuple[str, int], dict[tuple[str, int], float]] = {}
    for row in rows:
        if row.span == ALL:
            by_direction.setdefault((row.direction, row.layer), {})[row.stage, row.item] = row.z
    trends = []
    for (name, layer), held in by_direction.items():
        both = sorted(item for stage, item in held if stage == stages[0] and (stages[-1], item) in held)
        last, first = ([held[stage, item] for item in both] for stage in (stages[-1], stages[0]))
        trends.append(Trend(name, layer, paired_difference(last, first, [str(item) for item in both])))
    return trends
