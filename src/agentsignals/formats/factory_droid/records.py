"""The records of Factory Droid as typed structs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct


class Block(Struct, gc=False, kw_only=True):
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
    role: str = ""
    content: str | list[Block] | None = None
    visibility: str | None = None
    modelId: str | None = None


class Record(Struct, gc=False, kw_only=True):
    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    message: Message | None = None
    title: str | None = None
    cwd: str | None = None
    callingSessionId: str | None = None
    chatCompletionReasoningContent: str | None = None
    summaryText: str | None = None
    summaryKind: object = None
    summaryTokens: object = None
    removedCount: object = None
    reason: str | None = None


decode = msgspec.json.Decoder(Record).decode


def kind_of(record: Record) -> str:
    return f"message.{record.message.role}"[:80] if record.message is not None else record.type[:80] or "untyped"


def key_of(record: Record) -> str | None:
    """What tells a record from another: its id, or, for results that have none, the call it answers."""
    if record.id is not None:
        return record.id
    answers = [block.tool_use_id for block in blocks(record.message) if block.tool_use_id]
    return f"answers {answers[0]}" if answers else None


def blocks(message: Message | None) -> Sequence[Block]:
    if message is None or message.content is None:
        return ()
    return [Block(type="text", text=message.content)] if isinstance(message.content, str) else message.content


def words_of(message: Message) -> str:
    return "\n".join(block.text for block in blocks(message) if block.type == "text" and block.text)
