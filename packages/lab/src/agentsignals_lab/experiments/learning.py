"""Directions of a setting: learnt from texts, or from the scenes of training tasks where they will be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from agentsignals.errors import LabError

from agentsignals_lab import directions
from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.directions import Array, DirectionSet, Origin, Recipe
from agentsignals_lab.experiments.file_setting import Setting
from agentsignals_lab.experiments.setting import Scene, place
from agentsignals_lab.residual.interface import Calibration, Positions
from agentsignals_lab.separation import split

Source = Literal["stories", "feedback", "decision"]
"""Source of a direction: texts about people, feedback tokens, or the token where code parts ways."""


def calibrated(at: Setting, *, scenes: bool = True) -> Calibration:
    """Norms over the setting's texts, dialogues and neutral scenes; from now on the model leaves sinks out."""
    prompts = [text.prompt for rows in at.texts().values() for text in rows]
    of_scenes = [scene.prompt for scene in at.scenes(at.neutral)] if scenes else []
    return at.model.calibrate([*prompts, *at.dialogues(), *of_scenes])


def halves(at: Setting, seed: int) -> tuple[list[Task], list[Task]]:
    """Tasks to learn from or choose by, and tasks to judge by."""
    learns, _ = split([task.key for task in at.tasks], seed=seed)
    first = [task for task, is_learning in zip(at.tasks, learns, strict=True) if is_learning]
    return first, [task for task, is_learning in zip(at.tasks, learns, strict=True) if not is_learning]


def text_states(at: Setting, layers: Sequence[int], step: Callable[[], None]) -> dict[str, Array]:
    """(texts, layers, d) by class, means over all tokens but sinks. `step`: called after each class."""
    states = {}
    for name, rows in at.texts().items():
        states[name] = at.model.record([text.prompt for text in rows], layers)
        step()
    return states


def scene_states(at: Setting, scenes: Sequence[Scene], source: Source, layers: Sequence[int]) -> Array:
    """(scenes, layers, d), means over the tokens of the place."""
    return at.model.record([scene.prompt for scene in scenes], layers, place_of(source))


def place_of(source: Source) -> Positions:
    """The tokens of a scene that a source is read at; texts have none there, and feedback stands in."""
    return place("decision" if source == "decision" else "feedback")


def learnt(at: Setting, source: Source, layers: Sequence[int], tasks: Sequence[Task]) -> DirectionSet:
    """The contrast of the setting's high against its low, from a source, called after the class of texts or the tone
    that it leads to; `tasks` matter where the source is scenes."""
    if source == "stories":
        by_class = at.texts()
        high, low = (
            at.model.record([t.prompt for t in by_class[name]], layers) for name in (at.high_class, at.low_class)
        )
    else:
        high, low = (scene_states(at, at.scenes(tone, tasks), source, layers) for tone in (at.high, at.low))
    vectors, centre = directions.contrast(high, low)
    names = (at.high_class, at.low_class) if source == "stories" else (at.high, at.low)
    return DirectionSet(
        names=names[:1],
        layers=tuple(layers),
        vectors=vectors[None],
        centre=centre,
        recipe="contrast",
        texts=f"{source}:{at.fingerprint}",
        model=at.model.card.name,
        counts=dict(zip(names, (len(high), len(low)), strict=True)),
    )


def by_recipe(at: Setting, recipe: Recipe, states: dict[str, Array], layers: Sequence[int]) -> DirectionSet:
    """Directions of all classes of texts by a recipe. Technical texts are the published recipe's neutral, dialogues
    that of the cleaned grand mean."""
    if recipe == "published" and at.neutral_class is None:
        raise LabError("The published recipe measures from a neutral class.", "Name one in the file of texts.")
    neutral = states[at.neutral_class or at.low_class]  # which only that recipe reads
    if recipe == "grand_mean_cleaned":
        neutral = at.model.record(at.dialogues(), layers)
        neutral = neutral[~np.isnan(neutral).any(axis=(1, 2))]
    classes = {n: s for n, s in states.items() if recipe != "published" or n != at.neutral_class}
    return directions.made(
        recipe, classes, neutral, Origin(tuple(layers), f"{at.name}:{at.fingerprint}", at.model.card.name)
    )
