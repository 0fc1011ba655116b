"""Read TRAIL traces (design/formats.md#trail): each a session with its attempt, and people's annotations of the same id
as labels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.patches import looks_like_diff, patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import IMPOSSIBLE, count
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import each
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.records import UNREADABLE, document, saw, skip
from agentsignals.formats.trail import INTERPRETER, PROFILE, trace_id_of
from agentsignals.model import (
    MAIN,
    Artifact,
    Attempt,
    Event,
    EventKind,
    Label,
    Session,
    Statement,
    Step,
    ToolCall,
    logged_iso,
)

DEEPEST = 64
"""Spans within spans that are read one by one, when they can't be read in one go."""
_LONGEST_NAME = 200
_DURATION = re.compile(r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,12})?)S)?)?\Z")


class Happening(Struct, gc=False):
    """An event of a span."""

    Name: str | None = None
    Timestamp: str | None = None
    Attributes: dict[str, Any] = {}


class Log(Struct, gc=False):
    body: Any = None


class Span(Struct, kw_only=True):
    """One span with those within it."""

    span_id: str = ""
    span_name: str = ""
    timestamp: str | None = None
    duration: str | None = None
    status_code: str | None = None
    status_message: str | None = None
    span_attributes: dict[str, Raw] = {}
    events: list[Happening] | None = None
    logs: list[Log] | None = None
    child_spans: list[Span] | None = None

    @property
    def kind(self) -> str:
        """Return OpenInference's kind: `LLM`, `TOOL`, `AGENT`, `CHAIN`; empty for other spans."""
        return self.text("openinference.span.kind").upper()

    @property
    def began(self) -> int | None:
        return logged_iso(self.timestamp)

    @property
    def ended(self) -> int | None:
        began, took = self.began, duration_us(self.duration)
        return None if began is None or took is None else began + took

    def text(self, name: str) -> str:
        """An attribute as text; nothing when there is none."""
        value = value_of(self.span_attributes.get(name))
        if isinstance(value, str):
            return value
        return "" if value is None else json.dumps(value, ensure_ascii=False)

    def count(self, name: str) -> int | None:
        """An attribute that is a number, or a number written as text."""
        text = self.text(name)
        if not text:
            return None
        return count(int(text)) if text.isascii() and text.isdigit() and len(text) < 16 else IMPOSSIBLE

    @property
    def failure(self) -> tuple[str, str] | None:
        """Type and message of the exception it ended with."""
        for event in self.events or ():
            if event.Name == "exception":
                attributes = event.Attributes
                return str(attributes.get("exception.type") or ""), str(attributes.get("exception.message") or "")
        return ("", self.status_message or "") if self.status_code == "Error" else None


class Lists:
    """Lists in the attributes of a span. OpenInference puts the items' numbers into the names of attributes."""

    def __init__(self, span: Span) -> None:
        self._items: set[str] = set()
        for name in span.span_attributes:
            parts = name.split(".") if len(name) <= _LONGEST_NAME else ()
            self._items.update(".".join(parts[: n + 1]) for n, part in enumerate(parts) if part.isdigit())

    def items(self, name: str) -> Iterator[str]:
        """`name.0`, `name.1` … as far as there are any."""
        n = 0
        while f"{name}.{n}" in self._items:
            yield f"{name}.{n}"
            n += 1


class LooseSpan(Span, kw_only=True):
    """A span of which some part is malformed."""

    child_spans: list[Raw] | None = None  # type: ignore[assignment]  # decoded one by one


class Trace(Struct):
    trace_id: str = ""
    spans: list[Span] = []


class LooseTrace(Struct):
    trace_id: str = ""
    spans: list[Raw] = []


class Error(Struct, gc=False):
    """An error that a person marked. Some have stray keys, which say nothing."""

    category: str
    location: str | None = None
    evidence: str | None = None
    description: str | None = None
    impact: str | None = None


class Annotations(Struct):
    trace_id: str | None = None
    errors: list[Raw] = []
    scores: list[Raw] = []


_trace = msgspec.json.Decoder(Trace).decode
_loose_trace = msgspec.json.Decoder(LooseTrace).decode
_span = msgspec.json.Decoder(Span).decode
_loose_span = msgspec.json.Decoder(LooseSpan).decode
_any = msgspec.json.Decoder().decode
_error = msgspec.json.Decoder(Error).decode
_scores = msgspec.json.Decoder(dict[str, Any]).decode
decode_annotations = msgspec.json.Decoder(Annotations).decode


class Skipped(Struct):
    """Counts of spans and marks that could not be read."""

    spans: int = 0


def decode_trace(data: memoryview | bytes, artifact: Artifact) -> tuple[Trace, Skipped]:
    """A trace; when a span in it is odd, without that span."""
    skipped = Skipped()
    try:
        return _trace(data), skipped
    except msgspec.ValidationError:
        loose = _loose_trace(data)
        return Trace(loose.trace_id, _spans(loose.spans, skipped, 0, artifact)), skipped


def _spans(raws: list[Raw], skipped: Skipped, depth: int, artifact: Artifact) -> list[Span]:
    spans: list[Span] = []
    for raw in raws:
        span = each([raw], _span, artifact)[0]
        if span is None:
            loose = each([raw], _loose_span, artifact)[0]
            if loose is None or depth >= DEEPEST:
                skipped.spans += 1
                continue
            within = _spans(list(loose.child_spans or ()), skipped, depth + 1, artifact)
            values = {name: getattr(loose, name) for name in Span.__struct_fields__}
            span = Span(**{**values, "child_spans": within})
        spans.append(span)
    return spans


def errors_of(annotations: Annotations, artifact: Artifact) -> list[Error | None]:
    return each(annotations.errors, _error, artifact)


def scores_of(annotations: Annotations, artifact: Artifact) -> list[dict[str, Any] | None]:
    return each(annotations.scores, _scores, artifact)


def value_of(raw: Raw | None) -> Any:
    """A JSON value; None for none."""
    try:
        return _any(raw) if raw else None
    except UNREADABLE:
        return None


def duration_us(text: str | None) -> int | None:
    """An ISO 8601 duration (`PT2M5.65S`) in microseconds; None for what is none, or has months."""
    match = _DURATION.match(text) if text and text not in ("P", "PT") else None
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000)


LABELLER = "human"
ERROR = "trail_error"
_SCORES = {
    "reliability_score": "trail_reliability",
    "security_score": "trail_security",
    "instruction_adherence_score": "trail_instruction_adherence",
    "plan_opt_score": "trail_plan_opt",
    "overall": "trail_overall",
}
"""Scores from 1 to 5. Seed 003 has words for some of them (`optimal` …); the annotators gave numbers, kept as such."""
_MISSPELT = {"complience": "compliance", "retreival": "retrieval", "retrival": "retrieval", "formating": "formatting",
             "langauge": "language"}  # fmt: skip


def labels(
    errors: list[Error], scores: list[dict[str, Any]], seqs: Mapping[str, int], events: list[Event]
) -> Iterator[Label]:
    """`seqs` has the first event of each span. An error marked anywhere else is of the whole trace."""
    for error in errors:
        seq = seqs.get(error.location or "")
        if seq is not None:
            seq = min(seq, len(events) - 1) if events else None  # a last span may leave no event
        detail = {
            "category": error.category,
            "location": error.location,
            "impact": error.impact,
            "evidence": error.evidence,
        }
        yield Label(
            task=ERROR,
            labeller=LABELLER,
            turn=events[seq].turn if seq is not None else None,
            value=category_of(error.category),
            reason=error.description,
            seq=seq,
            detail=json.dumps(detail, ensure_ascii=False),
        )
    for entry in scores:
        for key, task in _SCORES.items():
            value = entry.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                reason = entry.get(f"{key.removesuffix('_score')}_reasoning")
                told_why = reason if isinstance(reason, str) else None
                yield Label(
                    task=task, labeller=LABELLER, turn=None, value=f"{value:g}", reason=told_why, number=float(value)
                )


def category_of(raw: str) -> str:
    """A category in one spelling: `Formatting Errors ` and `formatting error` are `formatting_error`."""
    words = re.findall(r"[a-z]+", raw.lower()[:200])
    words = [_MISSPELT.get(w, w) for w in words]
    if words and words[-1].endswith("s") and not words[-1].endswith("ss"):
        words[-1] = words[-1][:-1]
    return "_".join(words)


# smolagents' code agents act by code in their answers. Such an answer is a call of `python_interpreter`, and its step's
# output is the result. Every model call repeats the conversation so far, so only its beginning is read from there.

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
        # Prompt tokens count the cached ones too (OpenInference's convention).
        prompt = span.count("llm.token_count.prompt")
        read = span.count("llm.token_count.prompt_details.cache_read")
        write = span.count("llm.token_count.prompt_details.cache_write")
        step.input_tokens = None if prompt is None else max(prompt - (read or 0) - (write or 0), 0)
        step.output_tokens = span.count("llm.token_count.completion")
        step.cache_read_tokens, step.cache_write_tokens = read, write
        step.reasoning_tokens = span.count("llm.token_count.completion_details.reasoning")
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


_SHOWN_CHARS = 400


class _Marks(Struct):
    """Annotations of one trace."""

    errors: list[Error] = field(default_factory=list)
    scores: list[dict[str, Any]] = field(default_factory=list)
    sources: list[Input] = field(default_factory=list)


def read(inputs: list[Input]) -> Reading:
    """All files about the same traces. Of two copies of a trace the larger counts, of two annotations the first."""
    reading = Reading()
    marks: dict[str, _Marks] = {}
    traces: dict[str, tuple[Input, Trace]] = {}
    for source in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.artifact_id)):
        if b'"spans"' in source.data[:65536]:
            trace = _trace_files(source)
            if trace is not None and traces.setdefault(trace.trace_id, (source, trace))[1] is not trace:
                source.artifact.note = f"a copy of {traces[trace.trace_id][0].artifact.path}, which counts"
        else:
            _annotations(source, marks)
    for trace_id, (source, trace) in sorted(traces.items()):
        trace_marks = marks.pop(trace_id, _Marks())
        session, part = _session(source, trace, trace_marks)
        reading.sessions.append(session)
        reading.attempts.append(part)
    for without in marks.values():
        for source in without.sources:
            source.artifact.note = "annotations of a trace that is not among the files"
    return reading


def _trace_files(source: Input) -> Trace | None:
    decoded = read_document(source, partial(decode_trace, artifact=source.artifact), "spans")
    if decoded is None:
        return None
    trace, skipped = decoded
    for _ in range(skipped.spans):
        source.artifact.records += 1
        skip(source.artifact, "bad_shape")
    trace.trace_id = trace.trace_id or source.artifact.artifact_id
    return trace


def _annotations(source: Input, marks: dict[str, _Marks]) -> None:
    annotations = document(source.data, source.artifact, decode_annotations)
    if annotations is None:
        return
    saw(source.artifact, "annotations")
    trace_marks = marks.setdefault(trace_id_of(annotations.trace_id, source.artifact.path), _Marks())
    repeated = bool(trace_marks.sources)
    trace_marks.sources.append(source)
    for error in errors_of(annotations, source.artifact):
        source.artifact.records += 1
        if error is None:
            skip(source.artifact, "bad_shape")
        else:
            saw(source.artifact, "error")
            trace_marks.errors += [] if repeated else [error]
    for scores in scores_of(annotations, source.artifact):
        source.artifact.records += 1
        if scores is None:
            skip(source.artifact, "bad_shape")
        else:
            saw(source.artifact, "scores")
            trace_marks.scores += [] if repeated else [scores]


def _session(source: Input, trace: Trace, marks: _Marks) -> tuple[Session, Attempt]:
    artifact = source.artifact
    session = Session(
        session_id=trace.trace_id, context="eval", format="trail", agent="", artifact_id=artifact.artifact_id
    )
    builder = SessionBuilder(session, PROFILE)
    conversation = Conversation(builder, artifact)
    conversation.read(trace)
    builder.finish()
    part = _part(source, trace, conversation, session)
    session.agent = str(part.observed.get("agent_type") or "smolagents")
    session.labels = list(labels(marks.errors, marks.scores, conversation.seqs, session.events))
    lost = sum(e.location not in conversation.seqs for e in marks.errors)
    for annotation_file in marks.sources[:1] if lost else ():
        annotation_file.artifact.note = f"{lost} of {len(marks.errors)} errors are marked at no span of the trace"
    return session, part


def _part(source: Input, trace: Trace, conversation: Conversation, session: Session) -> Attempt:
    """Return the attempt as the spans around the agent describe it: task, gold patch, answer, duration, end."""
    artifact_id = source.artifact.artifact_id
    agent = conversation.agents[0] if conversation.agents else None
    root = trace.spans[0] if len(trace.spans) == 1 else None
    part = Attempt(root=f"trail:{trace.trace_id}", trial_id=trace.trace_id)
    part.session_artifact, part.session_id = artifact_id, session.session_id
    attributes = [span for span in (agent, *trace.spans) if span is not None]
    observed = {
        "model_id": session.model,
        "agent_type": agent.span_name.partition(".")[0] if agent is not None else None,
        "dataset": next((t for s in attributes if (t := s.text("pat.app"))), None),
        "max_steps": agent.count("smolagents.max_steps") if agent is not None else None,
        "tools": agent.text("smolagents.tools_names") or None if agent is not None else None,
    }
    part.observed = {k: v for k, v in observed.items() if v}
    _item(part, trace, session, artifact_id)
    answer = agent.text("output.value") if agent is not None else ""
    if looks_like_diff(answer):
        part.patch, part.patch_text_bytes = patched_files(answer), len(answer.encode("utf-8", "replace"))
        part.kinds.append("patch")
        part.statements.append(
            Statement(text=f"answer: {answer[:_SHOWN_CHARS]}", artifact_id=artifact_id, line=1, fields=["patch"])
        )
    for span in (agent, root):
        failure = span.failure if span is not None else None
        if failure is not None:
            part.exit_status, part.exception = "error", failure[0].rpartition(".")[2] or None
            part.statements.append(
                Statement(
                    text=f"ended with {failure[0]}: {failure[1][:_SHOWN_CHARS]}",
                    artifact_id=artifact_id,
                    line=1,
                    fields=["exit_status", "exception"],
                )
            )
            break
    else:
        part.exit_status = "completed" if answer else None
    outer = root or agent
    if outer is not None:
        part.wall_time_s = _seconds(outer)
        part.started_at, part.ended_at = outer.began, outer.ended
    if agent is not None:
        part.agent_time_s = _seconds(agent)
        part.input_tokens = agent.count("llm.token_count.prompt")
        part.output_tokens = agent.count("llm.token_count.completion")
    return part


def _item(part: Attempt, trace: Trace, session: Session, artifact_id: str) -> None:
    """The task as the harness was given it; a row of SWE-bench has its gold patch."""
    for span in trace.spans:
        for log in span.logs or ():
            arguments = log.body.get("function.arguments") if isinstance(log.body, dict) else None
            item = arguments.get("item") if isinstance(arguments, dict) else None
            if not isinstance(item, dict):
                continue
            named = item.get("instance_id") or item.get("task_id")
            part.task_id = named if isinstance(named, str) else None
            session.repo = item["repo"] if isinstance(item.get("repo"), str) else session.repo
            gold = item.get("patch")
            if isinstance(gold, str) and looks_like_diff(gold):
                part.gold_patch = patched_files(gold)
                part.kinds.append("gold_patch")
                text = f"task {named}, gold patch of {', '.join(f.path for f in part.gold_patch)}"
                part.statements.append(
                    Statement(text=text, artifact_id=artifact_id, line=1, fields=["task_id", "gold_patch"])
                )
            return


def _seconds(span: Span) -> float | None:
    took = duration_us(span.duration)
    return None if took is None else took / 1_000_000
