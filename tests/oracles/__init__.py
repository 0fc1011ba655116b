"""Counters of what raw logs hold, a module a format, that share nothing with the readers: plain `json`, a few lines
each, written from what the agents' logs look like. `tests/test_oracles.py` holds the tables against them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Count:
    """What one file says; None where its agent does not log such a thing. Tokens as the tables have them: `input` was
    neither read from a cache nor written to one."""

    prompts: int | None = None
    api_calls: int | None = None
    tool_calls: int | None = None
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cost: float | None = None
    totals: dict[str, float] = field(default_factory=dict)
    """Of these, what the file itself sums up."""
    times: list[str] = field(default_factory=list)
    """When the prompts, answers and results were logged, as ISO 8601."""
    failed: set[str] = field(default_factory=set)
    """Ids of the calls that the log flags as failed, by its own flag."""


def lines(data: bytes) -> Iterator[dict[str, Any]]:
    """Each line's object; two that were written into one line are two, and a torn one is none."""
    decoder = json.JSONDecoder()
    for raw in data.decode("utf-8", "replace").split("\n"):
        text = raw.strip()
        while text.startswith("{"):
            try:
                value, end = decoder.raw_decode(text)
            except ValueError:
                break
            yield value
            text = text[end:].strip()


def blocks(content: Any) -> list[dict[str, Any]]:
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
