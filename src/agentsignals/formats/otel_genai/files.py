"""OpenTelemetry traces of one family: a session for each conversation, or for each trace that names none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading
from agentsignals.formats.otel_genai import records
from agentsignals.formats.otel_genai.records import Batch, Event, Export, Scope, as_int, at_us, attributes
from agentsignals.formats.otel_genai.session import Conversation, Moment
from agentsignals.formats.records import UNREADABLE, document, lines, read_before, saw, skip
from agentsignals.model import Artifact, Session

_MODEL = frozenset(("chat", "text_completion", "generate_content", "completion"))
_CONVERSATION = "gen_ai.conversation.id"
_AGENT = frozenset(("invoke_agent", "invoke_workflow"))


class _Seen(Struct):
    """What the files say, by trace and span."""

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
    """The same sessions, each when the last of its batches is read, which is looked for first."""
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
                    span = records.decode_span(raw)
                except UNREADABLE:
                    continue
                named = [p.value for p in span.attributes if p.key == _CONVERSATION]
                yield span.traceId, records.plain(named[-1]) if named else None
            for raw in scope.logRecords or ():
                try:
                    yield records.decode_event(raw).traceId or "", None
                except UNREADABLE:
                    continue


def _name(names: dict[str, str], trace: str, named: Any) -> None:
    """A trace is of the conversation that the first of its spans names."""
    if isinstance(named, str) and named:
        names.setdefault(trace, named)


def _exports(source: Input, artifact: Artifact) -> Iterator[tuple[int | None, Export]]:
    """What the file holds, with the line; a document has none."""
    start = bytes(source.data[:4096]).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.split(b"\n", 1)[0].strip() == b"{":  # printed over many lines
        export = document(source.data, artifact, records.decode)
        if export is not None:
            yield None, export
        return
    yield from lines(source.data, artifact, records.decode)


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
        span = records.decode_span(raw)
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
        event = records.decode_event(raw)
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
    """None where no span is of a model, a tool or an agent."""
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
    """By their beginning, what lasts longer first: a span before those within it."""
    span = moment.span
    return as_int(span.startTimeUnixNano) or 0, -(as_int(span.endTimeUnixNano) or 0), span.spanId
