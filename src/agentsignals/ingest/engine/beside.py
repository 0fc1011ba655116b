"""A function in a copy of this process: beside what is done here meanwhile, or to be rid of the memory it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from agentsignals.ingest.engine.local import Worker, has_one_thread

R = TypeVar("R")


def beside(function: Callable[[], R]) -> Callable[[], R]:
    """Begins a function in a copy; what comes back waits for its answer, or raises what it raised. Where there can be
    no copy, or it dies, the function is called here, when its answer is wanted."""
    if not has_one_thread():
        return function
    copy = Worker[None, R](lambda _: function(), None)
    copy.start()

    def answer() -> R:
        try:
            is_done, made = copy.ours.recv()
        except (EOFError, OSError):
            return function()
        finally:
            copy.end()
        if not is_done:
            raise made
        result: R = made
        return result

    return answer
