"""Decodes the events of Copilot CLI, each in one go into the struct of its type."""

# No annotations as text: the decoder would evaluate each by itself, which takes longer than all else here.

from collections import Counter
from collections.abc import Sequence
from typing import Union

import msgspec
from msgspec import Struct

from agentsignals.formats.copilot_cli.records import (
    Abort,
    Aside,
    AssistantMessage,
    AssistantReasoning,
    CompactionComplete,
    ContextChanged,
    Error,
    Event,
    HookEnd,
    Info,
    ModelChange,
    PermissionCompleted,
    Quiet,
    Resume,
    Shutdown,
    Start,
    SystemNotification,
    TitleChanged,
    ToolComplete,
    ToolStart,
    ToolUserRequested,
    Truncation,
    Unknown,
    UserMessage,
    Warned,
)

_ASIDES = (
    "session.context_cleared", "session.handoff", "session.mode_changed", "session.snapshot_rewind",
    "session.task_complete", "skill.invoked", "subagent.completed", "subagent.deselected", "subagent.failed",
    "subagent.selected", "subagent.started",
)  # fmt: skip
_QUIET = (
    "assistant.idle", "assistant.intent", "assistant.message_start", "assistant.turn_end", "assistant.turn_start",
    "assistant.usage", "command.completed", "command.execute", "command.queued", "elicitation.completed",
    "elicitation.requested", "exit_plan_mode.completed", "exit_plan_mode.requested", "hook.progress", "hook.start",
    "permission.requested", "session.background_tasks_changed", "session.binary_asset", "session.compaction_start",
    "session.idle", "session.mcp_servers_loaded", "session.permissions_changed", "session.plan_changed",
    "session.remote_steerable_changed", "session.skills_loaded", "session.todos_changed", "session.tools_updated",
    "session.usage_checkpoint", "session.usage_info", "session.workspace_file_changed", "subagent.configured",
    "system.message", "tool.execution_partial_result", "tool.execution_progress", "tool.search_activated",
    "user_input.completed", "user_input.requested",
)  # fmt: skip


def _each(base: type[Event], names: tuple[str, ...]) -> tuple[type[Struct], ...]:
    return tuple(msgspec.defstruct(name.replace(".", "_"), [], bases=(base,), tag=name, gc=False) for name in names)


_SHAPES: tuple[type[Struct], ...] = (
    Start, Resume, ContextChanged, ModelChange, UserMessage, AssistantMessage, AssistantReasoning, ToolStart,
    ToolUserRequested, ToolComplete, PermissionCompleted, SystemNotification, Info, Warned, Error, Abort, TitleChanged,
    CompactionComplete, Truncation, HookEnd, Shutdown, *_each(Aside, _ASIDES), *_each(Quiet, _QUIET),
)  # fmt: skip


DECODER: msgspec.json.Decoder[Event | Unknown] = msgspec.json.Decoder(Union[_SHAPES])  # noqa: UP007  (made of a tuple)
_decode_any = msgspec.json.Decoder(Unknown).decode


_TYPES: dict[type, str] = {shape: str(shape.__struct_config__.tag) for shape in _SHAPES}
_READ_TYPES = frozenset(_TYPES.values())


def decode(data: memoryview | bytes) -> Event | Unknown:
    """One line. Of a known type, what can't be decoded raises, for records.lines to recover."""
    try:
        return DECODER.decode(data)
    except msgspec.DecodeError:
        event = _decode_any(data)
        if event.type in _READ_TYPES:
            raise
        return event


def tally(events: Sequence[Event | Unknown]) -> dict[str, int]:
    """How many events there are of each type."""
    shapes = Counter(map(type, events))
    counted = {_TYPES[shape]: times for shape, times in shapes.items() if shape is not Unknown}
    if Unknown in shapes:
        counted.update(Counter([kind_of(event) for event in events if isinstance(event, Unknown)]))
    return counted


def kind_of(event: Event | Unknown) -> str:
    """The event's type, as counted in the artifact."""
    return event.type if isinstance(event, Unknown) else _TYPES[type(event)]
