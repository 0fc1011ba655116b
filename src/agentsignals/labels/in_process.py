"""What labellers share whose language model runs in this process: batches, and second tries of what was no answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from agentsignals.labels.answers import Inquiry
from agentsignals.labels.labellers import Done
from agentsignals.labels.prompting import Question


class Generation(NamedTuple):
    """What a model made of an inquiry."""

    text: str
    finish_reason: str | None
    input_tokens: int
    output_tokens: int


class Refused(NamedTuple):
    """Why a model can't be asked this at all: a word to count by, and more."""

    reason: str
    detail: str


TOO_LONG = "too_long"
"""The reason where a question alone fills the model's window: no answer to a cut one would be of what was asked."""
Generate = Callable[[Sequence[Inquiry]], Sequence[Generation | Refused]]


def through(questions: Iterable[Question], size: int, generate: Generate, done: Done) -> None:
    """Asks all questions in batches of `size`; each is settled, or tried again with the rest of its batch."""
    waiting = iter(questions)
    while batch := [Inquiry.at(question) for question in islice(waiting, size)]:
        while batch:
            again = []
            for inquiry, result in zip(batch, generate(batch), strict=True):
                if isinstance(result, Refused):
                    done(inquiry.question, inquiry.failed(result.reason, result.detail))
                    continue
                inquiry.calls += 1
                inquiry.spent(result.input_tokens, result.output_tokens)
                outcome = inquiry.took(result.text, result.finish_reason)
                if outcome is None:
                    again.append(inquiry)
                else:
                    done(inquiry.question, outcome)
            batch = again


def messages(inquiry: Inquiry) -> list[dict[str, str]]:
    """The conversation that asks it."""
    return [
        {"role": "system", "content": inquiry.question.instructions},
        {"role": "user", "content": inquiry.question.shown},
    ]
