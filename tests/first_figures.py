"""A report's first figures, recomputed from raw files: `python -m tests.first_figures AGENT FILE [AGENT FILE ...]`.

No reader has a part in it: the counters of `tests/oracles`, and list prices as the maker publishes them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.oracles import Count, blocks, lines

USD_A_MILLION = {
    "claude-opus-4-6": (5.0, 6.25, 10.0, 0.5, 25.0),
    "claude-opus-4-5": (5.0, 6.25, 10.0, 0.5, 25.0),
    "claude-sonnet-4-6": (3.0, 3.75, 6.0, 0.3, 15.0),
    "claude-haiku-4-5": (1.0, 1.25, 2.0, 0.1, 5.0),
}
"""Input, a write kept for five minutes, one kept for an hour, read from the cache, output: Anthropic's list of 2026."""


@dataclass
class Row:
    """One session."""

    name: str
    prompts: int
    calls: int
    failed: int
    output: int
    usd: float


def row(agent: str, path: Path) -> Row:
    data = path.read_bytes()
    count: Count = import_module(f"tests.oracles.{agent}").count(data)
    usd = claude_usd(data) if agent == "claude_code" else count.cost or 0.0
    prompts = claude_prompts(data) if agent == "claude_code" else count.prompts or 0
    return Row(agent, prompts, count.tool_calls or 0, len(count.failed), count.output or 0, usd)


def claude_usd(data: bytes) -> float:
    """Of each answer the line with most output, at the price of its model."""
    answers: dict[str, dict[str, Any]] = {}
    for record in lines(data):
        message = record.get("message")
        if record.get("type") == "assistant" and isinstance(message, dict) and message.get("model") in USD_A_MILLION:
            kept = answers.setdefault(message["id"], message)
            if message["usage"]["output_tokens"] > kept["usage"]["output_tokens"]:
                answers[message["id"]] = message
    return sum(_usd(m["usage"], USD_A_MILLION[m["model"]]) for m in answers.values())


def _usd(usage: dict[str, Any], price: tuple[float, ...]) -> float:
    hour = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    amounts = (usage["input_tokens"], written - hour, hour, usage.get("cache_read_input_tokens") or 0)
    return sum(n * p for n, p in zip((*amounts, usage["output_tokens"]), price, strict=True)) / 1e6


def claude_prompts(data: bytes) -> int:
    """Records of the user that a person wrote: no result, no notice, nothing in a tag."""
    said = [r for r in lines(data) if r.get("type") == "user" and not r.get("isMeta") and not r.get("isSidechain")]
    texts = [_text(r["message"].get("content")) for r in said if isinstance(r.get("message"), dict)]
    return sum(bool(t) and not t.startswith(("<", "[Request interrupted", "Caveat:")) for t in texts)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(b["text"] for b in blocks(content) if b.get("type") == "text")


def table(rows: list[Row]) -> str:
    shown = [f"{'':<14}{'prompts':>8}{'calls':>7}{'failed':>8}{'output':>10}{'USD':>12}"]
    whole = Row(
        "together", *(sum(getattr(r, n) for r in rows) for n in ("prompts", "calls", "failed", "output", "usd"))
    )
    shown += [
        f"{r.name:<14}{r.prompts:>8}{r.calls:>7}{r.failed:>8}{r.output:>10,}{r.usd:>12.6f}" for r in (*rows, whole)
    ]
    return "\n".join(shown)


if __name__ == "__main__":
    print(table([row(*_named) for _named in zip(sys.argv[1::2], map(Path, sys.argv[2::2]), strict=True)]))
