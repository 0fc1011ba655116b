"""The traps of `codex exec --json`, one test each (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.codex_exec import FORMAT
from agentsignals.ingest import pipeline
from agentsignals.model import Session
from agentsignals.store import Store
from agentsignals.store.query import rows as asked
from tests.formats import reading

THREAD = "019f3661-0000-7000-8000-000000000001"
START: dict[str, Any] = {"type": "thread.started", "thread_id": THREAD}
TURN: dict[str, Any] = {"type": "turn.started"}
Row = dict[str, Any]


def item(when: str, kind: str, id_: str = "item_0", **facts: Any) -> Row:
    return {"type": f"item.{when}", "item": {"id": id_, "type": kind, **facts}}


def ran(command: str = "ls", output: str = "", id_: str = "item_0", **facts: Any) -> Row:
    told = {"command": command, "aggregated_output": output, "exit_code": 0, "status": "completed"}
    return item("completed", "command_execution", id_, **{**told, **facts})


def said(text: str = "ok", id_: str = "item_9") -> Row:
    return item("completed", "agent_message", id_, text=text)


def used(input: int, output: int, cached: int = 0, **more: int) -> Row:  # noqa: A002  (the file's name)
    usage = {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, **more}
    return {"type": "turn.completed", "usage": usage}


def given(*rows: Row | str, name: str = "a") -> Input:
    return reading.given(reading.lines(*rows), "codex-exec", name)


def read(*rows: Row | str) -> Session:
    (session,) = FORMAT.read([given(START, TURN, *rows)]).sessions
    return session


@pytest.mark.parametrize(
    ("facts", "status", "error"),
    [
        ({}, "ok", None),
        ({"exit_code": 2, "status": "failed"}, "error", "exit_nonzero"),
        ({"exit_code": 1, "status": "completed", "command": "run-me"}, "error", "exit_nonzero"),
        ({"exit_code": None, "status": "declined"}, "rejected", None),
        ({"exit_code": None, "status": "in_progress"}, "none", None),
        ({"exit_code": 1, "status": "failed", "command": "bash -lc 'pytest -q'"}, "error", "exit_nonzero"),
    ],
)
def test_what_became_of_a_command(facts: Row, status: str, error: str | None) -> None:
    (call,) = read(ran(**{"command": "make", **facts})).tool_calls
    assert (call.status, call.error_class, call.exit_code) == (
        status,
        error,
        facts.get("exit_code", 0) if status != "none" else None,
    )


@pytest.mark.parametrize(
    ("change", "edit"),
    [
        ({"kind": "add"}, ("create", None, None, True)),
        ({"kind": "add", "diff": "a\nb\n"}, ("create", 2, 0, True)),
        ({"kind": "update"}, ("modify", None, None, False)),
        ({"kind": "update", "diff": "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"}, ("modify", 1, 1, False)),
        ({"kind": "delete", "diff": "a\n"}, ("delete", 0, 1, True)),
    ],
)
def test_changed_files_are_edits_with_what_is_said_of_their_lines(change: Row, edit: tuple[Any, ...]) -> None:
    session = read(item("completed", "file_change", changes=[{"path": "/r/a.py", **change}], status="completed"))
    assert [(e.op, e.added, e.removed, e.whole_file) for e in session.edits] == [edit]
    failed = read(item("completed", "file_change", changes=[{"path": "/r/a.py", **change}], status="failed"))
    assert (failed.edits, failed.tool_calls[0].status) == ([], "error")


@pytest.mark.parametrize(
    ("facts", "status", "text"),
    [
        ({"result": {"content": [{"type": "text", "text": "two"}]}, "status": "completed"}, "ok", "two"),
        ({"result": {"content": [], "structured_content": {"n": 2}}, "status": "completed"}, "ok", '{"n": 2}'),
        ({"result": None, "error": {"message": "no server"}, "status": "failed"}, "error", "no server"),
    ],
)
def test_mcp_calls_carry_their_server_and_answer(facts: Row, status: str, text: str) -> None:
    session = read(item("completed", "mcp_tool_call", server="docs", tool="find", arguments={"q": 1}, **facts))
    (call,) = session.tool_calls
    assert (call.name, call.class_, call.status, call.arguments) == ("mcp__docs__find", "mcp", status, '{"q": 1}')
    assert [e.text for e in session.events if e.kind == "tool_result"] == [text]


def test_a_rollout_of_the_same_thread_is_believed(tmp_path: Path) -> None:
    at = "2026-05-02T09:00:00.000Z"
    rollout = [
        {
            "timestamp": at,
            "type": "session_meta",
            "payload": {"id": THREAD, "timestamp": at, "cwd": "/r", "cli_version": "1"},
        },
        {"timestamp": at, "type": "event_msg", "payload": {"type": "user_message", "message": "go"}},
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rollout.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rollout))
    (tmp_path / "in" / "out.jsonl").write_bytes(given(START, TURN, said("done"), used(9, 1)).data)
    assert pipeline.analyze([str(tmp_path / "in")], tmp_path / "store").sessions == 1
    assert asked(Store(tmp_path / "store"), "SELECT format FROM sessions")[1] == [("codex",)]
