"""Random directions that a direction is held against: how many is a setting, which they are is the same everywhere.

They are the controls `random:1`, `random:2` … of a file of conditions (`steering.vector`), so that a row of one
experiment stands for the same push as a row of another, or of a retry loop.
"""

from __future__ import annotations

import numpy as np
from agentsignals.errors import LabError

from agentsignals_lab import directions
from agentsignals_lab.directions import Array
from agentsignals_lab.experiments.setting import SettingConfig

MOST_CHOOSING = 20
"""Controls at each layer and dose that are chosen among: the choice carries no p, so few will do."""


def seeds(asked: SettingConfig, *, chooses: bool = False) -> range:
    """Seeds of the controls. Where something is chosen by what goes beyond them (`chooses`), they are others than those
    that judge, else the choice would seek out the places where these happen to be weak. LabError for none."""
    if asked.randoms < 1:
        raise LabError(f"{asked.randoms} random directions.", "One at least; 19 for one p of .05.")
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
