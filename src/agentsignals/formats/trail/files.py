"""TRAIL traces of one family: each as a session with its attempt, and the annotations of the same id as labels."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import Struct, field

from agentsignals.edits.unified_diff import looks_like_diff, patched_files
from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.one_document import read as read_document
from agentsignals.formats.records import document, saw, skip
from agentsignals.formats.trail import trace_id_of
from agentsignals.formats.trail.labels import labels
from agentsignals.formats.trail.profile import PROFILE
from agentsignals.formats.trail.records import (
    Error,
    Span,
    Trace,
    decode_annotations,
    decode_trace,
    duration_us,
    errors_of,
    scores_of,
)
from agentsignals.formats.trail.session import Conversation
from agentsignals.model import Session
from agentsignals.model.attempt import Attempt, Statement

_SHOWN_CHARS = 400


class _Marks(Struct):
    """What people marked in one trace."""

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
            trace = _trace(source)
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


def _trace(source: Input) -> Trace | None:
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
    """What the spans around the agent say: the task, its gold patch, the answer, how long, how it ended."""
    artifact_id = source.artifact.artifact_id
    agent = conversation.agents[0] if conversation.agents else None
    root = trace.spans[0] if len(trace.spans) == 1 else None
    part = Attempt(root=f"trail:{trace.trace_id}", trial_id=trace.trace_id)
    part.session_artifact, part.session_id = artifact_id, session.session_id
    _treat(part, trace, agent, session)
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


def _treat(part: Attempt, trace: Trace, agent: Span | None, session: Session) -> None:
    attributes = [span for span in (agent, *trace.spans) if span is not None]
    observed = {
        "model_id": session.model,
        "agent_type": agent.span_name.partition(".")[0] if agent is not None else None,
        "dataset": next((t for s in attributes if (t := s.text("pat.app"))), None),
        "max_steps": agent.count("smolagents.max_steps") if agent is not None else None,
        "tools": agent.text("smolagents.tools_names") or None if agent is not None else None,
    }
    part.observed = {k: v for k, v in observed.items() if v}


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
