"""Facts that an exchange format has no field for. Exports write them under `agentsignals`, where the format leaves room
for its producers, and the readers of those formats take them from there (design/formats.md#round-trips).

A row's facts are complete: what they leave out is None. So each kind has a required field. The values are as hostile as
all others: what is not as declared here is ignored.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import msgspec
from msgspec import Meta, Raw, Struct, field

from agentsignals import model
from agentsignals.model import Context, Convention, Edit, Event, Roles, Session, Step, ToolCall, Turn, TurnKind

Count = Annotated[int, Meta(ge=0, le=2**40)]
"""A number that no other format counts, so nobody else checks it."""


class OfSession(Struct, kw_only=True, omit_defaults=True):
    context: Context
    agent: str = ""
    agent_version: str | None = None
    model: str | None = None
    cwd: str | None = None
    branch: str | None = None
    repo: str | None = None
    title: str | None = None
    parent_session_id: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    conventions: list[Convention] = field(default_factory=list)


class OfTurn(Struct, kw_only=True, omit_defaults=True):
    kind: TurnKind
    model: str | None = None
    timestamp: int | None = None


_OPTIONAL = (
    "message_id model stop_reason input_tokens output_tokens cache_read_tokens cache_write_tokens cache_write_1h_tokens"
    " reasoning_tokens cost_usd cost_source replaced_cost_usd speed service_tier inference_geo web_searches unpriced"
    " summed_calls summed_tokens"
)
_TYPES = get_type_hints(Step)
OfStep: type[Struct] = msgspec.defstruct(
    "OfStep",
    [("timestamp", _TYPES["timestamp"]), *((name, _TYPES[name], None) for name in _OPTIONAL.split())],
    kw_only=True,
    omit_defaults=True,
)


class OfCall(Struct, kw_only=True, omit_defaults=True):
    status: model.CallStatus
    class_: model.ToolClass = field(name="class", default="other")
    call_id: str | None = None
    """Id by the agent, where several calls share one and the format's has a number."""
    outcome: model.CallOutcome | None = None
    error_class: str | None = None
    exit_code: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    shell_kind: model.ShellKind | None = None
    path: str | None = None
    command: str | None = None
    purpose: model.ToolPurpose | None = None
    argument_roles: str | None = None
    ran_s: float | None = None
    limit_s: float | None = None
    hooks_s: float | None = None
    not_before: int | None = None
    result_tokens: Count | None = None
    no_object: Literal["json", "text", "empty"] | None = None
    """Arguments that were no object but what is under `input`: other JSON, or text; or there were none."""

    def __post_init__(self) -> None:
        if self.argument_roles is not None:
            msgspec.json.decode(self.argument_roles, type=Roles)


class OfEvent(Struct, kw_only=True, omit_defaults=True):
    """Facts of an event that is neither words nor a call with its result: formats have it as words of the system."""

    kind: model.EventKind
    wordless: bool = False


class OfRecord(Struct, kw_only=True):
    """All facts together, where only the record of a session has room: by step number, calls by `STEP:CALL_ID`."""

    session: Raw = Raw()
    turns: dict[str, Raw] = field(default_factory=dict)
    steps: dict[str, Raw] = field(default_factory=dict)
    calls: dict[str, Raw] = field(default_factory=dict)
    events: dict[str, Raw] = field(default_factory=dict)


_Facts = TypeVar("_Facts")


def carried_facts(row: Session | Turn | Step | ToolCall, kind: type[Struct]) -> dict[str, Any]:
    """Return the facts of a row as plain data."""
    facts = kind(**{name: getattr(row, name) for name in kind.__struct_fields__ if hasattr(row, name)})
    values: dict[str, Any] = msgspec.to_builtins(facts)
    return values


def carried_event(event: Event) -> dict[str, Any]:
    """Return the facts of an event as plain data."""
    values: dict[str, Any] = msgspec.to_builtins(OfEvent(kind=event.kind, wordless=event.text is None))
    return values


def read_carried(raw: Raw, kind: type[_Facts]) -> _Facts | None:
    """Return the facts that a record carries; None where it carries none, or invalid ones."""
    try:
        return msgspec.json.decode(raw, type=kind) if raw else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def restore(row: Session | Turn | Step | ToolCall, facts: Struct | None) -> None:
    """Set the facts on a row; without any it stays as the format's fields have it."""
    for name in facts.__struct_fields__ if facts is not None else ():
        value = getattr(facts, name)
        if hasattr(row, name) and not (value is None and name in _KEPT):
            setattr(row, name, value)
    if isinstance(facts, OfCall) and isinstance(row, ToolCall) and facts.no_object is not None:
        row.arguments = _unwrapped(row.arguments, facts.no_object)


_KEPT = frozenset(("repo", "call_id"))
"""Facts that stay as the format's fields, or the place of the file, have them when nothing is carried."""


def _unwrapped(arguments: str, was: Literal["json", "text", "empty"]) -> str:
    if was == "empty":
        return "" if arguments == "{}" else arguments
    try:
        inside = msgspec.json.decode(arguments, type=dict[str, Raw]).get("input", Raw(b"null"))
        return bytes(inside).decode() if was == "json" else msgspec.json.decode(inside, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return arguments


# Places of rows


class EventPlace(Struct, array_like=True, kw_only=True):
    kind: model.EventKind
    seq: Count
    turn: Count | None
    step: Count | None
    timestamp: int | None
    n_chars: Count


class BlankPlace(EventPlace, array_like=True, kw_only=True):
    """Place of an event without words (thinking that only the provider can read), which no file has otherwise."""

    thread: str


class StepPlace(Struct, array_like=True):
    step: Count
    seq: Count
    turn: Count | None
    input_in_step: Count | None


class EditPlace(Struct, array_like=True, kw_only=True):
    """A hunk; the rest of it is its call's."""

    seq: Count
    path: str
    op: model.EditOp
    via: Literal["edit_tool", "shell"]
    hunk: Count
    start_line: Count | None
    end_line: Count | None
    added: Count | None
    removed: Count | None
    old_start: Count | None
    whole_file: bool
    origin: model.EditOrigin | None = None
    source: str | None = None


class Places(Struct, kw_only=True, omit_defaults=True):
    """Order of events and steps for formats that have an order of their own (subagents separate, results next to their
    calls), and the rows about them."""

    events: list[EventPlace]
    steps: list[StepPlace]
    blanks: list[BlankPlace] = field(default_factory=list)
    edits: list[EditPlace] = field(default_factory=list)
    labels: list[model.Label] = field(default_factory=list)
    checkpoints: list[model.Checkpoint] = field(default_factory=list)


WORDS = ("text", "thinking")
_Row = TypeVar("_Row", bound=Struct)


class _Carrying(Struct):
    places: Places


def carried_places(
    session: Session, events: Iterable[Event], steps: Iterable[Step], threads: Container[str]
) -> dict[str, Any]:
    """Return the places of these events and steps, which a file has in this order, and of blank events in the threads
    that it has, as plain data."""
    blank = [e for e in session.events if e.kind in WORDS and not e.text and e.thread in threads]
    rows = Places(
        events=[_copied(e, EventPlace) for e in events],
        steps=[_copied(s, StepPlace) for s in steps],
        blanks=[_copied(e, BlankPlace) for e in blank],
        edits=[_copied(e, EditPlace) for e in session.edits],
        labels=session.labels,
        checkpoints=session.checkpoints,
    )
    return {"places": msgspec.to_builtins(rows)}


def restore_places(session: Session, raw: Raw) -> None:
    """Put the rows of a session that was read in the places that its file carries. When these do not fit what was read
    (somebody removed a message), all stays as the file has it."""
    carrying = read_carried(raw, _Carrying)
    if carrying is None or not _fits(session, carrying.places):
        return
    places = carrying.places
    session.events += [
        Event(seq=n, turn=None, step=None, thread=blank.thread, kind=blank.kind, text="", n_chars=0, timestamp=None,
              artifact_id=session.artifact_id, line=session.events[-1].line if session.events else 1)
        for n, blank in enumerate(places.blanks, len(session.events))
    ]  # fmt: skip
    placed = [*places.events, *places.blanks]
    seqs = sorted(place.seq for place in placed)
    numbers = sorted(place.step for place in places.steps)
    at: dict[int, int] = {}
    for event, place in zip(session.events, placed, strict=True):
        at[event.seq] = bisect_left(seqs, place.seq)
        event.turn, event.step = _within(place.turn, len(session.turns)), _rank(place.step, numbers)
        event.timestamp, event.n_chars, event.seq = place.timestamp, place.n_chars, at[event.seq]
    session.events.sort(key=lambda event: event.seq)
    for turn in session.turns:
        turn.seq = at[turn.seq]
    for call in session.tool_calls:
        call.seq, call.result_seq = at[call.seq], None if call.result_seq is None else at[call.result_seq]
        call.turn, call.step = session.events[call.seq].turn, session.events[call.seq].step
    session.tool_calls.sort(key=lambda call: call.seq)
    for step, where in zip(session.steps, places.steps, strict=True):
        step.step, step.seq = bisect_left(numbers, where.step), bisect_left(seqs, where.seq)
        step.turn = _within(where.turn, len(session.turns))
        step.input_in_step = _rank(where.input_in_step, numbers)
    session.steps.sort(key=lambda step: step.step)
    # Edits, labels and checkpoints; those about a missing row are left out.
    calls = {seqs[call.seq]: call for call in session.tool_calls}
    session.edits = [
        _copied(edit, Edit, seq=made.seq, turn=made.turn, thread=made.thread, call_id=made.call_id)
        for edit in places.edits
        if (made := calls.get(edit.seq)) is not None
    ]
    session.edits.sort(key=lambda edit: (edit.seq, edit.hunk))
    for label in places.labels:
        seq, of_turn = _rank(label.seq, seqs), _within(label.turn, len(session.turns))
        if (seq is None, of_turn is None) == (label.seq is None, label.turn is None):
            label.seq = seq
            session.labels.append(label)
    session.checkpoints = places.checkpoints


def _fits(session: Session, places: Places) -> bool:
    """True when these are the places of what was read: as many, of the same kinds, each once, and with turns, calls and
    results in a possible order."""
    if len(places.steps) != len(session.steps) or len({place.step for place in places.steps}) != len(places.steps):
        return False
    if any(blank.kind not in WORDS for blank in places.blanks):
        return False
    if [event.kind for event in session.events] != [place.kind for place in places.events]:
        return False
    seqs = [place.seq for place in (*places.events, *places.blanks)]
    turns = [seqs[turn.seq] for turn in session.turns]
    answered = [(seqs[c.seq], seqs[c.result_seq]) for c in session.tool_calls if c.result_seq is not None]
    return len(set(seqs)) == len(seqs) and turns == sorted(turns) and all(asked < came for asked, came in answered)


def _copied(row: Struct, kind: type[_Row], **others: Any) -> _Row:
    return kind(**{name: getattr(row, name) for name in kind.__struct_fields__ if name not in others}, **others)


def _within(number: int | None, count: int) -> int | None:
    return number if number is not None and 0 <= number < count else None


def _rank(number: int | None, numbers: list[int]) -> int | None:
    n = len(numbers) if number is None else bisect_left(numbers, number)
    return n if n < len(numbers) and numbers[n] == number else None
