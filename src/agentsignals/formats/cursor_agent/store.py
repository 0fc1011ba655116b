"""The database that Cursor's command line keeps a chat in (design/formats.md#cursor): its messages as lines of a
transcript, with what came of each call.

Messages are JSON, named by their hash; which of them the chat has, in which order, the latest root says: a list of
hashes in Protocol Buffers' wire format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from agentsignals.formats import Ask, Database, Held
from agentsignals.formats.cursor_agent.database import inside
from agentsignals.formats.documents import as_text
from agentsignals.formats.records import UNREADABLE

BEGINS = b'{"cursorChat":'
"""How a document of this kind begins."""
COMPACTED = b'"is_summary":true'
"""Stands in the document of a chat whose earlier messages a summary has taken the place of."""

_ABOUT = ("agentId", "name", "createdAt", "lastUsedModel", "subagentInfo")
_META, _BLOB = "SELECT value FROM meta WHERE key = '0'", "SELECT data FROM blobs WHERE id = ?"
_MESSAGES, _HASH_BYTES = 1, 32
"""The field of a root that names a message, and how long its name is."""
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
"""Kinds of fields (protobuf.dev/programming-guides/encoding)."""
_ENDED = {"success": "ok", "error": "error", "failure": "error", "rejected": "rejected"}


def sessions(ask: Ask) -> Iterator[Held]:
    """The one chat of a database. Each change of it has a root of its own."""
    about = _about(ask)
    agent_id, root = about.get("agentId"), about.get("latestRootBlobId")
    if isinstance(agent_id, str) and isinstance(root, str):
        ((blobs,),) = ask("SELECT count(id) FROM blobs")
        yield Held(agent_id.encode(), 0, blobs, mark=int.from_bytes(root.encode()[:8], "big"))


def document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """A chat. A message that is listed and not held, or is no JSON object, becomes `null`, which the reader counts."""
    about = _about(ask)
    if about.get("agentId") != session_id.decode():
        return
    yield _line({"cursorChat": {name: about[name] for name in _ABOUT if name in about}})
    root = next(ask(_BLOB, about.get("latestRootBlobId")), (b"",))[0]
    for name in _listed(root if isinstance(root, bytes) else b""):
        (data,) = next(ask(_BLOB, name), (None,))
        message = _object(data)
        yield _line(_record(message)) if message else b"null\n"


def _about(ask: Ask) -> dict[str, Any]:
    """What is said of the chat: JSON, its bytes written as hexadecimal digits."""
    value = next(ask(_META), (None,))[0]
    text = value if isinstance(value, bytes) else b""
    try:
        text = text if text[:1] == b"{" else bytes.fromhex(text.decode())
    except ValueError:
        return {}
    return _object(text) or {}


def _listed(data: bytes) -> Iterator[str]:
    """The names of the messages that a root lists; as far as it can be read."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind, length = tag & 7, {_EIGHT: 8, _FOUR: 4}.get(tag & 7, 0)
        if kind in (_VARINT, _LENGTH):
            length, at = _varint(data, at)
        elif not length:
            return
        if kind == _LENGTH and tag >> 3 == _MESSAGES and length == _HASH_BYTES:
            yield data[at : at + length].hex()
        at += 0 if kind == _VARINT else length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128 or shift > 63:  # seven bits a byte; the eighth says that there are more
            break
    return value, at


def _record(message: dict[str, Any]) -> dict[str, Any]:
    """A message as a transcript has it."""
    content, cursor = message.get("content"), inside(message, "providerOptions", "cursor")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": as_text(content)}]
    result = inside(cursor, "highLevelToolCallResult")
    models = (inside(block, "providerOptions", "cursor", "modelName") for block in blocks)
    return {
        "role": message.get("role") if isinstance(message.get("role"), str) else None,
        "message": {"content": [_block(block, result) for block in blocks if isinstance(block, dict)]},
        "model": next((model for model in models if isinstance(model, str)), None),
        "is_summary": inside(cursor, "isSummary") is True,
    }


def _block(block: dict[str, Any], result: object) -> dict[str, Any]:
    kind = block.get("type")
    if kind == "reasoning":
        return {"type": "thinking", "thinking": as_text(block.get("text"))}
    if kind == "tool-call":
        arguments = block.get("args")
        ids = {"id": as_text(block.get("toolCallId")), "name": as_text(block.get("toolName"))}
        return {"type": "tool_use", **ids, "input": arguments if isinstance(arguments, dict) else {}}
    if kind == "tool-result":
        text = as_text(block.get("result") or block.get("experimental_content"))
        ids = {"tool_use_id": as_text(block.get("toolCallId")), "name": as_text(block.get("toolName"))}
        return {"type": "tool_result", **ids, "content": text, "status": _status(result)}
    if kind == "redacted-reasoning":
        return {"type": "thinking", "thinking": ""}
    return {"type": as_text(kind), "text": as_text(block.get("text"))}


def _status(result: object) -> str:
    """A command that failed is no error: the kind of its output says that it failed."""
    output = inside(result, "output")
    kind = next((name for name in _ENDED if inside(output, name) is not None), None)
    if kind is not None:
        return _ENDED[kind]
    return "error" if True in (inside(result, "isError"), inside(output, "isError")) else "ok"


def _object(data: object) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(data) if isinstance(data, bytes) else None
    except UNREADABLE:
        return None
    return value if isinstance(value, dict) else None


def _line(record: dict[str, Any]) -> bytes:
    return msgspec.json.encode(record) + b"\n"


STORE = Database(
    columns={"meta": ("key", "value"), "blobs": ("id", "data")},
    sessions=sessions,
    document=document,
)
