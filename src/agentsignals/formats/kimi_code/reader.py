"""The Kimi Code sessions of one family: each agent's file is a session, subagents' with their parent's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count as count_of
from agentsignals.formats.bounds import number
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import as_text, saw_again
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.head import head_of
from agentsignals.formats.kimi_code import PROFILE, is_wire, place_of
from agentsignals.formats.records import UNREADABLE, document, lines, saw
from agentsignals.model import ABANDONED, MAIN, RAN, REPLAYED, CallStatus, EventKind, Session, Step, logged_ms

# The records of a wire file as they are decoded: only the fields that are read.


class Part(Struct, gc=False, kw_only=True):
    type: str = ""
    text: str | None = None
    think: str | None = None


class Origin(Struct, gc=False, kw_only=True):
    """Who a message comes from."""

    kind: str = ""
    name: str | None = None
    trigger: str | None = None
    phase: str | None = None
    skillActivations: list[Raw] | None = None


class Message(Struct, kw_only=True):
    role: str = ""
    content: list[Part] | str = []
    id: str | None = None
    origin: Origin | None = None


class Result(Struct, kw_only=True):
    output: list[Part] | str | None = None
    isError: bool | None = None
    durationMs: object = None


class Usage(Struct, gc=False, kw_only=True):
    """The tokens of a model call: `inputOther` are those that did not come from the cache."""

    inputOther: object = None
    output: object = None
    inputCacheRead: object = None
    inputCacheCreation: object = None

    @property
    def figures(self) -> tuple[object, object, object, object]:
        return self.inputOther, self.output, self.inputCacheRead, self.inputCacheCreation


class Loop(Struct, kw_only=True):
    """What happens in a model call."""

    type: str = ""
    uuid: str | None = None
    stepUuid: str | None = None
    part: Part | None = None
    toolCallId: str | None = None
    name: str | None = None
    args: Raw = Raw()
    result: Result | None = None
    finishReason: str | None = None
    usage: Usage | None = None


class Environment(Struct, gc=False, kw_only=True):
    cwd: str | None = None


class Decision(Struct, gc=False, kw_only=True):
    decision: str = ""
    feedback: str | None = None


class Record(Struct, kw_only=True):
    """A line; what a field holds depends on its type."""

    type: str
    time: object = None
    created_at: object = None
    protocol_version: str | None = None
    cwd: str | None = None
    environmentDisclosure: Environment | None = None
    input: list[Part] | None = None
    origin: Origin | None = None
    promptId: str | None = None
    message: Raw = Raw()
    """Of `context.append_message`; of other types it is another's copy of it."""
    event: Loop | None = None
    kind: str | None = None
    model: str | None = None
    usage: Usage | None = None
    errorMessage: str | None = None
    reason: str | None = None
    error: object = None
    target: str | None = None
    count: object = None
    summary: Raw = Raw()
    toolCallId: str | None = None
    result: Decision | None = None


class State(Struct, kw_only=True):
    """`state.json`: what the program says of a session."""

    id: str = ""
    cwd: str | None = None
    title: str | None = None
    isCustomTitle: bool | None = None
    forkedFrom: str | None = None
    agents: dict[str, Any] = {}


decode = msgspec.json.Decoder(Record).decode
decode_state = msgspec.json.Decoder(State).decode
decode_message = msgspec.json.Decoder(Message).decode


# A wire file of Kimi Code as a session.

_EXIT = re.compile(r"Command failed with exit code: (-?\d{1,10})\.\s*\Z")
_PARTS = frozenset(("text", "think"))
_TYPED = ("skill_activation", "plugin_command")
_BY_PERSON = "user-slash"
_KINDS: dict[str, EventKind] = {"background_task": "notification", "cron": "notification", "hook_result": "hook_block"}
_QUIET = (
    *("metadata", "agent.", "cron.", "config.", "file_history.", "full_compaction.", "goal.", "interaction.", "llm."),
    *(
        "micro_compaction.",
        "permission.",
        "plan.",
        "plugin.",
        "profile.",
        "prompt.",
        "runtime.",
        "session.",
        "subagent.",
    ),
    *("task.", "token_counting.", "tools.", "tower_mode.", "context.undo", "turn.ended", "turn.prompt", "turn.step."),
)
"""Types of which nothing is said, or that repeat what another record says: `agent.message.appended` every message."""


class WireReader:
    """One session in the making."""

    def __init__(self, session: Session, is_subagent: bool) -> None:
        self.session = session
        self.builder = SessionBuilder(session, PROFILE)
        self.is_subagent = is_subagent
        self.thread = MAIN
        self.model: str | None = None
        self.steps: dict[str, Step] = {}
        self.running: Step | None = None
        self.uncounted: list[tuple[Usage, int | None]] = []
        """Usage that no step has told yet: it stands there, too, unless the call was made for something else."""
        self.prompts: set[str] = set()
        self.rejected: dict[str, str | None] = {}
        self.stopped = False
        self.touched: set[str] = set()

    def read(self, rows: Sequence[tuple[int, Record]], is_elsewhere: bool) -> Session:
        """`is_elsewhere`: the session that a fork was copied from is read, too."""
        copied = max((n for n, (_, record) in enumerate(rows) if record.type == "forked"), default=-1)
        undone = _undone([record for _, record in rows])
        for n, (line, record) in enumerate(rows):
            if n <= copied and is_elsewhere and record.environmentDisclosure is None:
                continue
            self.builder.line = line
            self.thread = REPLAYED if n <= copied else ABANDONED if n in undone else MAIN
            turn = self.builder.turn_index
            if self.thread != MAIN:
                self.builder.turn_index = None
            self._take(record, logged_ms(record.time))
            if self.thread != MAIN:
                self.builder.turn_index = turn
        self._others()
        return self.builder.finish()

    def _take(self, record: Record, at: int | None) -> None:
        builder = self.builder
        builder.where(record.cwd or (record.environmentDisclosure.cwd if record.environmentDisclosure else None))
        if record.event is not None and record.type == "context.append_loop_event":
            self._loop(record.event, at)
        elif record.type in ("turn.prompt", "turn.steer"):
            self._prompt(record, at)
        elif record.type == "context.append_message":
            self._appended(record, at)
        elif record.type == "llm.request":
            self.model = record.model or self.model
            if self.running is not None and record.kind == "loop":
                self.running.model = self.model
        elif record.type == "usage.record" and record.usage is not None:
            self.uncounted.append((record.usage, at))
        elif record.type == "turn.step.retrying":
            builder.event("api_error", record.errorMessage, at, thread=self.thread)
        elif record.type == "permission.record_approval_result":
            if record.result is not None and record.result.decision == "rejected" and record.toolCallId:
                self.rejected[record.toolCallId] = record.result.feedback
        elif record.type == "context.apply_compaction":
            builder.event("compaction", "{}", at, thread=self.thread)
            builder.event("meta", bytes(record.summary).decode("utf-8", "replace"), at, thread=self.thread)
        elif record.type in ("plan_mode.enter", "plan_mode.exit", "plan_mode.cancel"):
            builder.event("phase", "plan" if record.type == "plan_mode.enter" else "act", at, thread=self.thread)
        else:
            self._ended(record, at)

    def _ended(self, record: Record, at: int | None) -> None:
        if record.type == "turn.cancel" and record.target != "queued" and record.reason != "aborted":
            self.stopped = True
            self.builder.event("interrupt", record.reason, at, thread=self.thread)
        elif record.type == "turn.ended":
            if record.reason == "cancelled" and not self.stopped:
                self.builder.event("interrupt", record.reason, at, thread=self.thread)
            elif record.reason == "failed":
                self.builder.event("api_error", as_text(record.error) or record.reason, at, thread=self.thread)
            self.stopped = False
        elif record.type not in ("forked", "turn.cancel") and not record.type.startswith(_QUIET):
            self.builder.event("unknown", record.type[:80], at, thread=self.thread)

    def _prompt(self, record: Record, at: int | None) -> None:
        origin = record.origin or Origin(kind="user")
        if record.promptId:
            self.prompts.add(record.promptId)
        parts = record.input or []
        self.builder.unread((p.type for p in parts if not p.type.endswith("_url")), _PARTS, at, self.thread)
        self._words(origin, parts, at, queued=record.type == "turn.steer")

    def _appended(self, record: Record, at: int | None) -> None:
        """A message that the model got. Prompts stand in a record of their own before; the rest is nobody's words."""
        try:
            message = decode_message(bytes(record.message))
        except UNREADABLE:
            self.builder.event("unknown", "message that can't be read", at, thread=self.thread)
            return
        parts = [Part(type="text", text=message.content)] if isinstance(message.content, str) else message.content
        self.builder.unread((p.type for p in parts if not p.type.endswith("_url")), _PARTS, at, self.thread)
        if (message.id and message.id in self.prompts) or message.role != "user":
            return
        origin = message.origin or Origin(kind="user")
        if origin.kind == "user" and not self._is_last(message):
            self._words(origin, parts, at)
        elif origin.kind not in ("user", *_TYPED):
            self.builder.event(_KINDS.get(origin.kind, "meta"), _text(parts), at, thread=self.thread)

    def _is_last(self, message: Message) -> bool:
        """Whether the prompt before it says the same: without ids there is no other sign."""
        turns = self.session.turns
        text = message.content if isinstance(message.content, str) else _text(message.content)
        return bool(turns) and message.id is None and turns[-1].text == text.strip()

    def _words(self, origin: Origin, parts: Sequence[Part], at: int | None, queued: bool = False) -> None:
        bundled = len(origin.skillActivations or ()) if origin.kind == "user" else 0
        text = "".join([p.text or "" for p in parts if p.type == "text"][bundled:]).strip()
        if self.is_subagent or self.thread != MAIN or PROFILE.machine_kind(text):
            self.builder.event("meta", text, at, thread=self.thread)
        elif origin.kind == "shell_command":
            self.builder.event("user_shell", text, at, thread=self.thread)
        elif origin.kind in _TYPED and origin.trigger == _BY_PERSON:
            self.builder.turn("slash_command", text, at)
        elif origin.kind != "user":
            self.builder.event(_KINDS.get(origin.kind, "meta"), text, at, thread=self.thread)
        elif text:
            self.builder.turn("queued_prompt" if queued else "prompt", text, at)
        elif parts:
            self.builder.turn("attachment", "", at)

    # -- model calls ---------------------------------------------------------------------------------------------

    def _loop(self, event: Loop, at: int | None) -> None:
        builder = self.builder
        step = self.steps.get(event.stepUuid or event.uuid or "")
        if event.type == "step.begin":
            self.running = self.steps[event.uuid or ""] = builder.step(event.uuid, self.model, at, self.thread)
        elif event.type == "content.part" and event.part is not None:
            part = event.part
            builder.unread((part.type,), _PARTS, at, self.thread)
            if text := part.text or part.think:
                builder.event("thinking" if part.type == "think" else "text", text, at, step, self.thread)
        elif event.type == "tool.call":
            name, arguments = event.name or "", bytes(event.args) or b"{}"
            folder = _folder(arguments) if name == "Bash" else None
            builder.call(
                event.toolCallId or "", name, arguments, PROFILE.tool(name), at, step, self.thread, folder=folder
            )
        elif event.type == "tool.result":
            self._result(event, at)
        elif event.type == "step.end":
            if step is not None:
                step.stop_reason = event.finishReason
                if event.usage is not None:
                    _count(step, event.usage)
                    self._counted(event.usage)
        else:
            builder.event("unknown", event.type[:80], at, step, self.thread)

    def _result(self, event: Loop, at: int | None) -> None:
        call_id, result = event.toolCallId or "", event.result or Result()
        text = result.output if isinstance(result.output, str) else _text(result.output or ())
        asked = self.builder.calls_of(call_id)
        is_command = bool(asked) and asked[0].command is not None
        code = int(match[1]) if is_command and result.isError and (match := _EXIT.search(text[-200:])) else None
        status: CallStatus = "rejected" if call_id in self.rejected else "error" if result.isError else "ok"
        ran_ms = number(result.durationMs)
        call = None
        if asked:
            code = 0 if code is None and is_command and status == "ok" else code
            ran_s = None if ran_ms is None else ran_ms / 1000
            call = self.builder.result(call_id, text, status, at, self.thread, code, ran_s=ran_s)
        if call is None:
            self.builder.event("tool_result", text, at, None, self.thread)
            return
        if call.status in RAN and call.class_ == "edit":
            record_arguments(self.builder, call, self.touched)
        if call.path:
            self.touched.add(call.path)
        feedback = self.rejected.pop(call_id, None)
        if feedback and self.thread == MAIN and not self.is_subagent:
            self.builder.turn("rejection_feedback", feedback, at)

    def _counted(self, usage: Usage) -> None:
        """The same figures stand in a record of their own, before or after the step's."""
        for n, (other, _) in enumerate(self.uncounted):
            if other.figures == usage.figures:
                del self.uncounted[n]
                return

    def _others(self) -> None:
        """Calls that no step tells of: what a compaction or a title cost."""
        for usage, at in self.uncounted:
            _count(self.builder.step(None, self.model, at, MAIN), usage)


def _count(step: Step, usage: Usage) -> None:
    fresh, output, read, write = map(count_of, usage.figures)
    if any((fresh, output, read, write)):
        step.input_tokens, step.output_tokens = fresh, output
        step.cache_read_tokens, step.cache_write_tokens = read, write


def _undone(rows: Sequence[Record]) -> set[int]:
    """The records of turns that the person took back."""
    anchors: list[int] = []
    undone: set[int] = set()
    for n, record in enumerate(rows):
        if record.type == "turn.prompt" and (record.origin is None or record.origin.kind in ("user", *_TYPED)):
            anchors.append(n)
        elif record.type == "context.undo" and anchors and isinstance(record.count, int) and record.count > 0:
            first = anchors[-min(record.count, len(anchors))]
            del anchors[-min(record.count, len(anchors)) :]
            undone.update(range(first, n))
    return undone


def _text(parts: Iterable[Part]) -> str:
    return "\n".join(text for p in parts if (text := p.text or p.think))


def _folder(arguments: bytes) -> str | None:
    try:
        folder = json.loads(arguments).get("cwd")
    except (ValueError, AttributeError, RecursionError):
        return None
    return folder if isinstance(folder, str) else None


MAIN_AGENT = "main"


class _Wire(Struct):
    source: Input
    session_id: str
    agent: str
    rows: list[tuple[int, Record]]

    @property
    def is_copy(self) -> bool:
        """Whether it holds nothing but what a fork began with."""
        return bool(self.rows) and self.rows[-1][1].type == "forked"

    @property
    def name(self) -> str:
        return self.session_id if self.agent == MAIN_AGENT else f"{self.session_id}.{self.agent}"


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several copies of an agent's file the longest."""
    states: dict[str, State] = {}
    wires: list[_Wire] = []
    for source in inputs:
        if is_wire(head_of(source.data, source.artifact.path)):
            wires.append(_wire(source))
        elif (state := document(source.data, source.artifact, decode_state)) is not None:
            saw(source.artifact, "state")
            states[state.id] = state
    kept: dict[str, _Wire] = {}
    for wire in sorted(wires, key=lambda w: (-len(w.rows), w.source.artifact.artifact_id)):
        first = kept.setdefault(wire.name, wire)
        if first is not wire:
            wire.source.artifact.note = f"superseded by {first.source.artifact.artifact_id}"
            saw_again(wire.source.artifact)
    sessions = [_read(kept[name], states, kept) for name in sorted(kept)]
    return Reading([s for s in sessions if s.events or not kept[s.session_id].is_copy])


def _wire(source: Input) -> _Wire:
    rows = list(lines(source.data, source.artifact, decode))
    for _, record in rows:
        saw(source.artifact, _kind(record))
    session_id, agent = place_of(source.artifact.path)
    return _Wire(source, session_id or source.session_hint or source.artifact.artifact_id, agent, rows)


def _kind(record: Record) -> str:
    return record.type if record.event is None else f"{record.type}:{record.event.type}"


def _read(wire: _Wire, states: dict[str, State], wires: Mapping[str, _Wire]) -> Session:
    session = wire.source.session(wire.name, "kimi-code", PROFILE.agent)
    state = states.get(wire.session_id, State())
    copied_from = state.forkedFrom
    if wire.agent != MAIN_AGENT:
        agent = state.agents.get(wire.agent)
        parent = agent.get("parentAgentId") if isinstance(agent, dict) else None
        is_nested = isinstance(parent, str) and parent != MAIN_AGENT
        session.parent_session_id = f"{wire.session_id}.{parent}" if is_nested else wire.session_id
        copied_from = f"{copied_from}.{wire.agent}" if copied_from else None
    else:
        session.parent_session_id = copied_from
        session.title = state.title if state.isCustomTitle or not copied_from else None
    reader = WireReader(session, is_subagent=wire.agent != MAIN_AGENT)
    reader.builder.where(state.cwd)
    return reader.read(wire.rows, is_elsewhere=(copied_from or "") in wires)
