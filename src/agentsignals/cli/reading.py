"""Progress of a run that reads traces: sessions, prompts, calls and dollars so far."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from agentsignals.cli.output import Bar

if TYPE_CHECKING:
    from agentsignals.ingest.shard import SoFar

EARLY_S = 1.0
"""Seconds after which the first line is printed where stderr is no terminal. Shorter runs print none."""
_COLUMNS = 80
"""Width of a terminal that does not tell its own."""


class Reading(Bar):
    """A bar until the first sessions are read, then the sums so far: updated in place on a terminal, one line a second
    after the start and one every few seconds elsewhere, nothing when quiet."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self._began = time.monotonic()
        self._total: int | None = None
        self._drawn = 0
        self._is_told = False

    def __call__(self, stage: str, done: int, total: int | None, detail: str = "") -> None:
        if stage == "reading":
            self._total = total
            if self._is_told:
                return
        else:
            self._clear()
        super().__call__(stage, done, total, detail)

    @property
    def heard(self) -> Callable[[SoFar], None] | None:
        """Where the sums go. None when quiet: then nobody adds up."""
        return None if self._quiet else self.so_far

    def so_far(self, sums: SoFar) -> None:
        """Show the sums over the sessions read until now."""
        now = time.monotonic()
        if self._live:
            self._is_told = True
            super().close()
            beneath = getattr(sys.stderr, "beneath", sys.stderr)  # the line is redrawn by a control character
            try:
                columns = os.get_terminal_size(beneath.fileno()).columns or _COLUMNS
            except (OSError, ValueError):
                columns = _COLUMNS
            line = sentence(sums, self._total, columns - 1)
            beneath.write(f"\r{line.ljust(self._drawn)}")
            beneath.flush()
            self._drawn = len(line)
        elif now - self._began >= EARLY_S and (not self._is_told or now - self._said_at >= self.EVERY_S):
            self._is_told, self._said_at = True, now
            print(sentence(sums, self._total), file=sys.stderr, flush=True)

    def close(self) -> None:
        self._clear()
        super().close()

    def _clear(self) -> None:
        if self._drawn:
            beneath = getattr(sys.stderr, "beneath", sys.stderr)
            beneath.write(f"\r{' ' * self._drawn}\r")
            beneath.flush()
            self._drawn = 0


def sentence(sums: SoFar, total: int | None, width: int = 0) -> str:
    """Return the sums in one line. Where a `width` is given and too narrow, calls go first, then prompts."""
    from agentsignals.questions.formatting import formatted

    priced = sums.sessions - sums.unpriced_sessions
    cost = formatted(sums.cost_usd, "usd", sums.lower_bounds > 0) if priced else "cost unknown"
    read = f"{min(sums.bytes / total, 1.0):.0%} read: " if total else ""
    counts = ((sums.sessions, "session"), (sums.prompts, "prompt"), (sums.tool_calls, "call"))
    parts = [f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts]
    line = f"{read}{', '.join(parts)}, {cost} so far"
    while width and len(line) > width and len(parts) > 1:
        parts.pop()
        line = f"{read}{', '.join(parts)}, {cost}"
    return line[:width] if width else line
