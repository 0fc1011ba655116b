"""Infrastructure: how long it took."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.derived import OF_AGENT, SessionView
from agentsignals.evidence import Evidence
from agentsignals.model import Absent, Event

SECOND = 1_000_000


@signal(
    "infra.wall_time_s",
    type="float",
    unit="seconds",
    context="both",
    level="attempt",
    origin="seed 003",
    pitfalls="The person's pauses count (left open overnight, a session is a day long): `active_s` leaves them out."
    " Cold start and server load count too: compare within a run only.",
)
def wall_time_s(view: SessionView, why: Evidence) -> Measured | Absent:
    """Time from the first to the last event of the main thread; `active_s` is the time the agent was answering."""
    times = [at for e in view.events if (at := e.timestamp) is not None]
    if not times:
        return Absent("missing_field", "timestamps")
    times.sort()  # half the work of `min` and `max`: they nearly always are in order
    first, last = times[0], times[-1]
    why.support((e for e in view.events if e.timestamp == first), "first")
    why.support((e for e in view.events if e.timestamp == last), "last")
    return Measured((last - first) / SECOND, {"method": "timestamps", "active_s": _active(view)})


def _active(view: SessionView) -> float | None:
    """Seconds from each human turn to the agent's last sign of life before the next; None when no response is timed."""
    if not view.turns:
        times = [e.timestamp for e in view.events if e.timestamp is not None and e.kind in OF_AGENT]
        return (max(times) - min(times)) / SECOND if times else None
    spans = [
        max(end - turn.timestamp, 0)
        for turn, done in zip(view.turns, view.responses, strict=True)
        if turn.timestamp is not None and (end := _last_time(done)) is not None
    ]
    return sum(spans) / SECOND if spans else None


def _last_time(events: list[Event]) -> int | None:
    for event in reversed(events):
        if event.timestamp is not None and event.kind in OF_AGENT:
            return event.timestamp
    return None
