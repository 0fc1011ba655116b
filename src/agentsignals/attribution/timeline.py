"""What happened in one working tree when: and when people or commands had their chance."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from agentsignals.attribution.alignment import loose
from agentsignals.attribution.operations import Activity
from agentsignals.attribution.states import HUMAN, SHELL, UNKNOWN

IDLE_US = 10_000_000
"""Nobody edits a file by hand in a shorter pause of the agent."""
_TELLING_CHARS = 8
"""A line of a command that is at least so long, and stands in a file, came from there."""


class Chances:
    """When, in a working tree, a person could have changed a file, and when a command could have."""

    def __init__(self, sessions: Iterable[Activity]) -> None:
        activities = list(sessions)
        self._starts, self._ends = _joined(sorted(span for activity in activities for span in activity.busy))
        self._writers = sorted(at for activity in activities for at in activity.writers)
        self._command_lines: dict[str, list[int]] = {}
        for activity in activities:
            for at, command in activity.commands:
                for line in set(_unescaped(command).split("\n")):
                    plain = loose(line)
                    if len(plain) >= _TELLING_CHARS:
                        self._command_lines.setdefault(plain, []).append(at)

    def idle(self, after: int, until: int) -> bool:
        """Whether every agent rested long enough between two moments for a person to have edited."""
        if until - after < IDLE_US:
            return False
        at = after
        n = bisect_right(self._ends, after)
        while n < len(self._starts) and self._starts[n] < until:
            if self._starts[n] - at >= IDLE_US:
                return True
            at = max(at, self._ends[n])
            n += 1
        return until - at >= IDLE_US

    def idle_us(self, after: int, until: int) -> int:
        """For how long every agent rested between two moments, microseconds."""
        at, rested = after, 0
        n = bisect_right(self._ends, after)
        while n < len(self._starts) and self._starts[n] < until:
            rested += max(self._starts[n] - at, 0)
            at = max(at, self._ends[n])
            n += 1
        return rested + max(until - at, 0)

    def wrote(self, after: int, until: int) -> bool:
        """Whether a call that may write unseen ended between two moments."""
        n = bisect_right(self._writers, after)
        return n < len(self._writers) and self._writers[n] <= until

    def typed_by_command(self, line: str, after: int, until: int) -> bool:
        """Whether a command of that time has this very line in it."""
        plain = loose(line)
        times = self._command_lines.get(plain, ()) if len(plain) >= _TELLING_CHARS else ()
        return any(after < at <= until for at in times)

    def unseen(self, after: int, until: int, written_at: int | None, is_new: bool) -> int:
        """Who a change is from that no operation explains, made between two moments: the mark for its lines.

        A person only where no command can have done it, a command only where no person can; else nobody knows.
        """
        if written_at is not None and after < written_at <= until:
            free = self.idle(written_at, until) or (not is_new and self.idle(after, written_at))
            return UNKNOWN if free else SHELL
        person, command = self.idle(after, until), self.wrote(after, until)
        if person and not command:
            return HUMAN
        return SHELL if command and not person else UNKNOWN


def _unescaped(command: str) -> str:
    """A command with the texts in it as the program it calls will write them."""
    for mark in ("'''", '"""'):  # the text of a script begins and ends within a line
        command = command.replace(mark, "\n")
    return command.replace("\\n", "\n").replace("\\t", "\t").replace("\\'", "'").replace('\\"', '"')


def _joined(spans: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Overlapping spans made one: starts and ends, both rising."""
    starts: list[int] = []
    ends: list[int] = []
    for start, end in spans:
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends
