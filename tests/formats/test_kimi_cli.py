"""The traps of kimi-cli's wire files, one test each (design/formats.md#kimi-cli)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.changes.hunks import edit_texts
from agentsignals.formats import Input
from agentsignals.formats.kimi_cli import FORMAT
from agentsignals.model import Session
from tests.formats.reading import format_of, given, lines, read_one

T = 1_780_000_000.5
ID = "11111111-0000-4000-8000-000000000001"
Row = dict[str, Any]


def row(kind: str, at: float = 0, **payload: Any) -> Row:
    return {"timestamp": T + at, "message": {"type": kind, "payload": payload}}


def prompt(text: object = "go", at: float = 0) -> Row:
    return row("TurnBegin", at, user_input=text)


def status(fresh: int, message_id: str = "m1") -> Row:
    usage = {"input_other": fresh, "output": 40, "input_cache_read": 64, "input_cache_creation": 0}
    return row("StatusUpdate", token_usage=usage, message_id=message_id)


def call(name: str, arguments: Row, **returned: Any) -> list[Row]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    value = {"is_error": False, "output": "", "message": "", "display": [], **returned}
    return [
        row("ToolCall", 1, type="function", id="c", function=function),
        row("ToolResult", 2, tool_call_id="c", return_value=value),
    ]


def of_subagent(*rows: Row) -> list[Row]:
    return [row("SubagentEvent", agent_id="a1", event=r["message"]) for r in rows]


def source(rows: list[Row], place: str = "wire.jsonl") -> Input:
    return given(lines({"type": "metadata", "protocol_version": "1.9"}, *rows), "kimi-cli", f"/k/{ID}/{place}")


def read(*rows: Row) -> Session:
    return read_one(FORMAT, source(list(rows)))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"type": "metadata", "protocol_version": "1.9"}, prompt()], "kimi-cli"),
        ([prompt()], "kimi-cli"),
        ([{"timestamp": T, "message": {"type": "x", "text": "y"}}], None),
        ([{"timestamp": "2026-01-01", "message": {"type": "x", "payload": {}}}], None),
    ],
)
def test_it_is_known_by_its_messages(rows: list[Row], expected: str | None) -> None:
    assert format_of(lines(*rows), "w.jsonl") == expected


def test_tokens_of_a_call_come_with_its_id_and_once() -> None:
    session = read(prompt(), row("StepBegin"), status(137), status(137), row("StepBegin"), status(138, "m2"))
    assert [(s.input_tokens, s.output_tokens, s.cache_read_tokens) for s in session.steps] == [
        (137, 40, 64),
        (138, 40, 64),
    ]


@pytest.mark.parametrize("has_file", [True, False])
def test_what_a_subagent_did_stands_in_its_file_and_again_with_its_parent(has_file: bool) -> None:
    """Older versions have it with the parent alone: a thread of it."""
    did = [prompt("look"), row("StepBegin"), status(150, "s")]
    parent = source([prompt(), row("StepBegin"), status(137), *of_subagent(*did)])
    sessions = FORMAT.read([parent, *([source(did, "subagents/a1/wire.jsonl")] if has_file else [])]).sessions
    assert [(s.session_id, s.parent_session_id) for s in sessions[1:]] == ([(f"{ID}.a1", ID)] if has_file else [])
    steps = [(s.thread, s.input_tokens) for session in sessions for s in session.steps]
    assert steps == [("main", 137), ("main" if has_file else "a1", 150)]
    assert [len(s.turns) for s in sessions] == ([1, 0] if has_file else [1])


@pytest.mark.parametrize(
    ("returned", "status", "code"),
    [
        ({"is_error": True, "output": "x\n", "message": "Command failed with exit code: 3."}, "error", 3),
        ({"output": "Command failed with exit code: 3.", "message": "Command executed successfully."}, "ok", 0),
        ({"is_error": True, "message": "Command killed by timeout (60s)"}, "error", None),
    ],
)
def test_how_a_command_ended_is_the_program_s_message(returned: Row, status: str, code: int | None) -> None:
    (ran,) = read(prompt(), *call("Shell", {"command": "x"}, **returned)).tool_calls
    assert (ran.status, ran.exit_code) == (status, code)


def test_what_the_person_says_to_a_call_it_refuses() -> None:
    asked, answered = call("WriteFile", {"path": "a", "content": "x"}, is_error=True, message="rejected")
    leave = [
        row("ApprovalRequest", id="r", tool_call_id="c"),
        row("ApprovalResponse", request_id="r", response="reject", feedback="not there"),
    ]
    session = read(prompt(), asked, *leave, answered)
    assert [c.status for c in session.tool_calls] == ["rejected"]
    assert [(t.kind, t.text) for t in session.turns[1:]] == [("rejection_feedback", "not there")]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (prompt("go"), "prompt"),
        (prompt([{"type": "text", "text": "go"}]), "prompt"),
        (prompt("/init"), "slash_command"),
        (prompt("/home/me is full"), "prompt"),
        (row("SteerInput", user_input="go"), "queued_prompt"),
        (prompt([{"type": "image_url"}]), "attachment"),
        (prompt("<system>\ngo\n</system>"), None),
    ],
)
def test_words_of_the_person(words: Row, kind: str | None) -> None:
    assert [t.kind for t in read(words).turns] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("tool", "old", "new", "expected"),
    [
        ("WriteFile", "", "a\nb", ("create", 1, 2, 0, True)),
        ("WriteFile", "a", "b", ("modify", 7, 1, 1, True)),
        ("StrReplaceFile", "k\na\nl", "k\nb\nc\nl", ("modify", 8, 2, 1, False)),
    ],
)
def test_lines_of_an_edit_are_those_the_person_was_shown(tool: str, old: str, new: str, expected: object) -> None:
    shown = {"type": "diff", "path": "a", "old_text": old, "new_text": new, "old_start": 7, "new_start": 7}
    (edit,) = read(prompt(), *call(tool, {"path": "a", "content": new}, display=[shown])).edits
    assert (edit.op, edit.start_line, edit.added, edit.removed, edit.whole_file) == expected


@pytest.mark.parametrize("edit", [{"old": "a", "new": "b"}, [{"old": "a", "new": "b"}]])
def test_one_edit_may_stand_without_a_list(edit: object) -> None:
    (made,) = read(prompt(), *call("StrReplaceFile", {"path": "a", "edit": edit})).tool_calls
    assert [(t.old, t.new) for t in edit_texts(made.arguments, made.argument_roles)] == [("a", "b")]
