"""The databases of Cursor (design/formats.md#cursor): conversations of its IDE and chats of its command line.

Each conversation becomes JSON Lines: its facts, then each of its bubbles or messages in the order that it lists them.
Values are read by key, never all of them: such a file may be gigabytes, and holds credentials. Only fields that are
named here go on.
"""

import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from msgspec import Raw

from agentsignals.formats import Ask, Database, Held
from agentsignals.formats.records import as_text, decoded, inside, string

AUTO = "default"
"""Stands for a model that Cursor chose and does not name."""


def fields(value: object) -> dict[str, Raw]:
    """Return the fields of a JSON object, or none. Other programs write these rows, too."""
    return decoded(value, dict[str, Raw]) or {}


def items(record: dict[str, Raw], name: str) -> list[Raw]:
    return decoded(record.get(name), list[Raw]) or []


def model_of(value: object) -> str | None:
    return string(value) if value != AUTO else None


def _line(record: dict[str, Any]) -> bytes:
    """Encode one line of JSON. A raw value may have line breaks between its tokens."""
    return msgspec.json.encode(record).replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


# -- conversations of the IDE ("composers")

COMPOSER_BEGINS = b'{"cursorComposer":'
"""Beginning of a document of this kind."""

_COMPOSER = ("name", "createdAt", "lastUpdatedAt", "status", "modelConfig", "workspaceIdentifier", "subagentInfo", "_v")
_BUBBLE = (
    "type", "text", "createdAt", "thinking", "tokenCount", "modelInfo", "capabilityType", "errorDetails",
    "isSimulatedMsg", "images", "workspaceUris",
)  # fmt: skip
_TOOL = (
    "tool", "name", "status", "toolCallId", "modelCallId", "rawArgs", "params", "result", "error", "userDecision",
    "additionalData",
)  # fmt: skip
_VALUE = "SELECT value FROM cursorDiskKV WHERE key = ?"
_COMPOSERS = "SELECT key, rowid FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY key"
_BUBBLES = "SELECT count(*), max(rowid) FROM cursorDiskKV WHERE key >= ? AND key < ?"
_NO_CONTENT = f"composer.content.{hashlib.sha256(b'').hexdigest()}"
MOST_CONTENT_BYTES = 1024 * 1024
"""A larger file before or after an edit is no source."""
MOST_CONTENTS_BYTES = 32 * 1024 * 1024
"""All files before and after the edits of a conversation: a quarter of what a document may have."""


def composer_sessions(ask: Ask) -> Iterator[Held]:
    """Yield every conversation, by the keys alone.

    A value that is written gets a new row (the key is `UNIQUE ON CONFLICT REPLACE`), whose number tells that it was.
    """
    listed = set[bytes]()
    if "cursorDiskKV" in ask.tables:
        headed = "composerHeaders" in ask.tables
        times = dict(ask("SELECT composerId, lastUpdatedAt FROM composerHeaders")) if headed else {}
        for key, row in ask(_COMPOSERS):
            composer_id = key[len(b"composerData:") :]
            ((bubbles, last),) = ask(_BUBBLES, *_bounds(composer_id.decode()))
            changed = times.get(composer_id)
            changed_ms = changed if isinstance(changed, int) else 0
            session_id = _file_name(composer_id.decode())
            listed.add(session_id)
            yield Held(session_id, changed_ms, bubbles + 1, mark=max(row, last or 0))
    for chat_id, row, _, bubbles in _panel_chats(ask):
        if (session_id := _file_name(chat_id)) not in listed:
            listed.add(session_id)
            yield Held(session_id, 0, len(bubbles), mark=row)


def composer_document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """Yield the lines of a conversation.

    A bubble that it lists and nothing holds any more is `missing`. A bubble that is no JSON object becomes `null`,
    which the reader counts as a record that it can't read.
    """
    composer_id = unquote(session_id.decode())
    row = next(ask(_VALUE, f"composerData:{composer_id}"), None) if "cursorDiskKV" in ask.tables else None
    if row is None:
        for chat_id, _, chat, raws in _panel_chats(ask):
            if chat_id == composer_id:
                title = chat.get("chatTitle", chat.get("name"))
                named = {"name": title} if title is not None else {}
                yield _line({"cursorComposer": {"composerId": chat_id, **named}})
                for raw in raws:
                    bubble = fields(raw)
                    who = _PANEL_ROLES.get(decoded(bubble.get("type"), str) or "")
                    if who is not None:  # newer versions have a number here
                        bubble["type"] = Raw(str(who).encode())
                    if "text" not in bubble and "rawText" in bubble:
                        bubble["text"] = bubble["rawText"]
                    yield _bubble(bubble, {})
        return
    composer = fields(row[0])
    listed = (decoded(raw, dict[str, Any]) for raw in items(composer, "fullConversationHeadersOnly"))
    headers = {bubble_id: header for header in listed if isinstance(bubble_id := inside(header, "bubbleId"), str)}
    ((bubbles, _),) = ask(_BUBBLES, *_bounds(composer_id))
    about = {"composerId": composer_id, **_named(composer, _COMPOSER), "unlisted": max(bubbles - len(headers), 0)}
    yield _line({"cursorComposer": about})
    if not headers:  # before version 3 they are in the conversation itself
        yield from (_bubble(fields(raw), {}) for raw in items(composer, "conversation"))
        return
    within = fields(composer.get("conversationMap"))
    contents = _Contained(ask)
    for bubble_id, header in headers.items():
        head: dict[str, Any] = {"bubbleId": bubble_id}
        if (created_at := inside(header, "createdAt")) is not None:  # the bubble's changes when all is built anew
            head["createdAt"] = created_at
        if inside(header, "grouping", "isSimulatedMsg") is True:
            head["isSimulatedMsg"] = True
        row = next(ask(_VALUE, f"bubbleId:{composer_id}:{bubble_id}"), None)
        value = row[0] if row is not None else bytes(within.get(bubble_id, b"")) or None
        if value is None or value == b"null":
            yield _line({"type": inside(header, "type"), **head, "missing": True})
        else:
            yield _bubble(fields(value), head, contents)


class _Contained:
    """The files before and after edits, as long as there is room for more."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._left = MOST_CONTENTS_BYTES

    def of(self, result: Raw) -> dict[str, str]:
        """Return the file before and after an edit, as the result of the edit names them."""
        named = decoded(decoded(result, str), Any) if b"ContentId" in bytes(result) else None
        texts: list[str] = []
        for name in (inside(named, "beforeContentId"), inside(named, "afterContentId")):
            if name == _NO_CONTENT:
                texts.append("")
            elif str(name).startswith("composer.content."):
                (data,) = next(self._ask(_VALUE, name), (None,))
                if isinstance(data, bytes) and len(data) <= min(MOST_CONTENT_BYTES, self._left):
                    self._left -= len(data)
                    texts.append(data.decode("utf-8", "replace"))
        return {"before": texts[0], "after": texts[1]} if len(texts) == 2 else {}


def _bubble(bubble: dict[str, Raw], head: dict[str, Any], contents: _Contained | None = None) -> bytes:
    if not bubble:
        return b"null\n"
    named = {**_named(bubble, ("bubbleId", *_BUBBLE)), **head}
    if tool := fields(bubble.get("toolFormerData")):
        named["toolFormerData"] = _named(tool, _TOOL)
        if contents is not None and "result" in tool:
            named |= contents.of(tool["result"])
    return _line(named)


def _named(record: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: record[name] for name in names if name in record}


def _bounds(composer_id: str) -> tuple[str, str]:
    """Return the bounds of the keys of a conversation's bubbles. `;` is the character after `:`."""
    return f"bubbleId:{composer_id}:", f"bubbleId:{composer_id};"


def _file_name(composer_id: str) -> bytes:
    """Return a conversation's id as the name of a file. A subagent's id may hold a line break."""
    return (composer_id if composer_id.isprintable() and "%" not in composer_id else quote(composer_id)).encode()


# Chats that older versions keep in the database of a workspace: two values of `ItemTable`, which holds credentials
# under other keys.

_PANEL_LISTS = (
    ("workbench.panel.aichat.view.aichat.chatdata", "tabs", "tabId", "bubbles"),
    ("composer.composerData", "allComposers", "composerId", "conversation"),
)
"""A key, the list in its value, and the names of a chat's id and its bubbles."""
_PANEL_ROLES = {"user": 1, "ai": 2, "assistant": 2}


def _panel_chats(ask: Ask) -> Iterator[tuple[str, int, dict[str, Raw], list[Raw]]]:
    """Yield each chat with bubbles: its id, its row, its fields, its bubbles. Others are only names in a list."""
    for key, name, id_name, bubbles_name in _PANEL_LISTS:
        for row, value in ask("SELECT rowid, value FROM ItemTable WHERE key = ?", key):
            for raw in items(fields(value), name):
                chat = fields(raw)
                chat_id, bubbles = decoded(chat.get(id_name), str), items(chat, bubbles_name)
                if chat_id and bubbles:
                    yield chat_id, row, chat, bubbles


# -- chats of the command line: messages as lines of a transcript, with what came of each call
# Messages are JSON, named by their hash. The latest root lists them in order, in Protocol Buffers' wire format.

CHAT_BEGINS = b'{"cursorChat":'
"""Beginning of a document of this kind."""
COMPACTED = b'"is_summary":true'
"""Part of the document of a chat whose earlier messages a summary has replaced."""

_ABOUT = ("agentId", "name", "createdAt", "lastUsedModel", "subagentInfo")
_META, _BLOB = "SELECT value FROM meta WHERE key = '0'", "SELECT data FROM blobs WHERE id = ?"
_MESSAGES, _HASH_BYTES = 1, 32
"""The field of a root that names a message, and the length of its name."""
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
"""Kinds of fields (protobuf.dev/programming-guides/encoding)."""
_ENDED = {"success": "ok", "error": "error", "failure": "error", "rejected": "rejected"}


def chat_sessions(ask: Ask) -> Iterator[Held]:
    """Yield the one chat of a database. Each change of it has a root of its own."""
    about = _about(ask)
    agent_id, root = about.get("agentId"), about.get("latestRootBlobId")
    if isinstance(agent_id, str) and isinstance(root, str):
        ((blobs,),) = ask("SELECT count(id) FROM blobs")
        yield Held(agent_id.encode(), 0, blobs, mark=int.from_bytes(root.encode()[:8], "big"))


def chat_document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """Yield the lines of a chat. A listed message that is gone, or no JSON object, is `null`: the reader counts it."""
    about = _about(ask)
    if about.get("agentId") != session_id.decode():
        return
    yield _line({"cursorChat": _named(about, _ABOUT)})
    root = next(ask(_BLOB, about.get("latestRootBlobId")), (b"",))[0]
    for name in _listed(root if isinstance(root, bytes) else b""):
        (data,) = next(ask(_BLOB, name), (None,))
        message = decoded(data, dict[str, Any])
        yield _line(_message(message)) if message else b"null\n"


def _about(ask: Ask) -> dict[str, Any]:
    """Return the facts of the chat: JSON, its bytes written as hexadecimal digits."""
    value = next(ask(_META), (None,))[0]
    text = value if isinstance(value, bytes) else b""
    try:
        text = text if text[:1] == b"{" else bytes.fromhex(text.decode())
    except ValueError:
        return {}
    return decoded(text, dict[str, Any]) or {}


def _listed(data: bytes) -> Iterator[str]:
    """Yield the names of the messages that a root lists, as far as it can be read."""
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


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as a transcript has it."""
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
    """Return a content block of the chat database in the form that transcripts have."""
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
        # A command that failed is no error: the kind of its output says that it failed.
        output = inside(result, "output")
        status = next((_ENDED[name] for name in _ENDED if inside(output, name) is not None), None)
        if status is None:
            status = "error" if True in (inside(result, "isError"), inside(output, "isError")) else "ok"
        return {"type": "tool_result", **ids, "content": text, "status": status}
    if kind == "redacted-reasoning":
        return {"type": "thinking", "thinking": ""}
    return {"type": as_text(kind), "text": as_text(block.get("text"))}


COMPOSERS = Database(
    columns={"ItemTable": ("key", "value")},
    some_have={"cursorDiskKV": ("key", "value"), "composerHeaders": ("composerId", "lastUpdatedAt")},
    sessions=composer_sessions,
    document=composer_document,
)
CHATS = Database(
    columns={"meta": ("key", "value"), "blobs": ("id", "data")}, sessions=chat_sessions, document=chat_document
)
