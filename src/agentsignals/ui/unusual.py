"""Which values of a session lie farthest from those of all other sessions."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Any

from msgspec import Struct

from agentsignals.ui.reading import Reading

MOST = 5
LEAST_SESSIONS = 20
"""Among fewer no value is called far."""
FAR = 0.1
"""Share of sessions that lie as far out on that side, up to which a value is shown."""
_NUMBERS = """
SELECT signal, list(number ORDER BY number) AS numbers,
  coalesce(bool_or(contains(detail, 'at_least') AND detail->>'at_least' = 'true'), false) AS at_least
FROM signals
WHERE level IN ('session', 'attempt') AND number IS NOT NULL AND isfinite(number) GROUP BY signal
"""


class Place(Struct, frozen=True):
    """Where a value stands among those of all sessions that have one, itself included."""

    n: int
    below: int
    ties: int
    """Sessions with the same value, this one among them."""
    median: float
    at_least: bool
    """Whether some of the values are lower bounds, and so the median."""

    @property
    def share(self) -> float:
        """Of the sessions, those as far out on the nearer side or farther: this one's value, or beyond."""
        return min(self.below + self.ties, self.n - self.below) / self.n

    @property
    def is_high(self) -> bool:
        return self.n - self.below < self.below + self.ties

    @property
    def percentile(self) -> float:
        """Per cent of the sessions that lie below it, half of those with the same value among them."""
        return 100 * (self.below + self.ties / 2) / self.n


class Unusual(Struct):
    """The values farthest out, and among how many they were looked for."""

    rows: list[tuple[dict[str, Any], Place]]
    n_compared: int
    """Signals with a number here and in enough sessions."""
    n_far: int
    """Those of them of which at most `FAR` of the sessions lie as far out."""


def place(reading: Reading, context: str, signal: str, number: float | None) -> Place | None:
    """Where a number stands among a signal's numbers; None where there is none, or too few."""
    numbers, at_least = _numbers(reading, context).get(signal, (array("d"), False))
    if number is None or len(numbers) < LEAST_SESSIONS:
        return None
    below = bisect_left(numbers, number)
    return Place(len(numbers), below, bisect_right(numbers, number) - below, numbers[len(numbers) // 2], at_least)


def unusual(reading: Reading, context: str, values: list[dict[str, Any]]) -> Unusual:
    """The few values of a session that lie farthest from its context's other sessions, the farthest of each
    family first."""
    placed = [(row, at) for row in values if (at := place(reading, context, row["signal"], row["number"])) is not None]
    far = sorted((pair for pair in placed if pair[1].share <= FAR), key=lambda pair: (pair[1].share, pair[0]["signal"]))
    of_family: Counter[str] = Counter()
    rounds: list[int] = []  # a long session is long in all its counts: each family comes once before any comes again
    for row, _ in far:
        family = row["signal"].partition(".")[0]
        rounds.append(of_family[family])
        of_family[family] += 1
    shown = [far[n] for n in sorted(range(len(far)), key=lambda n: (rounds[n], n))[:MOST]]
    return Unusual(shown, len(placed), len(far))


def _numbers(reading: Reading, context: str) -> dict[str, tuple[array[float], bool]]:
    """The numbers of each signal in order, and whether some are lower bounds."""
    seen = context if reading.contexts - {context} else ""
    made: dict[str, tuple[array[float], bool]] = reading.kept(("numbers", seen), lambda: _asked(reading, seen))
    return made


def _asked(reading: Reading, context: str) -> dict[str, tuple[array[float], bool]]:
    rows = reading.rows(_NUMBERS, None, context)
    return {row["signal"]: (array("d", row["numbers"]), row["at_least"]) for row in rows}
