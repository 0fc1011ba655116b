"""OTLP JSON as typed structs: batches of spans and logs, with attributes as plain values."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.records import UNREADABLE

_WANTED = (
    "gen_ai.", "error.", "service.", "event.", "content", "role", "tool_calls", "id", "message", "index",
    "finish_reason", "name",
)  # fmt: skip
"""How the names of the attributes begin that are read; spans carry many others."""
_DEEPEST = 32


class Pair(Struct, gc=False):
    key: str
    value: Raw = Raw()


class Listed(Struct, gc=False):
    values: list[Raw] = []


class Value(Struct, gc=False, kw_only=True):
    """One of these, by type."""

    stringValue: str | None = None
    intValue: str | int | None = None
    doubleValue: float | None = None
    boolValue: bool | None = None
    arrayValue: Listed | None = None
    kvlistValue: Listed | None = None


class Status(Struct, gc=False):
    code: Any = None
    message: str | None = None


class Event(Struct, gc=False, kw_only=True):
    """Something in a span's life, or a log record that names its span."""

    name: str | None = None
    eventName: str | None = None
    timeUnixNano: Any = None
    traceId: str | None = None
    spanId: str | None = None
    attributes: list[Pair] = []
    body: Raw = Raw()


class Span(Struct, gc=False, kw_only=True):
    traceId: str
    spanId: str
    name: str = ""
    parentSpanId: str | None = None
    startTimeUnixNano: Any = None
    endTimeUnixNano: Any = None
    attributes: list[Pair] = []
    events: list[Event] | None = None
    status: Status | None = None


class Scope(Struct, gc=False):
    spans: list[Raw] | None = None
    logRecords: list[Raw] | None = None


class Resource(Struct, gc=False):
    attributes: list[Pair] = []


class Batch(Struct, gc=False):
    resource: Resource | None = None
    scopeSpans: list[Scope] | None = None
    scopeLogs: list[Scope] | None = None
    instrumentationLibrarySpans: list[Scope] | None = None


class Export(Struct, gc=False):
    """What is written at once."""

    resourceSpans: list[Batch] | None = None
    resourceLogs: list[Batch] | None = None


decode = msgspec.json.Decoder(Export).decode
decode_span = msgspec.json.Decoder(Span).decode
decode_event = msgspec.json.Decoder(Event).decode
_value = msgspec.json.Decoder(Value).decode
_pair = msgspec.json.Decoder(Pair).decode


def attributes(pairs: list[Pair]) -> dict[str, Any]:
    """The attributes that are read, as plain values."""
    return {p.key: plain(p.value) for p in pairs if p.key.startswith(_WANTED)}


def plain(raw: Raw, depth: int = 0) -> Any:
    """A value without its type; None for one that is odd or nested too deep."""
    try:
        value = _value(raw) if raw and depth < _DEEPEST else Value()
    except UNREADABLE:
        return None
    if value.arrayValue is not None:
        return [plain(v, depth + 1) for v in value.arrayValue.values]
    if value.kvlistValue is not None:
        return _named(value.kvlistValue, depth)
    if isinstance(value.intValue, str):
        return as_int(value.intValue)
    simple = (value.stringValue, value.intValue, value.doubleValue, value.boolValue)
    return next((v for v in simple if v is not None), None)


def _named(listed: Listed, depth: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for raw in listed.values:
        try:
            pair = _pair(raw)
        except UNREADABLE:
            continue
        attributes[pair.key] = plain(pair.value, depth + 1)
    return attributes


def as_int(value: object) -> int | None:
    """A whole number, which OTLP writes as a text as well; None for anything else."""
    if isinstance(value, str):
        digits = value.removeprefix("-")
        return int(value) if digits.isascii() and digits.isdigit() and len(value) < 20 else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def at_us(nanoseconds: object) -> int | None:
    """A time in nanoseconds since 1970 as microseconds."""
    value_ns = as_int(nanoseconds)
    return value_ns // 1000 if value_ns else None
