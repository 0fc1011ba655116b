"""Where an experiment takes place: tasks that just failed, told in several tones, and what the model makes of them.

The same experiment runs on function tasks with any model that chats, and on a world whose law is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from agentsignals.errors import LabError
from msgspec import Struct
from numpy.typing import NDArray

from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.residual.interface import Message, Positions, Prompt, Role, Span
from agentsignals_lab.statistics import RANDOMS

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel

Floats = NDArray[np.float64]

_DECISION = "decision"
Place = Literal["feedback", "task", "tests", "code", "decision", "all", "generated"]
"""Where an edit acts: the tokens of a role, the last one before the answer parts ways, all, or all that is written."""

_PLACES: dict[Place, Positions] = {
    "all": Positions("all"),
    "generated": Positions("generated"),
    "decision": Positions("roles", roles=get_args(Role), labels=(_DECISION,), skip_sinks=False),
    "feedback": Positions("roles", roles=("feedback",)),
    "task": Positions("roles", roles=("task",)),
    "tests": Positions("roles", roles=("tests",)),
    "code": Positions("roles", roles=("code",)),
}


class SettingConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which setting, and how much of it."""

    file: str | None = None
    """A setting of one's own, as TOML (docs/lab.md); none: the package's function tasks."""
    texts: str | None = None
    """A file of contrast texts in place of the setting's."""
    tasks: int = 60
    """Most tasks. Tasks that are not drawn are taken in their order."""
    families: tuple[str, ...] = ()
    """Families of tasks that are not drawn; none named: all."""
    seed: int = 13
    randoms: int = RANDOMS
    """Random directions that a direction is compared with. With fewer than `statistics.enough` the result has a
    caveat."""


class Scene(Struct, frozen=True):
    """A prompt whose continuation is a decision. Scene i of every tone is of the same task."""

    task: Task
    tone: str
    chat: tuple[Message, ...]
    prompt: Prompt
    """Its last token is the place `decision`."""


class Text(Struct, frozen=True):
    """A text of an emotion, and the topic it shares with texts of the others."""

    prompt: Prompt
    topic: str


def place(name: Place) -> Positions:
    """The tokens that a place means."""
    return _PLACES[name]


def with_decision(prompt: Prompt, at: int | None = None) -> Prompt:
    """Return the prompt with token `at` (none: the last) as a span of its own, the place `decision`."""
    at = len(prompt.tokens) - 1 if at is None else at
    spans: list[Span] = []
    for span in prompt.spans:
        if not span.start <= at < span.end:
            spans.append(span)
            continue
        cut = ((span.start, at, span.label), (at, at + 1, _DECISION), (at + 1, span.end, span.label))
        spans += [Span(span.role, start, end, label) for start, end, label in cut if start < end]
    return Prompt(prompt.tokens, tuple(spans), prompt.text)


def chosen_layers(model: HookedModel, asked: Sequence[int]) -> tuple[int, ...]:
    """The layers named; none named: all of a small model, else five spread over its depth. LabError for one that the
    model does not have."""
    depth = model.card.layers
    if odd := [layer for layer in asked if not 0 <= layer < depth]:
        raise LabError(f"There is no layer {odd[0]}.", f"Layers go from 0 to {depth - 1}.")
    if asked:
        return tuple(asked)
    return tuple(range(depth)) if depth <= 6 else tuple(sorted({depth * k // 6 for k in range(1, 6)}))
