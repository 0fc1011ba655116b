"""Conditions of an experiment as edits of the residual stream, whether they did anything at all, and where prompts lie.

A dose is a fraction of the median norm of a layer's tokens (sinks left out) on calibration texts: it does not depend on
the prompt, the step or the number of layers (design/lab.md#steering). A null result counts only when the manipulation
moved something and the output stayed valid (b 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from agentsignals.errors import LabError
from msgspec.structs import replace
from numpy.typing import NDArray

from agentsignals_lab import directions
from agentsignals_lab.conditions import Condition
from agentsignals_lab.directions import Array, DirectionSet
from agentsignals_lab.residual import Ablate, Add, Calibration, Edit, Place, Positions, Prompt, place
from agentsignals_lab.retry_loop import Episode, ManipulationRow, ProjectionRow, Steered

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel


def vector(of: DirectionSet, name: str, layer: int) -> Array:
    """A direction of the set at a layer, or the control `random:SEED` of its length."""
    if layer not in of.layers:
        raise LabError(f"There are no directions at layer {layer}.", f"They are at {', '.join(map(str, of.layers))}.")
    kind, _, seed = name.partition(":")
    if kind != "random":
        return of.of(name, layer)
    if not seed.isdecimal():
        raise LabError(f"{name!r} has no seed.", "Write random:1, random:2, ...")
    drawn: Array = directions.random_like(of.vectors[0, of.layers.index(layer)], 1, int(seed))[0]
    return drawn


def edits(condition: Condition, of: DirectionSet | None, calibration: Calibration) -> list[Edit]:
    """Return the edits of the model in this condition; none where it does not steer."""
    if not condition.steers or condition.direction is None:
        return []
    if of is None:
        raise LabError(
            f"Condition {condition.name!r} needs directions.", "Name a file that `lab run directions` wrote."
        )
    if not condition.layers:
        raise LabError(f"Condition {condition.name!r} names no layer.", "Set layers = [NUMBER, …].")
    at = place(condition.where)
    made: list[Edit] = []
    for layer in condition.layers:
        along = vector(of, condition.direction, layer)
        if condition.ablate:
            made.append(Ablate(layer, along, at))
        else:
            made.append(Add(layer, along, condition.dose * calibration.median_norm[layer], at))
    return made


LEAST_KL = 1e-6
"""Nats. A condition whose next tokens differ by less from those without it does nothing: what single precision rounds
is far below, and what a person could meet far above."""
NOISE_FACTOR = 10.0
"""By how much a condition must move more than the size of a batch does, which in 16 bits is more than `LEAST_KL`."""
_ALONE = 4
"""Prompts that are run alone, too, for what a batch changes."""


Unsteered = tuple[Array, float, Array | None]
"""Of prompts run without a condition, which all conditions share: log-probabilities, noise, and states."""


def manipulation(  # noqa: PLR0913  (what is compared, and what is known of it already)
    model: HookedModel,
    prompts: Sequence[Prompt],
    condition: Condition,
    of: DirectionSet | None,
    calibration: Calibration,
    unsteered: dict[tuple[Prompt, ...], Unsteered] | None = None,
) -> ManipulationRow:
    """Runs the prompts plain and steered. The projection is read at the deepest layer of the set that lies at or after
    the steered ones, over the last token of each prompt. `unsteered`: what earlier calls for other conditions found."""
    does = edits(condition, of, calibration)
    if does and condition.where != "all":
        # The prompts that hold a token where the condition acts, sinks left out.
        means = model.record(prompts, condition.layers, place(condition.where))
        prompts = [prompt for prompt, mean in zip(prompts, means, strict=True) if not np.isnan(mean).all()]
    if not prompts:
        return ManipulationRow(condition=condition.name, verdict="not testable", n=0)
    last = Positions("last", skip_sinks=False)
    found = {} if unsteered is None else unsteered
    key = tuple(prompts)
    if key not in found:
        plain = model.next_logprobs(prompts)
        alone = np.concatenate([model.next_logprobs([prompt]) for prompt in prompts[:_ALONE]])
        states = model.record(prompts, [max(of.layers)], last) if of is not None else None
        found[key] = plain, _divergence(alone, plain[:_ALONE]), states
    plain, noise, states = found[key]
    kl = _divergence(model.next_logprobs(prompts, does), plain)
    verdict = "moved" if kl > max(LEAST_KL, NOISE_FACTOR * noise) else "nothing"
    found_so_far = ManipulationRow(condition=condition.name, verdict=verdict, n=len(prompts), kl=kl, noise=noise)
    if of is None or states is None or condition.direction is None or not does:
        return found_so_far
    layer = max(of.layers)
    along = directions.unit(vector(of, condition.direction, layer))
    moved = (model.record(prompts, [layer], last, does) - states)[:, 0] @ along
    wanted = np.sign(condition.dose) if not condition.ablate else -1.0
    return replace(
        found_so_far,
        shift=float(moved.mean()) / calibration.median_norm[layer],
        anti_steered=float((moved * wanted < 0).mean()),
    )


def _divergence(other: Array, plain: Array) -> float:
    return float((np.exp(other) * (other - plain)).sum(axis=1).mean())


Floats = NDArray[np.floating[Any]]

_SPANS: tuple[Place, ...] = ("all", "task", "tests", "code", "feedback")
_PLACES = tuple((span, place(span)) for span in _SPANS)


class Projector:
    """Projections of prompts before an attempt, over all tokens and by role, in the unsteered model: in one pass, and
    of first prompts, which conditions share, once."""

    def __init__(self, steered: Steered) -> None:
        self._steered = steered
        self._of_first: dict[tuple[int, ...], Floats] = {}

    def project(self, going: Sequence[Episode]) -> None:
        """Into the episodes' own rows."""
        of = self._steered.directions
        if of is None or not going:
            return
        prompts = [self._steered.model.encode(episode.chat) for episode in going]
        new = {p.tokens: p for p in prompts if p.tokens not in self._of_first}
        by_prompt = self._of_first | dict(zip(new, self._measured(list(new.values()), of), strict=True))
        for prompt, episode in zip(prompts, going, strict=True):
            measured = by_prompt[prompt.tokens]
            if episode.attempt == 0:
                self._of_first[prompt.tokens] = measured
            for (at, (span, _)), (n, name), (k, layer) in product(
                enumerate(_PLACES), enumerate(of.names), enumerate(of.layers)
            ):
                cosine, coordinate = (None if np.isnan(value) else float(value) for value in measured[at, n, k])
                row = ProjectionRow(
                    condition=episode.condition.name,
                    task=episode.task.key,
                    sample=episode.sample,
                    attempt=episode.attempt,
                    direction=name,
                    layer=layer,
                    span=span,
                    cosine=cosine,
                    coordinate=coordinate,
                )
                episode.projections.append(row)

    def _measured(self, prompts: Sequence[Prompt], of: DirectionSet) -> Floats:
        """(prompts, places, directions, layers, 2): cosine, and coordinate in median norms."""
        if not prompts:
            return np.empty((0,))
        states = self._steered.model.record_places(prompts, of.layers, [at for _, at in _PLACES])
        norms = np.asarray([self._steered.calibration.median_norm[layer] for layer in of.layers])
        cosines = [directions.project(states, vector, of.centre) for vector in of.vectors]
        along = [directions.project(states, vector, of.centre, "coordinate") / norms for vector in of.vectors]
        return np.moveaxis(np.stack([np.stack(cosines), np.stack(along)], axis=-1), [0, 1, 2], [2, 1, 0])
