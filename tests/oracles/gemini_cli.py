"""Gemini CLI: one document, or a line a change of it; `tokens` stand at each answer, thoughts beside its output."""

from __future__ import annotations

import json
from typing import Any

from tests.oracles import Count, blocks, lines

NOT_SAID = ("<session_context>", "<state_snapshot>")


def count(data: bytes) -> Count:
    messages: dict[str, dict[str, Any]] = {}
    try:
        records = json.loads(data)["messages"]
    except (ValueError, KeyError):
        records = [m for line in lines(data) for m in (line.get("$set", {}).get("messages") or [line])]
    for record in records:
        if record.get("type") in ("user", "gemini"):
            name = record.get("id") or str(len(messages))
            messages[name] = record | {"tokens": record.get("tokens") or messages.get(name, {}).get("tokens")}
    answers = [m for m in messages.values() if m["type"] == "gemini"]
    calls = [c for m in answers for c in m.get("toolCalls") or ()]
    tokens = [t for m in answers if (t := m["tokens"])]
    return Count(
        prompts=sum(m["type"] == "user" and _is_said(m.get("content")) for m in messages.values()),
        api_calls=len(tokens),
        tool_calls=len(calls),
        input=sum(t.get("input", 0) + t.get("tool", 0) - t.get("cached", 0) for t in tokens),
        output=sum(t.get("output", 0) + t.get("thoughts", 0) for t in tokens),
        cache_read=sum(t.get("cached", 0) for t in tokens),
        times=[m["timestamp"] for m in messages.values() if m.get("timestamp")],
        failed={c["id"] for c in calls if c.get("status") == "error"},
    )


def _is_said(content: Any) -> bool:
    parts = [{"text": content}] if isinstance(content, str) else blocks(content)
    texts = [p["text"] for p in parts if p.get("text")]
    return bool(texts) and not texts[0].startswith(NOT_SAID)
