"""Ray Core tasks on a cluster (https://docs.ray.io/en/latest/ray-core/tasks.html). A running cluster is joined and left
running; else one is started on this machine and ended. All machines see the store and the traces by the same paths."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from agentsignals.errors import UsageError, WorkerError, install_command
from agentsignals.ingest.engine import smaller_tasks

T = TypeVar("T")
R = TypeVar("R")
_RESULTS_BYTES = 128 * 1024 * 1024
"""Shared memory on this machine, where Ray itself would take 30 % of all: results are small and fetched at once."""
_END_S = 30.0


class Ray:
    """Ray tasks, `workers` of them at a time. Ray never repeats a task: a death is handled as by other engines, so that
    a task that kills every worker ends."""

    def map(
        self, function: Callable[[T], R], tasks: Sequence[T], workers: int, smaller: Callable[[T], Sequence[T]]
    ) -> Generator[R, None, None]:
        if not workers:
            yield from map(function, tasks)
            return
        with _joined(workers) as ray:
            deaths = (
                ray.exceptions.WorkerCrashedError,
                ray.exceptions.NodeDiedError,
                ray.exceptions.LocalRayletDiedError,
                ray.exceptions.OutOfMemoryError,
                ray.exceptions.ObjectLostError,  # its node went with the result
            )
            remote = ray.remote(max_retries=0)(_answer)
            waiting = deque(tasks)
            running: dict[Any, T] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < workers:
                        task = waiting.popleft()
                        running[remote.remote(function, task)] = task
                    (ready,), _ = ray.wait(list(running), num_returns=1)
                    task = running.pop(ready)
                    try:
                        is_done, answer = ray.get(ready)
                    except deaths:
                        waiting.extendleft(reversed(smaller_tasks(task, smaller)))
                        continue
                    except ray.exceptions.RayError as problem:
                        cause = getattr(problem, "cause", problem)
                        raise WorkerError(
                            f"The result of a Ray worker is lost: {type(cause).__name__}: {cause}."
                        ) from problem
                    if not is_done:
                        raise answer
                    yield answer
            finally:
                for ref in running:
                    ray.cancel(ref, force=True)
                if running:
                    ray.wait(list(running), num_returns=len(running), timeout=_END_S)


def _answer(function: Callable[[Any], Any], task: Any) -> tuple[bool, Any]:
    """Run in a worker. An error is returned as an answer, because Ray would raise it as a class of its own."""
    try:
        return True, function(task)
    except Exception as problem:  # noqa: BLE001  (raised again by who asked)
        return False, problem


@contextmanager
def _joined(workers: int) -> Iterator[Any]:
    """Yield Ray, connected: as this process already is, to the cluster of `RAY_ADDRESS` or of this machine, or to one
    started now."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # what a cluster begun here would tell its makers
    try:
        import ray  # noqa: PLC0415  (an extra, and heavy)
    except ImportError as problem:
        raise UsageError(
            "The engine 'ray' needs Ray, which is not installed.", f"Install it: {install_command('ray')}"
        ) from problem
    if ray.is_initialized():
        yield ray
        return
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        try:
            ray.init("auto", **quiet)
        except ConnectionError:
            if os.environ.get("RAY_ADDRESS"):
                raise
            ray.init("local", num_cpus=workers, object_store_memory=_RESULTS_BYTES, include_dashboard=False, **quiet)
    except Exception as problem:
        raise WorkerError(
            f"Cannot join or start a Ray cluster: {problem}", "Check RAY_ADDRESS and `ray status`."
        ) from problem
    try:
        yield ray
    finally:
        ray.shutdown()


ENGINE = Ray
