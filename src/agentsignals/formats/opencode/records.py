"""The records of an OpenCode export as typed structs (design/formats.md#opencode): only what is read.

What is never decoded: `before`/`after` file texts of diffs, attached files as data URLs, the metadata of most tools.
"""

# No annotations as text: the decoder would evaluate each by itself, which takes longer than all else here.

from functools import partial

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats.one_document import each
from agentsignals.formats.records import UNREADABLE
from agentsignals.model import Artifact


class Times(Struct, gc=False):
    """Milliseconds since 1970, of a session, a message, a part or a tool run."""

    created: object = None
    completed: object = None
    start: object = None
    end: object = None


class SessionInfo(Struct, gc=False, kw_only=True):
    id: str = ""
    parentID: str | None = None
    directory: str | None = None
    title: str | None = None
    version: str | None = None
    time: Times | None = None


class Cache(Struct, gc=False):
    read: object = None
    write: object = None


class Tokens(Struct, gc=False):
    total: object = None
    input: object = None
    output: object = None
    reasoning: object = None
    cache: Cache | None = None


class Model(Struct, gc=False):
    modelID: str | None = None


class Where(Struct, gc=False):
    cwd: str | None = None
    root: str | None = None


class MessageInfo(Struct, gc=False, kw_only=True):
    """A message of either role. `summary` is true for a compaction, an object with whole files for a user message."""

    role: str = ""
    id: str | None = None
    time: Times | None = None
    agent: str | None = None
    model: Model | None = None
    modelID: str | None = None
    path: Where | None = None
    cost: object = None
    tokens: Tokens | None = None
    finish: str | None = None
    error: Raw = Raw()
    summary: Raw = Raw()


class State(Struct, gc=False, kw_only=True):
    """A tool run: `output` when it completed, `error` when it failed, neither while it runs."""

    status: str = ""
    input: Raw = Raw()
    output: object = None
    error: object = None
    metadata: Raw = Raw()
    time: Times | None = None


class Part(Struct, gc=False, kw_only=True):
    """A part of a message, of any type."""

    id: str | None = None
    type: str = ""
    text: str | None = None
    synthetic: bool | None = None
    ignored: bool | None = None
    time: Times | None = None
    callID: str | None = None
    tool: str | None = None
    state: State | None = None
    files: list[str] | None = None
    auto: bool | None = None
    prompt: str | None = None
    command: str | None = None
    error: Raw = Raw()


class Message(Struct, gc=False):
    info: MessageInfo
    parts: list[Part | None]


class Export(Struct):
    info: SessionInfo
    messages: list[Message | None]


class _RawMessage(Struct, gc=False):
    info: MessageInfo
    parts: list[Raw] = []


class _RawExport(Struct, gc=False):
    info: SessionInfo
    messages: list[Raw] = []


class _Reason(Struct, gc=False):
    message: object = None


class _Failure(Struct, gc=False):
    name: str = ""
    data: _Reason | None = None


_whole = msgspec.json.Decoder(Export).decode
_raw_export = msgspec.json.Decoder(_RawExport).decode
_raw_message = msgspec.json.Decoder(_RawMessage).decode
_part = msgspec.json.Decoder(Part).decode
_failure = msgspec.json.Decoder(_Failure).decode


def decode(data: memoryview | bytes, artifact: Artifact) -> Export:
    """An export; when a record in it is odd, record by record, with None for what can't be read."""
    try:
        return _whole(data)
    except msgspec.ValidationError:
        export = _raw_export(data)
        return Export(export.info, each(export.messages, partial(_message, artifact=artifact), artifact))


def failure(raw: Raw) -> tuple[str, str]:
    """Name and message of an error object."""
    try:
        error = _failure(raw)
    except UNREADABLE:
        return "", bytes(raw).decode("utf-8", "replace")
    return error.name, str(error.data.message or "") if error.data is not None else ""


def _message(data: memoryview | bytes, artifact: Artifact) -> Message:
    message = _raw_message(data)
    return Message(message.info, each(message.parts, _part, artifact))
