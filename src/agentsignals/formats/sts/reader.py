"""The records of an STS conversation as typed structs (design/formats.md#small-formats): only what is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats import any_agent as agents
from agentsignals.formats.bounds import count
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.records import UNREADABLE, all_lines, saw
from agentsignals.model import ABANDONED, MAIN, CallStatus, Session, Step, logged_ms
from agentsignals.model import round_trip as carried
from agentsignals.model import round_trip as placement
from agentsignals.model.round_trip import OfCall, OfEvent, OfSession, OfStep, OfTurn


class Part(Struct, gc=False):
    type: str | None = None
    text: str | None = None


PARTS = frozenset(("text", "image", "image_url", "input_audio", "input_video", "file"))
"""The kinds of parts that there are; the attached ones have no words."""


class Function(Struct, gc=False):
    name: str | None = None
    arguments: Raw = Raw()
    """JSON as a text; or, from a sloppy writer, JSON itself."""


class Call(Struct, gc=False):
    id: str | None = None
    function: Function | None = None
    agentsignals: Raw = Raw()
    """What our own export adds (`model.carried`), here and on messages and headers."""


class Used(Struct, gc=False):
    """What one model call used: `prompt_n` were read anew, `cache_n` were not, `predicted_n` written."""

    prompt_n: float | None = None
    predicted_n: float | None = None
    cache_n: float | None = None


class Ran(Struct, gc=False):
    success: bool | None = None


class RunTurn(Struct, gc=False):
    llm: Used | None = None
    toolCalls: list[Ran] | None = None


class Run(Struct, gc=False):
    perTurn: list[RunTurn] | None = None


class Timings(Used, gc=False):
    """Of the last model call of a run; `agentic` tells of all. The same stands at every answer of the run."""

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

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(p.text for p in self.content if p.text)
        return self.content or ""


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


DECODER = msgspec.json.Decoder(Line)
decode = DECODER.decode


# STS conversations of one family, and each as a session.

_Numbered = tuple[int, Message]


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several snapshots of a session the one with most messages."""
    best: dict[str, _File] = {}
    for file in sorted((_File(i) for i in inputs), key=lambda f: f.fullness, reverse=True):
        kept = best.setdefault(file.session_id, file)
        if kept is not file:
            file.source.artifact.note = f"superseded by {kept.source.artifact.artifact_id}"
            saw(file.source.artifact, "repeated", len(file.messages))
    return Reading([_Reader(best[name]).session() for name in sorted(best)])


class _File:
    """The decoded lines of one file."""

    def __init__(self, source: Input) -> None:
        self.source = source
        numbers, lines = all_lines(source.data, source.artifact, DECODER, decode)
        for line in lines:
            saw(source.artifact, _kind(line))
        self.header = next((line for line in lines if line.type == "session"), Line())
        self.messages = [(n, line.message) for n, line in zip(numbers, lines, strict=True) if line.message is not None]
        odd = [n for n, line in zip(numbers, lines, strict=True) if _kind(line).startswith("other")]
        rows = bytes(source.data).split(b"\n") if odd else []
        self.others = [(n, rows[n - 1].decode("utf-8", "replace")) for n in odd]
        self.session_id = self.header.id or source.session_hint or source.artifact.artifact_id
        self.fullness = (len(self.messages), len(source.data), source.artifact.sha256, source.artifact.artifact_id)


def _kind(line: Line) -> str:
    if line.type == "session":
        return "session"
    return f"message.{line.message.role}" if line.message is not None else f"other.{line.type}"


class _Reader:
    """One session in the making."""

    def __init__(self, file: _File) -> None:
        artifact, header = file.source.artifact, file.header
        session = Session(
            session_id=file.session_id,
            context="product",
            format="sts",
            agent=header.harness or "unknown",
            artifact_id=artifact.artifact_id,
        )
        session.title, session.repo = header.name, file.source.repo_hint
        self.builder = SessionBuilder(session, agents.ANYBODY)
        self.builder.where(header.cwd)
        self.messages = file.messages
        self.others = file.others
        self.live = _live(file.messages, header.currNode)
        self.touched: set[str] = set()
        self.used: dict[int, Used] = {}
        self.facts = carried.read(header.agentsignals, OfSession)
        self.facts_of: dict[str, OfCall | None] = {}
        """Of calls, by their ids."""
        self.ended: dict[str, CallStatus] = {}
        """What the figures of a run say of a call: whether it failed. Of other calls nothing does."""

    def session(self) -> Session:
        for run in _runs(self.messages, self.live):
            self._account(run)
        for n, (line, message) in enumerate(self.messages):
            self.builder.line = line
            self._message(n, message, MAIN if n in self.live else ABANDONED)
        for line, text in self.others:
            self.builder.line = line
            self.builder.event("unknown", text)
        for call in self.builder.session.tool_calls:
            carried.restore(call, self.facts_of.get(call.call_id))
        session = self.builder.finish()
        for _, last in self.messages[-1:]:
            placement.put_back(session, last.agentsignals)
        carried.restore(session, self.facts)
        return session

    def _account(self, run: list[int]) -> None:
        """What each answer of a run used, and which of its calls failed. All repeat the figures of the whole run."""
        timings = [m.timings for n in run for m in [self.messages[n][1]] if m.timings is not None]
        whole = timings[-1] if timings else None
        turns = whole.agentic.perTurn if whole is not None and whole.agentic is not None else None
        if turns is None:
            self.used.update({n: u for n in run for u in [self.messages[n][1].timings] if u is not None})
            return
        for n, turn in zip(run, turns, strict=False) if len(turns) == len(run) else ():
            if turn.llm is not None:
                self.used[n] = _with_cache(turn.llm, whole)
            calls = self.messages[n][1].toolCalls or ()
            ran = turn.toolCalls or ()
            for asked, run_call in zip(calls, ran, strict=False):
                if asked.id and run_call.success is not None:
                    self.ended[asked.id] = "ok" if run_call.success else "error"

    def _message(self, n: int, message: Message, thread: str) -> None:
        at = logged_ms(message.timestamp)
        if message.role == "user" and thread == MAIN:
            turn = self.builder.turn("prompt", message.text, at)
            carried.restore(turn, carried.read(message.agentsignals, OfTurn))
        elif message.role == "assistant":
            self._answer(n, message, at, thread)
        elif message.role == "tool":
            self._result(message, at, thread)
        else:
            facts = carried.read(message.agentsignals, OfEvent)
            if facts is not None or message.text:
                kind, words = (
                    (facts.kind, None if facts.wordless else message.text) if facts else ("meta", message.text)
                )
                self.builder.event(kind, words, at, thread=thread)
        if isinstance(message.content, list):
            self.builder.unread((part.type or "" for part in message.content), PARTS, at, thread)

    def _answer(self, n: int, message: Message, at: int | None, thread: str) -> None:
        facts = carried.read(message.agentsignals, OfStep)
        step = None
        if facts is not None or self.facts is None:  # else words that no recorded call of the model said
            step = self.builder.step(message.id, message.model, at, thread)
            used = self.used.get(n)
            if used is not None:
                _bill(step, used)
            carried.restore(step, facts)
        if message.reasoningContent:
            self.builder.event("thinking", message.reasoningContent, at, step, thread)
        if message.text:
            self.builder.event("text", message.text, at, step, thread)
        for order, call in enumerate(message.toolCalls or ()):
            if call.function is None:
                self.builder.event("unknown", "call without a function", at, step, thread)
                continue
            name, arguments = call.function.name or "", _arguments(call.function.arguments)
            call_id = call.id or f"{n}#{order}"
            self.facts_of[call_id] = carried.read(call.agentsignals, OfCall)
            self.builder.call(call_id, name, arguments, agents.tool(name), at, step, thread)

    def _result(self, message: Message, at: int | None, thread: str) -> None:
        call_id = message.toolCallId or ""
        facts = self.facts_of.get(call_id)
        status: CallStatus = (facts and facts.status) or self.ended.get(call_id, "unknown")
        call = self.builder.result(call_id, message.text, status, at, thread)
        if call is None:
            return
        if status != "error" and call.class_ == "edit":
            record_arguments(self.builder, call, self.touched)
        if call.path:
            self.touched.add(call.path)


def _live(messages: list[_Numbered], leaf: str | None) -> set[int]:
    """The messages on the way from the current one to the root. Without parents they are one conversation."""
    if all(m.parent is None for _, m in messages):
        return set(range(len(messages)))
    place: dict[str | None, int] = {m.id: n for n, (_, m) in enumerate(messages) if m.id is not None}
    at = place.get(leaf, len(messages) - 1)
    live: set[int] = set()
    while at >= 0 and at not in live:
        live.add(at)
        parent = messages[at][1].parent
        if parent is None:
            break
        at = place.get(parent, at - 1)  # a lost line must not abandon what was said before it
    return live


def _runs(messages: list[_Numbered], live: set[int]) -> Iterator[list[int]]:
    """The answers between one prompt and the next, on each side of a fork by itself."""
    for side in (live, set(range(len(messages))) - live):
        run: list[int] = []
        for n in sorted(side):
            role = messages[n][1].role
            if role == "user" and run:
                yield run
                run = []
            if role == "assistant":
                run.append(n)
        if run:
            yield run


def _with_cache(used: Used, whole: Timings | None) -> Used:
    """A call of a run says nothing of its cache; the figures of the run do, for the call they are of."""
    same = whole is not None and (whole.prompt_n, whole.predicted_n) == (used.prompt_n, used.predicted_n)
    return Used(used.prompt_n, used.predicted_n, whole.cache_n if same and whole is not None else used.cache_n)


def _bill(step: Step, used: Used) -> None:
    step.input_tokens, step.output_tokens = count(used.prompt_n), count(used.predicted_n)
    step.cache_read_tokens = count(used.cache_n)


def _arguments(raw: Raw) -> str:
    """Arguments as JSON; the format has them as a text."""
    try:
        value = msgspec.json.decode(raw) if raw else "{}"
    except UNREADABLE:
        value = None
    return value if isinstance(value, str) else bytes(raw).decode("utf-8", "replace")
