"""Decodes the lines of a Codex rollout, each in one go into the struct of its kind."""

from __future__ import annotations

from typing import Union

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.codex_records import (
    AgentMessage,
    Compacted,
    ContextCompacted,
    CustomCall,
    CustomOutput,
    Error,
    ExecEnd,
    FunctionCall,
    FunctionOutput,
    ImageGenerationCall,
    ItemCompleted,
    LocalShellCall,
    McpEnd,
    Message,
    PatchEnd,
    Quiet,
    Reasoning,
    Record,
    Renamed,
    RolledBack,
    SessionMeta,
    StreamError,
    TaskComplete,
    TaskStarted,
    TokenCount,
    ToolSearchCall,
    ToolsFound,
    TurnAborted,
    TurnComplete,
    TurnContext,
    TurnStarted,
    UserMessage,
    Warned,
    WebSearchCall,
)

_ITEMS: tuple[type[Struct], ...] = (
    Message, Reasoning, FunctionCall, CustomCall, LocalShellCall, WebSearchCall, ToolSearchCall, ImageGenerationCall,
    FunctionOutput, CustomOutput, ToolsFound,
)  # fmt: skip
_EVENTS: tuple[type[Struct], ...] = (
    TokenCount, UserMessage, PatchEnd, ExecEnd, McpEnd, TaskStarted, TurnStarted, TaskComplete, TurnComplete,
    TurnAborted, AgentMessage, ContextCompacted, Error, StreamError, Warned, Renamed, RolledBack, ItemCompleted,
)  # fmt: skip


_QUIET_ITEMS = ("ghost_snapshot", "compaction", "context_compaction")
_QUIET_EVENTS = (
    "agent_reasoning", "agent_reasoning_raw_content", "agent_reasoning_section_break", "background_event",
    "deprecation_notice", "exec_command_begin", "image_generation_end", "mcp_startup_complete", "mcp_startup_update",
    "mcp_tool_call_begin", "patch_apply_begin", "plan_update", "session_configured", "shutdown_complete",
    "sub_agent_activity", "thread_goal_updated", "thread_settings_applied", "turn_diff", "view_image_tool_call",
    "web_search_begin", "web_search_end",
)  # fmt: skip


def _quiet(names: tuple[str, ...]) -> tuple[type[Struct], ...]:
    return tuple(msgspec.defstruct(f"Quiet_{name}", [], bases=(Quiet,), tag=name, gc=False) for name in names)


_items, _events = _ITEMS + _quiet(_QUIET_ITEMS), _EVENTS + _quiet(_QUIET_EVENTS)


class _Typed(Struct, gc=False):
    timestamp: str | None = None
    type: str = ""
    payload: Union[_items + _events] | None = None  # type: ignore[valid-type]  # noqa: UP007  (made of tuples)


class _Plain(Struct, gc=False):
    timestamp: str | None = None
    type: str = ""
    payload: Raw = Raw()


class _Kind(Struct, gc=False):
    type: str = ""


_decode_typed = msgspec.json.Decoder(_Typed).decode
_decode_plain = msgspec.json.Decoder(_Plain).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode
_BODIES = {
    "session_meta": msgspec.json.Decoder(SessionMeta).decode,
    "turn_context": msgspec.json.Decoder(TurnContext).decode,
    "compacted": msgspec.json.Decoder(Compacted).decode,
    "world_state": msgspec.json.Decoder(Quiet).decode,
}
_KINDS: dict[str, dict[type[Struct], str]] = {
    type_: {shape: f"{type_}.{shape.__struct_config__.tag}" for shape in shapes}
    for type_, shapes in (("response_item", _items), ("event_msg", _events))
}


_KNOWN = frozenset(kind for kinds in _KINDS.values() for kind in kinds.values())


def decode(data: memoryview | bytes) -> Record:
    """One line. The two mixed types, 99 % of records, are decoded in one go; the others are looked at twice.

    A kind that is not known has no body. Of a known kind, what can't be decoded raises, for records.lines to recover.
    """
    try:
        line = _decode_typed(data)
    except msgspec.DecodeError as failure:
        return _other(data, failure)
    body: Struct | None = line.payload
    kind = _KINDS.get(line.type, {}).get(type(body)) if body is not None else None
    if kind is None:
        return _other(data, None)
    return Record(line.timestamp, f"{kind}.{body.role}" if isinstance(body, Message) else kind, body)


def _other(data: memoryview | bytes, failure: msgspec.DecodeError | None) -> Record:
    line = _decode_plain(data)
    if line.type in _BODIES:
        return Record(line.timestamp, line.type, _BODIES[line.type](line.payload))
    kind = line.type or "untyped"
    if kind in _KINDS:
        kind = f"{kind}.{_decode_kind(line.payload).type or 'untyped'}"
    if failure is not None and kind in _KNOWN:
        raise failure
    return Record(line.timestamp, kind, None)
