"""ATIF: an agent's step with metrics is a model call; the file sums them up itself. Its cached tokens are prompt's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.oracles import Count


def _steps(trajectory: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (s for s in trajectory.get("steps") or () if isinstance(s, dict))
    for inner in trajectory.get("subagent_trajectories") or ():
        yield from _steps(inner)


def count(data: bytes) -> Count:
    document = json.loads(data)
    metrics = [s.get("metrics") or {} for s in _steps(document) if s.get("source") == "agent"]
    cached = sum(m.get("cached_tokens") or 0 for m in metrics)
    written = sum((m.get("extra") or {}).get("cache_creation_input_tokens") or 0 for m in metrics)
    done = Count(
        input=sum(m.get("prompt_tokens") or 0 for m in metrics) - cached - written,
        output=sum(m.get("completion_tokens") or 0 for m in metrics),
        cache_read=cached,
        cache_write=written,
        cost=sum(m.get("cost_usd") or 0 for m in metrics),
    )
    totals = document.get("final_metrics") or {}
    if totals and not document.get("subagent_trajectories"):
        done.totals = {
            "output": totals.get("total_completion_tokens") or 0,
            "cache_read": totals.get("total_cached_tokens") or 0,
            "cost": totals.get("total_cost_usd") or 0,
        }
    return done
