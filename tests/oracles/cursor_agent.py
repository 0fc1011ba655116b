"""Cursor's transcripts: roles and blocks; neither ids, times nor tokens."""

from __future__ import annotations

from tests.oracles import Count, blocks, lines


def count(data: bytes) -> Count:
    records = [r for r in lines(data) if isinstance(r.get("message"), dict)]
    parts = [(r.get("role"), b) for r in records for b in blocks(r["message"].get("content"))]
    return Count(
        prompts=sum(role == "user" and b.get("type") == "text" for role, b in parts),
        tool_calls=sum(role == "assistant" and b.get("type") == "tool_use" for role, b in parts),
    )
