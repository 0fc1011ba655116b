"""The kimi-cli sessions of one family: each wire file is a session, subagents' with their parent's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw, Struct

from agentsignals.changes.hunks import Hunk, changed, created, of_whole_file
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count as count_of
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import saw_again
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.kimi_cli import PROFILE, place_of
from agentsignals.formats.profile import WRITE
from agentsignals.formats.records import UNREADABLE, lines, saw
from agentsignals.model import MAIN, RAN, CallStatus, EventKind, Session, Step, ToolCall, logged_ms

# The records of a wire file as they are decoded: only the fields that are read.


class Part(Struct, gc=False, kw_only=True):
    type: str = ""
    text: str | None = None
    think: str | None = None


class Function(Struct, gc=False, kw_only=True):
    name: str = ""
    arguments: str | None = None


class Shown(Struct, gc=False, kw_only=True):
    """What a person is shown of a result: of an edit, the lines before and after."""

    type: str = ""
    path: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    old_start: int | None = None
    new_start: int | None = None
    is_summary: bool | None = None


class Returned(Struct, kw_only=True):
    is_error: bool | None = None
    output: list[Part] | str | None = None
    message: str | None = None
    display: list[Shown] = []


class Usage(Struct, gc=False, kw_only=True):
    """The tokens of a model call: `input_other` are those that did not come from the cache."""

    input_other: object = None
    output: object = None
    input_cache_read: object = None
    input_cache_creation: object = None


class Payload(Struct, kw_only=True):
    """What a message says; which fields it has depends on its type."""

    user_input: list[Part] | str | None = None
    type: str = ""
    text: str | None = None
    think: str | None = None
    id: str | None = None
    function: Function | None = None
    tool_call_id: str | None = None
    return_value: Returned | None = None
    token_usage: Usage | None = None
    message_id: str | None = None
    error_type: str | None = None
    status_code: int | None = None
    request_id: str | None = None
    response: str | None = None
    feedback: str | None = None
    action: str | None = None
    reason: str | None = None
    content: str | None = None
    question: str | None = None
    body: str | None = None
    agent_id: str | None = None
    parent_tool_call_id: str | None = None
    event: Message | None = None


class Message(Struct, kw_only=True):
    type: str = ""
    payload: Raw = Raw(b"{}")


class Record(Struct, kw_only=True):
    """A line; the first has no message, but the version of the protocol."""

    type: str | None = None
    protocol_version: str | None = None
    timestamp: object = None
    message: Message | None = None


decode = msgspec.json.Decoder(Record).decode
decode_payload = msgspec.json.Decoder(Payload).decode


_EXIT = re.compile(r"Command failed with exit code: (-?\d{1,10})")
_SLASH = re.compile(r"/[a-z][\w:-]{0,60}(?:\s|\Z)")
_PARTS = frozenset(("text", "think", "image_url", "audio_url", "video_url"))
_TURNS = ("TurnBegin", "SteerInput")
_QUIET = frozenset(
    (
        *("TurnEnd", "CompactionEnd", "HookTriggered", "MCPLoadingBegin", "MCPLoadingEnd", "MCPStatusSnapshot"),
        *("ApprovalRequest", "ApprovalRequestResolved", "QuestionRequest", "ToolCallRequest", "HookRequest"),
    )
)
_EVENTS: dict[str, EventKind] = {
    "StepInterrupted": "meta",
    "CompactionBegin": "compaction",
    "Notification": "notification",
    "PlanDisplay": "meta",
    "BtwBegin": "meta",
    "BtwEnd": "meta",
}


class _Wire(Struct):
    source: Input
    session_id: str
    subagent: str | None
    rows: list[tuple[int, Record]]

    @property
    def name(self) -> str:
        return self.session_id if self.subagent is None else f"{self.session_id}.{self.subagent}"


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several copies of a file the longest."""
    kept: dict[str, _Wire] = {}
    for wire in sorted(map(_wire, inputs), key=lambda w: (-len(w.rows), w.source.artifact.artifact_id)):
        first = kept.setdefault(wire.name, wire)
        if first is not wire:
            wire.source.artifact.note = f"superseded by {first.source.artifact.artifact_id}"
            saw_again(wire.source.artifact)
    return Reading([_Reader(kept[name], frozenset(kept)).session() for name in sorted(kept)])


def _wire(source: Input) -> _Wire:
    rows = list(lines(source.data, source.artifact, decode))
    for _, record in rows:
        saw(source.artifact, record.message.type if record.message is not None else record.type or "untyped")
    session_id, subagent = place_of(source.artifact.path)
    return _Wire(source, session_id or source.session_hint or source.artifact.artifact_id, subagent, rows)


class _Reader:
    """One session in the making."""

    def __init__(self, wire: _Wire, names: frozenset[str]) -> None:
        self.wire = wire
        session = wire.source.session(wire.name, "kimi-cli", PROFILE.agent)
        session.parent_session_id = wire.session_id if wire.subagent is not None else None
        self.builder = SessionBuilder(session, PROFILE)
        self.names = names
        """The sessions that are read: subagents among them have their events there."""
        self.thread = MAIN
        self.steps: dict[str, Step] = {}
        self.counted: set[str] = set()
        self.asked: dict[str, str] = {}
        """The call of each request for leave."""
        self.rejected: dict[str, str] = {}
        self.touched: set[str] = set()

    def session(self) -> Session:
        for line, record in self.wire.rows:
            self.builder.line = line
            if record.message is not None:
                self._message(record.message, _time(record.timestamp))
        return self.builder.finish()

    def _message(self, message: Message, at: int | None) -> None:
        try:
            payload = decode_payload(bytes(message.payload))
        except UNREADABLE:
            self.builder.event("unknown", message.type[:80], at, thread=self.thread)
            return
        if message.type == "SubagentEvent":
            self._of_subagent(payload, at)
        elif message.type in _TURNS:
            self._turn(payload, at, queued=message.type == "SteerInput")
        elif message.type == "StepBegin":
            self.steps[self.thread] = self.builder.step(None, None, at, self.thread)
        elif message.type == "ContentPart":
            self._part(payload, at)
        elif message.type == "ToolCall" and payload.function is not None:
            name, arguments = payload.function.name, payload.function.arguments or "{}"
            step = self.steps.get(self.thread)
            self.builder.call(payload.id or "", name, arguments, PROFILE.tool(name), at, step, self.thread)
        elif message.type == "ToolResult" and payload.return_value is not None:
            self._result(payload.tool_call_id or "", payload.return_value, at)
        elif message.type == "StatusUpdate":
            self._count(payload)
        else:
            self._other(message.type, payload, at)

    def _of_subagent(self, payload: Payload, at: int | None) -> None:
        """A copy of what stands in the subagent's file, where that is read; older versions have it here alone."""
        agent = payload.agent_id or payload.parent_tool_call_id or "subagent"
        if payload.event is None or f"{self.wire.session_id}.{agent}" in self.names:
            return
        turn, thread = self.builder.turn_index, self.thread
        self.thread = agent
        self._message(payload.event, at)
        self.thread, self.builder.turn_index = thread, turn

    def _turn(self, payload: Payload, at: int | None, queued: bool) -> None:
        parts = payload.user_input or ""
        text = (parts if isinstance(parts, str) else _text(parts)).strip()
        if not isinstance(parts, str):
            self.builder.unread((p.type for p in parts), _PARTS, at, self.thread)
        if self.thread != MAIN or self.wire.subagent is not None or PROFILE.machine_kind(text):
            self.builder.event("meta", text, at, thread=self.thread)
        elif text:
            is_command = _SLASH.match(text) is not None
            self.builder.turn("slash_command" if is_command else "queued_prompt" if queued else "prompt", text, at)
        elif parts:
            self.builder.turn("attachment", "", at)

    def _part(self, payload: Payload, at: int | None) -> None:
        self.builder.unread((payload.type,), _PARTS, at, self.thread)
        if text := payload.text or payload.think:
            kind: EventKind = "thinking" if payload.type == "think" else "text"
            self.builder.event(kind, text, at, self.steps.get(self.thread), self.thread)

    def _count(self, payload: Payload) -> None:
        """Of a call once: its id comes again with what is known of its context later."""
        step, used = self.steps.get(self.thread), payload.token_usage
        if step is None or used is None or (payload.message_id or "") in self.counted:
            return
        if payload.message_id:
            self.counted.add(payload.message_id)
        if step.input_tokens is not None or step.output_tokens is not None:  # a call of its own, for a summary
            step = self.builder.step(None, None, step.timestamp, self.thread)
        step.message_id = payload.message_id
        _fill(step, used)

    def _result(self, call_id: str, returned: Returned, at: int | None) -> None:
        output = returned.output if isinstance(returned.output, str) else _text(returned.output or ())
        text = "\n".join(filter(None, (output.rstrip("\n"), returned.message)))
        asked = self.builder.calls_of(call_id)
        is_command = bool(asked) and asked[0].command is not None
        exited = _EXIT.match(returned.message or "") if is_command else None
        code = int(exited[1]) if exited else 0 if is_command and returned.is_error is False else None
        status: CallStatus = "rejected" if call_id in self.rejected else "error" if returned.is_error else "ok"
        call = self.builder.result(call_id, text, status, at, self.thread, code) if asked else None
        if call is None:
            self.builder.event("tool_result", text, at, None, self.thread)
            return
        if call.status in RAN and call.class_ == "edit":
            self._edit(call, [d for d in returned.display if d.type == "diff" and d.old_text is not None])
        if call.path:
            self.touched.add(call.path)
        if (feedback := self.rejected.pop(call_id, "")) and self.thread == MAIN and self.wire.subagent is None:
            self.builder.turn("rejection_feedback", feedback, at)

    def _edit(self, call: ToolCall, shown: Sequence[Shown]) -> None:
        if not shown or any(d.is_summary for d in shown):
            record_arguments(self.builder, call, self.touched)
            return
        hunks = [hunk for d in shown if (hunk := _hunk(d)) is not None]
        is_new = not shown[0].old_text and len(shown) == 1
        whole = is_new or PROFILE.tool(call.name) is WRITE
        self.builder.edit(call, None, "create" if is_new else "modify", of_whole_file(hunks) if whole else hunks)

    def _other(self, kind: str, payload: Payload, at: int | None) -> None:
        builder = self.builder
        if kind == "StepRetry":
            words = filter(None, (payload.error_type, str(payload.status_code or "")))
            builder.event("api_error", " ".join(words), at, thread=self.thread)
        elif kind == "ApprovalRequest" and payload.id and payload.tool_call_id:
            self.asked[payload.id] = payload.tool_call_id
        elif kind in ("ApprovalResponse", "ApprovalRequestResolved"):
            if payload.response == "reject" and (call_id := self.asked.get(payload.request_id or "")):
                self.rejected[call_id] = payload.feedback or ""
        elif kind == "HookResolved":
            if payload.action == "block":
                builder.event("hook_block", payload.reason, at, thread=self.thread)
        elif kind in _EVENTS:
            text = payload.content or payload.question or payload.response or payload.body
            builder.event(_EVENTS[kind], text or ("{}" if kind == "CompactionBegin" else kind), at, thread=self.thread)
        elif kind not in _QUIET:
            builder.event("unknown", kind[:80], at, thread=self.thread)


def _hunk(shown: Shown) -> Hunk | None:
    """The changed lines of a piece of a file before and after."""
    before, after = (shown.old_text or "").split("\n"), (shown.new_text or "").split("\n")
    if not shown.old_text:
        return created(shown.new_text or "")
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    marks = " " * head + "-" * (len(before) - head - tail) + "+" * (len(after) - head - tail) + " " * tail
    return changed(shown.old_start or 1, shown.new_start or 1, marks)


def _fill(step: Step, used: Usage) -> None:
    fields = (used.input_other, used.output, used.input_cache_read, used.input_cache_creation)
    fresh, output, read, write = map(count_of, fields)
    if any((fresh, output, read, write)):
        step.input_tokens, step.output_tokens = fresh, output
        step.cache_read_tokens, step.cache_write_tokens = read, write


def _text(parts: Iterable[Part]) -> str:
    return "\n".join(text for p in parts if (text := p.text or p.think))


def _time(seconds: object) -> int | None:
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        return logged_ms(seconds * 1000)
    return logged_ms(seconds)
