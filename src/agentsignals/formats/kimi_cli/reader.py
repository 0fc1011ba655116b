"""Reads kimi-cli sessions: each wire file is one, a subagent's too. The structs hold only fields that are read."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from msgspec import Raw, Struct

from agentsignals.changes.hunks import Hunk, changed, created, of_whole_file
from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import charge, tokens_of
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import Snapshot, largest
from agentsignals.formats.kimi_cli import PROFILE, place_of
from agentsignals.formats.profile import WRITE
from agentsignals.formats.records import Decode, as_text, decoded, decoder, lines, saw
from agentsignals.model import MAIN, CallStatus, EventKind, Session, Step, ToolCall, TurnKind, logged_seconds


class Part(Struct, gc=False, kw_only=True):
    type: str = ""
    text: str | None = None
    think: str | None = None


class Function(Struct, gc=False, kw_only=True):
    name: str = ""
    arguments: object = None


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
    token_usage: dict[str, Any] | None = None
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
    event: "Message | None" = None


class Message(Struct, kw_only=True):
    type: str = ""
    payload: Raw = Raw(b"{}")


class Record(Struct, kw_only=True):
    """A line. The first has the version of the protocol instead of a message."""

    type: str | None = None
    timestamp: object = None
    message: Message | None = None


_EXIT = re.compile(r"Command failed with exit code: (-?\d{1,10})")
_SLASH = re.compile(r"/[a-z][\w:-]{0,60}(?:\s|\Z)")
_PARTS = frozenset(("text", "think", "image_url", "audio_url", "video_url"))
_PROMPTS = ("TurnBegin", "SteerInput")
_IGNORED = frozenset((
    "TurnEnd", "CompactionEnd", "HookTriggered", "MCPLoadingBegin", "MCPLoadingEnd", "MCPStatusSnapshot",
    "ApprovalRequest", "ApprovalRequestResolved", "QuestionRequest", "ToolCallRequest", "HookRequest",
))  # fmt: skip
_EVENTS: dict[str, EventKind] = {
    "StepInterrupted": "meta", "CompactionBegin": "compaction", "Notification": "notification", "PlanDisplay": "meta",
    "BtwBegin": "meta", "BtwEnd": "meta",
}  # fmt: skip
R = TypeVar("R")


def wires(
    inputs: Iterable[Input],
    decode: Decode[R],
    kind: Callable[[R], str],
    place_of: Callable[[str], tuple[str | None, str | None]],
) -> Iterator[Snapshot[list[tuple[int, R]]]]:
    """Yield the records of each wire file. A subagent's file is a session of its own: `<session>.<agent>`."""
    for source in inputs:
        rows = list(lines(source.data, source.artifact, decode))
        for _, record in rows:
            saw(source.artifact, kind(record))
        session_id, agent = place_of(source.artifact.path)
        session_id = session_id or source.session_hint or source.artifact.artifact_id
        yield Snapshot(source, rows, f"{session_id}.{agent}" if agent is not None else session_id, len(rows))


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Of several copies of a file the longest counts."""
    kept = largest(
        wires(
            inputs,
            decoder(Record).decode,
            lambda r: r.message.type if r.message is not None else r.type or "untyped",
            place_of,
        )
    )
    names = frozenset(wire.session_id for wire in kept)
    return Reading([Reader(wire, names).build(wire.document) for wire in kept])


class WireReader(Conversation):
    """A session of either program: what the person says when refusing a call is a turn."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.steps: dict[str, Step] = {}
        self.rejected: dict[str, str | None] = {}
        """Words of the person when refusing a call, by call id; often none."""

    def said(self, part: Part | Payload, read: frozenset[str], at: int | None, step: Step | None) -> None:
        """Record a part of an answer. `read`: types of parts that are read."""
        self.builder.unread((part.type,), read, at, self.thread)
        if text := part.text or part.think:
            self.event("thinking" if part.type == "think" else "text", text, at, step)

    @staticmethod
    def charge(step: Step, usage: object) -> None:
        tokens = tokens_of(usage, "apart")
        if any(tokens):
            charge(step, tokens)

    def answer(  # noqa: PLR0913  (what a result can say)
        self, call_id: str, text: str, failed: bool | None, at: int | None, detail: Any, code: int | None
    ) -> ToolCall | None:  # fmt: skip
        status: CallStatus = "rejected" if call_id in self.rejected else "error" if failed else "ok"
        call = self.result(call_id, text, status, at, detail, code)
        feedback = self.rejected.pop(call_id, None) if call is not None else None
        if feedback and self.thread == MAIN and not self.is_subagent:
            self.builder.turn("rejection_feedback", feedback, at)
        return call


class Reader(WireReader):
    profile = PROFILE

    def __init__(self, wire: Snapshot[Any], names: frozenset[str]) -> None:
        super().__init__(wire.source.session(wire.session_id, "kimi-cli", PROFILE.agent))
        _, subagent = place_of(wire.source.artifact.path)
        self.is_subagent = subagent is not None
        self.above = wire.session_id.removesuffix(f".{subagent}")
        """The session of the main agent."""
        self.session.parent_session_id = self.above if self.is_subagent else None
        self.names = names
        """All sessions of the group. Events of a subagent that has its own are there."""
        self.counted: set[str] = set()
        self.approvals: dict[str, str] = {}
        """Call id by approval request."""

    def build(self, rows: list[tuple[int, Record]]) -> Session:
        for self.builder.line, record in rows:
            if record.message is not None:
                self.take(record.message, logged_seconds(record.timestamp))
        return self.builder.finish()

    def take(self, message: Message, at: int | None) -> None:
        payload, kind, step = decoded(bytes(message.payload), Payload), message.type, self.steps.get(self.thread)
        if payload is None:
            self.event("unknown", kind[:80], at)
        elif kind == "SubagentEvent":
            agent = payload.agent_id or payload.parent_tool_call_id or "subagent"
            # A copy of what is in the subagent's file. Older versions have it here alone.
            if payload.event is not None and f"{self.above}.{agent}" not in self.names:
                turn, thread = self.builder.turn_index, self.thread
                self.thread = agent
                self.take(payload.event, at)
                self.thread, self.builder.turn_index = thread, turn
        elif kind in _PROMPTS:
            self.user(payload, at, queued=kind == "SteerInput")
        elif kind == "StepBegin":
            self.steps[self.thread] = self.builder.step(None, None, at, self.thread)
        elif kind == "ContentPart":
            self.said(payload, _PARTS, at, step)
        elif kind == "ToolCall" and payload.function is not None:
            name, arguments = payload.function.name, as_text(payload.function.arguments) or "{}"
            self.builder.call(payload.id or "", name, arguments, PROFILE.tool(name), at, step, self.thread)
        elif kind == "ToolResult" and payload.return_value is not None:
            self.returned(payload.tool_call_id or "", payload.return_value, at)
        elif kind == "StatusUpdate":
            self.count(payload, step)
        elif kind == "StepRetry":
            self.event("api_error", " ".join(filter(None, (payload.error_type, str(payload.status_code or "")))), at)
        elif kind == "ApprovalRequest" and payload.id and payload.tool_call_id:
            self.approvals[payload.id] = payload.tool_call_id
        elif kind in ("ApprovalResponse", "ApprovalRequestResolved"):
            if payload.response == "reject" and (call_id := self.approvals.get(payload.request_id or "")):
                self.rejected[call_id] = payload.feedback or ""
            elif call_id := self.approvals.get(payload.request_id or ""):
                self.builder.permitted(call_id, at)
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
        text = (parts if isinstance(parts, str) else text_of(parts)).strip()
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
        self.charge(step, payload.token_usage)

    def returned(self, call_id: str, returned: Returned, at: int | None) -> None:
        output = returned.output if isinstance(returned.output, str) else text_of(returned.output or ())
        text = "\n".join(filter(None, (output.rstrip("\n"), returned.message)))
        is_command = self.is_command(call_id)
        exited = _EXIT.match(returned.message or "") if is_command else None
        code = int(exited[1]) if exited else 0 if is_command and returned.is_error is False else None
        diffs = [d for d in returned.display if d.type == "diff" and d.old_text is not None]
        self.answer(call_id, text, returned.is_error, at, diffs, code)

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        if not detail or any(diff.is_summary for diff in detail):
            return False
        hunks: list[Hunk] = []
        for diff in detail:
            old, new = (diff.old_text or "").split("\n"), (diff.new_text or "").split("\n")
            head = _alike(old, new)
            tail = _alike(old[head:][::-1], new[head:][::-1])
            marks = " " * head + "-" * (len(old) - head - tail) + "+" * (len(new) - head - tail) + " " * tail
            lines = changed(diff.old_start or 1, diff.new_start or 1, marks)
            hunks += [created(diff.new_text or "")] if not diff.old_text else [] if lines is None else [lines]
        is_new = not detail[0].old_text and len(detail) == 1
        whole = is_new or PROFILE.tool(call.name) is WRITE
        self.builder.edit(call, None, "create" if is_new else "modify", of_whole_file(hunks) if whole else hunks)
        return True


def _alike(old: list[str], new: list[str]) -> int:
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def text_of(parts: Iterable[Part]) -> str:
    return "\n".join(text for p in parts if (text := p.text or p.think))
