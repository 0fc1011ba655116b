"""A session as who said and did what, in order: the view that conversation formats share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct, field

from agentsignals.model import MAIN, Event, Session, Step, ToolCall, Turn


class Call(Struct):
    """A tool call and what came of it."""

    call: ToolCall
    id: str
    """Unique within the session: some agents repeat theirs."""
    result: Event | None = None


class Move(Struct, kw_only=True):
    """What the person said, or one step of the agent."""

    role: Literal["user", "agent"]
    at: int | None
    seq: int
    """The event that it begins with; of a step that left no event, the one that came next."""
    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    step: Step | None = None
    turn: Turn | None = None

    @property
    def text(self) -> str:
        return "\n\n".join(self.texts)

    @property
    def thought(self) -> str | None:
        return "\n\n".join(self.thinking) or None


def moves(session: Session, thread: str = MAIN) -> list[Move]:
    """The moves of a thread. Lines of one step that were logged apart are one move, where its first line stands; a step
    that left no words (an empty answer, a closing total) is one too: it was paid for.
    """
    conversation: list[Move] = []
    of_step: dict[int, Move] = {}
    steps = {s.step: s for s in session.steps}
    turns = {t.seq: t for t in session.turns}
    calls = {c.seq: c for c in session.tool_calls}
    used: dict[str, int] = {}
    for event in session.events:
        if event.thread != thread:
            continue
        if event.kind == "human_turn":
            move = Move(role="user", at=event.timestamp, seq=event.seq, turn=turns.get(event.seq))
            move.texts.append(event.text or "")
            conversation.append(move)
        elif event.kind in ("text", "thinking", "tool_call"):
            move = _agent_move(event, conversation, of_step, steps)
            if event.kind == "tool_call":
                call = calls.get(event.seq)
                if call is not None:
                    result = session.events[call.result_seq] if call.result_seq is not None else None
                    move.calls.append(Call(call, _unique(call.call_id, used), result))
            elif event.text:
                (move.texts if event.kind == "text" else move.thinking).append(event.text)
    wordless = [s for s in session.steps if s.thread == thread and s.step not in of_step]
    paid = [Move(role="agent", at=s.timestamp, seq=s.seq, step=s) for s in wordless]
    spoken = [m for m in conversation if m.role == "user" or m.texts or m.thinking or m.calls or m.step is not None]
    return sorted([*paid, *spoken], key=lambda m: m.seq)


def threads(session: Session) -> list[str]:
    """The threads beside the main one, in order of appearance."""
    rows: list[Event | Step] = [*session.events, *session.steps]
    return [t for t in dict.fromkeys(row.thread for row in rows) if t != MAIN]


def _agent_move(event: Event, conversation: list[Move], of_step: dict[int, Move], steps: dict[int, Step]) -> Move:
    if event.step is not None and event.step in of_step:
        return of_step[event.step]
    last = conversation[-1] if conversation else None
    if event.step is None and last is not None and last.role == "agent" and last.step is None:
        return last
    step = steps.get(event.step) if event.step is not None else None
    move = Move(role="agent", at=event.timestamp, seq=event.seq, step=step)
    conversation.append(move)
    if event.step is not None:
        of_step[event.step] = move
    return move


def _unique(call_id: str, used: dict[str, int]) -> str:
    name = call_id or "call"
    n = used[name] = used.get(name, 0) + 1
    return name if n == 1 else f"{name}~{n}"


def arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object; those that are none stand under `input`."""
    try:
        parsed = json.loads(call.arguments) if call.arguments else {}
    except ValueError:
        parsed = call.arguments
    return parsed if isinstance(parsed, dict) else {"input": parsed}


def iso(at: int | None) -> str | None:
    """Microseconds since 1970 as ISO 8601 UTC."""
    if at is None:
        return None
    try:
        return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return None


def prompt_tokens(step: Step) -> int | None:
    """Everything that went in, cached or not, as formats count it whose input includes what was cached."""
    parts = [t for t in (step.input_tokens, step.cache_read_tokens, step.cache_write_tokens) if t is not None]
    return sum(parts) if parts else None


def counted(steps: Iterator[Step], name: str) -> int | None:
    """The sum of a token column over steps; None where none says."""
    counts = [v for s in steps if (v := getattr(s, name)) is not None]
    return sum(counts) if counts else None


def without_nones(values: dict[str, Any]) -> dict[str, Any]:
    """Without what is not known: the formats leave such keys out."""
    return {k: v for k, v in values.items() if v is not None}
