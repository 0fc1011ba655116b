"""Cursor agent transcripts (design/formats.md#cursor): the words, and the calls; nothing else is logged."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.cursor_agent import FORMAT
from agentsignals.formats.records import Head
from agentsignals.ingest import pipeline
from agentsignals.model import Session
from agentsignals.sources import RawFile, Unreadable, local
from agentsignals.store import Store
from tests.formats import cursor_database as cur
from tests.formats import reading

ROW = dict[str, Any]


def said(role: str, *blocks: ROW | str) -> ROW:
    return {
        "role": role,
        "message": {"content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]},
    }


def file(name: str, rows: list[ROW], hint: str | None = None) -> Input:
    return reading.given(reading.lines(*rows), "cursor-agent", name, hint)


def talk(*rows: ROW) -> Session:
    (session,) = FORMAT.read([file("f", list(rows))]).sessions
    return session


BARE = said("user", "hi")


@pytest.mark.parametrize(
    ("rows", "claimed"),
    [
        ([BARE], True),
        ([BARE, {"type": "turn_ended", "status": "success"}], True),
        ([said("assistant", "hi")], True),
        ([BARE, {**BARE, "timestamp": "2026-01-01T00:00:00Z"}], False),
        ([BARE, {**BARE, "id": "m1"}], False),
        ([{**BARE, "sessionId": "s"}], False),
        ([{**BARE, "type": "user"}], False),
        ([{"role": "user", "message": {"content": "x", "id": "msg_1", "usage": {}}}], False),
        ([{"role": "system", "message": {"content": "x"}}], False),
        ([{"role": "user", "content": "x"}], False),
        ([{"type": "turn_ended", "status": "success"}], False),
    ],
)
def test_only_records_of_role_and_message_and_nothing_else_are_cursors(rows: list[ROW], claimed: bool) -> None:
    claim = FORMAT.claims(Head("\n".join(json.dumps(r) for r in rows).encode(), "x.jsonl", True))
    assert (claim is not None) is claimed
    assert claim is None or (claim.keys, claim.by_folder) == ([], True)


def test_the_place_of_the_file_names_the_session_else_the_file_does() -> None:
    files = [file("a", [BARE], "place"), file("b", [BARE])]
    assert [s.session_id for s in FORMAT.read(files).sessions] == ["b", "place"]


def test_of_several_files_of_one_session_the_largest_counts_and_the_others_say_so() -> None:
    files = [file("old", [BARE], "s"), file("new", [BARE, said("assistant", "hello")], "s")]
    (session,) = FORMAT.read(files).sessions
    assert (session.artifact_id, len(session.events)) == ("new", 2)
    assert files[0].artifact.note == "an earlier copy of new, which counts"
    assert files[0].artifact.record_kinds == {"user": 1, "repeated": 1}


@pytest.mark.parametrize(
    ("row", "event"),
    [
        ({"type": "turn_ended", "status": "success"}, []),
        ({"type": "turn_ended", "status": "aborted", "error": "User aborted"}, [("interrupt", "User aborted")]),
        ({"type": "turn_ended", "status": "error", "error": "boom"}, [("api_error", "boom")]),
        ({"type": "brand_new"}, [("unknown", "brand_new")]),
        (said("assistant", {"type": "thinking", "text": "hm"}, {"type": "thinking", "thinking": "so", "text": "no"}),
         [("thinking", "hm"), ("thinking", "so")]),
    ],
)  # fmt: skip
def test_how_a_turn_ended_and_what_is_thought(row: ROW, event: list[tuple[str, str]]) -> None:
    assert [(e.kind, e.text) for e in talk(BARE, row).events[1:]] == event


CHAT = "44444444-aaaa-4bbb-8ccc-dddddddddddd"


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"id": "1", "role": "assistant", "content": list(blocks)}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool-call", "toolCallId": f"call_{name}", "toolName": name, "args": arguments}


def asked(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": f"<user_query>\n{text}\n</user_query>"}]}


THOUGHT = {"type": "reasoning", "text": "hm", "providerOptions": {"cursor": {"modelName": "m-1"}}}
TALK = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": "<user_info>\nShell: zsh\n</user_info>"},
    asked("fix it"),
    assistant(THOUGHT, {"type": "redacted-reasoning", "data": "x"}, {"type": "text", "text": "I look."}),
    assistant(call("Shell", command="npm test")),
    cur.result("Shell", "Exit code: 1\n\nCommand output:\n1 failed", output={"failure": {"exitCode": 1}}),
    assistant(call("StrReplace", path="/p/a.py", old_string="a\nb", new_string="a\nc\nd"), call("Read", path="/p/no")),
    cur.result("StrReplace", "done", output={"success": {}}),
    cur.result("Read", "File not found", isError=True),
    assistant(call("Delete", path="/p/b.py")),
    cur.result("Delete", "Rejected by the user", output={"rejected": {"reason": ""}}),
    None,
    b"\x0a\x02no json",
    assistant({"type": "brand-new"}),
]


def made(folder: Path, messages: list[dict[str, Any] | bytes | None], **facts: Any) -> Path:
    path = folder / "chats" / "0123456789abcdef" / CHAT / "store.db"
    cur.chat(path, CHAT, messages, lastUsedModel="m-2", **facts)
    return path


def read(folder: Path, store: Path) -> tuple[Store, list[Session]]:
    kept = pipeline.ingest_into([str(folder)], store, jobs=1)[1]
    return kept, [kept.session(session_id) for session_id in kept.manifest.sessions]


def test_a_chat_says_what_its_calls_came_to(tmp_path: Path) -> None:
    made(tmp_path / "h", TALK)
    store, (session,) = read(tmp_path / "h", tmp_path / "s")
    assert (session.session_id, session.agent, session.title) == (CHAT, "cursor-agent", "C")
    assert [t.text for t in session.turns] == ["fix it"]
    ended = [(c.name, c.status, c.outcome, c.exit_code) for c in session.tool_calls]
    assert ended == [
        ("Shell", "error", "exit_nonzero", 1),
        ("StrReplace", "ok", "done", None),
        ("Read", "error", "error_result", None),
        ("Delete", "rejected", "refused", None),
    ]
    (edit,) = session.edits
    assert (edit.path, edit.added, edit.removed, session.model) == ("/p/a.py", 2, 1, "m-2")
    assert [s.model for s in session.steps] == ["m-1", *["m-2"] * 4] and session.conventions == []
    said = [(e.kind, e.text) for e in session.events if e.kind in ("meta", "thinking", "text", "unknown")]
    assert said == [
        ("meta", "You are an agent."),
        ("meta", "<user_info>\nShell: zsh\n</user_info>"),
        ("thinking", "hm"),
        ("thinking", ""),
        ("text", "I look."),
        ("unknown", "brand-new"),
    ]
    assert store.sql("SELECT skipped_reasons FROM artifacts").fetchall() == [('{"bad_shape":2}',)], (
        "one gone, one no JSON"
    )
    held = [p.name for p in store.folder.rglob("*") if p.is_file() and cur.SECRET.encode() in p.read_bytes()]
    assert held == []


@pytest.mark.parametrize("summarised", [False, True])
def test_a_chat_and_its_transcript_are_one_session(tmp_path: Path, summarised: bool) -> None:
    """A chat says more, unless what came before a compaction is gone from its list."""
    summary = {"role": "user", "content": "so far", "providerOptions": {"cursor": {"isSummary": True}}}
    made(tmp_path / "h", [*([summary] if summarised else []), asked("go on"), assistant({"type": "text", "text": "!"})])
    transcript = tmp_path / "h/projects/p/agent-transcripts" / CHAT / f"{CHAT}.jsonl"
    transcript.parent.mkdir(parents=True)
    lines = [{"role": "user", "message": {"content": [{"type": "text", "text": text}]}} for text in ("go", "go on")]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    store, (session,) = read(tmp_path / "h", tmp_path / "s")
    assert session.session_id == CHAT
    assert [t.text for t in session.turns] == (["go", "go on"] if summarised else ["go on"])
    (note,) = [note for (note,) in store.sql("SELECT note FROM artifacts").fetchall() if note]
    assert note.endswith("which counts") and ("store.db" in note) is not summarised


def test_a_summary_stands_for_what_it_took_the_place_of(tmp_path: Path) -> None:
    summary = {"role": "user", "content": "so far", "providerOptions": {"cursor": {"isSummary": True}}}
    made(tmp_path / "h", [summary, asked("go on")], subagentInfo={"parentAgentId": "elsewhere"})
    _, (session,) = read(tmp_path / "h", tmp_path / "s")
    assert [(e.kind, e.text) for e in session.events] == [("compaction", "so far"), ("meta", "go on")]
    assert (session.parent_session_id, session.turns) == ("elsewhere", [])


def test_a_chat_without_messages_is_no_session(tmp_path: Path) -> None:
    made(tmp_path / "h", [])
    store, sessions = read(tmp_path / "h", tmp_path / "s")
    assert (sessions, store.sql("SELECT note FROM artifacts").fetchall()) == ([], [("a draft: nothing was sent",)])


def test_any_bytes_in_the_place_of_a_list_or_of_what_is_said_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    path = made(tmp_path / "h", TALK)
    draw = random.Random(5)  # noqa: S311 - what is spoiled is the same each time
    with closing(sqlite3.connect(path)) as db, db:
        whole = json.loads(bytes.fromhex(db.execute("SELECT value FROM meta").fetchone()[0]))["latestRootBlobId"]
        (root,) = db.execute("SELECT data FROM blobs WHERE id = ?", [whole]).fetchone()
    for _ in range(60):
        spoiled = bytearray(root[: draw.randrange(len(root))])
        for _ in range(draw.randrange(4) if spoiled else 0):
            spoiled[draw.randrange(len(spoiled))] = draw.randrange(256)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE blobs SET data = ? WHERE id = ?", [bytes(spoiled), whole])
        (file,) = local.find(str(tmp_path / "h"))
        assert isinstance(file, RawFile)
        (data,) = local.read([file], None)
        assert not isinstance(data, Unreadable) and bytes(data).startswith(b'{"cursorChat":')
    for value in ("", "zz", "7b", "7b7d", "[]", json.dumps({"agentId": 1}), None, b"\xff"):
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE meta SET value = ?", [value])
        (found,) = local.find(str(tmp_path / "h"))
        assert isinstance(found, Unreadable) and found.reason == "no_sessions"
