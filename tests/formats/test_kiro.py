"""The traps of Kiro conversations that no sample shows (design/formats.md#small-formats)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.kiro import FORMAT
from agentsignals.formats.records import Head
from agentsignals.ingest import pipeline
from agentsignals.model import Session
from tests.formats.reading import given, read_one


def prompt(words: str) -> dict[str, Any]:
    return {"Prompt": {"prompt": words}}


def say(words: str) -> dict[str, Any]:
    return {"Response": {"message_id": "", "content": words}}


def entry(content: Any, answer: Any, **user: Any) -> dict[str, Any]:
    return {"user": {"content": content, **user}, "assistant": answer}


def read(*history: Any, hint: str | None = None, **facts: Any) -> Session:
    return read_one(FORMAT, given({"conversation_id": "", "history": history, **facts}, "kiro", "a1", hint))


@pytest.mark.parametrize(
    ("own", "hint", "expected"),
    [("c-1", "h-1", "c-1"), ("", "h-1", "h-1"), ("", None, "a1")],
    ids=["own", "place", "file"],
)
def test_the_session_is_named_by_the_file_its_place_or_the_artifact(own: str, hint: str | None, expected: str) -> None:
    assert read(entry(prompt("hi"), say("ho")), hint=hint, conversation_id=own).session_id == expected


@pytest.mark.parametrize(
    ("document", "keys"),
    [
        ({"conversation_id": "c-1", "history": []}, ["session:c-1"]),
        ({"conversation_id": "", "history": [entry(None, say("x"))]}, []),
        ({"conversation_id": "", "history": [[{}, {}]]}, []),
        ({"conversation_id": "", "history": [{"role": "user"}]}, None),
        ({"conversation_id": "", "history": "x"}, None),
        ({"conversation_id": 7, "history": []}, None),
        ({"history": []}, None),
    ],
)
def test_a_file_without_an_id_belongs_with_its_folder_s_files(document: Any, keys: list[str] | None) -> None:
    claim = FORMAT.claims(Head(json.dumps(document).encode(), "full.jsonl", True))
    assert (claim.keys if claim is not None else None) == keys
    assert claim is None or claim.by_folder == (keys == [])


TABLES = """
CREATE TABLE conversations (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE auth_kv (key TEXT PRIMARY KEY, value TEXT);
INSERT INTO auth_kv VALUES ('token', 'hunter2-never-to-be-read');
"""
NEWER = """
CREATE TABLE conversations_v2 (key TEXT NOT NULL, conversation_id TEXT NOT NULL, value TEXT NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY (key, conversation_id));
"""


def _kept(own_id: str, *prompts: str) -> str:
    history = [{"user": {"content": {"Prompt": {"prompt": prompt}}}, "assistant": None} for prompt in prompts]
    return json.dumps({"conversation_id": own_id, "history": history})


def _prompts(folder: Path) -> dict[str, int]:
    _, store = pipeline.ingest_into([str(folder)], folder.with_name("store"), jobs=1)
    assert not any(b"hunter2" in path.read_bytes() for path in store.folder.rglob("*") if path.is_file())
    return dict(store.sql("SELECT session_id, n_prompts FROM sessions").fetchall())


@pytest.mark.parametrize("newer", [False, True], ids=["older", "newer beside older"])
def test_each_conversation_of_the_database_is_a_session(newer: bool, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with closing(sqlite3.connect(tmp_path / "home" / "data.sqlite3")) as db:
        db.executescript(TABLES + (NEWER if newer else ""))
        rows = [("/w/one", _kept("c-1", "a")), ("/w/two", _kept("c-2", "a", "b")), ("/w/three", "{no json")]
        db.executemany("INSERT INTO conversations VALUES (?, ?)", rows)
        if newer:
            later = [("/w/one", "c-1", _kept("c-1", "a", "b", "c"), 1, 9), ("/w/one", "c-3", _kept("c-3", "a"), 1, 2)]
            db.executemany("INSERT INTO conversations_v2 VALUES (?, ?, ?, ?, ?)", later)
        db.commit()
    assert _prompts(tmp_path / "home") == ({"c-1": 3, "c-2": 2, "c-3": 1} if newer else {"c-1": 1, "c-2": 2})
