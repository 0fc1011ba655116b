"""Read TRAIL traces (design/formats.md#trail): each a session with its attempt, and people's annotations of the same id
as labels."""

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
from agentsignals.formats.builder import Tokens, charge
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import each
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.records import as_text, decoded, decoder, document, inside, saw, skip
from agentsignals.formats.trail import INTERPRETER, PROFILE, trace_id_of
from agentsignals.model import MAIN, Artifact, Attempt, CallStatus, Event, Label, Session, ToolCall, logged_iso

DEEPEST = 64
"""Spans within spans that are read one by one, when they can't be read in one go."""
_LONGEST_NAME = 200
_DURATION = re.compile(r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,12})?)S)?)?\Z")


class Span(Struct, kw_only=True):
    """One span with those within it."""

    span_id: str = ""
    span_name: str = ""
    timestamp: str | None = None
    duration: str | None = None
    status_code: str | None = None
    status_message: str | None = None
    span_attributes: dict[str, Raw] = {}
    events: list[dict[str, Any]] | None = None
    logs: list[dict[str, Any]] | None = None
    child_spans: "list[Span] | None" = None

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
        return as_text(decoded(self.span_attributes.get(name), Any))

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
            if event.get("Name") == "exception":
                said = (inside(event, "Attributes", f"exception.{name}") for name in ("type", "message"))
                type_, message = (str(text or "") for text in said)
                return type_, message
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


def decode_trace(data: memoryview | bytes, artifact: Artifact) -> Trace:
    """A trace; when a span in it is odd, without that span, which is counted."""
    try:
        trace: Trace = decoder(Trace).decode(data)
    except msgspec.ValidationError:
        loose = decoder(LooseTrace).decode(data)
        trace = Trace(loose.trace_id, _spans(loose.spans, 0, artifact))
    return trace


def _spans(raws: list[Raw], depth: int, artifact: Artifact) -> list[Span]:
    spans: list[Span] = []
    for raw in raws:
        (span,) = each([raw], decoder(Span).decode, artifact)
        if span is None:
            (loose,) = each([raw], decoder(LooseSpan).decode, artifact)
            if loose is None or depth >= DEEPEST:
                artifact.records += 1
                skip(artifact, "bad_shape")
                continue
            values = {name: getattr(loose, name) for name in Span.__struct_fields__}
            within = _spans(list(loose.child_spans or ()), depth + 1, artifact)
            span = Span(**{**values, "child_spans": within})
        spans.append(span)
    return spans


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
        seq = seqs.get(error.location) if error.location else None
        if seq is not None:
            seq = min(seq, len(events) - 1) if events else None  # a last span may leave no event
        detail = {name: getattr(error, name) for name in ("category", "location", "impact", "evidence")}
        yield Label(
            task=ERROR, labeller=LABELLER, turn=events[seq].turn if seq is not None else None, seq=seq,
            value=category_of(error.category), reason=error.description, detail=json.dumps(detail, ensure_ascii=False),
        )  # fmt: skip
    for entry in scores:
        for key, task in _SCORES.items():
            value = entry.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                reason = entry.get(f"{key.removesuffix('_score')}_reasoning")
                label = Label(task=task, labeller=LABELLER, turn=None, value=f"{value:g}", number=float(value))
                label.reason = reason if isinstance(reason, str) else None
                yield label


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


_TOKENS = (
    "prompt", "completion", "prompt_details.cache_read", "prompt_details.cache_write", "completion_details.reasoning"
)  # fmt: skip
"""Figures of a model call. Those of the prompt include the cached ones (OpenInference's convention)."""


class _Open(Struct, kw_only=True):
    """A span that is being read."""

    span: Span
    thread: str
    agent: str | None
    """Span id of the agent that it is part of."""
    line: int
    failed_within: bool = False
    code: ToolCall | None = None
    """The call that its model made by writing code."""
    asked: dict[str, list[str]] = field(default_factory=dict)
    """Calls of its model that no tool's span has answered yet, by tool."""


class Reader(Conversation):
    """Reads a trace. `seqs` then holds the first event of each span."""

    profile = PROFILE

    def __init__(self, session: Session, artifact: Artifact) -> None:
        super().__init__(session)
        self.artifact = artifact
        self.open: list[_Open] = []
        self.prompted: set[str] = set()
        self.seqs: dict[str, int] = {}
        self.agents: list[Span] = []
        self.line = 0

    def build(self, trace: Trace) -> Session:
        """Enter each span before those within it, and leave it after them."""
        stack: list[Iterator[Span]] = [iter(trace.spans)]
        while stack:
            span = next(stack[-1], None)
            if span is not None:
                self.enter(span)
                stack.append(iter(span.child_spans or ()))
            else:
                stack.pop()
                if stack:
                    self.leave()
        return self.builder.finish()

    def enter(self, span: Span) -> None:
        above = self.open[-1] if self.open else None
        self.artifact.records += 1
        self.line += 1
        thread, agent = (above.thread, above.agent) if above is not None else (MAIN, None)
        kind = span.kind
        if kind == "AGENT":
            thread, agent = (thread if agent is None else span.span_id), span.span_id
        self.open.append(_Open(span=span, thread=thread, agent=agent, line=self.line))
        if span.span_id and span.span_id in self.seqs:
            saw(self.artifact, "repeated_span")  # the exporter wrote some twice
            return
        saw(self.artifact, f"span.{kind.lower() or 'other'}")
        self.thread, self.builder.line = thread, self.line
        self.seqs[span.span_id] = len(self.session.events)
        if kind == "AGENT":
            self.agents.append(span)
            task = span.text("input.value")
            if task.startswith("{"):
                named = (decoded(task.encode("utf-8", "replace"), dict[str, Any]) or {}).get("task")
                task = named if isinstance(named, str) else task
            self.task(task, span.began)
        elif kind == "LLM":
            self.model_call(span, above)
        elif kind in ("TOOL", "RETRIEVER"):
            self.tool_span(span)

    def leave(self) -> None:
        """Record the output of a span's code, and its failure, unless a span within it is the reason."""
        done = self.open.pop()
        span, failure = done.span, done.span.failure
        self.thread, self.builder.line = done.thread, done.line
        if self.open and (failure is not None or done.failed_within):
            self.open[-1].failed_within = True
        if done.code is not None:
            self.output(span, done.code.call_id, is_done=False)
        elif failure is not None and not done.failed_within and span.kind not in ("TOOL", "RETRIEVER"):
            self.event("api_error" if span.kind == "LLM" else "harness", failure[1], span.ended)

    def output(self, span: Span, call_id: str, is_done: bool) -> None:
        """Record a span's failure or output as the result of a call. `is_done`: an empty output is a result too."""
        failure = span.failure
        text = failure[1] if failure is not None else span.text("output.value")
        if failure is not None or text or is_done:
            status: CallStatus = "error" if failure is not None else "ok"
            self.builder.result(call_id, text, status, span.ended, self.thread)

    def task(self, text: str, at: int | None) -> None:
        if not text or self.thread in self.prompted:
            return
        self.prompted.add(self.thread)
        if self.thread == MAIN:
            self.builder.turn("prompt", text, at)
        else:
            self.event("meta", text, at)

    def model_call(self, span: Span, above: _Open | None) -> None:
        lists = Lists(span)
        system = f"{self.thread} system"
        if not {self.thread, system} <= self.prompted:
            # Every call repeats the instructions and the task at its beginning.
            for place in lists.items("llm.input_messages"):
                role, text = span.text(f"{place}.message.role"), _words(span, lists, f"{place}.message")
                if role == "system" and system not in self.prompted:
                    self.event("meta", text, span.began)
                elif role == "user":
                    self.task(text, span.began)
                    break
            self.prompted.add(system)
        self.seqs[span.span_id] = len(self.session.events)
        answers = list(lists.items("llm.output_messages"))
        if not answers:
            return
        step = self.builder.step(span.span_id or None, span.text("llm.model_name") or None, span.ended, self.thread)
        prompt, output, read, write, reasoning = (span.count(f"llm.token_count.{name}") for name in _TOKENS)
        fresh = None if prompt is None else max(prompt - (read or 0) - (write or 0), 0)
        charge(step, Tokens(fresh, output, read, write, reasoning))
        for place in answers:
            text = _words(span, lists, f"{place}.message")
            if text:
                self.event("text", text, span.ended, step)
            for at in lists.items(f"{place}.message.tool_calls"):
                name = span.text(f"{at}.tool_call.function.name")
                call_id = span.text(f"{at}.tool_call.id") or f"{span.span_id}:{at}"
                self.call(call_id, name, span.text(f"{at}.tool_call.function.arguments"), span.ended, step)
                self.open[-2 if len(self.open) > 1 else -1].asked.setdefault(name, []).append(call_id)
            if above is not None and not above.asked and above.span.kind == "CHAIN" and above.code is None:
                blocks = [a or b for a, b in _CODE.findall(text)]
                if blocks:
                    code = json.dumps({"code": "\n\n".join(blocks)}, ensure_ascii=False)
                    tool, call_id = PROFILE.tools[INTERPRETER], f"{above.span.span_id}:code"
                    above.code = self.builder.call(call_id, INTERPRETER, code, tool, span.ended, step, above.thread)

    def tool_span(self, span: Span) -> None:
        """Record a tool's span: the answer to the model's call of that tool, else a call of the code it wrote."""
        name = span.text("tool.name") or span.span_name
        waiting = next((ids for holder in reversed(self.open) if (ids := holder.asked.get(name))), None)
        call_id = waiting.pop(0) if waiting else span.text("tool_call.id") or span.span_id
        if waiting is None:
            arguments = span.text("input.value") or "{}"
            self.builder.call(call_id, name, arguments, PROFILE.tool(name), span.began, None, self.thread)
        self.output(span, call_id, is_done=span.status_code == "Ok")


def _words(span: Span, lists: Lists, message: str) -> str:
    parts = (span.text(f"{place}.message_content.text") for place in lists.items(f"{message}.contents"))
    return span.text(f"{message}.content") or "\n".join(t for t in parts if t)


_SHOWN_CHARS = 400


class _Marks(Struct):
    errors: list[Error] = field(default_factory=list)
    scores: list[dict[str, Any]] = field(default_factory=list)
    sources: list[Input] = field(default_factory=list)


def read(inputs: list[Input]) -> Reading:
    """Read files about the same traces. Of two copies of a trace the larger counts, of two annotations the first."""
    reading = Reading()
    marks: dict[str, _Marks] = {}
    traces: dict[str, tuple[Input, Trace]] = {}
    for source in sorted(inputs, key=lambda i: (-len(i.data), i.artifact.artifact_id)):
        if b'"spans"' not in source.data[:65536]:
            _annotations(source, marks)
        elif (found := read_document(source, partial(decode_trace, artifact=source.artifact), "spans")) is not None:
            found.trace_id = found.trace_id or source.artifact.artifact_id
            if traces.setdefault(found.trace_id, (source, found))[1] is not found:
                source.artifact.note = f"a copy of {traces[found.trace_id][0].artifact.path}, which counts"
    for trace_id, (source, trace) in sorted(traces.items()):
        of_trace, artifact = marks.pop(trace_id, _Marks()), source.artifact
        artifact_id = artifact.artifact_id
        session = Session(session_id=trace_id, context="eval", format="trail", agent="", artifact_id=artifact_id)
        reader = Reader(session, artifact)
        reader.build(trace)
        part = _attempt(source, trace, reader)
        session.agent = str(part.observed.get("agent_type") or "smolagents")
        session.labels = list(labels(of_trace.errors, of_trace.scores, reader.seqs, session.events))
        lost = sum(not e.location or e.location not in reader.seqs for e in of_trace.errors)
        for annotated in of_trace.sources[:1] if lost else ():
            annotated.artifact.note = f"{lost} of {len(of_trace.errors)} errors are marked at no span of the trace"
        reading.sessions.append(session)
        reading.attempts.append(part)
    for without in marks.values():
        for source in without.sources:
            source.artifact.note = "annotations of a trace that is not among the files"
    return reading


def _annotations(source: Input, marks: dict[str, _Marks]) -> None:
    annotations = document(source.data, source.artifact, decoder(Annotations).decode)
    if annotations is None:
        return
    saw(source.artifact, "annotations")
    of_trace = marks.setdefault(trace_id_of(annotations.trace_id, source.artifact.path), _Marks())
    repeated = bool(of_trace.sources)
    of_trace.sources.append(source)
    scores = each(annotations.scores, decoder(dict[str, Any]).decode, source.artifact)
    groups: tuple[tuple[str, list[Any], list[Any]], ...] = (
        ("error", of_trace.errors, each(annotations.errors, decoder(Error).decode, source.artifact)),
        ("scores", of_trace.scores, scores),
    )
    for kind, kept, found in groups:
        for mark in found:
            source.artifact.records += 1
            if mark is None:
                skip(source.artifact, "bad_shape")
            else:
                saw(source.artifact, kind)
                kept.extend([] if repeated else [mark])


def _attempt(source: Input, trace: Trace, reader: Reader) -> Attempt:
    """Return the attempt as the spans around the agent describe it: task, gold patch, answer, duration, end."""
    session = reader.session
    agent = reader.agents[0] if reader.agents else None
    timed = [span for span in trace.spans if span.timestamp]
    root = timed[0] if len(timed) == 1 else None
    part = Attempt(root=f"trail:{trace.trace_id}", trial_id=trace.trace_id)
    part.session_artifact, part.session_id = session.artifact_id, session.session_id
    spans = [span for span in (agent, *trace.spans) if span is not None]
    observed = {
        "model_id": session.model,
        "agent_type": agent.span_name.partition(".")[0] if agent is not None else None,
        "dataset": next((t for s in spans if (t := s.text("pat.app"))), None),
        "max_steps": agent.count("smolagents.max_steps") if agent is not None else None,
        "tools": agent.text("smolagents.tools_names") or None if agent is not None else None,
    }
    part.observed = {k: v for k, v in observed.items() if v}
    logs = (log for span in trace.spans for log in span.logs or ())
    items = (inside(log, "body", "function.arguments", "item") for log in logs)
    if (item := next((item for item in items if isinstance(item, dict)), None)) is not None:
        # The task as the harness was given it. A row of SWE-bench holds its gold patch.
        named, gold = item.get("instance_id") or item.get("task_id"), item.get("patch")
        part.task_id = named if isinstance(named, str) else None
        session.repo = item["repo"] if isinstance(item.get("repo"), str) else session.repo
        if isinstance(gold, str) and looks_like_diff(gold):
            part.gold_patch = patched_files(gold)
            part.kinds.append("gold_patch")
            files = ", ".join(f.path for f in part.gold_patch)
            part.statements += source.states(f"task {named}, gold patch of {files}", ("task_id", "gold_patch"))
    answer = agent.text("output.value") if agent is not None else ""
    if looks_like_diff(answer):
        part.patch, part.patch_text_bytes = patched_files(answer), len(answer.encode("utf-8", "replace"))
        part.kinds.append("patch")
        part.statements += source.states(f"answer: {answer[:_SHOWN_CHARS]}", ["patch"])
    failure = next((f for span in (agent, root) if span is not None and (f := span.failure) is not None), None)
    if failure is not None:
        part.exit_status, part.exception = "error", failure[0].rpartition(".")[2] or None
        text = f"ended with {failure[0]}: {failure[1][:_SHOWN_CHARS]}"
        part.statements += source.states(text, ("exit_status", "exception"))
    else:
        part.exit_status = "completed" if answer else None
    if (outer := root or agent) is not None:
        took = duration_us(outer.duration)
        part.wall_time_s = None if took is None else took / 1_000_000
        part.started_at, part.ended_at = outer.began, outer.ended
    if agent is not None:
        took = duration_us(agent.duration)
        part.agent_time_s = None if took is None else took / 1_000_000
        part.input_tokens = agent.count("llm.token_count.prompt")
        part.output_tokens = agent.count("llm.token_count.completion")
    return part
