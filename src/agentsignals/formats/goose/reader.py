"""The sessions of Goose of one family, each from its fullest copy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
from msgspec import Raw, Struct, field

from agentsignals.formats import Input, Reading
from agentsignals.formats.bounds import amount, whole
from agentsignals.formats.bounds import count as count_of
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.documents import Snapshot, each, largest, tally
from agentsignals.formats.documents import read as read_document
from agentsignals.formats.edits import record_arguments
from agentsignals.formats.goose import PROFILE, is_of_lines, session_id_of
from agentsignals.formats.head import head_of
from agentsignals.formats.outcome import exit_code
from agentsignals.formats.records import UNREADABLE, lines, saw
from agentsignals.formats.usage import Tokens, close
from agentsignals.model import RAN, Artifact, CallStatus, Step, logged_iso, logged_ms
from agentsignals.model import Session as Made

# A session of Goose as typed structs (design/formats.md#goose): only what is read.


class Annotations(Struct, gc=False):
    audience: list[str] | None = None
    """Who is to see it, where not all are: the agent (`assistant`) and the person get results made for each."""


class Piece(Struct, gc=False, kw_only=True):
    """A piece of a result."""

    type: str = ""
    text: str | None = None
    annotations: Annotations | None = None

    @property
    def is_the_agents(self) -> bool:
        audience = self.annotations.audience if self.annotations is not None else None
        return not audience or "assistant" in audience


class Ran(Struct, gc=False):
    """What a command came to."""

    exit_code: object = None
    timed_out: object = None


class Value(Struct, gc=False, kw_only=True):
    content: list[Piece] = []
    isError: bool | None = None
    structuredContent: Ran | None = None


class Result(Struct, gc=False, kw_only=True):
    status: str = ""
    value: Raw = Raw()
    error: str | None = None

    @property
    def read(self) -> Value:
        """A result as it is written today; before, it was a list of pieces alone."""
        try:
            value = _value(self.value) if self.value else Value()
        except UNREADABLE:
            return Value(content=[Piece(text=bytes(self.value).decode("utf-8", "replace"))])
        return Value(content=value) if isinstance(value, list) else value


class Asked(Struct, gc=False):
    name: str | None = None
    arguments: Raw = Raw()


class Call(Struct, gc=False, kw_only=True):
    """`error` where the model's call could not be read."""

    status: str = ""
    value: Asked | None = None
    error: str | None = None


class Block(Struct, gc=False, kw_only=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    msg: str | None = None
    id: str | None = None
    toolCall: Call | None = None
    toolResult: Result | None = None


BLOCKS = frozenset((
    "text", "image", "thinking", "redactedThinking", "reasoning", "toolRequest", "frontendToolRequest", "toolResponse",
    "toolConfirmationRequest", "actionRequired", "systemNotification",
))  # fmt: skip

PIECES = frozenset(("", "text", "image", "audio", "resource", "resource_link"))


class Metadata(Struct, gc=False):
    userVisible: bool = True


class Message(Struct, gc=False, kw_only=True):
    id: str | None = None
    role: str = ""
    created: object = None
    content: list[Block]
    metadata: Metadata | None = None


class Usage(Struct, gc=False, kw_only=True):
    """A model call; nothing says which."""

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


class Model(Struct, gc=False):
    model_name: str | None = None


class Session(Struct, kw_only=True):
    id: str
    conversation: list[Raw] = []
    name: str | None = None
    session_type: str | None = None
    working_dir: str | None = None
    created_at: str | None = None
    parent_session_id: str | None = None
    model_config_json: str | None = None
    accumulated_output_tokens: object = None
    usage_ledger: list[Usage] = []
    messages: list[Message | None] = field(default_factory=list)
    """`conversation`, each decoded by itself; None for one that can't be read."""
    lines: list[int] = field(default_factory=list)
    """Where each message stands, in a file of lines."""

    @property
    def model(self) -> str | None:
        try:
            return msgspec.json.decode(self.model_config_json or "{}", type=Model).model_name
        except UNREADABLE:
            return None


class _Line(Message, kw_only=True, gc=False):
    """Of a file of lines: a message, or what the first line says of the session."""

    content: list[Block] = []
    working_dir: str | None = None
    description: str | None = None
    accumulated_output_tokens: object = None


_message = msgspec.json.Decoder(Message).decode
_session = msgspec.json.Decoder(Session).decode
_line = msgspec.json.Decoder(_Line).decode
_value = msgspec.json.Decoder(Value | list[Piece]).decode


def decode(data: memoryview | bytes, artifact: Artifact) -> Session:
    """A session, message by message: one that is odd costs itself."""
    session = _session(data)
    session.messages, session.conversation = each(session.conversation, _message, artifact), []
    return session


def fold(data: bytes, artifact: Artifact) -> Session:
    """A file of lines as the session it is."""
    session = Session(id="")
    for number, line in lines(data, artifact, _line):
        saw(artifact, f"message.{line.role}" if line.role else "session")
        if line.role:
            session.messages.append(line)
            session.lines.append(number)
        else:
            session.working_dir, session.name = line.working_dir, line.description
            session.accumulated_output_tokens = line.accumulated_output_tokens
    return session


_DECLINED = "The user has declined to run this tool"
_INTERRUPTED = "Interrupted by the user"
_OVERWRITTEN = "Wrote "
"""How the result of a file written whole begins where it was there before."""


def read(inputs: list[Input]) -> Reading:
    """All files of one family; of several copies of a session the fullest."""
    return Reading([_Reader(snapshot).session() for snapshot in largest(_snapshots(inputs))])


def _snapshots(inputs: list[Input]) -> Iterator[Snapshot[Session]]:
    for source in inputs:
        if is_of_lines(head_of(source.data)):
            of_lines = fold(source.data, source.artifact)
            yield Snapshot(source, of_lines, session_id_of(source.artifact.path), len(of_lines.messages))
            continue
        session = read_document(source, partial(decode, artifact=source.artifact), "conversation")
        if session is None:
            continue
        tally(source.artifact, "message", [None if m is None else m.role for m in session.messages])
        tally(source.artifact, "ledger", ["call"] * len(session.usage_ledger))
        yield Snapshot(source, session, session.id or source.artifact.artifact_id, len(session.messages))


class _Reader:
    """One session in the making."""

    def __init__(self, snapshot: Snapshot[Session]) -> None:
        self.document = snapshot.document
        made = snapshot.source.session(snapshot.session_id, "goose", PROFILE.agent)
        made.title, made.started_at = self.document.name, logged_iso(self.document.created_at)
        made.parent_session_id = self.document.parent_session_id
        self.builder = SessionBuilder(made, PROFILE)
        self.builder.where(self.document.working_dir)
        self.touched: set[str] = set()
        self.compactions = [_at(call.created_timestamp) for call in self.document.usage_ledger if call.is_compaction]
        self.step: Step | None = None

    def session(self) -> Made:
        for number, message in enumerate(self.document.messages):
            self.builder.line = self.document.lines[number] if self.document.lines else number + 1
            if message is not None:
                self._message(message)
        while self.compactions:
            self.builder.event("compaction", "{}", self.compactions.pop(0))
        self._totals()
        return self.builder.finish()

    def _message(self, message: Message) -> None:
        builder, at = self.builder, _at(message.created)
        while self.compactions and at is not None and (self.compactions[0] or 0) < at:
            builder.event("compaction", "{}", self.compactions.pop(0))
        if message.role == "user":
            self._user(message, at)
        elif message.role == "assistant":
            self._assistant(message, at)
        else:
            builder.event("unknown", message.role or "message without a role", at)
        for block in message.content:
            if block.type == "systemNotification":
                builder.event("notification", block.msg or "", at)
        builder.unread((block.type for block in message.content), BLOCKS, at)

    def _user(self, message: Message, at: int | None) -> None:
        """Results are the user's messages, too; and what the program tells the model and shows nobody."""
        builder = self.builder
        for block in message.content:
            if block.type == "toolResponse" and block.toolResult is not None:
                self._result(block.id or "", block.toolResult, at)
        text = "\n".join(block.text for block in message.content if block.type == "text" and block.text).strip()
        is_hidden = message.metadata is not None and not message.metadata.userVisible
        kind = PROFILE.machine_kind(text)
        if text and (is_hidden or kind or self.document.session_type in ("sub_agent", "hidden")):
            builder.event(kind or "meta", text, at)
        elif text:
            builder.turn("scripted_prompt" if self.document.session_type == "scheduled" else "prompt", text, at)
        elif any(block.type == "image" for block in message.content):
            builder.turn("attachment", "", at)

    def _assistant(self, message: Message, at: int | None) -> None:
        builder = self.builder
        if message.metadata is not None and not message.metadata.userVisible:
            text = "\n".join(block.text for block in message.content if block.text)
            builder.event("meta", text, at)
            return
        blocks = [block for block in message.content if block.type != "systemNotification"]
        if not blocks:
            return
        step = builder.step(message.id, self.document.model, at)
        for block in blocks:
            if block.type in ("thinking", "redactedThinking", "reasoning"):
                builder.event("thinking", block.thinking or block.text or "", at, step)
            elif block.type == "text" and block.text:
                builder.event("text", block.text, at, step)
            elif block.type in ("toolRequest", "frontendToolRequest"):
                self._call(block, at, step)

    def _call(self, block: Block, at: int | None, step: Step) -> None:
        asked = block.toolCall.value if block.toolCall is not None else None
        name = (asked.name if asked is not None else None) or "invalid"
        arguments = bytes(asked.arguments) if asked is not None else b""
        self.builder.call(block.id or "", name, arguments or b"{}", PROFILE.tool(name), at, step)

    def _result(self, call_id: str, result: Result, at: int | None) -> None:
        value = result.read
        text = "\n".join(piece.text for piece in value.content if piece.text and piece.is_the_agents)
        text = text if result.error is None else result.error
        for piece in value.content:
            if piece.type not in PIECES:
                self.builder.event("unknown", f"block {piece.type}", at)
        ran = value.structuredContent
        asked = self.builder.calls_of(call_id)
        is_command = bool(asked) and asked[0].command is not None
        code = whole(ran.exit_code) if ran is not None else exit_code(text) if is_command else None
        status: CallStatus = "error" if value.isError or result.status == "error" else "ok"
        if _DECLINED in text[: 2 * len(_DECLINED)]:
            status = "rejected"
        elif status == "error" and _INTERRUPTED in text:
            status = "cancelled"
        timed_out = ran is not None and ran.timed_out is True
        if timed_out:
            status, code = "error", None
        call = self.builder.result(call_id, text, status, at, exit_code=code, error="timeout" if timed_out else None)
        if call is None:
            return
        if call.status in RAN and call.class_ == "edit":
            self.touched |= {call.path} if call.path and text.startswith(_OVERWRITTEN) else set()
            record_arguments(self.builder, call, self.touched)
        if call.path:
            self.touched.add(call.path)

    def _totals(self) -> None:
        """The tokens of all calls, by model: which message each answered is not said."""
        calls: dict[str | None, list[Usage]] = {}
        for call in self.document.usage_ledger:
            calls.setdefault(call.model or self.document.model, []).append(call)
        for model, group in calls.items():
            used = [_used(call) for call in group]
            step = close(self.builder, model, Tokens(*(sum(column) for column in zip(*used, strict=True))))
            if any(call.input_tokens is None for call in group):
                step.input_tokens = None
            if any(call.output_tokens is None for call in group):
                step.output_tokens = None
            if all(call.cost_source == "provider_reported" and call.cost is not None for call in group):
                step.cost_usd, step.cost_source = sum(amount(call.cost) or 0 for call in group), "recorded"
        output = count_of(self.document.accumulated_output_tokens)
        if not calls and output:
            close(self.builder, self.document.model, Tokens(output=output)).input_tokens = None


def _used(call: Usage) -> Tokens:
    """A call's tokens. Those from and to the cache are inside its input where its total says so, which most providers
    do; where it is beside them, the total is the sum of all."""
    fresh, output = count_of(call.input_tokens) or 0, count_of(call.output_tokens) or 0
    read, written = count_of(call.cache_read_tokens) or 0, count_of(call.cache_write_tokens) or 0
    is_beside = count_of(call.total_tokens) == fresh + output + read + written or fresh < read + written
    return Tokens(fresh if is_beside else fresh - read - written, output, read, written)


def _at(seconds: object) -> int | None:
    return logged_ms(seconds * 1000 if isinstance(seconds, int | float) and not isinstance(seconds, bool) else seconds)
