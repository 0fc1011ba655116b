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


def tokens(session: Session) -> list[tuple[int | None, int | None, int | None]]:
    return [(s.input_tokens, s.output_tokens, s.cache_read_tokens) for s in session.steps]


def test_cached_tokens_are_no_input_and_reasoning_is_output() -> None:
    (step,) = read(said(), used(100, 30, cached=60, reasoning_output_tokens=20)).steps
    assert (step.input_tokens, step.cache_read_tokens, step.output_tokens, step.reasoning_tokens) == (40, 60, 30, 20)


def test_the_usage_of_a_turn_is_what_the_threads_total_grew_by() -> None:
    """Public probes of one thread: input 16 504, 85 681, 103 779 and output 20, 40, 45 after its three turns."""
    session = read(said(), used(16504, 20), TURN, said(), used(85681, 40), TURN, said(), used(103779, 45))
    assert tokens(session) == [(16504, 20, None), (69177, 20, None), (18098, 5, None)]


def test_a_total_that_has_fallen_is_a_new_count() -> None:
    session = read(said(), used(900, 40), TURN, said(), used(300, 60))
    assert tokens(session) == [(900, 40, None), (300, 60, None)]


def test_a_turn_of_several_calls_has_a_closing_step() -> None:
    session = read(ran(), said(), used(100, 10))
    assert [(s.input_tokens, s.stop_reason) for s in session.steps] == [
        (None, None),
        (None, None),
        (100, "session_total"),
    ]


def test_a_turn_that_was_not_counted_is_not_zero() -> None:
    assert tokens(read(said())) == [(None, None, None)]


def test_a_model_call_ends_where_results_do() -> None:
    session = read(
        item("completed", "reasoning", "item_0", text="think"),
        item("started", "command_execution", "item_1", command="a", status="in_progress"),
        item("started", "command_execution", "item_2", command="b", status="in_progress"),
        ran("a", id_="item_1"), ran("b", id_="item_2"), said(),
    )  # fmt: skip
    assert [(e.kind, e.step) for e in session.events] == [
        ("thinking", 0), ("tool_call", 0), ("tool_call", 0), ("tool_result", 0), ("tool_result", 0), ("text", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "status", "error"),
    [
        ({}, "ok", None),
        ({"exit_code": 2, "status": "failed"}, "error", "lint_failed"),
        ({"exit_code": 1, "status": "completed", "command": "run-me"}, "error", "exit_nonzero"),
        ({"exit_code": None, "status": "declined"}, "rejected", None),
        ({"exit_code": None, "status": "in_progress"}, "none", None),
        ({"exit_code": 1, "status": "failed", "command": "bash -lc 'pytest -q'"}, "error", "test_failed"),
    ],
)
def test_what_became_of_a_command(facts: Row, status: str, error: str | None) -> None:
    (call,) = read(ran(**{"command": "make", **facts})).tool_calls
    assert (call.status, call.error_class, call.exit_code) == (
        status,
        error,
        facts.get("exit_code", 0) if status != "none" else None,
    )


def test_a_call_that_began_and_ended_is_one() -> None:
    begun = item("started", "command_execution", command="ls", status="in_progress")
    (call,) = read(
        begun, item("updated", "command_execution", command="ls", status="in_progress"), ran("ls", "a")
    ).tool_calls
    assert (call.status, call.class_, call.result_tokens) == ("ok", "search", 1)


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


def test_each_update_of_the_task_list_is_a_call_and_its_end_is_none() -> None:
    session = read(
        item("started", "todo_list", items=[{"text": "a", "completed": False}]),
        item("updated", "todo_list", items=[{"text": "a", "completed": True}]),
        item("completed", "todo_list", items=[{"text": "a", "completed": True}]),
    )
    assert [(c.class_, c.status, json.loads(c.arguments)["items"][0]["completed"]) for c in session.tool_calls] == [
        ("plan", "ok", False), ("plan", "ok", True),
    ]  # fmt: skip


def test_an_error_that_ends_a_turn_is_said_once() -> None:
    session = read({"type": "error", "message": "401"}, {"type": "turn.failed", "error": {"message": "401"}})
    assert [(e.kind, e.text) for e in session.events] == [("api_error", "401")]


def test_a_resumed_thread_goes_on_in_another_file_and_numbers_its_items_anew() -> None:
    first = given(START, TURN, ran("ls", "a"), used(100, 10), name="z")
    second = given(START, TURN, ran("pwd", "b"), used(250, 30), name="a")
    (session,) = FORMAT.read([second, first]).sessions
    assert [(c.call_id, c.command, c.status) for c in session.tool_calls] == [
        ("item_0", "ls", "ok"),
        ("item_0#2", "pwd", "ok"),
    ]
    assert [s.input_tokens for s in session.steps] == [100, 150]


def test_a_file_may_hold_several_threads() -> None:
    other = {**START, "thread_id": "t-2"}
    sessions = FORMAT.read([given(START, TURN, said("a"), other, TURN, said("b"))]).sessions
    assert [(s.session_id, s.events[0].text) for s in sessions] == [(THREAD, "a"), ("t-2", "b")]


def test_lines_of_other_programs_and_unknown_records_cost_nobody() -> None:
    file = given(START, "Reading prompt from stdin...", item("completed", "hologram"), {"type": "x.y"}, said("done"))
    (session,) = FORMAT.read([file]).sessions
    assert [(e.kind, e.text) for e in session.events] == [
        ("unknown", "item hologram"),
        ("unknown", "x.y"),
        ("text", "done"),
    ]
    assert file.artifact.skipped_reasons == {"bad_json": 1}


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
