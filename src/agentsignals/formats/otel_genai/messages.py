"""What a model call was asked and said, from wherever its instrumentation put it: attributes, events, numbered names.

The conventions moved: messages were events of the span (or logs), are JSON in attributes since 1.37, and OpenLLMetry
numbers them in the names of attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from agentsignals.formats.otel_genai.records import Event, attributes, plain
from agentsignals.formats.records import UNREADABLE

_LONGEST_LIST = 100_000
_ROLES = {"gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
          "gen_ai.tool.message": "tool"}  # fmt: skip


PARTS = frozenset(
    ("text", "reasoning", "thinking", "tool_call", "tool_use", "tool_call_response", "tool_result", "blob", "file",
     "uri", "image", "image_url")
)  # fmt: skip
"""The kinds of parts that there are; attached ones have no words."""


class Call(Struct, gc=False):
    id: str
    name: str
    arguments: str


class Message(Struct, kw_only=True):
    """One message. `answers` are results of tools: the call's id and the text."""

    role: str
    text: str = ""
    thinking: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)
    finish_reason: str | None = None
    kinds: list[str] = field(default_factory=list)
    """Of its parts."""

    @property
    def key(self) -> tuple[object, ...]:
        """The same for two copies of a message."""
        return (self.role, self.text, tuple(c.id or c.name for c in self.calls), tuple(self.answers))


class Spoken(Struct):
    """A model call's messages."""

    asked: list[Message] = field(default_factory=list)
    replies: list[Message] = field(default_factory=list)


def spoken(facts: dict[str, Any], events: list[Event]) -> Spoken:
    """The messages of one model call: of its attributes, else of the events, else of numbered attributes."""
    details = [e for e in events if (e.name or e.eventName) == "gen_ai.client.inference.operation.details"]
    for event in details:
        facts = {**attributes(event.attributes), **facts}
    exchange = Spoken()
    for instruction in _list(facts.get("gen_ai.system_instructions")):
        exchange.asked += _message({"role": "system", "parts": [instruction]})
    for asked in _list(facts.get("gen_ai.input.messages")):
        exchange.asked += _message(asked)
    for reply in _list(facts.get("gen_ai.output.messages")):
        exchange.replies += _message(reply)
    if not exchange.asked and not exchange.replies:
        _of_events(events, exchange)
    if not exchange.asked and not exchange.replies:
        exchange.asked = list(_numbered(facts, "gen_ai.prompt"))
        exchange.replies = list(_numbered(facts, "gen_ai.completion"))
    return exchange


def as_text(value: object) -> str:
    """A value as text: JSON for what is none."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError):
        return ""


def _of_events(events: list[Event], exchange: Spoken) -> None:
    for event in events:
        facts = attributes(event.attributes)
        name = event.name or event.eventName or facts.get("event.name")
        body = plain(event.body)
        merged = {**facts, **body} if isinstance(body, dict) else facts
        if name == "gen_ai.content.prompt":
            for message in _list(facts.get("gen_ai.prompt")):
                exchange.asked += _message(message)
        elif name == "gen_ai.content.completion":
            for message in _list(facts.get("gen_ai.completion")):
                exchange.replies += _message(message)
        elif name == "gen_ai.choice":
            inner = _json(merged.get("message"))
            of = inner if isinstance(inner, dict) else {"content": inner} if isinstance(inner, str) else merged
            exchange.replies += _message({"role": "assistant", "finish_reason": merged.get("finish_reason"), **of})
        elif isinstance(name, str) and name in _ROLES:
            exchange.asked += _message({**merged, "role": _ROLES[name]})


def _message(raw: object) -> list[Message]:
    """A message in either shape: `parts`, or `content` and `tool_calls`."""
    if not isinstance(raw, dict):
        return []
    role, reason = raw.get("role"), raw.get("finish_reason")
    made = Message(role=role if isinstance(role, str) else "assistant")
    made.finish_reason = reason if isinstance(reason, str) else None
    texts: list[str] = []
    for part in _list(raw.get("parts")):
        _part(part, made, texts)
    content = _content(raw.get("content"))
    if isinstance(content, list):
        for part in content:
            _part(part, made, texts)
    elif content is not None:
        texts.append(as_text(content))
    made.text = "\n".join(t for t in texts if t)
    for call in _list(raw.get("tool_calls")):
        made.calls += _call(call)
    if made.role == "tool" and not made.answers:
        made.answers, made.text = [(as_text(raw.get("id") or raw.get("tool_call_id")), made.text)], ""
    return [made]


def _part(part: object, made: Message, texts: list[str]) -> None:
    if isinstance(part, str):
        texts.append(part)
        return
    if not isinstance(part, dict):
        return
    kind = part.get("type")
    made.kinds.append(as_text(kind))
    if kind == "text":
        texts.append(as_text(part.get("content") if "content" in part else part.get("text")))
    elif kind in ("reasoning", "thinking"):
        made.thinking.append(as_text(part.get("content") or part.get("thinking")))
    elif kind in ("tool_call", "tool_use"):
        made.calls += _call(part)
    elif kind in ("tool_call_response", "tool_result"):
        answer = next((part[k] for k in ("response", "result", "content") if part.get(k) is not None), "")
        made.answers.append((as_text(part.get("id") or part.get("tool_use_id")), as_text(answer)))


def _call(raw: object) -> list[Call]:
    if not isinstance(raw, dict):
        return []
    inner = raw.get("function")
    of = inner if isinstance(inner, dict) else raw
    arguments = of.get("arguments") if of.get("arguments") is not None else of.get("input")
    return [Call(as_text(raw.get("id")), as_text(of.get("name")), as_text(arguments) or "{}")]


def _numbered(facts: dict[str, Any], name: str) -> Iterator[Message]:
    for n in range(_LONGEST_LIST):
        place = f"{name}.{n}"
        if f"{place}.role" not in facts and f"{place}.content" not in facts:
            return
        calls = []
        for m in range(_LONGEST_LIST):
            call = f"{place}.tool_calls.{m}"
            if f"{call}.name" not in facts:
                break
            calls.append({k: facts.get(f"{call}.{k}") for k in ("id", "name", "arguments")})
        message = {k: facts.get(f"{place}.{k}") for k in ("role", "content", "tool_call_id", "finish_reason")}
        yield from _message({**message, "tool_calls": calls})


def _content(value: object) -> object:
    """Content as a list of parts where it is one written as JSON."""
    decoded = _json(value) if isinstance(value, str) and value.startswith("[{") else value
    return decoded if isinstance(decoded, list) else value


def _list(value: object) -> list[Any]:
    """A list, or JSON of one; one object stands for itself."""
    decoded = _json(value)
    if isinstance(decoded, list):
        return decoded
    return [decoded] if isinstance(decoded, dict) else []


def _json(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except UNREADABLE:
        return value
