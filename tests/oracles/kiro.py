"""Kiro: a history of pairs, what was asked and what was answered; no tokens."""

from __future__ import annotations

import json

from tests.oracles import Count


def count(data: bytes) -> Count:
    history = json.loads(data)["history"]
    said = [(pair.get("user") or {}).get("content") or {} for pair in history]
    answers = [pair.get("assistant") or {} for pair in history]
    return Count(
        prompts=sum("Prompt" in s for s in said),
        tool_calls=sum(len((a.get("ToolUse") or {}).get("tool_uses") or ()) for a in answers),
    )
