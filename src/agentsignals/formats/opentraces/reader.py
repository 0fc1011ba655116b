"""OpenTraces records as sessions: steps as messages and model calls, observations as results."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading, gathered
from agentsignals.formats import bounds as figures
from agentsignals.formats.any_agent import ANYBODY, tool
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import lines, read_before, saw
from agentsignals.model import MAIN, RAN, Artifact, Attempt, CallStatus, Session, Statement, logged_iso
from agentsignals.model import Step as ModelCall
from agentsignals.model import round_trip as carried
from agentsignals.model import round_trip as placement
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


class Usage(Struct):
    input_tokens: object = None
    output_tokens: object = None
    cache_read_tokens: object = None
    cache_write_tokens: object = None

    def says(self) -> bool:
        """The schema fills in 0 for what is not known: all zeros say nothing."""
        return any((self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens))


class Step(Struct, kw_only=True):
    role: str = ""
    content: str | None = None
    reasoning_content: str | None = None
    model: str | None = None
    agent_role: str | None = None
    call_type: str | None = None
    tool_calls: list[Call] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    token_usage: Usage | None = None
    timestamp: str | None = None


class Agent(Struct):
    name: str = ""
    version: str | None = None
    model: str | None = None


class Vcs(Struct):
    branch: str | None = None


class Environment(Struct):
    vcs: Vcs = field(default_factory=Vcs)


class Task(Struct):
    repository: str | None = None


class Outcome(Struct):
    success: bool | None = None
    reward: object = None
    terminal_state: str | None = None


class Metadata(Struct):
    """What the producer adds; ours says where the session ran, and what the schema has no field for."""

    cwd: str | None = None
    agentsignals: Raw = Raw()


class Record(Struct, kw_only=True):
    trace_id: str
    session_id: str | None = None
    timestamp_start: str | None = None
    timestamp_end: str | None = None
    execution_context: str | None = None
    agent: Agent = field(default_factory=Agent)
    environment: Environment = field(default_factory=Environment)
    task: Task = field(default_factory=Task)
    steps: list[Step] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)
    generation_index: int = 0
    metadata: Metadata = field(default_factory=Metadata)


_ENDINGS: dict[str, CallStatus] = {"rejected": "rejected", "cancelled": "cancelled", "unknown": "unknown"}
"""What our own writer says of calls that were not carried out, or of which nothing is known; other words are errors."""
_decode = msgspec.json.Decoder(Record).decode


def read(inputs: list[Input]) -> Reading:
    """Every record as a session; of several records of one session the youngest generation, else the longest."""
    best: dict[str, tuple[tuple[int, int], Record, Artifact, int]] = {}
    for source in inputs:
        for name, rank, number, record in _records(source, source.artifact):
            if name not in best or rank > best[name][0]:
                best[name] = (rank, record, source.artifact, number)
    return gathered(_reading(name, *best[name][1:]) for name in best)


def pieces(inputs: list[Input]) -> Iterator[Reading]:
    """The same records, in their order: looked for first, and read when they come again."""
    chosen: dict[str, tuple[tuple[int, int], int, int]] = {}
    for n, source in enumerate(inputs):
        for name, rank, number, _ in _records(source, source.artifact):
            if name not in chosen or rank > chosen[name][0]:
                chosen[name] = (rank, n, number)
    for n, source in enumerate(inputs):
        for name, rank, number, record in _records(source, read_before(source.artifact)):
            if chosen.get(name) == (rank, n, number):
                del chosen[name]
                yield _reading(name, record, source.artifact, number)


def _records(source: Input, artifact: Artifact) -> Iterator[tuple[str, tuple[int, int], int, Record]]:
    """Each record with its session, its rank among the session's, and its line."""
    for number, record in lines(source.data, artifact, _decode):
        saw(artifact, "record")
        yield record.session_id or record.trace_id, (record.generation_index, len(record.steps)), number, record


def _reading(name: str, record: Record, artifact: Artifact, number: int) -> Reading:
    session = _Conversation(name, record, artifact, number).session
    return Reading(
        [session], attempts=[_attempt(name, record, artifact, number)] if record.outcome.reward is not None else []
    )


def _attempt(name: str, record: Record, artifact: Artifact, number: int) -> Attempt:
    """A record that carries a reward was a run of a task."""
    text = f"outcome: reward {record.outcome.reward}, ended {record.outcome.terminal_state}"
    return Attempt(
        root=f"{artifact.path}#{name}",
        session_id=name,
        session_artifact=artifact.artifact_id,
        trial_id=record.trace_id,
        reward=figures.number(record.outcome.reward),
        exit_status=record.outcome.terminal_state,
        knobs={"model_id": record.agent.model} if record.agent.model else {},
        statements=[
            Statement(text=text, artifact_id=artifact.artifact_id, line=number, fields=["reward", "exit_status"])
        ],
    )


class _Conversation:
    """Plays one record into a session."""

    def __init__(self, name: str, record: Record, artifact: Artifact, number: int) -> None:
        session = Session(
            session_id=name,
            context="product",
            format="opentraces",
            agent=record.agent.name,
            artifact_id=artifact.artifact_id,
        )
        session.agent_version, session.model = record.agent.version, record.agent.model
        session.repo = record.task.repository
        session.started_at, session.ended_at = logged_iso(record.timestamp_start), logged_iso(record.timestamp_end)
        self.builder = SessionBuilder(session, ANYBODY)
        self.builder.line = number
        self.touched: set[str] = set()
        self.carries = bool(record.metadata.agentsignals)
        self.facts = carried.read(record.metadata.agentsignals, OfRecord) or OfRecord()
        self.builder.where(record.metadata.cwd, record.environment.vcs.branch)
        for n, step in enumerate(record.steps):
            self._step(n, step)
        ended = session.ended_at
        self.session = self.builder.finish()
        if ended is not None:
            self.session.ended_at = max(ended, self.session.ended_at or ended)
        placement.put_back(self.session, self.facts.session)
        carried.restore(self.session, carried.read(self.facts.session, OfSession))

    def _step(self, n: int, step: Step) -> None:
        at = logged_iso(step.timestamp)
        thread = (step.agent_role or "subagent") if step.call_type == "subagent" else MAIN
        facts = carried.read(self.facts.events.get(str(n), Raw()), OfEvent)
        if facts is not None and step.role == "system":
            self.builder.event(facts.kind, None if facts.wordless else step.content, at, thread=thread)
        elif step.role == "user":
            if thread == MAIN and step.content is not None:
                turn = self.builder.turn("prompt", step.content, at)
                carried.restore(turn, carried.read(self.facts.turns.get(str(n), Raw()), OfTurn))
            elif step.content:
                self.builder.event("meta", step.content, at, thread=thread)
        elif step.role == "agent":
            self._agent(n, step, at, thread)
        elif step.role != "system":
            self.builder.event("unknown", f"step of role {step.role!r}: {step.content or ''}", at)
        elif step.content:
            self.builder.event("meta", step.content, at)

    def _agent(self, n: int, step: Step, at: int | None, thread: str) -> None:
        facts = self.facts.steps.get(str(n))
        call_of_model = None
        if facts is not None or not self.carries:  # else words that no recorded call of the model said
            call_of_model = self.builder.step(None, step.model, at, thread)
        if call_of_model is not None and facts is not None:
            carried.restore(call_of_model, carried.read(facts, OfStep))
        elif call_of_model is not None and step.token_usage is not None and step.token_usage.says():
            _count(call_of_model, step.token_usage)
        if step.reasoning_content:
            self.builder.event("thinking", step.reasoning_content, at, call_of_model, thread)
        if step.content:
            self.builder.event("text", step.content, at, call_of_model, thread)
        first_call = len(self.builder.session.tool_calls)
        for call in step.tool_calls:
            arguments = bytes(call.input).decode("utf-8", "replace") or "{}"
            self.builder.call(
                call.tool_call_id, call.tool_name, arguments, tool(call.tool_name), at, call_of_model, thread
            )
        took = {c.tool_call_id: figures.count(c.duration_ms) for c in step.tool_calls}
        facts_of = {c.tool_call_id: self._of_call(n, c.tool_call_id) for c in step.tool_calls}
        commands = {c.call_id for c in self.builder.session.tool_calls[first_call:] if c.command is not None}
        for seen in step.observations:
            ms = took.get(seen.source_call_id)
            ended = at + ms * 1000 if at is not None and ms is not None else None
            facts_of_call = facts_of.get(seen.source_call_id)
            self._observed(seen, facts_of_call, ended, thread, seen.source_call_id in commands)
        for made in self.builder.session.tool_calls[first_call:]:
            carried.restore(made, facts_of[made.call_id])

    def _of_call(self, n: int, call_id: str) -> OfCall | None:
        return carried.read(self.facts.calls.get(f"{n}:{call_id}", Raw()), OfCall)

    def _observed(self, seen: Observation, facts: OfCall | None, at: int | None, thread: str, ran: bool) -> None:
        if seen.error == "no_result" and seen.content is None:
            return
        text = seen.content if seen.content is not None else seen.output_summary or ""
        if facts is not None:
            call = self.builder.result(
                seen.source_call_id, text, facts.status, facts.ended_at, thread, facts.exit_code, facts.error_class
            )
        else:  # written by others: a command's exit code is in its text, or nowhere
            code = exit_code(text) if ran else None
            status = "ok" if seen.error is None else _ENDINGS.get(seen.error, "error")
            error = None if code else seen.error
            call = self.builder.result(seen.source_call_id, text, status, at, thread, code, error)
        if call is not None and call.status in RAN and call.class_ == "edit":
            record_arguments(self.builder, call, self.touched)
        if call is not None and call.path:
            self.touched.add(call.path)


def _count(row: ModelCall, usage: Usage) -> None:
    row.input_tokens, row.output_tokens = figures.count(usage.input_tokens), figures.count(usage.output_tokens)
    row.cache_read_tokens = figures.count(usage.cache_read_tokens)
    row.cache_write_tokens = figures.count(usage.cache_write_tokens)
