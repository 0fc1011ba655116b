"""Reads Kimi Code sessions: each agent's file is a session, a subagent's too. The structs hold only the fields that are
read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import number
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import as_text, saw_again
from agentsignals.formats.head import head_of
from agentsignals.formats.kimi_code import PROFILE, is_wire, place_of
from agentsignals.formats.records import decoded, decoder, document, lines, saw
from agentsignals.formats.usage import charge, tokens_of
from agentsignals.model import ABANDONED, MAIN, REPLAYED, CallStatus, EventKind, Session, Step, logged_ms


class Part(Struct, gc=False, kw_only=True):
    type: str = ""
    text: str | None = None
    think: str | None = None


class Origin(Struct, gc=False, kw_only=True):
    """The author of a message."""

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
    """Tokens of a model call. `inputOther` excludes cached ones."""

    inputOther: object = None
    output: object = None
    inputCacheRead: object = None
    inputCacheCreation: object = None


class Loop(Struct, kw_only=True):
    """An event inside a model call."""

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
    """A line. The meaning of a field depends on its type."""

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
    """Read for `context.append_message`. Other types repeat it."""
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
    """`state.json`: facts about a session."""

    id: str = ""
    cwd: str | None = None
    title: str | None = None
    isCustomTitle: bool | None = None
    forkedFrom: str | None = None
    agents: dict[str, Any] = {}


_EXIT = re.compile(r"Command failed with exit code: (-?\d{1,10})\.\s*\Z")
_PARTS = frozenset(("text", "think"))
_COMMANDS = ("skill_activation", "plugin_command")
_BY_PERSON = "user-slash"
_KINDS: dict[str, EventKind] = {"background_task": "notification", "cron": "notification", "hook_result": "hook_block"}
_IGNORED = (
    "metadata", "agent.", "cron.", "config.", "file_history.", "full_compaction.", "goal.", "interaction.", "llm.",
    "micro_compaction.", "permission.", "plan.", "plugin.", "profile.", "prompt.", "runtime.", "session.", "subagent.",
    "task.", "token_counting.", "tools.", "tower_mode.", "context.undo", "turn.ended", "turn.prompt", "turn.step.",
)  # fmt: skip
"""Types without content, or that repeat another record: `agent.message.appended` repeats every message."""
_MAIN_AGENT = "main"


class _Wire(Struct):
    source: Input
    session_id: str
    agent: str
    rows: list[tuple[int, Record]]

    @property
    def is_copy(self) -> bool:
        """Return whether it holds only what a fork copied."""
        return bool(self.rows) and self.rows[-1][1].type == "forked"

    @property
    def name(self) -> str:
        return self.session_id if self.agent == _MAIN_AGENT else f"{self.session_id}.{self.agent}"


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Of several copies of an agent's file the longest counts."""
    states: dict[str, State] = {}
    wires: list[_Wire] = []
    for source in inputs:
        if is_wire(head_of(source.data, source.artifact.path)):
            wires.append(_wire(source))
        elif (state := document(source.data, source.artifact, decoder(State).decode)) is not None:
            saw(source.artifact, "state")
            states[state.id] = state
    longest: dict[str, _Wire] = {}
    for wire in sorted(wires, key=lambda w: (-len(w.rows), w.source.artifact.artifact_id)):
        first = longest.setdefault(wire.name, wire)
        if first is not wire:
            wire.source.artifact.note = f"superseded by {first.source.artifact.artifact_id}"
            saw_again(wire.source.artifact)
    sessions = [_read(longest[name], states, longest) for name in sorted(longest)]
    return Reading([s for s in sessions if s.events or not longest[s.session_id].is_copy])


def _wire(source: Input) -> _Wire:
    rows = list(lines(source.data, source.artifact, decoder(Record).decode))
    for _, record in rows:
        saw(source.artifact, record.type if record.event is None else f"{record.type}:{record.event.type}")
    session_id, agent = place_of(source.artifact.path)
    return _Wire(source, session_id or source.session_hint or source.artifact.artifact_id, agent, rows)


def _read(wire: _Wire, states: dict[str, State], wires: Mapping[str, _Wire]) -> Session:
    session = wire.source.session(wire.name, "kimi-code", PROFILE.agent)
    state = states.get(wire.session_id, State())
    copied_from = state.forkedFrom
    if wire.agent != _MAIN_AGENT:
        agent = state.agents.get(wire.agent)
        parent = agent.get("parentAgentId") if isinstance(agent, dict) else None
        is_nested = isinstance(parent, str) and parent != _MAIN_AGENT
        session.parent_session_id = f"{wire.session_id}.{parent}" if is_nested else wire.session_id
        copied_from = f"{copied_from}.{wire.agent}" if copied_from else None
    else:
        session.parent_session_id = copied_from
        session.title = state.title if state.isCustomTitle or not copied_from else None
    reader = Reader(session)
    reader.is_subagent = wire.agent != _MAIN_AGENT
    reader.builder.where(state.cwd)
    return reader.build(wire.rows, skip_copied=(copied_from or "") in wires)


class Reader(Conversation):
    profile = PROFILE

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.model: str | None = None
        self.steps: dict[str, Step] = {}
        self.running: Step | None = None
        self.uncounted: list[tuple[Usage, int | None]] = []
        """Usage that no step has repeated yet. What is left at the end are calls made for something else."""
        self.prompts: set[str] = set()
        self.rejected: dict[str, str | None] = {}
        self.stopped = False

    def build(self, rows: Sequence[tuple[int, Record]], skip_copied: bool) -> Session:
        """`skip_copied`: the session that a fork was copied from is read too."""
        copied = max((n for n, (_, record) in enumerate(rows) if record.type == "forked"), default=-1)
        undone = _undone([record for _, record in rows])
        for n, (line, record) in enumerate(rows):
            if n <= copied and skip_copied and record.environmentDisclosure is None:
                continue
            self.builder.line = line
            if n <= copied or n in undone:
                with self.aside(REPLAYED if n <= copied else ABANDONED):
                    self.take(record, logged_ms(record.time))
            else:
                self.take(record, logged_ms(record.time))
        for usage, at in self.uncounted:  # what a compaction or a title cost
            _charge(self.builder.step(None, self.model, at, MAIN), usage)
        return self.builder.finish()

    def take(self, record: Record, at: int | None) -> None:
        environment = record.environmentDisclosure
        self.builder.where(record.cwd or (environment.cwd if environment is not None else None))
        if record.event is not None and record.type == "context.append_loop_event":
            self.loop(record.event, at)
        elif record.type in ("turn.prompt", "turn.steer"):
            if record.promptId:
                self.prompts.add(record.promptId)
            self.user(record.origin or Origin(kind="user"), self.parts(record.input or [], at), at, record.type)
        elif record.type == "context.append_message":
            self.message(decoded(bytes(record.message), Message), at)
        elif record.type == "llm.request":
            self.model = record.model or self.model
            if self.running is not None and record.kind == "loop":
                self.running.model = self.model
        elif record.type == "usage.record" and record.usage is not None:
            self.uncounted.append((record.usage, at))
        elif record.type == "turn.step.retrying":
            self.event("api_error", record.errorMessage, at)
        elif record.type == "permission.record_approval_result":
            if record.result is not None and record.result.decision == "rejected" and record.toolCallId:
                self.rejected[record.toolCallId] = record.result.feedback
        elif record.type == "context.apply_compaction":
            self.event("compaction", "{}", at)
            self.event("meta", bytes(record.summary).decode("utf-8", "replace"), at)
        elif record.type in ("plan_mode.enter", "plan_mode.exit", "plan_mode.cancel"):
            self.event("phase", "plan" if record.type == "plan_mode.enter" else "act", at)
        elif record.type == "turn.cancel" and record.target != "queued" and record.reason != "aborted":
            self.stopped = True
            self.event("interrupt", record.reason, at)
        elif record.type == "turn.ended":
            if record.reason == "cancelled" and not self.stopped:
                self.event("interrupt", record.reason, at)
            elif record.reason == "failed":
                self.event("api_error", as_text(record.error) or record.reason, at)
            self.stopped = False
        elif record.type not in ("forked", "turn.cancel") and not record.type.startswith(_IGNORED):
            self.event("unknown", record.type[:80], at)

    def parts(self, parts: Sequence[Part], at: int | None) -> Sequence[Part]:
        self.builder.unread((p.type for p in parts if not p.type.endswith("_url")), _PARTS, at, self.thread)
        return parts

    def message(self, message: Message | None, at: int | None) -> None:
        """Record a message to the model, unless it repeats a prompt, which has a record of its own before it."""
        if message is None:
            self.event("unknown", "message that can't be read", at)
            return
        content = message.content
        parts = self.parts([Part(type="text", text=content)] if isinstance(content, str) else content, at)
        if (message.id and message.id in self.prompts) or message.role != "user":
            return
        origin, turns = message.origin or Origin(kind="user"), self.session.turns
        # Without ids, equal text is the only sign of a repeated prompt.
        is_repeated = bool(turns) and message.id is None and turns[-1].text == _text(parts).strip()
        if origin.kind == "user" and not is_repeated:
            self.user(origin, parts, at)
        elif origin.kind not in ("user", *_COMMANDS):
            self.event(_KINDS.get(origin.kind, "meta"), _text(parts), at)

    def user(self, origin: Origin, parts: Sequence[Part], at: int | None, record_type: str = "") -> None:
        bundled = len(origin.skillActivations or ()) if origin.kind == "user" else 0
        text = "".join([p.text or "" for p in parts if p.type == "text"][bundled:]).strip()
        if self.is_subagent or self.thread != MAIN or PROFILE.machine_kind(text):
            self.event("meta", text, at)
        elif origin.kind == "shell_command":
            self.event("user_shell", text, at)
        elif origin.kind in _COMMANDS and origin.trigger == _BY_PERSON:
            self.builder.turn("slash_command", text, at)
        elif origin.kind != "user":
            self.event(_KINDS.get(origin.kind, "meta"), text, at)
        else:
            self.prompt(text, at, bool(parts), "queued_prompt" if record_type == "turn.steer" else "prompt")

    def loop(self, event: Loop, at: int | None) -> None:
        step = self.steps.get(event.stepUuid or event.uuid or "")
        if event.type == "step.begin":
            step = self.builder.step(event.uuid, self.model, at, self.thread)
            self.running = self.steps[event.uuid or ""] = step
        elif event.type == "content.part" and event.part is not None:
            part = event.part
            self.builder.unread((part.type,), _PARTS, at, self.thread)
            if text := part.text or part.think:
                self.event("thinking" if part.type == "think" else "text", text, at, step)
        elif event.type == "tool.call":
            name, arguments = event.name or "", bytes(event.args) or b"{}"
            where = decoded(arguments, Environment) if name == "Bash" else None
            self.builder.call(
                event.toolCallId or "", name, arguments, PROFILE.tool(name), at, step, self.thread,
                folder=where.cwd if where is not None else None,
            )  # fmt: skip
        elif event.type == "tool.result":
            self.answer(event, at)
        elif event.type == "step.end":
            if step is not None:
                step.stop_reason = event.finishReason
                if event.usage is not None:
                    _charge(step, event.usage)
                    # A record of its own has the same figures, before or after.
                    same = next((n for n, (usage, _) in enumerate(self.uncounted) if usage == event.usage), None)
                    if same is not None:
                        del self.uncounted[same]
        else:
            self.event("unknown", event.type[:80], at, step)

    def answer(self, event: Loop, at: int | None) -> None:
        call_id, result = event.toolCallId or "", event.result or Result()
        text = result.output if isinstance(result.output, str) else _text(result.output or ())
        is_command = self.is_command(call_id)
        status: CallStatus = "rejected" if call_id in self.rejected else "error" if result.isError else "ok"
        code = 0 if is_command and status == "ok" else None
        if is_command and result.isError and (exited := _EXIT.search(text[-200:])):
            code = int(exited[1])
        call = self.result(call_id, text, status, at, None, code)
        if call is None:
            return
        ran_ms = number(result.durationMs)
        call.ran_s = None if ran_ms is None else ran_ms / 1000
        feedback = self.rejected.pop(call_id, None)
        if feedback and self.thread == MAIN and not self.is_subagent:
            self.builder.turn("rejection_feedback", feedback, at)


def _charge(step: Step, usage: Usage) -> None:
    tokens = tokens_of(usage, "apart")
    if any(tokens):
        charge(step, tokens)


def _undone(rows: Sequence[Record]) -> set[int]:
    """Return the numbers of the records in turns that the person undid."""
    anchors: list[int] = []
    undone: set[int] = set()
    for n, record in enumerate(rows):
        if record.type == "turn.prompt" and (record.origin is None or record.origin.kind in ("user", *_COMMANDS)):
            anchors.append(n)
        elif record.type == "context.undo" and anchors and isinstance(record.count, int) and record.count > 0:
            first = anchors[-min(record.count, len(anchors))]
            del anchors[-min(record.count, len(anchors)) :]
            undone.update(range(first, n))
    return undone


def _text(parts: Iterable[Part]) -> str:
    return "\n".join(text for p in parts if (text := p.text or p.think))
