"""JSON values of Cursor's rows, as far as they are what is asked for: other programs write them, too."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from msgspec import Raw, Struct

from agentsignals.formats import Ask, Database, Held
from agentsignals.formats.records import UNREADABLE

AUTO = "default"
"""Stands for a model that Cursor chose, and does not name."""

_object = msgspec.json.Decoder(dict[str, Raw]).decode
_list = msgspec.json.Decoder(list[Raw]).decode
_string = msgspec.json.Decoder(str).decode


def fields(value: object) -> dict[str, Raw]:
    """The fields of a JSON object; none where it is something else."""
    try:
        return _object(value) if isinstance(value, bytes | Raw) else {}
    except UNREADABLE:
        return {}


def items(record: dict[str, Raw], name: str) -> list[Raw]:
    """The items of the list of that name; none where it is something else."""
    try:
        return _list(record[name]) if name in record else []
    except UNREADABLE:
        return []


def string(raw: Raw | None) -> str | None:
    try:
        return _string(raw) if raw is not None else None
    except UNREADABLE:
        return None


def inside(value: object, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def nonempty(value: object) -> str | None:
    return value or None if isinstance(value, str) else None


def model_of(value: object) -> str | None:
    return nonempty(value) if value != AUTO else None


# Chats that older versions of Cursor's IDE keep in the database of a workspace (design/formats.md#cursor): two
# values of `ItemTable`, which holds credentials under other keys.

_PANEL, _COMPOSERS = "workbench.panel.aichat.view.aichat.chatdata", "composer.composerData"
_ROW = "SELECT rowid, value FROM ItemTable WHERE key = ?"
_LISTS = ((_PANEL, "tabs", "tabId", "bubbles"), (_COMPOSERS, "allComposers", "composerId", "conversation"))
"""Under which key, in which list, with which name of its id and of its bubbles."""
_WHO = {"user": 1, "ai": 2, "assistant": 2}


def held(ask: Ask) -> Iterator[tuple[str, int, dict[str, Raw], list[Raw]]]:
    """Each chat: its id, the row that it stands in, what is said of it, its bubbles. One without bubbles is a name in a
    list: its bubbles are in the database of all workspaces."""
    for key, name, id_name, bubbles_name in _LISTS:
        for row, value in ask(_ROW, key):
            for raw in items(fields(value), name):
                chat = fields(raw)
                chat_id, bubbles = string(chat.get(id_name)), items(chat, bubbles_name)
                if chat_id and bubbles:
                    yield chat_id, row, chat, bubbles


def described(chat_id: str, chat: dict[str, Raw]) -> dict[str, Any]:
    """What the record of a conversation says, of a chat."""
    title = chat.get("chatTitle", chat.get("name"))
    return {"composerId": chat_id, **({"name": title} if title is not None else {})}


def bubble(raw: Raw) -> dict[str, Raw]:
    """A bubble as newer versions write it: who speaks is a number there."""
    record = fields(raw)
    who = _WHO.get(string(record.get("type")) or "")
    if who is not None:
        record["type"] = Raw(str(who).encode())
    if "text" not in record and "rawText" in record:
        record["text"] = record["rawText"]
    return record


# Cursor's IDE database (design/formats.md#cursor): a conversation ("composer") as JSON Lines, what is said of it
# and then each of its bubbles in the order that it lists them.
#
# Values are read by key, never all of them: such a file may be gigabytes, and holds credentials. Of a value only
# the fields that are named here go on.

BEGINS = b'{"cursorComposer":'
"""How a document of this kind begins."""

_COMPOSER = ("name", "createdAt", "lastUpdatedAt", "status", "modelConfig", "workspaceIdentifier", "subagentInfo", "_v")
_BUBBLE = (
    *("type", "text", "createdAt", "thinking", "tokenCount", "modelInfo", "capabilityType", "errorDetails"),
    *("isSimulatedMsg", "images", "workspaceUris"),
)
_TOOL = (
    *("tool", "name", "status", "toolCallId", "modelCallId", "rawArgs", "params", "result", "error"),
    *("userDecision", "additionalData"),
)
_VALUE = "SELECT value FROM cursorDiskKV WHERE key = ?"
_COMPOSERS_DATABASE = (
    "SELECT key, rowid FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY key"
)
_BUBBLES = "SELECT count(*), max(rowid) FROM cursorDiskKV WHERE key >= ? AND key < ?"
_NO_CONTENT = f"composer.content.{hashlib.sha256(b'').hexdigest()}"
MOST_CONTENT_BYTES = 1024 * 1024
"""Of a file that an edit left, or found: a larger one is no source."""
MOST_CONTENTS_BYTES = 32 * 1024 * 1024
"""Of all that a conversation's edits left and found: a quarter of what a document may have."""


class _Header(Struct, gc=False):
    """A bubble as the conversation lists it."""

    bubbleId: str
    type: object = None
    createdAt: object = None
    grouping: object = None


class _Contents(Struct, gc=False):
    """What an edit's result names: the file as it was, and as it is."""

    beforeContentId: str | None = None
    afterContentId: str | None = None


_header = msgspec.json.Decoder(_Header).decode
_contents = msgspec.json.Decoder(_Contents).decode


def sessions(ask: Ask) -> Iterator[Held]:
    """Every conversation, by the keys alone. A value that is written gets a new row (the key is `UNIQUE ON CONFLICT
    REPLACE`), whose number tells that it was."""
    listed = set[bytes]()
    for session in _composers(ask) if "cursorDiskKV" in ask.tables else ():
        listed.add(session.session_id)
        yield session
    for chat_id, row, _, bubbles in held(ask):
        if (key := _key(chat_id).encode()) not in listed:
            listed.add(key)
            yield Held(key, 0, len(bubbles), mark=row)


def _composers(ask: Ask) -> Iterator[Held]:
    headed = "composerHeaders" in ask.tables
    times = dict(ask("SELECT composerId, lastUpdatedAt FROM composerHeaders")) if headed else {}
    for key, row in ask(_COMPOSERS_DATABASE):
        composer_id = key[len(b"composerData:") :]
        ((bubbles, last),) = ask(_BUBBLES, *_bounds(composer_id.decode()))
        changed = times.get(composer_id)
        changed_ms = changed if isinstance(changed, int) else 0
        yield Held(_key(composer_id.decode()).encode(), changed_ms, bubbles + 1, mark=max(row, last or 0))


def document(ask: Ask, session_id: bytes) -> Iterator[bytes]:
    """A conversation. A bubble that it lists and nothing holds any more stands as `missing`; what is no JSON object
    becomes `null`, which the reader counts as a record that it can't read."""
    composer_id = unquote(session_id.decode())
    row = next(ask(_VALUE, f"composerData:{composer_id}"), None) if "cursorDiskKV" in ask.tables else None
    if row is None:
        for chat_id, _, chat, raws in held(ask):
            if chat_id == composer_id:
                yield _line({"cursorComposer": described(chat_id, chat)})
                yield from (_bubble(bubble(raw), {}) for raw in raws)
        return
    composer = fields(row[0])
    listed = [header for raw in items(composer, "fullConversationHeadersOnly") if (header := _headed(raw))]
    headers = list({header.bubbleId: header for header in listed}.values())
    ((bubbles, _),) = ask(_BUBBLES, *_bounds(composer_id))
    about = {"composerId": composer_id, **_named(composer, _COMPOSER), "unlisted": max(bubbles - len(headers), 0)}
    yield _line({"cursorComposer": about})
    if not headers:  # before version 3 they are in the conversation itself
        yield from (_bubble(fields(raw), {}) for raw in items(composer, "conversation"))
        return
    within = fields(composer.get("conversationMap"))
    contents = _Kept(ask)
    for header in headers:
        head: dict[str, Any] = {"bubbleId": header.bubbleId}
        if header.createdAt is not None:  # the bubble's is that of the last time the conversation was built anew
            head["createdAt"] = header.createdAt
        if isinstance(header.grouping, dict) and header.grouping.get("isSimulatedMsg") is True:
            head["isSimulatedMsg"] = True
        row = next(ask(_VALUE, f"bubbleId:{composer_id}:{header.bubbleId}"), None)
        value = row[0] if row is not None else bytes(within.get(header.bubbleId, b"")) or None
        if value is None or value == b"null":
            yield _line({"type": header.type, **head, "missing": True})
        else:
            yield _bubble(fields(value), head, contents)


class _Kept:
    """The files that edits found and left, as long as there is room for more."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._left = MOST_CONTENTS_BYTES

    def of(self, result: Raw) -> dict[str, str]:
        """What the result of an edit names, as text."""
        if b"ContentId" not in bytes(result):
            return {}
        try:
            named = _contents(msgspec.json.decode(result, type=str).encode())
        except UNREADABLE:
            return {}
        before, after = self._content(named.beforeContentId), self._content(named.afterContentId)
        return {} if before is None or after is None else {"before": before, "after": after}

    def _content(self, name: str | None) -> str | None:
        if name == _NO_CONTENT:
            return ""
        if name is None or not name.startswith("composer.content."):
            return None
        row = next(self._ask(_VALUE, name), None)
        if row is None or not isinstance(row[0], bytes) or len(row[0]) > min(MOST_CONTENT_BYTES, self._left):
            return None
        self._left -= len(row[0])
        return row[0].decode("utf-8", "replace")


def _bubble(bubble: dict[str, Raw], head: dict[str, Any], contents: _Kept | None = None) -> bytes:
    if not bubble:
        return b"null\n"
    tool = fields(bubble.get("toolFormerData"))
    named: dict[str, Any] = {**_named(bubble, ("bubbleId", *_BUBBLE)), **head}
    if tool:
        named["toolFormerData"] = _named(tool, _TOOL)
        if contents is not None and "result" in tool:
            named |= contents.of(tool["result"])
    return _line(named)


def _line(record: dict[str, Any]) -> bytes:
    """One line of JSON: between its values a raw one may have line breaks."""
    return msgspec.json.encode(record).replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


def _named(record: dict[str, Raw], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: record[name] for name in names if name in record}


def _headed(raw: Raw) -> _Header | None:
    try:
        return _header(raw)
    except UNREADABLE:
        return None


def _bounds(composer_id: str) -> tuple[str, str]:
    """Between which the keys of a conversation's bubbles are: `;` is what comes after `:`."""
    return f"bubbleId:{composer_id}:", f"bubbleId:{composer_id};"


def _key(composer_id: str) -> str:
    """A conversation's id as the name of a file: a subagent's may hold a line break."""
    return composer_id if composer_id.isprintable() and "%" not in composer_id else quote(composer_id)


DATABASE = Database(
    columns={"ItemTable": ("key", "value")},
    some_have={"cursorDiskKV": ("key", "value"), "composerHeaders": ("composerId", "lastUpdatedAt")},
    sessions=sessions,
    document=document,
)
