"""The tiny world's tasks as function tasks, so that the retry loop and its evaluator take them as any other."""

from __future__ import annotations

import random

from agentsignals_lab.coding_tasks.cases import Case, Task
from agentsignals_lab.runs import seed_of
from tests.tiny_world import world


def function_task(task: world.AddTask) -> Task:
    """Hidden cases are inputs that are not shown."""
    return Task(
        id=task.id,
        family="tiny",
        function=world.FUNCTION,
        signature=f"{world.FUNCTION}(x: int) -> int",
        says=f"Add {task.addend}.",
        visible=tuple(Case((n,), n + task.addend) for n in task.shown),
        hidden=tuple(Case((n,), n + task.addend) for n in task.hidden()),
        reference=task.honest() + "\n",
        wrong=task.shortcut() + "\n",
    )


def drawn(count: int, seed: int) -> list[Task]:
    """`count` different tasks."""
    chance = random.Random(seed_of(seed, "tiny tasks"))  # noqa: S311  (tasks are drawn, no secrets)
    by_id: dict[str, world.AddTask] = {}
    while len(by_id) < count:
        task = world.draw_task(chance)
        by_id[task.id] = task
    return [function_task(task) for task in by_id.values()]
