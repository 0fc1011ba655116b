"""Runs one function over many shards. Knows nothing of traces.

The function is named by import path, takes one small picklable task, does its own input and output, and returns a
small result; running it twice for the same task is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

from agentsignals.errors import WorkerError
from agentsignals.model.registry import Registry

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Gives the results of `function(task)` in order of completion.

    `workers`: processes; 0 does all in this one, which a death ends. `smaller` is asked about a task that ended its
    worker: what to do in its place, nothing when it can't be less.
    """

    def map(
        self, function: Callable[[T], R], tasks: Sequence[T], workers: int, smaller: Callable[[T], Sequence[T]]
    ) -> Generator[R, None, None]: ...


ENGINES = Registry[Callable[[], Engine]]("engine", __name__, "ENGINE", callable)
"""A module declares its class as `ENGINE`."""


def parts_of(task: T, smaller: Callable[[T], Sequence[T]]) -> Sequence[T]:
    """What an engine does in the place of a task that ended its worker. WorkerError when it can't be less."""
    parts = smaller(task)
    if not parts:
        raise WorkerError(
            "Workers die whatever they are given to do.",
            "Free some memory and run again; what was finished is kept.",
        )
    return parts
