"""The tiny world's language, as a wording of a retry loop."""

from __future__ import annotations

import random

from agentsignals.errors import LabError

from agentsignals_lab.coding_tasks.cases import Task
from agentsignals_lab.residual import Message, Piece
from agentsignals_lab.runs import seed_of
from tests.tiny_world import world


class TinyWording:
    """The language of the tiny world, whose feedback says a tone and nothing else."""

    name = "tiny"
    tones: tuple[str, ...] = world.MOODS

    def opening(self, task: Task, tone: str) -> list[Message]:
        # The visible cases as the task has them: those of a variant contradict its words.
        tests = world.shown_tests((case.args[0], case.expected) for case in task.visible)
        return [Message("user", (world.of_task(task).task_piece(), tests))]

    def after_failure(self, task: Task, failure: str, attempt: int, left: int, tone: str) -> Message:
        if tone not in world.MOODS:
            raise LabError(f"The tiny world has no tone {tone!r}.", f"Say one of {', '.join(world.MOODS)}.")
        # The same words in every condition of that tone: what differs is not the draw.
        chance = random.Random(seed_of(0, task.key, attempt))  # noqa: S311  (texts are drawn, no secrets)
        return Message("user", (Piece("feedback", world.feedback(tone, chance), str(attempt)),))
