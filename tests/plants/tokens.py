"""What a session's model calls are billed: a context that grows, cached for five minutes after its last use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

CACHE_LIFETIME = timedelta(minutes=5)
_SYSTEM_TOKENS = 14_000
_DOLLARS_FOR_A_MILLION = {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75}


def tokens(text: str) -> int:
    return len(text) // 4


@dataclass(kw_only=True)
class Call:
    """The tokens of one model call."""

    fresh: int
    cached: int
    output: int

    def logged(self, with_cost: bool) -> dict[str, Any]:
        """As an agent logs it, and one that prices its calls: everything new is written to the cache."""
        counts = {"input": 3, "output": self.output, "cacheRead": self.cached, "cacheWrite": self.fresh}
        costs = {name: n * _DOLLARS_FOR_A_MILLION[name] / 1e6 for name, n in counts.items()}
        made: dict[str, Any] = dict(zip(("input", "output", "cache_read", "cache_write"), counts.values(), strict=True))
        return {**made, "cost": {**costs, "total": sum(costs.values())}} if with_cost else made


class Meter:
    """The context of one session."""

    def __init__(self) -> None:
        self.sent = 0
        self.fresh = _SYSTEM_TOKENS
        self.last: datetime | None = None

    def add(self, text: str) -> None:
        """Something new stands in the context: a prompt, a result."""
        self.fresh += tokens(text)

    def call(self, at: datetime, text: str) -> Call:
        """The model is asked, and answers with this."""
        kept = self.last is not None and at - self.last < CACHE_LIFETIME
        cached = self.sent if kept else 0
        fresh = self.fresh + self.sent - cached
        output = 60 + tokens(text)
        self.sent, self.fresh, self.last = self.sent + self.fresh, output, at
        return Call(fresh=fresh, cached=cached, output=output)
