"""The traps of kimi-cli's wire files that no sample shows (design/formats.md#kimi-cli)."""

from __future__ import annotations

from typing import Any

import pytest

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


@pytest.mark.parametrize(("response", "ran_s"), [("approve", 20.0), ("approve_for_session", 20.0), ("reject", None)])
def test_a_call_runs_from_its_approval(response: str, ran_s: float | None) -> None:
    (call,) = read(
        prompt(),
        row("ToolCall", 1, id="c", function={"name": "Shell", "arguments": '{"command": "make"}'}),
        row("ApprovalRequest", 1, id="r", tool_call_id="c"),
        row("ApprovalResponse", 900, request_id="r", response=response),
        row("ToolResult", 920, tool_call_id="c", return_value={"is_error": False, "output": "ok"}),
    ).tool_calls
    assert call.ran_s == ran_s
