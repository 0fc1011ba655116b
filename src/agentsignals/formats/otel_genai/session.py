"""Spans of one conversation, in order of time, as a session."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from agentsignals.formats import any_agent as agents
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.edit_arguments import record_arguments
from agentsignals.formats.figures import count
from agentsignals.formats.otel_genai.messages import PARTS, Message, as_text, spoken
from agentsignals.formats.otel_genai.records import Event, Span, as_int, at_us
from agentsignals.formats.served import special
from agentsignals.model import MAIN, CallStatus, Session, Step

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
        """What it failed with."""
        status = self.span.status
        if self.facts.get("error.type") is None and (status is None or status.code not in _FAILED):
            return None
        return (status.message if status is not None else None) or as_text(self.facts.get("error.type"))


class _Above(Struct, frozen=True):
    """What a span lies within."""

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
        self._touched: set[str] = set()
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
        """What is new of these messages; gives how often each stands among them."""
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
        _bill(step, moment.facts)
        reasons = moment.facts.get("gen_ai.response.finish_reasons")
        if isinstance(reasons, list) and reasons:
            step.stop_reason = as_text(reasons[0])
        for message in exchange.replies:
            step.stop_reason = step.stop_reason or message.finish_reason
            self._is_new(message, times, thread)
            self._reply(message, moment.ended, step, thread)

    def _is_new(self, message: Message, times: dict[tuple[object, ...], int], thread: str) -> bool:
        """Whether nothing in this conversation said the same for the n-th time before."""
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
            record_arguments(self._builder, call, self._touched)
        if call.path:
            self._touched.add(call.path)


def _bill(step: Step, facts: dict[str, Any]) -> None:
    """Input tokens count the cached ones (the conventions say SHOULD), unless more were cached than counted."""
    total_input, out, read, write, reasoning = (_count(facts, k) for k in (_INPUT, _OUTPUT, _READ, _WRITE, _REASONING))
    cached = (read or 0) + (write or 0)
    step.input_tokens = total_input - cached if total_input is not None and cached <= total_input else total_input
    step.output_tokens, step.cache_read_tokens, step.cache_write_tokens = out, read, write
    step.reasoning_tokens = reasoning
    step.service_tier = special(next((facts[name] for name in _TIER if name in facts), None))


def _count(facts: dict[str, Any], names: tuple[str, ...]) -> int | None:
    return next((n for name in names if (n := _tokens(facts.get(name))) is not None), None)


def _tokens(value: object) -> int | None:
    n = as_int(value)
    return count(value if n is None else n)
