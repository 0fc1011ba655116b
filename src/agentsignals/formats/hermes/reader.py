"""Reads Hermes' sessions: messages as OpenAI's interface has them."""

from collections import Counter
from typing import Any

from msgspec import Struct, field

from agentsignals.formats.bounds import whole
from agentsignals.formats.builder import close, tokens_of
from agentsignals.formats.conversation import Document, DocumentReader
from agentsignals.formats.hermes import PROFILE
from agentsignals.formats.records import as_text, decoded, inside, string
from agentsignals.model import CallStatus, logged_time


class Message(Struct, gc=False, kw_only=True):
    role: str = ""
    content: object = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    reasoning: object = None
    finish_reason: str | None = None
    timestamp: object = None
    active: object = 1
    """0 where the person went back from it, or where it was compacted."""
    compacted: object = 0


class Held(Document, kw_only=True):
    id: str = field(name="session_id", default="")
    model: str | None = None
    title: str | None = None
    session_start: object = None
    parent_session_id: str | None = None
    platform: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    usage: list[dict[str, Any]] | None = None
    """Tokens by model, of the database. Those of titles and other side tasks have rows of their own."""


def _content(message: Message) -> tuple[object, ...]:
    return message.role, as_text(message.content), message.tool_call_id, str(message.tool_calls)


_ATTACHED = ("image_url", "input_image", "image")
"""Parts of a message that hold no words."""


class Reader(DocumentReader[Held, Message]):
    profile, document_type, message_type = PROFILE, Held, Message

    def begin(self) -> None:
        document, session = self.document, self.session
        session.title, session.started_at = document.title, logged_time(document.session_start)
        self.builder.where(document.cwd, document.git_branch)
        self.left_from: int | None = None
        """The event from which the person went back."""
        self.archived: Counter[tuple[object, ...]] = Counter()
        session.parent_session_id = document.parent_session_id
        # A parent may also be the session before a compaction. Only the database tells.
        self.is_subagent = document.platform == "subagent" or bool(document.parent_session_id and not document.usage)

    def at(self, message: Message) -> int | None:
        return logged_time(message.timestamp)

    def take(self, message: Message) -> None:
        """Take a message. A compaction archives the messages so far and writes those that it keeps anew."""
        if message.active in (0, False):
            if message.compacted:
                self.archived[_content(message)] += 1
            elif self.left_from is None:
                self.left_from = len(self.session.events)
        elif self.archived[_content(message)] > 0:
            self.archived[_content(message)] -= 1
            return
        else:
            self.go_back(self.at(message))
        super().take(message)

    def go_back(self, at: int | None) -> None:
        if self.left_from is not None:
            self.builder.abandon(self.left_from)
            self.event("rewind", None, at)
            self.left_from = None

    def end(self) -> None:
        at = self.session.events[-1].timestamp if self.session.events else None
        self.go_back(at)
        for row in self.document.usage or ():
            tokens = tokens_of(row, "apart")
            if any(tokens):
                close(self.builder, string(row.get("model")), tokens, at)

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
