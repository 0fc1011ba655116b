"""Processes on this machine; no worker means this very process."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agentsignals.errors import WorkerError
from agentsignals.ingest.engine import parts_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


T = TypeVar("T")
R = TypeVar("R")


class Local:
    """Processes, each with one task at a time. One that dies (killed, out of memory) costs nothing but its task, which
    is done in smaller parts."""

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
                        waiting.extendleft(reversed(parts_of(worker.task, smaller)))
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
    """A process, and what it is working at."""

    def __init__(self, function: Callable[[T], R], task: T) -> None:
        import multiprocessing  # noqa: PLC0415

        self.task = task
        self._is_copy = has_one_thread()
        context: Any = multiprocessing.get_context("fork" if self._is_copy else "spawn")
        self.ours, self._theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(self._theirs, function, os.getpid()), daemon=True)

    def start(self) -> None:
        with _deaf(self._is_copy):
            self._process.start()
        self._theirs.close()
        self.begin(self.task)

    def begin(self, task: T) -> None:
        """Hands over a task. The worker is waiting for it, so this does not wait for the worker."""
        self.task = task
        try:
            self.ours.send(task)
        except OSError:
            return  # it died meanwhile, which its end of the pipe says

    def end(self) -> None:
        """Ends the process: it is idle, dead, or working for nobody."""
        if self._process.pid is not None:
            self._process.kill()
            self._process.join()
        self.ours.close()


def has_one_thread() -> bool:
    """Whether this process may be copied as it is, with all it has loaded: a copy would lack its other threads and keep
    what they had locked. Only Linux tells, of threads that libraries began, too."""
    try:
        return sys.platform == "linux" and len([*Path("/proc/self/task").iterdir()]) == 1
    except OSError:
        return False


@contextmanager
def _deaf(is_copy: bool) -> Iterator[None]:
    """A process that is begun meanwhile does not hear Ctrl-C from its first moment on, while it loads what it needs:
    the terminal sends it to all, and the parent decides. A parent hears it, and requests to end, afterwards: in the
    midst of copying itself it would lose them."""
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


def _serve(tasks: Connection, function: Callable[[Any], Any], parent: int) -> None:
    """What a worker does: one task after the other, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as `_deaf`, for what this process begins
    for number in _ENDINGS:
        if callable(signal.getsignal(number)):  # what a copy took over: the parent puts in order what this one made
            signal.signal(number, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
    _end_with(parent)
    while True:
        try:
            task = tasks.recv()
        except (EOFError, OSError):
            return
        try:
            answer = True, function(task)
        except Exception as problem:  # noqa: BLE001  (raised again in the parent)
            answer = False, problem
        try:
            tasks.send(answer)
        except (EOFError, OSError):
            return
        except Exception as problem:  # noqa: BLE001  (what can't be sent is said)
            tasks.send((False, WorkerError(f"A worker's answer can't be sent: {type(problem).__name__}: {problem}.")))


def _end_with(parent: int) -> None:
    """Ends this process when its parent ends, however it does: no handler runs in a parent that is killed."""
    import multiprocessing  # noqa: PLC0415
    import threading  # noqa: PLC0415
    from multiprocessing.connection import wait  # noqa: PLC0415

    mother = multiprocessing.parent_process()
    if mother is not None:
        threading.Thread(target=lambda: wait([mother.sentinel]) and os._exit(1), daemon=True).start()
    try:  # Linux does it at once, also while a long call keeps every other thread waiting (prctl(2))
        import ctypes  # noqa: PLC0415

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    except (ImportError, OSError, AttributeError, TypeError):
        return
    if os.getppid() != parent:
        os._exit(1)


_PR_SET_PDEATHSIG, _SIGKILL = 1, 9

ENGINE = Local


# A function in a copy of this process: beside what is done here meanwhile, or to be rid of the memory it leaves.


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
