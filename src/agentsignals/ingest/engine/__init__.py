"""Engines: how one function is run over many shards. They know nothing of traces.

The function is named by import path, takes one small picklable task, does its own input and output, and returns a small
result. Running it twice for the same task is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

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


_listener: Callable[[Any], None] | None = None


@contextmanager
def heard(listener: Callable[[Any], None] | None) -> Iterator[None]:
    """While this lasts, `listener` is called with what tasks tell, and with a task whose worker died: what that one
    told counts no more. An engine whose workers can't tell leaves it at the results."""
    global _listener  # noqa: PLW0603  (one a process: a task reaches it through no argument)
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


def is_heard() -> bool:
    return _listener is not None


def tell(part: Any) -> None:
    """Tell whoever listens of a part of a task's result."""
    if _listener is not None:
        _listener(part)


def smaller_tasks(task: T, smaller: Callable[[T], Sequence[T]]) -> Sequence[T]:
    """Return the tasks that replace one which killed its worker. WorkerError when it can't be made smaller."""
    parts = smaller(task)
    if not parts:
        raise WorkerError(
            "Worker processes crash on every file.",
            "Free some memory and run again. Finished work is kept.",
        )
    return parts
