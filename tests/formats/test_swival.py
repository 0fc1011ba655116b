"""The traps of Swival's traces, one test each (design/formats.md#small-formats): they look like Claude Code's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.swival import FORMAT
from agentsignals.model import Session
from tests.formats.reading import given, lines, read_one

Row = dict[str, Any]
ENVELOPE = {"sessionId": "s-1", "harness": "swival", "version": "1", "cwd": "/srv/shop", "isSidechain": False}


def record(kind: str, n: int, **facts: Any) -> Row:
    at = f"2026-06-01T12:00:00.{n:06d}+00:00"
    return {"uuid": f"u{n}", "parentUuid": None, **ENVELOPE, "timestamp": at, "type": kind, **facts}


def asked(text: str, n: int = 1, **facts: Any) -> Row:
    return record("user", n, message={"role": "user", "content": text}, promptId=f"random-{n}", **facts)


def used(n: int, *calls: tuple[str, str, Row]) -> Row:
    blocks = [{"type": "tool_use", "id": i, "name": name, "input": given} for i, name, given in calls]
    return record(
        "assistant", n, message={"id": f"m{n}", "model": "q", "role": "assistant", "content": blocks, "usage": {}}
    )


def answered(n: int, call_id: str, text: str, is_error: Any = None) -> Row:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": is_error}
    return record("user", n, message={"role": "user", "content": [block]}, toolUseResult=text)


def export(*rows: Row, name: str = "a") -> Input:
    return given(lines(*rows), "swival", name)


def read(*rows: Row) -> Session:
    return read_one(FORMAT, lines(*rows))


def as_text(row: Row) -> Row:
    return {**row, "message": json.dumps(row["message"])} if "message" in row else row


CONVERSATION = (
    asked("fix it", 1),
    used(2, ("c1", "edit_file", {"file_path": "a.py", "old_string": "x", "new_string": "y"})),
    answered(3, "c1", "edited"),
)


def test_times_are_those_of_the_export_and_are_left_out() -> None:
    session = read(*CONVERSATION)
    assert (session.started_at, session.ended_at) == (None, None)
    assert {e.timestamp for e in session.events} == {s.timestamp for s in session.steps} == {None}
    assert {(c.started_at, c.ended_at) for c in session.tool_calls} == {(None, None)}


def test_a_message_may_be_json_in_a_text() -> None:
    assert read(*map(as_text, CONVERSATION)).edits == read(*CONVERSATION).edits != []


@pytest.mark.parametrize(
    ("text", "is_error", "status"),
    [
        ("error: no such file", True, "error"),
        ("error: no such file", None, "error"),
        ("error: no such file", False, "error"),
        ("the error: is here", False, "ok"),
        ("fine", None, "ok"),
    ],
)
def test_a_result_that_begins_with_error_failed(text: str, is_error: Any, status: str) -> None:
    (call,) = read(used(1, ("c1", "read_file", {"file_path": "a"})), answered(2, "c1", text, is_error)).tool_calls
    assert call.status == status


@pytest.mark.parametrize(("flag", "turns"), [(False, 1), ("False", 1), ("True", 0), (True, 0)])
def test_flags_may_be_texts(flag: Any, turns: int) -> None:
    assert len(read(asked("hello", isMeta=flag), used(2)).turns) == turns


def test_of_two_exports_the_fuller_counts_whatever_their_ids() -> None:
    again = [{**row, "uuid": f"other-{n}"} for n, row in enumerate(CONVERSATION)]
    short, full = export(*CONVERSATION[:2], name="a"), export(*again, name="b")
    (session,) = FORMAT.read([short, full]).sessions
    assert (session.artifact_id, len(session.turns), len(session.tool_calls)) == ("b", 1, 1)
    assert short.artifact.note == "superseded by b"


def test_the_last_prompt_and_the_instructions_are_no_turns() -> None:
    instructions = record("system", 0, content="You are an agent.", level="info", isMeta=False)
    last = {"type": "last-prompt", "lastPrompt": "fix it", "sessionId": "s-1", "toolUseResult": ""}
    session = read(instructions, *CONVERSATION, last)
    assert [t.text for t in session.turns] == ["fix it"]
    assert [(e.kind, e.text) for e in session.events][:1] == [("meta", "You are an agent.")]


def test_its_tools_are_its_own() -> None:
    calls = (
        ("c1", "run_command", {"command": ["pytest", "-q"]}), ("c2", "delete_file", {"file_path": "old.py"}),
        ("c3", "fetch_url", {"url": "x"}), ("c4", "mcp__docs__find", {}), ("c5", "Bash", {}),
    )  # fmt: skip
    session = read(used(1, *calls), answered(2, "c2", "moved to trash"))
    assert [c.class_ for c in session.tool_calls] == ["test", "edit", "web", "mcp", "other"]
    assert session.tool_calls[0].command == "pytest -q"
    assert [(e.path, e.op) for e in session.edits] == [("old.py", "delete")]


def test_the_session_says_who_wrote_it() -> None:
    session = read(*CONVERSATION)
    assert (session.format, session.agent, session.agent_version, session.model) == ("swival", "swival", "1", "q")
    assert session.cwd == "/srv/shop"
