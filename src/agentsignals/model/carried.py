"""What an exchange format has no field for: the exports write it under `agentsignals` where the format leaves room for
its producers, and the readers of those formats take it from there (design/formats.md#round-trips).

A row's facts are whole: what they leave out is None. So each kind has a field that must be there. The values are as
hostile as all others: what is not as declared here says nothing, and soundness looks at the rest.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct, field

from agentsignals.model import (
    CallOutcome,
    CallStatus,
    Context,
    Convention,
    Event,
    EventKind,
    Session,
    ShellKind,
    Step,
    ToolCall,
    ToolClass,
    ToolPurpose,
    Turn,
    TurnKind,
)
from agentsignals.model.roles import Roles

Count = Annotated[int, Meta(ge=0, le=2**40)]
"""What is counted here of other formats, and therefore looked at by nobody else."""


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


class OfStep(Struct, kw_only=True, omit_defaults=True):
    timestamp: int | None
    message_id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    cost_source: str | None = None
    speed: str | None = None
    service_tier: str | None = None
    inference_geo: str | None = None
    web_searches: int | None = None
    unpriced: str | None = None
    summed_calls: int | None = None
    summed_tokens: int | None = None


class OfCall(Struct, kw_only=True, omit_defaults=True):
    status: CallStatus
    class_: ToolClass = field(name="class", default="other")
    call_id: str | None = None
    """The agent's own, where several calls share one and the format's has a number."""
    outcome: CallOutcome | None = None
    error_class: str | None = None
    exit_code: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    shell_kind: ShellKind | None = None
    path: str | None = None
    command: str | None = None
    purpose: ToolPurpose | None = None
    argument_roles: str | None = None
    ran_s: float | None = None
    limit_s: float | None = None
    result_tokens: Count | None = None
    no_object: Literal["json", "text", "empty"] | None = None
    """The arguments were none, but what stands under `input`: other JSON, or no JSON at all; or there were none."""

    def __post_init__(self) -> None:
        if self.argument_roles is not None:
            msgspec.json.decode(self.argument_roles, type=Roles)


class OfEvent(Struct, kw_only=True, omit_defaults=True):
    """Of what is neither said by anybody nor a call with its result: formats have it as words of the system."""

    kind: EventKind
    wordless: bool = False


class OfRecord(Struct, kw_only=True):
    """All of them together, where only a whole session's record has room: by the number of the step they are of, and
    calls by `STEP:CALL_ID`."""

    session: Raw = Raw()
    turns: dict[str, Raw] = field(default_factory=dict)
    steps: dict[str, Raw] = field(default_factory=dict)
    calls: dict[str, Raw] = field(default_factory=dict)
    events: dict[str, Raw] = field(default_factory=dict)


_Facts = TypeVar("_Facts")


def of(row: Session | Turn | Step | ToolCall, kind: type[Struct]) -> dict[str, Any]:
    """The facts of a row that are to be carried, as plain data."""
    facts = kind(**{name: getattr(row, name) for name in kind.__struct_fields__ if hasattr(row, name)})
    values: dict[str, Any] = msgspec.to_builtins(facts)
    return values


def of_event(event: Event) -> dict[str, Any]:
    """What is to be carried of an event, as plain data."""
    values: dict[str, Any] = msgspec.to_builtins(OfEvent(kind=event.kind, wordless=event.text is None))
    return values


def read(raw: Raw, kind: type[_Facts]) -> _Facts | None:
    """The facts that a record carries; None where it carries none, or what is none."""
    try:
        return msgspec.json.decode(raw, type=kind) if raw else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def restore(row: Session | Turn | Step | ToolCall, facts: Struct | None) -> None:
    """Sets what the facts say; without any the row stays as the format's fields have it."""
    for name in facts.__struct_fields__ if facts is not None else ():
        value = getattr(facts, name)
        if hasattr(row, name) and not (value is None and name in _KEPT):
            setattr(row, name, value)
    if isinstance(facts, OfCall) and isinstance(row, ToolCall) and facts.no_object is not None:
        row.arguments = _unwrapped(row.arguments, facts.no_object)


_KEPT = frozenset(("repo", "call_id"))
"""What the format's own fields, or the place of the file, say where nothing is carried."""


def _unwrapped(arguments: str, was: Literal["json", "text", "empty"]) -> str:
    if was == "empty":
        return "" if arguments == "{}" else arguments
    try:
        inside = msgspec.json.decode(arguments, type=dict[str, Raw]).get("input", Raw(b"null"))
        return bytes(inside).decode() if was == "json" else msgspec.json.decode(inside, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return arguments
