"""Read OpenTelemetry traces: a session for each conversation, or for each trace that names none.

The conventions moved. Messages were events of the span or logs, are JSON in attributes since 1.37, and OpenLLMetry
numbers them in the names of attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading
from agentsignals.formats import any_agent as agents
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.records import UNREADABLE, document, lines, read_before, saw, skip
from agentsignals.formats.usage import special
from agentsignals.model import MAIN, Artifact, CallStatus, Session, Step

_WANTED = (
    "gen_ai.", "error.", "service.", "event.", "content", "role", "tool_calls", "id", "message", "index",
    "finish_reason", "name",
)  # fmt: skip
"""Prefixes of the attributes that are read. Spans carry many others."""
_DEEPEST = 32


class Pair(Struct, gc=False):
    key: str
    value: Raw = Raw()


class Listed(Struct, gc=False):
    values: list[Raw] = []


class Value(Struct, gc=False, kw_only=True):
    """One of these, by type."""

    stringValue: str | None = None
    intValue: str | int | None = None
    doubleValue: float | None = None
    boolValue: bool | None = None
    arrayValue: Listed | None = None
    kvlistValue: Listed | None = None


class Status(Struct, gc=False):
    code: Any = None
    message: str | None = None


class Event(Struct, gc=False, kw_only=True):
    """Something in a span's life, or a log record that names its span."""

    name: str | None = None
    eventName: str | None = None
    timeUnixNano: Any = None
    traceId: str | None = None
    spanId: str | None = None
    attributes: list[Pair] = []
    body: Raw = Raw()


class Span(Struct, gc=False, kw_only=True):
    traceId: str
    spanId: str
    name: str = ""
    parentSpanId: str | None = None
    startTimeUnixNano: Any = None
    endTimeUnixNano: Any = None
    attributes: list[Pair] = []
    events: list[Event] | None = None
    status: Status | None = None


class Scope(Struct, gc=False):
    spans: list[Raw] | None = None
    logRecords: list[Raw] | None = None


class Resource(Struct, gc=False):
    attributes: list[Pair] = []


class Batch(Struct, gc=False):
    resource: Resource | None = None
    scopeSpans: list[Scope] | None = None
    scopeLogs: list[Scope] | None = None
    instrumentationLibrarySpans: list[Scope] | None = None


class Export(Struct, gc=False):
    """Spans and logs that are written at once."""

    resourceSpans: list[Batch] | None = None
    resourceLogs: list[Batch] | None = None


decode = msgspec.json.Decoder(Export).decode
decode_span = msgspec.json.Decoder(Span).decode
decode_event = msgspec.json.Decoder(Event).decode
_value = msgspec.json.Decoder(Value).decode
_pair = msgspec.json.Decoder(Pair).decode


def attributes(pairs: list[Pair]) -> dict[str, Any]:
    """The attributes that are read, as plain values."""
    return {p.key: plain(p.value) for p in pairs if p.key.startswith(_WANTED)}


def plain(raw: Raw, depth: int = 0) -> Any:
    """A value without its type; None for one that is odd or nested too deep."""
    try:
        value = _value(raw) if raw and depth < _DEEPEST else Value()
    except UNREADABLE:
        return None
    if value.arrayValue is not None:
        return [plain(v, depth + 1) for v in value.arrayValue.values]
    if value.kvlistValue is not None:
        attributes: dict[str, Any] = {}
        for inner in value.kvlistValue.values:
            try:
                pair = _pair(inner)
            except UNREADABLE:
                continue
            attributes[pair.key] = plain(pair.value, depth + 1)
        return attributes
    if isinstance(value.intValue, str):
        return as_int(value.intValue)
    simple = (value.stringValue, value.intValue, value.doubleValue, value.boolValue)
    return next((v for v in simple if v is not None), None)


def as_int(value: object) -> int | None:
    """A whole number, which OTLP writes as a text as well; None for anything else."""
    if isinstance(value, str):
        digits = value.removeprefix("-")
        return int(value) if digits.isascii() and digits.isdigit() and len(value) < 20 else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def at_us(nanoseconds: object) -> int | None:
    """A time in nanoseconds since 1970 as microseconds."""
    value_ns = as_int(nanoseconds)
    return value_ns // 1000 if value_ns else None


# The messages of a model call, from attributes, events or numbered names.

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
    """Types of its parts."""

    @property
    def key(self) -> tuple[object, ...]:
        """Return a key that copies of a message share."""
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
    # Content as a list of parts where it is one written as JSON.
    value = raw.get("content")
    decoded = _json(value) if isinstance(value, str) and value.startswith("[{") else value
    content = decoded if isinstance(decoded, list) else value
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


_FAILED = (2, "2", "STATUS_CODE_ERROR")
_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_READ = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens")
_WRITE = ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens")
_REASONING = ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens")

_TIER = ("openai.response.service_tier", "gen_ai.openai.response.service_tier")


class Moment(Struct, kw_only=True):
    """A span with its place."""

    span: Span
    kind: str
    """`model`, `tool`, `agent` or `other`."""
    facts: dict[str, Any]
    resource: dict[str, Any]
    artifact_id: str
    line: int
    events: list[Event]

    @property
    def began(self) -> int | None:
        return at_us(self.span.startTimeUnixNano)

    @property
    def ended(self) -> int | None:
        return at_us(self.span.endTimeUnixNano)

    @property
    def failure(self) -> str | None:
        """Return the error of a failed span."""
        status = self.span.status
        if self.facts.get("error.type") is None and (status is None or status.code not in _FAILED):
            return None
        return (status.message if status is not None else None) or as_text(self.facts.get("error.type"))


class _Above(Struct, frozen=True):
    """The span that encloses another."""

    thread: str = MAIN
    agent: bool = False
    model: bool = False


_TOP = _Above()


class Conversation:
    """Reads one conversation. Messages count when they first appear: each model call repeats those before it."""

    def __init__(self, session: Session) -> None:
        self._builder = SessionBuilder(session, agents.ANYBODY)
        self._within: dict[tuple[str, str], _Above] = {}
        self._seen: set[tuple[object, ...]] = set()
        self._open: dict[str, list[str]] = {}
        """Calls by the tool's name that may wait for a span; some have their result already."""

    def read(self, moments: list[Moment]) -> Session:
        """The session of these spans, which are in order of time."""
        for moment in moments:
            self._builder.artifact_id, self._builder.line = moment.artifact_id, moment.line
            above = self._within.get((moment.span.traceId, moment.span.parentSpanId or ""), _TOP)
            thread = above.thread
            if moment.kind == "agent" and above.agent:
                thread = moment.span.spanId
            self._within[moment.span.traceId, moment.span.spanId] = _Above(
                thread, above.agent or moment.kind == "agent", above.model or moment.kind == "model"
            )
            if moment.kind == "model" and not above.model:  # a call told by two instrumentations is one
                self._model(moment, thread)
            elif moment.kind == "tool":
                self._tool(moment, thread)
            elif moment.kind == "agent":
                self._task(moment, thread)
        return self._builder.finish()

    def _task(self, moment: Moment, thread: str) -> None:
        self._ask(spoken(moment.facts, moment.events).asked, moment.began, thread)

    def _ask(self, messages: list[Message], at: int | None, thread: str) -> dict[tuple[object, ...], int]:
        """Record those of these messages that are new. Return how often each occurs among them."""
        times: dict[tuple[object, ...], int] = {}
        for message in messages:
            if self._is_new(message, times, thread):
                self._asked(message, at, thread)
        return times

    def _model(self, moment: Moment, thread: str) -> None:
        exchange = spoken(moment.facts, moment.events)
        times = self._ask(exchange.asked, moment.began, thread)
        failure = moment.failure
        if failure is not None:
            self._builder.event("api_error", failure, moment.ended, thread=thread)
            if not exchange.replies:
                return
        model = moment.facts.get("gen_ai.response.model") or moment.facts.get("gen_ai.request.model")
        step = self._builder.step(None, as_text(model) or None, moment.ended, thread)
        step.message_id = as_text(moment.facts.get("gen_ai.response.id")) or None
        # Input tokens count the cached ones (the conventions say SHOULD), unless more were cached than
        # counted.
        facts = moment.facts
        total_input, out, read, write, reasoning = (
            next((n for name in k if (n := _tokens(facts.get(name))) is not None), None)
            for k in (_INPUT, _OUTPUT, _READ, _WRITE, _REASONING)
        )
        cached = (read or 0) + (write or 0)
        step.input_tokens = total_input - cached if total_input is not None and cached <= total_input else total_input
        step.output_tokens, step.cache_read_tokens, step.cache_write_tokens = out, read, write
        step.reasoning_tokens = reasoning
        step.service_tier = special(next((facts[name] for name in _TIER if name in facts), None))
        reasons = moment.facts.get("gen_ai.response.finish_reasons")
        if isinstance(reasons, list) and reasons:
            step.stop_reason = as_text(reasons[0])
        for message in exchange.replies:
            step.stop_reason = step.stop_reason or message.finish_reason
            self._is_new(message, times, thread)
            self._reply(message, moment.ended, step, thread)

    def _is_new(self, message: Message, times: dict[tuple[object, ...], int], thread: str) -> bool:
        """Return whether no earlier message of this conversation was the n-th to say the same."""
        same = message.key
        times[same] = times.get(same, 0) + 1
        key = (thread, same, times[same])
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _asked(self, message: Message, at: int | None, thread: str) -> None:
        for call_id, text in message.answers:
            if not self._builder.answered(call_id):
                self._finish(call_id, text, "ok", at)
        if message.role == "assistant":
            self._reply(message, at, None, thread)
        elif message.text:
            if message.role == "user" and thread == MAIN:
                self._builder.turn("prompt", message.text, at)
            else:
                self._builder.event("meta", message.text, at, thread=thread)
        if message.role != "assistant":
            self._builder.unread(message.kinds, PARTS, at, thread)

    def _reply(self, message: Message, at: int | None, step: Step | None, thread: str) -> None:
        for thought in message.thinking:
            self._builder.event("thinking", thought, at, step, thread)
        if message.text:
            self._builder.event("text", message.text, at, step, thread)
        for call in message.calls:
            name = call.name
            call_id = call.id or f"call#{len(self._builder.session.tool_calls)}"
            self._builder.call(call_id, name, call.arguments, agents.tool(name), at, step, thread)
            self._open.setdefault(name, []).append(call_id)
        self._builder.unread(message.kinds, PARTS, at, thread)

    def _tool(self, moment: Moment, thread: str) -> None:
        """A tool's span answers the call of that id, else the oldest open one of its name, else is a call by itself."""
        name = as_text(moment.facts.get("gen_ai.tool.name")) or moment.span.name
        call_id = as_text(moment.facts.get("gen_ai.tool.call.id")) or self._waiting(name) or moment.span.spanId
        if self._builder.answered(call_id):
            arguments = as_text(moment.facts.get("gen_ai.tool.call.arguments")) or "{}"
            self._builder.call(call_id, name, arguments, agents.tool(name), moment.began, None, thread)
        result, failure = as_text(moment.facts.get("gen_ai.tool.call.result")), moment.failure
        text = result if failure is None else "\n".join(t for t in (result, failure) if t)
        self._finish(call_id, text, "ok" if failure is None else "error", moment.ended)

    def _waiting(self, name: str) -> str | None:
        """The oldest call of a tool that has no result."""
        waiting = self._open.get(name, [])
        while waiting:
            call_id = waiting.pop(0)
            if not self._builder.answered(call_id):
                return call_id
        return None

    def _finish(self, call_id: str, text: str, status: CallStatus, at: int | None) -> None:
        call = self._builder.result(call_id, text, status, at)
        if call is None:
            return
        if call.class_ == "edit" and status == "ok":
            record_arguments(self._builder, call)


def _tokens(value: object) -> int | None:
    n = as_int(value)
    return count(value if n is None else n)


_MODEL = frozenset(("chat", "text_completion", "generate_content", "completion"))
_CONVERSATION = "gen_ai.conversation.id"
_AGENT = frozenset(("invoke_agent", "invoke_workflow"))


class _Seen(Struct):
    """Contents of the files by trace and span."""

    moments: dict[str, dict[str, Moment]] = field(default_factory=dict)
    logs: dict[str, dict[str, list[Event]]] = field(default_factory=dict)

    def take(self, name: str, traces: Iterable[str]) -> Iterator[Session]:
        """Takes out the session that these traces are, if it is one."""
        moments_of_session: list[Moment] = []
        for trace in traces:
            moments, logs = self.moments.pop(trace, {}), self.logs.pop(trace, {})
            for span_id, moment in moments.items():
                moment.events += logs.get(span_id, ())
            moments_of_session += moments.values()
        session = _session(name, moments_of_session)
        if session is not None:
            yield session


def read(inputs: list[Input]) -> Reading:
    """All files of one family. A span that stands in several files counts once."""
    seen = _Seen()
    for source in _in_order(inputs):
        for number, export in _exports(source, source.artifact):
            _take(source.artifact, number, export, seen)
    names: dict[str, str] = {}
    for trace, moments in seen.moments.items():
        for moment in moments.values():
            _name(names, trace, moment.facts.get(_CONVERSATION))
    groups: dict[str, list[str]] = {}
    for trace in seen.moments:
        groups.setdefault(names.get(trace, trace), []).append(trace)
    return Reading([s for name, traces in sorted(groups.items()) for s in seen.take(name, traces)])


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """Yield the same sessions, each when the last of its batches is read. A first pass finds that batch."""
    inputs = _in_order(inputs)
    names: dict[str, str] = {}
    last: dict[str, tuple[int, int]] = {}
    for n, source in enumerate(inputs):
        for at, (_, export) in enumerate(_exports(source, read_before(source.artifact))):
            for trace, named in _traces(export):
                last[trace] = (n, at)
                _name(names, trace, named)
    groups: dict[str, list[str]] = {}
    for trace in last:
        groups.setdefault(names.get(trace, trace), []).append(trace)
    ends: dict[tuple[int, int], list[str]] = {}
    for name, traces in groups.items():
        ends.setdefault(max(last[trace] for trace in traces), []).append(name)
    seen = _Seen()
    for n, source in enumerate(inputs):
        for at, (number, export) in enumerate(_exports(source, source.artifact)):
            _take(source.artifact, number, export, seen)
            for name in ends.get((n, at), ()):
                yield Reading(list(seen.take(name, groups[name])))


def _in_order(inputs: list[Input]) -> list[Input]:
    return sorted(inputs, key=lambda i: i.artifact.artifact_id)


def _traces(export: Export) -> Iterator[tuple[str, Any]]:
    """The trace of each span and log, and the conversation that it names."""
    for batch in (*(export.resourceSpans or ()), *(export.resourceLogs or ())):
        for scope in _scopes(batch):
            for raw in scope.spans or ():
                try:
                    span = decode_span(raw)
                except UNREADABLE:
                    continue
                named = [p.value for p in span.attributes if p.key == _CONVERSATION]
                yield span.traceId, plain(named[-1]) if named else None
            for raw in scope.logRecords or ():
                try:
                    yield decode_event(raw).traceId or "", None
                except UNREADABLE:
                    continue


def _name(names: dict[str, str], trace: str, named: Any) -> None:
    """A trace is of the conversation that the first of its spans names."""
    if isinstance(named, str) and named:
        names.setdefault(trace, named)


def _exports(source: Input, artifact: Artifact) -> Iterator[tuple[int | None, Export]]:
    """Yield the batches of a file with their lines. A document has no line."""
    start = bytes(source.data[:4096]).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.split(b"\n", 1)[0].strip() == b"{":  # printed over many lines
        export = document(source.data, artifact, decode)
        if export is not None:
            yield None, export
        return
    yield from lines(source.data, artifact, decode)


def _take(artifact: Artifact, number: int | None, export: Export, seen: _Seen) -> None:
    saw(artifact, "batch")
    ordinal = 0
    for batch in (*(export.resourceSpans or ()), *(export.resourceLogs or ())):
        resource = attributes(batch.resource.attributes) if batch.resource is not None else {}
        for scope in _scopes(batch):
            for raw in scope.spans or ():
                ordinal += 1
                _span(artifact, ordinal if number is None else number, raw, resource, seen)
            for raw in scope.logRecords or ():
                _log(artifact, raw, seen)


def _scopes(batch: Batch) -> Iterator[Scope]:
    for scopes in (batch.scopeSpans, batch.scopeLogs, batch.instrumentationLibrarySpans):
        yield from scopes or ()


def _span(artifact: Artifact, line: int, raw: Raw, resource: dict[str, Any], seen: _Seen) -> None:
    artifact.records += 1
    try:
        span = decode_span(raw)
    except UNREADABLE:
        skip(artifact, "bad_shape")
        return
    facts = attributes(span.attributes)
    kind = _kind(facts)
    moments = seen.moments.setdefault(span.traceId, {})
    saw(artifact, "repeated_span" if span.spanId in moments else f"span.{kind}")
    if span.spanId not in moments:
        moments[span.spanId] = Moment(
            span=span,
            kind=kind,
            facts=facts,
            resource=resource,
            artifact_id=artifact.artifact_id,
            line=line,
            events=list(span.events or ()),
        )


def _log(artifact: Artifact, raw: Raw, seen: _Seen) -> None:
    artifact.records += 1
    try:
        event = decode_event(raw)
    except UNREADABLE:
        skip(artifact, "bad_shape")
        return
    saw(artifact, "log")
    seen.logs.setdefault(event.traceId or "", {}).setdefault(event.spanId or "", []).append(event)


def _kind(facts: dict[str, Any]) -> str:
    operation = facts.get("gen_ai.operation.name")
    if operation in _AGENT:
        return "agent"
    if operation == "execute_tool" or (operation is None and "gen_ai.tool.name" in facts):
        return "tool"
    if operation in _MODEL or (operation is None and "gen_ai.request.model" in facts):
        return "model"
    return "other"


def _session(name: str, moments: list[Moment]) -> Session | None:
    """Return a session, or None if no span is of a model, a tool or an agent."""
    moments.sort(key=_when)
    if all(m.kind == "other" for m in moments):
        return None
    first = next(m for m in moments if m.kind != "other")
    agent = next((m for m in moments if m.kind == "agent"), first)
    named = agent.facts.get("gen_ai.agent.name") or agent.resource.get("service.name")
    version = agent.facts.get("gen_ai.agent.version") or agent.resource.get("service.version")
    session = Session(
        session_id=name,
        context="product",
        format="otel-genai",
        agent=named if isinstance(named, str) else "unknown",
        artifact_id=first.artifact_id,
    )
    session.agent_version = version if isinstance(version, str) else None
    session = Conversation(session).read(moments)
    begun = [t for m in moments for t in (at_us(m.span.startTimeUnixNano), at_us(m.span.endTimeUnixNano)) if t]
    session.started_at, session.ended_at = min(begun, default=None), max(begun, default=None)
    return session


def _when(moment: Moment) -> tuple[int, int, str]:
    """Sort key: by beginning, and longer spans first, so that a span precedes those within it."""
    span = moment.span
    return as_int(span.startTimeUnixNano) or 0, -(as_int(span.endTimeUnixNano) or 0), span.spanId
