"""The traps of Crush's databases that no sample shows (design/formats.md#crush)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import by_name
from agentsignals.formats.crush import FORMAT
from agentsignals.formats.records import HEAD_BYTES
from agentsignals.model import SESSION_TOTAL
from agentsignals.sources import RawFile, Unreadable
from agentsignals.sources.local import existing_paths, find, read
from tests.formats.reading import format_of, given, read_one

SECONDS = 1_780_000_000
SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER,
  prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL NOT NULL DEFAULT 0.0, updated_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL);
CREATE TABLE files (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, path TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
  parts BLOB NOT NULL default '[]', model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
"""


def part(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


def test_a_list_of_projects_leads_to_their_databases(tmp_path: Path) -> None:
    """In whatever form it is written; a list that can't be read is named."""
    folders = [tmp_path / name / ".crush" for name in ("one", "two [x]", "gone")]
    for folder in folders[:2]:
        folder.mkdir(parents=True)
        (folder / "crush.db").touch()
    rows = [{"path": str(folder.parent), "data_dir": str(folder)} for folder in folders]
    rows[0]["data_dir"] = ".crush"
    for listed in ({"projects": rows}, rows, {"projects": {row["path"]: row for row in rows}}):
        (tmp_path / "projects.json").write_text(json.dumps(listed), encoding="utf-8")
        found = existing_paths([f"{tmp_path}/projects.json:data_dir/crush.db"])
        assert sorted(found) == [folder / "crush.db" for folder in folders[:2]]
    (tmp_path / "projects.json").write_text("{", encoding="utf-8")
    assert existing_paths([f"{tmp_path}/projects.json:data_dir/crush.db"]) == [tmp_path / "projects.json"]


@pytest.mark.parametrize("has_summaries", [False, True])
def test_rows_of_any_version_are_read_with_what_they_have(has_summaries: bool, tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".crush"
    folder.mkdir(parents=True)
    more = "ALTER TABLE messages ADD COLUMN is_summary_message INTEGER DEFAULT 0 NOT NULL;" if has_summaries else ""
    with closing(sqlite3.connect(folder / "crush.db")) as db:
        db.executescript(SCHEMA + more)
        for name, parent, cost in (("s1", None, 0.3), ("m$$c", "s1", 0.1)):
            db.execute(
                "INSERT INTO sessions VALUES (?, ?, 'Greeting', 0, 900, 40, ?, ?, ?)", (name, parent, cost, 9, 7)
            )
        parts = [[part("text", text="hi" * HEAD_BYTES)], [part("text", text="All that was.")]]
        for n, (role, said) in enumerate(zip(("user", "assistant"), parts, strict=True)):
            row = (f"m{n}", role, json.dumps(said), SECONDS + n, SECONDS + n)
            db.execute("INSERT INTO messages (id, session_id, role, parts, model, created_at, updated_at)"
                       " VALUES (?, 's1', ?, ?, 'm-1', ?, ?)", row)  # fmt: skip
        if has_summaries:
            db.execute("UPDATE messages SET is_summary_message = 1 WHERE id = 'm1'")
        db.commit()
    files = [file for file in find(str(tmp_path)) if isinstance(file, RawFile)]
    assert [file.key for file in files] == ["m$$c", "s1"]
    (data,) = read(files[1:], None)
    assert isinstance(data, bytes)
    assert format_of(data, files[1].uri) == "crush"
    made = read_one(FORMAT, given(data, "crush", files[1].uri))
    assert made.cwd is not None and made.cwd.endswith("/project")
    kinds = ["compaction", "meta"] if has_summaries else ["text"]
    assert [e.kind for e in made.events] == ["human_turn", *kinds, "meta"]
    figures = [(s.model, s.input_tokens, s.output_tokens, s.cost_usd, s.stop_reason) for s in made.steps]
    assert figures == [("m-1", None, None, None, None), (None, None, None, 0.2, SESSION_TOTAL)]


def test_agents_that_call_tables_alike_are_told_apart_by_columns(tmp_path: Path) -> None:
    """Both have `sessions` and `messages`; a table that is nobody's is of a version that is not known."""
    with closing(sqlite3.connect(tmp_path / "x.db")) as db:
        db.executescript(
            "CREATE TABLE schema_version (version INTEGER);"
            " CREATE TABLE sessions (id TEXT); CREATE TABLE messages (id TEXT)"
        )
    (file,) = find(str(tmp_path / "x.db"))
    assert isinstance(file, Unreadable) and file.reason == "unknown_database"
    named = [database for name in ("crush", "goose") for database in by_name(name).databases]
    assert len(named) == 2 and all({"sessions", "messages"} <= d.columns.keys() for d in named)
