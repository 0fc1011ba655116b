"""Times as agents write them, as microseconds since 1970 UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = EPOCH.toordinal()
_HOUR_US = 3_600_000_000
_TWO = tuple(f"{n:02d}" for n in range(100))
"""Numbers of two digits. Signals write a time for every edit and turn; a `datetime` each costs three times as much."""


EARLIEST = 946_684_800_000_000
"""2000: no coding agent is older, and a number of seconds taken for milliseconds falls before it."""
LATEST = 4_102_444_800_000_000
"""2100: a file's time may be wrong by a clock, not by a lifetime."""
IMPOSSIBLE = -(2**62)
"""Stands for a logged time that is none; `formats.soundness` counts it and takes it out."""


def from_iso(text: str | None) -> int | None:
    """An ISO 8601 time; a naive one is read as UTC. None when it is missing or is no time."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    since = (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)) - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def logged_iso(text: str | None) -> int | None:
    """The same of a record: None when it is missing, `IMPOSSIBLE` when it is no time."""
    if not text:
        return None
    at = from_iso(text)
    return IMPOSSIBLE if at is None else at


def logged_ms(value: object) -> int | None:
    """Milliseconds since 1970, as a record has them: None for none, `IMPOSSIBLE` for what is no time."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
        return IMPOSSIBLE
    return int(value * 1000)


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
