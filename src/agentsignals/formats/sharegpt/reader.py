"""Read ShareGPT rows as sessions (design/formats.md#small-formats). They hold no times and no usage.

Messages hold tags: `<think>`, `<tool_call>`, `<tool_response>`. Code and prose may contain the same tags, so a call
is recognised only if its tag holds an object with a name.
"""

from __future__ import annotations

import ast
import json
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading, gathered
from agentsignals.formats.any_agent import ANYBODY, tool
from agentsignals.formats.bounds import whole
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import as_text, each, is_list
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.records import lines, saw, skip
from agentsignals.formats.sharegpt import name_of
from agentsignals.model import CallStatus, Session, Step, logged_iso

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
    """Parse a message of the agent. Thoughts come first; one that is not closed is all there is."""
    answer = AgentMessage([], [], [])
    at = _skip(value, 0)
    while value.startswith(_THINK, at):
        stop = value.find(_THOUGHT, at)
        thought = value[at + len(_THINK) : stop if stop >= 0 else len(value)].strip()
        if thought:
            answer.thoughts.append(thought)
        at = _skip(value, stop + len(_THOUGHT)) if stop >= 0 else len(value)
    text = at
    while (start := value.find(_CALL, at)) >= 0:
        payload, end = _payload(value, start + len(_CALL), _CALLED)
        call = call_of(payload)
        at = end if call is not None else start + len(_CALL)
        if call is not None:
            answer.texts.append(value[text:start].strip())
            answer.calls.append(call)
            text = end
    answer.texts = [words for words in (*answer.texts, value[text:].strip()) if words]
    return answer


def results_of(value: str) -> list[Answered]:
    """Return the results in a tool's message: one for each tag, or the whole message."""
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
    at = _skip(value, at)
    if value[at : at + 1] not in ("{", "["):
        return None, -1
    try:
        payload, end = _decoder.raw_decode(value, at)
    except (ValueError, RecursionError):
        stop = value.find(closing, at, at + _PYTHON_CHARS)
        if stop < 0 or value[at : at + 2] != "{'" or value.find(_CALL, at, stop) >= 0:
            return None, -1
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return ast.literal_eval(value[at:stop].strip()), stop + len(closing)
        return None, -1
    end = _skip(value, end)
    return (payload, end + len(closing)) if value.startswith(closing, end) else (None, -1)


def _skip(value: str, at: int) -> int:
    match = _SPACE.match(value, at)
    return match.end() if match else at


_PEOPLE = frozenset(("human", "user"))
_AGENT = frozenset(("gpt", "assistant", "model", "chatgpt", "bot"))
_TOOLS = frozenset(("tool", "observation", "function_response", "function", "tool_response"))
_CALLS = frozenset(("function_call", "tool_call"))
_FAILED = ("Error:", "error:", "Error executing tool")
_HEAD = 64 * 1024
_OF_HERMES = ("api_calls", "tool_stats", "toolsets_used")
_FACTS = ("completed", "partial", "api_calls", "category", "subcategory", "task")
_ROWS, _CONVERSATION = re.compile(rb'"rows"\s*:'), re.compile(rb'"conversations"\s*:')


class Turn(Struct, gc=False):
    from_: str = msgspec.field(name="from")
    value: object = None


class Row(Struct, gc=False, kw_only=True):
    conversations: list[Turn]
    id: object = None
    system: object = None
    """Some data sets have the instructions here."""
    model: object = None
    timestamp: object = None
    completed: object = None
    partial: object = None
    api_calls: object = None
    tool_stats: Raw = Raw()
    toolsets_used: Raw = Raw()
    category: object = None
    subcategory: object = None
    task: object = None


class _Wrapped(Struct, gc=False):
    row: Raw = Raw()


class _Document(Struct, gc=False):
    rows: list[Raw] = []


decode_row = msgspec.json.Decoder(Row).decode
_wrapped = msgspec.json.Decoder(_Wrapped).decode
_document = msgspec.json.Decoder(list[Raw] | _Document).decode


def read(inputs: list[Input]) -> Reading:
    """Read every row as a session. A row that occurs twice, in one file or two, counts once."""
    return gathered(pieces(inputs))


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """The rows, in their order."""
    names: set[tuple[str, str]] = set()
    for source in inputs:
        for number, row in _rows(source):
            saw(source.artifact, "row")
            name = name_of(row.id, [{"from": turn.from_, "value": turn.value} for turn in row.conversations])
            same = (name, next((as_text(turn.value) for turn in row.conversations if turn.from_ != "system"), ""))
            if same in names:
                saw(source.artifact, "repeated")
                continue
            session = Reader(name, row, source, number).build()
            if session.events:
                names.add(same)
                yield Reading([session])


def _rows(source: Input) -> Iterator[tuple[int, Row]]:
    """Yield rows with their line or place in the list. Lines are decoded one by one, however long the file is."""
    head = bytes(source.data[:_HEAD])
    rows, first = _ROWS.search(head), _CONVERSATION.search(head)
    # A wrapper names the rows before any conversation, or is printed over several lines.
    wraps = rows is not None and (first is None or rows.start() < first.start())
    wraps = wraps or (head.lstrip().partition(b"\n")[0].strip() == b"{" and b"\n{" not in head)
    if is_list(source.data) or (head[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and wraps):
        document = read_document(source, _document, "rows")
        raws = document.rows if isinstance(document, _Document) else document or []
        if isinstance(document, _Document) and not raws:
            raws = [Raw(bytes(source.data))]  # one row, printed over several lines
        for number, row in enumerate(
            (each([raw], lambda raw: decode_row(_wrapped(raw).row or raw), source.artifact)[0] for raw in raws), 1
        ):
            source.artifact.records += 1
            if row is None:
                skip(source.artifact, "bad_shape")
            else:
                yield number, row
    else:
        yield from lines(source.data, source.artifact, decode_row)


class Reader(Conversation):
    profile = ANYBODY

    def __init__(self, name: str, row: Row, source: Input, number: int) -> None:
        hermes = any(getattr(row, key) is not None and getattr(row, key) != Raw() for key in _OF_HERMES)
        session = source.session(name, "sharegpt", "hermes" if hermes else "unknown")
        session.model = row.model if isinstance(row.model, str) else None
        super().__init__(session)
        self.row = row
        self.builder.line = number
        self.waiting: deque[tuple[str, str]] = deque()
        """Calls without a result, by id and tool. Calls have no id of their own; results come in order."""
        self.step: Step | None = None

    def build(self) -> Session:
        row = self.row
        if isinstance(row.system, str) and row.system:
            self.event("meta", row.system)
        for turn in row.conversations:
            self.take(turn.from_, _as_text(turn.value))
        facts = {name: value for name in _FACTS if (value := getattr(row, name)) is not None}
        if facts:
            self.event("meta", msgspec.json.encode(facts).decode())
        session = self.builder.finish()
        if session.ended_at is None and isinstance(row.timestamp, str):
            session.ended_at = logged_iso(row.timestamp)
        return session

    def take(self, role: str, text: str) -> None:
        if role in _PEOPLE:
            self.step = None
            if text:
                self.builder.turn("prompt", text)
        elif role in _AGENT:
            self.answer(text)
        elif role in _TOOLS:
            for result in results_of(text):
                self.result_of(result)
            self.step = None
        elif role in _CALLS:
            # A message that is a call, or a list of calls; anything else is text of the agent.
            value = None
            with suppress(ValueError, RecursionError):
                value = json.loads(text)
            calls = [c for v in (value if isinstance(value, list) else [value]) if (c := call_of(v)) is not None]
            if calls:
                self.step = self.step or self.builder.step(None, self.session.model, None)
                self.calls(calls, self.step)
            else:
                self.answer(text)
        elif role == "system":
            self.event("meta", text)
        else:
            self.event("unknown", f"{role[:80]}: {text}")

    def answer(self, text: str) -> None:
        step = self.step = self.builder.step(None, self.session.model, None)
        answer = answer_of(text)
        for thought in answer.thoughts:
            self.event("thinking", thought, None, step)
        for words in answer.texts:
            self.event("text", words, None, step)
        self.waiting.clear()
        self.calls(answer.calls, step)

    def calls(self, calls: list[Called], step: Step) -> None:
        for call in calls:
            call_id = f"call_{len(self.session.tool_calls)}"
            self.builder.call(call_id, call.name, call.arguments, tool(call.name), None, step)
            self.waiting.append((call_id, call.name))

    def result_of(self, result: Answered) -> None:
        mine = next((w for w in self.waiting if w[1] == result.name), self.waiting[0] if self.waiting else None)
        if mine is not None:
            self.waiting.remove(mine)
        content, code = result.content, None
        status: CallStatus = "ok"
        if isinstance(content, str) and content.lstrip().startswith(_FAILED):
            status = "error"
        elif isinstance(content, dict):
            code = whole(content.get("exit_code", content.get("returncode")))
            if code not in (None, 0) or bool(content.get("error")) or content.get("success") is False:
                status = "error"
        call = self.builder.result(mine[0] if mine else "", _as_text(content), status, exit_code=code)
        if call is not None and status == "ok" and call.class_ == "edit":
            record_arguments(self.builder, call)


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
