"""OpenTelemetry traces of one family: a session for each conversation, or for each trace that names none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading
from agentsignals.formats.otel_genai import records
from agentsignals.formats.otel_genai.records import Batch, Event, Export, Scope, as_int, at_us, attributes
from agentsignals.formats.otel_genai.session import Conversation, Moment
from agentsignals.formats.records import UNREADABLE, document, lines, saw, skip
from agentsignals.model import Artifact, Session

_MODEL = frozenset(("chat", "text_completion", "generate_content", "completion"))
_AGENT = frozenset(("invoke_agent", "invoke_workflow"))


class _Seen(Struct):
    """All that the files say, by span."""

    moments: dict[tuple[str, str], Moment] = field(default_factory=dict)
    logs: dict[tuple[str, str], list[Event]] = field(default_factory=dict)


def read(inputs: list[Input]) -> Reading:
    """All files of one family. A span that stands in several files counts once."""
    seen = _Seen()
    for given in sorted(inputs, key=lambda i: i.artifact.artifact_id):
        for number, export in _exports(given):
            _take(given.artifact, number, export, seen)
    for place, events in seen.logs.items():
        if place in seen.moments:
            seen.moments[place].events += events
    groups: dict[str, list[Moment]] = {}
    names = _conversations(seen.moments.values())
    for moment in seen.moments.values():
        groups.setdefault(names.get(moment.span.traceId, moment.span.traceId), []).append(moment)
    sessions = [_session(name, found) for name, found in sorted(groups.items())]
    return Reading([s for s in sessions if s is not None])


def _exports(given: Input) -> Iterator[tuple[int | None, Export]]:
    """What the file holds, with the line; a document has none."""
    start = bytes(given.data[:4096]).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.split(b"\n", 1)[0].strip() == b"{":  # printed over many lines
        found = document(given.data, given.artifact, records.decode)
        if found is not None:
            yield None, found
        return
    yield from lines(given.data, given.artifact, records.decode)


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
    place = (span.traceId, span.spanId)
    saw(artifact, "repeated_span" if place in seen.moments else f"span.{kind}")
    if place not in seen.moments:
        seen.moments[place] = Moment(
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
    seen.logs.setdefault((event.traceId or "", event.spanId or ""), []).append(event)


def _kind(facts: dict[str, Any]) -> str:
    operation = facts.get("gen_ai.operation.name")
    if operation in _AGENT:
        return "agent"
    if operation == "execute_tool" or (operation is None and "gen_ai.tool.name" in facts):
        return "tool"
    if operation in _MODEL or (operation is None and "gen_ai.request.model" in facts):
        return "model"
    return "other"


def _conversations(moments: Any) -> dict[str, str]:
    """The conversation each trace is of, where a span of it names one."""
    found: dict[str, str] = {}
    for moment in moments:
        named = moment.facts.get("gen_ai.conversation.id")
        if isinstance(named, str) and named:
            found.setdefault(moment.span.traceId, named)
    return found


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
