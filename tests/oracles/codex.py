"""Codex rollouts: each model call is followed by a `token_count`, which may be said again; its totals run on."""

from __future__ import annotations

from tests.oracles import Count, lines

CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call")


def count(data: bytes) -> Count:
    done = Count(tool_calls=0, prompts=0, input=0, output=0, cache_read=0)
    before = None
    for record in lines(data):
        payload = record.get("payload") or {}
        kind = payload.get("type")
        if record.get("type") == "response_item" and kind in CALLS:
            done.tool_calls += 1
            done.times.append(record["timestamp"])
        if record.get("type") == "event_msg" and kind == "user_message":
            done.prompts += 1
        info = payload.get("info") if kind == "token_count" else None
        if not info:
            continue
        total = info["total_token_usage"]
        if total == before:
            continue
        new = {k: n - ((before or {}).get(k) or 0) for k, n in total.items()}
        if min(new.values()) < 0:  # another process went on with the session: it counts from nothing
            new = total
        before = total
        done.input += new["input_tokens"] - (new.get("cached_input_tokens") or 0)
        done.cache_read += new.get("cached_input_tokens") or 0
        done.output += new["output_tokens"]
    if before is not None:
        cached = before.get("cached_input_tokens") or 0
        done.totals = {
            "input": before["input_tokens"] - cached,
            "output": before["output_tokens"],
            "cache_read": cached,
        }
    return done
