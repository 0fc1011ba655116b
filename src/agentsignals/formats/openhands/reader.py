"""The events and the state of an OpenHands conversation as typed structs: only what is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import between, created
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, count, whole
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import as_text, each, saw_again, tally
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.openhands import EVENT_FILE, PROFILE, conversation_of, folder_of, parent_folder
from agentsignals.formats.records import UNREADABLE, document, saw
from agentsignals.model import (
    ABANDONED,
    MAIN,
    RAN,
    SESSION_TOTAL,
    CallStatus,
    Session,
    Step,
    ToolCall,
    logged_iso,
    logged_ms,
)


class Part(Struct, gc=False):
    """Of a message or result: text, or images."""

    type: str = ""
    text: str | None = None


class Message(Struct, gc=False):
    content: list[Part] | str = field(default_factory=list)
    reasoning_content: str | None = None


class Metadata(Struct, gc=False):
    suffix: str = ""
    working_dir: str | None = None


class Observation(Struct, gc=False, kw_only=True):
    """What a tool gave back; the last four are of an edit, with the whole file before and after."""

    content: list[Part] | str = field(default_factory=list)
    is_error: object = None
    exit_code: object = None
    timeout: object = None
    metadata: Metadata | None = None
    path: str | None = None
    prev_exist: object = None
    old_content: str | None = None
    new_content: str | None = None


class Asked(Struct, gc=False):
    arguments: object = None


class Event(Struct, gc=False, kw_only=True):
    """An event, of any kind."""

    id: str = ""
    kind: str = ""
    timestamp: str | None = None
    source: str = ""
    parent_id: str | None = None
    llm_message: Message | None = None
    llm_response_id: str | None = None
    sender: str | None = None
    extended_content: list[Part] = field(default_factory=list)
    thought: list[Part] = field(default_factory=list)
    reasoning_content: str | None = None
    tool_name: str = ""
    tool_call_id: str = ""
    tool_call: Asked | None = None
    observation: Observation | None = None
    error: object = None
    rejection_reason: str = ""
    rejection_source: str = ""
    code: str = ""
    detail: str = ""
    reason: str | None = None
    blocked: object = None
    summary: str | None = None
    forgotten_event_ids: Raw = Raw()


class Tokens(Struct, gc=False, kw_only=True):
    """Of a model call. `prompt_tokens` count those from the cache and those written to it, too."""

    model: str | None = None
    response_id: str = ""
    prompt_tokens: object = None
    completion_tokens: object = None
    cache_read_tokens: object = None
    cache_write_tokens: object = None
    reasoning_tokens: object = None

    def charge(self, step: Step) -> None:
        """The figures as a model call's."""
        prompt, read, written = map(count, (self.prompt_tokens, self.cache_read_tokens, self.cache_write_tokens))
        if prompt is not None:
            step.input_tokens = max(prompt - (read or 0) - (written or 0), 0)
        step.output_tokens, step.reasoning_tokens = count(self.completion_tokens), count(self.reasoning_tokens)
        step.cache_read_tokens, step.cache_write_tokens = read, written


class Cost(Struct, gc=False):
    cost: object = None
    timestamp: float | None = None


class Metrics(Struct, gc=False):
    """Of one use of a model; of what was priced, costs in the same order as usages."""

    token_usages: list[Tokens] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)

    def calls(self) -> list[tuple[Tokens, Cost | None]]:
        priced = len(self.costs) == len(self.token_usages)
        costs = self.costs if priced else [None] * len(self.token_usages)
        return list(zip(self.token_usages, costs, strict=True))


class Stats(Struct, gc=False):
    usage_to_metrics: dict[str, Raw] = field(default_factory=dict)


class Workspace(Struct, gc=False):
    working_dir: str | None = None


class Model(Struct, gc=False):
    model: str | None = None


class Agent(Struct, gc=False):
    """Its key, which lies beside the model, is never read."""

    llm: Model | None = None


class State(Struct, gc=False, kw_only=True):
    """The state of a conversation."""

    id: str = ""
    agent: Agent | None = None
    workspace: Workspace | None = None
    stats: Stats = field(default_factory=Stats)


decode_metrics = msgspec.json.Decoder(Metrics).decode
decode_event = msgspec.json.Decoder(Event).decode
decode_state = msgspec.json.Decoder(State).decode


def text_of(content: list[Part] | str) -> str:
    """The texts joined."""
    return content if isinstance(content, str) else "\n".join(part.text for part in content if part.text)


def pay(step: Step, cost: Cost | None) -> None:
    """What LiteLLM reckoned. Nothing is of a model without a price, not of a call that cost nothing."""
    if cost is not None and (paid := amount(cost.cost)):
        step.cost_usd, step.cost_source = paid, "recorded"


# One OpenHands conversation in the making: events in, turns, model calls, tool calls and edits out.

_QUIET = frozenset(
    (
        *("SystemPromptEvent", "ConversationStateUpdateEvent", "LLMCompletionLogEvent", "TokenEvent"),
        *("StreamingDeltaEvent", "SecurityAnalysisEvent", "CondensationRequest", "CondensationSummaryEvent"),
    )
)
"""What the program notes for itself, or repeats."""
_READ = frozenset(("text", "image"))
"""Parts of what is said and given back."""
_WORDLESS = ("", "User rejected the action")
_RUNNING = -1
"""Exit code of a command that had not ended when the agent was answered."""


class Conversation:
    """Takes the events of one conversation in order. A subagent's is asked by another agent: no person talks in it."""

    def __init__(self, builder: SessionBuilder) -> None:
        self.builder = builder
        self._touched: set[str] = set()

    def take(self, event: Event, at: int | None, thread: str) -> None:
        """Adds one event; nothing off the main thread belongs to a turn."""
        turn = self.builder.turn_index
        if thread != MAIN:
            self.builder.turn_index = None
        self._event(event, at, thread)
        if thread != MAIN:
            self.builder.turn_index = turn

    def _event(self, event: Event, at: int | None, thread: str) -> None:
        builder, kind = self.builder, event.kind
        if kind == "MessageEvent" and event.llm_message is not None:
            if event.source == "agent":
                step = self._step(event, at, thread)
                self._unread(event.llm_message.content, at, thread)
                self._say("thinking", event.llm_message.reasoning_content, at, step, thread)
                self._say("text", text_of(event.llm_message.content), at, step, thread)
            else:
                self._message(event, at, thread)
        elif kind == "ActionEvent":
            self._action(event, at, thread)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            self._answer(event, at, thread)
        elif kind == "Condensation":
            self._condensed(event, at, thread)
        elif kind == "ConversationErrorEvent":
            builder.event("api_error", f"{event.code}: {event.detail}", at, None, thread)
        elif kind in ("PauseEvent", "InterruptEvent"):
            builder.event("interrupt", event.detail or kind, at, None, thread)
        elif kind == "HookExecutionEvent":
            builder.event("hook_block" if event.blocked is True else "meta", event.reason or kind, at, None, thread)
        elif kind not in _QUIET:
            builder.event("unknown", kind[:80] or "event without a kind", at, None, thread)

    def _step(self, event: Event, at: int | None, thread: str) -> Step:
        """Calls made at once, and the message with them, are of one answer of the model."""
        return self.builder.step(event.llm_response_id, None, at, thread)

    def _unread(self, content: list[Part] | str, at: int | None, thread: str) -> None:
        if not isinstance(content, str):
            self.builder.unread((part.type for part in content), _READ, at, thread)

    def _say(self, kind: str, text: str | None, at: int | None, step: Step | None, thread: str) -> None:
        if text and text.strip():
            self.builder.event("thinking" if kind == "thinking" else "text", text, at, step, thread)

    def _message(self, event: Event, at: int | None, thread: str) -> None:
        builder, content = self.builder, event.llm_message.content if event.llm_message is not None else ""
        for parts in (content, event.extended_content):
            self._unread(parts, at, thread)
        text = text_of(content).strip()
        is_persons = event.source == "user" and not event.sender and builder.session.parent_session_id is None
        if thread != MAIN or not is_persons:
            builder.event("notification" if event.source != "user" else "meta", text, at, None, thread)
        elif text or content:
            builder.turn("prompt" if text else "attachment", text, at)
        if added := text_of(event.extended_content):  # skills and micro-agents that the words called up
            builder.event("meta", added, at, None, thread)

    def _action(self, event: Event, at: int | None, thread: str) -> None:
        step = self._step(event, at, thread)
        self._say("thinking", event.reasoning_content, at, step, thread)
        self._say("text", text_of(event.thought), at, step, thread)
        self._unread(event.thought, at, thread)
        arguments = as_text(event.tool_call.arguments) if event.tool_call is not None else ""
        name, call_id = event.tool_name, event.tool_call_id
        self.builder.call(call_id, name, arguments or "{}", PROFILE.tool(name), at, step, thread)

    def _answer(self, event: Event, at: int | None, thread: str) -> None:
        builder, seen = self.builder, event.observation
        if event.kind == "UserRejectObservation":
            by_person = event.rejection_source in ("", "user")
            error = None if by_person else "permission"
            status: CallStatus = "rejected" if by_person else "error"
            builder.result(event.tool_call_id, event.rejection_reason, status, at, thread, None, error)
            if by_person and event.rejection_reason.strip() not in _WORDLESS and thread == MAIN:
                builder.turn("rejection_feedback", event.rejection_reason, at)
        elif seen is None:
            builder.result(event.tool_call_id, as_text(event.error), "error", at, thread)
        else:
            self._result(event, seen, at, thread)

    def _result(self, event: Event, seen: Observation, at: int | None, thread: str) -> None:
        text, code = text_of(seen.content), whole(seen.exit_code)
        self._unread(seen.content, at, thread)
        status: CallStatus = "error" if seen.is_error is True or seen.timeout is True else "ok"
        if code == _RUNNING:  # it may end well yet
            status, code = status if status == "error" else "unknown", None
            text += seen.metadata.suffix if seen.metadata is not None else ""
        if event.tool_name == "finish" and status == "ok":
            self._say("text", text, at, None, thread)
        call = self.builder.result(event.tool_call_id, text, status, at, thread, code)
        if call is not None and call.status in RAN and call.class_ == "edit":
            self._edit(call, seen)
        if call is not None and call.path:
            self._touched.add(call.path)

    def _edit(self, call: ToolCall, seen: Observation) -> None:
        if seen.new_content is None:
            record_arguments(self.builder, call, self._touched)
        elif seen.old_content is None:
            self.builder.edit(call, seen.path, "create", [created(seen.new_content)])
        elif hunks := between(seen.old_content, seen.new_content):
            self.builder.edit(call, seen.path, "modify", hunks)

    def _condensed(self, event: Event, at: int | None, thread: str) -> None:
        if event.llm_response_id:
            self.builder.step(event.llm_response_id, None, at, thread)
        try:
            forgotten = msgspec.json.decode(event.forgotten_event_ids) if event.forgotten_event_ids else []
        except UNREADABLE:
            forgotten = None
        n = len(forgotten) if isinstance(forgotten, list) else 0
        self.builder.event("compaction", msgspec.json.encode({"forgotten_events": n}).decode(), at, None, thread)
        if event.summary:
            self.builder.event("meta", event.summary, at, None, thread)


# The OpenHands conversations of one family: which files are of which, in what order, and what their models used.

_ROOT = "__root__"
_OF_SUBAGENT = "task:"
_ZONE_US = 15 * 60 * 1_000_000
"""Zones lie quarters of an hour apart."""
_FURTHEST_US = 14 * 60 * 60 * 1_000_000
_NEAR_US = 5 * 60 * 1_000_000
"""An event is written when its call has been paid: within seconds."""


class _File(Struct):
    source: Input
    event: Event
    number: int


class _Folder(Struct):
    """A conversation's folder."""

    path: str
    files: list[_File] = field(default_factory=list)
    state: State | None = None
    uses: dict[str, Metrics] = field(default_factory=dict)

    @property
    def session_id(self) -> str | None:
        named = (self.state.id if self.state is not None else "").replace("-", "").lower()
        return named or conversation_of(self.path)


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several copies of a conversation the fullest."""
    folders = _folders(inputs)
    best: dict[str, _Folder] = {}
    for folder in sorted(folders.values(), key=lambda f: (-len(f.files), f.path)):
        if folder.files:
            kept = best.setdefault(folder.session_id or folder.files[0].source.artifact.artifact_id, folder)
            for file in folder.files if kept is not folder else ():
                file.source.artifact.note = f"superseded by {kept.path}"
                saw_again(file.source.artifact)
    logged = {file.event.llm_response_id for folder in best.values() for file in folder.files}
    zone_us = _zone_us(best.values())
    return Reading([_session(session_id, folder, logged, zone_us) for session_id, folder in sorted(best.items())])


def _folders(inputs: list[Input]) -> dict[str, _Folder]:
    folders: dict[str, _Folder] = {}
    for source in sorted(inputs, key=lambda i: i.artifact.path):
        folder = folders.setdefault(folder_of(source.artifact.path), _Folder(folder_of(source.artifact.path)))
        name = EVENT_FILE.search(source.artifact.path)
        if name is None:
            folder.state = document(source.data, source.artifact, decode_state)
            if folder.state is not None:
                saw(source.artifact, "state")
                # What each use of a model came to; one that can't be read costs itself alone.
                logged = folder.state.stats.usage_to_metrics
                metrics = dict(zip(logged, each(list(logged.values()), decode_metrics, source.artifact), strict=True))
                tally(source.artifact, "use", [None for of_use in metrics.values() if of_use is None])
                folder.uses = {use: of_use for use, of_use in metrics.items() if of_use is not None}
        elif (event := document(source.data, source.artifact, decode_event)) is not None:
            saw(source.artifact, event.kind[:80] or "untyped")
            folder.files.append(_File(source, event, int(name[1])))
    for folder in folders.values():
        folder.files.sort(key=lambda f: (f.number, f.event.timestamp or "", f.event.id))
    return folders


def _session(session_id: str, folder: _Folder, logged: set[str | None], zone_us: int) -> Session:
    state, first = folder.state or State(), folder.files[0]
    session = first.source.session(session_id, "openhands", PROFILE.agent)
    above = parent_folder(folder.path)
    session.parent_session_id = conversation_of(above) if above is not None else None
    builder = SessionBuilder(session, PROFILE)
    builder.where(state.workspace.working_dir if state.workspace is not None else None)
    talk, live = Conversation(builder), _live(folder)
    for file in folder.files:
        at = logged_iso(file.event.timestamp)
        builder.artifact_id, builder.line = file.source.artifact.artifact_id, 1
        talk.take(file.event, at - zone_us if at is not None else None, MAIN if file.event.id in live else ABANDONED)
    # Tokens stand in the state alone, by the answers of the model. A subagent's are there too; where its
    # own folder is not among the files, and for calls of which no event is, they are closing steps.
    steps = {step.message_id: step for step in builder.session.steps}
    for use, tokens, cost in _calls(folder):
        step = steps.get(tokens.response_id)
        if step is None:
            if tokens.response_id in logged:
                continue
            thread = use if use.startswith(_OF_SUBAGENT) else MAIN
            step = builder.step(tokens.response_id or None, tokens.model, thread=thread)
            step.stop_reason = SESSION_TOTAL
        step.model = tokens.model
        tokens.charge(step)
        pay(step, cost)
    model = state.agent.llm.model if state.agent is not None and state.agent.llm is not None else None
    made = builder.finish()
    made.model = made.model or model
    return made


def _live(folder: _Folder) -> set[str]:
    """The events on the way from the last one to the first: what a person went back from lies beside it. An event that
    names none before it follows the one before it in number, as all did before there were ways."""
    events = [file.event for file in folder.files]
    place = {event.id: n for n, event in enumerate(events)}
    live: set[str] = set()
    n = len(events) - 1
    while n >= 0 and events[n].id not in live:
        live.add(events[n].id)
        parent = events[n].parent_id
        n = -1 if parent == _ROOT else place.get(parent or "", n - 1)
    return live


def _calls(folder: _Folder) -> Iterator[tuple[str, Tokens, Cost | None]]:
    for use, metrics in folder.uses.items():
        yield from ((use, tokens, cost) for tokens, cost in metrics.calls())


def _zone_us(folders: Collection[_Folder]) -> int:
    """How far local time is ahead: what a call cost is noted with a time of the world, its event with a local one."""
    paid = {
        tokens.response_id: cost.timestamp
        for folder in folders
        for _, tokens, cost in _calls(folder)
        if cost is not None and cost.timestamp is not None
    }
    ahead: Counter[int] = Counter()
    for file in (file for folder in folders for file in folder.files):
        stamp, at = paid.get(file.event.llm_response_id or ""), logged_iso(file.event.timestamp)
        if stamp is not None and at is not None:
            apart = at - (logged_ms(stamp * 1000) or 0)
            zone = (apart + _ZONE_US // 2) // _ZONE_US * _ZONE_US
            if abs(zone) <= _FURTHEST_US and abs(apart - zone) <= _NEAR_US:
                ahead[zone] += 1
    return ahead.most_common(1)[0][0] if ahead else 0
