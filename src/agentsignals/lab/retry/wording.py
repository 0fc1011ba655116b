"""How a task is put to a model, and what comes back after a failure: as a chat in pieces that are known by role."""

from __future__ import annotations

import random
from typing import Protocol

from agentsignals.errors import LabError
from agentsignals.lab import texts
from agentsignals.lab.coding_tasks import Task, examples, words
from agentsignals.lab.residual.interface import Message, Piece
from agentsignals.lab.runs import seed_of
from agentsignals.lab.texts import Tone
from agentsignals.lab.tiny import world


class Wording(Protocol):
    """Puts tasks into words. What it says of a failure is what the visible tests said, never a hidden one."""

    name: str

    def opening(self, task: Task, tone: str) -> list[Message]:
        """The chat before the first attempt."""
        ...

    def after_failure(self, task: Task, failure: str, attempt: int, left: int, tone: str) -> Message:
        """What is said after attempt number `attempt` (from 0), with `left` to come."""
        ...


class PlainWording:
    """English, as one would ask an assistant: system words, the task, its visible tests."""

    name = "plain"

    def opening(self, task: Task, tone: str) -> list[Message]:
        return [
            Message("system", (Piece("system", texts.system_words(_tone(tone))),)),
            Message("user", (Piece("task", words(task) + "\n"), Piece("tests", f"It must pass:\n{examples(task)}"))),
        ]

    def after_failure(self, task: Task, failure: str, attempt: int, left: int, tone: str) -> Message:
        return Message("user", (Piece("feedback", texts.feedback(_tone(tone), failure, left), str(attempt)),))


def _tone(tone: str) -> Tone:
    if tone not in texts.TONES:
        raise LabError(f"There is no tone {tone!r}.", f"Say one of {', '.join(texts.TONES)}.")
    return tone


class TinyWording:
    """The language of the tiny world, whose feedback says a tone and nothing else."""

    name = "tiny"

    def opening(self, task: Task, tone: str) -> list[Message]:
        return [world.first_turn(world.of_task(task))]

    def after_failure(self, task: Task, failure: str, attempt: int, left: int, tone: str) -> Message:
        if tone not in world.MOODS:
            raise LabError(f"The tiny world has no tone {tone!r}.", f"Say one of {', '.join(world.MOODS)}.")
        # The same words in every condition of that tone: what differs is not the draw.
        chance = random.Random(seed_of(0, task.key, attempt))  # noqa: S311  (texts are drawn, no secrets)
        return Message("user", (Piece("feedback", world.feedback(tone, chance), str(attempt)),))


WORDINGS: dict[str, Wording] = {wording.name: wording for wording in (PlainWording(), TinyWording())}


def wording(name: str) -> Wording:
    """The wording of that name; LabError when there is none."""
    if name not in WORDINGS:
        raise LabError(f"There is no wording {name!r}.", f"Say one of {', '.join(WORDINGS)}.")
    return WORDINGS[name]
