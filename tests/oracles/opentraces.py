"""OpenTraces: of several writings of a trace the last holds all; an agent's step has its tokens and calls."""

from __future__ import annotations

from tests.oracles import Count, lines

_KINDS = {"input": "input_tokens", "output": "output_tokens", "cache_read": "cache_read_tokens",
          "cache_write": "cache_write_tokens"}  # fmt: skip


def count(data: bytes) -> Count:
    latest = {row.get("trace_id"): row for row in lines(data) if isinstance(row.get("steps"), list)}
    steps = [s for row in latest.values() for s in row["steps"] if isinstance(s, dict) and s.get("role") == "agent"]
    used = [s.get("token_usage") or {} for s in steps]
    tokens = {kind: sum(u.get(name) or 0 for u in used) for kind, name in _KINDS.items()}
    return Count(tool_calls=sum(len(s.get("tool_calls") or ()) for s in steps), **tokens)
