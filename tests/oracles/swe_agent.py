"""SWE-agent: each step is an action carried out, or the harness's `exit_…`; `info.model_stats` are its own sums."""

from __future__ import annotations

import json

from tests.oracles import Count


def count(data: bytes) -> Count:
    document = json.loads(data)
    attempts = document.get("attempts") or [document]
    steps = [s for one in attempts for s in one.get("trajectory") or one.get("history") or ()]
    actions = [(s.get("action") or "").strip() for s in steps if not s.get("is_demo")]
    stats = (document.get("info") or {}).get("model_stats") or {}
    return Count(
        tool_calls=sum(bool(a) and not a.startswith("exit_") for a in actions),
        totals={}
        if not stats
        else {"run cost": stats.get("instance_cost"), "run output": stats.get("tokens_received")},
    )
