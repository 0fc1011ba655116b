"""Shares and quantiles of the days up to each day, drawn as lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from agentsignals.analysis.charts import lines
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.grouped import chart
from agentsignals.analysis.rolling import T, iso, rolling
from agentsignals.analysis.study import Chart, Kind, Row


def lines_chart(  # noqa: PLR0913  (a chart's words, each named at the call)
    stamped: Sequence[tuple[datetime, T]],
    measures: Mapping[str, Callable[[list[T]], float | None]],
    *,
    id: str,  # noqa: A002  (the chart's field)
    title: str,
    unit: str,
    kind: Kind,
    of: str,
    days: int,
    fewest: int,
) -> Chart | None:
    """A line a measure of what was observed in the last `days` days; None when there is no second day to draw.

    Days with fewer than `fewest` observations behind them have no point, and the line runs straight across.
    """
    rows: list[Row] = []
    drawn_days: list[datetime] = []
    for day, values in rolling(stamped, days, fewest):
        drawn_days.append(day)
        for name, measure in measures.items():
            value = measure(values)
            if value is not None:
                tip = f"{name}, {days} days to {day:%Y-%m-%d}: {formatted(value, kind)}, n = {len(values):,} {of}"
                rows.append({"name": name, "from": iso(day), "value": value, "tip": tip})
    if len(drawn_days) < 2 or not rows:
        return None
    first, last = drawn_days[0], drawn_days[-1]
    drawn = {row["name"] for row in rows}
    ends = [row["tip"] for row in rows if row["from"] == iso(last)]
    return chart(
        id,
        title,
        rows,
        lines(rows, unit, kind, [name for name in measures if name in drawn], (iso(first), iso(last))),
        n=len(stamped),
        of=of,
        note=f"each point is of the {days} days up to it; days with fewer than {fewest} {of} behind them have none",
        says=f"{title}, from {first:%Y-%m-%d} to {last:%Y-%m-%d}, UTC. At the end: " + "; ".join(ends),
    )
