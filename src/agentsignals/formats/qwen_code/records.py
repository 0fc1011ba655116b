"""The records of a Qwen Code chat as typed structs (design/formats.md#qwen-code): only what is read."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats.one_document import as_text
from agentsignals.formats.records import UNREADABLE


class Call(Struct, gc=False):
    id: str | None = None
    name: str | None = None
    args: Raw = Raw()


class Answer(Struct, gc=False):
    output: object = None
    error: object = None

    @property
    def text(self) -> str:
        return as_text(self.error if self.error is not None else self.output)


class Response(Struct, gc=False):
    id: str | None = None
    name: str | None = None
    response: Answer = field(default_factory=Answer)


class Part(Struct, gc=False, kw_only=True):
    text: str | None = None
    thought: object = None
    functionCall: Call | None = None
    functionResponse: Response | None = None
    inlineData: Raw = Raw()
    fileData: Raw = Raw()

    @property
    def kind(self) -> str:
        """What is in it; nothing where it is none of what is known."""
        return next((name for name in _PART_KINDS if getattr(self, name) not in (None, Raw())), "")


_PART_KINDS = ("text", "functionCall", "functionResponse", "inlineData", "fileData", "thought")
PARTS = frozenset(_PART_KINDS)
ATTACHED = frozenset(("inlineData", "fileData"))


class Message(Struct, gc=False):
    parts: list[Part] = field(default_factory=list)


class Usage(Struct, gc=False):
    promptTokenCount: object = None
    candidatesTokenCount: object = None
    thoughtsTokenCount: object = None
    cachedContentTokenCount: object = None
    totalTokenCount: object = None


class CallResult(Struct, gc=False):
    status: str | None = None
    resultDisplay: Raw = Raw()


class Display(Struct, gc=False):
    """What the program shows of an edit."""

    fileDiff: str
    originalContent: str | None = None
    newContent: str | None = None


class Fork(Struct, gc=False):
    sessionId: str | None = None


class Record(Struct, gc=False, kw_only=True):
    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None
    sessionId: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    version: str | None = None
    gitBranch: str | None = None
    model: str | None = None
    message: Message | None = None
    usageMetadata: Usage | None = None
    toolCallResult: CallResult | None = None
    systemPayload: Raw = Raw()
    agentId: str | None = None
    """Of a subagent's records, in newer versions."""
    forkedFrom: Fork | None = None
    """Of records that a branch of a session copied from it."""

    @property
    def kind(self) -> str:
        return f"{self.type}.{self.subtype}"[:80] if self.subtype else self.type[:80] or "untyped"


class UiEvent(Struct, gc=False, kw_only=True):
    """A line of telemetry; each model call has one, those of subagents nothing else."""

    name: str = field(name="event.name", default="")
    model: str | None = None
    subagent_name: str | None = None
    prompt_id: str | None = None
    response_id: str | None = None
    input_token_count: object = None
    output_token_count: object = None
    cached_content_token_count: object = None
    thoughts_token_count: object = None
    total_token_count: object = None
    error: object = None
    error_message: object = None
    status_code: object = None

    @property
    def usage(self) -> Usage:
        return Usage(
            promptTokenCount=self.input_token_count,
            candidatesTokenCount=self.output_token_count,
            thoughtsTokenCount=self.thoughts_token_count,
            cachedContentTokenCount=self.cached_content_token_count,
            totalTokenCount=self.total_token_count,
        )


class Payload(Struct, gc=False, kw_only=True):
    """What the program says of its own state, by `subtype`."""

    uiEvent: UiEvent | None = None
    info: Raw = Raw()
    summary: str | None = None
    customTitle: str | None = None
    displayText: str | None = None
    phase: str | None = None
    rawCommand: str | None = None
    filesRead: object = None


decode = msgspec.json.Decoder(Record).decode
_T = TypeVar("_T", Payload, Display)


def inside(raw: Raw, kind: type[_T]) -> _T | None:
    """A payload or display; None where it is of another shape."""
    try:
        return msgspec.json.decode(raw, type=kind) if raw else None
    except UNREADABLE:
        return None
