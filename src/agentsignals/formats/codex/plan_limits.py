"""Limits of the person's plan, as Codex logs them after each model call: `rate_limits` of `token_count`."""

import msgspec
from msgspec import Struct

from agentsignals.formats import PlanLimit
from agentsignals.formats.records import UNREADABLE


class _Window(Struct):
    used_percent: float
    window_minutes: int | None = None
    resets_at: int | None = None


class _Limits(Struct):
    primary: _Window | None = None
    secondary: _Window | None = None


class _Payload(Struct):
    rate_limits: _Limits | None = None


class _Line(Struct):
    payload: _Payload | None = None


_decode = msgspec.json.Decoder(_Line).decode


def read(end: bytes) -> list[PlanLimit]:
    """Return the limits in the last record of a log's end that states any."""
    for line in reversed(end.splitlines()):
        if b'"rate_limits"' not in line:
            continue
        try:
            payload = _decode(line).payload
        except UNREADABLE:  # the first line is cut, the last may be
            continue
        limits = payload.rate_limits if payload is not None else None
        windows = [] if limits is None else [limits.primary, limits.secondary]
        if found := [w for w in windows if w is not None]:
            return [
                PlanLimit(used=w.used_percent / 100, window_s=60 * (w.window_minutes or 0), resets_at=w.resets_at)
                for w in found
            ]
    return []
