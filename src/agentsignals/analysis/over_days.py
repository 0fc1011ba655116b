"""Shares and quantiles of the days up to each day, drawn as lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any, TypeVar

from agentsignals.analysis.behind import Each
from agentsignals.analysis.charts import lines
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.grouped import chart, mark
from agentsignals.analysis.rolling import iso, rolling
from agentsignals.analysis.study import Chart, Kind, Row

T = TypeVar("T")


def lines_chart(  # noqa: PLR0913  (a chart's words, each named at the call)
    stamped: Sequence[tuple[datetime | None, str, T]],
    *,
    shares: Mapping[str, Callable[[list[T]], list[float]]] | None = None,
    measures: Mapping[str, Callable[[list[T]], float | None]] | None = None,
    id: str,  # noqa: A002  (the chart's field)
    title: str,
    unit: str,
    kind: Kind,
    of: str,
    days: int,
    fewest: int,
) -> Chart | None:
    """A line a share, or another measure, of what was observed in the last `days` days; None when there is no second
    day to draw. `stamped`: time, session and what was observed; without a time it is not drawn. `shares`: what the
    observations have of each.

    Days with fewer than `fewest` observations behind them have no point, and the line runs straight across.
    """
    timed = sorted(((at, session_id, value) for at, session_id, value in stamped if at is not None), key=itemgetter(0))
    sessions, values = [session_id for _, session_id, _ in timed], [value for _, _, value in timed]
    drawn_lines: dict[str, tuple[list[Any], Callable[[list[Any]], float | None], bool]] = {
        **{name: (part(values), _mean, True) for name, part in (shares or {}).items()},
        **{name: (values, measure, False) for name, measure in (measures or {}).items()},
    }
    rows: list[Row] = []
    drawn_days: list[datetime] = []
    for day, window in rolling([at for at, _, _ in timed], days, fewest):
        drawn_days.append(day)
        n = window.stop - window.start
        for name, (column, measure, is_share) in drawn_lines.items():
            value = measure(column[window])
            if value is not None:
                tip = f"{name}, {days} days to {day:%Y-%m-%d}: {formatted(value, kind)}, n = {n:,} {of}"
                behind = partial(_parts, sessions, column if is_share else None, window)
                rows.append(mark({"name": name, "from": iso(day), "value": value, "tip": tip}, behind))
    if len(drawn_days) < 2 or not rows:
        return None
    first, last = drawn_days[0], drawn_days[-1]
    drawn = {row["name"] for row in rows}
    ends = [row["tip"] for row in rows if row["from"] == iso(last)]
    return chart(
        id,
        title,
        rows,
        lines(rows, unit, kind, [name for name in drawn_lines if name in drawn], (iso(first), iso(last))),
        n=len(timed),
        of=of,
        note=f"each point is of the {days} days up to it; days with fewer than {fewest} {of} behind them have none",
        says=f"{title}, from {first:%Y-%m-%d} to {last:%Y-%m-%d}, UTC. At the end: " + "; ".join(ends),
    )


def _mean(parts: list[float]) -> float:
    return sum(parts) / len(parts)


def _parts(sessions: Sequence[str], parts: Sequence[float] | None, window: slice) -> Each:
    """What each session of a window has of a share; of another measure one an observation."""
    of_window = sessions[window]
    return of_window if parts is None else zip(of_window, parts[window], repeat(1))
