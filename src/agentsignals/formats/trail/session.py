"""One TRAIL trace as a session: model calls, tool calls, what the code an agent wrote gave back, and what failed.

smolagents' code agents act by code in their answers. Such an answer is a call of `python_interpreter`, and what its
step gave back is the result. Every model call repeats the conversation so far; only its beginning is taken from there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec import Struct, field

from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.records import saw
from agentsignals.formats.trail.profile import INTERPRETER, PROFILE
from agentsignals.formats.trail.records import Lists, Span, Trace, value_of
from agentsignals.model import MAIN, Artifact, EventKind, Step, ToolCall

_CODE = re.compile(r"```(?:py|python)?[ \t]*\n(.*?)(?:\n```|\Z)|<code>\s*(.*?)(?:</code>|\Z)", re.DOTALL)


class _Open(Struct, kw_only=True):
    """A span that is being read."""

    span: Span
    thread: str
    agent: str | None
    """Span id of the agent it is part of."""
    line: int
    failed_within: bool = False
    code: ToolCall | None = None
    """The call its model made by writing code."""
    asked: dict[str, list[str]] = field(default_factory=dict)
    """Calls its model made that no tool's span has answered yet, by tool."""


class Conversation:
    """Reads a trace. `seqs` then has the first event of each span."""

    def __init__(self, builder: SessionBuilder, artifact: Artifact) -> None:
        self._builder = builder
        self._artifact = artifact
        self._open: list[_Open] = []
        self._prompted: set[str] = set()
        self.seqs: dict[str, int] = {}
        self.agents: list[Span] = []
        self.line = 0

    def read(self, trace: Trace) -> None:
        for span in _walk(trace.spans):
            if span is None:
                self._leave()
            else:
                self._enter(span)

    def _enter(self, span: Span) -> None:
        above = self._open[-1] if self._open else None
        self._artifact.records += 1
        self.line += 1
        thread, agent = (above.thread, above.agent) if above is not None else (MAIN, None)
        kind = span.kind
        if kind == "AGENT":
            thread, agent = (thread if agent is None else span.span_id), span.span_id
        self._open.append(_Open(span=span, thread=thread, agent=agent, line=self.line))
        if span.span_id and span.span_id in self.seqs:
            saw(self._artifact, "repeated_span")  # the exporter wrote some twice
            return
        saw(self._artifact, f"span.{kind.lower() or 'other'}")
        self._builder.line = self.line
        self._first_of(span)
        if kind == "AGENT":
            self.agents.append(span)
            self._task(_task_of(span), span.began, thread)
        elif kind == "LLM":
            self._model(span, thread, above)
        elif kind in ("TOOL", "RETRIEVER"):
            self._tool(span, thread)

    def _first_of(self, span: Span) -> None:
        if span.span_id:
            self.seqs[span.span_id] = len(self._builder.session.events)

    def _leave(self) -> None:
        """The span has ended: what its code gave back, and its failure, unless one within it is the reason."""
        done = self._open.pop()
        self._builder.line = done.line
        failure = done.span.failure
        if self._open and (failure is not None or done.failed_within):
            self._open[-1].failed_within = True
        if done.code is not None:
            message = failure[1] if failure is not None else done.span.text("output.value")
            if failure is not None or message:
                self._builder.result(
                    done.code.call_id, message, "error" if failure is not None else "ok", done.span.ended, done.thread
                )
        elif failure is not None and not done.failed_within and done.span.kind not in ("TOOL", "RETRIEVER"):
            kind: EventKind = "api_error" if done.span.kind == "LLM" else "harness"
            self._builder.event(kind, failure[1], done.span.ended, thread=done.thread)

    # -- what spans say --------------------------------------------------------------------------------------------

    def _task(self, text: str, at: int | None, thread: str) -> None:
        if not text or thread in self._prompted:
            return
        self._prompted.add(thread)
        if thread == MAIN:
            self._builder.turn("prompt", text, at)
        else:
            self._builder.event("meta", text, at, thread=thread)

    def _model(self, span: Span, thread: str, above: _Open | None) -> None:
        lists = Lists(span)
        self._asked(span, lists, thread)
        self._first_of(span)
        answers = list(lists.items("llm.output_messages"))
        if not answers:
            return
        step = self._builder.step(span.span_id or None, span.text("llm.model_name") or None, span.ended, thread)
        _bill(step, span)
        for place in answers:
            text = span.text(f"{place}.message.content") or _parts(span, lists, f"{place}.message.contents")
            if text:
                self._builder.event("text", text, span.ended, step, thread)
            self._calls(span, lists, f"{place}.message.tool_calls", step, thread)
            if above is not None and not above.asked and above.span.kind == "CHAIN":
                self._code(text, span, step, above)

    def _asked(self, span: Span, lists: Lists, thread: str) -> None:
        """The instructions and the task, which stand at the beginning of every call."""
        if thread in self._prompted and f"{thread} system" in self._prompted:
            return
        for place in lists.items("llm.input_messages"):
            role = span.text(f"{place}.message.role")
            text = span.text(f"{place}.message.content") or _parts(span, lists, f"{place}.message.contents")
            if role == "system" and f"{thread} system" not in self._prompted:
                self._builder.event("meta", text, span.began, thread=thread)
            elif role == "user":
                self._task(text, span.began, thread)
                break
        self._prompted.add(f"{thread} system")

    def _calls(self, span: Span, lists: Lists, name: str, step: Step, thread: str) -> None:
        for place in lists.items(name):
            tool = span.text(f"{place}.tool_call.function.name")
            call_id = span.text(f"{place}.tool_call.id") or f"{span.span_id}:{place}"
            arguments = span.text(f"{place}.tool_call.function.arguments") or "{}"
            self._builder.call(call_id, tool, arguments, PROFILE.tool(tool), span.ended, step, thread)
            self._open[-2 if len(self._open) > 1 else -1].asked.setdefault(tool, []).append(call_id)

    def _code(self, text: str, span: Span, step: Step, above: _Open) -> None:
        blocks = [a or b for a, b in _CODE.findall(text)]
        if not blocks or above.code is not None:
            return
        arguments = json.dumps({"code": "\n\n".join(blocks)}, ensure_ascii=False)
        tool = PROFILE.tools[INTERPRETER]
        above.code = self._builder.call(
            f"{above.span.span_id}:code", INTERPRETER, arguments, tool, span.ended, step, above.thread
        )

    def _tool(self, span: Span, thread: str) -> None:
        """A tool's own span. Its call is the model's, when the model named the tool; else the code's it wrote."""
        name = span.text("tool.name") or span.span_name
        call_id = next((c for c in self._waiting(name)), None)
        if call_id is None:
            call_id = span.text("tool_call.id") or span.span_id
            arguments = span.text("input.value") or "{}"
            self._builder.call(call_id, name, arguments, PROFILE.tool(name), span.began, None, thread)
        failure = span.failure
        output = failure[1] if failure is not None else span.text("output.value")
        if failure is not None or output or span.status_code == "Ok":
            self._builder.result(call_id, output, "error" if failure is not None else "ok", span.ended, thread)

    def _waiting(self, name: str) -> Iterator[str]:
        for holder in reversed(self._open):
            ids = holder.asked.get(name)
            if ids:
                yield ids.pop(0)


def _walk(spans: list[Span]) -> Iterator[Span | None]:
    """Each span before those within it; None when one is done."""
    stack: list[Iterator[Span]] = [iter(spans)]
    while stack:
        span = next(stack[-1], None)
        if span is not None:
            yield span
            stack.append(iter(span.child_spans or ()))
        else:
            stack.pop()
            if stack:
                yield None


def _task_of(span: Span) -> str:
    task_input = span.text("input.value")
    if task_input.startswith("{"):
        value = value_of(task_input.encode("utf-8", "replace"))  # type: ignore[arg-type]  # any bytes will do
        task = value.get("task") if isinstance(value, dict) else None
        return task if isinstance(task, str) else task_input
    return task_input


def _parts(span: Span, lists: Lists, name: str) -> str:
    texts = (span.text(f"{place}.message_content.text") for place in lists.items(name))
    return "\n".join(t for t in texts if t)


def _bill(step: Step, span: Span) -> None:
    """Prompt tokens count the cached ones too (OpenInference's convention)."""
    prompt = span.count("llm.token_count.prompt")
    read = span.count("llm.token_count.prompt_details.cache_read")
    write = span.count("llm.token_count.prompt_details.cache_write")
    step.input_tokens = None if prompt is None else max(prompt - (read or 0) - (write or 0), 0)
    step.output_tokens = span.count("llm.token_count.completion")
    step.cache_read_tokens, step.cache_write_tokens = read, write
    step.reasoning_tokens = span.count("llm.token_count.completion_details.reasoning")
