"""One signal along a session: its values by turn, each where its turn began."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Struct

from agentsignals.catalog import Signal, catalogue
from agentsignals.ui import words
from agentsignals.ui.along import HEIGHT, WIDTH, Mark, x_of
from agentsignals.ui.reading import Reading

MOST_BARS = 240
"""Bars of a line; of more turns each stands for several, by its largest."""
MOST_LINES = 6
"""Words that have a line of their own."""
MOST_ROWS = 500
"""Turns that the table lists."""
_CHOICES = """
SELECT signal, count(*) AS n FROM signals WHERE session_id = $session AND turn IS NOT NULL AND absent IS NULL
GROUP BY signal HAVING count(*) > 1 ORDER BY signal
"""
_VALUES = """
SELECT s.turn, t.seq, s.number, s.value, s.detail->>'at_least' AS at_least
FROM signals s JOIN turns t ON t.session_id = s.session_id AND t.turn = s.turn
WHERE s.session_id = $session AND s.signal = $signal AND s.absent IS NULL ORDER BY s.turn
"""


class Line(Struct, kw_only=True):
    """Bars along the session: how large a number is, or the turns of which one word is the value."""

    name: str
    note: str
    marks: list[Mark]
    height: int


class ByTurn(Struct, kw_only=True):
    """A signal's values along a session."""

    signal: Signal
    lines: list[Line]
    rows: list[dict[str, Any]]
    """The first `MOST_ROWS` turns with a value: `turn`, `seq`, `value` in words."""
    n: int
    n_words: int
    """Different words; more than `MOST_LINES` of them are in the table alone."""
    width: int = WIDTH


def choices(reading: Reading, session_id: str) -> list[Signal]:
    """The signals that have a value in more than one turn of the session."""
    of_path = {signal.path: signal for signal in catalogue().values()}
    rows = reading.rows_of(session_id, _CHOICES)
    return [of_path[row["signal"]] for row in rows if row["signal"] in of_path]


def by_turn(reading: Reading, session_id: str, signal: Signal, n_events: int) -> ByTurn:
    """The values of a signal along a session of so many events."""
    rows = reading.rows_of(session_id, _VALUES, {"signal": signal.path})
    for row in rows:
        row["value"] = words.worth(row["value"], row["number"], signal.type, signal.unit, bool(row["at_least"]))
    is_number = signal.type in ("int", "float")
    counted = Counter(row["value"] for row in rows)
    lines = [_numbers(rows, n_events)] if is_number else []
    for value, n in [] if is_number else counted.most_common(MOST_LINES):
        marks = _marks([(row["seq"], 1.0) for row in rows if row["value"] == value], n_events)
        lines.append(Line(name=value, note=words.times(n, "turn"), marks=marks, height=20))
    return ByTurn(signal=signal, lines=lines, rows=rows[:MOST_ROWS], n=len(rows), n_words=len(counted))


def _numbers(rows: list[dict[str, Any]], n_events: int) -> Line:
    numbers = [(row["seq"], row["number"]) for row in rows if row["number"] is not None]
    largest = max(rows, key=lambda row: row["number"] or 0)
    note = f"up to {largest['value']}, {words.times(len(numbers), 'turn')}"
    return Line(name="", note=note, marks=_marks(numbers, n_events), height=HEIGHT)


def _marks(values: list[tuple[int, float]], n_events: int) -> list[Mark]:
    """Of turns that would stand at one place the largest, which is gone to."""
    most = max((value for _, value in values), default=0) or 1
    bins: dict[int, list[tuple[float, int]]] = {}
    for seq, value in values:
        bins.setdefault(seq * MOST_BARS // max(n_events, 1), []).append((value, -seq))
    tops = [(max(of_bin), len(of_bin)) for of_bin in bins.values()]
    return [Mark(x_of(-seq, n_events), -seq, n, max(value, 0) / most) for (value, seq), n in tops]
