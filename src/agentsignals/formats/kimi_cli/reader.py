"""Reads kimi-cli sessions: each wire file is a session, a subagent's too. The structs hold only the fields that are
read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec import Raw, Struct

from agentsignals.changes.hunks import Hunk, changed, created, of_whole_file
from agentsignals.formats import Input, Reading
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import saw_again
from agentsignals.formats.kimi_cli import PROFILE, place_of
from agentsignals.formats.profile import WRITE
from agentsignals.formats.records import decoded, decoder, lines, saw
from agentsignals.formats.usage import charge, tokens_of
from agentsignals.model import MAIN, CallStatus, EventKind, Session, Step, ToolCall, TurnKind, logged_ms


class Part(Struct, gc=False, kw_only=True):
    type: str = ""
    text: str | None = None
    think: str | None = None


class Function(Struct, gc=False, kw_only=True):
    name: str = ""
    arguments: str | None = None


class Display(Struct, gc=False, kw_only=True):
    """A result as the person sees it. An edit has the lines before and after."""

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
    display: list[Display] = []


class Usage(Struct, gc=False, kw_only=True):
    """Tokens of a model call. `input_other` excludes cached ones."""

    input_other: object = None
    output: object = None
    input_cache_read: object = None
    input_cache_creation: object = None


class Payload(Struct, kw_only=True):
    """Content of a message. The fields depend on its type."""

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
    """A line. The first has the version of the protocol instead of a message."""

    type: str | None = None
    protocol_version: str | None = None
    timestamp: object = None
    message: Message | None = None


_EXIT = re.compile(r"Command failed with exit code: (-?\d{1,10})")
_SLASH = re.compile(r"/[a-z][\w:-]{0,60}(?:\s|\Z)")
_PARTS = frozenset(("text", "think", "image_url", "audio_url", "video_url"))
_PROMPTS = ("TurnBegin", "SteerInput")
_IGNORED = frozenset(
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
    """Read a group of files. Of several copies of a file the longest counts."""
    longest: dict[str, _Wire] = {}
    for wire in sorted(map(_wire, inputs), key=lambda w: (-len(w.rows), w.source.artifact.artifact_id)):
        first = longest.setdefault(wire.name, wire)
        if first is not wire:
            wire.source.artifact.note = f"superseded by {first.source.artifact.artifact_id}"
            saw_again(wire.source.artifact)
    return Reading([Reader(longest[name], frozenset(longest)).build() for name in sorted(longest)])


def _wire(source: Input) -> _Wire:
    rows = list(lines(source.data, source.artifact, decoder(Record).decode))
    for _, record in rows:
        saw(source.artifact, record.message.type if record.message is not None else record.type or "untyped")
    session_id, subagent = place_of(source.artifact.path)
    return _Wire(source, session_id or source.session_hint or source.artifact.artifact_id, subagent, rows)


class Reader(Conversation):
    profile = PROFILE

    def __init__(self, wire: _Wire, names: frozenset[str]) -> None:
        super().__init__(wire.source.session(wire.name, "kimi-cli", PROFILE.agent))
        self.wire = wire
        self.is_subagent = wire.subagent is not None
        self.session.parent_session_id = wire.session_id if self.is_subagent else None
        self.names = names
        """All sessions of the group. Events of a subagent that has its own are there."""
        self.steps: dict[str, Step] = {}
        self.counted: set[str] = set()
        self.approvals: dict[str, str] = {}
        """Call id by approval request."""
        self.rejected: dict[str, str] = {}

    def build(self) -> Session:
        for line, record in self.wire.rows:
            self.builder.line = line
            if record.message is not None:
                self.take(record.message, _time(record.timestamp))
        return self.builder.finish()

    def take(self, message: Message, at: int | None) -> None:
        payload, kind, step = decoded(bytes(message.payload), Payload), message.type, self.steps.get(self.thread)
        if payload is None:
            self.event("unknown", kind[:80], at)
        elif kind == "SubagentEvent":
            agent = payload.agent_id or payload.parent_tool_call_id or "subagent"
            # A copy of what is in the subagent's file. Older versions have it here alone.
            if payload.event is not None and f"{self.wire.session_id}.{agent}" not in self.names:
                turn, thread = self.builder.turn_index, self.thread
                self.thread = agent
                self.take(payload.event, at)
                self.thread, self.builder.turn_index = thread, turn
        elif kind in _PROMPTS:
            self.user(payload, at, queued=kind == "SteerInput")
        elif kind == "StepBegin":
            self.steps[self.thread] = self.builder.step(None, None, at, self.thread)
        elif kind == "ContentPart":
            self.builder.unread((payload.type,), _PARTS, at, self.thread)
            if text := payload.text or payload.think:
                self.event("thinking" if payload.type == "think" else "text", text, at, step)
        elif kind == "ToolCall" and payload.function is not None:
            name, arguments = payload.function.name, payload.function.arguments or "{}"
            self.builder.call(payload.id or "", name, arguments, PROFILE.tool(name), at, step, self.thread)
        elif kind == "ToolResult" and payload.return_value is not None:
            self.answer(payload.tool_call_id or "", payload.return_value, at)
        elif kind == "StatusUpdate":
            self.count(payload, step)
        elif kind == "StepRetry":
            self.event("api_error", " ".join(filter(None, (payload.error_type, str(payload.status_code or "")))), at)
        elif kind == "ApprovalRequest" and payload.id and payload.tool_call_id:
            self.approvals[payload.id] = payload.tool_call_id
        elif kind in ("ApprovalResponse", "ApprovalRequestResolved"):
            if payload.response == "reject" and (call_id := self.approvals.get(payload.request_id or "")):
                self.rejected[call_id] = payload.feedback or ""
        elif kind == "HookResolved":
            if payload.action == "block":
                self.event("hook_block", payload.reason, at)
        elif kind in _EVENTS:
            text = payload.content or payload.question or payload.response or payload.body
            self.event(_EVENTS[kind], text or ("{}" if kind == "CompactionBegin" else kind), at)
        elif kind not in _IGNORED:
            self.event("unknown", kind[:80], at)

    def user(self, payload: Payload, at: int | None, queued: bool) -> None:
        parts = payload.user_input or ""
        text = (parts if isinstance(parts, str) else _text(parts)).strip()
        if not isinstance(parts, str):
            self.builder.unread((p.type for p in parts), _PARTS, at, self.thread)
        if not text and (self.is_subagent or self.thread != MAIN):
            self.event("meta", text, at)
        else:
            kind: TurnKind = "slash_command" if _SLASH.match(text) else "queued_prompt" if queued else "prompt"
            self.prompt(text, at, bool(parts), kind)

    def count(self, payload: Payload, step: Step | None) -> None:
        """Count a call once: its id is repeated with later figures of its context."""
        if step is None or payload.token_usage is None or (payload.message_id or "") in self.counted:
            return
        if payload.message_id:
            self.counted.add(payload.message_id)
        if step.input_tokens is not None or step.output_tokens is not None:  # a call of its own, for a summary
            step = self.builder.step(None, None, step.timestamp, self.thread)
        step.message_id = payload.message_id
        tokens = tokens_of(payload.token_usage, "apart")
        if any(tokens):
            charge(step, tokens)

    def answer(self, call_id: str, returned: Returned, at: int | None) -> None:
        output = returned.output if isinstance(returned.output, str) else _text(returned.output or ())
        text = "\n".join(filter(None, (output.rstrip("\n"), returned.message)))
        is_command = self.is_command(call_id)
        exited = _EXIT.match(returned.message or "") if is_command else None
        code = int(exited[1]) if exited else 0 if is_command and returned.is_error is False else None
        status: CallStatus = "rejected" if call_id in self.rejected else "error" if returned.is_error else "ok"
        diffs = [d for d in returned.display if d.type == "diff" and d.old_text is not None]
        call = self.result(call_id, text, status, at, diffs, code)
        feedback = self.rejected.pop(call_id, "") if call is not None else ""
        if feedback and self.thread == MAIN and not self.is_subagent:
            self.builder.turn("rejection_feedback", feedback, at)

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        if not detail or any(diff.is_summary for diff in detail):
            return False
        hunks = [hunk for diff in detail if (hunk := _hunk(diff)) is not None]
        is_new = not detail[0].old_text and len(detail) == 1
        whole = is_new or PROFILE.tool(call.name) is WRITE
        self.builder.edit(call, None, "create" if is_new else "modify", of_whole_file(hunks) if whole else hunks)
        return True


def _hunk(display: Display) -> Hunk | None:
    """Return the changed lines between two versions of a part of a file."""
    before, after = (display.old_text or "").split("\n"), (display.new_text or "").split("\n")
    if not display.old_text:
        return created(display.new_text or "")
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    marks = " " * head + "-" * (len(before) - head - tail) + "+" * (len(after) - head - tail) + " " * tail
    return changed(display.old_start or 1, display.new_start or 1, marks)


def _text(parts: Iterable[Part]) -> str:
    return "\n".join(text for p in parts if (text := p.text or p.think))


def _time(seconds: object) -> int | None:
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        return logged_ms(seconds * 1000)
    return logged_ms(seconds)
