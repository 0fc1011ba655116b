"""Sessions in the Hub's session trace simple format (STS; design/formats.md#small-formats)."""

from __future__ import annotations

import json
from typing import Any

from agentsignals.export import Writer
from agentsignals.export.moves import Move, moves, without_nones
from agentsignals.model import Session


def text(session: Session) -> str:
    """A header line and a line a message."""
    header = {"type": "session", "harness": session.agent or "unknown", "id": session.session_id, "name": session.title}
    lines = [without_nones(header)]
    for move in moves(session):
        lines += [{"type": "message", "message": m} for m in _messages(move)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _messages(move: Move) -> list[dict[str, Any]]:
    at = None if move.at is None else move.at // 1000
    if move.role == "user":
        return [without_nones({"role": "user", "content": move.text, "timestamp": at})]
    calls = [{"id": c.id, "function": {"name": c.call.name, "arguments": c.call.arguments or "{}"}} for c in move.calls]
    message = {
        "role": "assistant",
        "content": move.text,
        "reasoningContent": move.thought,
        "toolCalls": calls or None,
        "timestamp": at,
        "model": move.step.model if move.step is not None else None,
    }
    return [
        without_nones(message),
        *(_result(c.id, c.result.text or "", c.result.timestamp) for c in move.calls if c.result),
    ]


def _result(call_id: str, content: str, at: int | None) -> dict[str, Any]:
    at_ms = None if at is None else at // 1000
    return without_nones({"role": "tool", "toolCallId": call_id, "content": content, "timestamp": at_ms})


WRITER = Writer(
    name="sts",
    describes="one STS conversation a session, as JSON Lines (Hugging Face)",
    suffix=".jsonl",
    text=text,
    reads_back="sts",
    loses=(
        "tokens, costs, ids of messages and stop reasons",
        "events that are neither the person's nor the agent's words, calls and results (hooks, notices, compaction)",
        "the kind of a turn, the working folder and the branch",
        "whether a tool call failed, and its exit code",
        "subagents' own conversations",
        "edits, beyond what the arguments of the calls say",
        "times below a millisecond",
        "the part of a long tool result that the store does not keep",
        "labels, checkpoints, and what is known of an eval run",
    ),
)
