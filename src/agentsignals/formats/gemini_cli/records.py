"""The records of a Gemini CLI chat file as typed structs (design/formats.md#gemini-cli): only what is read."""

# No annotations as text: the decoder would evaluate each by itself, which takes longer than all else here.

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.one_document import as_text, each
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import Artifact


class Part(Struct, gc=False, kw_only=True):
    """A part of a content: text, or something attached (never decoded: it may be a whole image)."""

    text: str | None = None
    thought: object = None
    inlineData: Raw = Raw()
    fileData: Raw = Raw()
    functionCall: Raw = Raw()
    functionResponse: Raw = Raw()
    executableCode: Raw = Raw()
    codeExecutionResult: Raw = Raw()

    @property
    def kind(self) -> str:
        """What is in it; nothing for a part that says none of this."""
        return next((name for name in _PART_KINDS if getattr(self, name) not in (None, Raw())), "")


_PART_KINDS = ("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
               "codeExecutionResult", "thought")  # fmt: skip
PARTS = frozenset(_PART_KINDS)


Content = str | Part | list[Part | str] | None


class Thought(Struct, gc=False):
    subject: str | None = None
    description: str | None = None
    timestamp: str | None = None


class Tokens(Struct, gc=False):
    """`cached` is part of `input`; total = input + output + thoughts + tool (design/formats.md#token-usage)."""

    input: object = None
    output: object = None
    cached: object = None
    thoughts: object = None
    tool: object = None


class ToolCall(Struct, gc=False, kw_only=True):
    """A call with its result; `timestamp` is when it ended."""

    id: str = ""
    name: str = ""
    args: Raw = Raw()
    result: Raw = Raw()
    status: str | None = None
    timestamp: str | None = None
    resultDisplay: Raw = Raw()


class Message(Struct, gc=False, kw_only=True):
    """A message of any type: user, gemini, info, warning, error."""

    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    content: Content = None
    displayContent: Content = None
    thoughts: list[Thought] | None = None
    tokens: Tokens | None = None
    model: str | None = None
    toolCalls: list[ToolCall] | None = None


class Chat(Struct, kw_only=True):
    sessionId: str
    messages: list[Message | None]
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None
    summary: str | None = None


class _RawChat(Struct, kw_only=True):
    sessionId: str
    messages: list[Raw] = []
    projectHash: str | None = None
    startTime: str | None = None
    kind: str | None = None
    summary: str | None = None


class _Response(Struct, gc=False):
    id: str | None = None
    response: Raw = Raw()


class _ResultPart(Struct, gc=False):
    text: str | None = None
    functionResponse: _Response | None = None


class _Answer(Struct, gc=False):
    output: object = None
    error: object = None


_whole = msgspec.json.Decoder(Chat).decode
_raw_chat = msgspec.json.Decoder(_RawChat).decode
decode_message = msgspec.json.Decoder(Message).decode
_result = msgspec.json.Decoder(list[_ResultPart | str] | _ResultPart | str | None).decode
_answer = msgspec.json.Decoder(_Answer).decode


def decode(data: memoryview | bytes, artifact: Artifact) -> Chat:
    """A chat; when a message in it is odd, message by message, with None for what can't be read."""
    try:
        return _whole(data)
    except msgspec.ValidationError:
        chat = _raw_chat(data)
        messages = each(chat.messages, decode_message, artifact)
        return Chat(
            sessionId=chat.sessionId,
            messages=messages,
            projectHash=chat.projectHash,
            startTime=chat.startTime,
            kind=chat.kind,
            summary=chat.summary,
        )


def parts_of(content: Content) -> list[Part]:
    """A content as parts, whatever its spelling."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Part(text=content)]
    if isinstance(content, Part):
        return [content]
    return [Part(text=p) if isinstance(p, str) else p for p in content]


def text_of(content: Content) -> str:
    """The visible text of an answer: its parts are pieces of one text."""
    return "".join(p.text for p in parts_of(content) if p.text and p.thought is not True)


def result_text(call: ToolCall) -> str:
    """What the model got back from a call.

    A rewritten history files the answers of sibling calls with each of them: the one with the call's id counts.
    """
    if not call.result:
        return ""
    try:
        result = _result(call.result)
    except UNREADABLE:
        return bytes(call.result).decode("utf-8", "replace")
    if isinstance(result, str) or result is None:
        return result or ""
    parts = result if isinstance(result, list) else [result]
    of_call = [
        p for p in parts if isinstance(p, _ResultPart) and p.functionResponse and p.functionResponse.id == call.id
    ]
    return "\n".join(filter(None, (_part_text(p) for p in of_call or parts)))


def _part_text(part: _ResultPart | str) -> str:
    if isinstance(part, str):
        return part
    if part.functionResponse is None:
        return part.text or ""
    raw = part.functionResponse.response
    try:
        answer = _answer(raw)
    except UNREADABLE:
        return bytes(raw).decode("utf-8", "replace")
    output = answer.error if answer.error is not None else answer.output
    return as_text(output) if output is not None else bytes(raw).decode("utf-8", "replace")
