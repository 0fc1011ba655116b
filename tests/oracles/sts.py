"""STS: a message's tool calls, and those of a person; no tokens."""

from __future__ import annotations

from tests.oracles import Count, lines


def count(data: bytes) -> Count:
    messages = [row["message"] for row in lines(data) if isinstance(row.get("message"), dict)]
    return Count(tool_calls=sum("function" in call for m in messages for call in m.get("toolCalls") or ()))
