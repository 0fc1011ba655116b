"""A session as who said and did what, in order: the view that conversation formats share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Literal

from msgspec import Struct, field, structs

from agentsignals.model import MAIN, Event, EventKind, Session, Step, ToolCall, Turn
from agentsignals.model import round_trip as carried
from agentsignals.model import round_trip as placement
from agentsignals.model.round_trip import OfCall, OfSession

_BREAK = "\n\n"
"""Between words of one move that were logged apart."""
DEEPEST = 200
"""Of arguments as data: Python reads and writes JSON of a thousand levels, those of its own included."""
LOSES = (
    "which file, line and format it was read from (sessions.format, sessions.artifact_id, events.artifact_id, "
    "events.line)",
    "that words of one model call were logged apart: they are one text, in the place of the first (events)",
    "labels that were made here, and signals: measured anew",
    "the part of a long tool result that the store does not keep",
)
"""What no format of conversations carries, though its producers may add to it."""
NO_BOUNDS = "to other programs: that output and cost are lower bounds, where they were logged in mid-stream"
RESPELT = "the spelling of arguments: spaces, escapes, names that stand twice (tool_calls.arguments)"


class Call(Struct):
    """A tool call and what came of it."""

    call: ToolCall
    id: str
    """Unique within the session: some agents repeat theirs."""
    event: Event
    result: Event | None = None


class Move(Struct, kw_only=True):
    """What the person said, or one step of the agent; in a `conversation` also what nobody of the two said."""

    role: Literal["user", "agent", "system"]
    at: int | None
    seq: int
    """The event that it begins with; of a step that left no event, the one that came next."""
    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    step: Step | None = None
    turn: Turn | None = None
    first: dict[EventKind, Event] = field(default_factory=dict)
    """Of each kind of words the event that begins them, and as long as they all are."""

    @property
    def events(self) -> list[Event]:
        """Its events in the order in which formats have them: words, calls, results. Words that were logged apart are
        the event of the first."""
        words = sorted(self.first.values(), key=lambda e: e.kind != "thinking")
        asked = [c.event for c in self.calls]
        return [*words, *asked, *(c.result for c in self.calls if c.result is not None)]

    @property
    def text(self) -> str:
        return _BREAK.join(self.texts)

    @property
    def thought(self) -> str | None:
        return _BREAK.join(self.thinking) or None


def moves(session: Session, thread: str = MAIN) -> list[Move]:
    """The moves of a thread. Lines of one step that were logged apart are one move, where its first line stands; a step
    that left no words (an empty answer, a closing total) is one too: it was paid for.
    """
    so_far: list[Move] = []
    of_step: dict[int, Move] = {}
    steps = {s.step: s for s in session.steps}
    turns = {t.seq: t for t in session.turns}
    calls = {c.seq: c for c in session.tool_calls}
    used: dict[str, int] = {}
    for event in session.events:
        if event.thread != thread:
            continue
        if event.kind == "human_turn":
            move = Move(role="user", at=event.timestamp, seq=event.seq, turn=turns.get(event.seq))
            move.texts.append(event.text or "")
            move.first[event.kind] = event
            so_far.append(move)
        elif event.kind in ("text", "thinking", "tool_call"):
            move = _agent_move(event, so_far, of_step, steps)
            if event.kind == "tool_call":
                call = calls.get(event.seq)
                if call is not None:
                    result = session.events[call.result_seq] if call.result_seq is not None else None
                    move.calls.append(Call(call, _unique(call.call_id, used), event, result))
            elif event.text:
                (move.texts if event.kind == "text" else move.thinking).append(event.text)
                first = move.first.get(event.kind)
                chars = event.n_chars if first is None else first.n_chars + len(_BREAK) + event.n_chars
                move.first[event.kind] = structs.replace(first or event, n_chars=chars)
    wordless = [s for s in session.steps if s.thread == thread and s.step not in of_step]
    paid = [Move(role="agent", at=s.timestamp, seq=s.seq, step=s) for s in wordless]
    spoken = [m for m in so_far if m.role == "user" or m.texts or m.thinking or m.calls or m.step is not None]
    return sorted([*paid, *spoken], key=lambda m: m.seq)


def conversation(session: Session, thread: str = MAIN) -> list[Move]:
    """The moves of a thread, and as moves of the system all else that happened in it (a hook, a compaction)."""
    spoken = moves(session, thread)
    calls = {seq for call in session.tool_calls for seq in (call.seq, call.result_seq)}
    others = [
        Move(role="system", at=e.timestamp, seq=e.seq, texts=[e.text or ""], first={e.kind: e})
        for e in session.events
        if e.thread == thread and e.seq not in calls and e.kind not in ("human_turn", "text", "thinking")
    ]
    return sorted([*spoken, *others], key=lambda m: m.seq)


def of_session(session: Session, whole: list[Move]) -> dict[str, Any]:
    """What is to be carried of a session that is written as these moves, beside what is carried of each."""
    return carried.of(session, OfSession) | of_places(session, whole, [MAIN, *threads(session)])


def of_places(session: Session, whole: list[Move], of_threads: list[str]) -> dict[str, Any]:
    """The places of the rows that these moves of some threads have, and what is about them."""
    events = [event for move in whole for event in move.events]
    return placement.of_placement(session, events, [move.step for move in whole if move.step is not None], of_threads)


def of_call(exchange: Call, *, as_logged: bool = False) -> dict[str, Any]:
    """What is to be carried of a call, whose arguments are written as an object unless they are `as_logged`."""
    call, facts = exchange.call, carried.of(exchange.call, OfCall)
    if exchange.id == call.call_id:
        del facts["call_id"]
    if not call.arguments:
        return facts | {"no_object": "empty"}
    parsed = {} if as_logged else _parsed(call)
    return facts if isinstance(parsed, dict) else facts | {"no_object": "text" if parsed is call.arguments else "json"}


def threads(session: Session) -> list[str]:
    """The threads beside the main one, in order of appearance."""
    rows: list[Event | Step] = [*session.events, *session.steps]
    return [t for t in dict.fromkeys(row.thread for row in rows) if t != MAIN]


def _agent_move(event: Event, so_far: list[Move], of_step: dict[int, Move], steps: dict[int, Step]) -> Move:
    if event.step is not None and event.step in of_step:
        return of_step[event.step]
    last = so_far[-1] if so_far else None
    if event.step is None and last is not None and last.role == "agent" and last.step is None:
        return last
    step = steps.get(event.step) if event.step is not None else None
    move = Move(role="agent", at=event.timestamp, seq=event.seq, step=step)
    so_far.append(move)
    if event.step is not None:
        of_step[event.step] = move
    return move


def _unique(call_id: str, used: dict[str, int]) -> str:
    name = call_id or "call"
    n = used[name] = used.get(name, 0) + 1
    return name if n == 1 else f"{name}~{n}"


def arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object; those that are none stand under `input`."""
    parsed = _parsed(call)
    return parsed if isinstance(parsed, dict) else {"input": parsed}


def _parsed(call: ToolCall) -> Any:
    """The arguments as data; as they are where they are no JSON, or nested deeper than a document may hold them."""
    try:
        if _depth(call.arguments) > DEEPEST:
            return call.arguments
        return json.loads(call.arguments or "{}", parse_constant=_finite, parse_float=_finite)
    except ValueError:
        return call.arguments


def _finite(text: str) -> float:
    """ValueError for what Python takes for a number (NaN, 1e999) and JSON can't say."""
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def _depth(text: str) -> int:
    """How deep JSON is nested, at most."""
    brackets = text.count("[") + text.count("{")
    if brackets <= DEEPEST:
        return brackets
    level = deepest = 0
    for c in text:
        level += (c in "[{") - (c in "]}")
        deepest = max(deepest, level)
    return deepest


def iso(at: int | None) -> str | None:
    """Microseconds since 1970 as ISO 8601 UTC."""
    if at is None:
        return None
    try:
        return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return None


def prompt_tokens(step: Step) -> int | None:
    """Everything that went in, cached or not, as formats count it whose input includes what was cached."""
    parts = [t for t in (step.input_tokens, step.cache_read_tokens, step.cache_write_tokens) if t is not None]
    return sum(parts) if parts else None


def counted(steps: Iterator[Step], name: str) -> int | None:
    """The sum of a token column over steps; None where none says."""
    counts = [v for s in steps if (v := getattr(s, name)) is not None]
    return sum(counts) if counts else None


def without_nones(values: dict[str, Any]) -> dict[str, Any]:
    """Without what is not known: the formats leave such keys out."""
    return {k: v for k, v in values.items() if v is not None}
