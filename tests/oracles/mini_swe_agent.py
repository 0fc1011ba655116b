"""mini-SWE-agent: an assistant's message is a model call; `info.model_stats` say what they cost together."""

from __future__ import annotations

import json

from tests.oracles import Count


def count(data: bytes) -> Count:
    document = json.loads(data)
    messages = document if isinstance(document, list) else document.get("messages") or []
    stats = ({} if isinstance(document, list) else document.get("info") or {}).get("model_stats") or {}
    return Count(
        api_calls=sum(m.get("role") == "assistant" for m in messages),
        totals={"run cost": stats["instance_cost"]} if "instance_cost" in stats else {},
    )
