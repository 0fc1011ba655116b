"""What the extension's traces say of a chat: each call of the model with its tokens, each tool with its times."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats import Input
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import each, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.otel_genai.reader import PARTS, Message, as_int, spoken
from agentsignals.formats.records import UNREADABLE
from agentsignals.formats.vscode_copilot import PARENT, PROFILE, WRITTEN
from agentsignals.formats.vscode_copilot import records as calls
from agentsignals.formats.vscode_copilot import records as edits
from agentsignals.formats.vscode_copilot.records import Asked, id_of, result_text
from agentsignals.model import MAIN, Session, Step, logged_ms

_NEAR_US = 60_000_000
"""A request and its agent's span begin within a minute."""
_ERROR = 2
"""Of a span (`status_code`); 0 says nothing, as of model calls that went well."""
_AGENT, _MODEL, _TOOL = "invoke_agent", "chat", "execute_tool"
_MODELS_TOO = frozenset((_MODEL, "text_completion", "generate_content"))


class Span(Struct, gc=False, kw_only=True):
    """A row, with the attributes that are read."""

    span_id: str
    parent_span_id: str | None = None
    operation_name: str | None = None
    agent_name: str | None = None
    start_time_ms: object = None
    end_time_ms: object = None
    status_code: object = None
    status_message: str | None = None
    request_model: str | None = None
    response_model: str | None = None
    input_tokens: object = None
    output_tokens: object = None
    cached_tokens: object = None
    reasoning_tokens: object = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    facts: dict[str, str | None] = {}
    prompt: object = None

    @property
    def kind(self) -> str:
        """As it is counted."""
        kinds = {_AGENT: "agent", _TOOL: "tool", "execute_hook": "hook"}
        return "model" if self.operation_name in _MODELS_TOO else kinds.get(self.operation_name or "", "other")

    @property
    def began(self) -> int | None:
        return logged_ms(self.start_time_ms)

    @property
    def ended(self) -> int | None:
        return logged_ms(self.end_time_ms)

    @property
    def text(self) -> str:
        """Of an agent's span, what it was asked."""
        prompt = self.prompt if isinstance(self.prompt, str) else self.facts.get("copilot_chat.user_request")
        return (prompt or "").strip()

    @property
    def failure(self) -> str | None:
        """What it failed with."""
        failed = self.status_code == _ERROR
        return (self.status_message or self.facts.get("error.type") or "failed") if failed else None

    @property
    def result(self) -> str:
        """Of a tool's span, what it returned: a text, or a tree of the extension's prompts as JSON."""
        text = self.facts.get("gen_ai.tool.call.result") or ""
        if not text.startswith('{"node"'):
            return text
        try:
            return result_text([{"value": msgspec.json.decode(text)}])
        except UNREADABLE:
            return text

    @property
    def replies(self) -> list[Message]:
        return spoken(dict(self.facts), []).replies

    @property
    def repository(self) -> tuple[str | None, str | None]:
        """Of an agent's span: its address and the branch."""
        names = ("copilot_chat.repo.remote_url", "copilot_chat.repo.head_branch_name")
        return self.facts.get(names[0]), self.facts.get(names[1])

    @property
    def chat_above(self) -> str | None:
        return self.facts.get(PARENT)


class Document(Struct):
    chatSessionId: str
    spans: list[Raw] = field(default_factory=list)


class Turn(Struct):
    """An agent's span, and the calls of the model within it that are not a subagent's."""

    agent: Span
    calls: list[Span]


_document = msgspec.json.Decoder(Document).decode
_span = msgspec.json.Decoder(Span).decode


class Traces:
    """The spans of one chat, of one database or several copies of it."""

    def __init__(self, sources: Iterable[tuple[Input, Document]]) -> None:
        self.places: dict[str, tuple[str, int]] = {}
        """The file and record of each span."""
        spans: dict[str, Span] = {}
        for source, document in sources:
            decoded = each(document.spans, _span, source.artifact)
            tally(source.artifact, "span", [None if span is None else span.kind for span in decoded])
            for n, span in enumerate(decoded, 1):
                if span is not None and span.span_id not in spans:
                    spans[span.span_id] = span
                    self.places[span.span_id] = source.artifact.artifact_id, n
        self.spans = sorted(spans.values(), key=lambda span: (span.began or 0, -(span.ended or 0)))
        self._spans = spans
        self.tools = {id_of(s.tool_call_id): s for s in reversed(self.spans) if s.kind == "tool" and s.tool_call_id}
        self.turns = [
            Turn(agent, [s for s in self.spans if s.kind == "model" and self._agent(s) is agent])
            for agent in self.spans
            if agent.kind == "agent" and self._agent(agent) is None
        ]

    def take(self, text: str, at: int | None) -> Turn | None:
        """The turn of a request, which is then taken out."""
        for turn in self.turns:
            began = turn.agent.began
            if at is None or began is None or abs(began - at) > _NEAR_US or turn.agent.text not in ("", text):
                continue
            self.turns = [other for other in self.turns if other is not turn]
            return turn
        return None

    def thread(self, span: Span) -> str:
        """Main, a subagent's, or what a call outside all of them is for (`title`)."""
        agent = self._agent(span)
        if span.kind == "agent":
            return MAIN if agent is None else span.span_id
        if agent is None:
            return span.agent_name or "aside"
        return MAIN if self._agent(agent) is None else agent.span_id

    def outermost(self, span: Span) -> str | None:
        """The id of the agent's span that it is, or lies within, and that lies within none."""
        agent = span if span.kind == "agent" else self._agent(span)
        seen: set[str] = set()
        while agent is not None and agent.span_id not in seen and (above := self._agent(agent)) is not None:
            seen.add(agent.span_id)
            agent = above
        return agent.span_id if agent is not None else None

    def _agent(self, span: Span) -> Span | None:
        """The nearest agent's span that it lies within."""
        seen = {span.span_id}
        at = self._spans.get(span.parent_span_id or "")
        while at is not None and at.span_id not in seen:
            if at.kind == "agent":
                return at
            seen.add(at.span_id)
            at = self._spans.get(at.parent_span_id or "")
        return None


def opened(source: Input) -> Document | None:
    """The document of a file."""
    return read_document(source, _document, "spans")


def charge(step: Step, span: Span) -> None:
    """The tokens of a call, those read from the cache and written to it apart: they are part of the input's."""
    total, read = count(span.input_tokens), count(span.cached_tokens)
    logged = span.facts.get(WRITTEN)
    written = count(as_int(logged) if as_int(logged) is not None else logged)
    cached = (read or 0) + (written or 0)
    step.input_tokens = total - cached if total is not None and cached <= total else total
    step.output_tokens, step.cache_read_tokens = count(span.output_tokens), read
    step.cache_write_tokens, step.reasoning_tokens = written, count(span.reasoning_tokens)
    step.model = span.response_model or span.request_model or step.model
    step.timestamp = span.began
    try:
        reasons = msgspec.json.decode(span.facts.get("gen_ai.response.finish_reasons") or "[]", type=list[str])
    except UNREADABLE:
        reasons = []
    step.stop_reason = reasons[0] if reasons else None


# A chat of which the traces alone are there, as a session.

_REPOSITORY = re.compile(r"[:/]([^/:\s]+/[^/:\s]+?)(?:\.git)?/*\Z")


def read(session: Session, traces: Traces, folder: str | None) -> Session:
    """The session of these spans, which say no folder themselves."""
    builder = SessionBuilder(session, PROFILE)
    builder.where(folder)
    reader = Follower(builder, traces)
    for span in traces.spans:
        reader.take(span)
    return builder.finish()


def describe(builder: SessionBuilder, remote: object, branch: object) -> None:
    """The repository, by its address, and the branch."""
    named = _REPOSITORY.search(remote) if isinstance(remote, str) else None
    if named is not None and builder.session.repo is None:
        builder.session.repo = named[1]
    builder.where(None, branch if isinstance(branch, str) else None)


class Follower:
    """Adds spans to a session, in order."""

    def __init__(self, builder: SessionBuilder, traces: Traces) -> None:
        self.builder = builder
        self._traces = traces
        self._touched: set[str] = set()

    def take(self, span: Span) -> None:
        self.builder.artifact_id, self.builder.line = self._traces.places[span.span_id]
        thread = self._traces.thread(span)
        if span.kind == "agent":
            self._agent(span, thread)
        elif span.kind == "model":
            self._model(span, thread)
        elif span.kind == "tool" and span.tool_call_id:  # without an id the program called it
            self._tool(span, span.tool_call_id, thread)

    def _agent(self, span: Span, thread: str) -> None:
        describe(self.builder, *span.repository)
        session = self.builder.session
        session.parent_session_id = session.parent_session_id or span.chat_above
        if not span.text:
            return
        if thread == MAIN and session.parent_session_id is None:
            self.builder.turn("prompt", span.text, span.began, span.request_model)
        else:
            self.builder.event("meta", span.text, span.began, None, thread)

    def _model(self, span: Span, thread: str) -> None:
        builder = self.builder
        if span.failure is not None:
            builder.event("api_error", span.failure, span.ended, None, thread)
        step = builder.step(span.span_id, None, span.began, thread)
        charge(step, span)
        for message in span.replies:
            for thought in message.thinking:
                builder.event("thinking", thought, span.ended, step, thread)
            if message.text:
                builder.event("text", message.text, span.ended, step, thread)
            for call in message.calls:
                calls.begin(builder, Asked(call.id, call.name, call.arguments), span.ended, step, thread)
            builder.unread(message.kinds, PARTS, span.ended, thread)

    def _tool(self, span: Span, call_id: str, thread: str) -> None:
        """Some tools run another one under the same id: the first is what the model called."""
        builder, name = self.builder, span.tool_name or ""
        if not builder.calls_of(call_id):
            arguments = span.facts.get("gen_ai.tool.call.arguments")
            calls.begin(builder, Asked(call_id, name, arguments), span.began, None, thread)
        elif builder.answered(call_id):
            return
        text = span.result if span.failure is None else "\n".join(t for t in (span.result, span.failure) if t)
        status = calls.status(None, text, was_answered=True) or "ok"
        if status == "ok" and span.failure is not None:
            status = "error"
        call = builder.result(call_id, text, status, span.ended, thread, calls.printed_code(name, text))
        if call is None:
            return
        call.started_at = span.began
        if call.status == "ok" and call.class_ == "edit":
            edits.Changes(()).record(builder, call, self._touched)
        if call.path:
            self._touched.add(call.path)
