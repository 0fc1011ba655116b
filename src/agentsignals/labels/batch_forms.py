"""Batch files as providers have them: what a request looks like in them, and what a result says.

`openai`: a line a request (OpenAI's Batch API, Azure's, Groq's, `vllm run-batch`). `anthropic`: the document that
Message Batches take. Results are lines in both, in any order, told apart by their shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from agentsignals.labels.labellers.openai import ENDPOINT, Completion
from agentsignals.labels.question import Question

_BOUNDS = frozenset(("minimum", "maximum"))
"""What Anthropic's schemas do not know; what is out of bounds is found when the answer is read."""
_STOPS = {"max_tokens": "length", "model_context_window_exceeded": "length"}


class Form(NamedTuple):
    """How a provider wants its requests."""

    request: Callable[[Question, dict[str, Any]], dict[str, Any]]
    """Of a question and the body that a chat server would get."""
    around: tuple[bytes, bytes, bytes]
    """What stands before the first request, between two, and after the last."""
    most_requests: int
    most_bytes: int


class Result(Struct, frozen=True, kw_only=True):
    """What came of a request."""

    key: str
    text: str = ""
    finish_reason: str | None = None
    refusal: str | None = None
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    failure: str = ""
    """A word to count by, where no answer came: `expired`, `canceled`, `errored`."""
    detail: str = ""


class _Problem(Struct):
    code: str | int | None = None
    type: str | None = None
    message: str | None = None
    error: _Problem | None = None


class _Response(Struct):
    status_code: int | None = None
    body: Raw = Raw()


class _Block(Struct):
    type: str
    text: str = ""


class _Used(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Message(Struct):
    content: list[_Block]
    model: str | None = None
    stop_reason: str | None = None
    usage: _Used | None = None


class _Result(Struct):
    type: str
    message: _Message | None = None
    error: _Problem | None = None


class _Line(Struct):
    custom_id: str
    response: _Response | None = None
    error: _Problem | None = None
    result: _Result | None = None


class _WithError(Struct):
    error: _Problem | None = None


_line = msgspec.json.Decoder(_Line).decode
_completion = msgspec.json.Decoder(Completion).decode
_with_error = msgspec.json.Decoder(_WithError).decode


def result(line: bytes) -> Result | None:
    """What a line of a file of results says; None where it is none."""
    try:
        parsed = _line(line)
        if parsed.result is not None:
            return _of_anthropic(parsed.custom_id, parsed.result)
        return _of_openai(parsed)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _of_openai(line: _Line) -> Result:
    answered = line.response
    if line.error is None and answered is not None and (answered.status_code or 200) < 400:
        completion = _completion(answered.body)
        if completion.choices:
            choice, usage = completion.choices[0], completion.usage
            return Result(
                key=line.custom_id,
                text=choice.message.content or "",
                finish_reason=choice.finish_reason,
                refusal=choice.message.refusal,
                model=completion.by,
                input_tokens=(usage and usage.prompt_tokens) or 0,
                output_tokens=(usage and usage.completion_tokens) or 0,
            )
        return Result(key=line.custom_id, failure="errored", detail="a completion without a choice")
    problem = line.error or (
        _with_error(answered.body).error if answered is not None and bytes(answered.body) else None
    )
    expired = problem is not None and problem.code == "batch_expired"
    status = f"HTTP {answered.status_code}: " if answered is not None else ""
    words = (problem and (problem.message or problem.code)) or "no answer"
    return Result(key=line.custom_id, failure="expired" if expired else "errored", detail=f"{status}{words}")


def _of_anthropic(key: str, outcome: _Result) -> Result:
    message = outcome.message
    if outcome.type != "succeeded" or message is None:
        problem = outcome.error.error or outcome.error if outcome.error is not None else None
        detail = f"{problem.type}: {problem.message}" if problem is not None else outcome.type
        return Result(
            key=key, failure=outcome.type if outcome.type in ("expired", "canceled") else "errored", detail=detail
        )
    used = message.usage or _Used()
    text = "".join(block.text for block in message.content if block.type == "text")
    return Result(
        key=key,
        text=text,
        finish_reason=_STOPS.get(message.stop_reason or "", message.stop_reason),
        refusal=(text or "the model refused") if message.stop_reason == "refusal" else None,
        model=message.model,
        input_tokens=used.input_tokens + (used.cache_creation_input_tokens or 0) + (used.cache_read_input_tokens or 0),
        output_tokens=used.output_tokens,
    )


def _openai_request(question: Question, body: dict[str, Any]) -> dict[str, Any]:
    return {"custom_id": question.key, "method": "POST", "url": f"/v1{ENDPOINT}", "body": body}


def _anthropic_request(question: Question, body: dict[str, Any]) -> dict[str, Any]:
    """Without a temperature, which its newer models refuse."""
    schema = {"type": "json_schema", "schema": _without_bounds(question.schema)}
    params = {
        "model": body["model"],
        "max_tokens": body.get("max_tokens") or body["max_completion_tokens"],
        "system": question.instructions,
        "messages": [{"role": "user", "content": question.shown}],
        "output_config": {"format": schema},
    }
    return {"custom_id": question.key, "params": params}


def _without_bounds(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_bounds(held) for name, held in value.items() if name not in _BOUNDS}
    return [_without_bounds(held) for held in value] if isinstance(value, list) else value


FORMS = {
    "openai": Form(_openai_request, (b"", b"", b""), 50_000, 200_000_000),
    "anthropic": Form(_anthropic_request, (b'{"requests": [\n', b",", b"]}\n"), 100_000, 256_000_000),
}
"""With what a file may hold at most: OpenAI's and Anthropic's pages of November 2026."""
