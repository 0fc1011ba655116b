"""Zed's threads (design/formats.md#zed): made here, as its source writes them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from agentsignals.ingest import pipeline
from agentsignals.sources import RawFile, Unreadable, local

LEGACY = "CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL, "
LEGACY += "data_type TEXT NOT NULL, data BLOB NOT NULL);"
LATER = "".join(
    f"ALTER TABLE threads ADD COLUMN {name} TEXT;"
    for name in ("parent_id", "folder_paths", "folder_paths_order", "created_at")
)
UPDATED = "2026-09-21T14:00:00.123456+00:00"
WORKTREE = {"worktree_path": "/home/me/p", "git_state": {"current_branch": "main", "remote_url": "x"}}


def agent(*content: object, **results: object) -> dict[str, Any]:
    return {"Agent": {"content": list(content), "tool_results": results, "reasoning_details": None}}


def user(*content: object, message_id: str = "u1") -> dict[str, Any]:
    return {"User": {"id": message_id, "content": list(content)}}


def thread(*messages: object, **facts: object) -> dict[str, Any]:
    snapshot = {"worktree_snapshots": [WORKTREE], "timestamp": "2026-09-21T13:00:00Z"}
    about = {"title": "T", "updated_at": UPDATED, "initial_project_snapshot": snapshot, "version": "0.3.0"}
    model = {"provider": "anthropic", "model": "m-1"}
    return {"messages": list(messages), "model": model, **about, **facts}


def made(path: Path, rows: dict[str, tuple[str, bytes]], schema: str = LEGACY) -> None:
    db = sqlite3.connect(path)
    db.executescript(schema)
    for thread_id, (kind, data) in rows.items():
        query = "INSERT INTO threads (id, summary, updated_at, data_type, data) VALUES (?, 'S', ?, ?, ?)"
        db.execute(query, [thread_id, UPDATED, kind, data])
    db.commit()
    db.close()


def packed(document: dict[str, Any]) -> bytes:
    data: bytes = pa.compress(json.dumps(document).encode(), codec="zstd", asbytes=True)
    return data


HELLO = thread(user({"Text": "hi"}), agent({"Text": "hello"}))


@pytest.mark.parametrize("schema", [LEGACY, LEGACY + LATER], ids=["first", "today"])
def test_rows_of_both_kinds_are_read_and_what_is_no_thread_is_counted(schema: str, tmp_path: Path) -> None:
    rows = {
        "packed": ("zstd", packed(HELLO)),
        "plain": ("json", json.dumps(HELLO).encode()),
        "cut": ("zstd", packed(thread(*[user({"Text": f"{n}" * 99}) for n in range(99)]))[:-9]),
        "broken": ("json", b"{no json"),
        "empty": ("json", b"{}"),
        "brand new": ("lz4", b"\x04\x22"),
    }
    made(tmp_path / "threads.db", rows, schema)
    summary, store = pipeline.ingest_into([str(tmp_path)], tmp_path / "s", jobs=1)
    assert not summary.internal_errors
    events = {i: [e.text for e in store.session(i).events] for i in sorted(store.manifest.sessions)}
    assert events["packed"] == events["plain"] == ["hi", "hello"]
    counted = store.sql("SELECT path, skipped_reasons FROM artifacts WHERE format = 'zed'").fetchall()
    reasons = {path.rpartition("/")[2]: list(json.loads(skipped)) for path, skipped in counted}
    assert {name for name, skipped in reasons.items() if skipped} == {"broken", "cut", "brand new"}, reasons
    assert sorted(store.manifest.sessions) == ["packed", "plain"]


def test_what_unpacks_to_more_than_a_document_may_have_is_no_reason_to_unpack_it(tmp_path: Path) -> None:
    bomb = pa.compress(b'{"messages":["' + b"a" * 2**28, codec="zstd", asbytes=True)
    made(tmp_path / "threads.db", {"t": ("zstd", bomb)})
    (file,) = [f for f in local.find(str(tmp_path)) if isinstance(f, RawFile)]
    (data,) = local.read([file], 64 * 1024)
    assert not isinstance(data, Unreadable) and len(data) == 64 * 1024
