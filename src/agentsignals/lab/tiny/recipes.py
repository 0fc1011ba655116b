"""Which models of the tiny world there are: how large, taught what law, and for how long.

`small` is what ships, as `seed0` and `seed1`: large enough for the chance of a shortcut at one token, not for answers
that are drawn whole, since it often copies numbers wrong. `large` copies them right, so that behaviour can be counted.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.lab.tiny import world


class Recipe(Struct, frozen=True, kw_only=True):
    """Recipe of a model. Two models of one recipe and seed are equal on one machine."""

    layers: int
    width: int
    inner: int
    """Width of each block's two-layer network."""
    heads: int
    window: int = 8
    """Tokens that the first block attends to, itself included; 0: all. With a small window the mood can't reach the
    place of decision in the first block: it is read from where it was said later, so that changing it there matters."""
    steps: int
    batch: int
    """Lessons a step."""
    law: world.Law = world.LAW


SMALL = Recipe(layers=3, width=96, inner=192, heads=4, steps=900, batch=64, law=world.NO_GIVING_UP)
LARGE = Recipe(layers=3, width=384, inner=1024, heads=6, steps=200, batch=32)
NULL = replace(LARGE, law=world.NULL)
"""The negative control: moods are told and mean nothing."""

RECIPES = {"small": SMALL, "large": LARGE, "null": NULL}
