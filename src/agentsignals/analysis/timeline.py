"""Amounts over time as stacked columns, an agent a colour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from math import fsum

from agentsignals.analysis.behind import Part
from agentsignals.analysis.calendar import Buckets, buckets, following
from agentsignals.analysis.charts import OTHERS, over_time
from agentsignals.analysis.figures import formatted
from agentsignals.analysis.grouped import chart, mark
from agentsignals.analysis.measures import MOST_AGENTS, agents_in_order
from agentsignals.analysis.rolling import iso
from agentsignals.analysis.study import Chart, Kind, Row

_GAP = 0.12
"""Share of a bucket left white, so that columns can be counted."""


def over_time_chart(  # noqa: PLR0913  (a chart's words, each named at the call)
    sessions: Sequence[Row],
    column: str | None,
    *,
    id: str,  # noqa: A002  (the chart's field)
    title: str,
    unit: str,
    kind: Kind,
    left_out: str = "",
) -> Chart | None:
    """The sum of a column of the sessions (None: their number) by agent and time of their start; None when the sessions
    that have both lie in one bucket. `left_out`: which are not among them, and why.
    """
    placed = [s for s in sessions if s["started_at"] is not None and (column is None or s[column] is not None)]
    span = buckets([s["started_at"] for s in placed])
    if span is None or span.first == span.last:
        return None
    order = agents_in_order(sessions)
    named = order[:MOST_AGENTS]
    names = [*named, OTHERS] if len(order) > MOST_AGENTS else named
    parts: dict[datetime, dict[str, list[Part]]] = defaultdict(lambda: defaultdict(list))
    days: dict[date, datetime] = {}
    for s in placed:
        at, name = s["started_at"], s["agent"] if s["agent"] in named else OTHERS
        start = days.get(at.date()) or days.setdefault(at.date(), span.of(at))
        parts[start][name].append((s["session_id"], 1 if column is None else s[column], 1))
    rows = _stacked(parts, names, span, lambda v: f"{formatted(v, kind)}{'' if kind == 'usd' else f' {unit}'}")
    missing = len(sessions) - len(placed)
    lacking = "" if column is None else f" or {title.lower()}"
    undrawn = [part for part in (f"{missing:,} without a time{lacking}" if missing else "", left_out) if part]
    return chart(
        id,
        f"{title} by {span.step}",
        rows,
        over_time(rows, f"{unit} per {span.step}", kind, names, (iso(span.first), iso(span.end))),
        n=len(placed),
        of="sessions",
        note=f"not drawn: {' and '.join(undrawn)}" if undrawn else "",
        says=f"{title} by {span.step} and agent, from {span.first:%Y-%m-%d} to {span.end:%Y-%m-%d}, UTC.",
    )


def _stacked(
    placed: dict[datetime, dict[str, list[Part]]], names: Sequence[str], span: Buckets, say: Callable[[float], str]
) -> list[Row]:
    rows: list[Row] = []
    for start in sorted(placed):
        end = following(start, span.step)
        low = 0.0
        for name in names:
            parts = placed[start].get(name)
            if not parts:
                continue
            amount = fsum(value for _, value, _ in parts)
            high = low + amount
            tip = f"{name}, {span.step} of {start:%Y-%m-%d}: {say(amount)}, n = {len(parts):,} sessions"
            until = end - (end - start) * _GAP
            drawn = {"name": name, "from": iso(start), "to": iso(until), "low": low, "high": high, "tip": tip}
            rows.append(
                mark(drawn | ({"short": True} if span.end - span.first < timedelta(days=200) else {}), behind=parts)
            )
            low = high
    return rows
