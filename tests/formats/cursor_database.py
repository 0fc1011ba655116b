"""Builds databases as Cursor's IDE and its command line write them, among credentials."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

START = 1_790_000_000_000
TIME = "2026-09-21T14:{:02}:00.000Z"
SECRET = "hunter2-never-to-be-read"  # noqa: S105 - what no store may hold
SCHEMA = """
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
"""
HEADED = "CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, lastUpdatedAt INTEGER, value TEXT);"

Bubble = dict[str, Any]


def person(text: str, **facts: Any) -> Bubble:
    return {"_v": 3, "type": 1, "text": text, "tokenCount": {"inputTokens": 0, "outputTokens": 0}, **facts}


def agent(text: str = "", **facts: Any) -> Bubble:
    return {"_v": 3, "type": 2, "text": text, "tokenCount": {"inputTokens": 0, "outputTokens": 0}, **facts}


def call(name: str, result: object = None, status: str | None = "completed", **facts: Any) -> Bubble:
    """A call: `params`, `rawArgs` and `result` are JSON in a string."""
    texts = {k: json.dumps(v) if isinstance(v, dict) else v for k, v in {**facts, "result": result}.items()}
    texts = {k: v if k != "additionalData" else facts[k] for k, v in texts.items()}
    tool = {"tool": 7, "name": name, "status": status, "toolCallId": f"call_{name}", **texts}
    return agent(capabilityType=15, toolFormerData={k: v for k, v in tool.items() if v is not None})


def made(path: Path, schema: str = SCHEMA, wal: bool = False) -> sqlite3.Connection:
    """An empty database with credentials in it."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA journal_mode = {'wal' if wal else 'delete'}")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("PRAGMA synchronous = OFF")
    db.executescript(schema)
    for key in ("cursorAuth/accessToken", 'secret://{"extensionId":"x","key":"mcp_tokens"}'):
        put(db, key, SECRET, "ItemTable")
    return db


def put(db: sqlite3.Connection, key: str, value: object, table: str = "cursorDiskKV") -> None:
    held = value if isinstance(value, str | bytes | None) else json.dumps(value)
    db.execute(f"INSERT INTO {table} VALUES (?, ?)", [key, held])


def add(db: sqlite3.Connection, composer_id: str, bubbles: Iterable[Bubble | str | None], **facts: Any) -> None:
    """A conversation, in one transaction."""
    db.execute("BEGIN")
    write(db, composer_id, bubbles, **facts)
    db.execute("COMMIT")


def write(db: sqlite3.Connection, composer_id: str, bubbles: Iterable[Bubble | str | None], **facts: Any) -> None:
    """A text in the place of a bubble is written as it is; for None there is a header alone."""
    headers = []
    for number, bubble in enumerate(bubbles):
        bubble_id = f"{9 - number}{composer_id[:2]}-{number}"  # their order is not that of their keys
        kind = bubble["type"] if isinstance(bubble, dict) else 2
        headers.append({"bubbleId": bubble_id, "type": kind, "createdAt": TIME.format(number % 60)})
        if bubble is not None:
            held = (
                {"bubbleId": bubble_id, "createdAt": TIME.format(59), **bubble} if isinstance(bubble, dict) else bubble
            )
            put(db, f"bubbleId:{composer_id}:{bubble_id}", held)
    about = {
        "_v": 16, "composerId": composer_id, "name": "T", "createdAt": START, "lastUpdatedAt": START + 60_000,
        "modelConfig": {"modelName": "m-1"}, "status": "completed", "fullConversationHeadersOnly": headers,
        "workspaceIdentifier": {"id": "1", "uri": {"fsPath": "/home/me/p", "path": "/home/me/p", "scheme": "file"}},
        "blobEncryptionKey": SECRET, "speculativeSummarizationEncryptionKey": SECRET, **facts,
    }  # fmt: skip
    put(db, f"composerData:{composer_id}", about)


def chat(path: Path, agent_id: str, messages: Iterable[dict[str, Any] | bytes | None], **facts: Any) -> None:
    """The database that the command line keeps a chat in; for None there is a name in its list alone."""
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
        db.executescript("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB); CREATE TABLE auth (token TEXT)")
        db.execute("INSERT INTO auth VALUES (?)", [SECRET])
        root = b"\x0a\x03not\x10\x96\x01\x1d1234"  # fields of other kinds among them
        for message in messages:
            data = json.dumps(message).encode() if isinstance(message, dict) else message
            name = hashlib.sha256(data or b"gone").digest()
            root += b"\x0a\x20" + name
            if data is not None:
                db.execute("INSERT INTO blobs VALUES (?, ?)", [name.hex(), data])
        latest = hashlib.sha256(root).hexdigest()
        db.execute("INSERT INTO blobs VALUES (?, ?)", [latest, root])
        about = {
            "agentId": agent_id,
            "latestRootBlobId": latest,
            "name": "C",
            "createdAt": START,
            **facts,
            "key": SECRET,
        }
        db.execute("INSERT INTO meta VALUES ('0', ?)", [json.dumps(about).encode().hex()])


def result(name: str, text: str, **said: Any) -> dict[str, Any]:
    """What the command line stores of a call `call_<name>`."""
    block = {"type": "tool-result", "toolCallId": f"call_{name}", "toolName": name, "result": text}
    cursor = {"cursor": {"highLevelToolCallResult": said}}
    return {"role": "tool", "content": [block], "providerOptions": cursor}
