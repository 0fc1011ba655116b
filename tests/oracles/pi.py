"""Pi: a tree of records; each answer has its usage and what it cost."""

from __future__ import annotations

from tests.oracles import Count, blocks, lines


def count(data: bytes) -> Count:
    entries = [r for r in lines(data) if r.get("type") == "message" and isinstance(r.get("message"), dict)]
    records = [entry["message"] for entry in entries]
    answers = [m for m in records if m.get("role") == "assistant"]
    usage = [m.get("usage") or {} for m in answers]
    results = [m for m in records if m.get("role") == "toolResult"]

    def total(name: str) -> int:
        return sum(u.get(name) or 0 for u in usage)

    return Count(
        prompts=sum(m.get("role") == "user" for m in records),
        api_calls=len(answers),
        tool_calls=sum(b.get("type") == "toolCall" for m in answers for b in blocks(m.get("content"))),
        input=total("input"),
        output=total("output"),
        cache_read=total("cacheRead"),
        cache_write=total("cacheWrite"),
        cost=sum((u.get("cost") or {}).get("total") or 0 for u in usage),
        times=[entry["timestamp"] for entry in entries if entry.get("timestamp")],
        failed={m["toolCallId"] for m in results if m.get("isError") is True},
    )
