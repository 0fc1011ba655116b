"""Sessions in the Hub's session trace simple format (STS; design/formats.md#small-formats)."""

from __future__ import annotations

import json
from typing import Any

from agentsignals.export import Writer
from agentsignals.export.moves import Call, Move, moves, without_nones
from agentsignals.model import Session, Step, carried
from agentsignals.model.carried import OfCall, OfSession, OfTurn, OfUsage


def text(session: Session) -> str:
    """A header line and a line a message."""
    header = {
        "type": "session",
        "harness": session.agent or "unknown",
        "id": session.session_id,
        "name": session.title,
        "cwd": session.cwd,
        "agentsignals": carried.of(session, OfSession),
    }
    lines = [without_nones(header)]
    for move in moves(session):
        lines += [{"type": "message", "message": m} for m in _messages(move)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _messages(move: Move) -> list[dict[str, Any]]:
    at = None if move.at is None else move.at // 1000
    if move.role == "user":
        facts = carried.of(move.turn, OfTurn) if move.turn is not None else None
        return [without_nones({"role": "user", "content": move.text, "timestamp": at, "agentsignals": facts})]
    message = {
        "role": "assistant",
        "content": move.text,
        "reasoningContent": move.thought,
        "toolCalls": [_call(c) for c in move.calls] or None,
        "timestamp": at,
        **(_of_model(move.step) if move.step is not None else {}),
    }
    return [
        without_nones(message),
        *(_result(c.id, c.result.text or "", c.result.timestamp) for c in move.calls if c.result),
    ]


def _call(exchange: Call) -> dict[str, Any]:
    function = {"name": exchange.call.name, "arguments": exchange.call.arguments or "{}"}
    return without_nones({"id": exchange.id, "function": function, "agentsignals": carried.of(exchange.call, OfCall)})


def _of_model(step: Step) -> dict[str, Any]:
    used = {"prompt_n": step.input_tokens, "predicted_n": step.output_tokens, "cache_n": step.cache_read_tokens}
    return {"model": step.model, "id": step.message_id, "timings": without_nones(used) or None,
            "agentsignals": carried.of(step, OfUsage)}  # fmt: skip


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
        "events that are no words, calls or results (interruptions, hooks, notices, compaction)",
        "places in the order of events (*.seq, tool_calls.result_seq, *.step)",
        "parts of a millisecond of the times of prompts",
        "which file and format it was read from, and its agent's version (sessions.format, sessions.artifact_id, "
        "sessions.agent_version)",
        "which model call counted the input of another (steps.input_in_step)",
        "subagents' conversations, and branches that the person left: all rows of other threads",
        "that no recorded call of the model said something: it becomes one (tool_calls.step)",
        "edits, beyond what the arguments of the calls say",
        "ids that several calls share: later ones are numbered (tool_calls.call_id)",
        "how long a call ran, and was let run (tool_calls.ran_s, tool_calls.limit_s)",
        "what the agent's own profile says of its tools (tool_calls.class, tool_calls.shell_kind, tool_calls.purpose, "
        "tool_calls.path, tool_calls.command, tool_calls.argument_roles)",
        "the part of a long tool result that the store does not keep (tool_calls.result_tokens)",
        "that output and cost are lower bounds, where they were logged in mid-stream",
        "labels, checkpoints, and what is known of an eval run",
    ),
)
