"""OpenCode exports: a message has its tokens and cost; younger ones log reasoning beside the output."""

from __future__ import annotations

import json
from typing import Any

from tests.oracles import Count


def count(data: bytes) -> Count:
    document = json.loads(data)
    messages = document["messages"]
    if any("info" not in m for m in messages):  # version 2, which tests/formats/test_opencode.py counts by hand
        return Count(prompts=None)
    answers = [m for m in messages if m["info"].get("role") == "assistant"]
    tokens = [m["info"].get("tokens") or {} for m in answers]
    tools = [p for m in answers for p in m.get("parts") or () if p.get("type") == "tool"]
    cache = [t.get("cache") or {} for t in tokens]
    return Count(
        prompts=0  # a subagent's are its parent's words
        if document["info"].get("parentID")
        else sum(
            m["info"].get("role") == "user"
            and any(p.get("type") == "text" and not p.get("synthetic") for p in m.get("parts") or ())
            for m in messages
        ),
        tool_calls=len(tools),
        input=sum(t.get("input") or 0 for t in tokens),
        output=sum((t.get("output") or 0) + _beside(t) for t in tokens),
        cache_read=sum(c.get("read") or 0 for c in cache),
        cache_write=sum(c.get("write") or 0 for c in cache),
        cost=sum(m["info"].get("cost") or 0 for m in answers),
        failed={p["callID"] for p in tools if (p.get("state") or {}).get("status") == "error"},
    )


def _beside(tokens: dict[str, Any]) -> int:
    """Reasoning tokens, where the total says that the output does not hold them."""
    cache = tokens.get("cache") or {}
    whole = (
        (tokens.get("input") or 0) + (tokens.get("output") or 0) + (cache.get("read") or 0) + (cache.get("write") or 0)
    )
    reasoning = tokens.get("reasoning") or 0
    return reasoning if tokens.get("total") == whole + reasoning else 0
