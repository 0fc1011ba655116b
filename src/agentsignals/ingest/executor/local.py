"""Processes on this machine; one worker means this very process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from agentsignals.errors import WorkerError

T = TypeVar("T")
R = TypeVar("R")
TRIES = 3


class Local:
    """A pool of processes. A worker that dies (killed, out of memory) costs its tasks a try, not the run."""

    def map(self, function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Iterator[R]:
        if workers <= 1 or len(tasks) <= 1:
            for task in tasks:
                yield function(task)
            return
        left = list(range(len(tasks)))
        for _ in range(TRIES):
            done: set[int] = set()
            for n, result in self._round(function, tasks, left, workers):
                done.add(n)
                yield result
            left = [n for n in left if n not in done]
            if not left:
                return
        raise WorkerError(
            f"{len(left)} of {len(tasks)} shards were not finished: their worker died {TRIES} times.",
            "Run again with --jobs 1 to see why; what was finished is kept.",
        )

    def _round(
        self, function: Callable[[T], R], tasks: Sequence[T], left: list[int], workers: int
    ) -> Iterator[tuple[int, R]]:
        """One pool's life: at most two tasks a worker in flight, so that an interruption loses little."""
        import multiprocessing  # noqa: PLC0415  (a single worker needs none of this)
        from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait  # noqa: PLC0415
        from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(workers, len(left)), mp_context=context)
        waiting = list(reversed(left))
        running: dict[Future[R], int] = {}
        try:
            while waiting or running:
                while waiting and len(running) < 2 * workers:
                    n = waiting.pop()
                    running[pool.submit(function, tasks[n])] = n
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    n = running.pop(future)
                    yield n, future.result()
        except BrokenProcessPool:
            return
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
