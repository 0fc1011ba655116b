"""Rolling windows: what was observed in the days up to each day. All in UTC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import TypeVar

from agentsignals.analysis.calendar import start_of

T = TypeVar("T")
MOST_POINTS = 150
"""A chart of more points shows no more; of a longer time only every n-th day is drawn."""


def rolling(stamped: Sequence[tuple[datetime, T]], days: int, fewest: int = 1) -> Iterator[tuple[datetime, list[T]]]:
    """For each day from the first observation to the last: the observations of that day and the `days` - 1 before it.

    Days whose window holds fewer than `fewest` are left out: one session is no share.
    """
    ascending = sorted(stamped, key=lambda pair: pair[0])
    if not ascending:
        return
    first, last = start_of(ascending[0][0], "day"), start_of(ascending[-1][0], "day")
    step = ceil(((last - first).days + 1) / MOST_POINTS)
    day, low, high = first, 0, 0
    while day <= last:
        end, begin = day + timedelta(days=1), day - timedelta(days=days - 1)
        while high < len(ascending) and ascending[high][0] < end:
            high += 1
        while low < high and ascending[low][0] < begin:
            low += 1
        if high - low >= fewest:
            yield day, [value for _, value in ascending[low:high]]
        day += timedelta(days=step)


def iso(day: datetime) -> str:
    """The day as charts want it."""
    return day.strftime("%Y-%m-%dT%H:%M:%SZ")
