"""Read Crush sessions. The structs hold only the fields that are read."""

import re
from typing import Any

from msgspec import Struct, field

from agentsignals.changes.hunks import between, created
from agentsignals.formats.bounds import amount
from agentsignals.formats.conversation import Document, DocumentReader
from agentsignals.formats.crush import PROFILE
from agentsignals.formats.records import decoded
from agentsignals.model import SESSION_TOTAL, CallStatus, ToolCall, logged_seconds

_DENIED = "User denied permission"
_EXIT_CODE = re.compile(r"^Exit code (-?\d{1,9})\s*(?:<cwd>[^\n]*</cwd>\s*)?\Z", re.MULTILINE)
"""A failed command ends its output with this line. The record has no other exit code."""
_DOLLAR_DIGITS = 12
_DATABASE = "/.crush/crush.db//"
"""Path of a project's database below the project folder."""


class Data(Struct, gc=False, kw_only=True):
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


class Changed(Struct, gc=False):
    old_content: str = ""
    new_content: str | None = None


class Message(Struct, gc=False, kw_only=True):
    id: str | None = None
    role: str = ""
    parts: list[Part]
    model: str | None = None
    created_at: object = None
    is_summary_message: object = None


class Session(Document, kw_only=True):
    parent_session_id: str | None = None
    title: str | None = None
    cost: object = None
    children_cost: object = None
    created_at: object = None


class Reader(DocumentReader[Session, Message]):
    profile, document_type, message_type = PROFILE, Session, Message
    part_types = frozenset(("text", "reasoning", "image_url", "binary", "tool_call", "tool_result", "finish"))

    def begin(self) -> None:
        self.session.title, self.session.started_at = self.document.title, logged_seconds(self.document.created_at)
        self.session.parent_session_id = self.document.parent_session_id or None
        self.is_subagent = bool(self.document.parent_session_id)
        folder, is_projects, _ = self.source.artifact.path.rpartition(_DATABASE)
        self.builder.where(folder if is_projects else None)

    def at(self, message: Message) -> int | None:
        return logged_seconds(message.created_at)

    def on_user(self, message: Message, at: int | None) -> None:
        texts = [part.data for part in message.parts if part.type == "text" and part.data.text]
        text = "\n".join(data.text or "" for data in texts).strip()
        if text and all(data.hidden for data in texts) and not PROFILE.machine_kind(text):
            self.event("meta", text, at)
        else:
            self.prompt(text, at, attached=any(part.type in ("binary", "image_url") for part in message.parts))

    def on_assistant(self, message: Message, at: int | None) -> None:
        step = self.builder.step(message.id, message.model or None, at)
        if message.is_summary_message:
            self.event("compaction", "{}", at, step)
        for part in message.parts:
            data = part.data
            if part.type == "reasoning":
                self.event("thinking", data.thinking or "", at, step)
            elif part.type == "text" and data.text:
                self.event("meta" if message.is_summary_message else "text", data.text, at, step)
            elif part.type == "tool_call":
                self.call(data.id or "", data.name or "", data.input or "", at, step)
            elif part.type == "finish":
                step.stop_reason = data.reason
                if data.reason == "canceled":
                    self.event("interrupt", data.message or "", at, step)
                elif data.reason == "error":
                    self.event("api_error", ": ".join(filter(None, (data.message, data.details))), at, step)

    def on_tool(self, message: Message, at: int | None) -> None:
        for data in (part.data for part in message.parts if part.type == "tool_result"):
            text, call_id = data.content or "", data.tool_call_id or ""
            match = _EXIT_CODE.search(text[-400:]) if self.is_command(call_id) else None
            status: CallStatus = ("rejected" if text == _DENIED else "error") if data.is_error else "ok"
            self.result(call_id, text, status, at, data.metadata, int(match[1]) if match else None)

    def on_system(self, message: Message, at: int | None) -> None:
        self.event("meta", "\n".join(part.data.text or "" for part in message.parts), at)

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        change = decoded(detail, Changed)
        if change is None or change.new_content is None:
            return False
        if change.old_content:
            self.builder.edit(call, None, "modify", between(change.old_content, change.new_content))
        else:
            self.builder.edit(call, None, "create", [created(change.new_content)])
        return True

    def end(self) -> None:
        """Record the session's own cost. Crush adds the children's cost to the parent's; it is subtracted here."""
        cost, children = amount(self.document.cost), amount(self.document.children_cost)
        if cost:
            step = self.builder.step(None, None)
            step.stop_reason, step.cost_source = SESSION_TOTAL, "recorded"
            step.cost_usd = round(max(cost - (children or 0), 0), _DOLLAR_DIGITS)
            self.event("meta", "dollars of the session", None, step)


read = Reader.read
