"""Read OpenTraces records, each a session: steps as messages and model calls, observations as results."""

from collections.abc import Iterator
from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading, bounds
from agentsignals.formats.any_agent import ANYBODY, tool
from agentsignals.formats.builder import charge, record_arguments, tokens_of
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import decoder, inside, lines, read_before, saw, string
from agentsignals.model import MAIN, RAN, Artifact, Attempt, CallStatus, Session, logged_iso, round_trip
from agentsignals.model.round_trip import OfCall, OfEvent, OfRecord, OfSession, OfStep, OfTurn


class Call(Struct):
    tool_call_id: str = ""
    tool_name: str = ""
    input: Raw = Raw()
    duration_ms: object = None


class Observation(Struct):
    source_call_id: str = ""
    content: str | None = None
    output_summary: str | None = None
    error: str | None = None


class Step(Struct, kw_only=True):
    role: str = ""
    content: str | None = None
    reasoning_content: str | None = None
    model: str | None = None
    agent_role: str | None = None
    call_type: str | None = None
    tool_calls: list[Call] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    token_usage: dict[str, Any] | None = None
    """The schema fills in 0 for what is not known, so all zeros mean nothing."""
    timestamp: str | None = None


class Agent(Struct):
    name: str = ""
    version: str | None = None
    model: str | None = None


class Metadata(Struct):
    """Facts of the producer. Ours adds the working folder and what the schema has no field for."""

    cwd: str | None = None
    agentsignals: Raw = Raw()


class Record(Struct, kw_only=True):
    trace_id: str
    session_id: str | None = None
    timestamp_start: str | None = None
    timestamp_end: str | None = None
    agent: Agent = field(default_factory=Agent)
    environment: object = None
    task: object = None
    steps: list[Step] = field(default_factory=list)
    outcome: object = None
    generation_index: int = 0
    metadata: Metadata = field(default_factory=Metadata)


_ENDINGS: dict[str, CallStatus] = {"rejected": "rejected", "cancelled": "cancelled", "unknown": "unknown"}
"""Words of our own writer for calls that did not run, or whose end is unknown. Other words are errors."""


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """Yield records in file order: a first pass chooses them, a second one reads them. Of several of one session the
    youngest generation counts, else the longest."""
    chosen: dict[_Identity, tuple[tuple[int, int], int, int]] = {}
    for n, source in enumerate(inputs):
        for name, rank, number, _ in _records(source, source.artifact):
            if name not in chosen or rank > chosen[name][0]:
                chosen[name] = (rank, n, number)
    for n, source in enumerate(inputs):
        for name, rank, number, record in _records(source, read_before(source.artifact)):
            if chosen.get(name) == (rank, n, number):
                del chosen[name]
                yield _reading(name[0], record, source, number)


_Identity = tuple[str, str | None]
"""A session's id and its first words: two people may have the same id."""


def _records(source: Input, artifact: Artifact) -> Iterator[tuple[_Identity, tuple[int, int], int, Record]]:
    """Yield each record with its identity, its rank among the session's records, and its line."""
    for number, record in lines(source.data, artifact, decoder(Record).decode):
        saw(artifact, "record")
        first = next((step.content for step in record.steps if step.role != "system"), None)
        rank = (record.generation_index, len(record.steps))
        yield (record.session_id or record.trace_id, first), rank, number, record


def _reading(name: str, record: Record, source: Input, number: int) -> Reading:
    """Read a record. One that carries a reward was a run of a task."""
    reading = Reading([Reader(name, record, source.artifact.artifact_id, number).build()])
    reward, ended = inside(record.outcome, "reward"), string(inside(record.outcome, "terminal_state"))
    if reward is not None:
        part = Attempt(
            root=f"{source.artifact.path}#{name}", session_id=name, session_artifact=source.artifact.artifact_id,
            trial_id=record.trace_id, reward=bounds.number(reward), exit_status=ended,
            knobs={"model_id": record.agent.model} if record.agent.model else {},
        )  # fmt: skip
        text = f"outcome: reward {reward}, ended {ended}"
        part.statements = source.states(text, ("reward", "exit_status"), number)
        reading.attempts.append(part)
    return reading


class Reader(Conversation):
    profile = ANYBODY

    def __init__(self, name: str, record: Record, artifact_id: str, number: int) -> None:
        session = Session(
            session_id=name, context="product", format="opentraces", agent=record.agent.name, artifact_id=artifact_id
        )
        session.agent_version, session.model = record.agent.version, record.agent.model
        session.repo = string(inside(record.task, "repository"))
        session.started_at, session.ended_at = logged_iso(record.timestamp_start), logged_iso(record.timestamp_end)
        super().__init__(session)
        self.builder.line = number
        self.record = record
        self.carries = bool(record.metadata.agentsignals)
        self.facts = round_trip.read_carried(record.metadata.agentsignals, OfRecord) or OfRecord()

    def build(self) -> Session:
        record, ended = self.record, self.session.ended_at
        self.builder.where(record.metadata.cwd, string(inside(record.environment, "vcs", "branch")))
        for n, step in enumerate(record.steps):
            self.take(n, step)
        session = self.builder.finish()
        if ended is not None:
            session.ended_at = max(ended, session.ended_at or ended)
        round_trip.restore_places(session, self.facts.session)
        round_trip.restore(session, round_trip.read_carried(self.facts.session, OfSession))
        return session

    def take(self, n: int, step: Step) -> None:
        at = logged_iso(step.timestamp)
        self.thread = (step.agent_role or "subagent") if step.call_type == "subagent" else MAIN
        facts = round_trip.read_carried(self.facts.events.get(str(n), Raw()), OfEvent)
        if facts is not None and step.role == "system":
            self.event(facts.kind, None if facts.wordless else step.content, at)
        elif step.role == "user" and self.thread == MAIN and step.content is not None:
            turn = self.builder.turn("prompt", step.content, at)
            if turn is not None:
                round_trip.restore(turn, round_trip.read_carried(self.facts.turns.get(str(n), Raw()), OfTurn))
        elif step.role == "user" and step.content:
            self.event("meta", step.content, at)
        elif step.role == "agent":
            self.answer(n, step, at)
        elif step.role not in ("system", "user"):
            self.builder.event("unknown", f"step of role {step.role!r}: {step.content or ''}", at)
        elif step.content:
            self.builder.event("meta", step.content, at)

    def answer(self, n: int, step: Step, at: int | None) -> None:
        facts, usage, row = self.facts.steps.get(str(n)), step.token_usage, None
        if facts is not None or not self.carries:  # else words that no recorded call of the model said
            row = self.builder.step(None, step.model, at, self.thread)
        if row is not None and facts is not None:
            round_trip.restore(row, round_trip.read_carried(facts, OfStep))
        elif row is not None and any(tokens := tokens_of(usage, "apart")):
            charge(row, tokens)
        if step.reasoning_content:
            self.event("thinking", step.reasoning_content, at, row)
        if step.content:
            self.event("text", step.content, at, row)
        first_call = len(self.session.tool_calls)
        facts_of: dict[str, OfCall | None] = {}
        ended: dict[str, int | None] = {}
        for call in step.tool_calls:
            call_id, name = call.tool_call_id, call.tool_name
            arguments = bytes(call.input).decode("utf-8", "replace") or "{}"
            self.builder.call(call_id, name, arguments, tool(name), at, row, self.thread)
            facts_of[call_id] = round_trip.read_carried(self.facts.calls.get(f"{n}:{call_id}", Raw()), OfCall)
            ms = bounds.count(call.duration_ms)
            ended[call_id] = at + ms * 1000 if at is not None and ms is not None else None
        calls = self.session.tool_calls[first_call:]
        commands = {c.call_id for c in calls if c.command is not None}
        for seen in step.observations:
            call_id = seen.source_call_id
            self.observe(seen, facts_of.get(call_id), ended.get(call_id), call_id in commands)
        for made in calls:
            round_trip.restore(made, facts_of[made.call_id])

    def observe(self, seen: Observation, facts: OfCall | None, at: int | None, ran: bool) -> None:
        if seen.error == "no_result" and seen.content is None:
            return
        text = seen.content if seen.content is not None else seen.output_summary or ""
        if facts is not None:
            status, at, code, error = facts.status, facts.ended_at, facts.exit_code, facts.error_class
        else:  # written by others: a command's exit code is in its text, or nowhere
            code = exit_code(text) if ran else None
            status = "ok" if seen.error is None else _ENDINGS.get(seen.error, "error")
            error = None if code else seen.error
        call = self.builder.result(seen.source_call_id, text, status, at, self.thread, code, error)
        if call is not None and call.status in RAN and call.class_ == "edit":
            record_arguments(self.builder, call)
