"""Conditions of an experiment as edits of the residual stream, and whether they did anything at all.

A dose is a fraction of the median norm of a layer's tokens (sinks left out) on calibration texts: it does not depend on
the prompt, the step or the number of layers (design/lab.md#steering). A null result counts only when the manipulation
moved
something and the output stayed valid (b 8).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from agentsignals.errors import LabError
from agentsignals.lab import directions
from agentsignals.lab.conditions import Condition, Where
from agentsignals.lab.directions import Array, DirectionSet
from agentsignals.lab.residual.interface import Ablate, Add, Calibration, Edit, Positions, Prompt, ResidualModel

_POSITIONS: dict[Where, Positions] = {
    "all": Positions("all"),
    "prompt": Positions("prompt"),
    "feedback": Positions("roles", roles=("feedback",)),
    "last": Positions("last"),
    "generated": Positions("generated"),
}


def positions(where: Where) -> Positions:
    """The tokens that a treatment acts on."""
    return _POSITIONS[where]


def vector(of: DirectionSet, name: str, layer: int) -> Array:
    """A direction of the set at a layer, or a control made from the set: `random:SEED`, `orthogonal:SEED` (random, at
    right angles to all of them), `shared` (what they have in common)."""
    place = of.layers.index(layer) if layer in of.layers else None
    if place is None:
        raise LabError(f"There are no directions at layer {layer}.", f"They are at {', '.join(map(str, of.layers))}.")
    kind, _, seed = name.partition(":")
    if kind in ("random", "orthogonal"):
        if not seed.isdecimal():
            raise LabError(f"{name!r} has no seed.", f"Write {kind}:1, {kind}:2, ...")
        if kind == "orthogonal":
            beside: Array = directions.orthogonal_to(of.vectors[:, place : place + 1], int(seed))[0]
            return beside
        drawn: Array = directions.random_like(of.vectors[0, place], 1, int(seed))[0]
        return drawn
    if name == "shared":
        axis: Array = directions.shared_axis(of.vectors)[place]
        return axis
    return of.of(name, layer)


def edits(condition: Condition, of: DirectionSet | None, calibration: Calibration) -> list[Edit]:
    """What to do to the model in this condition; nothing where it does not steer."""
    if not condition.steers or condition.direction is None:
        return []
    if of is None:
        raise LabError(
            f"Condition {condition.name!r} needs directions.", "Name a file that `lab run directions` wrote."
        )
    if not condition.layers:
        raise LabError(f"Condition {condition.name!r} names no layer.", "Say which blocks it acts on.")
    at = positions(condition.where)
    made: list[Edit] = []
    for layer in condition.layers:
        along = vector(of, condition.direction, layer)
        if condition.ablate:
            made.append(Ablate(layer, along, at))
        else:
            made.append(Add(layer, along, condition.dose * calibration.median_norm[layer], at))
    return made


class Manipulation(Struct, frozen=True):
    """Whether a condition moved the model, on fixed prompts."""

    condition: str
    kl: float
    """Mean Kullback-Leibler divergence of the next token's distribution, steered from plain, in nats."""
    shift: float | None
    """Mean change of the projection on the direction at the last layer read downstream, in median norms there; None
    where the condition has no direction."""
    anti_steered: float | None
    """The share of prompts whose projection moved the other way."""
    n: int


def manipulation(
    model: ResidualModel,
    prompts: Sequence[Prompt],
    condition: Condition,
    of: DirectionSet | None,
    calibration: Calibration,
) -> Manipulation:
    """Runs the prompts plain and steered. The projection is read at the deepest layer of the set that lies at or after
    the steered ones, over the last token of each prompt."""
    does = edits(condition, of, calibration)
    plain, steered = model.next_logprobs(prompts), model.next_logprobs(prompts, does)
    kl = float((np.exp(steered) * (steered - plain)).sum(axis=1).mean())
    if of is None or condition.direction is None or not does:
        return Manipulation(condition.name, kl, None, None, len(prompts))
    layer = max(of.layers)
    along = directions.unit(vector(of, condition.direction, layer))
    last = Positions("last", skip_sinks=False)
    moved = (model.record(prompts, [layer], last, does) - model.record(prompts, [layer], last))[:, 0] @ along
    wanted = np.sign(condition.dose) if not condition.ablate else -1.0
    return Manipulation(
        condition.name,
        kl,
        float(moved.mean()) / calibration.median_norm[layer],
        float((moved * wanted < 0).mean()),
        len(prompts),
    )
