"""Reads Kiro conversations. The structs hold only the fields that are read."""

import posixpath
import re
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import spelled_number
from agentsignals.formats.builder import record_arguments
from agentsignals.formats.conversation import Conversation, Document, DocumentReader
from agentsignals.formats.kiro import PROFILE, is_log
from agentsignals.formats.profile import READ
from agentsignals.formats.records import (
    HEAD_BYTES,
    as_list,
    as_text,
    decoded,
    decoder,
    document,
    inside,
    lines,
    saw,
    string,
)
from agentsignals.model import CallStatus, Session, Step, ToolCall, logged_iso, logged_ms, logged_seconds


class Result(Struct, gc=False):
    tool_use_id: str | None = None
    content: Raw = Raw()
    status: str | None = None


class Results(Struct, gc=False):
    tool_use_results: list[Result] | None = None
    prompt: str | None = None


class Content(Struct, gc=False):
    """One of three: a prompt, tool results, or tool requests that the person did not approve."""

    Prompt: dict[str, Any] | None = None
    ToolUseResults: Results | None = None
    CancelledToolUses: Results | None = None


class User(Struct, gc=False):
    content: Content | None = None
    timestamp: str | None = None
    env_context: object = None
    images: list[Raw] | None = None


class ToolUse(Struct, gc=False):
    id: str | None = None
    name: str | None = None
    args: Raw = Raw()


class Reply(Struct, gc=False):
    message_id: str | None = None
    content: str | None = None
    tool_uses: list[ToolUse] | None = None


class Answer(Struct, gc=False):
    """One of two: a reply, or a reply that calls tools."""

    Response: Reply | None = None
    ToolUse: Reply | None = None


class Entry(Struct, gc=False):
    user: User | None = None
    assistant: Answer | None = None
    request_metadata: object = None


class Pair(Struct, gc=False, array_like=True):
    """An entry as earlier versions write it."""

    user: User | None = None
    assistant: Answer | None = None


class ConversationFile(Document, kw_only=True):
    id: str = field(name="conversation_id", default="")
    messages: list[Raw] = field(name="history", default_factory=list)
    model_info: dict[str, Any] | None = None
    latest_summary: Raw = Raw()


DENIED = "I deny this tool request. Ask a follow up question clarifying the expected action"
"""Sent by the client when the person answers `n` to a tool request."""
STOPPED = "The user interrupted the tool execution."
_CLIENT_PROMPTS = (
    "In a few words, summarize our conversation so far.",
    "You took too long to respond - try to split up the work into smaller steps.",
    "[SYSTEM NOTE: This is an automated request, not from the user]",
)
_NOTICES = (
    "Tool uses were interrupted, waiting for the next user prompt",
    "Response was interrupted by the user",
    "Response timed out - message took too long to generate",
)
"""Replies that the client writes in the agent's name. They are no model calls."""


class Reader(DocumentReader[ConversationFile, Entry]):
    """Ids of calls are mostly empty: a result then answers the oldest open call."""

    profile, document_type, message_type = PROFILE, ConversationFile, Entry
    list_key, noun = "history", "entry"

    @classmethod
    def message(cls, raw: memoryview | bytes) -> Entry:
        if bytes(raw[:1]) != b"[":
            return super().message(raw)
        pair = decoder(Pair).decode(raw)
        return Entry(pair.user, pair.assistant)

    @staticmethod
    def role(message: Entry) -> str:
        content, kinds = message.user.content if message.user is not None else None, []
        for part, names in ((content, _USER_KINDS), (message.assistant, _AGENT_KINDS)):
            known = (kind for name, kind in names.items() if getattr(part, name, None) is not None)
            kinds.append("nothing" if part is None else next(known, "unknown"))
        return "+".join(kinds)

    def begin(self) -> None:
        self.open: list[tuple[str, ToolCall]] = []
        """Calls without a result, each with its logged id."""
        if bytes(self.document.latest_summary) not in (b"", b"null"):
            self.builder.line = 1  # the summary replaces the entries before the first one that is left
            self.event("compaction", "{}")

    def take(self, message: Entry) -> None:
        meta = message.request_metadata
        requested_at = logged_ms(inside(meta, "request_start_timestamp_ms"))
        answered_at = logged_ms(inside(meta, "stream_end_timestamp_ms"))
        model = string(inside(meta, "model_id")) or string(inside(self.document.model_info, "model_id"))
        if message.user is not None:
            folder = inside(message.user.env_context, "env_state", "current_working_directory")
            self.builder.where(string(folder))
            at = logged_iso(message.user.timestamp)
            self.user(message.user, at if at is not None else requested_at, model)
        if message.assistant is not None:
            self.answer(message.assistant, requested_at, answered_at, model)

    def user(self, user: User, at: int | None, model: str | None) -> None:
        content = user.content
        if content is None:
            self.open.clear()  # a turn of tool results, which the collector left out
        elif content.Prompt is not None:
            self.open.clear()
            text = string(content.Prompt.get("prompt")) or ""
            if text.startswith(_CLIENT_PROMPTS) or PROFILE.machine_kind(text.lstrip()):
                self.event("meta", text, at)
            else:
                self.builder.prompt(text.strip(), at, attached=bool(user.images), model=model)
        elif content.ToolUseResults is not None:
            for result in content.ToolUseResults.tool_use_results or ():
                self.tool_result(result, "error" if result.status == "Error" else "ok", at)
        elif (cancelled := content.CancelledToolUses) is not None:
            # The person answered a tool request with a message or with `n`, or stopped a running tool.
            prompt = (cancelled.prompt or "").strip()
            stopped = not prompt or prompt == STOPPED
            for result in cancelled.tool_use_results or ():
                self.tool_result(result, "cancelled" if stopped else "rejected", at)
            if stopped or prompt == DENIED:
                self.event("interrupt", prompt, at)
            else:
                self.builder.turn("rejection_feedback", prompt, at, model)
        else:
            self.event("unknown", "user content of an unknown kind", at)

    def answer(self, answer: Answer, requested_at: int | None, answered_at: int | None, model: str | None) -> None:
        message = answer.ToolUse or answer.Response
        if message is None:
            self.event("unknown", "answer of an unknown kind", requested_at)
            return
        text, at = message.content or "", answered_at if answered_at is not None else requested_at
        if answer.ToolUse is None and text.strip() in _NOTICES:
            self.event("meta", text, answered_at)
            return
        step = self.builder.step(None, model, requested_at)
        step.message_id = message.message_id or None
        if text:
            self.event("text", text, at, step)
        for use in message.tool_uses or ():
            self.tool_use(use, at, step)

    def tool_use(self, use: ToolUse, at: int | None, step: Step) -> None:
        tool, call_id = PROFILE.tool(use.name or ""), use.id or ""
        if not call_id or self.builder.calls_of(call_id):
            call_id = f"{call_id or 'call'}#{len(self.session.tool_calls)}"
        raw = msgspec.json.format(bytes(use.args), indent=-1) if use.args else b"{}"
        operations = inside(decoded(raw, Any), "operations") if tool is READ else None  # the files of an `fs_read`
        paths = {string(inside(o, "path")) for o in as_list(operations)}
        path = paths.pop() if len(paths) == 1 else None
        self.open.append((use.id or "", self.builder.call(call_id, use.name or "", raw, tool, at, step, path=path)))

    def tool_result(self, result: Result, status: CallStatus, at: int | None) -> None:
        own_id = result.tool_use_id or ""
        n = next((n for n, (open_id, _) in enumerate(self.open) if open_id == own_id), None)
        call = self.open.pop(n)[1] if n is not None else None
        text, code = _text_and_status(result.content)
        self.builder.result(call.call_id if call is not None else own_id, text, status, at, exit_code=code)
        if call is not None and status == "ok" and call.class_ == "edit":
            record_arguments(self.builder, call, existed=False)


_USER_KINDS = {"Prompt": "prompt", "ToolUseResults": "results", "CancelledToolUses": "cancelled"}
_AGENT_KINDS = {"ToolUse": "tool_use", "Response": "response"}


def _text_and_status(raw: Raw) -> tuple[str, int | None]:
    """Return text and exit status of a result."""
    blocks = decoded(raw, list[dict[str, Raw]])
    if blocks is None:
        return bytes(raw).decode("utf-8", "replace"), None
    texts: list[str] = []
    code: int | None = None
    for block in blocks:
        text = decoded(block.get("Text"), str)
        shell = decoded(block.get("Json"), Any) if text is None else None
        status = inside(shell, "exit_status")  # of a command; the number is written as text
        if text is not None:
            texts.append(text)
        elif status is None:
            texts.append(bytes(block.get("Json", b"")).decode("utf-8", "replace"))
        else:
            texts += [as_text(t) for t in (inside(shell, "stdout"), inside(shell, "stderr")) if t]
            stated = spelled_number(str(status))
            code = stated if isinstance(stated, int) else None
    return "\n".join(texts), code


# -- sessions of the newer command line: `<id>.jsonl`, a message a line, and facts on it in `<id>.json`

_CODE = re.compile(r"exit status: (-?\d+)")


class Part(Struct, gc=False):
    kind: str = ""
    data: Raw = Raw()


class Data(Struct, gc=False):
    message_id: str | None = None
    content: list[Part] = []
    meta: dict[str, Any] | None = None


class Line(Struct, gc=False):
    kind: str = ""
    data: Data | None = None


class Facts(Struct, gc=False):
    session_id: str = ""
    cwd: str | None = None
    title: str | None = None
    created_at: str | None = None
    parent_session_id: str | None = None
    session_created_reason: str | None = None


def _sessions_of_lines(inputs: list[Input]) -> list[Session]:
    """Read the logs of a folder. Facts without a log are a session in which nobody said anything."""
    facts: dict[str, Facts] = {}
    for source in inputs:
        if not is_log(source.data) and (told := document(source.data, source.artifact, decoder(Facts).decode)):
            facts[told.session_id] = told
            saw(source.artifact, "session")
    logs = [source for source in inputs if is_log(source.data)]
    return [LineReader(source, facts.get(_name(source))).read(source) for source in logs]


def _name(source: Input) -> str:
    return posixpath.basename(source.artifact.path).partition(".")[0]


class LineReader(Conversation):
    profile = PROFILE

    def __init__(self, source: Input, facts: Facts | None) -> None:
        super().__init__(source.session(_name(source), "kiro", PROFILE.agent))
        if facts is not None:
            session = self.session
            session.title, session.started_at = facts.title, logged_iso(facts.created_at)
            session.parent_session_id = facts.parent_session_id
            self.is_subagent = facts.session_created_reason == "subagent"
            self.builder.where(facts.cwd)

    def read(self, source: Input) -> Session:
        for number, line in lines(source.data, source.artifact, decoder(Line).decode):
            self.builder.line = number
            saw(source.artifact, line.kind or "line")
            data = line.data or Data()
            at = logged_seconds(inside(data.meta, "timestamp"))
            if line.kind == "Prompt":
                texts = [as_text(decoded(p.data, Any)) for p in data.content if p.kind == "text"]
                self.prompt("\n".join(texts), at, attached=len(texts) < len(data.content))
            elif line.kind == "AssistantMessage":
                self.answer(data, at)
            elif line.kind == "ToolResults":
                self.results(data, at)
            else:
                self.event("unknown", line.kind[:80], at)
        return self.builder.finish()

    def answer(self, data: Data, at: int | None) -> None:
        step = self.builder.step(data.message_id, None, at)
        for part in data.content:
            value = decoded(part.data, Any)
            if part.kind == "text":
                self.event("text", as_text(value), at, step)
            elif part.kind == "thinking":
                step.model = string(inside(value, "modelId")) or step.model
                self.event("thinking", as_text(inside(value, "text")), at, step)
            elif part.kind == "toolUse":
                call_id, name = (string(inside(value, key)) or "" for key in ("toolUseId", "name"))
                self.call(call_id, name, as_text(inside(value, "input")), at, step)
            else:
                self.event("unknown", f"part of type {part.kind}"[:80], at)

    def results(self, data: Data, at: int | None) -> None:
        for part in data.content:
            value = decoded(part.data, Any)
            if part.kind != "toolResult":
                self.event("unknown", f"part of type {part.kind}"[:80], at)
                continue
            texts, code = [], None
            for item in inside(value, "content") or ():
                held = inside(item, "data")
                ended = _CODE.fullmatch(string(inside(held, "exit_status")) or "")
                code = int(ended[1]) if ended is not None else code
                shown = (inside(held, "stdout"), inside(held, "stderr")) if ended is not None else (held,)
                texts += [as_text(text) for text in shown if text]
            failed = inside(value, "status") == "error" or bool(code)
            status: CallStatus = "error" if failed else "ok"
            self.result(string(inside(value, "toolUseId")) or "", "\n".join(texts), status, at, None, code)


def read(inputs: list[Input]) -> Reading:
    """Read conversations, and sessions of the newer command line."""
    documents, of_cli = list[Input](), list[Input]()
    for source in inputs:
        is_new = is_log(source.data) or b'"session_created_reason"' in bytes(source.data[:HEAD_BYTES])
        (of_cli if is_new else documents).append(source)
    reading = Reader.read(documents)
    reading.sessions += _sessions_of_lines(of_cli)
    return reading
