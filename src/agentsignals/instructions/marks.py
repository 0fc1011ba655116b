"""What came of one occasion of a rule."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from agentsignals.model import ToolCall

Outcome = Literal["kept", "broken", "cannot_tell"]
_EXCERPT = 160


class Mark(Struct, frozen=True, kw_only=True):
    """An occasion of a rule, and what came of it."""

    outcome: Outcome
    because: str
    seq: int
    turn: int | None
    text: str
    """The command, or the file, that says so."""
    artifact: str | None = None
    line: int | None = None
    """Where the event stands: an artifact's line."""


def mark_of(outcome: Outcome, because: str, call: ToolCall, text: str = "") -> Mark:
    """An occasion at a call."""
    shown = " ".join((text or call.command or call.path or call.name).split())[:_EXCERPT]
    return Mark(outcome=outcome, because=because, seq=call.seq, turn=call.turn, text=shown)
