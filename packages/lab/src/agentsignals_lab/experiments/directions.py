"""Directions by every recipe, and what each is worth on texts and scenes it was not made of.

The same is made and judged of the tokens' embeddings, before the first block: what parts the classes there is words and
no state of the model (arXiv 2609.22208).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, get_args

import numpy as np
from msgspec import Struct

from agentsignals_lab import directions
from agentsignals_lab.directions import Array, Recipe
from agentsignals_lab.experiments import Progress, steps
from agentsignals_lab.experiments.setting import (
    Setting,
    SettingConfig,
    Source,
    by_recipe,
    calibrated,
    chosen_layers,
    halves,
    learnt,
    scene_states,
    setting,
    text_states,
)
from agentsignals_lab.residual import EMBEDDING
from agentsignals_lab.runs import Row, Run

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel


class Config(Struct, frozen=True):
    """Layers (none named: chosen by depth) and recipes."""

    setting: SettingConfig = SettingConfig()
    layers: tuple[int, ...] = ()
    recipes: tuple[Recipe, ...] = ()
    """None named: all, but for the published one where the texts have no neutral class."""
    scenes: bool = True
    """Also learn from scenes, and judge on them. They are long: on a large model without a GPU they take most of the
    time."""
    shuffles: int = 200


_FROM_SCENES: tuple[Source, ...] = ("feedback", "decision")


class SeparationRow(Row, frozen=True, kw_only=True):
    """Separation of the setting's high from its low by a direction learnt on the other half."""

    KEY: ClassVar[tuple[str, ...]] = ("recipe", "learnt_from", "judged_on", "layer")
    recipe: str
    learnt_from: str
    """`stories`, `feedback` or `decision`."""
    judged_on: str
    layer: int
    """-1: the control, embeddings before the first block."""
    auroc: float
    low: float | None
    high: float | None
    """95 % interval over topics or tasks; None of fewer than three."""
    null_high: float | None
    """The 95th percentile of contrasts of shuffled labels on the same held-out half; None where it was not drawn."""
    p: float | None
    p_best: float | None = None
    """p where a layer is chosen among all of the run: the share of shuffles whose best layer parts at least as well."""
    n: int


def run(run: Run, model: HookedModel, config: Config, progress: Progress) -> None:
    """Files `directions-RECIPE.npz` and `directions-SOURCE.npz`; table `separation`."""
    at, layers = setting(model, config.setting), chosen_layers(model, config.layers)
    recipes = config.recipes or [name for name in get_args(Recipe) if name != "published" or at.neutral_class]
    sources = _FROM_SCENES if config.scenes else ()
    judged, texts = (EMBEDDING, *layers), at.texts()
    step = steps(progress, 1 + len(texts) + len(recipes) + len(sources))
    calibration = calibrated(at, scenes=config.scenes)
    step()
    every_state = text_states(at, judged, step)
    states = {name: rows[:, 1:] for name, rows in every_state.items()}
    topics = {name: [text.topic for text in rows] for name, rows in texts.items()}
    for recipe in recipes:
        made = by_recipe(at, recipe, states, layers)
        directions.write(made, run.folder / f"directions-{recipe}.npz")
        run.table("separation", SeparationRow).add(_held_out(at, recipe, every_state, topics, judged))
        step()
    for source in sources:
        _scenes(run, at, source, layers, config)
        step()
    run.write_summary("calibration", calibration)


def _held_out(
    at: Setting, recipe: Recipe, states: dict[str, Array], topics: dict[str, list[str]], layers: Sequence[int]
) -> list[SeparationRow]:
    """Made of half of the topics, judged on the others by the contrast of its high and its low direction."""
    names = sorted({topic for rows in topics.values() for topic in rows})
    learns, _ = directions.split(names)
    kept = {name for name, is_learning in zip(names, learns, strict=True) if is_learning}
    taught = {n: np.asarray([topic in kept for topic in topics[n]]) for n in states}
    made = by_recipe(at, recipe, {n: rows[taught[n]] for n, rows in states.items()}, layers)
    along = made.vectors[made.names.index(at.high_class)] - made.vectors[made.names.index(at.low_class)]
    parts = [(name, rows[~taught[name]]) for name, rows in states.items() if name in (at.high_class, at.low_class)]
    positive = np.concatenate([np.full(len(rows), name == at.high_class) for name, rows in parts])
    groups = [t for name, _ in parts for t in topics[name] if t not in kept]
    scores = directions.project(np.concatenate([rows for _, rows in parts]), along, made.centre, "coordinate")
    return [
        _row((recipe, "stories", "stories", layer), scores[:, i], positive, groups) for i, layer in enumerate(layers)
    ]


def _row(road: tuple[str, str, str, int], scores: Array, positive: np.ndarray, groups: Sequence[str]) -> SeparationRow:
    low, high = directions.interval(scores, positive, groups) or (None, None)
    names = dict(zip(SeparationRow.KEY, road, strict=True))
    value = directions.auroc(scores, positive)
    return SeparationRow(auroc=value, low=low, high=high, null_high=None, p=None, n=len(scores), **names)  # type: ignore[arg-type]  # the fields of its key, by name


def _scenes(run: Run, at: Setting, source: Source, layers: Sequence[int], config: Config) -> None:
    """Contrasts from scenes, held out by task against shuffled labels; those of stories judged on the same scenes."""
    first, _ = halves(at, config.setting.seed)
    directions.write(learnt(at, source, layers, first), run.folder / f"directions-{source}.npz")
    judged = (EMBEDDING, *layers)
    tones = {tone: scene_states(at, at.scenes(tone), source, judged) for tone in (at.high, at.low)}
    keys = [task.key for task in at.tasks]
    high, low = (directions.Grouped(tones[tone], keys) for tone in (at.high, at.low))
    table = run.table("separation", SeparationRow)
    fields = ("auroc", "low", "high", "null_high", "p", "p_best", "n")
    table.add(
        SeparationRow(
            recipe="contrast", learnt_from=source, judged_on=source, layer=layer, **{f: getattr(one, f) for f in fields}
        )
        for layer, one in zip(judged, directions.held_out(high, low, shuffles=config.shuffles), strict=True)
    )
    stories = learnt(at, "stories", judged, ())
    scores = directions.project(np.concatenate(list(tones.values())), stories.vectors[0], stories.centre, "coordinate")
    positive = np.arange(len(scores)) < len(keys)
    table.add(
        _row(("contrast", "stories", source, layer), scores[:, i], positive, [*keys, *keys])
        for i, layer in enumerate(judged)
    )
