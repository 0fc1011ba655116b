"""The traps of Goose's database that no sample shows (design/formats.md#goose)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.goose import FORMAT
from agentsignals.formats.records import HEAD_BYTES
from agentsignals.model import SESSION_TOTAL
from agentsignals.sources import RawFile
from agentsignals.sources.local import find, read
from tests.formats.reading import claimed, format_of, given, lines, read_one

SECONDS = 1_780_000_000
OLD = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
  session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL, created_at TIMESTAMP, updated_at TIMESTAMP,
  extension_data TEXT DEFAULT '{}', accumulated_output_tokens INTEGER, provider_name TEXT, model_config_json TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
  content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, tokens INTEGER, metadata_json TEXT);
"""
NEW = """
ALTER TABLE sessions ADD COLUMN parent_session_id TEXT;
ALTER TABLE messages ADD COLUMN message_id TEXT;
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT);
CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
  created_timestamp INTEGER NOT NULL, model TEXT, input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER,
  cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL, cost_source TEXT, is_compaction INTEGER DEFAULT 0);
"""


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def message(role: str, *content: object, at: int = 0, **facts: Any) -> dict[str, Any]:
    return {"role": role, "created": SECONDS + at, "content": list(content), **facts}


@pytest.mark.parametrize("version", ["old", "new", "without rowid"])
def test_rows_of_any_version_are_read_with_what_they_have(version: str, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(OLD + (NEW if version == "new" else ""))
        db.execute(
            "INSERT INTO sessions (id, name, working_dir, created_at, updated_at, model_config_json)"
            " VALUES ('s1', 'Greeting', '/w', '2026-05-28 20:26:40', '2026-05-28 20:27:00', ?)",
            ('{"model_name": "m-1"}',),
        )
        # The whole is more than is looked at to recognise it.
        rows = [
            ("user", [text("hi" * HEAD_BYTES)], SECONDS),
            ("assistant", [text("hello")], (SECONDS + 5) * 1000),
            ("user", "{", 1),
        ]
        db.executemany(
            "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES ('s1', ?, ?, ?)",
            [(role, content if isinstance(content, str) else json.dumps(content), at) for role, content, at in rows],
        )
        if version == "new":
            db.execute("UPDATE sessions SET parent_session_id = 's0'")
            db.execute(
                "INSERT INTO usage_ledger (session_id, created_timestamp, model, input_tokens, output_tokens,"
                f" total_tokens, cache_read_tokens) VALUES ('s1', {SECONDS}, 'm-2', 200, 40, 240, 64)"
            )
        if version == "without rowid":
            ((made_by,),) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'messages'")
            db.execute("ALTER TABLE messages RENAME TO former")
            db.execute(f"{made_by.replace('AUTOINCREMENT', '')} WITHOUT ROWID")
            db.execute("INSERT INTO messages SELECT * FROM former")
            db.execute("DROP TABLE former")
        db.commit()
    (file,) = find(str(path))
    assert isinstance(file, RawFile)
    (data,) = read([file], None)
    assert isinstance(data, bytes)
    assert format_of(data, file.uri) == "goose"
    row = given(data, "goose")
    made = read_one(FORMAT, row)
    assert (row.artifact.skipped_reasons, made.title, made.cwd) == ({"bad_shape": 1}, "Greeting", "/w")
    assert made.started_at == SECONDS * 1_000_000
    assert [(e.kind, e.timestamp) for e in made.events[:2]] == [
        ("human_turn", SECONDS * 1_000_000), ("text", (SECONDS + 5) * 1_000_000),
    ]  # fmt: skip
    figures = [(s.model, s.input_tokens, s.output_tokens, s.cache_read_tokens, s.stop_reason) for s in made.steps]
    total = [("m-2", 136, 40, 64, SESSION_TOTAL)]
    assert figures == [("m-1", None, None, None, None), *(total if version == "new" else [])]
    assert made.parent_session_id == ("s0" if version == "new" else None)


def test_a_file_of_lines_is_the_session_that_it_is_called_after() -> None:
    """The program took such files over into its database: the fuller of the two counts."""
    about = {"working_dir": "/w", "description": "Greeting", "message_count": 2, "accumulated_output_tokens": 70}
    rows = [about, message("user", text("hi")), message("assistant", text("hello"), at=3)]
    data, path = lines(*rows) + b"{cut", "/s/20250801_1.jsonl"
    assert claimed(data, path) == ("goose", ["session:20250801_1"])
    stored = {**about, "id": "20250801_1", "session_type": "user", "conversation": rows[1:2]}
    inputs = [given(data, "goose", path), given(stored, "goose", "/s/sessions.db//20250801_1")]
    artifacts = [source.artifact for source in inputs]
    made = read_one(FORMAT, *inputs)
    assert (made.session_id, made.title, made.cwd) == ("20250801_1", "Greeting", "/w")
    assert [(e.text, e.line) for e in made.events[:2]] == [("hi", 2), ("hello", 3)]
    assert made.steps[-1].output_tokens == 70
    assert artifacts[0].skipped_reasons == {"cut_line": 1}
    assert artifacts[1].note is not None and artifacts[1].note.startswith("superseded")
