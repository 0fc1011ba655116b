"""Factory Droid (design/formats.md#small-formats): reminders around the words, notices in the person's name,
snapshots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.factory_droid import FORMAT
from agentsignals.formats.head import Head
from agentsignals.model import Session
from tests.formats.reading import format_of, given, lines, read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
ROW = dict[str, Any]
START: ROW = {"type": "session_start", "id": "s1", "title": "t", "owner": "me", "version": 2, "cwd": "/w"}
REMINDER = "<system-reminder>\nSystem info\nModel: Claude Opus 4.6\n</system-reminder>"
COMPACTED: ROW = {"type": "compaction_state", "summaryText": "so far", "removedCount": 3}
NAG = "<system-reminder>IMPORTANT: no plan yet</system-reminder>"


def message(id_: str | None, role: str, *blocks: ROW | str, **more: object) -> ROW:
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    row = {
        "type": "message",
        "id": id_,
        "timestamp": "2026-03-01T10:00:00Z",
        "message": {"role": role, "content": content, **more},
    }
    return {key: value for key, value in row.items() if value is not None}


def file(name: str, *rows: ROW) -> Input:
    return given(lines(*rows), "factory-droid", name)


def talk(*rows: ROW, start: ROW = START) -> Session:
    return read_one(FORMAT, file("f", start, *rows))


def events(session: Session) -> list[tuple[str, str | None]]:
    return [(e.kind, e.text) for e in session.events]


@pytest.mark.parametrize(
    ("rows", "claimed"),
    [
        ([START], True),
        ([{"type": "session_start", "id": "s1", "cwd": "/w"}, message("m", "user", "hi")], True),
        (
            [
                {"type": "session_start", "id": "s1", "cwd": "/w", "model": "q"},
                {"type": "user_message", "content": "hi"},
            ],
            False,
        ),
        ([{"type": "session.start", "data": {"sessionId": "s1"}, "id": "e", "parentId": None}], False),  # Copilot CLI
        ([{"type": "session", "id": "s1", "cwd": "/w", "timestamp": "2026-03-01T10:00:00Z"}], False),  # Pi
        ([{**START, "id": 7}], False),
    ],
)
def test_a_session_start_with_an_owner_or_messages_is_droids(rows: list[ROW], claimed: bool) -> None:
    claim = FORMAT.claims(Head("\n".join(json.dumps(r) for r in rows).encode(), "x.jsonl", True))
    assert (claim.keys if claim else None) == (["session:s1"] if claimed else None)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (message("m", "user", REMINDER, NAG, "fix it"), [("meta", REMINDER), ("meta", NAG), ("human_turn", "fix it")]),
        (message("m", "user", f"{NAG}\nfix it"), [("meta", f"{NAG}\nfix it"), ("human_turn", "fix it")]),
        (message("m", "user", "why <system-reminder>?"), [("human_turn", "why <system-reminder>?")]),
        (message("m", "user", NAG), [("meta", NAG)]),
        (
            message("m", "user", "Token limit reached.", visibility="user_only"),
            [("notification", "Token limit reached.")],
        ),
        (message("m", "user", "context", visibility="llm_only"), [("meta", "context")]),
        (message("m", "user", {"type": "image"}), [("human_turn", "")]),
        (message("m", "system", "rules"), [("unknown", "message.system")]),
    ],
)
def test_which_user_records_are_the_person(row: ROW, expected: list[tuple[str, str]]) -> None:
    assert sorted(events(talk(row))) == sorted(expected)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"type": "agent_turn_outcome", "reason": "completed"}, []),
        ({"type": "agent_turn_outcome", "reason": "cancelled"}, [("interrupt", "cancelled")]),
        ({"type": "agent_turn_outcome", "reason": "error"}, [("api_error", "error")]),
        ({"type": "todo_state", "todos": "1. x"}, []),
        (COMPACTED, [("compaction", '{"removedCount":3}'), ("meta", "so far")]),
        ({"type": "brand_new"}, [("unknown", "brand_new")]),
    ],
)
def test_records_that_are_no_message(row: ROW, expected: list[tuple[str, str]]) -> None:
    assert events(talk(row)) == expected


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_real_sessions_end_in_a_notice_that_is_no_turn() -> None:
    got = {}
    for path in sorted(CORPUS.glob("sessions/factory-droid/*/*/transcript.jsonl")):
        data = path.read_bytes()
        assert format_of(data, path.name) == "factory-droid"
        file_ = given(data, "factory-droid", str(path))
        session, artifact = read_one(FORMAT, file_), file_.artifact
        got[session.session_id[:8]] = (
            artifact.records,
            [len(t.text) for t in session.turns],
            session.events[-1].kind,
            session.model,
        )
    assert got == {
        "992853e5": (3, [11], "notification", "Claude Opus 4.6"),
        "a31fbbb0": (3, [70], "notification", "Claude Opus 4.6"),
    }
