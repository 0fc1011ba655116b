"""Reads Hermes' sessions: messages as OpenAI's interface has them."""

from typing import Any

from msgspec import Struct, field

from agentsignals.formats.bounds import whole
from agentsignals.formats.conversation import Document, DocumentReader
from agentsignals.formats.documents import as_text, inside, string
from agentsignals.formats.hermes import PROFILE
from agentsignals.formats.records import decoded
from agentsignals.model import CallStatus, logged_iso, logged_ms


class Message(Struct, gc=False, kw_only=True):
    role: str = ""
    content: object = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    reasoning: object = None
    finish_reason: str | None = None
    timestamp: object = None


class Held(Document, kw_only=True):
    id: str = field(name="session_id", default="")
    model: str | None = None
    title: str | None = None
    session_start: str | None = None
    parent_session_id: str | None = None


_ATTACHED = ("image_url", "input_image", "image")
"""Parts of a message that hold no words."""


class Reader(DocumentReader[Held, Message]):
    profile, document_type, message_type = PROFILE, Held, Message

    def begin(self) -> None:
        document, session = self.document, self.session
        session.title, session.started_at = document.title, logged_iso(document.session_start)
        session.parent_session_id, self.is_subagent = document.parent_session_id, document.parent_session_id is not None

    def at(self, message: Message) -> int | None:
        stamp = message.timestamp
        if isinstance(stamp, float | int) and not isinstance(stamp, bool):
            return logged_ms(stamp * 1000)
        return logged_iso(stamp) if isinstance(stamp, str) else None

    def on_system(self, message: Message, at: int | None) -> None:
        self.event("meta", self.words(message, at), at)

    def on_user(self, message: Message, at: int | None) -> None:
        self.prompt(self.words(message, at), at, attached=isinstance(message.content, list))

    def on_assistant(self, message: Message, at: int | None) -> None:
        step = self.builder.step(None, self.document.model, at)
        step.stop_reason = message.finish_reason
        if message.reasoning:
            self.event("thinking", as_text(message.reasoning), at, step)
        if words := self.words(message, at):
            self.event("text", words, at, step)
        for call in message.tool_calls or ():
            name, arguments = (inside(call, "function", field) for field in ("name", "arguments"))
            self.call(string(call.get("id")) or "", string(name) or "", as_text(arguments), at, step)

    def words(self, message: Message, at: int | None) -> str:
        """Return the words of a message, which is a text or parts with one. Other parts are told by their type."""
        if not isinstance(message.content, list):
            return as_text(message.content)
        for part in message.content:
            if not isinstance(inside(part, "text"), str) and (kind := inside(part, "type")) not in _ATTACHED:
                self.event("unknown", f"part of type {kind}"[:80], at)
        return "\n".join(text for part in message.content if isinstance(text := inside(part, "text"), str))

    def on_tool(self, message: Message, at: int | None) -> None:
        text = as_text(message.content)
        outcome = decoded(text.encode("utf-8", "replace"), Any)  # most tools answer in JSON
        code = whole(inside(outcome, "exit_code"))
        failed = bool(inside(outcome, "error")) or inside(outcome, "success") is False or bool(code)
        status: CallStatus = "error" if failed else "ok"
        self.result(message.tool_call_id or "", text, status, at, None, code)


read = Reader.read
