"""Read STS conversations (design/formats.md#small-formats). The structs hold only the fields that are read."""

from collections.abc import Iterator
from typing import Any

from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.any_agent import ANYBODY, tool
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import record_arguments
from agentsignals.formats.conversation import Conversation, returns
from agentsignals.formats.documents import Snapshot, largest, texts_of
from agentsignals.formats.records import all_lines, decoded, decoder, saw
from agentsignals.model import ABANDONED, MAIN, CallStatus, Session, logged_ms, round_trip
from agentsignals.model.round_trip import OfCall, OfEvent, OfSession, OfStep, OfTurn


class Part(Struct, gc=False):
    type: str | None = None
    text: str | None = None


PARTS = frozenset(("text", "image", "image_url", "input_audio", "input_video", "file"))
"""Types of message parts. Attached parts hold no text."""


class Function(Struct, gc=False):
    name: str | None = None
    arguments: Raw = Raw()
    """JSON as a text; or, from a sloppy writer, JSON itself."""


class Call(Struct, gc=False):
    id: str | None = None
    function: Function | None = None
    agentsignals: Raw = Raw()
    """Facts that our own export adds (`model.round_trip`) to calls, messages and headers."""


class Used(Struct, gc=False):
    """Tokens of a model call: `prompt_n` processed, `cache_n` cached, `predicted_n` generated."""

    prompt_n: float | None = None
    predicted_n: float | None = None
    cache_n: float | None = None


class RunTurn(Struct, gc=False):
    llm: Used | None = None
    toolCalls: list[dict[str, Any]] | None = None


class Run(Struct, gc=False):
    perTurn: list[RunTurn] | None = None


class Timings(Used, gc=False):
    """Usage of the last model call of a run; `agentic` holds all calls. Every answer of the run repeats it."""

    agentic: Run | None = None


class Message(Struct, gc=False, kw_only=True):
    role: str
    content: str | list[Part] | None = None
    id: str | None = None
    parent: str | None = None
    type: str | None = None
    timestamp: Any = None
    model: str | None = None
    reasoningContent: str | None = None
    toolCalls: list[Call] | None = None
    toolCallId: str | None = None
    timings: Timings | None = None
    agentsignals: Raw = Raw()


class Line(Struct, gc=False, kw_only=True):
    """A header or a message."""

    type: str | None = None
    message: Message | None = None
    harness: str | None = None
    id: str | None = None
    name: str | None = None
    currNode: str | None = None
    cwd: str | None = None
    agentsignals: Raw = Raw()

    @property
    def kind(self) -> str:
        if self.type == "session":
            return "session"
        return f"message.{self.message.role}" if self.message is not None else f"other.{self.type}"


class File(Struct):
    """The header, the numbered messages, and the numbered lines that are neither."""

    header: Line
    messages: list[tuple[int, Message]]
    others: list[tuple[int, str]]


def read(inputs: list[Input]) -> Reading:
    """Read all files of a group. Of several snapshots of a session the one with most messages counts."""
    return Reading([Reader(snapshot).build() for snapshot in largest(map(_snapshot, inputs))])


def _snapshot(source: Input) -> Snapshot[File]:
    numbers, lines = all_lines(source.data, source.artifact, decoder(Line), decoder(Line).decode)
    for line in lines:
        saw(source.artifact, line.kind)
    numbered = list(zip(numbers, lines, strict=True))
    odd = [n for n, line in numbered if line.kind.startswith("other")]
    rows = bytes(source.data).split(b"\n") if odd else []
    file = File(
        next((line for line in lines if line.type == "session"), Line()),
        [(n, line.message) for n, line in numbered if line.message is not None],
        [(n, rows[n - 1].decode("utf-8", "replace")) for n in odd],
    )
    session_id = file.header.id or source.session_hint or source.artifact.artifact_id
    return Snapshot(source, file, session_id, len(file.messages))


class Reader(Conversation):
    profile = ANYBODY

    def __init__(self, snapshot: Snapshot[File]) -> None:
        file, header = snapshot.document, snapshot.document.header
        super().__init__(snapshot.source.session(snapshot.session_id, "sts", header.harness or "unknown"))
        self.session.title = header.name
        self.builder.where(header.cwd)
        self.file, self.messages = file, [message for _, message in file.messages]
        self.used: dict[int, Used] = {}
        self.facts = round_trip.read_carried(header.agentsignals, OfSession)
        self.facts_of: dict[str, OfCall | None] = {}
        """Carried facts of calls, by call id."""
        self.ended: dict[str, CallStatus] = {}
        """Status of calls by id, as the figures of a run give it."""

    def build(self) -> Session:
        live, returned = self._live()
        for run in self._runs(live):
            self._account(run)
        for n, (line, message) in enumerate(self.file.messages):
            self.builder.line, self.thread = line, MAIN if n in live else ABANDONED
            if n in returned:
                self.event("rewind", None)
            self.take(n, message)
        for line, text in self.file.others:
            self.builder.line = line
            self.builder.event("unknown", text)
        for call in self.session.tool_calls:
            round_trip.restore(call, self.facts_of.get(call.call_id))
        session = self.builder.finish()
        for last in self.messages[-1:]:
            round_trip.restore_places(session, last.agentsignals)
        round_trip.restore(session, self.facts)
        return session

    def _live(self) -> tuple[set[int], set[int]]:
        """Return the messages from the current one up to the root, and the prompts with which the person went back.
        Without parents all are one conversation."""
        messages = self.messages
        if all(m.parent is None for m in messages):
            return set(range(len(messages))), set()
        place: dict[str | None, int] = {m.id: n for n, m in enumerate(messages) if m.id is not None}
        at = place.get(self.file.header.currNode, len(messages) - 1)
        parents = [
            -1 if m.parent is None else place.get(m.parent, n - 1)  # a lost line must not abandon what was before it
            for n, m in enumerate(messages)
        ]
        live: set[int] = set()
        while at >= 0 and at not in live:
            live.add(at)
            at = parents[at]
        return live, returns(parents, [m.role == "user" for m in messages])

    def _runs(self, live: set[int]) -> Iterator[list[int]]:
        """Yield the answers between one prompt and the next, on each side of a fork by itself."""
        for side in (live, set(range(len(self.messages))) - live):
            run: list[int] = []
            for n in sorted(side):
                if self.messages[n].role == "user" and run:
                    yield run
                    run = []
                if self.messages[n].role == "assistant":
                    run.append(n)
            if run:
                yield run

    def _account(self, run: list[int]) -> None:
        """Note the usage of each answer of a run, and which calls failed. Every answer repeats the run's figures."""
        timings = {n: t for n in run if (t := self.messages[n].timings) is not None}
        whole = next(reversed(timings.values()), None)
        turns = whole.agentic.perTurn if whole is not None and whole.agentic is not None else None
        if turns is None:
            self.used.update(timings)
            return
        for n, turn in zip(run, turns, strict=False) if len(turns) == len(run) else ():
            if (used := turn.llm) is not None:
                # A call of a run says nothing of its cache. The run's figures do, for the call that they are of.
                same = whole is not None and (whole.prompt_n, whole.predicted_n) == (used.prompt_n, used.predicted_n)
                cached = whole.cache_n if same and whole is not None else used.cache_n
                self.used[n] = Used(used.prompt_n, used.predicted_n, cached)
            for asked, ran in zip(self.messages[n].toolCalls or (), turn.toolCalls or (), strict=False):
                if asked.id and isinstance(done := ran.get("success"), bool):
                    self.ended[asked.id] = "ok" if done else "error"

    def take(self, n: int, message: Message) -> None:
        at, text = logged_ms(message.timestamp), texts_of(message.content)
        if message.role == "user" and self.thread == MAIN:
            turn = self.builder.turn("prompt", text, at)
            if turn is not None:
                round_trip.restore(turn, round_trip.read_carried(message.agentsignals, OfTurn))
        elif message.role == "assistant":
            self.answer(n, message, at)
        elif message.role == "tool":
            call_id = message.toolCallId or ""
            facts_of_call = self.facts_of.get(call_id)
            status: CallStatus = (facts_of_call and facts_of_call.status) or self.ended.get(call_id, "unknown")
            call = self.builder.result(call_id, text, status, at, self.thread)
            if call is not None and status != "error" and call.class_ == "edit":
                record_arguments(self.builder, call)
        elif (facts := round_trip.read_carried(message.agentsignals, OfEvent)) is not None:
            self.event(facts.kind, None if facts.wordless else text, at)
        elif text:
            self.event("meta", text, at)
        if isinstance(message.content, list):
            self.builder.unread((part.type or "" for part in message.content), PARTS, at, self.thread)

    def answer(self, n: int, message: Message, at: int | None) -> None:
        facts = round_trip.read_carried(message.agentsignals, OfStep)
        step = None
        if facts is not None or self.facts is None:  # else words that no recorded call of the model said
            step = self.builder.step(message.id, message.model, at, self.thread)
            if (used := self.used.get(n)) is not None:
                step.input_tokens, step.output_tokens = count(used.prompt_n), count(used.predicted_n)
                step.cache_read_tokens = count(used.cache_n)
            round_trip.restore(step, facts)
        if message.reasoningContent:
            self.event("thinking", message.reasoningContent, at, step)
        if text := texts_of(message.content):
            self.event("text", text, at, step)
        for order, call in enumerate(message.toolCalls or ()):
            if call.function is None:
                self.event("unknown", "call without a function", at, step)
                continue
            name, raw = call.function.name or "", call.function.arguments
            arguments = decoded(raw, str) if raw else "{}"
            if arguments is None:
                arguments = bytes(raw).decode("utf-8", "replace")
            call_id = call.id or f"{n}#{order}"
            self.facts_of[call_id] = round_trip.read_carried(call.agentsignals, OfCall)
            self.builder.call(call_id, name, arguments, tool(name), at, step, self.thread)
