"""Conditions of an experiment: a direction at a dose, other words, or nothing at all. No model and no array here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

Where = Literal["all", "prompt", "feedback", "last", "generated"]

MOST_INVALID_BEYOND_BASELINE = 0.2
"""A condition whose share of invalid answers is this much above the baseline's is over-steered: what it does is break
the model, and no behaviour is read from it."""


class Condition(Struct, frozen=True, kw_only=True):
    """A treatment: nothing at all, a direction at a dose, or other words."""

    name: str
    direction: str | None = None
    """A name in a direction set, or a control (see `vector`)."""
    dose: float = 0.0
    """Fraction of the layer's median norm; negative: against the direction."""
    layers: tuple[int, ...] = ()
    where: Where = "all"
    tone: str = "neutral"
    """Tone of the words around the task: a prompt condition where it differs from the baseline's."""
    ablate: bool = False
    """The direction is taken out instead of added; the dose does not matter then."""

    @property
    def steers(self) -> bool:
        return self.direction is not None and (self.ablate or self.dose != 0)

    @property
    def is_control(self) -> bool:
        """Return whether its direction is a random one: no question of its own, and none that p is adjusted over."""
        return self.direction is not None and self.direction.startswith("random:")

    @property
    def place(self) -> tuple[object, ...]:
        """Where and how strongly it acts, along whatever direction: what random directions beside it share."""
        return self.layers, self.where, self.tone, abs(self.dose), self.ablate

    @property
    def acts_before_feedback(self) -> bool:
        """Return whether a first attempt, which no feedback precedes, is any other than without it."""
        return self.steers and self.where != "feedback"


BASELINE = Condition(name="baseline")


def beside(conditions: Sequence[Condition]) -> set[str]:
    """Names of the random directions that some other condition is held against, at the same place and dose."""
    held = {one.place for one in conditions if one.steers and not one.is_control}
    return {one.name for one in conditions if one.is_control and one.place in held}


def over_steered(invalid: float, invalid_at_baseline: float) -> bool:
    """Return whether a condition broke the model: its answers are invalid far more often than without it."""
    return invalid - invalid_at_baseline > MOST_INVALID_BEYOND_BASELINE
