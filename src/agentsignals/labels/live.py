"""What a person sees of a run while it goes on: how far it is, what it has cost, and that it still waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from agentsignals.prices import cost_usd

EVERY_S = 1.0
SILENT_S = 5.0
"""From so long without an answer on it is said."""


class Progress(Protocol):
    """Told how far a run is: never more done than there is. `detail`: calls, failures, tokens, money."""

    def __call__(self, stage: str, done: int, total: int | None, detail: str) -> None: ...


class Spent(Protocol):
    """What a run has used so far."""

    calls: int
    input_tokens: int
    output_tokens: int
    failed: dict[str, int]
    model: str | None


class Meter:
    """The figures of a run by the clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._answered = clock()

    def answered(self) -> None:
        """An answer came, or a failure."""
        self._answered = self._clock()

    def words(self, spent: Spent, waiting: int) -> str:
        """In a line; empty where nothing was asked. `waiting`: questions that were given and have no answer yet."""
        parts = []
        if spent.calls:
            minutes = max(self._clock() - self._began, 1.0) / 60
            parts.append(f"{spent.calls:,} calls ({spent.calls / minutes:,.0f} a minute)")
        if failed := sum(spent.failed.values()):
            parts.append(f"{failed:,} failed")
        if spent.input_tokens or spent.output_tokens:
            parts.append(f"{spent.input_tokens:,} tokens in, {spent.output_tokens:,} out")
            cost = cost_usd(spent.model, spent.input_tokens, spent.output_tokens) if spent.model else None
            parts += [f"${cost:,.2f}"] if cost is not None else []
        silent_s = self._clock() - self._answered
        if spent.model and waiting and silent_s >= SILENT_S:
            parts.append(f"no answer for {silent_s:,.0f} s, {waiting:,} waiting")
        return ", ".join(parts)


@contextmanager
def beating(beat: Callable[[], None], every_s: float = EVERY_S) -> Iterator[None]:
    """Calls `beat` every so often from a thread of its own, so that a server that says nothing is seen to."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(every_s):
            beat()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
