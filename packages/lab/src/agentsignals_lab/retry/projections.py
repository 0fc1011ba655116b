"""Projections of prompts on directions before each attempt, in the unsteered model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentsignals_lab import directions
from agentsignals_lab.directions import DirectionSet
from agentsignals_lab.residual.interface import Positions, Prompt, Role
from agentsignals_lab.retry.loop import Episode, Steered
from agentsignals_lab.retry.rows import ProjectionRow

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
