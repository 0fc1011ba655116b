"""What an exchange format has no field for: the exports write it under `agentsignals` where the format leaves room for
its producers, and the readers of those formats take it from there (design/formats.md#round-trips).

The values are as hostile as all others: what is not as declared here says nothing, and soundness looks at the rest.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.model import CallOutcome, CallStatus, Context, Convention, Session, Step, ToolCall, Turn, TurnKind


class OfSession(Struct, kw_only=True, omit_defaults=True):
    context: Context | None = None
    cwd: str | None = None
    branch: str | None = None
    repo: str | None = None
    title: str | None = None
    parent_session_id: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    conventions: list[Convention] = field(default_factory=list)


class OfTurn(Struct, kw_only=True, omit_defaults=True):
    kind: TurnKind | None = None
    model: str | None = None


class OfStep(Struct, kw_only=True, omit_defaults=True):
    timestamp: int | None = None
    message_id: str | None = None
    stop_reason: str | None = None
    cost_source: str | None = None
    cache_write_1h_tokens: int | None = None


class OfUsage(OfStep, kw_only=True, omit_defaults=True):
    """Of a step, with the figures that a format has no field for, or for which it has no way to say: not recorded."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None


class OfCall(Struct, kw_only=True, omit_defaults=True):
    status: CallStatus | None = None
    outcome: CallOutcome | None = None
    error_class: str | None = None
    exit_code: int | None = None
    started_at: int | None = None
    ended_at: int | None = None


class OfRecord(Struct, kw_only=True):
    """All of them together, where only a whole session's record has room: by the number of the step they are of, and
    calls by `STEP:CALL_ID`."""

    session: Raw = Raw()
    turns: dict[str, Raw] = field(default_factory=dict)
    steps: dict[str, Raw] = field(default_factory=dict)
    calls: dict[str, Raw] = field(default_factory=dict)


_Facts = TypeVar("_Facts", OfSession, OfTurn, OfStep, OfUsage, OfCall, OfRecord)


def of(row: Session | Turn | Step | ToolCall, kind: type[_Facts]) -> dict[str, Any] | None:
    """The facts of a row that are to be carried, as plain data; None when it has none."""
    facts = kind(**{name: getattr(row, name) for name in kind.__struct_fields__})
    values: dict[str, Any] = msgspec.to_builtins(facts)
    return values or None


def read(raw: Raw, kind: type[_Facts]) -> _Facts:
    """The facts that a record carries; none where it carries none, or what is none."""
    try:
        return msgspec.json.decode(raw, type=kind) if raw else kind()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return kind()


def restore(row: Session | Turn | Step | ToolCall, facts: Struct) -> None:
    """Sets what the facts say; what they leave out stays as the format's fields have it."""
    for name in facts.__struct_fields__:
        value = getattr(facts, name)
        if value is not None and value != []:
            setattr(row, name, value)
