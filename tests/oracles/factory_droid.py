"""Factory Droid: messages of blocks; what it used stands in a file of its own, which is not collected."""

from __future__ import annotations

from tests.oracles import Count, blocks, lines


def count(data: bytes) -> Count:
    messages = [r["message"] for r in lines(data) if r.get("type") == "message" and isinstance(r.get("message"), dict)]
    parts = [b for m in messages for b in blocks(m.get("content"))]
    return Count(
        tool_calls=sum(b.get("type") == "tool_use" for b in parts),
        failed={b["tool_use_id"] for b in parts if b.get("type") == "tool_result" and b.get("is_error") is True},
    )
