"""Times as agents write them, as microseconds since 1970 UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = EPOCH.toordinal()
_HOUR_US = 3_600_000_000
_TWO = tuple(f"{n:02d}" for n in range(100))
"""Numbers of two digits. Signals write a time for every edit and turn; a `datetime` each costs three times as much."""


def from_iso(text: str | None) -> int | None:
    """An ISO 8601 time; a naive one is read as UTC. None when it is missing or is no time."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    since = parsed - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_epoch_ms(value: object) -> int | None:
    """Milliseconds since 1970, as a number; None for anything else."""
    return int(value * 1000) if isinstance(value, int | float) and not isinstance(value, bool) else None


def to_iso(at: int | None) -> str | None:
    """RFC 3339 UTC with milliseconds."""
    if at is None:
        return None
    hour = at // _HOUR_US
    ms = at // 1000 - hour * 3_600_000
    second = ms // 1000
    ms %= 1000
    return f"{_hour(hour)}{_TWO[second // 60]}:{_TWO[second % 60]}.{ms // 100}{_TWO[ms % 100]}Z"


@lru_cache(maxsize=256)
def _hour(hour: int) -> str:
    return f"{date.fromordinal(_EPOCH_DAY + hour // 24).isoformat()}T{_TWO[hour % 24]}:"
