"""The events of Copilot CLI. The structs hold only the fields that are read; the rest is skipped undecoded.

An event is `{type, data, id, timestamp, parentId, agentId?}`. Sources: design/formats.md#copilot-cli, and the event
schema of Copilot's SDK for events that no transcript at hand holds.
"""

# No annotations as text: the decoder would evaluate each by itself, which takes longer than all else here.

from collections import Counter
from collections.abc import Sequence
from typing import Any, Union

import msgspec
from msgspec import Raw, Struct, defstruct, field


class Event(Struct, gc=False, tag_field="type"):
    """An event. `agentId` names the subagent that it is of; the main agent has none."""

    id: str | None = None
    timestamp: str | None = None
    agentId: str | None = None


class Quiet(Event):
    """An event without a row of its own: it repeats another, or says nothing about the conversation."""


class Read(Event):
    """An event whose `data` has a shape of its own, by its type."""

    data: Any = None


class Unknown(Struct, gc=False):
    """An event of an unknown type, or with data of another shape than its type has."""

    type: str = "untyped"
    id: str | None = None
    timestamp: str | None = None
    agentId: str | None = None


class Context(Struct, gc=False):
    cwd: str | None = None
    branch: str | None = None
    repository: str | None = None


class Started(Struct, gc=False):
    sessionId: str | None = None
    copilotVersion: str | None = None
    selectedModel: str | None = None
    context: Context | None = None


class Prompt(Struct, gc=False):
    """A prompt. `content` is what the person typed. `transformedContent`, with the program's additions, is not read."""

    content: str = ""
    source: str | None = None
    delivery: str | None = None
    isAutopilotContinuation: bool | None = None
    attachments: Raw = Raw()


class ToolRequest(Struct, gc=False, kw_only=True):
    toolCallId: str = ""
    name: str = ""
    arguments: Raw = Raw()
    mcpServerName: str | None = None


class ToolStart(ToolRequest, gc=False, kw_only=True):
    name: str = field(default="", name="toolName")
    parentToolCallId: str | None = None


class Answer(Struct, gc=False, kw_only=True):
    messageId: str | None = None
    apiCallId: str | None = None
    content: str | None = None
    model: str | None = None
    outputTokens: int | None = None
    toolRequests: list[ToolRequest] | None = None
    reasoningText: str | None = None
    reasoningOpaque: Raw = Raw()
    encryptedContent: Raw = Raw()
    parentToolCallId: str | None = None


class ToolResult(Struct, gc=False):
    content: str | None = None
    detailedContent: str | None = None
    contents: list[dict[str, Any]] | None = None
    """Structured parts, such as the exit code of a shell."""


class Done(Struct, gc=False):
    toolCallId: str = ""
    success: bool | None = None
    result: ToolResult | None = None
    error: dict[str, Any] | None = None


class Permission(Struct, gc=False):
    toolCallId: str | None = None
    result: dict[str, Any] | None = None


class Notice(Struct, gc=False, kw_only=True):
    """The data of most small events: a line of text under one of several names."""

    content: str | None = None
    message: str | None = None
    reason: str | None = None
    summary: str | None = None
    name: str | None = None
    agentName: str | None = None
    newMode: str | None = None
    newModel: str | None = None
    title: str | None = None
    kind: dict[str, Any] | None = None
    """The shell that a notification is about."""
    upToEventId: str | None = None
    """In a rewind: the first event that was removed."""

    @property
    def text(self) -> str:
        texts = (self.content, self.message, self.summary, self.reason, self.name, self.agentName, self.newMode)
        return next((text for text in texts if text), "")


class Compaction(Struct, gc=False, kw_only=True):
    success: bool | None = None
    trigger: str | None = None
    preCompactionTokens: int | None = None
    postCompactionTokens: int | None = None
    summaryContent: str | None = None
    preTruncationTokensInMessages: int | None = None
    postTruncationTokensInMessages: int | None = None


class Hook(Struct, gc=False):
    output: dict[str, Any] | None = None


class Usage(Struct, gc=False):
    """Totals of a model's calls. Input holds cache reads and writes, output holds reasoning."""

    inputTokens: int = 0
    outputTokens: int = 0
    cacheReadTokens: int | None = None
    cacheWriteTokens: int | None = None
    reasoningTokens: int | None = None


class Metric(Struct, gc=False):
    requests: dict[str, Any] | None = None
    """`count` of model calls. The `cost` next to it counts premium requests, which are no money."""
    usage: Usage | None = None


class AgentMetric(Struct):
    modelMetrics: dict[str, Metric] = field(default_factory=dict)


class Totals(AgentMetric):
    agentMetrics: dict[str, AgentMetric] | None = None


ASIDES = frozenset((
    "session.context_cleared", "session.handoff", "session.mode_changed", "session.task_complete", "skill.invoked",
    "subagent.completed", "subagent.deselected", "subagent.failed", "subagent.selected", "subagent.started",
))  # fmt: skip
"""Events outside the conversation, recorded by their type and a line of text."""
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
_DATA: dict[type[Struct], tuple[str, ...]] = {
    Started: ("session.start", "session.resume"),
    Context: ("session.context_changed",),
    Prompt: ("user.message",),
    Answer: ("assistant.message",),
    ToolStart: ("tool.execution_start", "tool.user_requested"),
    Done: ("tool.execution_complete",),
    Permission: ("permission.completed",),
    Compaction: ("session.compaction_complete", "session.truncation"),
    Hook: ("hook.end",),
    Totals: ("session.shutdown",),
    Notice: (
        "session.model_change", "assistant.reasoning", "system.notification", "session.info", "session.warning",
        "session.error", "abort", "session.title_changed", "session.snapshot_rewind", *sorted(ASIDES),
    ),
}  # fmt: skip
"""The shape of the data of each type of event that is read."""


def _shape(base: type[Event], name: str, data: type[Struct] | None = None) -> type[Struct]:
    fields = [("data", data, field(default_factory=data))] if data is not None else []
    return defstruct(name.replace(".", "_"), fields, bases=(base,), tag=name, gc=False)


_SHAPES = (
    *(_shape(Read, name, data) for data, names in _DATA.items() for name in names),
    *(_shape(Quiet, name) for name in _QUIET),
)
DECODER: msgspec.json.Decoder[Event | Unknown] = msgspec.json.Decoder(Union[_SHAPES])  # noqa: UP007  (made of a tuple)
_decode_any = msgspec.json.Decoder(Unknown).decode
_TYPES: dict[type, str] = {shape: str(shape.__struct_config__.tag) for shape in _SHAPES}
_READ_TYPES = frozenset(_TYPES.values())


def decode(data: memoryview | bytes) -> Event | Unknown:
    """Decode a line. An event of a known type that can't be decoded raises, for `records.lines` to recover."""
    try:
        return DECODER.decode(data)
    except msgspec.DecodeError:
        event = _decode_any(data)
        if event.type in _READ_TYPES:
            raise
        return event


def tally(events: Sequence[Event | Unknown]) -> dict[str, int]:
    shapes = Counter(map(type, events))
    counted = {_TYPES[shape]: times for shape, times in shapes.items() if shape is not Unknown}
    if Unknown in shapes:
        counted.update(Counter([kind_of(event) for event in events if isinstance(event, Unknown)]))
    return counted


def kind_of(event: Event | Unknown) -> str:
    """Return the event's type, as counted in the artifact."""
    return event.type if isinstance(event, Unknown) else _TYPES[type(event)]
