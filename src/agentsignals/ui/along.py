"""A session along its events: how full the context was, what it had cost, where it failed and where turns began."""

from __future__ import annotations

from msgspec import Struct

from agentsignals.analysis.figures import formatted
from agentsignals.analysis.study import Kind
from agentsignals.ui.reading import Reading

WIDTH, HEIGHT = 720, 96
"""The picture's own units: as wide as the column it stands in, and stretched with it."""
BINS = 240
"""Points of a line, at most: of more model calls each stands for several, by its largest."""
_MOST_MARKS = 240
_MOST_TURNS = 60
"""Lines of more turns would cover what they are to divide."""
_STEPS = """
SELECT bin, max(context) AS context, max(cost) AS cost, max(seq) AS seq, min(seq) AS first, count(context) AS n
FROM (
  SELECT seq, (row_number() OVER (ORDER BY seq) - 1) * $bins // greatest(count(*) OVER (), $bins) AS bin,
    CASE WHEN thread = 'main' AND stop_reason IS DISTINCT FROM 'session_total'
      THEN input_tokens + coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) END AS context,
    sum(cost_usd) OVER (ORDER BY seq, step) AS cost
  FROM steps WHERE session_id = $session
) GROUP BY bin ORDER BY bin
"""
_COUNTS = """
SELECT count(*) AS n, count(*) FILTER (thread = 'main' AND input_tokens IS NOT NULL) AS with_context,
  count(cost_usd) AS with_cost
FROM steps WHERE session_id = $session
"""
_MARKS = """
SELECT seq * $bins // greatest($n, 1) AS bin, min(seq) AS seq, count(*) AS n FROM {table}
WHERE session_id = $session {when} GROUP BY bin ORDER BY bin
"""


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
    """Of the most that stand at one place."""


class Along(Struct, kw_only=True):
    """What the picture shows."""

    curves: list[Curve]
    failures: list[Mark]
    turns: list[Mark]
    n_events: int
    n_calls: int
    width: int = WIDTH
    height: int = HEIGHT


def along(reading: Reading, session_id: str) -> Along | None:
    """The picture of a session; None where there is nothing to draw."""
    asked = "SELECT max(seq) + 1 AS n FROM events WHERE session_id = $session"
    n_events = reading.rows_of(session_id, asked)[0]["n"] or 0
    counted = reading.rows_of(session_id, _COUNTS)[0]
    rows = reading.rows_of(session_id, _STEPS, {"bins": BINS})
    of_context = [(x_of(row["seq"], n_events), row["context"]) for row in rows if row["context"] is not None]
    of_cost = [(x_of(row["seq"], n_events), row["cost"]) for row in rows if row["cost"] is not None]
    curves = [
        _curve("context size", of_context, "tokens", counted["with_context"]),
        _curve("cost so far", of_cost, "usd", counted["with_cost"]),
    ]
    turns = _marks(reading, session_id, n_events, "turns", "")
    drawn = Along(
        curves=[curve for curve in curves if curve is not None],
        failures=_marks(reading, session_id, n_events, "tool_calls", "AND status = 'error'"),
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


def _marks(reading: Reading, session_id: str, n_events: int, table: str, when: str) -> list[Mark]:
    query = _MARKS.format(table=table, when=when)
    rows = reading.rows_of(session_id, query, {"bins": _MOST_MARKS, "n": n_events})
    most = max((row["n"] for row in rows), default=1)
    return [Mark(x_of(row["seq"], n_events), row["seq"], row["n"], row["n"] / most) for row in rows]


def x_of(seq: int, n_events: int) -> float:
    """Where an event stands across the picture."""
    return round(WIDTH * seq / max(n_events - 1, 1), 1)
