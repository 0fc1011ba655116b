"""Times as agents write them, as microseconds since 1970 UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=256)
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
    moment = datetime.fromtimestamp(at // 1_000_000, UTC).isoformat()
    return f"{moment[:19]}.{at // 1000 % 1000:03d}Z"
