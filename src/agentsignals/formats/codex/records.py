"""The records of a Codex rollout. The structs hold only the fields that are read; the rest is skipped undecoded.

A record is `{timestamp, type, payload}`. Payloads of the two mixed types, `event_msg` and `response_item`, carry a type
of their own. A record's kind is both (`event_msg.token_count`, `response_item.message.user`). Source:
design/formats.md#codex.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Union

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import PlanLimit
from agentsignals.formats.documents import Part
from agentsignals.formats.records import UNREADABLE, decoder

# -- records of one type ---------------------------------------------------------------------------------------------


class SessionMeta(Struct, kw_only=True):
    """The header. It is written again on resume. A fork begins with its parent's."""

    id: str = ""
    forked_from_id: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    source: object = None
    git: object = None


class TurnContext(Struct, gc=False):
    """The only record that names the model."""

    turn_id: str | None = None
    cwd: str | None = None
    model: str | None = None
    effort: object = None
    summary: object = None


class Compacted(Struct, gc=False):
    """`replacement_history` repeats earlier messages and is not read."""

    message: str | None = None
    window_number: int | None = None


# -- response_item ---------------------------------------------------------------------------------------------------


class Typed(Struct, gc=False, tag_field="type"):
    """A payload with a type of its own."""


def _kinds(base: type[Struct], *types: str) -> tuple[type[Struct], ...]:
    """Return a struct for each of these types, all with the fields of `base`."""
    return tuple(
        msgspec.defstruct(f"{base.__name__}_{type_}", [], bases=(base,), tag=type_, gc=False) for type_ in types
    )


def tag_of(shape: type[Struct]) -> str:
    return str(shape.__struct_config__.tag)


class Message(Typed, tag="message"):
    role: str = ""
    content: list[Part] | str | None = None


class Reasoning(Typed, tag="reasoning"):
    """Thinking, mostly encrypted. It has a text only if the program shows a summary."""

    summary: list[Part] | None = None
    content: list[Part] | None = None


class FunctionCall(Typed, tag="function_call"):
    """A call of a function; `arguments` is JSON as text."""

    call_id: str | None = None
    name: str = ""
    namespace: str | None = None
    arguments: str = ""


class Arguments(Struct, gc=False):
    """Arguments of a shell tool that say more than its command: a running process, a patch."""

    session_id: int | str | None = None
    command: object = None
    input: str | None = None


class CustomCall(Typed, tag="custom_tool_call"):
    call_id: str | None = None
    name: str = ""
    input: str = ""


class HostedCall(Typed):
    """A call of a tool of the program or of the model's provider, with its arguments as JSON."""

    call_id: str | None = None
    id: str | None = None
    status: str | None = None
    arguments: Raw = Raw()
    action: Raw = Raw()


HOSTED_CALLS = _kinds(HostedCall, "local_shell_call", "web_search_call", "tool_search_call", "image_generation_call")


class Metadata(Struct, gc=False):
    exit_code: int | None = None
    duration_seconds: object = None


class Wrapped(Struct, gc=False):
    """Output as an object: as it is in old files, as JSON text for `apply_patch` and the oldest shell."""

    output: str | None = None
    content: str | None = None
    success: bool | None = None
    metadata: Metadata | None = None


class Output(Typed):
    call_id: str | None = None
    output: str | list[Part] | Wrapped | None = None


OUTPUTS = _kinds(Output, "function_call_output", "custom_tool_call_output")


class ToolsFound(Typed, tag="tool_search_output"):
    call_id: str | None = None
    tools: Raw = Raw()


# -- event_msg -------------------------------------------------------------------------------------------------------


class Usage(Struct, gc=False):
    """Tokens. Input holds cached tokens, output holds reasoning (design/formats.md#token-usage). None: not logged."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_output_tokens: int | None = None
    cache_write_input_tokens: int | None = None


class UsageRecord(Struct, gc=False):
    """The same as a count, from 0.171 on. It is read where a session has no counts."""

    usage: Usage | None = None
    thread_token_usage: Usage | None = None


class TokenInfo(Struct, gc=False):
    total_token_usage: Usage | None = None
    last_token_usage: Usage | None = None


class TokenCount(Typed, tag="token_count"):
    info: TokenInfo | None = None


class UserMessage(Typed, tag="user_message"):
    message: str = ""
    images: Raw = Raw()
    local_images: Raw = Raw()


class Change(Struct, gc=False):
    type: str = ""
    content: str | None = None
    unified_diff: str | None = None
    move_path: str | None = None


class PatchEnd(Typed, tag="patch_apply_end"):
    call_id: str | None = None
    success: bool | None = None
    changes: dict[str, Change] | None = None


class ExecEnd(Typed, tag="exec_command_end"):
    call_id: str | None = None
    duration: object = None
    exit_code: int | None = None
    source: str | None = None
    command: list[str] | None = None


class McpEnd(Typed, tag="mcp_tool_call_end"):
    call_id: str | None = None
    duration: object = None
    result: Raw = Raw()


class McpOk(Struct, gc=False):
    isError: bool | None = None


class McpResult(Struct, gc=False):
    Ok: McpOk | None = None
    Err: Raw = Raw()


class Task(Typed):
    turn_id: str | None = None
    started_at: float | None = None
    reason: str | None = None


STARTED, ENDED = _kinds(Task, "task_started", "turn_started"), _kinds(Task, "task_complete", "turn_complete")


class TurnAborted(Task, tag="turn_aborted"): ...


class AgentMessage(Typed, tag="agent_message"):
    message: str = ""


class ContextCompacted(Typed, tag="context_compacted"): ...


class Notice(Typed):
    message: str = ""


ERRORS = _kinds(Notice, "error", "stream_error")


class Warned(Notice, tag="warning"): ...


class Renamed(Typed, tag="thread_name_updated"):
    thread_name: str | None = None


class RolledBack(Typed, tag="thread_rolled_back"):
    num_turns: object = None


class Item(Struct, gc=False):
    type: str = ""
    text: str | None = None


class ItemCompleted(Typed, tag="item_completed"):
    item: Item | None = None


class Quiet(Typed):
    """A record without an event of its own: it repeats another, or says nothing about the conversation."""


PARTS = frozenset(
    ("text", "input_text", "output_text", "summary_text", "reasoning_text", "input_image", "input_file", "refusal",
     "encrypted_content")
)  # fmt: skip
"""Types of parts. Pictures and files are never decoded."""


def kinds_of(parts: object) -> Iterator[str]:
    """Return the type of each part of a content."""
    return (part.type for part in parts if isinstance(part, Part)) if isinstance(parts, list) else iter(())


# -- decoding a line in one go into the struct of its kind


_items: tuple[type[Struct], ...] = (
    Message, Reasoning, FunctionCall, CustomCall, *HOSTED_CALLS, *OUTPUTS, ToolsFound,
    *_kinds(Quiet, "ghost_snapshot", "compaction", "context_compaction"),
)  # fmt: skip
_events: tuple[type[Struct], ...] = (
    TokenCount, UserMessage, PatchEnd, ExecEnd, McpEnd, *STARTED, *ENDED, TurnAborted, AgentMessage, ContextCompacted,
    *ERRORS, Warned, Renamed, RolledBack, ItemCompleted,
    *_kinds(
        Quiet, "agent_reasoning", "agent_reasoning_raw_content", "agent_reasoning_section_break", "background_event",
        "deprecation_notice", "exec_command_begin", "image_generation_end", "mcp_startup_complete",
        "mcp_startup_update", "mcp_tool_call_begin", "patch_apply_begin", "plan_update", "session_configured",
        "shutdown_complete", "sub_agent_activity", "thread_goal_updated", "thread_settings_applied", "turn_diff",
        "view_image_tool_call", "web_search_begin", "web_search_end",
    ),
)  # fmt: skip


class Record(Struct, gc=False, tag_field="type"):
    """A line of the rollout. A record of an unknown kind has no payload."""

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


class _Used(Record, tag="token_usage_record"):
    payload: UsageRecord


class _Unknown(Record):
    kind: str = ""


class _Plain(Struct, gc=False):
    timestamp: str | None = None
    type: str = ""
    payload: Raw = Raw()


class _Kind(Struct, gc=False):
    type: object = ""


DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(
    Union[_Item, _Event, _Meta, _Context, _Compacted, _World, _Used]  # noqa: UP007  (as a value, typed as its base)
)
_decode_plain = msgspec.json.Decoder(_Plain).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode
_KINDS: dict[type[Struct], str] = {
    SessionMeta: "session_meta",
    TurnContext: "turn_context",
    Compacted: "compacted",
    Quiet: "world_state",
    UsageRecord: "token_usage_record",
    **{shape: f"response_item.{tag_of(shape)}" for shape in _items},
    **{shape: f"event_msg.{tag_of(shape)}" for shape in _events},
}
_READ_KINDS = frozenset(_KINDS.values())


def decode(data: memoryview | bytes) -> Record:
    """Decode a line. A record of a known kind that can't be decoded raises, for `records.lines` to recover."""
    try:
        return DECODER.decode(data)
    except msgspec.DecodeError:
        line = _decode_plain(data)
        kind = line.type or "untyped"
        if kind in ("response_item", "event_msg"):
            named = _decode_kind(line.payload).type
            kind = f"{kind}.{named if named and isinstance(named, str) else 'untyped'}"
        if kind in _READ_KINDS:
            raise
        return _Unknown(None, line.timestamp, kind)


def kind_of(record: Record) -> str:
    """Return the type of a record and its payload, and the role of a message, as counted in the artifact."""
    body = record.payload
    if isinstance(body, Message):
        return f"response_item.message.{body.role}"
    return _KINDS[type(body)] if body is not None else record.kind if isinstance(record, _Unknown) else ""


class Outline:
    """Facts from all records of a session, collected before they are read in order."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.headers: list[SessionMeta] = []
        self.folders: list[str] = []
        """Working folders, as often as they are told."""
        self.prompts: set[str] = set()
        """Texts of all `user_message` events. In a session without such events items are all there is."""
        self.has_counts = self.is_metered = self.answers_in_items = False

    def look(self, records: Iterable[Record]) -> None:
        shapes: defaultdict[type, list[Any]] = defaultdict(list)
        for record in records:
            shapes[type(record.payload)].append(record)
        for shape, same in shapes.items():
            if shape is Message or shape is type(None):
                self.kinds.update(map(kind_of, same))
            else:
                self.kinds[_KINDS[shape]] += len(same)
        self.headers += [record.payload for record in shapes[SessionMeta]]
        self.folders += [record.payload.cwd for record in shapes[TurnContext] if record.payload.cwd]
        self.prompts.update(record.payload.message.strip() for record in shapes[UserMessage])
        self.has_counts |= any(record.payload.info is not None for record in shapes[TokenCount])
        self.is_metered |= self.has_counts or UsageRecord in shapes
        self.answers_in_items |= any(record.payload.role == "assistant" for record in shapes[Message])


# -- limits of the person's plan, as Codex logs them after each model call: `rate_limits` of `token_count` -------------


class Window(Struct):
    used_percent: float
    window_minutes: int | None = None
    resets_at: int | None = None


class Limits(Struct):
    primary: Window | None = None
    secondary: Window | None = None


class LimitsPayload(Struct):
    rate_limits: Limits | None = None


class LimitsLine(Struct):
    payload: LimitsPayload | None = None


def plan_limits(end: bytes) -> list[PlanLimit]:
    """Return the limits of the person's plan in the last record of a log's end that states any."""
    for line in reversed(end.splitlines()):
        if b'"rate_limits"' not in line:
            continue
        try:
            payload = decoder(LimitsLine).decode(line).payload
        except UNREADABLE:  # the first line is cut, the last may be
            continue
        limits = payload.rate_limits if payload is not None else None
        windows = [] if limits is None else [limits.primary, limits.secondary]
        if found := [w for w in windows if w is not None]:
            return [
                PlanLimit(used=w.used_percent / 100, window_s=60 * (w.window_minutes or 0), resets_at=w.resets_at)
                for w in found
            ]
    return []
