"""Spans and annotations of TRAIL as typed structs (design/formats.md#trail): only what is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.figures import IMPOSSIBLE, count
from agentsignals.formats.one_document import each
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import Artifact
from agentsignals.model.times import logged_iso

DEEPEST = 64
"""Spans within spans that are read one by one, when they can't be read in one go."""
_LONGEST_NAME = 200
_DURATION = re.compile(r"P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,12})?)S)?)?\Z")


class Happening(Struct, gc=False):
    """An event of a span."""

    Name: str | None = None
    Timestamp: str | None = None
    Attributes: dict[str, Any] = {}


class Log(Struct, gc=False):
    body: Any = None


class Span(Struct, kw_only=True):
    """One span with those within it."""

    span_id: str = ""
    span_name: str = ""
    timestamp: str | None = None
    duration: str | None = None
    status_code: str | None = None
    status_message: str | None = None
    span_attributes: dict[str, Raw] = {}
    events: list[Happening] | None = None
    logs: list[Log] | None = None
    child_spans: list[Span] | None = None

    @property
    def kind(self) -> str:
        """What OpenInference calls it: `LLM`, `TOOL`, `AGENT`, `CHAIN` …; empty for a span of something else."""
        return self.text("openinference.span.kind").upper()

    @property
    def began(self) -> int | None:
        return logged_iso(self.timestamp)

    @property
    def ended(self) -> int | None:
        began, took = self.began, duration_us(self.duration)
        return None if began is None or took is None else began + took

    def text(self, name: str) -> str:
        """An attribute as text; nothing when there is none."""
        value = value_of(self.span_attributes.get(name))
        if isinstance(value, str):
            return value
        return "" if value is None else json.dumps(value, ensure_ascii=False)

    def count(self, name: str) -> int | None:
        """An attribute that is a number, or a number written as text."""
        text = self.text(name)
        if not text:
            return None
        return count(int(text)) if text.isascii() and text.isdigit() and len(text) < 16 else IMPOSSIBLE

    @property
    def failure(self) -> tuple[str, str] | None:
        """Type and message of the exception it ended with."""
        for event in self.events or ():
            if event.Name == "exception":
                attributes = event.Attributes
                return str(attributes.get("exception.type") or ""), str(attributes.get("exception.message") or "")
        return ("", self.status_message or "") if self.status_code == "Error" else None


class Lists:
    """Where the attributes of a span hold lists: OpenInference numbers the items in the names of attributes."""

    def __init__(self, span: Span) -> None:
        self._items: set[str] = set()
        for name in span.span_attributes:
            parts = name.split(".") if len(name) <= _LONGEST_NAME else ()
            self._items.update(".".join(parts[: n + 1]) for n, part in enumerate(parts) if part.isdigit())

    def items(self, name: str) -> Iterator[str]:
        """`name.0`, `name.1` … as far as there are any."""
        n = 0
        while f"{name}.{n}" in self._items:
            yield f"{name}.{n}"
            n += 1


class LooseSpan(Span, kw_only=True):
    """The same where something within it is odd."""

    child_spans: list[Raw] | None = None  # type: ignore[assignment]  # decoded one by one


class Trace(Struct):
    trace_id: str = ""
    spans: list[Span] = []


class LooseTrace(Struct):
    trace_id: str = ""
    spans: list[Raw] = []


class Error(Struct, gc=False):
    """An error that a person marked. Some have stray keys, which say nothing."""

    category: str
    location: str | None = None
    evidence: str | None = None
    description: str | None = None
    impact: str | None = None


class Annotations(Struct):
    trace_id: str | None = None
    errors: list[Raw] = []
    scores: list[Raw] = []


_trace = msgspec.json.Decoder(Trace).decode
_loose_trace = msgspec.json.Decoder(LooseTrace).decode
_span = msgspec.json.Decoder(Span).decode
_loose_span = msgspec.json.Decoder(LooseSpan).decode
_any = msgspec.json.Decoder().decode
_error = msgspec.json.Decoder(Error).decode
_scores = msgspec.json.Decoder(dict[str, Any]).decode
decode_annotations = msgspec.json.Decoder(Annotations).decode


class Skipped(Struct):
    """How many spans and marks could not be read."""

    spans: int = 0


def decode_trace(data: memoryview | bytes, artifact: Artifact) -> tuple[Trace, Skipped]:
    """A trace; when a span in it is odd, without that span."""
    skipped = Skipped()
    try:
        return _trace(data), skipped
    except msgspec.ValidationError:
        loose = _loose_trace(data)
        return Trace(loose.trace_id, _spans(loose.spans, skipped, 0, artifact)), skipped


def _spans(raws: list[Raw], skipped: Skipped, depth: int, artifact: Artifact) -> list[Span]:
    spans: list[Span] = []
    for raw in raws:
        span = each([raw], _span, artifact)[0]
        if span is None:
            loose = each([raw], _loose_span, artifact)[0]
            if loose is None or depth >= DEEPEST:
                skipped.spans += 1
                continue
            within = _spans(list(loose.child_spans or ()), skipped, depth + 1, artifact)
            values = {name: getattr(loose, name) for name in Span.__struct_fields__}
            span = Span(**{**values, "child_spans": within})
        spans.append(span)
    return spans


def errors_of(annotations: Annotations, artifact: Artifact) -> list[Error | None]:
    return each(annotations.errors, _error, artifact)


def scores_of(annotations: Annotations, artifact: Artifact) -> list[dict[str, Any] | None]:
    return each(annotations.scores, _scores, artifact)


def value_of(raw: Raw | None) -> Any:
    """A JSON value; None for none."""
    try:
        return _any(raw) if raw else None
    except UNREADABLE:
        return None


def duration_us(text: str | None) -> int | None:
    """An ISO 8601 duration (`PT2M5.65S`) in microseconds; None for what is none, or has months."""
    match = _DURATION.match(text) if text and text not in ("P", "PT") else None
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000)
