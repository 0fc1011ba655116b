"""A session as messages of person, agent and system in order: the common view of conversation formats."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Literal

from msgspec import Struct, field, structs

from agentsignals.model import MAIN, Event, EventKind, Session, Step, ToolCall, Turn, round_trip
from agentsignals.model.round_trip import OfCall, OfSession

_BREAK = "\n\n"
"""Separator of words of one message that were logged separately."""
DEEPEST = 200
"""Levels of arguments as data: Python reads and writes JSON of a thousand levels, including those around it."""
LOSES = (
    "which file, line and format it was read from (sessions.format, sessions.artifact_id, events.artifact_id, "
    "events.line)",
    "that words of one model call were logged apart: they are one text, in the place of the first (events)",
    "labels that were made here, and signals: measured anew",
    "the part of a long tool result that the store does not keep",
)
"""Losses common to all conversation formats."""
NO_BOUNDS = "to other programs: that output and cost are lower bounds, where they were logged in mid-stream"
RESPELT = "the spelling of arguments: spaces, escapes, names that stand twice (tool_calls.arguments)"


class Call(Struct):
    call: ToolCall
    id: str
    """Unique within the session: some agents repeat theirs."""
    event: Event
    result: Event | None = None


class Message(Struct, kw_only=True):
    """A prompt, or one step of the agent; in a `conversation` also an event of the system."""

    role: Literal["user", "agent", "system"]
    at: int | None
    seq: int
    """Event that it begins with; for a step without an event, the next one."""
    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    step: Step | None = None
    turn: Turn | None = None
    first: dict[EventKind, Event] = field(default_factory=dict)
    """First event of each kind of words, with the length of all of them."""

    @property
    def events(self) -> list[Event]:
        """Its events in the formats' order: words, calls, results. Words that were logged separately are one event."""
        words = sorted(self.first.values(), key=lambda e: e.kind != "thinking")
        asked = [c.event for c in self.calls]
        return [*words, *asked, *(c.result for c in self.calls if c.result is not None)]

    @property
    def text(self) -> str:
        return _BREAK.join(self.texts)

    @property
    def thought(self) -> str | None:
        return _BREAK.join(self.thinking) or None


def main_messages(session: Session, thread: str = MAIN) -> list[Message]:
    """Return the messages of a thread. Lines of one step that were logged separately are one message, in the place of
    its first line. A step without words (an empty answer, a closing total) is one too: it was paid for."""
    so_far: list[Message] = []
    of_step: dict[int, Message] = {}
    steps = {s.step: s for s in session.steps}
    turns = {t.seq: t for t in session.turns}
    calls = {c.seq: c for c in session.tool_calls}
    used: dict[str, int] = {}
    for event in session.events:
        if event.thread != thread:
            continue
        if event.kind == "human_turn":
            move = Message(role="user", at=event.timestamp, seq=event.seq, turn=turns.get(event.seq))
            move.texts.append(event.text or "")
            move.first[event.kind] = event
            so_far.append(move)
        elif event.kind in ("text", "thinking", "tool_call"):
            # One message for a step; events without a step go on with the message before them.
            last = so_far[-1] if so_far else None
            if event.step is not None and event.step in of_step:
                move = of_step[event.step]
            elif event.step is None and last is not None and last.role == "agent" and last.step is None:
                move = last
            else:
                step = steps.get(event.step) if event.step is not None else None
                move = Message(role="agent", at=event.timestamp, seq=event.seq, step=step)
                so_far.append(move)
                if event.step is not None:
                    of_step[event.step] = move
            if event.kind == "tool_call":
                call = calls.get(event.seq)
                if call is not None:
                    result = session.events[call.result_seq] if call.result_seq is not None else None
                    name = call.call_id or "call"
                    n = used[name] = used.get(name, 0) + 1
                    move.calls.append(Call(call, (name if n == 1 else f"{name}~{n}"), event, result))
            elif event.text:
                (move.texts if event.kind == "text" else move.thinking).append(event.text)
                first = move.first.get(event.kind)
                chars = event.n_chars if first is None else first.n_chars + len(_BREAK) + event.n_chars
                move.first[event.kind] = structs.replace(first or event, n_chars=chars)
    wordless = [s for s in session.steps if s.thread == thread and s.step not in of_step]
    paid = [Message(role="agent", at=s.timestamp, seq=s.seq, step=s) for s in wordless]
    spoken = [m for m in so_far if m.role == "user" or m.texts or m.thinking or m.calls or m.step is not None]
    return sorted([*paid, *spoken], key=lambda m: m.seq)


def conversation(session: Session, thread: str = MAIN) -> list[Message]:
    """Return the messages of a thread; what else happened in it (a hook, a compaction) is a system message."""
    spoken = main_messages(session, thread)
    calls = {seq for call in session.tool_calls for seq in (call.seq, call.result_seq)}
    others = [
        Message(role="system", at=e.timestamp, seq=e.seq, texts=[e.text or ""], first={e.kind: e})
        for e in session.events
        if e.thread == thread and e.seq not in calls and e.kind not in ("human_turn", "text", "thinking")
    ]
    return sorted([*spoken, *others], key=lambda m: m.seq)


def carried_session(session: Session, whole: list[Message]) -> dict[str, Any]:
    """Return the facts to carry of a session that is written as these messages."""
    places = carried_session_places(session, whole, [MAIN, *subagent_threads(session)])
    return round_trip.carried_facts(session, OfSession) | places


def carried_session_places(session: Session, whole: list[Message], of_threads: list[str]) -> dict[str, Any]:
    """Return the places of the rows of these messages."""
    events = [event for move in whole for event in move.events]
    return round_trip.carried_places(
        session, events, [move.step for move in whole if move.step is not None], of_threads
    )


def carried_call(exchange: Call, *, as_logged: bool = False) -> dict[str, Any]:
    """Return the facts to carry of a call, whose arguments are written as an object unless `as_logged`."""
    call, facts = exchange.call, round_trip.carried_facts(exchange.call, OfCall)
    if exchange.id == call.call_id:
        del facts["call_id"]
    if not call.arguments:
        return facts | {"no_object": "empty"}
    parsed = {} if as_logged else _parsed(call)
    return facts if isinstance(parsed, dict) else facts | {"no_object": "text" if parsed is call.arguments else "json"}


def subagent_threads(session: Session) -> list[str]:
    """Return the threads of subagents in order of appearance."""
    rows: list[Event | Step] = [*session.events, *session.steps]
    return [t for t in dict.fromkeys(row.thread for row in rows) if t != MAIN]


def arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as an object; anything else is put under `input`."""
    parsed = _parsed(call)
    return parsed if isinstance(parsed, dict) else {"input": parsed}


def _parsed(call: ToolCall) -> Any:
    """Arguments as data; as text where they are no JSON, or nested too deep."""
    level = deepest = 0
    if call.arguments.count("[") + call.arguments.count("{") > DEEPEST:
        for c in call.arguments:  # brackets in texts count as well: an upper bound
            level += (c in "[{") - (c in "]}")
            deepest = max(deepest, level)
    try:
        if deepest > DEEPEST:
            return call.arguments
        return json.loads(call.arguments or "{}", parse_constant=_finite, parse_float=_finite)
    except ValueError:
        return call.arguments


def _finite(text: str) -> float:
    """Raise ValueError for numbers of Python (NaN, 1e999) that JSON can't express."""
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def iso_time(at: int | None) -> str | None:
    """Return microseconds since 1970 as ISO 8601 UTC."""
    if at is None:
        return None
    try:
        return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return None


def prompt_tokens(step: Step) -> int | None:
    """Return all input tokens, cached or not, for formats whose input includes cached tokens."""
    return total((step.input_tokens, step.cache_read_tokens, step.cache_write_tokens))


def total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def without_nones(values: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if v is not None}
