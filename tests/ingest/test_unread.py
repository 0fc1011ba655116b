"""What no format reads is named: never no session without a reason."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.formats import first_fields, homes, unread_file, unread_homes
from agentsignals.formats.head import Head
from agentsignals.ingest import pipeline
from agentsignals.store import Store
from agentsignals.store.index import FIGURES, ArtifactEntry, SessionEntry

SAYING: dict[str, tuple[str, str, str]] = {
    "git-ai": (
        'a.py\n  s_1::t_2 1-3\n---\n{"schema_version":"authorship/3.0.0"}\n',
        "agent_not_read",
        "git-ai: note on a commit",
    ),
    "agent trace": (
        json.dumps({"version": "0.1.0", "id": "x", "timestamp": "t", "files": [{"path": "a.py", "conversations": []}]}),
        "agent_not_read",
        "Agent Trace: record",
    ),
    "typed": (
        json.dumps({"display": "hi", "pastedContents": {}, "timestamp": 1, "project": "/x"}) + "\n",
        "not_sessions",
        "claude-code: list of what was typed",
    ),
    "cursor chat": (
        json.dumps({"schemaVersion": 1, "createdAtMs": 1, "hasConversation": True}),
        "not_sessions",
        "cursor-agent: facts",
    ),
    "codex typed": (json.dumps({"session_id": "x", "ts": 1, "text": "hi"}) + "\n", "not_sessions", "codex: list"),
    "chatgpt": (
        json.dumps([{"title": "x", "mapping": {}, "current_node": "n"}]),
        "other_export",
        "ChatGPT: export of chats",
    ),
    "claude.ai": (json.dumps([{"uuid": "u", "chat_messages": []}]), "other_export", "claude.ai: export"),
    "training": (
        json.dumps({"messages": [{"role": "user", "content": "hi"}]}) + "\n",
        "other_export",
        "chat messages: as models",
    ),
    "anybody": ('{"name": "x", "version": "1", "a@b.c": 2}', "unrecognised", "JSON with name, version, …"),
}
UNLIKE = {
    "agent trace": {"version": "0.1.0", "id": "x", "timestamp": "t", "files": [{"path": "a.py"}]},
    "training": {"messages": [{"role": "user", "content": "hi"}], "tools": [], "model": "m", "id": 1},
    "codex typed": {"session_id": "x", "ts": 1, "text": "hi", "more": 1},
}


@pytest.mark.parametrize("unlike", UNLIKE.values(), ids=UNLIKE)
def test_nobody_is_named_whose_file_it_need_not_be(unlike: dict[str, Any]) -> None:
    assert unread_file(Head(json.dumps(unlike).encode(), "x", complete=True)) is None


def test_what_is_not_read_says_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for name, (text, _, _) in SAYING.items():
        (there / f"{name}.json").write_text(text, encoding="utf-8")
    with closing(sqlite3.connect(there / "data.sqlite3")) as made:
        made.executescript("CREATE TABLE conversations (key, value); CREATE TABLE auth_kv (key, value);")
    found = {**{n: of[1:] for n, of in SAYING.items()}, "kiro": ("agent_not_read", "kiro: database")}
    for run in ("first", "unchanged"):
        assert main(["analyze", str(there), "--no-report", "--store", str(tmp_path / "s"), "--json", "--quiet"]) == 0
        rows = json.loads(capsys.readouterr().out)["unread"]
        assert len(rows) == len(found), run
        for reason, beginning in found.values():
            (row,) = [r for r in rows if r["reason"] == reason and r["what"].startswith(beginning)]
            assert row["files"] == 1 and Path(row["example"]).parent == there
    store = Store(tmp_path / "s")
    assert store.sql("SELECT count(*) FROM artifacts WHERE note LIKE 'git-ai: %'").fetchall() == [(1,)]
    assert main(["analyze", str(there), "--no-report", "--store", str(tmp_path / "s"), "--quiet"]) == 0
    text = capsys.readouterr().out
    assert "not read" in text and "1 git-ai: note on a commit: who wrote its lines, no session, as " in text
    assert "4 of 4 more kinds" in text


def test_field_names_of_others_are_few_short_and_no_words_of_theirs() -> None:
    hostile = {"\x1b[31m": 1, "k" * 99: 1, "sk-4f3e2d1c": 1, "/home/jo/x.py": 1, **{f"f_{c}": 1 for c in "abcdefgh"}}
    said = first_fields(Head(json.dumps(hostile).encode(), "x", complete=True))
    assert said == "JSON with f_a, f_b, f_c, f_d, f_e, f_f, …"


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("", "", "there is no file"),
        ("a.txt", "words", "no file there begins as a trace does"),
        ("a.json", '{"a": 1}', "1 JSON with a, as "),
        ("a.diff", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "no file there begins"),
    ],
)
def test_no_session_without_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, why: str
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    if name:
        (there / name).write_text(text, encoding="utf-8")
    assert main(["analyze", str(there), "--no-report", "--store", str(tmp_path / "s"), "--quiet"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("not read")]
    assert why in line


def test_what_lies_in_an_agents_folder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".pi" / "agent" / "sessions"
    folder.mkdir(parents=True)
    (folder / "index.json").write_text('{"entries": []}')
    (row,) = pipeline.ingest(["pi"], tmp_path / "s").unread
    assert (row.agent, row.what) == ("pi", "JSON with entries")


def test_no_agent_is_both_read_and_not() -> None:
    also = {"hermes", "kiro", "windsurf"}  # what they keep is not read; exports of it, and what a hook writes, are
    assert set(unread_homes()) & set(homes()) == also


@pytest.mark.parametrize(
    ("figures", "is_silent"),
    [
        ({}, True),
        ({"context": "eval"}, False),
        ({"n_turns": 1}, False),
        ({"n_tool_calls": 1}, False),
        ({"input_tokens": 5}, False),
        ({"output_tokens": 5}, False),
        ({"n_turns": None}, False),
    ],
)
def test_a_session_without_prompt_call_and_tokens_is_silent(
    tmp_path: Path, figures: dict[str, Any], is_silent: bool
) -> None:
    store = Store(tmp_path / "s", create=True)
    figures = dict.fromkeys(FIGURES) | {"n_turns": 0, "n_tool_calls": 0} | figures
    store.manifest.sessions["s"] = SessionEntry(shard="one", group="g", **{"context": "product"} | figures)
    store.manifest.files["/a"] = ArtifactEntry(
        source="local", spec="/", bytes=1, stamp=1, container="", key="", session_hint=None, repo_hint=None,
        format="pi", parser=1, group="g", keys=[], shard="one",
    )  # fmt: skip
    store.save()
    assert pipeline.summarize(store, {"/a"}).silent_sessions == ({"pi": 1} if is_silent else {})
