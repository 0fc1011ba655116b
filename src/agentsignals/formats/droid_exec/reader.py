"""Reads what `droid exec` prints: each session, with what later runs of it printed."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.conversation import Conversation
from agentsignals.formats.documents import as_text
from agentsignals.formats.factory_droid import PROFILE
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import decoder, lines, saw
from agentsignals.formats.usage import close, tokens_of
from agentsignals.model import CallStatus, Session, Step, logged_ms


class Record(Struct, gc=False, kw_only=True):
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


def read(inputs: list[Input]) -> Reading:
    """Read a group of files. Of one record id and type, the first counts. A record without a session id belongs to the
    session of the record before it in its file, or to the first session that the file names."""
    readers: dict[str, Reader] = {}
    for source in sorted(inputs, key=lambda source: (source.artifact.path, source.artifact.sha256)):
        records = list(lines(source.data, source.artifact, decoder(Record).decode))
        session_id = next((r.session_id for _, r in records if r.session_id), source.artifact.artifact_id)
        for number, record in records:
            saw(source.artifact, record.type[:80] or "untyped")
            session_id = record.session_id or session_id
            if session_id not in readers:
                readers[session_id] = Reader(source.session(session_id, "droid-exec", PROFILE.agent))
            reader = readers[session_id]
            reader.builder.artifact_id, reader.builder.line = source.artifact.artifact_id, number
            if not reader.take(record):
                saw(source.artifact, "repeated")
    return Reading([reader.builder.finish() for _, reader in sorted(readers.items())])


class Reader(Conversation):
    profile = PROFILE

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.seen: set[tuple[str, str]] = set()
        self.model: str | None = None
        self.steps: dict[str, Step] = {}
        """Model calls by message."""
        self.thought: Step | None = None
        """The call whose thoughts were printed before its own id."""

    def take(self, record: Record) -> bool:
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
