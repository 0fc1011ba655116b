"""Several threads over one stream of work, in bounded number; what is under way is finished before an error goes on."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

GRACE_S = 10.0
"""How long calls under way may take after Ctrl-C: they are paid for."""
_T = TypeVar("_T")


class Crowd(Generic[_T]):
    """`work` is called with each thing, by at most `n` threads at once. Threads of it hold up no exit."""

    def __init__(self, work: Callable[[_T], None], n: int, stopped: threading.Event) -> None:
        self._work = work
        self._stopped = stopped
        self._things: queue.Queue[_T | None] = queue.Queue(maxsize=n)
        self._failed: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(n)]

    def over(self, things: Iterable[_T]) -> None:
        """Works through all things. Raises the first error of `work`, or of the stream, and stops at it."""
        for thread in self._threads:
            thread.start()
        try:
            for thing in things:
                self._put(thing)
                if self._stopped.is_set():
                    break
            self._end()
            for thread in self._threads:
                thread.join()
        except BaseException:
            self._stopped.set()
            self._end()
            until = time.monotonic() + GRACE_S
            for thread in self._threads:
                thread.join(max(0.0, until - time.monotonic()))
            raise
        if self._failed:
            raise self._failed[0]

    def _put(self, thing: _T | None) -> None:
        while not self._stopped.is_set():
            try:
                self._things.put(thing, timeout=0.2)
            except queue.Full:
                continue
            return

    def _end(self) -> None:
        for _ in self._threads:
            self._put(None)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                thing = self._things.get(timeout=0.2)
            except queue.Empty:
                continue
            if thing is None:
                return
            try:
                self._work(thing)
            except BaseException as problem:  # noqa: BLE001  (raised again in the caller's thread)
                self._failed.append(problem)
                self._stopped.set()
