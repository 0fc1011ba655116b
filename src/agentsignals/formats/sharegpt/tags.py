"""What a ShareGPT message says in tags: `<think>`, `<tool_call>`, `<tool_response>` (design/formats.md#small-formats).

Tags also stand literally in code and talk: a call is one only where its tag holds an object with a name.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from msgspec import Struct

_THINK, _THOUGHT = "<think>", "</think>"
_CALL, _CALLED = "<tool_call>", "</tool_call>"
_RESPONSE, _RESPONDED = "<tool_response>", "</tool_response>"
_SPACE = re.compile(r"\s*")
_PYTHON_CHARS = 20_000
"""Older data sets write calls as Python writes a dict; a longer one is left as text."""
_decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


class Called(Struct, gc=False):
    """A call: the tool's name, its arguments as JSON."""

    name: str
    arguments: str


class Answered(Struct, gc=False):
    """A result: its content, and of which call, as far as it says so."""

    content: Any
    name: str | None = None


class AgentMessage(Struct, gc=False):
    """A message of the agent, taken apart. `thoughts`, `texts` and `calls` are each in order."""

    thoughts: list[str]
    texts: list[str]
    calls: list[Called]


def answer_of(value: str) -> AgentMessage:
    """A message of the agent. Thoughts come first; one that is not closed is all there is."""
    answer = AgentMessage([], [], [])
    at = _skip(value, 0)
    while value.startswith(_THINK, at):
        stop = value.find(_THOUGHT, at)
        thought = value[at + len(_THINK) : stop if stop >= 0 else len(value)].strip()
        if thought:
            answer.thoughts.append(thought)
        at = _skip(value, stop + len(_THOUGHT)) if stop >= 0 else len(value)
    _calls(value, at, answer)
    return answer


def _calls(value: str, at: int, answer: AgentMessage) -> None:
    text = at
    while (start := value.find(_CALL, at)) >= 0:
        payload, end = _payload(value, start + len(_CALL), _CALLED)
        call = call_of(payload)
        at = end if call is not None else start + len(_CALL)
        if call is not None:
            _keep(answer.texts, value[text:start])
            answer.calls.append(call)
            text = end
    _keep(answer.texts, value[text:])


def results_of(value: str) -> list[Answered]:
    """The results in a message of a tool: one for each tag, or the message as it is."""
    results: list[Answered] = []
    at = 0
    while (start := value.find(_RESPONSE, at)) >= 0:
        inner = start + len(_RESPONSE)
        payload, end = _payload(value, inner, _RESPONDED)
        if end < 0:
            stop = value.find(_RESPONDED, inner)
            end = stop + len(_RESPONDED) if stop >= 0 else len(value)
            payload = value[inner : stop if stop >= 0 else len(value)].strip()
        name = payload.get("name") if isinstance(payload, dict) else None
        content = payload["content"] if isinstance(payload, dict) and "content" in payload else payload
        results.append(Answered(content, name if isinstance(name, str) else None))
        at = end
    return results or [Answered(value)]


def call_of(value: Any) -> Called | None:
    """The call that an object is; arguments may be an object or its JSON. None when it is no call."""
    if isinstance(value, str):
        value = _object(value)
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=str)
    return Called(value["name"], arguments)


def _object(text: str) -> Any:
    try:
        return _decoder.decode(text)
    except (ValueError, RecursionError):
        return None


def _payload(value: str, at: int, closing: str) -> tuple[Any, int]:
    """What a tag holds and where it ends; -1 when it holds no object that its closing tag follows.

    The object is read as JSON, not up to the closing tag: its texts may quote one.
    """
    at = _skip(value, at)
    if value[at : at + 1] not in ("{", "["):
        return None, -1
    try:
        payload, end = _decoder.raw_decode(value, at)
    except (ValueError, RecursionError):
        return _python(value, at, closing)
    end = _skip(value, end)
    return (payload, end + len(closing)) if value.startswith(closing, end) else (None, -1)


def _python(value: str, at: int, closing: str) -> tuple[Any, int]:
    stop = value.find(closing, at, at + _PYTHON_CHARS)
    if stop < 0 or value[at : at + 2] != "{'" or value.find(_CALL, at, stop) >= 0:
        return None, -1
    try:
        return ast.literal_eval(value[at:stop].strip()), stop + len(closing)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None, -1


def _skip(value: str, at: int) -> int:
    match = _SPACE.match(value, at)
    return match.end() if match else at


def _keep(texts: list[str], text: str) -> None:
    if text.strip():
        texts.append(text.strip())
