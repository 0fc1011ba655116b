"""The Qwen Code chats of one family, and each as a session."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import created, of_whole_file, rewrites, unified
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import count as count_of
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import as_text, by_session, once
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.gemini_cli.reader import REFERENCED, outcome
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import SHELL
from agentsignals.formats.qwen_code import PROFILE
from agentsignals.formats.records import UNREADABLE, lines, saw
from agentsignals.model import ABANDONED, MAIN, RAN, REPLAYED, Session, Step, ToolCall, logged_iso

# The records of a Qwen Code chat as typed structs (design/formats.md#qwen-code): only what is read.


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
        """What is in it; nothing where it is none of what is known."""
        return next((name for name in _PART_KINDS if getattr(self, name) not in (None, Raw())), "")


_PART_KINDS = ("text", "functionCall", "functionResponse", "inlineData", "fileData", "thought")
PARTS = frozenset(_PART_KINDS)
ATTACHED = frozenset(("inlineData", "fileData"))


class Message(Struct, gc=False):
    parts: list[Part] = field(default_factory=list)


class Usage(Struct, gc=False):
    promptTokenCount: object = None
    candidatesTokenCount: object = None
    thoughtsTokenCount: object = None
    cachedContentTokenCount: object = None
    totalTokenCount: object = None


class CallResult(Struct, gc=False):
    status: str | None = None
    resultDisplay: Raw = Raw()


class Display(Struct, gc=False):
    """What the program shows of an edit."""

    fileDiff: str
    originalContent: str | None = None
    newContent: str | None = None


class Fork(Struct, gc=False):
    sessionId: str | None = None


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
    usageMetadata: Usage | None = None
    toolCallResult: CallResult | None = None
    systemPayload: Raw = Raw()
    agentId: str | None = None
    """Of a subagent's records, in newer versions."""
    forkedFrom: Fork | None = None
    """Of records that a branch of a session copied from it."""

    @property
    def kind(self) -> str:
        return f"{self.type}.{self.subtype}"[:80] if self.subtype else self.type[:80] or "untyped"


class UiEvent(Struct, gc=False, kw_only=True):
    """A line of telemetry; each model call has one, those of subagents nothing else."""

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

    @property
    def usage(self) -> Usage:
        return Usage(
            promptTokenCount=self.input_token_count,
            candidatesTokenCount=self.output_token_count,
            thoughtsTokenCount=self.thoughts_token_count,
            cachedContentTokenCount=self.cached_content_token_count,
            totalTokenCount=self.total_token_count,
        )


class Payload(Struct, gc=False, kw_only=True):
    """What the program says of its own state, by `subtype`."""

    uiEvent: UiEvent | None = None
    info: Raw = Raw()
    summary: str | None = None
    customTitle: str | None = None
    displayText: str | None = None
    phase: str | None = None
    rawCommand: str | None = None
    filesRead: object = None


decode = msgspec.json.Decoder(Record).decode
_T = TypeVar("_T", Payload, Display)


def inside(raw: Raw, kind: type[_T]) -> _T | None:
    """A payload or display; None where it is of another shape."""
    try:
        return msgspec.json.decode(raw, type=kind) if raw else None
    except UNREADABLE:
        return None


_QUIET = frozenset(("attribution_snapshot", "rewind", "agent_bootstrap"))
"""What the program keeps for itself: who wrote which characters, that it goes on from an earlier record."""
_ABORTED = "Request was aborted."


def read(inputs: list[Input]) -> Reading:
    """All files of one family: those of one session are united by record."""
    return Reading([_read(session_id, files) for session_id, files in sorted(by_session(inputs, _File).items())])


class _File:
    """The decoded records of one file."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.records = list(lines(source.data, source.artifact, decode))
        for _, record in self.records:
            saw(source.artifact, record.kind)
        first = next((r.sessionId for _, r in self.records if r.sessionId), None)
        self.session_id = first or source.session_hint or source.artifact.artifact_id
        last = max((r.timestamp for _, r in self.records if r.timestamp), default="")
        self.order = (all(r.agentId for _, r in self.records), last, len(self.records), source.artifact.sha256)
        self.live = _live([record for _, record in self.records])


def _live(records: list[Record]) -> frozenset[str]:
    """The records on the way from the last one to the first: a rewind leaves what it went back from beside that way."""
    chain = [r for r in records if r.uuid and not r.agentId]
    place = {r.uuid: n for n, r in enumerate(chain)}
    live: set[str] = set()
    at = len(chain) - 1
    while at >= 0 and (name := chain[at].uuid or "") not in live:
        live.add(name)
        parent = chain[at].parentUuid
        at = -1 if parent is None else place.get(parent, at - 1)  # a lost line does not abandon what was before it
    return frozenset(live)


def _read(session_id: str, files: list[_File]) -> Session:
    reader = _Reader(files[0].source.session(session_id, "qwen-code", PROFILE.agent))
    for file, number, record in once(files, lambda file: file.records, lambda record: record.uuid):
        reader.builder.artifact_id, reader.builder.line = file.source.artifact.artifact_id, number
        reader.take(record, is_live=not record.uuid or record.uuid in file.live)
    return reader.builder.finish()


class _Reader:
    """One session in the making."""

    def __init__(self, session: Session) -> None:
        self.builder = SessionBuilder(session, PROFILE)
        self.touched: set[str] = set()
        self.thread = MAIN

    def take(self, record: Record, is_live: bool) -> None:
        builder, at = self.builder, logged_iso(record.timestamp)
        session = builder.session
        builder.where(record.cwd, record.gitBranch)
        session.agent_version = session.agent_version or record.version
        if record.forkedFrom is not None:
            session.parent_session_id = session.parent_session_id or record.forkedFrom.sessionId
        self.thread = REPLAYED if record.forkedFrom else record.agentId or (MAIN if is_live else ABANDONED)
        turn = builder.turn_index
        if self.thread != MAIN:
            builder.turn_index = None
        self._record(record, at)
        if self.thread != MAIN:
            builder.turn_index = turn

    def _record(self, record: Record, at: int | None) -> None:
        if record.type == "system" or (record.message is None and record.systemPayload):
            self._system(record, at)
        elif record.type == "assistant":
            self._assistant(record, at)
        elif record.type == "tool_result":
            self._results(record, at)
        elif record.type == "user":
            self._user(record, at)
        else:
            self.builder.event("unknown", record.kind, at, thread=self.thread)
        parts = record.message.parts if record.message is not None else ()
        self.builder.unread((part.kind for part in parts), PARTS, at, self.thread)

    def _user(self, record: Record, at: int | None) -> None:
        parts = record.message.parts if record.message is not None else []
        text = "\n".join(part.text for part in parts if part.text).partition(REFERENCED)[0].strip()
        kind = PROFILE.machine_kind(text)
        if record.subtype == "notification":
            self.builder.event("notification", text, at, thread=self.thread)
        elif self.thread != MAIN or kind or record.subtype in ("cron", "agent_launch_prompt"):
            self.builder.event(kind or "meta", text, at, thread=self.thread)
        elif text:
            self.builder.turn("queued_prompt" if record.subtype == "mid_turn_user_message" else "prompt", text, at)
        elif any(part.kind in ATTACHED for part in parts):
            self.builder.turn("attachment", "", at)

    def _assistant(self, record: Record, at: int | None) -> None:
        builder = self.builder
        step = builder.step(record.uuid, record.model, at, self.thread)
        if record.usageMetadata is not None:
            count(step, record.usageMetadata)
        for part in record.message.parts if record.message is not None else ():
            if part.text:
                builder.event("thinking" if part.thought else "text", part.text, at, step, self.thread)
            elif part.functionCall is not None:
                call = part.functionCall
                name, arguments = call.name or "", bytes(call.args) or b"{}"
                builder.call(call.id or "", name, arguments, PROFILE.tool(name), at, step, self.thread)

    def _results(self, record: Record, at: int | None) -> None:
        for part in record.message.parts if record.message is not None else ():
            if part.functionResponse is not None:
                self._result(part.functionResponse, record.toolCallResult or CallResult(), at)

    def _result(self, response: Response, logged: CallResult, at: int | None) -> None:
        text = response.response.text
        failed = response.response.error is not None
        status = outcome(logged.status or ("error" if failed else "success"), text)
        asked = self.builder.calls_of(response.id or "")
        is_command = PROFILE.tool(response.name or "") is SHELL
        code = exit_code(text) if is_command else None
        call = self.builder.result(response.id or "", text, status, at, self.thread, code) if asked else None
        if call is None:
            self.builder.event("tool_result", text, at, None, self.thread)
            return
        if call.status in RAN and call.class_ == "edit":
            self._edit(call, inside(logged.resultDisplay, Display))
        if call.path:
            self.touched.add(call.path)

    def _edit(self, call: ToolCall, shown: Display | None) -> None:
        if shown is None:
            record_arguments(self.builder, call, self.touched)
            return
        hunks = unified(shown.fileDiff)
        if not shown.originalContent:
            hunks = of_whole_file(hunks) or [created(shown.newContent or "")]
        elif shown.newContent and rewrites(hunks, shown.newContent):
            hunks = of_whole_file(hunks)
        self.builder.edit(call, None, "modify" if shown.originalContent else "create", hunks)

    def _system(self, record: Record, at: int | None) -> None:
        builder, payload = self.builder, inside(record.systemPayload, Payload)
        if payload is None or record.subtype in _QUIET:
            if record.subtype not in _QUIET:
                builder.event("unknown", record.kind, at, thread=self.thread)
        elif record.subtype == "ui_telemetry":
            self._telemetry(payload.uiEvent or UiEvent(), at)
        elif record.subtype == "custom_title":
            builder.session.title = payload.customTitle or builder.session.title
        elif record.subtype == "chat_compression":
            builder.event("compaction", bytes(payload.info).decode("utf-8", "replace") or "{}", at, thread=self.thread)
            builder.event("meta", payload.summary, at, thread=self.thread)
        elif record.subtype == "slash_command" and payload.rawCommand and self.thread == MAIN:
            if payload.phase == "invocation":
                builder.turn("slash_command", payload.rawCommand, at)
        elif record.subtype == "notification":
            builder.event("notification", payload.displayText, at, thread=self.thread)
        elif record.subtype == "at_command":
            builder.event("meta", as_text(payload.filesRead), at, thread=self.thread)
        else:
            builder.event("unknown", record.kind, at, thread=self.thread)

    def _telemetry(self, event: UiEvent, at: int | None) -> None:
        """Each model call stands here, too: those of subagents, and requests that failed, nowhere else."""
        name = event.name.rpartition(".")[2]
        if name == "api_response" and event.subagent_name:
            place = (event.prompt_id or "").split("#")
            thread = "#".join(place[1:2]) or event.subagent_name
            count(self.builder.step(event.response_id, event.model, at, thread), event.usage)
        elif name == "api_error":
            text = as_text(event.error_message or event.error or event.status_code or "")
            self.builder.event("meta" if text == _ABORTED else "api_error", text, at, thread=self.thread)


def count(step: Step, usage: Usage) -> None:
    """The tokens of a call as they are billed (design/formats.md#token-usage). Those from the cache are part of the
    prompt's. Thoughts are part of the output where the total says so: some providers count them beside it."""
    prompt, output, total = map(count_of, (usage.promptTokenCount, usage.candidatesTokenCount, usage.totalTokenCount))
    cached, thoughts = count_of(usage.cachedContentTokenCount), count_of(usage.thoughtsTokenCount)
    if not any((prompt, output, cached, thoughts)):
        return
    if prompt is not None:
        step.input_tokens = max(prompt - (cached or 0), 0)
    if output is not None:
        beside = thoughts is not None and total is not None and total == (prompt or 0) + output + thoughts
        step.output_tokens = output + (thoughts or 0) if beside else output
    step.cache_read_tokens, step.reasoning_tokens = cached, thoughts
