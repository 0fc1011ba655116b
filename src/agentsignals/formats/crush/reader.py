"""The sessions of Crush of one family, each from its fullest copy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.changes.hunks import between, created
from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.crush import PROFILE
from agentsignals.formats.documents import Snapshot, each, largest, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import RAN, SESSION_TOTAL, Artifact, CallStatus, ToolCall, logged_ms
from agentsignals.model import Session as Made

# A session of Crush as typed structs (design/formats.md#crush): only what is read.


class Data(Struct, gc=False, kw_only=True):
    """What is in a part, of whatever type."""

    text: str | None = None
    hidden: bool = False
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: str | None = None
    tool_call_id: str | None = None
    content: str | None = None
    metadata: str | None = None
    is_error: bool = False
    reason: str | None = None
    message: str | None = None
    details: str | None = None


class Part(Struct, gc=False):
    type: str = ""
    data: Data = field(default_factory=Data)


PARTS = frozenset(("text", "reasoning", "image_url", "binary", "tool_call", "tool_result", "finish"))


class Changed(Struct, gc=False):
    """A file before and after an edit."""

    old_content: str = ""
    new_content: str | None = None


class Message(Struct, gc=False, kw_only=True):
    id: str | None = None
    role: str = ""
    parts: list[Part]
    model: str | None = None
    created_at: object = None
    is_summary_message: object = None


class Session(Struct, kw_only=True):
    id: str
    messages: list[Raw] = []
    parent_session_id: str | None = None
    title: str | None = None
    cost: object = None
    children_cost: object = None
    created_at: object = None
    read: list[Message | None] = field(default_factory=list)
    """`messages`, each decoded by itself; None for one that can't be read."""


_message = msgspec.json.Decoder(Message).decode
_session = msgspec.json.Decoder(Session).decode
_changed = msgspec.json.Decoder(Changed).decode


def decode(data: memoryview | bytes, artifact: Artifact) -> Session:
    """A session, message by message: one that is odd costs itself."""
    session = _session(data)
    session.read, session.messages = each(session.messages, _message, artifact), []
    return session


def changed(metadata: str | None) -> Changed | None:
    """What an edit says beside its result; None where it is another tool's, or of another shape."""
    try:
        edit = _changed(metadata or "{}")
    except UNREADABLE:
        return None
    return edit if edit.new_content is not None else None


_DENIED = "User denied permission"
_EXIT_CODE = re.compile(r"^Exit code (-?\d{1,9})\s*(?:<cwd>[^\n]*</cwd>\s*)?\Z", re.MULTILINE)
"""What stands behind a command's output, where it failed; its record says nothing of it."""
_DOLLAR_DIGITS = 12
_DATABASE = "/.crush/crush.db//"
"""Where a project keeps its database: the folder above is the project's."""


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several copies of a session the fullest."""
    return Reading([_Reader(snapshot).session() for snapshot in largest(_snapshots(inputs))])


def _snapshots(inputs: list[Input]) -> Iterator[Snapshot[Session]]:
    for source in inputs:
        session = read_document(source, partial(decode, artifact=source.artifact), "messages")
        if session is None:
            continue
        tally(source.artifact, "message", [None if m is None else m.role for m in session.read])
        yield Snapshot(source, session, session.id or source.artifact.artifact_id, len(session.read))


class _Reader:
    """One session in the making."""

    def __init__(self, snapshot: Snapshot[Session]) -> None:
        self.document = snapshot.document
        made = snapshot.source.session(snapshot.session_id, "crush", PROFILE.agent)
        made.title, made.started_at = self.document.title, _at(self.document.created_at)
        made.parent_session_id = self.document.parent_session_id or None
        self.builder = SessionBuilder(made, PROFILE)
        folder, is_projects, _ = snapshot.source.artifact.path.rpartition(_DATABASE)
        self.builder.where(folder if is_projects else None)
        self.touched: set[str] = set()

    def session(self) -> Made:
        for number, message in enumerate(self.document.read, 1):
            self.builder.line = number
            if message is not None:
                self._message(message)
        self._cost()
        return self.builder.finish()

    def _message(self, message: Message) -> None:
        builder, at = self.builder, _at(message.created_at)
        if message.role == "user":
            self._user(message, at)
        elif message.role == "assistant":
            self._assistant(message, at)
        elif message.role == "tool":
            for part in message.parts:
                if part.type == "tool_result":
                    self._result(part.data, at)
        elif message.role == "system":
            builder.event("meta", "\n".join(part.data.text or "" for part in message.parts), at)
        else:
            builder.event("unknown", message.role or "message without a role", at)
        builder.unread((part.type for part in message.parts), PARTS, at)

    def _user(self, message: Message, at: int | None) -> None:
        texts = [part.data for part in message.parts if part.type == "text" and part.data.text]
        text = "\n".join(data.text or "" for data in texts).strip()
        is_hidden = bool(texts) and all(data.hidden for data in texts)
        kind = PROFILE.machine_kind(text)
        if text and (is_hidden or kind or self.document.parent_session_id):
            self.builder.event(kind or "meta", text, at)
        elif text:
            self.builder.turn("prompt", text, at)
        elif any(part.type in ("binary", "image_url") for part in message.parts):
            self.builder.turn("attachment", "", at)

    def _assistant(self, message: Message, at: int | None) -> None:
        builder = self.builder
        step = builder.step(message.id, message.model or None, at)
        if message.is_summary_message:
            builder.event("compaction", "{}", at, step)
        for part in message.parts:
            data = part.data
            if part.type == "reasoning":
                builder.event("thinking", data.thinking or "", at, step)
            elif part.type == "text" and data.text:
                builder.event("meta" if message.is_summary_message else "text", data.text, at, step)
            elif part.type == "tool_call":
                name = data.name or ""
                builder.call(data.id or "", name, data.input or "{}", PROFILE.tool(name), at, step)
            elif part.type == "finish":
                step.stop_reason = data.reason
                if data.reason == "canceled":
                    builder.event("interrupt", data.message or "", at, step)
                elif data.reason == "error":
                    builder.event("api_error", ": ".join(filter(None, (data.message, data.details))), at, step)

    def _result(self, data: Data, at: int | None) -> None:
        text, call_id = data.content or "", data.tool_call_id or ""
        asked = self.builder.calls_of(call_id)
        match = _EXIT_CODE.search(text[-400:]) if asked and asked[0].command is not None else None
        status: CallStatus = "error" if data.is_error else "ok"
        if data.is_error and text == _DENIED:
            status = "rejected"
        call = self.builder.result(call_id, text, status, at, exit_code=int(match[1]) if match else None)
        if call is None:
            return
        if call.status in RAN and call.class_ == "edit":
            self._edit(call, data)
        if call.path:
            self.touched.add(call.path)

    def _edit(self, call: ToolCall, data: Data) -> None:
        edit = changed(data.metadata)
        if edit is None:
            record_arguments(self.builder, call, self.touched)
        elif not edit.old_content:
            self.builder.edit(call, None, "create", [created(edit.new_content or "")])
        else:
            self.builder.edit(call, None, "modify", between(edit.old_content, edit.new_content or ""))

    def _cost(self) -> None:
        """What the session cost by itself: its children's dollars are part of what it says."""
        cost, children = amount(self.document.cost), amount(self.document.children_cost)
        if not cost:
            return
        step = self.builder.step(None, None)
        step.stop_reason, step.cost_source = SESSION_TOTAL, "recorded"
        step.cost_usd = round(max(cost - (children or 0), 0), _DOLLAR_DIGITS)
        self.builder.event("meta", "dollars of the session", None, step)


def _at(seconds: object) -> int | None:
    return logged_ms(seconds * 1000 if isinstance(seconds, int | float) and not isinstance(seconds, bool) else seconds)
