"""Builds OpenCode databases, and the folder it had before, from messages written as an export has them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

START = 1_790_000_000_000
SECRET = "hunter2-never-to-be-read"  # noqa: S105 - what no store may hold
SCHEMA = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, directory text NOT NULL,
  title text NOT NULL, version text NOT NULL, tokens_input integer DEFAULT 0 NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, permission text);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE event (id text PRIMARY KEY, data text NOT NULL);
CREATE TABLE account (id text PRIMARY KEY, access_token text NOT NULL);
CREATE TABLE credential (id text PRIMARY KEY, value text NOT NULL);
CREATE TABLE session_share (session_id text PRIMARY KEY, secret text NOT NULL);
CREATE TABLE session_message (id text PRIMARY KEY, data text NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
"""

Message = tuple[dict[str, Any], list[dict[str, Any]]]
"""What a row of `message` holds, and those of its parts."""


def user(text: str, **facts: Any) -> Message:
    return {"role": "user", "agent": "build", **facts}, [{"type": "text", "text": text}]


def agent(*parts: dict[str, Any], output: int = 32, ended: bool = True, **facts: Any) -> Message:
    """A call that is billed 138 fresh tokens, 64 cached, `output` and 8 of reasoning."""
    used = {"input": 138, "output": output, "reasoning": 8, "cache": {"read": 64, "write": 0}, "total": 210 + output}
    none = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    data = {"role": "assistant", "agent": "build", "modelID": "m-1", "cost": 0, "tokens": used if ended else none}
    finish = {"type": "step-finish", "reason": "stop", "tokens": used, "cost": 0}
    return {**data, **({"finish": "stop"} if ended else {}), **facts}, [*parts, *([finish] if ended else ())]


def tool(name: str, given: dict[str, Any], output: str = "", status: str = "completed", **state: Any) -> dict[str, Any]:
    run = {"status": status, "input": given, "output": output, "time": {"start": START, "end": START + 9}, **state}
    return {"type": "tool", "tool": name, "callID": f"call_{name}", "state": run}


def made(path: Path, wal: bool = False) -> sqlite3.Connection:
    """An empty database with credentials in it."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA journal_mode = {'wal' if wal else 'delete'}")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("PRAGMA synchronous = OFF")
    db.executescript(SCHEMA)
    for table in ("account", "credential", "session_share"):
        db.execute(f"INSERT INTO {table} VALUES ('x', ?)", [SECRET])
    return db


def add(db: sqlite3.Connection, session_id: str, messages: Iterable[Message], **columns: Any) -> None:
    """A session in one transaction. A text in the place of a part is written as it is."""
    row = {
        "id": session_id, "project_id": "global", "parent_id": None, "directory": "/w", "title": "T",
        "version": "1.18.33", "tokens_input": 999_999, "time_created": START, "time_updated": START, **columns,
    }  # fmt: skip
    db.execute("BEGIN")
    db.execute(f"INSERT INTO session ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
    for number, message in enumerate(messages):
        say(db, session_id, number, message)
    db.execute("COMMIT")


def say(db: sqlite3.Connection, session_id: str, number: int, message: Message) -> None:
    data, parts = message
    at = START + 1000 * number
    time = {"created": at, **({"completed": at + 500} if "finish" in data else {})}
    message_id = f"msg_{session_id}_{number:04}"
    text = json.dumps({**data, "time": time})
    db.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", [message_id, session_id, at, at, text])
    db.execute("INSERT INTO event VALUES (?, ?)", [message_id, text])
    for n, part in enumerate(parts):
        part_id = f"prt_{session_id}_{number:04}_{n:02}"
        held = part if isinstance(part, str) else json.dumps(part)
        db.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", [part_id, message_id, session_id, at, at, held])
        db.execute("INSERT INTO event VALUES (?, ?)", [part_id, held])


def copied(path: Path, folder: Path) -> Path:
    """A database and its log as they lie there now."""
    folder.mkdir(parents=True, exist_ok=True)
    for end in ("", "-wal"):
        if (beside := path.with_name(path.name + end)).exists():
            shutil.copyfile(beside, folder / beside.name)
    return folder / path.name


def stored(session_id: str, messages: Iterable[Message], folder: Path) -> None:
    """The same session as the older folder has it: a file a message and part, with ids, printed over many lines."""

    def write(place: str, record: dict[str, Any]) -> None:
        path = folder / "storage" / place / f"{record['id']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=2))

    info = {"id": session_id, "projectID": "global", "directory": "/w", "title": "T", "version": "1.0.1"}
    write("session/global", {**info, "time": {"created": START, "updated": START}})
    for number, (data, parts) in enumerate(messages):
        ids = {"id": f"msg_{session_id}_{number:04}", "sessionID": session_id}
        write(f"message/{session_id}", {**ids, **data, "time": {"created": START + 1000 * number}})
        for n, part in enumerate(parts):
            own = {"id": f"prt_{session_id}_{number:04}_{n:02}", "sessionID": session_id, "messageID": ids["id"]}
            write(f"part/{ids['id']}", {**own, **part})
