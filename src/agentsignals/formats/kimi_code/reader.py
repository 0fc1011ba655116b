"""Reads Kimi Code sessions: each agent's file is one, a subagent's too. The structs hold only fields that are read."""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import number
from agentsignals.formats.documents import largest
from agentsignals.formats.kimi_cli.reader import Part, WireReader, text_of, wires
from agentsignals.formats.kimi_code import PROFILE, is_wire, place_of
from agentsignals.formats.records import as_text, decoded, decoder, document, head_of, inside, saw, string
from agentsignals.model import ABANDONED, MAIN, REPLAYED, EventKind, Session, Step, logged_ms


class Origin(Struct, gc=False, kw_only=True):
    kind: str = ""
    trigger: str | None = None
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


class Loop(Struct, kw_only=True):
    type: str = ""
    uuid: str | None = None
    stepUuid: str | None = None
    part: Part | None = None
    toolCallId: str | None = None
    name: str | None = None
    args: Raw = Raw()
    result: Result | None = None
    finishReason: str | None = None
    usage: dict[str, Any] | None = None


class Record(Struct, kw_only=True):
    """A line. The meaning of a field depends on its type."""

    type: str
    time: object = None
    cwd: str | None = None
    environmentDisclosure: dict[str, Any] | None = None
    input: list[Part] | None = None
    origin: Origin | None = None
    promptId: str | None = None
    message: Raw = Raw()
    """Read for `context.append_message`. Other types repeat it."""
    event: Loop | None = None
    kind: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    errorMessage: str | None = None
    reason: str | None = None
    error: object = None
    target: str | None = None
    count: object = None
    summary: Raw = Raw()
    toolCallId: str | None = None
    result: dict[str, Any] | None = None
    """A decision on a call."""


class State(Struct, kw_only=True):
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
    "task.", "token_counting.", "tools.", "tower_mode.", "turn.ended", "turn.prompt", "turn.step.",
)  # fmt: skip
"""Types without content, or that repeat another record: `agent.message.appended` repeats every message."""
_MAIN_AGENT = "main"


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Of several copies of an agent's file the longest counts."""
    states: dict[str, State] = {}
    files: list[Input] = []
    for source in inputs:
        if is_wire(head_of(source.data, source.artifact.path)):
            files.append(source)
        elif (state := document(source.data, source.artifact, decoder(State).decode)) is not None:
            saw(source.artifact, "state")
            states[state.id] = state
    kept = largest(
        wires(
            files,
            decoder(Record).decode,
            lambda r: r.type if r.event is None else f"{r.type}:{r.event.type}",
            _agent_of,
        )
    )
    names = {wire.session_id for wire in kept}
    sessions: list[Session] = []
    for wire in kept:
        _, agent = _agent_of(wire.source.artifact.path)
        own_id, rows = wire.session_id.removesuffix(f".{agent}"), wire.document
        state = states.get(own_id, State())
        session = wire.source.session(wire.session_id, "kimi-code", PROFILE.agent)
        copied_from = state.forkedFrom
        if agent is not None:
            parent = inside(state.agents.get(agent), "parentAgentId")
            is_nested = isinstance(parent, str) and parent != _MAIN_AGENT
            session.parent_session_id = f"{own_id}.{parent}" if is_nested else own_id
            copied_from = f"{copied_from}.{agent}" if copied_from else None
        else:
            session.parent_session_id = copied_from
            session.title = state.title if state.isCustomTitle or not copied_from else None
        reader = Reader(session)
        reader.is_subagent = agent is not None
        reader.builder.where(state.cwd)
        reader.build(rows, skip_copied=(copied_from or "") in names)
        if session.events or not (rows and rows[-1][1].type == "forked"):  # else it holds only what a fork copied
            sessions.append(session)
    return Reading(sessions)


def _agent_of(path: str) -> tuple[str | None, str | None]:
    session_id, agent = place_of(path)
    return session_id, agent if agent != _MAIN_AGENT else None


class Reader(WireReader):
    profile = PROFILE
    model: str | None = None
    running: Step | None = None
    stopped = False

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.uncounted: list[tuple[dict[str, Any], int | None]] = []
        """Usage that no step has repeated yet. What is left at the end are calls made for something else."""
        self.prompts: set[str] = set()

    def build(self, rows: Sequence[tuple[int, Record]], skip_copied: bool) -> None:
        """`skip_copied`: the session that a fork was copied from is read too."""
        copied = max((n for n, (_, record) in enumerate(rows) if record.type == "forked"), default=-1)
        anchors: list[int] = []
        undone: set[int] = set()
        for n, (_, record) in enumerate(rows):
            if record.type == "turn.prompt" and (record.origin is None or record.origin.kind in ("user", *_COMMANDS)):
                anchors.append(n)
            elif record.type == "context.undo" and anchors and isinstance(record.count, int) and record.count > 0:
                first = max(len(anchors) - record.count, 0)
                undone.update(range(anchors[first], n))
                del anchors[first:]
        for n, (line, record) in enumerate(rows):
            if n <= copied and skip_copied and record.environmentDisclosure is None:
                continue
            self.builder.line = line
            with self.aside(REPLAYED if n <= copied else ABANDONED if n in undone else MAIN):
                self.take(record, logged_ms(record.time))
        for usage, at in self.uncounted:  # what a compaction or a title cost
            self.charge(self.builder.step(None, self.model, at, MAIN), usage)
        self.builder.finish()

    def take(self, record: Record, at: int | None) -> None:
        self.builder.where(record.cwd or string(inside(record.environmentDisclosure, "cwd")))
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
            if inside(record.result, "decision") == "rejected" and record.toolCallId:
                self.rejected[record.toolCallId] = string(inside(record.result, "feedback"))
            elif record.toolCallId:
                self.builder.permitted(record.toolCallId, at)
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
        elif record.type == "context.undo":
            self.event("rewind", None, at)
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
        is_repeated = bool(turns) and message.id is None and turns[-1].text == text_of(parts).strip()
        if origin.kind == "user" and not is_repeated:
            self.user(origin, parts, at)
        elif origin.kind not in ("user", *_COMMANDS):
            self.event(_KINDS.get(origin.kind, "meta"), text_of(parts), at)

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
            self.said(event.part, _PARTS, at, step)
        elif event.type == "tool.call":
            name, arguments = event.name or "", bytes(event.args) or b"{}"
            folder = string(inside(decoded(arguments, Any), "cwd")) if name == "Bash" else None
            tool, call_id = PROFILE.tool(name), event.toolCallId or ""
            self.builder.call(call_id, name, arguments, tool, at, step, self.thread, folder=folder)
        elif event.type == "tool.result":
            self.returned(event, at)
        elif event.type == "step.end":
            if step is not None:
                step.stop_reason = event.finishReason
                if event.usage is not None:
                    self.charge(step, event.usage)
                    # A record of its own has the same figures, before or after.
                    same = next((n for n, (usage, _) in enumerate(self.uncounted) if usage == event.usage), None)
                    if same is not None:
                        del self.uncounted[same]
        else:
            self.event("unknown", event.type[:80], at, step)

    def returned(self, event: Loop, at: int | None) -> None:
        call_id, result = event.toolCallId or "", event.result or Result()
        text = result.output if isinstance(result.output, str) else text_of(result.output or ())
        code = None
        if self.is_command(call_id):
            exited = _EXIT.search(text[-200:]) if result.isError else None
            failed = result.isError or call_id in self.rejected
            code = int(exited[1]) if exited else None if failed else 0
        call = self.answer(call_id, text, result.isError, at, None, code)
        if call is not None and (ran_ms := number(result.durationMs)) is not None:
            call.ran_s = ran_ms / 1000
