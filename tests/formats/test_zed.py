"""Zed's threads (design/formats.md#zed): made here, as its source writes them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from agentsignals.formats.zed import FORMAT
from agentsignals.ingest import pipeline
from agentsignals.model import Session, from_iso
from agentsignals.sources import RawFile, Unreadable, local
from tests.formats.reading import read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native" / "zed"
LEGACY = "CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL, "
LEGACY += "data_type TEXT NOT NULL, data BLOB NOT NULL);"
LATER = "".join(
    f"ALTER TABLE threads ADD COLUMN {name} TEXT;"
    for name in ("parent_id", "folder_paths", "folder_paths_order", "created_at")
)
UPDATED = "2026-09-21T14:00:00.123456+00:00"
WORKTREE = {"worktree_path": "/home/me/p", "git_state": {"current_branch": "main", "remote_url": "x"}}


def use(name: str, call_id: str = "c1", **given: object) -> dict[str, Any]:
    return {"ToolUse": {"id": call_id, "name": name, "raw_input": "", "input": given, "is_input_complete": True}}


def result(text: object, call_id: str = "c1", is_error: bool = False, output: object = None) -> dict[str, Any]:
    return {call_id: {"tool_use_id": call_id, "is_error": is_error, "content": text, "output": output}}


def agent(*content: object, **results: object) -> dict[str, Any]:
    return {"Agent": {"content": list(content), "tool_results": results, "reasoning_details": None}}


def user(*content: object, message_id: str = "u1") -> dict[str, Any]:
    return {"User": {"id": message_id, "content": list(content)}}


def thread(*messages: object, **facts: object) -> dict[str, Any]:
    snapshot = {"worktree_snapshots": [WORKTREE], "timestamp": "2026-09-21T13:00:00Z"}
    about = {"title": "T", "updated_at": UPDATED, "initial_project_snapshot": snapshot, "version": "0.3.0"}
    model = {"provider": "anthropic", "model": "m-1"}
    return {"messages": list(messages), "model": model, **about, **facts}


def read(document: dict[str, Any]) -> Session:
    return read_one(FORMAT, {"zedThread": {"id": "t1", "updated_at": UPDATED}, **document})


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


FAILED = 'Command "npm test" failed with exit code 2.\n\n```\nboom\n```'


@pytest.mark.parametrize(
    ("text", "is_error", "status", "code"),
    [
        ("```\nfine\n```", False, "ok", None),
        ([{"Text": FAILED}], False, "error", 2),
        ("```\nCommand \"x\" failed with exit code 2.\n```", False, "ok", None),
        ("The user stopped this command. Output captured before stopping:\n\nx", False, "cancelled", None),
        ('Command "x" timed out. Output captured before timeout:\n\nx', False, "error", None),
        ("Command terminated unexpectedly. No output was captured.", False, "error", None),
        ("Permission to run tool denied by user", True, "rejected", None),
        ("Tool canceled by user", True, "cancelled", None),
        ("No such directory", True, "error", None),
    ],
)  # fmt: skip
def test_what_became_of_a_command(text: object, is_error: bool, status: str, code: int | None) -> None:
    call = use("terminal", command="npm test", cd="p")
    (made,) = read(thread(user({"Text": "x"}), agent(call, **result(text, is_error=is_error)))).tool_calls
    assert (made.command, made.status, made.exit_code) == ("npm test", status, code)


REPLACED = {"old_text": "1", "new_text": "2"}
MOVED = {"source_path": "p/a", "destination_path": "p/b"}
DIFF = "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"


@pytest.mark.parametrize(
    ("call", "output", "edits"),
    [
        (use("edit_file", path="p/a.py"), {"diff": DIFF, "old_text": "b"}, [("a.py", "modify", 2, 1, 1)]),
        (use("edit_file", path="p/a.py"), {"old_text": "a\nb\n", "new_text": "a\nc\n"}, [("a.py", "modify", 2, 1, 1)]),
        (use("write_file", path="p/a.py"), {"old_text": "", "new_text": "1\n2\n"}, [("a.py", "create", 1, 2, 0)]),
        (use("edit_file", path="a.py", edits=[REPLACED]), None, [("a.py", "modify", None, 1, 1)]),
        (use("delete_path", path="p/a.py"), None, [("a.py", "delete", None, 0, None)]),
        (use("move_path", **MOVED), None, [("a", "delete", None, 0, None), ("b", "rename", None, None, None)]),
        (use("copy_path", **MOVED), None, [("b", "create", None, None, None)]),
    ],
)  # fmt: skip
def test_lines_of_an_edit(call: dict[str, Any], output: object, edits: list[object]) -> None:
    """Paths begin with the name of the project's folder."""
    session = read(thread(agent(call, **result("done", output=output))))
    assert [(e.path, e.op, e.start_line, e.added, e.removed) for e in session.edits] == edits


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not here")
def test_the_first_form_of_the_table_is_that_of_the_corpus(tmp_path: Path) -> None:
    made(
        tmp_path / "threads.db",
        {"t": ("json", json.dumps(HELLO).encode())},
        (CORPUS / "zed-legacy-threads.sql").read_text(),
    )
    (file,) = [f for f in local.find(str(tmp_path)) if isinstance(f, RawFile)]
    assert b"hello" in bytes(next(local.read([file], None)))  # type: ignore[arg-type]


def test_a_thread_has_its_columns_and_no_times_of_its_own(tmp_path: Path) -> None:
    made(tmp_path / "threads.db", {"child": ("zstd", packed(HELLO))}, LEGACY + LATER)
    db = sqlite3.connect(tmp_path / "threads.db")
    db.execute("UPDATE threads SET parent_id = 'main', folder_paths = '/home/me/a' || char(10) || '/home/me/b'")
    db.commit()
    db.close()
    _, store = pipeline.ingest_into([str(tmp_path)], tmp_path / "s", jobs=1)
    child = store.session("child")
    assert (child.parent_session_id, child.cwd, child.branch) == ("main", "/home/me/a", "main")
    assert (child.started_at, child.ended_at) == (from_iso("2026-09-21T13:00:00Z"), from_iso(UPDATED))
    assert child.turns == [] and {e.timestamp for e in child.events} == {None}
