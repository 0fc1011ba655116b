"""Calls and results that stand in the text of messages: tags with JSON, XML, fenced blocks.

Code and prose may contain the same tags, so a call is recognised only where it holds a name, and a fenced block only in
conversations whose instructions ask for it.
"""

import ast
import json
import re
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.formats.records import after_space
from agentsignals.model.lazy import deferred_pattern

_THINK, _THOUGHT = "<think>", "</think>"
_CALL, _CALLED = "<tool_call>", "</tool_call>"
_RESPONSE, _RESPONDED = "<tool_response>", "</tool_response>"
_OPENING = deferred_pattern(
    r'<tool_call>(?!\s{0,9}<function=)|<function=([\w.:-]{1,100})>|<invoke name="([\w.:-]{1,100})">'
    r"|<(execute_\w{1,40})>"
)
_OPENED = deferred_pattern(r"(?:<(?:tool_call|function_calls)>\s{0,9}){1,2}\Z")
_CLOSED = deferred_pattern(r"(?:\s{0,9}</(?:tool_call|function_calls)>){0,2}")
"""Tags around calls that have tags of their own."""
_FENCED = deferred_pattern(r"```(?:bash|sh|shell|console|mswea_bash_command)?[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_RESULT = deferred_pattern(
    r"^(?:EXECUTION RESULT of \[([\w.:-]{1,100})\]|OBSERVATION|\AObservation):[ \t]*\n?", re.MULTILINE
)
_PYTHON_CHARS = 20_000
_PYTHON_CHARS_MAX = 1024 * 1024
"""Older data sets, and pandas in CSV, write calls and messages as Python writes a dict. Longer ones are text."""
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
    """Parse a message of the agent. Thoughts come first; one that is not closed is all there is."""
    answer = AgentMessage([], [], [])
    at = after_space(value, 0)
    while value.startswith(_THINK, at):
        stop = value.find(_THOUGHT, at)
        thought = value[at + len(_THINK) : stop if stop >= 0 else len(value)].strip()
        if thought:
            answer.thoughts.append(thought)
        at = after_space(value, stop + len(_THOUGHT)) if stop >= 0 else len(value)
    text = at
    while (found := _OPENING.search(value, at)) is not None:
        called, end = _written(value, found)
        at = end if called is not None else found.end()
        if called is not None:
            answer.texts.append(_OPENED.sub("", value[text : found.start()]).strip())
            answer.calls.append(called)
            text = at = end
    answer.texts = [words for words in (*answer.texts, value[text:].strip()) if words]
    return answer


def _written(value: str, opening: re.Match[str]) -> tuple[Called | None, int]:
    """Return the call that a tag opens, and where it ends. None if the tag holds no call."""
    name = opening[1] or opening[2] or opening[3]
    if name is None:
        payload, end = _payload(value, opening.end(), _CALLED)
        return call_of(payload), end
    if opening[3]:
        end = value.find(f"</{name}>", opening.end())
        body = msgspec.json.encode({"command": value[opening.end() : end].strip()}).decode()
        return (Called(name, body), end + len(name) + 3) if end >= 0 else (None, -1)
    closing = "</function>" if opening[1] else "</invoke>"
    end = value.find(closing, opening.end())
    body = value[opening.end() : end if end >= 0 else len(value)]
    parts = body.split("<parameter=") if opening[1] else body.split('<parameter name="')
    if end < 0 and len(parts) < 2 and body.strip():
        return None, -1  # a tag that is quoted; one that is cut has nothing behind it
    arguments = _parameters(parts[1:], '"' if opening[2] else "")
    around = _CLOSED.match(value, end + len(closing)) if end >= 0 else None
    return Called(name, arguments), around.end() if around is not None else len(value)


def _parameters(parts: list[str], quote: str) -> str:
    """Return parameters as JSON. A value may hold tags itself: it lasts until the next parameter begins."""
    parameters: dict[str, str] = {}
    for part in parts:
        name, opened, value = part.partition(f"{quote}>")
        if opened:
            end = value.rfind("</parameter>")
            parameters[name.strip()] = (value[:end] if end >= 0 else value).removeprefix("\n")
    return msgspec.json.encode(parameters).decode()


def python_calls(value: str) -> list[dict[str, Any]]:
    """Return calls as Python writes them, `f(a=1)` a line or in a list, each as an object; none of any other text."""
    calls: list[dict[str, Any]] = []
    if len(value) > _PYTHON_CHARS:
        return calls
    with suppress(SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        said = [node.value for node in ast.parse(value.strip()).body if isinstance(node, ast.Expr)]
        for call in said[0].elts if len(said) == 1 and isinstance(said[0], ast.List) else said:
            if not isinstance(call, ast.Call):
                return []
            given = {str(n): ast.literal_eval(one) for n, one in enumerate(call.args)}
            given |= {word.arg or "**": ast.literal_eval(word.value) for word in call.keywords}
            calls.append({"name": ast.unparse(call.func), "arguments": given})
    return calls


def fenced_call(value: str) -> tuple[str, str] | None:
    """Return the words before the one fenced block that ends a message, and the block. None of any other message."""
    found = _FENCED.search(value) if value.count("```") == 2 else None
    return None if found is None else (value[: found.start()].strip(), found[1].strip())


def results_of(value: str) -> list[Answered]:
    """Return the results in a message: one for each tag or heading, or the whole message."""
    headings = list(_RESULT.finditer(value))
    if headings and not value[: headings[0].start()].strip():
        ends = [*(heading.start() for heading in headings[1:]), len(value)]
        return [Answered(value[h.end() : end].strip("\n"), h[1]) for h, end in zip(headings, ends, strict=True)]
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
    """Return the call in an object, whose arguments may be an object or JSON. None if it is no call."""
    if isinstance(value, str):
        try:
            value = _decoder.decode(value)
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=str)
    return Called(value["name"], arguments)


def _payload(value: str, at: int, closing: str) -> tuple[Any, int]:
    """Return the object in a tag and where the tag ends; -1 if it holds no object that its closing tag follows.

    The object is parsed as JSON and not up to the closing tag, because its texts may quote one.
    """
    at = after_space(value, at)
    if value[at : at + 1] not in ("{", "["):
        return None, -1
    try:
        payload, end = _decoder.raw_decode(value, at)
    except (ValueError, RecursionError):
        stop = value.find(closing, at, at + _PYTHON_CHARS)
        if stop < 0 or value[at : at + 2] != "{'" or value.find(_CALL, at, stop) >= 0:
            return None, -1
        held = python_in(value[at:stop])
        return (None, -1) if held is None else (held, stop + len(closing))
    end = after_space(value, end)
    return (payload, end + len(closing)) if value.startswith(closing, end) else (None, -1)


def python_in(text: str | bytes) -> Any:
    """Return the value of a Python literal; None if it is none, or too long."""
    if len(text) <= _PYTHON_CHARS_MAX:
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return ast.literal_eval(text.strip() if isinstance(text, str) else text.decode("utf-8", "replace").strip())
    return None
