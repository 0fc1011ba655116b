"""Replacements of a unit: drawn from the model, and counted only where they mean something else.

Counterfactual importance of Thought Anchors (arXiv 2506.19143): a resampled sentence that says the same is no
counterfactual. There a sentence embedding tells, with the median cosine of all pairs as the limit; here the model's own
states do, their mean taken out, since all states of a model point one way (design/lab.md#stored-states).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from agentsignals_lab.directions import Array
from agentsignals_lab.experiments.setting import Floats, Scene, Setting
from agentsignals_lab.residual.interface import Message, Piece, Positions, Prompt, Role, Sampling, Span


class Drawn(NamedTuple):
    """Replacements of one unit that differ from it in a word at least."""

    unit: Array
    """(d,), the mean state of the unit's tokens."""
    states: Array
    """(n, d), of the replacements in its place."""
    changes: Floats
    """(n,), the outcome with the unit less that with each."""
    copies: int
    """Others that were drawn: word for word the unit."""
    empty: int
    """Others that hold no word."""


class Counted(Struct, frozen=True, kw_only=True):
    """Counts of a unit's replacements that count, and that do not by reason: together all that were drawn."""

    change: float | None
    """The outcome with the unit less the mean of that with them; None where none counts."""
    kept: int
    copies: int
    empty: int
    alike: int
    """At the limit of the cosine or above."""
    unclear: int
    """Their states are unknown, or there is no limit to hold them against."""


def drawn(at: Setting, scene: Scene, label: str, layer: int, sampling: Sequence[Sampling]) -> Drawn:
    """Draws from the model where the unit begins, at most as many tokens as it has. What follows stays as it is: later
    feedback is not the model's to write again."""
    (span,) = (span for span in scene.prompt.spans if span.label == label)
    short = [replace(how, max_new_tokens=min(how.max_new_tokens, span.end - span.start)) for how in sampling]
    written = at.model.generate([_before(scene.prompt, span.start)] * len(short), short)
    old = "".join(piece.text for message in scene.chat for piece in message.pieces if piece.label == label)
    stripped = [answer.text.strip() for answer in written]
    texts = [text for text in stripped if text not in ("", old.strip())]
    others = [at.scene(scene.task, scene.tone, with_text(scene.chat, label, text)) for text in texts]
    there = Positions("roles", roles=get_args(Role), labels=(label,))
    states = at.model.record([scene.prompt, *(other.prompt for other in others)], [layer], there)[:, 0]
    changes = at.outcome([scene])[0] - at.outcome(others) if others else np.empty(0)
    empty = stripped.count("")
    return Drawn(states[0], states[1:], changes, len(stripped) - len(texts) - empty, empty)


def _before(prompt: Prompt, end: int) -> Prompt:
    """The prompt up to a token."""
    kept = (Span(span.role, span.start, min(span.end, end), span.label) for span in prompt.spans if span.start < end)
    return Prompt(prompt.tokens[:end], tuple(kept))


def with_text(chat: Sequence[Message], label: str, text: str) -> list[Message]:
    """The chat with other words in the piece of that label; the blanks around them stay."""

    def within_blanks(old: str) -> str:
        front, back = old[: len(old) - len(old.lstrip())], old[len(old.rstrip()) :]
        return front + text + back

    return [
        Message(
            message.speaker,
            tuple(Piece(p.role, within_blanks(p.text), p.label) if p.label == label else p for p in message.pieces),
        )
        for message in chat
    ]


def cosines(units: Sequence[Drawn]) -> list[NDArray[np.float64]]:
    """Return the cosines of each unit's replacements with it, seen from the mean of all units; NaN where a state is
    unknown."""
    finite = [unit.unit for unit in units if np.isfinite(unit.unit).all()]
    centre = np.mean(finite, axis=0) if finite else 0.0
    by_unit = []
    for unit in units:
        original, others = unit.unit - centre, unit.states - centre
        lengths = np.linalg.norm(others, axis=1) * np.linalg.norm(original)
        by_unit.append(np.divide(others @ original, lengths, out=np.full(len(others), np.nan), where=lengths > 0))
    return [cosine.astype(np.float64) for cosine in by_unit]


def limit(alike: Sequence[NDArray[np.float64]]) -> float | None:
    """The median over all replacements; None where there is none."""
    finite = [value for row in alike for value in row if np.isfinite(value)]
    return float(np.median(finite)) if finite else None


def counted(unit: Drawn, alike: NDArray[np.float64], below: float | None) -> Counted:
    """Replacements whose cosine is below the limit count; those of unknown meaning do not."""
    kept = unit.changes[alike < below] if below is not None else unit.changes[:0]
    too_alike = int((alike >= below).sum()) if below is not None else 0
    return Counted(
        change=float(kept.mean()) if len(kept) else None,
        kept=len(kept),
        copies=unit.copies,
        empty=unit.empty,
        alike=too_alike,
        unclear=len(alike) - len(kept) - too_alike,
    )
