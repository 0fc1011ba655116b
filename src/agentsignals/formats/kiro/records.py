"""The records of a Kiro conversation as typed structs (design/formats.md#small-formats): only what is read."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.one_document import each
from agentsignals.model import Artifact


class Prompt(Struct, gc=False):
    prompt: str | None = None


class Result(Struct, gc=False):
    """A tool result: `content` is a list of `{Text}` or `{Json}`."""

    tool_use_id: str | None = None
    content: Raw = Raw()
    status: str | None = None


class Results(Struct, gc=False):
    tool_use_results: list[Result] | None = None
    prompt: str | None = None


class Content(Struct, gc=False):
    """One of three: words of the person, tool results, or tool requests the person did not let through."""

    Prompt: Prompt | None = None
    ToolUseResults: Results | None = None
    CancelledToolUses: Results | None = None


class EnvState(Struct, gc=False):
    current_working_directory: str | None = None


class EnvContext(Struct, gc=False):
    env_state: EnvState | None = None


class User(Struct, gc=False):
    content: Content | None = None
    timestamp: str | None = None
    env_context: EnvContext | None = None
    images: list[Raw] | None = None


class ToolUse(Struct, gc=False):
    id: str | None = None
    name: str | None = None
    args: Raw = Raw()


class Reply(Struct, gc=False):
    message_id: str | None = None
    content: str | None = None
    tool_uses: list[ToolUse] | None = None


class Answer(Struct, gc=False):
    """One of two: a reply, or a reply that calls tools."""

    Response: Reply | None = None
    ToolUse: Reply | None = None


class RequestMetadata(Struct, gc=False):
    request_start_timestamp_ms: object = None
    stream_end_timestamp_ms: object = None
    model_id: str | None = None


class Entry(Struct, gc=False):
    user: User | None = None
    assistant: Answer | None = None
    request_metadata: RequestMetadata | None = None


class Pair(Struct, gc=False, array_like=True):
    """An entry as earlier versions write it."""

    user: User | None = None
    assistant: Answer | None = None


class ModelInfo(Struct, gc=False):
    model_id: str | None = None


class Conversation(Struct):
    history: list[Entry | None]
    conversation_id: str = ""
    model_info: ModelInfo | None = None
    latest_summary: Raw = Raw()


class _RawConversation(Struct):
    history: list[Raw] = []
    conversation_id: str = ""
    model_info: ModelInfo | None = None
    latest_summary: Raw = Raw()


_whole = msgspec.json.Decoder(Conversation).decode
_raw_conversation = msgspec.json.Decoder(_RawConversation).decode
_entry_object = msgspec.json.Decoder(Entry).decode
_entry_pair = msgspec.json.Decoder(Pair).decode


def decode(data: memoryview | bytes, artifact: Artifact) -> Conversation:
    """A conversation; when an entry in it is odd, entry by entry, with None for what can't be read."""
    try:
        return _whole(data)
    except msgspec.ValidationError:
        conversation = _raw_conversation(data)
        history = each(conversation.history, _entry, artifact)
        return Conversation(history, conversation.conversation_id, conversation.model_info, conversation.latest_summary)


def _entry(data: memoryview | bytes) -> Entry:
    if bytes(data[:1]) != b"[":
        return _entry_object(data)
    pair = _entry_pair(data)
    return Entry(pair.user, pair.assistant)
