"""Reads Qwen Code chats. The structs hold only the fields that are read."""

from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import created, of_whole_file, rewrites, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count
from agentsignals.formats.conversation import ROOT, Conversation, path_to_root
from agentsignals.formats.documents import by_session, once
from agentsignals.formats.gemini_cli.reader import REFERENCED, outcome
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import SHELL
from agentsignals.formats.qwen_code import PROFILE
from agentsignals.formats.records import as_text, decoded, decoder, inside, saw, some_lines, string
from agentsignals.model import ABANDONED, MAIN, REPLAYED, Step, ToolCall, logged_iso


class Call(Struct, gc=False):
    id: str | None = None
    name: str | None = None
    args: Raw = Raw()


class Answer(Struct, gc=False):
    output: object = None
    error: object = None

    @property
    def text(self) -> str:
        return as_text(self.error if self.error is not None else self.output)


class Response(Struct, gc=False):
    id: str | None = None
    name: str | None = None
    response: Answer = field(default_factory=Answer)


class Part(Struct, gc=False, kw_only=True):
    text: str | None = None
    thought: object = None
    functionCall: Call | None = None
    functionResponse: Response | None = None
    inlineData: Raw = Raw()
    fileData: Raw = Raw()

    @property
    def kind(self) -> str:
        return next((name for name in _PART_KINDS if getattr(self, name) not in (None, Raw())), "")


_PART_KINDS = ("text", "functionCall", "functionResponse", "inlineData", "fileData", "thought")


class Message(Struct, gc=False):
    parts: list[Part] = field(default_factory=list)


class CallResult(Struct, gc=False):
    status: str | None = None
    resultDisplay: Raw = Raw()


class Display(Struct, gc=False):
    fileDiff: str
    originalContent: str | None = None
    newContent: str | None = None


class Record(Struct, gc=False, kw_only=True):
    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None
    sessionId: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    version: str | None = None
    gitBranch: str | None = None
    model: str | None = None
    message: Message | None = None
    usageMetadata: dict[str, Any] | None = None
    toolCallResult: CallResult | None = None
    systemPayload: Raw = Raw()
    agentId: str | None = None
    """Set in a subagent's records, in newer versions."""
    forkedFrom: dict[str, Any] | None = None
    """Set in records that a branch copied from its origin."""

    @property
    def kind(self) -> str:
        return f"{self.type}.{self.subtype}"[:80] if self.subtype else self.type[:80] or "untyped"


class UiEvent(Struct, gc=False, kw_only=True):
    """A line of telemetry. Each model call has one; those of subagents have nothing else."""

    name: str = field(name="event.name", default="")
    model: str | None = None
    subagent_name: str | None = None
    prompt_id: str | None = None
    response_id: str | None = None
    input_token_count: object = None
    output_token_count: object = None
    cached_content_token_count: object = None
    thoughts_token_count: object = None
    total_token_count: object = None
    error: object = None
    error_message: object = None
    status_code: object = None


class Payload(Struct, gc=False, kw_only=True):
    """State of the program, by `subtype`."""

    uiEvent: UiEvent | None = None
    info: Raw = Raw()
    summary: str | None = None
    customTitle: str | None = None
    displayText: str | None = None
    phase: str | None = None
    rawCommand: str | None = None
    filesRead: object = None


_USED = (
    "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount", "totalTokenCount",
)  # fmt: skip
_IGNORED = frozenset(("attribution_snapshot", "agent_bootstrap"))
_ABORTED = "Request was aborted."


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Those of one session are united by record id."""
    reading = Reading()
    sessions = by_session(inputs, _File)
    for session_id, files in sorted(sessions.items()):
        reader = Reader(files[0].source.session(session_id, "qwen-code", PROFILE.agent))
        records = once(files, lambda file: zip(file.numbers, file.records, strict=True), lambda record: record.uuid)
        for file, number, record in records:
            reader.builder.artifact_id, reader.builder.line = file.source.artifact.artifact_id, number
            forked_from = string(inside(record.forkedFrom, "sessionId"))
            if forked_from in sessions:  # the original counts
                reader.session.parent_session_id = forked_from
                saw(file.source.artifact, "repeated")
                continue
            reader.take(record, is_live=not record.uuid or record.uuid in file.live)
        reading.sessions.append(reader.builder.finish())
    return reading


class _File:
    def __init__(self, source: Input) -> None:
        self.source = source
        self.named: str | None = None
        self.is_subagents, self.last = True, ""
        self.chain: list[str] = []
        self.follows: list[str | None] = []
        record = decoder(Record)
        self.numbers, self.records = some_lines(source.data, source.artifact, record, record.decode, self._look)
        self.session_id = self.named or source.session_hint or source.artifact.artifact_id
        self.order = (self.is_subagents, self.last, len(self.records), source.artifact.sha256)
        # Ids on the path from the last record to the first. A rewind leaves abandoned records off that path.
        place = {uuid: n for n, uuid in enumerate(self.chain)}
        # A lost line abandons nothing before it.
        parents = [ROOT if uuid is None else place.get(uuid, n - 1) for n, uuid in enumerate(self.follows)]
        self.live = {self.chain[n] for n in path_to_root(parents, len(parents) - 1)}

    def _look(self, records: Sequence[Record]) -> None:
        for record in records:
            saw(self.source.artifact, record.kind)
            self.named = self.named or record.sessionId
            self.last = max(self.last, record.timestamp or "")
            self.is_subagents = self.is_subagents and bool(record.agentId)
            if record.uuid and not record.agentId:
                before = self.chain[-1] if self.chain else None
                self.follows.append(before if record.parentUuid == before else record.parentUuid)
                self.chain.append(record.uuid)


class Reader(Conversation):
    profile = PROFILE

    def take(self, record: Record, is_live: bool) -> None:
        session = self.session
        self.builder.where(record.cwd, record.gitBranch)
        session.agent_version = session.agent_version or record.version
        if record.forkedFrom is not None:
            session.parent_session_id = session.parent_session_id or string(record.forkedFrom.get("sessionId"))
        thread = REPLAYED if record.forkedFrom else record.agentId or (MAIN if is_live else ABANDONED)
        with self.aside(thread):
            self.record(record, logged_iso(record.timestamp))

    def record(self, record: Record, at: int | None) -> None:
        parts = record.message.parts if record.message is not None else []
        if record.type == "system" or (record.message is None and record.systemPayload):
            self.system(record, at)
        elif record.type == "assistant":
            step = self.builder.step(record.uuid, record.model, at, self.thread)
            if record.usageMetadata is not None:
                _charge(step, *map(record.usageMetadata.get, _USED))
            for part in parts:
                if part.text:
                    self.event("thinking" if part.thought else "text", part.text, at, step)
                elif (call := part.functionCall) is not None:
                    self.call(call.id or "", call.name or "", bytes(call.args), at, step)
        elif record.type == "tool_result":
            for part in parts:
                if part.functionResponse is not None:
                    self.answer(part.functionResponse, record.toolCallResult or CallResult(), at)
        elif record.type == "user":
            self.user(record, parts, at)
        else:
            self.event("unknown", record.kind, at)
        self.builder.unread((part.kind for part in parts), frozenset(_PART_KINDS), at, self.thread)

    def user(self, record: Record, parts: list[Part], at: int | None) -> None:
        text = "\n".join(part.text for part in parts if part.text).partition(REFERENCED)[0].strip()
        if record.subtype == "notification":
            self.event("notification", text, at)
        elif record.subtype in ("cron", "agent_launch_prompt") or (self.thread != MAIN and not text):
            self.event(PROFILE.machine_kind(text) or "meta", text, at)
        else:
            attached = any(part.kind in ("inlineData", "fileData") for part in parts)
            self.prompt(text, at, attached, "queued_prompt" if record.subtype == "mid_turn_user_message" else "prompt")

    def answer(self, response: Response, logged: CallResult, at: int | None) -> None:
        text = response.response.text
        status = outcome(logged.status or ("error" if response.response.error is not None else "success"), text)
        code = exit_code(text) if PROFILE.tool(response.name or "") is SHELL else None
        self.result(response.id or "", text, status, at, decoded(logged.resultDisplay, Display), code)

    def edit(self, call: ToolCall, text: str, detail: Display | None) -> bool:
        if detail is None:
            return False
        hunks = unified(detail.fileDiff)
        if not detail.originalContent:
            hunks = of_whole_file(hunks) or [created(detail.newContent or "")]
        elif detail.newContent and rewrites(hunks, detail.newContent):
            hunks = of_whole_file(hunks)
        self.builder.edit(call, None, "modify" if detail.originalContent else "create", hunks)
        return True

    def system(self, record: Record, at: int | None) -> None:
        payload = decoded(record.systemPayload, Payload)
        if record.subtype in _IGNORED:
            return
        if record.subtype == "rewind":
            self.event("rewind", None, at)
        elif payload is None:
            self.event("unknown", record.kind, at)
        elif record.subtype == "ui_telemetry":
            self.telemetry(payload.uiEvent or UiEvent(), at)
        elif record.subtype == "custom_title":
            self.session.title = payload.customTitle or self.session.title
        elif record.subtype == "chat_compression":
            self.event("compaction", bytes(payload.info).decode("utf-8", "replace") or "{}", at)
            self.event("meta", payload.summary, at)
        elif record.subtype == "slash_command" and payload.rawCommand and self.thread == MAIN:
            if payload.phase == "invocation":
                self.builder.turn("slash_command", payload.rawCommand, at)
        elif record.subtype == "notification":
            self.event("notification", payload.displayText, at)
        elif record.subtype == "at_command":
            self.event("meta", as_text(payload.filesRead), at)
        else:
            self.event("unknown", record.kind, at)

    def telemetry(self, event: UiEvent, at: int | None) -> None:
        """Read a line of telemetry: a subagent's model call, or a failed request. Other calls have their own record."""
        name = event.name.rpartition(".")[2]
        if name == "api_response" and event.subagent_name:
            thread = "#".join((event.prompt_id or "").split("#")[1:2]) or event.subagent_name
            _charge(
                self.builder.step(event.response_id, event.model, at, thread), event.input_token_count,
                event.output_token_count, event.thoughts_token_count, event.cached_content_token_count,
                event.total_token_count,
            )  # fmt: skip
        elif name == "api_error":
            text = as_text(event.error_message or event.error or event.status_code or "")
            self.event("meta" if text == _ABORTED else "api_error", text, at)


def _charge(step: Step, *logged: object) -> None:
    """Set the tokens of a call as they are billed (design/formats.md#token-usage).

    The prompt includes cached tokens. Some providers count thoughts in the output, others apart; the total tells.
    """
    prompt, output, thoughts, cached, total = map(count, logged)
    if not any((prompt, output, cached, thoughts)):
        return
    if prompt is not None:
        step.input_tokens = max(prompt - (cached or 0), 0)
    if output is not None:
        is_apart = thoughts is not None and total is not None and total == (prompt or 0) + output + thoughts
        step.output_tokens = output + (thoughts or 0) if is_apart else output
    step.cache_read_tokens, step.reasoning_tokens = cached, thoughts
