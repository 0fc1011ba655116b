"""The Kiro conversations of one family, and each as a session."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Input, Reading
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import Snapshot, as_text, each, largest, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.kiro import PROFILE
from agentsignals.formats.profile import READ
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import Artifact, CallStatus, Session, Step, ToolCall, logged_iso, logged_ms

# The records of a Kiro conversation as typed structs (design/formats.md#small-formats): only what is read.


class Prompt(Struct, gc=False):
    prompt: str | None = None


class Result(Struct, gc=False):
    """A tool result: `content` is a list of `{Text}` or `{Json}`."""

    tool_use_id: str | None = None
    content: Raw = Raw()
    status: str | None = None


class Results(Struct, gc=False):
    tool_use_results: list[Result] | None = None
    prompt: str | None = None


class Content(Struct, gc=False):
    """One of three: words of the person, tool results, or tool requests the person did not let through."""

    Prompt: Prompt | None = None
    ToolUseResults: Results | None = None
    CancelledToolUses: Results | None = None


class EnvState(Struct, gc=False):
    current_working_directory: str | None = None


class EnvContext(Struct, gc=False):
    env_state: EnvState | None = None


class User(Struct, gc=False):
    content: Content | None = None
    timestamp: str | None = None
    env_context: EnvContext | None = None
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


class RequestMetadata(Struct, gc=False):
    request_start_timestamp_ms: object = None
    stream_end_timestamp_ms: object = None
    model_id: str | None = None


class Entry(Struct, gc=False):
    user: User | None = None
    assistant: Answer | None = None
    request_metadata: RequestMetadata | None = None


class Pair(Struct, gc=False, array_like=True):
    """An entry as earlier versions write it."""

    user: User | None = None
    assistant: Answer | None = None


class ModelInfo(Struct, gc=False):
    model_id: str | None = None


class Conversation(Struct):
    history: list[Entry | None]
    conversation_id: str = ""
    model_info: ModelInfo | None = None
    latest_summary: Raw = Raw()


class _RawConversation(Struct):
    history: list[Raw] = []
    conversation_id: str = ""
    model_info: ModelInfo | None = None
    latest_summary: Raw = Raw()


_whole = msgspec.json.Decoder(Conversation).decode
_raw_conversation = msgspec.json.Decoder(_RawConversation).decode
_entry_object = msgspec.json.Decoder(Entry).decode
_entry_pair = msgspec.json.Decoder(Pair).decode


def decode(data: memoryview | bytes, artifact: Artifact) -> Conversation:
    """A conversation; when an entry in it is odd, entry by entry, with None for what can't be read."""
    try:
        return _whole(data)
    except msgspec.ValidationError:
        conversation = _raw_conversation(data)
        history = each(conversation.history, _entry, artifact)
        return Conversation(history, conversation.conversation_id, conversation.model_info, conversation.latest_summary)


def _entry(data: memoryview | bytes) -> Entry:
    if bytes(data[:1]) != b"[":
        return _entry_object(data)
    pair = _entry_pair(data)
    return Entry(pair.user, pair.assistant)


# Kiro's tools: what they are in shared words, and what became of a call.


class Operation(Struct, gc=False):
    path: str | None = None


class Arguments(Struct, gc=False):
    """The files of an `fs_read`."""

    operations: list[Operation] | None = None


class Shell(Struct, gc=False):
    """What a shell command leaves; the exit status is a number written as text."""

    exit_status: object = None
    stdout: object = None
    stderr: object = None


class Block(Struct, gc=False):
    Text: str | None = None
    Json: Raw = Raw()


_arguments = msgspec.json.Decoder(Arguments).decode
_blocks = msgspec.json.Decoder(list[Block]).decode
_shell = msgspec.json.Decoder(Shell).decode


class Runs:
    """Calls and results of one session. Ids are mostly empty: a result then answers the oldest open call."""

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._open: list[tuple[str, ToolCall]] = []
        self._ids: set[str] = set()

    def call(self, use: ToolUse, at: int | None, step: Step) -> None:
        name, own_id = use.name or "", use.id or ""
        tool = PROFILE.tool(name)
        call_id = own_id
        if not own_id or own_id in self._ids:
            call_id = f"{own_id or 'call'}#{len(self._builder.session.tool_calls)}"
        self._ids.add(call_id)
        raw = msgspec.json.format(bytes(use.args), indent=-1) if use.args else b"{}"
        path = _only_path(raw) if tool is READ else None
        self._open.append((own_id, self._builder.call(call_id, name, raw, tool, at, step, path=path)))

    def forget(self) -> None:
        """The open calls were answered, and the answers were not kept."""
        self._open.clear()

    def answer(self, result: Result, at: int | None, status: CallStatus | None = None) -> None:
        """A result; `status` says what became of a call that the person did not let through."""
        call = self._take(result.tool_use_id or "")
        text, code = _text_and_status(result.content)
        if status is None:
            status = "error" if result.status == "Error" else "ok"
        call_id = call.call_id if call is not None else result.tool_use_id or ""
        self._builder.result(call_id, text, status, at, exit_code=code)
        if call is not None and status == "ok" and call.class_ == "edit":
            record_arguments(self._builder, call, set())

    def _take(self, own_id: str) -> ToolCall | None:
        for n, (open_id, _) in enumerate(self._open):
            if open_id == own_id:
                return self._open.pop(n)[1]
        return None


def _text_and_status(raw: Raw) -> tuple[str, int | None]:
    """Text and exit status of a result."""
    try:
        blocks = _blocks(raw) if raw else []
    except UNREADABLE:
        return bytes(raw).decode("utf-8", "replace"), None
    texts: list[str] = []
    code: int | None = None
    for block in blocks:
        if block.Text is not None:
            texts.append(block.Text)
            continue
        try:
            shell = _shell(block.Json)
        except UNREADABLE:
            shell = Shell()
        if shell.exit_status is None:
            texts.append(bytes(block.Json).decode("utf-8", "replace"))
            continue
        texts += [as_text(t) for t in (shell.stdout, shell.stderr) if t]
        code = _exit_status(shell.exit_status)
    return "\n".join(texts), code


def _only_path(arguments: bytes) -> str | None:
    """The file of an `fs_read`, when it reads only one."""
    try:
        named = {operation.path for operation in _arguments(arguments).operations or ()}
    except UNREADABLE:
        return None
    return named.pop() if len(named) == 1 else None


def _exit_status(value: object) -> int | None:
    try:
        return int(value) if isinstance(value, str | int) else None
    except ValueError:
        return None


DENIED = "I deny this tool request. Ask a follow up question clarifying the expected action"
"""What the client sends when the person answers `n` to a tool request."""
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
"""Replies the client writes in the agent's name: no model call."""


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several snapshots of a session the fullest."""
    return Reading([_Reader(snapshot).session() for snapshot in largest(_snapshots(inputs))])


def _snapshots(inputs: list[Input]) -> Iterator[Snapshot[Conversation]]:
    for source in inputs:
        conversation = read_document(source, partial(decode, artifact=source.artifact), "history")
        if conversation is None:
            continue
        _count(source.artifact, conversation)
        session_id = conversation.conversation_id or source.session_hint or source.artifact.artifact_id
        yield Snapshot(source, conversation, session_id, len(conversation.history))


def _count(artifact: Artifact, conversation: Conversation) -> None:
    tally(artifact, "entry", [None if e is None else _kind(e) for e in conversation.history])


def _kind(entry: Entry) -> str:
    return f"{_kind_of_user(entry.user)}+{_kind_of_answer(entry.assistant)}"


def _kind_of_user(user: User | None) -> str:
    content = user.content if user is not None else None
    if content is None:
        return "nothing"
    if content.Prompt is not None:
        return "prompt"
    if content.ToolUseResults is not None:
        return "results"
    return "cancelled" if content.CancelledToolUses is not None else "unknown"


def _kind_of_answer(answer: Answer | None) -> str:
    if answer is None:
        return "nothing"
    return "tool_use" if answer.ToolUse is not None else "response" if answer.Response is not None else "unknown"


class _Reader:
    """One session in the making."""

    def __init__(self, snapshot: Snapshot[Conversation]) -> None:
        source = snapshot.source
        session = source.session(snapshot.session_id, "kiro", "kiro")
        self.conversation = snapshot.document
        self.builder = SessionBuilder(session, PROFILE)
        self.runs = Runs(self.builder)
        info = snapshot.document.model_info
        self.model = info.model_id if info is not None else None

    def session(self) -> Session:
        if bytes(self.conversation.latest_summary) not in (b"", b"null"):
            self.builder.line = 1  # the summary stands for the entries that are gone: before the first one left
            self.builder.event("compaction", "{}")
        for number, entry in enumerate(self.conversation.history, 1):
            self.builder.line = number
            if entry is not None:
                self._entry(entry)
        return self.builder.finish()

    def _entry(self, entry: Entry) -> None:
        meta = entry.request_metadata
        asked = logged_ms(meta.request_start_timestamp_ms) if meta is not None else None
        answered = logged_ms(meta.stream_end_timestamp_ms) if meta is not None else None
        model = (meta.model_id if meta is not None else None) or self.model
        if entry.user is not None:
            state = entry.user.env_context.env_state if entry.user.env_context is not None else None
            self.builder.where(state.current_working_directory if state is not None else None)
            said_at = logged_iso(entry.user.timestamp)
            self._user(entry.user, said_at if said_at is not None else asked, model)
        if entry.assistant is not None:
            self._answer(entry.assistant, asked, answered, model)

    def _user(self, user: User, at: int | None, model: str | None) -> None:
        content = user.content
        if content is None:
            self.runs.forget()  # a turn of tool results, which the collector left out
        elif content.Prompt is not None:
            self.runs.forget()
            self._prompt(content.Prompt.prompt or "", bool(user.images), at, model)
        elif content.ToolUseResults is not None:
            self._results(content.ToolUseResults.tool_use_results, at)
        elif content.CancelledToolUses is not None:
            self._cancelled(content.CancelledToolUses, at, model)
        else:
            self.builder.event("unknown", "user content of an unknown kind", at)

    def _prompt(self, text: str, has_images: bool, at: int | None, model: str | None) -> None:
        if text.startswith(_CLIENT_PROMPTS) or PROFILE.machine_kind(text.lstrip()):
            self.builder.event("meta", text, at)
        elif text.strip():
            self.builder.turn("prompt", text.strip(), at, model)
        elif has_images:
            self.builder.turn("attachment", "", at, model)

    def _results(self, results: list[Result] | None, at: int | None) -> None:
        for result in results or ():
            self.runs.answer(result, at)

    def _cancelled(self, cancelled: Results, at: int | None, model: str | None) -> None:
        """The person answered a tool request with words of their own, with `n`, or stopped a running tool."""
        prompt = (cancelled.prompt or "").strip()
        stopped = not prompt or prompt == STOPPED
        for result in cancelled.tool_use_results or ():
            self.runs.answer(result, at, "cancelled" if stopped else "rejected")
        if stopped or prompt == DENIED:
            self.builder.event("interrupt", prompt, at)
        else:
            self.builder.turn("rejection_feedback", prompt, at, model)

    def _answer(self, answer: Answer, asked: int | None, answered: int | None, model: str | None) -> None:
        builder = self.builder
        message = answer.ToolUse or answer.Response
        if message is None:
            builder.event("unknown", "answer of an unknown kind", asked)
            return
        text = message.content or ""
        if answer.ToolUse is None and text.strip() in _NOTICES:
            builder.event("meta", text, answered)
            return
        step = self._step(message.message_id, asked, model)
        if text:
            builder.event("text", text, answered if answered is not None else asked, step)
        for use in message.tool_uses or ():
            self.runs.call(use, answered if answered is not None else asked, step)

    def _step(self, message_id: str | None, at: int | None, model: str | None) -> Step:
        step = self.builder.step(None, model, at)
        step.message_id = message_id or None
        return step
