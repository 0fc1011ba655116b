"""A session along its events: how full the context was, what it had cost, where it failed and where turns began."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Any

from msgspec import Struct

from agentsignals.questions.formatting import formatted
from agentsignals.questions.question import Kind
from agentsignals.signals import Signal
from agentsignals.signals.catalog import catalogue
from agentsignals.ui import page as words
from agentsignals.ui.page import sql
from agentsignals.ui.snapshot import Snapshot

WIDTH, HEIGHT = 720, 96
"""The picture's own units: as wide as the column it stands in, and stretched with it."""
BINS = 240
"""Points of a line, at most: of more model calls each stands for several, by its largest."""
_MOST_MARKS = 240
_MOST_TURNS = 60
"""Lines of more turns would cover what they are to divide."""


class Curve(Struct, kw_only=True):
    """A line over the session's events, from 0 to its largest value."""

    name: str
    points: str
    """As SVG has them."""
    most: str
    n: int
    """Model calls of which the value is there."""


class Mark(Struct):
    """A failure or the beginning of a turn: `x` in the picture's units, and the event to go to."""

    x: float
    seq: int
    n: int
    """Several that stand at the same place."""
    share: float
    """Share of the most marks at one position."""


class Along(Struct, kw_only=True):
    """The picture of a session along its events."""

    curves: list[Curve]
    failures: list[Mark]
    turns: list[Mark]
    n_events: int
    n_calls: int
    width: int = WIDTH
    height: int = HEIGHT


def along(snapshot: Snapshot, session_id: str) -> Along | None:
    """The picture of a session; None where there is nothing to draw."""
    n_events = snapshot.rows_of(session_id, sql("trajectory.length"))[0]["n"] or 0
    counted = snapshot.rows_of(session_id, sql("trajectory.counts"))[0]
    rows = snapshot.rows_of(session_id, sql("trajectory.steps"), {"bins": BINS})
    of_context = [(x_of(row["seq"], n_events), row["context"]) for row in rows if row["context"] is not None]
    of_cost = [(x_of(row["seq"], n_events), row["cost"]) for row in rows if row["cost"] is not None]
    curves = [
        _curve("context size", of_context, "tokens", counted["with_context"]),
        _curve("cost so far", of_cost, "usd", counted["with_cost"]),
    ]
    turns = _marks(snapshot, session_id, n_events, "turns", "")
    drawn = Along(
        curves=[curve for curve in curves if curve is not None],
        failures=_marks(snapshot, session_id, n_events, "tool_calls", "AND status = 'error'"),
        turns=turns if len(turns) <= _MOST_TURNS else [],
        n_events=n_events,
        n_calls=counted["n"],
    )
    return drawn if drawn.curves or drawn.failures else None


def _curve(name: str, values: list[tuple[float, float]], unit: Kind, n: int) -> Curve | None:
    most = max((value for _, value in values), default=0)
    if len(values) < 2 or not most:
        return None
    points = " ".join(f"{x},{HEIGHT * (1 - value / most):.1f}" for x, value in values)
    return Curve(name=name, points=points, most=formatted(most, unit), n=n)


def _marks(snapshot: Snapshot, session_id: str, n_events: int, table: str, when: str) -> list[Mark]:
    query = sql("trajectory.marks", table=table, when=when)
    rows = snapshot.rows_of(session_id, query, {"bins": _MOST_MARKS, "n": n_events})
    most = max((row["n"] for row in rows), default=1)
    return [Mark(x_of(row["seq"], n_events), row["seq"], row["n"], row["n"] / most) for row in rows]


def x_of(seq: int, n_events: int) -> float:
    """Return the position of an event in the picture."""
    return round(WIDTH * seq / max(n_events - 1, 1), 1)


# One signal along a session: its values by turn, each where its turn began.

MOST_BARS = 240
"""Bars of a line; of more turns each stands for several, by its largest."""
MOST_LINES = 6
"""Words that have a line of their own."""
MOST_ROWS = 500
"""Turns that the table lists."""


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


def choices(snapshot: Snapshot, session_id: str) -> list[Signal]:
    """The signals that have a value in more than one turn of the session."""
    of_path = {signal.path: signal for signal in catalogue().values()}
    rows = snapshot.rows_of(session_id, sql("trajectory.signals"))
    return [of_path[row["signal"]] for row in rows if row["signal"] in of_path]


def by_turn(snapshot: Snapshot, session_id: str, signal: Signal, n_events: int) -> ByTurn:
    """The values of a signal along a session of so many events."""
    rows = snapshot.rows_of(session_id, sql("trajectory.values_by_turn"), {"signal": signal.path})
    for row in rows:
        row["value"] = words.worth(row["value"], row["number"], signal.type, signal.unit, bool(row["at_least"]))
    counted = Counter(row["value"] for row in rows)
    lines = []
    if signal.type in ("int", "float"):
        numbers = [(row["seq"], row["number"]) for row in rows if row["number"] is not None]
        largest = max(rows, key=lambda row: row["number"] or 0)
        note = f"up to {largest['value']}, {words.times(len(numbers), 'turn')}"
        lines = [Line(name="", note=note, marks=_marks_by_turn(numbers, n_events), height=HEIGHT)]
    else:
        for value, n in counted.most_common(MOST_LINES):
            marks = _marks_by_turn([(row["seq"], 1.0) for row in rows if row["value"] == value], n_events)
            lines.append(Line(name=value, note=words.times(n, "turn"), marks=marks, height=20))
    return ByTurn(signal=signal, lines=lines, rows=rows[:MOST_ROWS], n=len(rows), n_words=len(counted))


def _marks_by_turn(values: list[tuple[int, float]], n_events: int) -> list[Mark]:
    """Return marks of values; of turns at one position the largest, which is linked."""
    most = max((value for _, value in values), default=0) or 1
    bins: dict[int, list[tuple[float, int]]] = {}
    for seq, value in values:
        bins.setdefault(seq * MOST_BARS // max(n_events, 1), []).append((value, -seq))
    tops = [(max(of_bin), len(of_bin)) for of_bin in bins.values()]
    return [Mark(x_of(-seq, n_events), -seq, n, max(value, 0) / most) for (value, seq), n in tops]


# Which values of a session lie farthest from those of all other sessions.

MOST = 5
LEAST_SESSIONS = 20
"""Among fewer no value is called far."""
FAR = 0.1
"""Share of sessions that lie as far out on that side, up to which a value is shown."""


class Place(Struct, frozen=True):
    """The rank of a value among those of all sessions that have one, itself included."""

    n: int
    below: int
    ties: int
    """Sessions with the same value, this one among them."""
    median: float
    at_least: bool
    """True where some values, and so the median, are lower bounds."""

    @property
    def share(self) -> float:
        """Share of the sessions at this value or beyond, on the nearer side."""
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
    """Signals of which at most `FAR` of the sessions lie as far out."""


def place(snapshot: Snapshot, context: str, signal: str, number: float | None) -> Place | None:
    """Return the rank of a number among a signal's numbers; None where there is no number, or too few."""
    seen = context if snapshot.contexts - {context} else ""

    def asked() -> dict[str, tuple[array[float], bool]]:  # of each signal in order, and whether some are lower bounds
        rows = snapshot.rows(sql("signals.numbers"), None, seen)
        return {row["signal"]: (array("d", row["numbers"]), row["at_least"]) for row in rows}

    numbers, at_least = snapshot.kept(("numbers", seen), asked).get(signal, (array("d"), False))
    if number is None or len(numbers) < LEAST_SESSIONS:
        return None
    below = bisect_left(numbers, number)
    return Place(len(numbers), below, bisect_right(numbers, number) - below, numbers[len(numbers) // 2], at_least)


def unusual(snapshot: Snapshot, context: str, values: list[dict[str, Any]]) -> Unusual:
    """The few values of a session that lie farthest from its context's other sessions, the farthest of each
    family first."""
    placed = [(row, at) for row in values if (at := place(snapshot, context, row["signal"], row["number"])) is not None]
    far = sorted((pair for pair in placed if pair[1].share <= FAR), key=lambda pair: (pair[1].share, pair[0]["signal"]))
    of_family: Counter[str] = Counter()
    rounds: list[int] = []  # a long session is long in all its counts: each family comes once before any comes again
    for row, _ in far:
        family = row["signal"].partition(".")[0]
        rounds.append(of_family[family])
        of_family[family] += 1
    shown = [far[n] for n in sorted(range(len(far)), key=lambda n: (rounds[n], n))[:MOST]]
    return Unusual(shown, len(placed), len(far))
