"""Processes on this machine; without workers, this process."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agentsignals.errors import WorkerError, is_out_of_memory
from agentsignals.ingest.engine import heard, is_heard, smaller_tasks, tell

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


T = TypeVar("T")
R = TypeVar("R")


class Local:
    """Processes with one task at a time. One that dies (killed, out of memory) costs nothing but its task, which is
    done in smaller parts."""

    def map(
        self, function: Callable[[T], R], tasks: Sequence[T], workers: int, smaller: Callable[[T], Sequence[T]]
    ) -> Generator[R, None, None]:
        if not workers:
            for task in tasks:
                yield function(task)
            return
        from multiprocessing.connection import wait  # noqa: PLC0415  (this process alone needs none of it)

        waiting = deque(tasks)
        team: dict[Any, Worker[T, R]] = {}  # all that run, at any moment: an interrupt may come between any two lines
        try:
            while waiting or team:
                while waiting and len(team) < workers:
                    worker = Worker[T, R](function, waiting.popleft())
                    team[worker.ours] = worker
                    worker.start()
                for ready in wait(list(team)):
                    worker = team[ready]
                    try:
                        is_done, answer = worker.ours.recv()
                    except (EOFError, OSError):
                        worker.end()
                        del team[ready]
                        tell(worker.task)
                        waiting.extendleft(reversed(smaller_tasks(worker.task, smaller)))
                        continue
                    if is_done is None:
                        tell(answer)
                        continue
                    if not is_done:
                        raise answer
                    if waiting:
                        worker.begin(waiting.popleft())
                    else:
                        worker.end()
                        del team[ready]
                    yield answer
        finally:
            for worker in team.values():
                worker.end()


class Worker(Generic[T, R]):
    """A process and its current task."""

    def __init__(self, function: Callable[[T], R], task: T) -> None:
        import multiprocessing  # noqa: PLC0415

        self.task = task
        self._is_copy = can_fork()
        context: Any = multiprocessing.get_context("fork" if self._is_copy else "spawn")
        self.ours, self._theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(self._theirs, function, os.getpid(), is_heard()), daemon=True
        )

    def start(self) -> None:
        with _deaf(self._is_copy):
            self._process.start()
        self._theirs.close()
        self.begin(self.task)

    def begin(self, task: T) -> None:
        """Hand over a task. The worker waits for it, so this does not block."""
        self.task = task
        try:
            self.ours.send(task)
        except OSError:
            return  # it died meanwhile, which its end of the pipe says

    def end(self) -> None:
        """Kill the process: it is idle, dead, or working for nobody."""
        if self._process.pid is not None:
            self._process.kill()
            self._process.join()
        self.ours.close()


def can_fork() -> bool:
    """Return True when this process may be forked: with one thread only, because a copy lacks the others but keeps
    their locks. Only Linux lists threads that libraries began."""
    try:
        return sys.platform == "linux" and len([*Path("/proc/self/task").iterdir()]) == 1
    except OSError:
        return False


@contextmanager
def _deaf(is_copy: bool) -> Iterator[None]:
    """Block Ctrl-C in a process from its first moment on, while it loads what it needs: the terminal sends it to all,
    and the parent decides. The parent receives it, and requests to end, afterwards: a signal during the fork would be
    lost."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    if not is_copy:  # which would begin the tracker, and beginning that ends with hearing again
        from multiprocessing import resource_tracker  # noqa: PLC0415

        resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, *_ENDINGS))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_ENDINGS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def _serve(tasks: Connection, function: Callable[[Any], Any], parent: int, tells: bool) -> None:
    """Run tasks in a worker until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as `_deaf`, for what this process begins
    for number in _ENDINGS:
        if callable(signal.getsignal(number)):  # what a copy took over: the parent puts in order what this one made
            signal.signal(number, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
    # End this process when its parent ends, even when that is killed and runs no handler.
    import multiprocessing  # noqa: PLC0415
    import threading  # noqa: PLC0415
    from multiprocessing.connection import wait  # noqa: PLC0415

    mother = multiprocessing.parent_process()
    if mother is not None:
        try:
            threading.Thread(target=lambda: wait([mother.sentinel]) and os._exit(1), daemon=True).start()
        except RuntimeError:  # there is no memory for a thread
            os._exit(1)
    try:  # Linux does it at once, also while a long call keeps every other thread waiting (prctl(2))
        import ctypes  # noqa: PLC0415

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    except (ImportError, OSError, AttributeError, TypeError):
        pass
    while True:
        try:
            task = tasks.recv()
        except (EOFError, OSError):
            return
        try:
            with heard((lambda part: tasks.send((None, part))) if tells else None):
                answer = True, function(task)
        except Exception as problem:  # noqa: BLE001  (raised again in the parent)
            if is_out_of_memory(problem):
                os._exit(1)  # as where the system ends it: the task is done in smaller parts
            answer = False, problem
        try:
            tasks.send(answer)
        except (EOFError, OSError):
            return
        except Exception as problem:  # noqa: BLE001  (what can't be sent is said)
            tasks.send((False, WorkerError(f"A worker can't send its result: {type(problem).__name__}: {problem}.")))


_PR_SET_PDEATHSIG, _SIGKILL = 1, 9

ENGINE = Local


def in_background(function: Callable[[], R]) -> Callable[[], R]:
    """Start a function in a forked process and return a callable for its result, which raises what the function raised.
    Where a fork is impossible, or the copy dies, the function runs here when its result is requested."""
    if not can_fork():
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
