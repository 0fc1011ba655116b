"""Conditions of an experiment as edits of the residual stream, whether they did anything at all, and where prompts lie.

A dose is a fraction of the median norm of a layer's tokens (sinks left out) on calibration texts: it does not depend on
the prompt, the step or the number of layers (design/lab.md#steering). A null result counts only when the manipulation
moved something and the output stayed valid (b 8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from agentsignals.errors import LabError
from msgspec import Struct
from numpy.typing import NDArray

from agentsignals_lab import directions
from agentsignals_lab.conditions import Condition, Where
from agentsignals_lab.directions import Array, DirectionSet
from agentsignals_lab.residual import Ablate, Add, Calibration, Edit, Positions, Prompt, Role
from agentsignals_lab.retry_loop import Episode, ProjectionRow, Steered

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel


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
    """Return the edits of the model in this condition; none where it does not steer."""
    if not condition.steers or condition.direction is None:
        return []
    if of is None:
        raise LabError(
            f"Condition {condition.name!r} needs directions.", "Name a file that `lab run directions` wrote."
        )
    if not condition.layers:
        raise LabError(f"Condition {condition.name!r} names no layer.", "Set layers = [NUMBER, …].")
    at = positions(condition.where)
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

Effect = Literal["moved", "nothing", "not testable"]


class Manipulation(Struct, frozen=True, kw_only=True):
    """Effect of a condition on the model, on fixed prompts that hold tokens where it acts."""

    condition: str
    verdict: Effect
    """`not testable`: no prompt holds such a token, and nothing is known of the condition."""
    kl: float | None
    """Mean Kullback-Leibler divergence of the next token's distribution, steered from plain, in nats."""
    noise: float | None
    """Difference of prompts run together from prompts run alone: what rounding does."""
    shift: float | None
    """Mean change of the projection on the direction at the last layer read downstream, in median norms there; None
    where the condition has no direction."""
    anti_steered: float | None
    """The share of prompts whose projection moved the other way."""
    n: int
    """Prompts with such tokens; others are left out."""


class Unsteered(NamedTuple):
    """Prompts run without a condition, which all conditions share."""

    logprobs: Array
    noise: float
    states: Array | None


def manipulation(  # noqa: PLR0913  (what is compared, and what is known of it already)
    model: HookedModel,
    prompts: Sequence[Prompt],
    condition: Condition,
    of: DirectionSet | None,
    calibration: Calibration,
    unsteered: dict[tuple[Prompt, ...], Unsteered] | None = None,
) -> Manipulation:
    """Runs the prompts plain and steered. The projection is read at the deepest layer of the set that lies at or after
    the steered ones, over the last token of each prompt. `unsteered`: what earlier calls for other conditions found."""
    does = edits(condition, of, calibration)
    prompts = _with_tokens(model, prompts, condition) if does and condition.where != "all" else list(prompts)
    if not prompts:
        return _measured(condition, "not testable", 0)
    last = Positions("last", skip_sinks=False)
    found = {} if unsteered is None else unsteered
    key = tuple(prompts)
    if key not in found:
        plain = model.next_logprobs(prompts)
        alone = np.concatenate([model.next_logprobs([prompt]) for prompt in prompts[:_ALONE]])
        states = model.record(prompts, [max(of.layers)], last) if of is not None else None
        found[key] = Unsteered(plain, _divergence(alone, plain[:_ALONE]), states)
    plain, noise, states = found[key]
    kl = _divergence(model.next_logprobs(prompts, does), plain)
    verdict: Effect = "moved" if kl > max(LEAST_KL, NOISE_FACTOR * noise) else "nothing"
    if of is None or states is None or condition.direction is None or not does:
        return _measured(condition, verdict, len(prompts), kl=kl, noise=noise)
    layer = max(of.layers)
    along = directions.unit(vector(of, condition.direction, layer))
    moved = (model.record(prompts, [layer], last, does) - states)[:, 0] @ along
    wanted = np.sign(condition.dose) if not condition.ablate else -1.0
    return _measured(
        condition,
        verdict,
        len(prompts),
        kl=kl,
        noise=noise,
        shift=float(moved.mean()) / calibration.median_norm[layer],
        anti_steered=float((moved * wanted < 0).mean()),
    )


def _measured(condition: Condition, verdict: Effect, n: int, **measured: float) -> Manipulation:
    return Manipulation(
        condition=condition.name,
        verdict=verdict,
        n=n,
        **{name: measured.get(name) for name in ("kl", "noise", "shift", "anti_steered")},
    )


def _with_tokens(model: HookedModel, prompts: Sequence[Prompt], condition: Condition) -> list[Prompt]:
    """The prompts that hold a token where the condition acts, sinks left out."""
    means = model.record(prompts, condition.layers, positions(condition.where))
    return [prompt for prompt, mean in zip(prompts, means, strict=True) if not np.isnan(mean).all()]


def _divergence(other: Array, plain: Array) -> float:
    return float((np.exp(other) * (other - plain)).sum(axis=1).mean())


Floats = NDArray[np.floating[Any]]

_SPANS: tuple[Role, ...] = ("task", "tests", "code", "feedback")
_PLACES = (("all", Positions("all")), *((role, Positions("roles", roles=(role,))) for role in _SPANS))


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
        by_prompt = dict(zip(new, self._measured(list(new.values()), of), strict=True))
        for prompt, episode in zip(prompts, going, strict=True):
            measured = by_prompt.get(prompt.tokens)
            measured = self._of_first[prompt.tokens] if measured is None else measured
            if episode.attempt == 0:
                self._of_first[prompt.tokens] = measured
            episode.projections += _projection_rows(episode, measured, of)

    def _measured(self, prompts: Sequence[Prompt], of: DirectionSet) -> Floats:
        """(prompts, places, directions, layers, 2): cosine, and coordinate in median norms."""
        if not prompts:
            return np.empty((0,))
        states = self._steered.model.record_places(prompts, of.layers, [at for _, at in _PLACES])
        norms = np.asarray([self._steered.calibration.median_norm[layer] for layer in of.layers])
        cosines = [directions.project(states, vector, of.centre) for vector in of.vectors]
        along = [directions.project(states, vector, of.centre, "coordinate") / norms for vector in of.vectors]
        return np.moveaxis(np.stack([np.stack(cosines), np.stack(along)], axis=-1), [0, 1, 2], [2, 1, 0])


def _projection_rows(episode: Episode, measured: Floats, of: DirectionSet) -> Iterator[ProjectionRow]:
    for place, (span, _) in enumerate(_PLACES):
        for number, name in enumerate(of.names):
            for at, layer in enumerate(of.layers):
                cosine, coordinate = measured[place, number, at]
                yield ProjectionRow(
                    condition=episode.condition.name,
                    task=episode.task.key,
                    sample=episode.sample,
                    attempt=episode.attempt,
                    direction=name,
                    layer=layer,
                    span=span,
                    cosine=_none_if_nan(cosine),
                    coordinate=_none_if_nan(coordinate),
                )


def _none_if_nan(value: Any) -> float | None:
    return None if value != value else float(value)  # noqa: PLR0124  (NaN is the only value that is not itself)
