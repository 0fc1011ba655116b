"""Behaviour: what the agent did, in what order, to which files."""

from __future__ import annotations

from typing import Any

from agentsignals.catalog import Measured, ratio, signal
from agentsignals.derived import SessionView
from agentsignals.evidence import Evidence
from agentsignals.model import Absent


@signal(
    "behavior.turn_count",
    type="int",
    unit="steps",
    context="both",
    level="attempt",
    origin="seed 003",
    pitfalls="Conflates task difficulty with efficiency; compare only within a task. Not the same thing as user turns.",
)
def turn_count(view: SessionView, why: Evidence) -> int:
    """Model API calls on the main thread, each message id once; subagent and synthetic messages excluded."""
    why.support(view.steps)
    return len(view.steps)


@signal(
    "behavior.tool_call_count",
    type="int",
    unit="tool_calls",
    context="both",
    level="attempt",
    origin="seed 003",
    pitfalls="A read and an edit weigh the same; always publish with the class mix of behavior.tool_sequence.",
)
def tool_call_count(view: SessionView, why: Evidence) -> Measured:
    """Tool calls on the main thread, each call once; unanswered and rejected ones included."""
    why.support(view.calls)
    return Measured(len(view.calls), {"subagent_calls": len(view.subagent_calls), "rejected": len(view.rejected)})


@signal(
    "behavior.tool_sequence[]",
    type="list[obj]",
    unit="ordered calls",
    context="both",
    level="attempt",
    origin="seed 003",
    pitfalls="Names differ between agents, so n-grams across agents use class.",
)
def tool_sequence(view: SessionView, why: Evidence) -> list[dict[str, Any]]:
    """Main-thread tool calls in transcript order: number, name, class, file, status."""
    why.support(view.calls)
    return [
        {"i": i, "name": c.name, "class": k, "file": c.path, "status": c.status}
        for i, (c, k) in enumerate(zip(view.calls, view.classes, strict=True))
    ]


@signal(
    "behavior.edit_to_read_ratio",
    type="float",
    unit="ratio",
    context="both",
    level="attempt",
    origin="seed 003",
    pitfalls="High is decisive, low is exploring or stuck; only relative to the same agent.",
)
def edit_to_read_ratio(view: SessionView, why: Evidence) -> Measured | Absent:
    """Edits, shell writes included, for each read."""
    changed = [c for c, k in zip(view.calls, view.classes, strict=True) if k in ("edit", "shell_write")]
    reads = [c for c in view.calls if c.class_ == "read"]
    why.support(changed)
    why.denominator(reads)
    return ratio(len(changed), len(reads))
