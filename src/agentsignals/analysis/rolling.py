"""Rolling windows: what was observed in the days up to each day. All in UTC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from math import ceil

from agentsignals.analysis.calendar import start_of

MOST_POINTS = 150
"""A chart of more points shows no more; of a longer time only every n-th day is drawn."""


def rolling(ascending: Sequence[datetime], days: int, fewest: int = 1) -> Iterator[tuple[datetime, slice]]:
    """For each day from the first observation to the last: which observations are of that day and the `days` - 1
    before it.

    Days whose window holds fewer than `fewest` are left out: one session is no share.
    """
    if not ascending:
        return
    first, last = start_of(ascending[0], "day"), start_of(ascending[-1], "day")
    step = ceil(((last - first).days + 1) / MOST_POINTS)
    day, low, high = first, 0, 0
    while day <= last:
        end, begin = day + timedelta(days=1), day - timedelta(days=days - 1)
        while high < len(ascending) and ascending[high] < end:
            high += 1
        while low < high and ascending[low] < begin:
            low += 1
        if high - low >= fewest:
            yield day, slice(low, high)
        day += timedelta(days=step)


def iso(day: datetime) -> str:
    """The day as charts want it."""
    return day.strftime("%Y-%m-%dT%H:%M:%SZ")
