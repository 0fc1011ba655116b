"""Infrastructure: how long the agent worked, and how long it waited."""

from __future__ import annotations

from agentsignals.catalog import Measured, signal
from agentsignals.model import Absent
from agentsignals.views.evidence import Evidence
from agentsignals.views.session import SessionView
from agentsignals.views.work import SECOND, Clock, longest_s


@signal(
    "infra.work_time_s",
    type="float",
    unit="seconds",
    context="both",
    level="attempt",
    origin="this project",
    pitfalls="No log says when a call was allowed: each stretch counts for at most as long as its kind can take"
    " (design/signals.md#time-at-work), so that short waits for leave are inside, and of a call that ran for longer the"
    " rest is missing.",
    why="Neither the person's pauses nor a laptop that slept is work.",
)
def work_time_s(view: SessionView, why: Evidence) -> Measured | Absent:
    """How long the agent or its subagents worked for the person's turns: model calls and tools that ran, without waits
    for the person, for leave, or of a machine that slept."""
    time = view.made(Clock).whole
    if time is None:
        return Absent("missing_field", "timestamps")
    why.support(view.turns or view.events[:1])
    return Measured(time.work_s, {"waiting_s": time.waiting_s})


@signal(
    "infra.waiting_time_s",
    type="float",
    unit="seconds",
    context="both",
    level="attempt",
    origin="this project",
    pitfalls="`calls_s` is a wait for leave or a machine that slept: nothing logged tells them apart."
    " Of eval runs one value on the project's corpus.",
    why="What approvals, questions and sleep cost; work_time_s is without it.",
)
def waiting_time_s(view: SessionView, why: Evidence) -> Measured | Absent:
    """How long the agent waited within its responses: `asked_s` with a question or a plan before the person, `calls_s`
    with a call open for longer than it can have run, `silence_s` with none open and no model call that long."""
    time = view.made(Clock).whole
    if time is None:
        return Absent("missing_field", "timestamps")
    waited = [
        call for call in view.calls
        if call.started_at is not None and call.ended_at is not None
        and call.ended_at - call.started_at > longest_s(call) * SECOND
    ]  # fmt: skip
    why.support(waited, "open for longer than it can have run:")
    why.denominator(view.turns or view.events[:1])
    return Measured(time.waiting_s, {"asked_s": time.asked_s, "calls_s": time.calls_s, "silence_s": time.silence_s})
