"""Read OpenTelemetry traces: a session for each conversation, or for each trace that names none.

The conventions moved. Messages were events of the span or logs, are JSON in attributes since 1.37, and OpenLLMetry
numbers them in the names of attributes.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading
from agentsignals.formats.any_agent import ANYBODY, tool
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import Tokens, charge, record_arguments, special
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.records import (
    UNREADABLE,
    decoded,
    decoder,
    document,
    inside,
    lines,
    read_before,
    repaired,
    saw,
    skip,
    string,
)
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


class Value(Struct, gc=False, kw_only=True):
    """One of these, by type."""

    stringValue: str | None = None
    intValue: str | int | None = None
    doubleValue: float | None = None
    boolValue: bool | None = None
    arrayValue: dict[str, list[Raw]] | None = None
    kvlistValue: dict[str, list[Raw]] | None = None


class Event(Struct, gc=False, kw_only=True):
    """Something in a span's life, or a log record that names its span."""

    name: str | None = None
    eventName: str | None = None
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
    status: dict[str, Any] | None = None


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


def attributes(pairs: list[Pair]) -> dict[str, Any]:
    """Return the attributes that are read, as plain values."""
    return {p.key: plain(p.value) for p in pairs if p.key.startswith(_WANTED)}


def plain(raw: Raw, depth: int = 0) -> Any:
    """Return a value without its type; None for one that is malformed or nested too deep."""
    value = decoded(raw, Value) if depth < _DEEPEST else None
    if value is None:
        return None
    if value.arrayValue is not None:
        return [plain(v, depth + 1) for v in value.arrayValue.get("values", ())]
    if value.kvlistValue is not None:
        attributes: dict[str, Any] = {}
        for inner in value.kvlistValue.get("values", ()):
            if (pair := decoded(inner, Pair)) is not None:
                attributes[pair.key] = plain(pair.value, depth + 1)
        return attributes
    if isinstance(value.intValue, str):
        return as_int(value.intValue)
    simple = (value.stringValue, value.intValue, value.doubleValue, value.boolValue)
    return next((v for v in simple if v is not None), None)


def as_int(value: object) -> int | None:
    """Return a whole number, which OTLP also writes as text; None for anything else."""
    if isinstance(value, str):
        digits = value.removeprefix("-")
        return int(value) if digits.isascii() and digits.isdigit() and len(value) < 20 else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def at_us(nanoseconds: object) -> int | None:
    """Convert nanoseconds since 1970 to microseconds."""
    value_ns = as_int(nanoseconds)
    return value_ns // 1000 or None if value_ns else None


# The messages of a model call, from attributes, events or numbered names.

_LONGEST_LIST = 100_000
_ROLES = {"gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
          "gen_ai.tool.message": "tool"}  # fmt: skip


PARTS = frozenset(
    ("text", "reasoning", "thinking", "tool_call", "tool_use", "tool_call_response", "tool_result", "blob", "file",
     "uri", "image", "image_url")
)  # fmt: skip
"""Types of message parts. Attached parts hold no text."""


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
    asked: list[Message] = field(default_factory=list)
    replies: list[Message] = field(default_factory=list)


def spoken(facts: dict[str, Any], events: list[Event]) -> Spoken:
    """Return the messages of a model call, from its attributes, else its events, else numbered attributes."""
    for event in events:
        if (event.name or event.eventName) == "gen_ai.client.inference.operation.details":
            facts = {**attributes(event.attributes), **facts}
    exchange = Spoken()
    for instruction in _list(facts.get("gen_ai.system_instructions")):
        exchange.asked += _message({"role": "system", "parts": [instruction]})
    for asked in _list(facts.get("gen_ai.input.messages")):
        exchange.asked += _message(asked)
    for reply in _list(facts.get("gen_ai.output.messages")):
        exchange.replies += _message(reply)
    for event in () if exchange.asked or exchange.replies else events:
        told, body = attributes(event.attributes), plain(event.body)
        name = event.name or event.eventName or told.get("event.name")
        merged = {**told, **body} if isinstance(body, dict) else told
        if name == "gen_ai.content.prompt":
            for message in _list(told.get("gen_ai.prompt")):
                exchange.asked += _message(message)
        elif name == "gen_ai.content.completion":
            for message in _list(told.get("gen_ai.completion")):
                exchange.replies += _message(message)
        elif name == "gen_ai.choice":
            inner = _json(merged.get("message"))
            of = inner if isinstance(inner, dict) else {"content": inner} if isinstance(inner, str) else merged
            exchange.replies += _message({"role": "assistant", "finish_reason": merged.get("finish_reason"), **of})
        elif isinstance(name, str) and name in _ROLES:
            exchange.asked += _message({**merged, "role": _ROLES[name]})
    if not exchange.asked and not exchange.replies:
        exchange.asked = list(_numbered(facts, "gen_ai.prompt"))
        exchange.replies = list(_numbered(facts, "gen_ai.completion"))
    return exchange


def as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError):
        return ""


def _message(raw: object) -> list[Message]:
    """Read a message of either shape: `parts`, or `content` and `tool_calls`."""
    if not isinstance(raw, dict):
        return []
    role, reason = raw.get("role"), raw.get("finish_reason")
    made = Message(role=role if isinstance(role, str) else "assistant")
    made.finish_reason = reason if isinstance(reason, str) else None
    texts: list[str] = []
    # Content may be a list of parts, also one written as JSON.
    value = raw.get("content")
    content = _json(value) if isinstance(value, str) and value.startswith("[{") else value
    for part in (*_list(raw.get("parts")), *(content if isinstance(content, list) else ())):
        _part(part, made, texts)
    if not isinstance(content, list) and value is not None:
        texts.append(as_text(value))
    made.text = "\n".join(t for t in texts if t)
    for call in _list(raw.get("tool_calls")):
        made.calls += _call(call)
    if made.role == "tool" and not made.answers:
        made.answers, made.text = [(as_text(raw.get("id") or raw.get("tool_call_id")), made.text)], ""
    return [made]


def _part(part: object, made: Message, texts: list[str]) -> None:
    """Add one part of a message to it: text, reasoning, a call, or the answer to a call."""
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
    """Yield messages from attributes with numbered names (`NAME.0.role`, `NAME.0.tool_calls.0.name`)."""
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
    """Return a list given as such or as JSON. A single object is a list of one."""
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
_CONVERSATION = "gen_ai.conversation.id"
_USAGE = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
    ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens"),
    ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
)
"""Names of the figures of `Tokens`, in its order."""
_MODEL_CALLS = ("chat", "text_completion", "generate_content", "completion")
_TIER = ("openai.response.service_tier", "gen_ai.openai.response.service_tier")


class Moment(Struct, kw_only=True):
    """A span with its place in the files."""

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
        if self.facts.get("error.type") is None and inside(self.span.status, "code") not in _FAILED:
            return None
        return string(inside(self.span.status, "message")) or as_text(self.facts.get("error.type"))


class Reader(Conversation):
    """Reads the spans of one conversation. A message counts when it first appears: later model calls repeat it."""

    profile = ANYBODY

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.enclosing: dict[tuple[str, str], tuple[str, bool, bool]] = {}
        """The thread of each span, and whether it is or lies in one of an agent, of a model."""
        self.seen: set[tuple[object, ...]] = set()
        self.open: dict[str, list[str]] = {}
        """Calls by tool that may wait for a span. Some have their result already."""

    def build(self, moments: list[Moment]) -> Session:
        """Read spans, which are in order of time."""
        for moment in moments:
            self.builder.artifact_id, self.builder.line = moment.artifact_id, moment.line
            span, is_agent = moment.span, moment.kind == "agent"
            above = self.enclosing.get((span.traceId, span.parentSpanId or ""), (MAIN, False, False))
            thread, in_agent, in_model = above
            self.thread = span.spanId if is_agent and in_agent else thread
            within = (self.thread, in_agent or is_agent, in_model or moment.kind == "model")
            self.enclosing[span.traceId, span.spanId] = within
            if moment.kind == "model" and not in_model:  # a call told by two instrumentations is one
                self.model_call(moment)
            elif moment.kind == "tool":
                self.tool_span(moment)
            elif is_agent:
                self.ask(spoken(moment.facts, moment.events).asked, moment.began)
        return self.builder.finish()

    def is_new(self, message: Message, times: dict[tuple[object, ...], int]) -> bool:
        """Return whether no earlier message of this conversation was the n-th to say the same."""
        same = message.key
        times[same] = times.get(same, 0) + 1
        key = (self.thread, same, times[same])
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def ask(self, messages: list[Message], at: int | None) -> dict[tuple[object, ...], int]:
        """Record those of these messages that are new. Return how often each occurs among them."""
        times: dict[tuple[object, ...], int] = {}
        for message in messages:
            if not self.is_new(message, times):
                continue
            for call_id, text in message.answers:
                if not self.builder.answered(call_id):
                    self.finish(call_id, text, "ok", at)
            if message.role == "assistant":
                self.reply(message, at, None)
                continue
            if message.text and message.role == "user" and self.thread == MAIN:
                self.builder.turn("prompt", message.text, at)
            elif message.text:
                self.event("meta", message.text, at)
            self.builder.unread(message.kinds, PARTS, at, self.thread)
        return times

    def model_call(self, moment: Moment) -> None:
        facts, exchange = moment.facts, spoken(moment.facts, moment.events)
        times = self.ask(exchange.asked, moment.began)
        if (failure := moment.failure) is not None:
            self.event("api_error", failure, moment.ended)
            if not exchange.replies:
                return
        model = facts.get("gen_ai.response.model") or facts.get("gen_ai.request.model")
        step = self.builder.step(None, as_text(model) or None, moment.ended, self.thread)
        step.message_id = as_text(facts.get("gen_ai.response.id")) or None
        figures: list[int | None] = []
        for names in _USAGE:
            logged = next((value for name in names if (value := facts.get(name)) is not None), None)
            number = as_int(logged)
            figures.append(count(logged if number is None else number))
        tokens = Tokens(*figures)
        cached = (tokens.cache_read or 0) + (tokens.cache_write or 0)
        if tokens.input is not None and cached <= tokens.input:
            # The conventions say that input tokens SHOULD include cached ones; not where more were cached.
            tokens = tokens._replace(input=tokens.input - cached)
        charge(step, tokens)
        step.service_tier = special(next((facts[name] for name in _TIER if name in facts), None))
        reasons = facts.get("gen_ai.response.finish_reasons")
        if isinstance(reasons, list) and reasons:
            step.stop_reason = as_text(reasons[0])
        for message in exchange.replies:
            step.stop_reason = step.stop_reason or message.finish_reason
            self.is_new(message, times)
            self.reply(message, moment.ended, step)

    def reply(self, message: Message, at: int | None, step: Step | None) -> None:
        for thought in message.thinking:
            self.event("thinking", thought, at, step)
        if message.text:
            self.event("text", message.text, at, step)
        for call in message.calls:
            call_id = call.id or f"call#{len(self.session.tool_calls)}"
            self.builder.call(call_id, call.name, call.arguments, tool(call.name), at, step, self.thread)
            self.open.setdefault(call.name, []).append(call_id)
        self.builder.unread(message.kinds, PARTS, at, self.thread)

    def tool_span(self, moment: Moment) -> None:
        """Record a tool's span: the answer to the call of that id, else to the oldest open one of its name, else a call
        by itself."""
        facts = moment.facts
        name = as_text(facts.get("gen_ai.tool.name")) or moment.span.name
        call_id = as_text(facts.get("gen_ai.tool.call.id"))
        waiting = self.open.get(name, [])
        while waiting and not call_id:
            oldest = waiting.pop(0)
            call_id = "" if self.builder.answered(oldest) else oldest
        call_id = call_id or moment.span.spanId
        if self.builder.answered(call_id):
            arguments = as_text(facts.get("gen_ai.tool.call.arguments")) or "{}"
            self.builder.call(call_id, name, arguments, tool(name), moment.began, None, self.thread)
        result, failure = as_text(facts.get("gen_ai.tool.call.result")), moment.failure
        text = result if failure is None or failure in result else "\n".join(filter(None, (result, failure)))
        self.finish(call_id, text, "ok" if failure is None else "error", moment.ended)

    def finish(self, call_id: str, text: str, status: CallStatus, at: int | None) -> None:
        call = self.builder.result(call_id, text, status, at)
        if call is not None and call.class_ == "edit" and status == "ok":
            record_arguments(self.builder, call)


class _Seen(Struct):
    """Spans and logs of the files, by trace and span."""

    moments: dict[str, dict[str, Moment]] = field(default_factory=dict)
    logs: dict[str, dict[str, list[Event]]] = field(default_factory=dict)

    def add(self, artifact: Artifact, number: int | None, export: Export) -> None:
        """Count and keep the spans and logs of a batch. `number`: its line."""
        saw(artifact, "batch")
        ordinal = 0  # of the span in its document
        for resource, raw, is_span in _undecoded_records(export):
            artifact.records += 1
            ordinal += is_span
            record: Any = _record(raw, is_span, artifact)
            if record is None:
                skip(artifact, "bad_shape")
            elif not is_span:
                saw(artifact, "log")
                self.logs.setdefault(record.traceId or "", {}).setdefault(record.spanId or "", []).append(record)
            else:
                facts = attributes(record.attributes)
                operation = facts.get("gen_ai.operation.name")
                if operation in ("invoke_agent", "invoke_workflow"):
                    kind = "agent"
                elif operation == "execute_tool" or (operation is None and "gen_ai.tool.name" in facts):
                    kind = "tool"
                else:
                    is_model = operation in _MODEL_CALLS or (operation is None and "gen_ai.request.model" in facts)
                    kind = "model" if is_model else "other"
                moments = self.moments.setdefault(record.traceId, {})
                saw(artifact, "repeated_span" if record.spanId in moments else f"span.{kind}")
                if record.spanId not in moments:
                    moments[record.spanId] = Moment(
                        span=record, kind=kind, facts=facts, artifact_id=artifact.artifact_id,
                        resource=attributes(resource.attributes) if resource is not None else {},
                        line=ordinal if number is None else number, events=list(record.events or ()),
                    )  # fmt: skip

    def take(self, name: str, traces: Iterable[str]) -> list[Session]:
        """Remove these traces and return their session; none if no span is of a model, a tool or an agent."""
        moments: list[Moment] = []
        for trace in traces:
            of_trace, logs = self.moments.pop(trace, {}), self.logs.pop(trace, {})
            for span_id, moment in of_trace.items():
                moment.events += logs.get(span_id, ())
            moments += of_trace.values()
        # By beginning, and longer spans first, so that a span precedes those within it.
        moments.sort(
            key=lambda m: (
                as_int(m.span.startTimeUnixNano) or 0, -(as_int(m.span.endTimeUnixNano) or 0), m.span.spanId,
            )
        )  # fmt: skip
        first = next((m for m in moments if m.kind != "other"), None)
        if first is None:
            return []
        agent = next((m for m in moments if m.kind == "agent"), first)
        named = agent.facts.get("gen_ai.agent.name") or agent.resource.get("service.name")
        version = agent.facts.get("gen_ai.agent.version") or agent.resource.get("service.version")
        agent_name = named if isinstance(named, str) else "unknown"
        session = Session(
            session_id=name, context="product", format="otel-genai", agent=agent_name, artifact_id=first.artifact_id
        )
        session.agent_version = version if isinstance(version, str) else None
        session = Reader(session).build(moments)
        times = [t for m in moments for t in (m.began, m.ended) if t]
        session.started_at, session.ended_at = min(times, default=None), max(times, default=None)
        return [session]


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """Yield each session when the last of its batches is read. A first pass finds that batch. A span that occurs in
    several files counts once."""
    inputs = sorted(inputs, key=lambda i: i.artifact.artifact_id)
    last: dict[str, tuple[int, int]] = {}
    spans: list[tuple[str, Any]] = []
    for n, source in enumerate(inputs):
        for at, (_, export) in enumerate(_exports(source, read_before(source.artifact))):
            for _, raw, is_span in _undecoded_records(export):
                record: Any = _record(raw, is_span, read_before(source.artifact))
                if record is not None:
                    named = [p.value for p in record.attributes if p.key == _CONVERSATION] if is_span else []
                    last[record.traceId or ""] = (n, at)
                    spans.append((record.traceId or "", plain(named[-1]) if named else None))
    groups = _conversations(spans)
    ends: dict[tuple[int, int], list[str]] = {}
    for name, traces in groups.items():
        ends.setdefault(max(last[trace] for trace in traces), []).append(name)
    seen = _Seen()
    for n, source in enumerate(inputs):
        for at, (number, export) in enumerate(_exports(source, source.artifact)):
            seen.add(source.artifact, number, export)
            for name in ends.get((n, at), ()):
                yield Reading(seen.take(name, groups[name]))


def _record(raw: Raw, is_span: bool, artifact: Artifact) -> Span | Event | None:
    """Decode a span or log, if need be without its odd values, which are counted."""
    kind: Any = Span if is_span else Event
    record: Span | Event | None = decoded(raw, kind) or repaired(bytes(raw), artifact, decoder(kind).decode)
    return record


def _conversations(spans: Iterable[tuple[str, Any]]) -> dict[str, list[str]]:
    """Group traces by the conversation that the first of their spans names. `spans`: traces with that name."""
    names: dict[str, str | None] = {}
    for trace, named in spans:
        names[trace] = names.get(trace) or (named if isinstance(named, str) and named else None)
    groups: dict[str, list[str]] = {}
    for trace, name in names.items():
        groups.setdefault(name or trace, []).append(trace)
    return groups


def _exports(source: Input, artifact: Artifact) -> Iterator[tuple[int | None, Export]]:
    """Yield the batches of a file with their lines. A document has no line."""
    start = bytes(source.data[:4096]).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.split(b"\n", 1)[0].strip() == b"{":  # printed over many lines
        export = document(source.data, artifact, decoder(Export).decode)
        if export is not None:
            yield None, export
        return
    yield from lines(source.data, artifact, decoder(Export).decode)


def _undecoded_records(export: Export) -> Iterator[tuple[Resource | None, Raw, bool]]:
    """Yield the spans and logs of a batch, each with its resource, and whether it is a span."""
    for batch in (*(export.resourceSpans or ()), *(export.resourceLogs or ())):
        for scopes in (batch.scopeSpans, batch.scopeLogs, batch.instrumentationLibrarySpans):
            for scope in scopes or ():
                yield from ((batch.resource, raw, True) for raw in scope.spans or ())
                yield from ((batch.resource, raw, False) for raw in scope.logRecords or ())
