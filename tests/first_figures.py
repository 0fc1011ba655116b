"""A report's first figures, recomputed from raw files: `python -m tests.first_figures AGENT FILE [AGENT FILE ...]`.

No reader has a part in it: the counters of `tests/oracles.py`, and list prices as the maker publishes them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.oracles import COUNTERS, blocks, lines

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
    input: int
    cache_read: int
    cache_write: int
    output: int
    usd: float
    work_s: float | None
    """As the agent's records tell it; None where this counter can't say."""


def row(agent: str, path: Path) -> Row:
    data = path.read_bytes()
    count = COUNTERS[agent](data)
    usd = claude_usd(data) if agent == "claude_code" else count.cost or 0.0
    prompts = claude_prompts(data) if agent == "claude_code" else count.prompts or 0
    return Row(
        name=agent,
        prompts=prompts,
        calls=count.tool_calls or 0,
        failed=len(count.failed),
        input=count.input or 0,
        cache_read=count.cache_read or 0,
        cache_write=count.cache_write or 0,
        output=count.output or 0,
        usd=usd,
        work_s=work_s(_TIMED[agent](data)) if agent in _TIMED else None,
    )


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


LONGEST_S = {"Edit": 10, "Write": 10, "TodoWrite": 10, "Read": 30, "Grep": 30, "Glob": 30, "Bash": 600,
             "edit": 10, "write": 10, "read": 30, "bash": 600}  # fmt: skip
"""How long a call of a tool can take by itself; any other 300 s, and a model call 600 s (docs/design/signals.md)."""
Timed = tuple[float, str, float, list[str]]
"""When, `prompt`, `agent` or `result`; the longest it can have taken; the ids of the calls."""


def claude_times(data: bytes) -> Iterator[Timed]:
    names: dict[str, str] = {}
    began: dict[str, float] = {}
    for r in lines(data):
        if r.get("type") == "progress" and r["data"]["type"] == "bash_progress":
            began.setdefault(r["parentToolUseID"], _seconds(r["timestamp"]) - r["data"]["elapsedTimeSeconds"])
        if r.get("type") not in ("user", "assistant") or r.get("isSidechain"):
            continue
        at, content = _seconds(r["timestamp"]), blocks(r["message"].get("content"))
        uses = {b["id"]: b["name"] for b in content if b.get("type") == "tool_use"}
        names |= uses
        results = [b["tool_use_id"] for b in content if b.get("type") == "tool_result"]
        if r["type"] == "assistant":
            yield at, "agent", 600, list(uses)
        elif results:
            for call in results:
                limit = LONGEST_S.get(names.get(call, ""), 300)
                yield at, "result", at - began[call] if call in began else limit, [call]
        elif not r.get("isMeta"):
            yield at, "prompt", 0, []


def pi_times(data: bytes) -> Iterator[Timed]:
    for r in lines(data):
        if r.get("type") == "message":
            at, message = _seconds(r["timestamp"]), r["message"]
            if message["role"] == "assistant":
                yield at, "agent", 600, [b["id"] for b in blocks(message["content"]) if b.get("type") == "toolCall"]
            elif message["role"] == "toolResult":
                yield at, "result", LONGEST_S.get(message["toolName"], 300), [message["toolCallId"]]
            else:
                yield at, "prompt", 0, []


_TIMED = {"claude_code": claude_times, "pi": pi_times}


def work_s(records: Iterable[Timed]) -> float:
    """From each prompt to the last record before the next, without what no call of its kind can have taken."""
    spans: list[tuple[float, float]] = []
    windows: list[tuple[float, float]] = []
    called: dict[str, float] = {}
    before: float | None = None
    for at, kind, longest, calls in records:
        if kind == "prompt":
            windows.append((at, at))
        else:
            began = called.get(calls[0]) if kind == "result" else before
            if began is not None:
                spans.append((max(began, at - longest), at))
            if kind == "agent":
                called |= dict.fromkeys(calls, at)
            if windows:
                windows[-1] = (windows[-1][0], at)
        before = at if before is None else max(before, at)
    total = 0.0
    for start, end in windows:
        reached = start
        for begin, until in sorted((max(a, start), min(b, end)) for a, b in spans):
            total += max(0.0, until - max(begin, reached))
            reached = max(reached, until)
    return total


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def table(rows: list[Row]) -> str:
    names = ("prompts", "calls", "failed", "input", "cache_read", "cache_write", "output", "usd", "work_s")
    shown = [" ".join([f"{'':<12}", *(f"{name:>11}" for name in names)])]
    for r in rows:
        cells = (getattr(r, name) for name in names)
        shown.append(" ".join([f"{r.name:<12}", *(f"{'-' if c is None else f'{c:,.6g}':>11}" for c in cells)]))
    return "\n".join(shown)


if __name__ == "__main__":
    print(table([row(*_named) for _named in zip(sys.argv[1::2], map(Path, sys.argv[2::2]), strict=True)]))
