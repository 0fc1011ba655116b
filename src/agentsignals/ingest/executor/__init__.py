"""Runs one function over many shards. Knows nothing of traces.

The function is named by import path, takes one small picklable task, does its own input and output, and returns a
small result; running it twice for the same task is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeVar

from agentsignals.errors import UsageError

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Gives the results of `function(task)` in order of completion.

    `workers`: processes; 0 does all in this one, which a death ends. `smaller` is asked about a task that ended its
    worker: what to do in its place, nothing when it can't be less.
    """

    def map(
        self, function: Callable[[T], R], tasks: Sequence[T], workers: int, smaller: Callable[[T], Sequence[T]]
    ) -> Generator[R, None, None]: ...


EXECUTORS = {"local": "agentsignals.ingest.executor.local:Local"}
"""Name to `module:class`, imported on use."""


def executor(name: str = "local") -> Executor:
    """The executor of that name."""
    if name not in EXECUTORS:
        raise UsageError(f"There is no executor {name!r}.", f"The executors are: {', '.join(EXECUTORS)}.")
    module, _, attribute = EXECUTORS[name].partition(":")
    made: Any = getattr(import_module(module), attribute)()
    return made  # type: ignore[no-any-return]  # the table names classes that meet the protocol
