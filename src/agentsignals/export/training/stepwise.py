"""Steps with what is known of each: `prompt`, `completions`, `labels`, as process reward models are trained
(https://huggingface.co/docs/trl/dataset_formats#stepwise-supervision). No label is inferred."""

from __future__ import annotations

from typing import Any

from agentsignals.export.moves import Move
from agentsignals.export.training.chat import Conversation, as_text, deeds, prompt_text, results
from agentsignals.model import CallOutcome

WORKED: frozenset[CallOutcome] = frozenset(("done",))
FAILED: frozenset[CallOutcome] = frozenset(("error_result", "timed_out"))
"""The tool itself refused, or did not end. A command that exits with another number than 0 is no failed step (tests
that fail are often what was asked for), nor is a search that finds nothing, nor what a person refused or stopped."""


def stepwise(held: Conversation) -> dict[str, Any] | str:
    """The row of a conversation; why there is none. A completion reaches from what the last labelled step brought to
    what the next one does: steps between without a label go before it. The results that a label was read off begin the
    next completion, so that no step holds its own label. What comes behind the last step is left out."""
    completions: list[str] = []
    labels: list[bool] = []
    waiting: list[str] = []
    for move in held.moves:
        label = label_of(move)
        if label is None:
            waiting.append(as_text([move]))
            continue
        completions.append("\n".join(text for text in (*waiting, deeds(move)) if text))
        labels.append(label)
        waiting = [results(move)]
    if not labels:
        return "of no step it is known whether its calls worked"
    return {"prompt": prompt_text(held.prompt), "completions": completions, "labels": labels}


def label_of(move: Move) -> bool | None:
    """Whether the calls of a step worked, as their results say; None where that is not known of all of them."""
    outcomes = [call.call.outcome for call in move.calls]
    if any(outcome in FAILED for outcome in outcomes):
        return False
    return True if outcomes and all(outcome in WORKED for outcome in outcomes) else None
