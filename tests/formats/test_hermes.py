"""Hermes' database, as 0.19 writes it: compactions, rewinds, subagents, tokens by model."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.hermes import FORMAT
from agentsignals.model import Session
from agentsignals.sources import RawFile, Unreadable, read
from agentsignals.sources.local import find
from tests.formats.reading import given

START = 1_795_961_959.25
ROW = dict[str, Any]
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, model_config TEXT, system_prompt TEXT,
  parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, input_tokens INTEGER DEFAULT 0,
  output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0, cache_write_tokens INTEGER DEFAULT 0,
  reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, git_branch TEXT, title TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,
  tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, finish_reason TEXT, reasoning TEXT,
  active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0);
CREATE TABLE session_model_usage (session_id TEXT NOT NULL, model TEXT NOT NULL, task TEXT NOT NULL DEFAULT '',
  input_tokens INTEGER, output_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER,
  reasoning_tokens INTEGER);
"""


def says(role: str, content: str | None, **more: Any) -> ROW:
    return {"role": role, "content": content, **more}


def calls(call_id: str, name: str, **arguments: Any) -> ROW:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return says("assistant", None, tool_calls=json.dumps([call]))


def sessions_of(
    tmp_path: Path, sessions: list[tuple[ROW, list[ROW]]], usage: tuple[tuple[Any, ...], ...] = ()
) -> list[Session]:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA)
        for facts, messages in sessions:
            row = {"source": "cli", "model": "m-1", "started_at": START, **facts}
            db.execute(f"INSERT INTO sessions ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
            for n, message in enumerate(messages, 1):
                row = {"session_id": facts["id"], "timestamp": START + n, **message}
                db.execute(
                    f"INSERT INTO messages ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()]
                )
        db.executemany("INSERT INTO session_model_usage VALUES (?, ?, ?, ?, ?, ?, ?, ?)", usage)
        db.commit()
    files = [file for file in find(str(path)) if isinstance(file, RawFile)]
    found = []
    for file, data in zip(files, read(files), strict=True):
        assert not isinstance(data, Unreadable)
        found += FORMAT.read([given(bytes(data), "hermes", file.uri)]).sessions
    return found


def test_a_session_has_its_words_calls_place_and_tokens_by_model(tmp_path: Path) -> None:
    answered = says("tool", '{"output": "no such file", "exit_code": 2, "error": null}', tool_call_id="c1")
    talk = [says("user", "Chart the bay"), calls("c1", "terminal", command="ls bay"), answered,
            says("assistant", "Done", finish_reason="stop")]  # fmt: skip
    usage = (("s1", "m-1", "", 860, 206, 1200, 0, 28), ("s1", "m-0", "title_generation", 40, 5, 0, 0, 0))
    (session,) = sessions_of(tmp_path, [({"id": "s1", "title": "Bay", "cwd": "/w", "git_branch": "tide"}, talk)], usage)
    assert (session.session_id, session.title, session.cwd, session.branch) == ("s1", "Bay", "/w", "tide")
    assert session.started_at == int(START * 1_000_000)
    assert [turn.text for turn in session.turns] == ["Chart the bay"]
    assert [(c.name, c.status, c.exit_code) for c in session.tool_calls] == [("terminal", "error", 2)]
    assert [(s.model, s.input_tokens, s.cache_read_tokens, s.output_tokens) for s in session.steps if s.is_beside] == [
        ("m-1", 860, 1200, 206),
        ("m-0", 40, None, 5),
    ]


def test_sums_of_a_session_count_where_no_model_has_its_own(tmp_path: Path) -> None:
    facts = {"id": "s1", **dict(zip(TOKENS, (10, 2, 5, 0, 0), strict=True))}
    (session,) = sessions_of(tmp_path, [(facts, [says("user", "a"), says("assistant", "b")])])
    assert [(s.model, s.input_tokens, s.cache_read_tokens) for s in session.steps if s.is_beside] == [("m-1", 10, 5)]


def test_messages_that_a_compaction_wrote_anew_count_once(tmp_path: Path) -> None:
    gone = {"active": 0, "compacted": 1}
    talk = [says("user", "a", **gone), says("assistant", "b", **gone), says("user", "c", **gone),
            says("user", "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted"), says("user", "c"),
            says("assistant", "d")]  # fmt: skip
    (session,) = sessions_of(tmp_path, [({"id": "s1"}, talk)])
    assert [turn.text for turn in session.turns] == ["a", "c"]
    assert [e.kind for e in session.events].count("compaction") == 1
    assert len(session.steps) == 2


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_a_person_went_back_from_is_abandoned(goes_on: bool, tmp_path: Path) -> None:
    talk = [says("user", "a"), says("assistant", "b"), says("user", "c", active=0), says("assistant", "d", active=0)]
    (session,) = sessions_of(tmp_path, [({"id": "s1"}, talk + [says("user", "e")] * goes_on)])
    assert [turn.text for turn in session.turns] == ["a", "e"][: 1 + goes_on]
    assert [step.thread for step in session.steps] == ["main", "abandoned"]
    assert [e.kind for e in session.events].count("rewind") == 1


def test_a_subagents_prompts_are_no_persons_and_a_continuations_are(tmp_path: Path) -> None:
    child = {"parent_session_id": "s1"}
    found = sessions_of(tmp_path, [
        ({"id": "s1"}, [says("user", "a")]),
        ({"id": "s2", "source": "subagent", **child}, [says("user", "b")]),
        ({"id": "s3", **child}, [says("user", "c")]),
    ])  # fmt: skip
    assert {s.session_id: ([t.text for t in s.turns], s.parent_session_id) for s in found} == {
        "s1": (["a"], None), "s2": ([], "s1"), "s3": (["c"], "s1"),
    }  # fmt: skip
