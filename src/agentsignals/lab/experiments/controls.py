"""Random directions that a direction is held against: how many is a setting, which they are is the same everywhere.

They are the controls `random:1`, `random:2` … of a file of conditions (`steering.vector`), so that a row of one
experiment stands for the same push as a row of another, or of a retry loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from agentsignals.errors import LabError
from agentsignals.lab import directions
from agentsignals.lab.directions import Array
from agentsignals.lab.experiments.setting import SettingConfig

LEVEL = 0.05
"""What goes beyond chance is told of an adjusted p at or below it."""
MOST_CHOOSING = 20
"""Controls at each layer and dose that are chosen among: the choice carries no p, so few will do."""
_ROUNDING = 1e-12


def seeds(asked: SettingConfig, *, chooses: bool = False) -> range:
    """Seeds of the controls. Where something is chosen by what goes beyond them (`chooses`), they are others than those
    that judge, else the choice would seek out the places where these happen to be weak. LabError for none."""
    if asked.randoms < 1:
        raise LabError(f"{asked.randoms} random directions.", f"One at least; {enough(1)} for one p of {LEVEL}.")
    if chooses:
        return range(1 + asked.randoms, 1 + asked.randoms + min(asked.randoms, MOST_CHOOSING))
    return range(1, 1 + asked.randoms)


def names(asked: SettingConfig) -> list[str]:
    """The controls as directions of conditions."""
    return [f"random:{seed}" for seed in seeds(asked)]


def vectors(asked: SettingConfig, width: int, *, chooses: bool = False) -> Array:
    """The controls themselves, of length 1 and the same at every layer: (randoms, width)."""
    like = np.ones(width, np.float32) / np.sqrt(np.float32(width))
    return np.concatenate([directions.random_like(like, 1, seed) for seed in seeds(asked, chooses=chooses)])


def spread(state: Array) -> float:
    """The standard deviation of the coordinates of a state (d,) along random directions: its length over the root of d,
    exactly, for each of d axes holds as much. As a scale, drawn ones are off by their number: twenty by a sixth."""
    return float(np.linalg.norm(state)) / float(np.sqrt(len(state)))


def is_control(direction: str | None) -> bool:
    """Return whether a condition's direction is such a control: no question of its own, and not among those that p
    is adjusted over."""
    return direction is not None and direction.startswith("random:")


def p_random(effect: float, by_chance: Sequence[float]) -> float:
    """The share of the controls that raise the outcome at least as much, the real one counted among them: no less than
    1 / (1 + controls) (a Monte Carlo test, Phipson and Smyth 2010)."""
    return (1 + int((np.asarray(by_chance) >= effect - _ROUNDING).sum())) / (1 + len(by_chance))


def enough(tests: int) -> int:
    """The fewest controls with which one of so many p can come down to the level once it is adjusted (`stats.holm`)."""
    return ceil(tests / LEVEL) - 1


def caveat(asked: SettingConfig, tests: int) -> str | None:
    """Why no p of so many can come down to the level; None where one can."""
    if asked.randoms >= enough(tests):
        return None
    return (
        f"{asked.randoms} random directions and {tests} tests: no adjusted p is below"
        f" {min(1.0, tests / (1 + asked.randoms)):.2g}, whatever a direction does. randoms = {enough(tests)} will do."
    )
