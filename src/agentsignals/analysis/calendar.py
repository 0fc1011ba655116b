"""Days, weeks or months, as the span asks. All in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

Step = Literal["day", "week", "month"]
_DAYS_UP_TO = 45
_WEEKS_UP_TO = 2 * 366


class Buckets(Struct, frozen=True):
    """A division of time; every moment of the span lies in one bucket."""

    step: Step
    first: datetime
    last: datetime
    """The start of the last bucket."""

    @property
    def end(self) -> datetime:
        return following(self.last, self.step)

    def of(self, moment: datetime) -> datetime:
        """The start of the bucket a moment lies in."""
        return start_of(moment, self.step)


def buckets(moments: Sequence[datetime]) -> Buckets | None:
    """Days up to six weeks, weeks up to two years, months beyond; None without a moment."""
    if not moments:
        return None
    first, last = min(moments), max(moments)
    days = (last - first).days
    step: Step = "day" if days <= _DAYS_UP_TO else "week" if days <= _WEEKS_UP_TO else "month"
    return Buckets(step, start_of(first, step), start_of(last, step))


def start_of(moment: datetime, step: Step) -> datetime:
    """The start of the day, of the Monday, or of the month."""
    day = moment.replace(day=1 if step == "month" else moment.day, hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday()) if step == "week" else day


def following(start: datetime, step: Step) -> datetime:
    """The start of the next bucket."""
    if step == "month":
        return start_of(start + timedelta(days=32), "month")
    return start + timedelta(days=7 if step == "week" else 1)
