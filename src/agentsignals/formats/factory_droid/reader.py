"""Reads Factory Droid sessions. Snapshots of a session are united by record id."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import close, record_arguments, tokens_of
from agentsignals.formats.conversation import ROOT, Block, Conversation, Speaker, blocks_of, left_branches
from agentsignals.formats.documents import by_session, once, texts_of
from agentsignals.formats.factory_droid import PROFILE, is_settings, session_of
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import without_tagged
from agentsignals.formats.records import as_text, decoder, document, head_of, lines, saw
from agentsignals.model import CallStatus, Session, Step, ToolCall, logged_iso, logged_ms


class Settings(Struct, gc=False):
    model: str | None = None
    tokenUsage: dict[str, Any] | None = None
    """Tokens of the session. Cached ones are no part of the input."""


class Message(Struct, gc=False):
    role: str = ""
    content: str | list[Block] | None = None
    visibility: str | None = None
    modelId: str | None = None

    @property
    def blocks(self) -> Sequence[Block]:
        return blocks_of(self.content, Block)


class Record(Struct, gc=False, kw_only=True):
    type: str = ""
    id: str | None = None
    parentId: str | None = None
    timestamp: str | None = None
    message: Message | None = None
    title: str | None = None
    cwd: str | None = None
    callingSessionId: str | None = None
    chatCompletionReasoningContent: str | None = None
    summaryText: str | None = None
    summaryKind: object = None
    summaryTokens: object = None
    removedCount: object = None
    reason: str | None = None

    @property
    def kind(self) -> str:
        return f"message.{self.message.role}"[:80] if self.message is not None else self.type[:80] or "untyped"

    @property
    def key(self) -> str | None:
        """The id of the record. Results have none: the id of the call they answer serves."""
        blocks = self.message.blocks if self.message is not None else ()
        return self.id or next((f"answers {block.tool_use_id}" for block in blocks if block.tool_use_id), None)


_REMINDER = re.compile(r"<(system-reminder)>")
_MODEL = re.compile(r"^Model: (\S.*)$", re.MULTILINE)
_MODEL_WITHIN = 500
_INTERRUPTED = ("[Request interrupted", "Request interrupted by user", "Request cancelled by user")
_USER_PARTS = frozenset(("text", "image", "tool_result"))
_IGNORED = frozenset(("session_start", "session_end", "todo_state"))


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. The snapshots of a session are united by record."""
    sessions: list[Session] = []
    settings: dict[str, Settings] = {}
    logs: list[Input] = []
    for source in inputs:
        named = session_of(source.artifact.path)
        if named is None and not is_settings(head_of(source.data)):
            logs.append(source)
        elif (held := document(source.data, source.artifact, decoder(Settings).decode)) is not None:
            saw(source.artifact, "settings")
            settings[named or source.session_hint or ""] = held
    for session_id, files in sorted(by_session(logs, _File).items()):
        reader = Reader(files[0].source.session(session_id, "factory-droid", PROFILE.agent))
        rows = list(once(files, lambda file: file.records, lambda record: record.key))
        left, rewinds = _branches([record for _, _, record in rows])
        left_from: int | None = None
        for n, (file, reader.builder.line, record) in enumerate(rows):
            reader.builder.artifact_id = file.source.artifact.artifact_id
            if left_from is not None and record.id and n not in left:
                reader.builder.abandon(left_from)
                left_from = None
            elif left_from is None and n in left:
                left_from = len(reader.session.events)
            if n in rewinds:
                reader.event("rewind", None, logged_iso(record.timestamp))
            reader.take(record)
        if left_from is not None:
            reader.builder.abandon(left_from)
        own_settings = settings.get(session_id, Settings())
        models = {step.model for step in reader.session.steps if step.model is not None}
        if own_settings.tokenUsage is not None and any(tokens := tokens_of(own_settings.tokenUsage, "apart")):
            only = next(iter(models)) if len(models) == 1 else None
            model = own_settings.model if models <= {own_settings.model} else only
            close(reader.builder, model, tokens, reader.last)
        session = reader.builder.finish()
        session.model = session.model or own_settings.model or reader.named_model
        sessions.append(session)
    return Reading(sessions)


def _branches(records: Sequence[Record]) -> tuple[set[int], set[int]]:
    """Return the records that the person went back from, and the prompts with which they did.

    A prompt without a parent begins anew if records before it have one. Another record follows on the one before.
    """
    place = {record.id: n for n, record in enumerate(records) if record.id and record.message is not None}
    speaks = list(map(_speaker, records))
    parents: list[int] = []
    is_tree = False
    for n, record in enumerate(records):
        begins_anew = is_tree and record.parentId is None and record.id is not None and speaks[n] == "person"
        parents.append(place.get(record.parentId or "", ROOT if begins_anew else n - 1))
        is_tree = is_tree or record.parentId is not None
    return left_branches(parents, speaks, None) if is_tree else (set(), set())


def _speaker(record: Record) -> Speaker:
    message = record.message
    if message is None or message.visibility is not None:
        return ""
    is_typed = message.role == "user" and all(block.type != "tool_result" for block in message.blocks)
    return "person" if is_typed else "agent"


class _File:
    def __init__(self, source: Input) -> None:
        self.source = source
        self.records = list(lines(source.data, source.artifact, decoder(Record).decode))
        for _, record in self.records:
            saw(source.artifact, record.kind)
        start = next((r.id for _, r in self.records if r.type == "session_start"), None)
        self.session_id = start or source.session_hint or source.artifact.artifact_id
        last = max((r.timestamp for _, r in self.records if r.timestamp), default="")
        self.order = (last, len(self.records), source.artifact.sha256)


class Reader(Conversation):
    profile = PROFILE
    named_model: str | None = None
    """The model that Droid names to the agent in its first system reminder. Counts if no call names one."""

    last: int | None = None

    def take(self, record: Record) -> None:
        at = logged_iso(record.timestamp)
        self.last = at if at is not None else self.last
        if record.message is not None:
            self.message(record.message, record, at)
        elif record.type == "session_start":
            self.builder.where(record.cwd or None)
            self.session.title = record.title or self.session.title
            self.session.parent_session_id = record.callingSessionId
            self.is_subagent = record.callingSessionId is not None
        elif record.type == "compaction_state":
            facts = {name: getattr(record, name) for name in ("summaryKind", "summaryTokens", "removedCount")}
            present = {name: value for name, value in facts.items() if value is not None}
            self.event("compaction", msgspec.json.encode(present).decode(), at)
            self.event("meta", record.summaryText or "", at)
        elif record.type == "agent_turn_outcome":
            if record.reason in ("cancelled", "canceled", "aborted", "interrupted"):
                self.event("interrupt", record.reason, at)
            elif record.reason == "error":
                self.event("api_error", record.reason, at)
        elif record.type not in _IGNORED:
            self.event("unknown", record.kind, at)

    def message(self, message: Message, record: Record, at: int | None) -> None:
        blocks = message.blocks
        if message.role == "assistant":
            self.answer(message, record, at)
            return
        self.builder.unread((block.type for block in blocks), _USER_PARTS, at)
        text = texts_of(block for block in blocks if block.type == "text")
        if message.role != "user":
            self.event("unknown", record.kind, at)
        elif message.visibility == "user_only":
            self.event("notification", text, at)
        elif message.visibility == "llm_only":
            self.model_only_text(text, at)
        else:
            self.user(blocks, at)

    def answer(self, message: Message, record: Record, at: int | None) -> None:
        step = self.builder.step(record.id, message.modelId, at)
        if record.chatCompletionReasoningContent:
            self.event("thinking", record.chatCompletionReasoningContent, at, step)
        for block in message.blocks:
            if block.type == "text":
                self.event("text", block.text or "", at, step)
            elif block.type in ("thinking", "redacted_thinking"):
                self.event("thinking", block.thinking or "", at, step)
            elif block.type == "tool_use":
                self.call(block.id or "", block.name or "", bytes(block.input), at, step)
            else:
                self.event("unknown", block.type[:80] or "untyped", at, step)

    def user(self, blocks: Sequence[Block], at: int | None) -> None:
        """Results come first. The harness puts reminders before the prompt and next to results."""
        for block in blocks:
            if block.type == "tool_result":
                inner = block.content
                text = inner if isinstance(inner, str) else "\n".join(part.text or "" for part in inner or ())
                status: CallStatus = "error" if block.is_error else "ok"
                code = exit_code(text) if status == "error" else None
                self.result(block.tool_use_id or "", text, status, at, None, code)
        texts: list[str] = []
        for block in blocks:
            if block.type == "text" and block.text:
                rest = without_tagged(block.text, _REMINDER).strip()
                if rest:
                    texts.append(rest)
                if len(rest) < len(block.text.strip()):
                    self.model_only_text(block.text, at)
        text = "\n".join(texts)
        if text.startswith(_INTERRUPTED):
            self.event("interrupt", text, at)
        else:
            self.prompt(text, at, attached=any(block.type == "image" for block in blocks))

    def edit(self, call: ToolCall, text: str, detail: None) -> bool:
        record_arguments(self.builder, call, existed=call.path in self.touched)
        return True

    def model_only_text(self, text: str, at: int | None) -> None:
        """Record text only for the model: a system reminder or an `llm_only` message. The first may name the model."""
        if self.named_model is None:
            match = _MODEL.search(text, 0, _MODEL_WITHIN)
            self.named_model = match.group(1).strip() if match else None
        self.event("meta", text, at)


# -- what `droid exec` prints: each session, with what later runs of it printed


class Printed(Struct, gc=False, kw_only=True):
    type: str = ""
    session_id: str | None = None
    id: str | None = None
    messageId: str | None = None
    role: str | None = None
    text: str | None = None
    timestamp: object = None
    cwd: str | None = None
    model: str | None = None
    toolName: str | None = None
    toolId: str | None = None
    parameters: Raw = Raw()
    isError: bool | None = None
    value: object = None
    message: object = None
    usage: dict[str, Any] | None = None
    """Tokens of a run. Cached ones are no part of the input."""


def read_printed(inputs: list[Input]) -> Reading:
    """Read a group of files. Of one record id and type, the first counts. A record without a session id belongs to the
    session of the record before it in its file, or to the first session that the file names."""
    readers: dict[str, PrintedReader] = {}
    for source in sorted(inputs, key=lambda source: (source.artifact.path, source.artifact.sha256)):
        records = list(lines(source.data, source.artifact, decoder(Printed).decode))
        session_id = next((r.session_id for _, r in records if r.session_id), source.artifact.artifact_id)
        for number, record in records:
            saw(source.artifact, record.type[:80] or "untyped")
            session_id = record.session_id or session_id
            if session_id not in readers:
                readers[session_id] = PrintedReader(source.session(session_id, "droid-exec", PROFILE.agent))
            reader = readers[session_id]
            reader.builder.artifact_id, reader.builder.line = source.artifact.artifact_id, number
            if not reader.take(record):
                saw(source.artifact, "repeated")
    return Reading([reader.builder.finish() for _, reader in sorted(readers.items())])


class PrintedReader(Conversation):
    profile = PROFILE

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.seen: set[tuple[str, str]] = set()
        self.model: str | None = None
        self.steps: dict[str, Step] = {}
        """Model calls by message."""
        self.thought: Step | None = None
        """The call whose thoughts were printed before its own id."""

    def take(self, record: Printed) -> bool:
        """Take a record. Return False if it was printed before: thoughts are, twice."""
        at = logged_ms(record.timestamp)
        key = (record.type, record.id or "")
        if record.id and key in self.seen:
            return False
        self.seen.add(key)
        if record.type == "system":
            self.builder.where(record.cwd)
            self.model = record.model or self.model
        elif record.type == "message" and record.role == "user":
            self.prompt(record.text or "", at)
        elif record.type == "message" and record.role == "assistant":
            self.event("text", record.text or "", at, self.step(record.id, at))
        elif record.type == "reasoning":
            self.thought = self.thought or self.builder.step(None, self.model, at)
            self.event("thinking", record.text or "", at, self.thought)
        elif record.type == "tool_call":
            name, step = record.toolName or record.toolId or "", self.step(record.messageId, at)
            self.call(record.id or "", name, bytes(record.parameters), at, step)
        elif record.type == "tool_result":
            self.thought = None
            text = as_text(record.value)
            status: CallStatus = "unknown" if record.isError is None else "error" if record.isError else "ok"
            code = exit_code(text) if status == "error" and self.is_command(record.id or "") else None
            self.result(record.id or "", text, status, at, None, code)
        elif record.type == "completion":
            if record.usage is not None and any(tokens := tokens_of(record.usage, "apart")):
                close(self.builder, self.model, tokens, at)
        elif record.type == "error":
            self.event("api_error", as_text(record.message), at)
        else:
            self.event("unknown", record.type[:80] or "untyped", at)
        return True

    def step(self, message_id: str | None, at: int | None) -> Step:
        """Return the model call of a message. What it thought was printed before."""
        begun = self.steps.get(message_id or "")
        if begun is None:
            begun = self.thought or self.builder.step(None, self.model, at)
            begun.message_id = message_id
            self.thought = None
            if message_id:
                self.steps[message_id] = begun
        return begun
