"""Sessions as OpenTelemetry traces by the conventions for generative AI: OTLP JSON, a file a session."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from agentsignals.export import Writer
from agentsignals.export.messages import (
    LOSES,
    NO_BOUNDS,
    Call,
    Message,
    arguments,
    main_messages,
    prompt_tokens,
    subagent_threads,
    without_nones,
)
from agentsignals.model import MAIN, Session

_NO_TIME = 1000
_FAILED = ("error", "rejected", "cancelled")
_REASONS = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_call", "tool_calls": "tool_call",
    "max_tokens": "length", "refusal": "content_filter",
}  # fmt: skip
"""Why an answer ended, in the words of the conventions; others are written as logged, and none is made up."""


def text(session: Session) -> str:
    """Return the trace: a span of an agent for each prompt, and in it those of model calls and of tools."""
    spans = list(_spans(session, MAIN, None))
    agents = [span for span in spans if "parentSpanId" not in span]
    for thread in subagent_threads(session):
        inner = list(_spans(session, thread, agents[0]["spanId"] if agents else None))
        begun = [a for a in agents if inner and int(a["startTimeUnixNano"]) <= int(inner[0]["startTimeUnixNano"])]
        if agents and begun:
            inner[0]["parentSpanId"] = begun[-1]["spanId"]
        elif agents and inner:  # it began before all that stands
            agents[0]["startTimeUnixNano"] = inner[0]["startTimeUnixNano"]
        spans += inner
    _put_in_order(spans)
    resource = {"service.name": session.agent or "unknown", "service.version": session.agent_version}
    scope = {"name": "agentsignals", "version": version("agentsignals")}
    batch = {"resource": {"attributes": _pairs(resource)}, "scopeSpans": [{"scope": scope, "spans": spans}]}
    return json.dumps({"resourceSpans": [batch]}, ensure_ascii=False) + "\n"


def _put_in_order(spans: list[dict[str, Any]]) -> None:
    """Give spans of one microsecond, or that an unsteady clock put back, times in the order of the session. Where none
    is known, it is below a microsecond."""
    last: dict[str, int] = {}
    for span in spans:
        thread = span.pop("thread")
        began, ended = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        before = last.get(thread, 0)
        began = last[thread] = max(began, before + 1) if began or before >= _NO_TIME else min(before + 1, _NO_TIME - 1)
        span["startTimeUnixNano"], span["endTimeUnixNano"] = str(began), str(max(began, ended))


def _spans(session: Session, thread: str, above: str | None) -> Iterator[dict[str, Any]]:
    """Yield a thread's spans: one an agent invocation, below it one a model call and one a tool call."""
    moves = main_messages(session, thread)
    at = session.started_at
    asked: list[dict[str, Any]] = []
    agent: dict[str, Any] | None = None
    times: Counter[str] = Counter()
    for n, move in enumerate(moves):
        at = move.at if move.at is not None else at
        if agent is None or move.role == "user":
            name = session.agent or "unknown"
            times[move.text] += move.role == "user"
            # Words that were said before are the n-th of these: one message is history, and no new prompt.
            said = [_message("user", [_words(move.text)])] * times[move.text] if move.role == "user" else None
            facts = {"agent.name": name, "agent.version": session.agent_version, "input.messages": said}
            # The prompts of a subagent are in the span of its first: a span in a span is another agent.
            if agent is None or thread == MAIN:
                agent = _span(session, f"{thread}/{n}", above, f"invoke_agent {name}", at, at, facts)
                yield agent
            else:
                asked += said or []
        agent["endTimeUnixNano"] = _nano(at)
        if move.role == "user":
            continue
        yield _model_call(session, f"{thread}/{n}/call", agent["spanId"], move, at, asked)
        asked = []
        for call in move.calls:
            if call.result is not None:
                text = call.result.text or ""
                yield _tool(session, f"{thread}/{n}/{call.id}", agent["spanId"], call, text, at)
                asked.append(_message("tool", [{"type": "tool_call_response", "id": call.id, "response": text}]))


def _model_call(  # noqa: PLR0913  (what a model call was asked, and what came)
    session: Session, name: str, above: str, move: Message, at: int | None, asked: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the span of one model call: what it was asked, what it answered, its tokens."""
    step = move.step
    parts: list[dict[str, Any]] = [{"type": "reasoning", "content": move.thought}] if move.thought else []
    parts += [_words(move.text)] if move.text else []
    parts += [
        {"type": "tool_call", "id": c.id, "name": c.call.name, "arguments": arguments(c.call)} for c in move.calls
    ]
    model = (step.model if step is not None else None) or session.model
    logged = step.stop_reason if step is not None else None
    reason = _REASONS.get(logged or "", logged) or ("tool_call" if move.calls else None)
    facts: dict[str, Any] = {
        "request.model": model,
        "response.model": model,
        "response.id": step.message_id if step is not None else None,
        "response.finish_reasons": [reason] if reason else None,
        "input.messages": asked or None,
        "output.messages": [_message("assistant", parts) | {"finish_reason": reason or "unknown"}] if parts else None,
    }
    if step is not None:
        facts |= {
            "usage.input_tokens": prompt_tokens(step),
            "usage.output_tokens": step.output_tokens,
            "usage.cache_read.input_tokens": step.cache_read_tokens,
            "usage.cache_creation.input_tokens": step.cache_write_tokens,
            "usage.reasoning.output_tokens": step.reasoning_tokens,
        }
    return _span(session, name, above, f"chat {model or ''}".strip(), at, at, facts)


def _tool(  # noqa: PLR0913  (a call and its result)
    session: Session, name: str, above: str, exchange: Call, text: str, at: int | None
) -> dict[str, Any]:
    call = exchange.call
    facts = {
        "tool.name": call.name,
        "tool.type": "function",
        "tool.call.id": exchange.id,
        "tool.call.arguments": json.dumps(arguments(call), ensure_ascii=False),
        "tool.call.result": text,
    }
    began = call.started_at if call.started_at is not None else at
    made = _span(session, name, above, f"execute_tool {call.name}", began, call.ended_at or began, facts)
    if call.status in _FAILED:
        said = text.strip().partition("\n")[0]
        made["status"] = {"code": 2, "message": said or call.error_class or call.status}
        made["attributes"] += _pairs({"error.type": call.error_class or call.status})
    return made


def _span(  # noqa: PLR0913  (what a span is)
    session: Session, name: str, above: str | None, title: str, began: int | None, ended: int | None,
    facts: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    operation = {"operation.name": title.partition(" ")[0], "conversation.id": session.session_id}
    return without_nones(
        {
            "thread": name.partition("/")[0],
            "traceId": _digest(session.session_id, 16),
            "spanId": _digest(f"{session.session_id}/{name}", 8),
            "parentSpanId": above,
            "name": title,
            "kind": 1,
            "startTimeUnixNano": _nano(began),
            "endTimeUnixNano": _nano(ended),
            "attributes": _pairs({f"gen_ai.{key}": value for key, value in (operation | facts).items()}),
        }
    )


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def _nano(at: int | None) -> str:
    """Return a time as OTLP writes it; 0 where none is known."""
    return str(max(at or 0, 0) * 1000)


def _message(role: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": role, "parts": parts}


def _words(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _pairs(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return attributes. Messages are JSON in a text, as the conventions have them on spans."""
    return [{"key": key, "value": _value(value)} for key, value in facts.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return {"arrayValue": {"values": [{"stringValue": item} for item in value]}}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}


WRITER = Writer(
    name="otel-genai",
    describes="one OpenTelemetry trace a session, by the conventions for generative AI (OTLP JSON)",
    suffix=".otlp.json",
    text=text,
    loses=(
        *LOSES,
        NO_BOUNDS,
        "cost, edited lines, refusals apart from failures, and what happened beside words, calls and results",
        "when a model call began: its span has one time",
    ),
)
