"""Engines: how one function is run over many shards. They know nothing of traces.

The function is named by import path, takes one small picklable task, does its own input and output, and returns a small
result. Running it twice for the same task is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

from agentsignals.errors import WorkerError
from agentsignals.model.registry import Registry

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Yields the results of `function(task)` in order of completion.

    `workers`: number of processes; 0 runs all tasks in this one, which a death ends. `smaller` gives the tasks that
    replace one which killed its worker; none when it can't be made smaller.
    """

    def map(
        self, function: Callable[[T], R], tasks: Sequence[T], workers: int, smaller: Callable[[T], Sequence[T]]
    ) -> Generator[R, None, None]: ...


ENGINES = Registry[Callable[[], Engine]]("engine", __name__, "ENGINE", callable)
"""Engines by name. A module declares its class as `ENGINE`."""


def smaller_tasks(task: T, smaller: Callable[[T], Sequence[T]]) -> Sequence[T]:
    """Return the tasks that replace one which killed its worker. WorkerError when it can't be made smaller."""
    parts = smaller(task)
    if not parts:
        raise WorkerError(
            "Workers die whatever they are given to do.",
            "Free some memory and run again; what was finished is kept.",
        )
    return parts
