"""The tasks, by name. To add one: a declaration in `turns` or `sessions`, and its prompt `<name>.md` beside them."""

from __future__ import annotations

from functools import cache

from agentsignals.errors import UsageError
from agentsignals.labels.task import Task
from agentsignals.labels.tasks.sessions import SESSION_TASKS
from agentsignals.labels.tasks.turns import TURN_TASKS


@cache
def tasks() -> dict[str, Task]:
    """Every task by its name."""
    return {task.name: task for task in (*TURN_TASKS, *SESSION_TASKS)}


def task(name: str) -> Task:
    """The task of that name. UsageError names the others."""
    chosen = tasks().get(name)
    if chosen is None:
        raise UsageError(f"There is no task {name!r}.", f"The tasks are: {', '.join(tasks())}.")
    return chosen
