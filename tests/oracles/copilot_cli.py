"""Copilot CLI: what was used stands in `session.shutdown` by model; a resumed session has one for each part."""

from __future__ import annotations

from typing import Any

from tests.oracles import Count, lines


def count(data: bytes) -> Count:
    records = list(lines(data))
    metrics = [
        m.get("usage") or {}
        for r in records
        if r.get("type") == "session.shutdown"
        for m in (r["data"].get("modelMetrics") or {}).values()
    ]
    done = Count(
        prompts=sum(r.get("type") == "user.message" and _is_persons(r["data"]) for r in records),
        tool_calls=len({r["data"].get("toolCallId") for r in records if r.get("type") == "tool.execution_start"}),
        times=[r["timestamp"] for r in records if r.get("type") in ("user.message", "assistant.message")],
        failed={
            r["data"]["toolCallId"]
            for r in records
            if r.get("type") == "tool.execution_complete" and r["data"].get("success") is False
        },
    )
    if metrics:
        cached = sum(u.get("cacheReadTokens") or 0 for u in metrics)
        written = sum(u.get("cacheWriteTokens") or 0 for u in metrics)
        done.output = sum(u.get("outputTokens") or 0 for u in metrics)
        done.cache_read, done.cache_write = cached, written
        done.input = sum(u.get("inputTokens") or 0 for u in metrics) - cached - written
    return done


def _is_persons(message: dict[str, Any]) -> bool:
    """No other source is named, and it is not headed as a program heads the fields of its prompt."""
    return "source" not in message and not str(message.get("content")).startswith("[[ ## ")
