"""The Factory Droid sessions of one family: snapshots of a session united."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import by_session, once
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.factory_droid import PROFILE
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.profile import without_tagged
from agentsignals.formats.records import lines, saw
from agentsignals.model import CallStatus, Session, logged_iso

# The records of Factory Droid as typed structs.


class Block(Struct, gc=False, kw_only=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()
    tool_use_id: str | None = None
    content: str | list[Block] | None = None
    is_error: bool | None = None


class Message(Struct, gc=False):
    role: str = ""
    content: str | list[Block] | None = None
    visibility: str | None = None
    modelId: str | None = None


class Record(Struct, gc=False, kw_only=True):
    type: str = ""
    id: str | None = None
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


decode = msgspec.json.Decoder(Record).decode


def kind_of(record: Record) -> str:
    return f"message.{record.message.role}"[:80] if record.message is not None else record.type[:80] or "untyped"


def key_of(record: Record) -> str | None:
    """What tells a record from another: its id, or, for results that have none, the call it answers."""
    if record.id is not None:
        return record.id
    answers = [block.tool_use_id for block in blocks(record.message) if block.tool_use_id]
    return f"answers {answers[0]}" if answers else None


def blocks(message: Message | None) -> Sequence[Block]:
    if message is None or message.content is None:
        return ()
    return [Block(type="text", text=message.content)] if isinstance(message.content, str) else message.content


def words_of(message: Message) -> str:
    return "\n".join(block.text for block in blocks(message) if block.type == "text" and block.text)


_REMINDER = re.compile(r"<(system-reminder)>")
_MODEL = re.compile(r"^Model: (\S.*)$", re.MULTILINE)
_MODEL_WITHIN = 500
_INTERRUPTED = ("[Request interrupted", "Request interrupted by user", "Request cancelled by user")
_OF_A_PERSON = frozenset(("text", "image", "tool_result"))
_QUIET = frozenset(("session_start", "session_end", "todo_state"))


def read(inputs: list[Input]) -> Reading:
    """All files of one family: snapshots of a session are united by record id."""
    return Reading([_read(session_id, files) for session_id, files in sorted(by_session(inputs, _File).items())])


class _File:
    """The decoded records of one file."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.records = list(lines(source.data, source.artifact, decode))
        for _, record in self.records:
            saw(source.artifact, kind_of(record))
        start = next((r.id for _, r in self.records if r.type == "session_start"), None)
        self.session_id = start or source.session_hint or source.artifact.artifact_id
        last = max((r.timestamp for _, r in self.records if r.timestamp), default="")
        self.order = (last, len(self.records), source.artifact.sha256)


def _read(session_id: str, files: list[_File]) -> Session:
    first = files[0].source
    session = first.session(session_id, "factory-droid", "factory-droid")
    reader = _Reader(session)
    for file, number, record in once(files, lambda file: file.records, key_of):
        reader.builder.artifact_id, reader.builder.line = file.source.artifact.artifact_id, number
        reader.take(record)
    return reader.finish()


class _Reader:
    """One session in the making."""

    def __init__(self, session: Session) -> None:
        self.builder = SessionBuilder(session, PROFILE)
        self._named_model: str | None = None
        self._touched: set[str] = set()

    def finish(self) -> Session:
        """The model is the one calls name; else the one Droid names to the agent in its first reminder."""
        session = self.builder.finish()
        session.model = session.model or self._named_model
        return session

    def take(self, record: Record) -> None:
        builder, at = self.builder, logged_iso(record.timestamp)
        if record.message is not None:
            self._message(record.message, record, at)
        elif record.type == "session_start":
            builder.where(record.cwd or None)
            builder.session.title = record.title or builder.session.title
            builder.session.parent_session_id = record.callingSessionId
        elif record.type == "compaction_state":
            facts = {name: getattr(record, name) for name in ("summaryKind", "summaryTokens", "removedCount")}
            present = {name: value for name, value in facts.items() if value is not None}
            builder.event("compaction", msgspec.json.encode(present).decode(), at)
            builder.event("meta", record.summaryText or "", at)
        elif record.type == "agent_turn_outcome":
            if record.reason in ("cancelled", "canceled", "aborted", "interrupted"):
                builder.event("interrupt", record.reason, at)
            elif record.reason == "error":
                builder.event("api_error", record.reason, at)
        elif record.type not in _QUIET:
            builder.event("unknown", kind_of(record), at)

    def _message(self, message: Message, record: Record, at: int | None) -> None:
        if message.role == "assistant":
            self._assistant(message, record, at)
            return
        self.builder.unread((block.type for block in blocks(message)), _OF_A_PERSON, at)
        if message.role != "user":
            self.builder.event("unknown", kind_of(record), at)
        elif message.visibility == "user_only":
            self.builder.event("notification", words_of(message), at)
        elif message.visibility == "llm_only":
            self._reminder(words_of(message), at)
        else:
            self._user(message, at)

    def _assistant(self, message: Message, record: Record, at: int | None) -> None:
        builder = self.builder
        step = builder.step(record.id, message.modelId, at)
        if record.chatCompletionReasoningContent:
            builder.event("thinking", record.chatCompletionReasoningContent, at, step)
        for block in blocks(message):
            if block.type == "text":
                builder.event("text", block.text or "", at, step)
            elif block.type in ("thinking", "redacted_thinking"):
                builder.event("thinking", block.thinking or "", at, step)
            elif block.type == "tool_use":
                name = block.name or ""
                builder.call(block.id or "", name, bytes(block.input) or b"{}", PROFILE.tool(name), at, step)
            else:
                builder.event("unknown", block.type[:80] or "untyped", at, step)

    def _user(self, message: Message, at: int | None) -> None:
        """Reminders come before the words and beside results; what the harness does not say, the person does."""
        parts = blocks(message)
        for block in parts:
            if block.type == "tool_result":
                self._result(block, at)
        texts: list[str] = []
        for block in parts:
            if block.type != "text" or not block.text:
                continue
            words = without_tagged(block.text, _REMINDER).strip()
            if words:
                texts.append(words)
            if len(words) < len(block.text.strip()):
                self._reminder(block.text, at)
        text = "\n".join(texts)
        if text.startswith(_INTERRUPTED):
            self.builder.event("interrupt", text, at)
        elif text and (self.builder.session.parent_session_id is not None or PROFILE.machine_kind(text)):
            self.builder.event("meta", text, at)  # a subagent is told its task by the agent that called it
        elif text:
            self.builder.turn("prompt", text, at)
        elif any(block.type == "image" for block in parts):
            self.builder.turn("attachment", "", at)

    def _reminder(self, text: str, at: int | None) -> None:
        if self._named_model is None:
            match = _MODEL.search(text, 0, _MODEL_WITHIN)
            self._named_model = match.group(1).strip() if match else None
        self.builder.event("meta", text, at)

    def _result(self, block: Block, at: int | None) -> None:
        inner = block.content
        text = inner if isinstance(inner, str) else "\n".join(part.text or "" for part in inner or ())
        status: CallStatus = "error" if block.is_error else "ok"
        code = exit_code(text) if status == "error" else None
        call = self.builder.result(block.tool_use_id or "", text, status, at, exit_code=code)
        if call is None or status != "ok":
            return
        if call.class_ == "edit":
            record_arguments(self.builder, call, self._touched)
        if call.path and call.class_ in ("edit", "read"):
            self._touched.add(call.path)
