"""The records of Claude Code as typed structs: only what is read, everything else is skipped undecoded."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from agentsignals.model import Step


class CacheCreation(Struct, gc=False):
    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class Block(Struct, gc=False):
    """A content block: text, thinking, tool_use, tool_result, image, fallback."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()
    tool_use_id: str | None = None
    content: str | list[Block] | None = None
    is_error: bool | None = None


class Message(Struct, gc=False):
    id: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class Line(Struct, gc=False):
    """A record of the transcript, of any type."""

    type: str = ""
    uuid: str | None = None
    sessionId: str | None = None  # noqa: N815  (the file's own spelling, here and below)
    timestamp: str | None = None
    cwd: str | None = None
    gitBranch: str | None = None  # noqa: N815
    version: str | None = None
    isSidechain: bool | None = None  # noqa: N815
    agentId: str | None = None  # noqa: N815
    isMeta: bool | str | None = None  # noqa: N815  (a string in re-exported rows)
    isCompactSummary: bool | None = None  # noqa: N815
    isApiErrorMessage: bool | None = None  # noqa: N815
    planContent: object = None  # noqa: N815
    origin: object = None
    message: Message | None = None
    toolUseResult: Raw = Raw()  # noqa: N815
    subtype: str | None = None
    operation: str | None = None
    content: object = None
    compactMetadata: object = None  # noqa: N815
    data: Raw = Raw()
    attachment: Raw = Raw()
    customTitle: str | None = None  # noqa: N815
    aiTitle: str | None = None  # noqa: N815


class Progress(Struct, gc=False):
    type: str = ""
    agentId: str | None = None  # noqa: N815
    message: Line | None = None


class Attachment(Struct, gc=False):
    type: str = ""
    prompt: object = None
    commandMode: str | None = None  # noqa: N815
    filename: str | None = None


decode = msgspec.json.Decoder(Line).decode
_progress = msgspec.json.Decoder(Progress).decode
_attachment = msgspec.json.Decoder(Attachment).decode

QUIET = frozenset(
    "file-history-snapshot summary last-prompt permission-mode mode agent-name pr-link frame-link"
    " user assistant progress system attachment".split()
)
"""Record types that are understood and leave no event of their own (counted in the artifact's record_kinds)."""


def decode_progress(data: Raw) -> Progress:
    try:
        return _progress(data)
    except msgspec.DecodeError:
        return Progress("unreadable")


def decode_attachment(data: Raw) -> Attachment:
    try:
        return _attachment(data)
    except msgspec.DecodeError:
        return Attachment("unreadable")


def kind_of(line: Line) -> str:
    """The record's type and subtype, as counted in the artifact."""
    if line.type == "system":
        return f"system.{line.subtype}"
    return line.type or "untyped"


def blocks(message: Message) -> Sequence[Block]:
    """The content as blocks, also when it is a bare string."""
    if isinstance(message.content, str):
        return [Block("text", message.content)]
    return message.content or ()


def text_of(message: Message) -> str:
    """The text blocks joined."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(b.text for b in message.content or () if b.type == "text" and b.text)


def as_text(value: object) -> str:
    """A value that is usually a string, as a string."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(v["text"] for v in value if isinstance(v, dict) and isinstance(v.get("text"), str))
    return ""


def count_usage(step: Step, message: Message) -> None:
    """Usage is repeated on every line of a message and grows while it streams: the field-wise maximum counts.

    Source: formats.md 1.2 (the last line has the maximum in 8 262 of 8 262 ids).
    """
    usage = message.usage
    if message.stop_reason:
        step.stop_reason = message.stop_reason
    if usage is None:
        return
    step.input_tokens = _more(step.input_tokens, usage.input_tokens)
    step.output_tokens = _more(step.output_tokens, usage.output_tokens)
    step.cache_read_tokens = _more(step.cache_read_tokens, usage.cache_read_input_tokens)
    step.cache_write_tokens = _more(step.cache_write_tokens, usage.cache_creation_input_tokens)


def _more(a: int | None, b: int | None) -> int | None:
    if a is None:
        return b
    return a if b is None or b < a else b
