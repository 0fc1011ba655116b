"""Repository tasks: four small programs, each with a bug that its visible tests do not settle (`repositories.toml`)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from agentsignals.errors import LabError
from agentsignals.lab.coding_tasks.repository import RepositoryTask

TASKS: tuple[RepositoryTask, ...] = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("repositories.toml").read_text("utf-8"))["task"], tuple[RepositoryTask, ...]
)


def repository_task(name: str) -> RepositoryTask:
    """The task of that id. LabError when there is none."""
    for task in TASKS:
        if task.id == name:
            return task
    raise LabError(f"There is no repository task {name!r}.", f"There are {', '.join(task.id for task in TASKS)}.")
