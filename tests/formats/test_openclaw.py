"""OpenClaw, which keeps Pi's entries in a database of its own (design/formats.md#openclaw)."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from agentsignals.formats import formats
from agentsignals.formats.pi import FORMAT
from agentsignals.ingest import pipeline
from agentsignals.store import Store
from tests.formats.reading import given, lines, read_one

SECRET = "hunter2-never-to-be-read"  # noqa: S105 - what no store may hold
SCHEMA = """
CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json TEXT);
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, transcript_updated_at INTEGER,
  parent_session_key TEXT, spawned_by TEXT);
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER, event_zstd BLOB);
CREATE TABLE auth_profile_store (id TEXT, value TEXT);
"""
MESSAGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("user", {"content": "Run it", "__openclaw": {"senderIsOwner": True}}),
    (
        "assistant",
        {
            "content": [{"type": "toolCall", "id": "c1", "name": "exec", "arguments": {"command": "make"}}],
            "model": "toy",
            "usage": {"input": 137, "output": 40, "cacheRead": 64, "reasoningTokens": 8, "cost": {"total": 0.25}},
        },
    ),
    (
        "toolResult",
        {
            "toolCallId": "c1",
            "toolName": "exec",
            "content": [{"type": "text", "text": "no rule\n\n(Command exited with code 3)"}],
            "details": {"status": "completed", "exitCode": 3},
            "isError": False,
        },
    ),
    # Its call was not kept.
    ("toolResult", {"toolCallId": "c2", "toolName": "nothing", "content": "Tool nothing not found", "isError": True}),
)


def events(session_id: str) -> list[dict[str, Any]]:
    at = "2026-11-23T16:26:{:02}.000Z"
    made = [{"type": "session", "version": 4, "id": session_id, "timestamp": at.format(0), "cwd": "/w"}]
    for n, (role, facts) in enumerate(MESSAGES, 1):
        before = f"{session_id}-{n - 1}" if n > 1 else None
        row = {"type": "message", "id": f"{session_id}-{n}", "parentId": before, "timestamp": at.format(n)}
        made.append({**row, "message": {"role": role, **facts}})
    return made


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """What is made of a database of a session, one that its agent asked for, and one without an event."""
    folder = tmp_path_factory.mktemp("openclaw")
    path = folder / "agents/main/agent/openclaw-agent.sqlite"
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as db:
        db.executescript(SCHEMA)
        db.execute("INSERT INTO auth_profile_store VALUES ('x', ?)", [SECRET])
        db.execute("INSERT INTO session_nodes VALUES ('agent:main:main', 's-main', '{}')")
        for session_id, asked_by in (("s-main", None), ("s-child", "agent:main:main"), ("s-empty", None)):
            db.execute("INSERT INTO session_windows VALUES (?, 'k', 9, NULL, ?)", [session_id, asked_by])
            for seq, event in enumerate(events(session_id) if session_id != "s-empty" else ()):
                row = [session_id, seq, json.dumps(event, indent=1), 1_795_451_170_000 + seq]
                db.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, NULL)", row)
        db.execute("INSERT INTO transcript_events VALUES ('s-main', 9, NULL, 1, X'28b52ffd')")
    db.close()
    return pipeline.ingest_into([str(folder / "agents")], folder / "store", jobs=1)[1]


def test_its_database_holds_pis_entries(store: Store) -> None:
    columns = "session_id, agent, n_prompts, parent_session_id, input_tokens, cache_read_tokens"
    asked = f"SELECT {columns} FROM sessions ORDER BY 1"
    assert store.sql(asked).fetchall() == [
        ("s-child", "openclaw", 0, "s-main", 137, 64),
        ("s-main", "openclaw", 1, None, 137, 64),
    ]
    asked = "SELECT DISTINCT name, class, status, outcome, exit_code FROM tool_calls"
    assert store.sql(asked).fetchall() == [("exec", "shell", "error", "exit_nonzero", 3)]
    asked = "SELECT output_tokens, reasoning_tokens, cost_usd FROM steps WHERE session_id = 's-main'"
    assert store.sql(asked).fetchall() == [(40, 8, 0.25)]


def test_what_is_compressed_is_said(store: Store) -> None:
    unknown = "SELECT text FROM events WHERE kind = 'unknown'"
    assert store.sql(unknown).fetchall() == [("compressed event",)]


def test_credentials_beside_are_never_read(store: Store) -> None:
    files = [path for path in store.folder.rglob("*") if path.is_file()]
    assert files
    assert not any(SECRET.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("path", "marks", "agent"),
    [
        ("/h/.openclaw/agents/main/sessions/s.jsonl", False, "openclaw"),
        ("/h/.clawdbot/agents/main/sessions/s.jsonl", False, "openclaw"),
        ("/h/anywhere/s.jsonl", True, "openclaw"),
        ("/h/.pi/agent/sessions/s.jsonl", False, "pi"),
    ],
)
def test_whose_file_it_is(path: str, marks: bool, agent: str) -> None:
    data = lines(*events("s"))
    data = data if marks else data.replace(b"__openclaw", b"beside")
    assert read_one(FORMAT, given(data, "pi", path)).agent == agent


def test_it_is_looked_for_where_it_lives() -> None:
    fork = next(profile for profile in formats()["pi"].forks if profile.agent == "openclaw")
    assert "~/.openclaw/agents" in fork.homes
