"""Sessions in the Hub's session trace simple format (STS; design/formats.md#small-formats)."""

from __future__ import annotations

import json
from typing import Any

from agentsignals.export import Writer
from agentsignals.export.messages import (
    LOSES,
    NO_BOUNDS,
    Message,
    carried_call,
    carried_session_places,
    conversation,
    without_nones,
)
from agentsignals.model import MAIN, Session, round_trip
from agentsignals.model.round_trip import OfSession, OfStep, OfTurn


def text(session: Session) -> str:
    """Return a header line and a line a message."""
    header = {
        "type": "session",
        "harness": session.agent or "unknown",
        "id": session.session_id,
        "name": session.title,
        "cwd": session.cwd,
        "agentsignals": round_trip.carried_facts(session, OfSession),
    }
    whole = conversation(session)
    messages = [message for move in whole for message in _messages(move)]
    for last in messages[-1:]:  # where it costs the head of the file nothing
        last["agentsignals"] = last.get("agentsignals", {}) | carried_session_places(session, whole, [MAIN])
    lines = [without_nones(header), *({"type": "message", "message": m} for m in messages)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _messages(move: Message) -> list[dict[str, Any]]:
    """Return a message as STS writes it: itself, then a message for each tool result."""
    at = None if move.at is None else move.at // 1000
    if move.role != "agent":
        facts = (
            round_trip.carried_facts(move.turn, OfTurn)
            if move.turn is not None
            else round_trip.carried_event(move.events[0])
        )
        return [without_nones({"role": move.role, "content": move.text, "timestamp": at, "agentsignals": facts})]
    step = move.step
    calls = [
        {
            "id": c.id,
            "function": {"name": c.call.name, "arguments": c.call.arguments or "{}"},
            "agentsignals": carried_call(c, as_logged=True),
        }
        for c in move.calls
    ]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": move.text,
        "reasoningContent": move.thought,
        "toolCalls": calls or None,
        "timestamp": at,
    }
    if step is not None:
        used = {"prompt_n": step.input_tokens, "predicted_n": step.output_tokens, "cache_n": step.cache_read_tokens}
        message |= {"model": step.model, "id": step.message_id, "timings": without_nones(used) or None}
        message["agentsignals"] = round_trip.carried_facts(step, OfStep)
    results = [
        {
            "role": "tool",
            "toolCallId": c.id,
            "content": c.result.text or "",
            "timestamp": None if c.result.timestamp is None else c.result.timestamp // 1000,
        }
        for c in move.calls
        if c.result
    ]
    return [without_nones(message), *map(without_nones, results)]


WRITER = Writer(
    name="sts",
    describes="one STS conversation a session, as JSON Lines (Hugging Face)",
    suffix=".jsonl",
    text=text,
    reads_back="sts",
    loses=(
        *LOSES,
        "subagents' conversations, and branches that the person left: all rows of other threads",
        NO_BOUNDS,
        "what harness and verifier know of an eval run: only files that they write themselves say it (attempts)",
    ),
)
