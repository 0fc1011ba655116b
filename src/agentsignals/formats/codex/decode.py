"""Decodes the lines of a Codex rollout, each in one go into the struct of its kind."""

# No annotations as text: the decoder would evaluate each by itself, which takes longer than all else here.

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Union

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.codex.records import (
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


class Record(Struct, gc=False, tag_field="type"):
    """A line of the rollout. No payload: its kind is not known."""

    payload: Struct | None
    timestamp: str | None = None


class _Item(Record, tag="response_item"):
    payload: Union[_items]  # type: ignore[valid-type]  # noqa: UP007  (made of tuples, here and below)


class _Event(Record, tag="event_msg"):
    payload: Union[_events]  # type: ignore[valid-type]  # noqa: UP007


class _Meta(Record, tag="session_meta"):
    payload: SessionMeta


class _Context(Record, tag="turn_context"):
    payload: TurnContext


class _Compacted(Record, tag="compacted"):
    payload: Compacted


class _World(Record, tag="world_state"):
    payload: Quiet


class _Unknown(Record):
    kind: str = ""


class _Plain(Struct, gc=False):
    timestamp: str | None = None
    type: str = ""
    payload: Raw = Raw()


class _Kind(Struct, gc=False):
    type: str = ""


DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(
    Union[_Item, _Event, _Meta, _Context, _Compacted, _World]  # noqa: UP007  (as a value, typed as its base)
)
_decode_plain = msgspec.json.Decoder(_Plain).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode
_KINDS: dict[type[Struct], str] = {
    SessionMeta: "session_meta",
    TurnContext: "turn_context",
    Compacted: "compacted",
    Quiet: "world_state",
    **{shape: f"response_item.{shape.__struct_config__.tag}" for shape in _items},
    **{shape: f"event_msg.{shape.__struct_config__.tag}" for shape in _events},
}
_READ_KINDS = frozenset(_KINDS.values())


def decode(data: memoryview | bytes) -> Record:
    """One line. Of a known kind, what can't be decoded raises, for records.lines to recover."""
    try:
        return DECODER.decode(data)
    except msgspec.DecodeError:
        line = _decode_plain(data)
        kind = line.type or "untyped"
        if kind in ("response_item", "event_msg"):
            kind = f"{kind}.{_decode_kind(line.payload).type or 'untyped'}"
        if kind in _READ_KINDS:
            raise
        return _Unknown(None, line.timestamp, kind)


def kind_of(record: Record) -> str:
    """The record's type with that of its payload, and whose message it is, as counted in the artifact."""
    body = record.payload
    if isinstance(body, Message):
        return f"response_item.message.{body.role}"
    return _KINDS[type(body)] if body is not None else record.kind if isinstance(record, _Unknown) else ""


def by_shape(records: Iterable[Record]) -> dict[type, list[Record]]:
    """The records by the type of their payload."""
    shapes: defaultdict[type, list[Record]] = defaultdict(list)
    for record in records:
        shapes[type(record.payload)].append(record)
    return shapes


def tally(shapes: dict[type, list[Record]]) -> dict[str, int]:
    """How many records there are of each kind."""
    counted: dict[str, int] = {}
    for shape, records in shapes.items():
        if shape is Message or shape is type(None):
            counted.update(Counter(map(kind_of, records)))
        else:
            counted[_KINDS[shape]] = len(records)
    return counted
