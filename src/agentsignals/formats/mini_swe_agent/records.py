"""What a mini-SWE-agent trajectory holds, of version 1 (text only) and 2 (function calls, usage, times)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats.figures import amount, count
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import Step


class Extra(Struct, gc=False, kw_only=True):
    """What the harness notes on a message; version 2 only."""

    actions: object = None
    cost: object = None
    timestamp: object = None
    returncode: object = None
    raw_output: object = None
    exception_info: object = None
    response: Raw = Raw()
    exit_status: object = None
    submission: object = None
    interrupt_type: object = None


class Message(Struct, kw_only=True):
    """One message. A model of the Responses API leaves its answer as it came: `object` and `output`, without a role."""

    role: str | None = None
    content: object = None
    extra: Extra | None = None
    tool_calls: object = None
    tool_call_id: object = None
    call_id: object = None
    output: object = None
    shape: object = field(default=None, name="object")
    type: object = None
    reasoning_content: object = None

    @property
    def speaker(self) -> str:
        """Who speaks: `system`, `user`, `assistant`, `tool`, `exit`."""
        if self.role:
            return self.role
        if self.type == "function_call_output":
            return "tool"
        return "assistant" if self.shape == "response" else "untold"

    @property
    def text(self) -> str:
        """Its words."""
        if isinstance(self.content, str):
            return self.content
        texts: list[str] = []
        _texts(self.content if self.content is not None else self.output, texts, 0)
        return "\n".join(texts)


class ModelStats(Struct, gc=False):
    instance_cost: object = None
    api_calls: object = None


class Info(Struct, kw_only=True):
    """How the attempt was configured and how it ended."""

    exit_status: object = None
    submission: object = None
    result: object = None
    mini_version: object = None
    config: object = None
    model_stats: ModelStats | None = None


class Document(Struct):
    messages: list[Raw]
    info: Info | None = None
    instance_id: object = None


_message = msgspec.json.Decoder(Message).decode
_document = msgspec.json.Decoder(Document).decode
_list = msgspec.json.Decoder(list[Raw]).decode
_any = msgspec.json.Decoder().decode
_DEEPEST = 4


def decode(data: memoryview | bytes) -> Document:
    """A trajectory in either shape."""
    if bytes(data[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
        return Document(_list(data))
    return _document(data)


def decode_message(data: memoryview | bytes) -> Message:
    return _message(data)


def count_usage(step: Step, extra: Extra | None) -> None:
    """Tokens and cost of a model call. The prompt's tokens hold the cached ones, and those written to the cache."""
    if extra is None:
        return
    cost = amount(extra.cost)
    if cost:  # 0 is what a model without a price costs
        step.cost_usd, step.cost_source = cost, "recorded"
    try:
        response = _any(extra.response) if extra.response else None
    except UNREADABLE:
        return
    usage = response.get("usage") if isinstance(response, dict) else None
    if not isinstance(usage, dict):
        return
    cached = _first(_inner(usage, "prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    written = _first(usage, "cache_creation_input_tokens")
    prompt = _first(usage, "prompt_tokens", "input_tokens")
    if prompt is not None:
        step.input_tokens = max(prompt - (cached or 0) - (written or 0), 0)
    step.cache_read_tokens, step.cache_write_tokens = cached, written
    step.output_tokens = _first(usage, "completion_tokens", "output_tokens")
    step.reasoning_tokens = _first(
        _inner(usage, "completion_tokens_details", "output_tokens_details"), "reasoning_tokens"
    )


def _inner(of: dict[str, Any], *names: str) -> dict[str, Any]:
    return next((of[n] for n in names if isinstance(of.get(n), dict)), {})


def _first(of: dict[str, Any], *names: str) -> int | None:
    return next((value for n in names if (value := count(of.get(n))) is not None), None)


def _texts(value: object, texts: list[str], depth: int) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, list) and depth < _DEEPEST:
        for part in value:
            _texts(part, texts, depth + 1)
    elif isinstance(value, dict) and depth < _DEEPEST:
        _texts(value.get("text", value.get("content")), texts, depth + 1)
