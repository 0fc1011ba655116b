"""The database of Cursor's IDE (design/formats.md#cursor): made here, as those who read it describe it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.cursor_agent import FORMAT
from agentsignals.ingest import pipeline
from agentsignals.model import Session, from_iso
from agentsignals.sources import RawFile, Unreadable, local
from agentsignals.store import Store
from tests.formats import cursor_database as cur
from tests.formats import reading

WORK, CHILD, DRAFT = "11111111-aaaa-4bbb-8ccc-dddddddddddd", "task-call_1\nfc_2", "22222222-aaaa-4bbb-8ccc-dddddddddddd"
OTHER = "33333333-aaaa-4bbb-8ccc-dddddddddddd"
RUN = {"command": "npm test", "cwd": "/home/me/p/web"}
TALK = [
    cur.person("fix the test", modelInfo={"modelName": "m-2"}),
    cur.agent(thinking={"text": "where is it?", "signature": "s"}),
    cur.agent("Let me look."),
    cur.call("run_terminal_command_v2", {"output": "1 failed", "exitCodeV2": 1}, params=RUN, modelCallId="call-1"),
    cur.call("read_file_v2", {"contents": "x = 1"}, params={"targetFile": "/home/me/p/a.py"}, modelCallId="call-1"),
    cur.call(
        "edit_file_v2",
        {"beforeContentId": "composer.content.1", "afterContentId": "composer.content.2"},
        params={"relativeWorkspacePath": "a.py"},
        modelCallId="call-2",
    ),
    cur.person("<system_notification>\nA task has ended.\n</system_notification>"),
    cur.person("go on", isSimulatedMsg=True),
    None,
    "{no json",
    cur.agent(capabilityType=22),
    cur.agent("Done.", tokenCount={"inputTokens": 900, "outputTokens": 30}),
    cur.agent(errorDetails={"message": "the provider is busy"}),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the IDE beside the transcripts that it wrote of a session, and the CLI of another."""
    home = tmp_path_factory.mktemp("cursor")
    with cur.made(home / "state.vscdb", cur.SCHEMA + cur.HEADED) as db:
        for n, text in ((1, "a\nb\nc\nd\n"), (2, "a\nB\nc\nd\ne\n")):
            cur.put(db, f"composer.content.{n}", text)
        cur.put(db, f"agentKv:blob:{'0' * 64}", cur.SECRET)
        cur.add(db, WORK, TALK, status="aborted")
        cur.add(db, CHILD, [cur.person("look"), cur.agent("seen")], subagentInfo={"parentComposerId": WORK})
        cur.add(db, DRAFT, [])
        cur.put(db, f"composerData:{OTHER}", None)  # Cursor empties what it no longer wants
        cur.put(db, f"bubbleId:{WORK}:left-behind", cur.agent("an older generation"))
        db.execute("INSERT INTO composerHeaders VALUES (?, ?, '{}')", [WORK, cur.START + 60_000])
    db.close()
    for session_id, words in ((WORK, "fix the test"), (OTHER, "fix")):
        text = f"<user_query>{words}</user_query>"
        line = {"role": "user", "message": {"content": [{"type": "text", "text": text}]}}
        folder = home / "projects" / "home-me-p" / "agent-transcripts" / session_id
        folder.mkdir(parents=True)
        (folder / f"{session_id}.jsonl").write_text(json.dumps(line) + "\n")
    return home


@pytest.fixture(scope="module")
def store(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return pipeline.ingest_into([str(home)], tmp_path_factory.mktemp("store") / "s", jobs=1)[1]


def test_a_session_of_the_ide_and_of_its_transcript_is_one(store: Store) -> None:
    work, other = store.session(WORK), store.session(OTHER)
    assert len(store.manifest.sessions) == 3, "a draft is none"
    assert (work.agent, work.title, work.cwd, work.model) == ("cursor-agent", "T", "/home/me/p", "m-2")
    assert [t.text for t in work.turns] == ["fix the test"], "what the program wrote is nobody's turn"
    assert ([t.text for t in other.turns], other.conventions) == (["fix"], ["thinking_not_logged"])
    rows = store.sql("SELECT note, skipped_reasons FROM artifacts ORDER BY path").fetchall()
    notes = {note for note, _ in rows if note}
    assert notes == {
        "a draft: nothing was sent",
        "an earlier copy of the conversation in the IDE's database, which counts",
    }
    assert sorted(reasons for _, reasons in rows if reasons != "{}") == ['{"bad_shape":1}']


def test_bubbles_are_read_in_the_order_that_the_conversation_lists_them_and_at_its_times(store: Store) -> None:
    work = store.session(WORK)
    said = [(e.kind, e.text) for e in work.events if e.kind not in ("tool_call", "tool_result", "human_turn")]
    assert said == [
        ("thinking", "where is it?"),
        ("text", "Let me look."),
        ("notification", TALK[6]["text"]),
        ("notification", "go on"),
        ("meta", "a bubble that is listed, and no longer stored"),
        ("compaction", "{}"),
        ("text", "Done."),
        ("api_error", "the provider is busy"),
        ("interrupt", "aborted"),
    ]
    assert work.events[0].timestamp == from_iso(cur.TIME.format(0)), "not when the bubble was written anew"
    assert [(c.step, c.class_, c.path, c.status, c.exit_code) for c in work.tool_calls] == [
        (0, "test", None, "error", 1),
        (0, "read", "a.py", "ok", None),
        (1, "edit", "a.py", "ok", None),
    ]
    assert [(e.start_line, e.added, e.removed) for e in work.edits] == [(2, 1, 1), (5, 1, 0)]
    assert [(s.input_tokens, s.output_tokens) for s in work.steps] == [(None, None), (None, None), (900, 30)]


def test_a_subagent_has_no_turns_and_an_id_that_can_be_typed(store: Store) -> None:
    (child,) = [s for s in map(store.session, store.manifest.sessions) if s.parent_session_id]
    assert (child.parent_session_id, child.turns) == (WORK, [])
    assert child.session_id.isprintable() and child.session_id.startswith("task-call_1")


def test_no_credential_reaches_a_store(store: Store, home: Path) -> None:
    held = [p.name for p in store.folder.rglob("*") if p.is_file() and cur.SECRET.encode() in p.read_bytes()]
    assert held == [] and not any(cur.SECRET.encode() in data for data in contents(home).values())


def test_no_value_is_read_but_those_of_the_session(tmp_path: Path) -> None:
    """Every other value stands on pages that can't be read any more."""
    db = cur.made(tmp_path / "state.vscdb")
    for key, table in (("cursorAuth/refreshToken", "ItemTable"), ("agentKv:blob:1", "cursorDiskKV")):
        cur.put(db, key, "Q" * 40_000, table)
    cur.add(db, OTHER, [cur.person("Q" * 40_000)])
    cur.add(db, WORK, [cur.person("hi"), cur.agent("hello")])
    db.close()
    path = tmp_path / "state.vscdb"
    data = bytearray(path.read_bytes())
    for at in range(0, len(data), 4096):
        if data[at + 4 : at + 8] == b"QQQQ":
            data[at : at + 4] = b"\xff" * 4  # where the value goes on
    path.write_bytes(data)
    db = sqlite3.connect(path)
    with pytest.raises(sqlite3.DatabaseError, match="malformed"):
        db.execute("SELECT value FROM ItemTable").fetchall()
    db.close()
    files = [file for file in local.find(str(tmp_path)) if isinstance(file, RawFile)]
    assert [file.key for file in files] == [WORK, OTHER], "found by their keys"
    intact, damaged = local.read(files, None)
    assert isinstance(intact, bytes) and b"hello" in intact
    assert isinstance(damaged, Unreadable) and damaged.reason == "bad_database"


def test_only_the_conversation_that_changed_is_read_again(tmp_path: Path) -> None:
    with cur.made(tmp_path / "state.vscdb", wal=True) as db:
        for composer_id in (WORK, OTHER):
            cur.add(db, composer_id, [cur.person("hi"), cur.call("read_file", status="loading", params={"path": "a"})])
        place = str(tmp_path / "state.vscdb")
        first = pipeline.ingest([place], tmp_path / "s", jobs=1)
        done = {"bubbleId": "811-1", **cur.call("read_file", {"contents": "1"}, params={"path": "a"})}
        cur.put(db, f"bubbleId:{WORK}:811-1", done)
        second, store = pipeline.ingest_into([place], tmp_path / "s", jobs=1)
    db.close()
    assert (first.parsed, second.parsed, second.unchanged) == (2, 1, 1)
    assert [store.session(i).tool_calls[0].status for i in (WORK, OTHER)] == ["ok", "none"]


def test_before_version_3_a_conversation_holds_its_bubbles(tmp_path: Path) -> None:
    db = cur.made(tmp_path / "state.vscdb")
    said = [{"bubbleId": "b", **cur.person("hi")}, {"bubbleId": "c", **cur.agent("hello", thinking="so")}]
    cur.add(db, WORK, [], conversation=said, modelConfig={"modelName": "default"})
    held = {"fullConversationHeadersOnly": [{"bubbleId": "b", "type": 1}], "conversationMap": {"b": said[0]}}
    cur.put(db, f"composerData:{OTHER}", held)
    db.close()
    work, other = map(read, contents(tmp_path).values())
    assert [(e.kind, e.text) for e in work.events] == [("human_turn", "hi"), ("thinking", "so"), ("text", "hello")]
    assert work.model is None, "`default` names none"
    assert [t.text for t in other.turns] == ["hi"]


def test_chats_of_the_panel_before_composers_are_read_from_the_database_of_a_workspace(tmp_path: Path) -> None:
    db = cur.made(tmp_path / "state.vscdb", cur.SCHEMA.splitlines()[1])
    said = [{"type": "user", "text": "hi"}, {"type": "ai", "rawText": "hello"}, {"type": "brand_new"}]
    tabs = [{"tabId": WORK, "chatTitle": "A chat", "bubbles": said}, {"tabId": "empty", "bubbles": []}]
    cur.put(db, "workbench.panel.aichat.view.aichat.chatdata", {"tabs": tabs}, "ItemTable")
    composers = [{"composerId": OTHER, "conversation": [cur.person("x")]}, {"composerId": "elsewhere", "name": "n"}]
    cur.put(db, "composer.composerData", {"allComposers": composers}, "ItemTable")
    db.close()
    chat, composer = map(read, contents(tmp_path).values())
    events = [("human_turn", "hi"), ("text", "hello"), ("unknown", "bubble of type brand_new")]
    assert ([(e.kind, e.text) for e in chat.events], chat.title) == (events, "A chat")
    assert [t.text for t in composer.turns] == ["x"]


def test_the_databases_are_found_at_home(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path / "Roaming"))
    for place in (".config", "Library/Application Support", "Roaming"):
        folder = tmp_path / place / "Cursor/User/globalStorage"
        folder.mkdir(parents=True)
        shutil.copyfile(home / "state.vscdb", folder / "state.vscdb")
    assert len(local.found_homes()["cursor-agent"]) == 3


def read(content: bytes | list[Any]) -> Session:
    (session,) = FORMAT.read(
        [reading.given(content if isinstance(content, bytes) else reading.lines(*content), "cursor-agent")]
    ).sessions
    return session


def contents(folder: Path) -> dict[str, bytes]:
    files = [f for f in local.find(str(folder)) if isinstance(f, RawFile) and f.container]
    held = zip([f.uri for f in files], local.read(files, None), strict=True)
    return {uri: data for uri, data in held if not isinstance(data, Unreadable)}
