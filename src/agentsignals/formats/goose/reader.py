"""Reads Goose's sessions. The structs hold only the fields that are read."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Raw, Struct, field

from agentsignals.formats import Input
from agentsignals.formats.bounds import amount, count, whole
from agentsignals.formats.builder import Tokens, close, record_arguments, summed, tokens_of
from agentsignals.formats.conversation import Document, DocumentReader
from agentsignals.formats.documents import Messages, Snapshot, tally, texts_of
from agentsignals.formats.goose import PROFILE, is_of_lines, session_id_of
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import as_list, decoded, decoder, head_of, inside, lines, saw, string
from agentsignals.model import CallStatus, ToolCall, TurnKind, logged_iso, logged_seconds


class Piece(Struct, gc=False, kw_only=True):
    """A piece of a result. Some results have a version for the agent (`assistant`) and one for the person."""

    type: str = ""
    text: str | None = None
    annotations: dict[str, Any] | None = None

    @property
    def for_agent(self) -> bool:
        audience = as_list(inside(self.annotations, "audience"))
        return not audience or "assistant" in audience


class Value(Struct, gc=False, kw_only=True):
    content: list[Piece] = []
    isError: bool | None = None
    structuredContent: dict[str, Any] | None = None
    """The end of a command."""


class Result(Struct, gc=False, kw_only=True):
    status: str = ""
    value: Raw = Raw()
    error: str | None = None

    @property
    def decoded(self) -> Value:
        """The result. Older versions wrote a list of pieces alone."""
        value = decoded(self.value, Value | list[Piece])
        if value is None and self.value:
            return Value(content=[Piece(text=bytes(self.value).decode("utf-8", "replace"))])
        return Value(content=value) if isinstance(value, list) else value or Value()


class Request(Struct, gc=False):
    name: str | None = None
    arguments: Raw = Raw()


class Call(Struct, gc=False):
    """A call. It has no value if the program could not read it."""

    value: Request | None = None


class Block(Struct, gc=False, kw_only=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    msg: str | None = None
    id: str | None = None
    toolCall: Call | None = None
    toolResult: Result | None = None


class Message(Struct, gc=False, kw_only=True):
    id: str | None = None
    role: str = ""
    created: object = None
    content: list[Block]
    metadata: dict[str, Any] | None = None

    @property
    def is_hidden(self) -> bool:
        return inside(self.metadata, "userVisible") is False


class Usage(Struct, gc=False, kw_only=True):
    """The tokens of a model call. Nothing links it to a message."""

    created_timestamp: object = None
    model: str | None = None
    input_tokens: object = None
    output_tokens: object = None
    total_tokens: object = None
    cache_read_tokens: object = None
    cache_write_tokens: object = None
    cost: object = None
    cost_source: str | None = None
    is_compaction: object = None


class Session(Document, kw_only=True):
    id: str = ""
    messages: list[Raw] = field(name="conversation", default_factory=list)
    name: str | None = None
    session_type: str | None = None
    working_dir: str | None = None
    created_at: str | None = None
    parent_session_id: str | None = None
    model_config_json: str | None = None
    accumulated_output_tokens: object = None
    usage_ledger: list[Usage] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    """Line number of each message, in a file of lines."""


class Line(Message, kw_only=True, gc=False):
    """A line of a file of lines: a message, or, first, the facts about the session."""

    content: list[Block] = []
    working_dir: str | None = None
    description: str | None = None
    accumulated_output_tokens: object = None


_DECLINED = "The user has declined to run this tool"
_INTERRUPTED = "Interrupted by the user"
_OVERWRITTEN = "Wrote "
"""Start of the result of writing a file that existed before."""
_PIECES = frozenset(("", "text", "image", "audio", "resource", "resource_link"))


class Reader(DocumentReader[Session, Message]):
    profile, document_type, message_type = PROFILE, Session, Message
    list_key = "conversation"
    part_types = frozenset((
        "text", "image", "thinking", "redactedThinking", "reasoning", "toolRequest", "frontendToolRequest",
        "toolResponse", "toolConfirmationRequest", "actionRequired", "systemNotification",
    ))  # fmt: skip

    @classmethod
    def snapshots(cls, inputs: Iterable[Input]) -> Iterator[Snapshot[tuple[Session, Messages[Message]]]]:
        for source in inputs:
            if is_of_lines(head_of(source.data)):  # as versions before 1.10 wrote it
                document, messages = Session(), list[Message | None]()
                for number, line in lines(source.data, source.artifact, decoder(Line).decode):
                    saw(source.artifact, f"message.{line.role}" if line.role else "session")
                    if line.role:
                        messages.append(line)
                        document.lines.append(number)
                    else:
                        document.working_dir, document.name = line.working_dir, line.description
                        document.accumulated_output_tokens = line.accumulated_output_tokens
                yield Snapshot(source, (document, messages), session_id_of(source.artifact.path), len(messages))
                continue
            for snapshot in super().snapshots([source]):
                tally(source.artifact, "ledger", ["call"] * len(snapshot.document[0].usage_ledger))
                yield snapshot

    def begin(self) -> None:
        document, session = self.document, self.session
        session.title, session.started_at = document.name, logged_iso(document.created_at)
        session.parent_session_id = document.parent_session_id
        self.is_subagent = document.session_type in ("sub_agent", "hidden")
        self.builder.where(document.working_dir)
        self.model = string(inside(decoded(document.model_config_json, Any), "model_name"))
        self.compactions = [
            logged_seconds(call.created_timestamp) for call in document.usage_ledger if call.is_compaction
        ]

    def at(self, message: Message) -> int | None:
        return logged_seconds(message.created)

    def types(self, message: Message) -> list[str]:
        return [block.type for block in message.content]

    def take(self, message: Message) -> None:
        if self.document.lines:
            self.builder.line = self.document.lines[self.builder.line - 1]
        at = self.at(message)
        while self.compactions and at is not None and (self.compactions[0] or 0) < at:
            self.event("compaction", "{}", self.compactions.pop(0))
        super().take(message)
        for block in message.content:
            if block.type == "systemNotification":
                self.event("notification", block.msg or "", at)

    def on_user(self, message: Message, at: int | None) -> None:
        """Results come first. Text that is hidden from the person is the program's."""
        for block in message.content:
            if block.type == "toolResponse" and block.toolResult is not None:
                self.answer(block.id or "", block.toolResult, at)
        text = "\n".join(block.text for block in message.content if block.type == "text" and block.text).strip()
        if text and message.is_hidden and not PROFILE.machine_kind(text):
            self.event("meta", text, at)
        else:
            kind: TurnKind = "scripted_prompt" if self.document.session_type == "scheduled" else "prompt"
            self.prompt(text, at, any(block.type == "image" for block in message.content), kind)

    def on_assistant(self, message: Message, at: int | None) -> None:
        blocks = [block for block in message.content if block.type != "systemNotification"]
        if message.is_hidden:
            self.event("meta", texts_of(message.content), at)
        elif blocks:
            step = self.builder.step(message.id, self.model, at)
            for block in blocks:
                if block.type in ("thinking", "redactedThinking", "reasoning"):
                    self.event("thinking", block.thinking or block.text or "", at, step)
                elif block.type == "text" and block.text:
                    self.event("text", block.text, at, step)
                elif block.type in ("toolRequest", "frontendToolRequest"):
                    call = block.toolCall.value if block.toolCall is not None else None
                    name = (call.name if call is not None else None) or "invalid"
                    self.call(block.id or "", name, bytes(call.arguments) if call is not None else b"", at, step)

    def answer(self, call_id: str, result: Result, at: int | None) -> None:
        value = result.decoded
        text = "\n".join(piece.text for piece in value.content if piece.text and piece.for_agent)
        text = text if result.error is None else result.error
        for piece in value.content:
            if piece.type not in _PIECES:
                self.event("unknown", f"block {piece.type}", at)
        ran = value.structuredContent
        code = exit_code(text) if ran is None and self.is_command(call_id) else whole(inside(ran, "exit_code"))
        status: CallStatus = "error" if value.isError or result.status == "error" else "ok"
        if _DECLINED in text[: 2 * len(_DECLINED)]:
            status = "rejected"
        elif status == "error" and _INTERRUPTED in text:
            status = "cancelled"
        error = None
        if inside(ran, "timed_out") is True:
            status, code, error = "error", None, "timeout"
        self.result(call_id, text, status, at, None, code, error)

    def edit(self, call: ToolCall, text: str, detail: Any) -> bool:
        if text.startswith(_OVERWRITTEN):
            record_arguments(self.builder, call, existed=True)
        return text.startswith(_OVERWRITTEN)

    def end(self) -> None:
        """Record the remaining compactions, and the tokens of all calls by model."""
        while self.compactions:
            self.event("compaction", "{}", self.compactions.pop(0))
        calls: dict[str | None, list[Usage]] = {}
        for call in self.document.usage_ledger:
            calls.setdefault(call.model or self.model, []).append(call)
        for model, group in calls.items():
            tokens = [_tokens(call) for call in group]
            step = close(self.builder, model, summed(tokens))
            if any(call.input_tokens is None for call in group):
                step.input_tokens = None
            if any(call.output_tokens is None for call in group):
                step.output_tokens = None
            if all(call.cost_source == "provider_reported" and call.cost is not None for call in group):
                step.cost_usd, step.cost_source = sum(amount(call.cost) or 0 for call in group), "recorded"
        output = count(self.document.accumulated_output_tokens)
        if not calls and output:
            close(self.builder, self.model, Tokens(output=output)).input_tokens = None


def _tokens(call: Usage) -> Tokens:
    """Return the tokens of a call. For most providers the input includes cached tokens. It excludes them where the
    logged total is the sum of all."""
    fresh, output, read, written = (n or 0 for n in tokens_of(call, "apart")[:4])
    is_apart = count(call.total_tokens) == fresh + output + read + written or fresh < read + written
    return Tokens(fresh if is_apart else fresh - read - written, output, read, written)


read = Reader.read
