"""Codex's printed events: an item that is work is a call, told once or twice, and so is each state of a plan; each turn
ends with its sums."""

from __future__ import annotations

from tests.oracles import Count, lines

_CALLS = ("command_execution", "file_change", "mcp_tool_call", "web_search", "todo_list", "collab_tool_call")


def count(data: bytes) -> Count:
    calls, used = set(), Count(input=0, output=0, cache_read=0)
    for n, event in enumerate(lines(data)):
        item, usage = (value if isinstance(value := event.get(name), dict) else {} for name in ("item", "usage"))
        if item.get("type") in _CALLS:
            calls.add((item.get("id") or n, str(item.get("items"))))
        cached = usage.get("cached_input_tokens") or 0
        used.input = (used.input or 0) + (usage.get("input_tokens") or 0) - cached
        used.output = (used.output or 0) + (usage.get("output_tokens") or 0)
        used.cache_read = (used.cache_read or 0) + cached
    used.tool_calls = len(calls)
    return used
