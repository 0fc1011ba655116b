"""The traps of Kimi Code's wire files, one test each (design/formats.md#kimi-code)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import Input
from agentsignals.formats.kimi_code import FORMAT
from agentsignals.ingest import pipeline
from agentsignals.model import ABANDONED, MAIN, REPLAYED, Session
from tests.formats.reading import format_of, given, lines, read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "native" / "kimi-code"
T = 1_780_000_000_000
ID = "session_11111111-0000-4000-8000-00000000000{}"
Row = dict[str, Any]


def row(type_: str, at: int = 0, **more: Any) -> Row:
    return {"type": type_, "agentId": "main", **more, "time": T + at * 1000}


def prompt(text: str, at: int = 0, kind: str = "user", type_: str = "turn.prompt", **origin: Any) -> list[Row]:
    """A prompt as it stands in the file: three times."""
    input_, source = [{"type": "text", "text": text}], {"kind": kind, **origin}
    message = {"role": "user", "content": input_, "id": f"m{at}", "origin": source}
    return [
        row(type_, at, input=input_, origin=source, promptId=f"m{at}"),
        row("context.append_message", at, message=message),
        {"type": "agent.message.appended", "message": {"message": message}, "time": T, "kind": "event"},
    ]


def loop(type_: str, at: int = 0, **event: Any) -> Row:
    return row("context.append_loop_event", at, event={"type": type_, **event})


def usage(fresh: int = 137) -> Row:
    return {"inputOther": fresh, "output": 40, "inputCacheRead": 64, "inputCacheCreation": 0}


def answer(at: int = 1, text: str = "done", fresh: int = 137) -> list[Row]:
    return [
        loop("step.begin", at, uuid=f"s{at}"),
        row("llm.request", at, kind="loop", model="m-1", modelAlias="mine"),
        row("usage.record", at, model="mine", usage=usage(fresh)),
        loop("content.part", at, stepUuid=f"s{at}", part={"type": "text", "text": text}),
        loop("step.end", at, uuid=f"s{at}", finishReason="end_turn", usage=usage(fresh)),
    ]


def call(name: str, arguments: Row, at: int = 2, **result: Any) -> list[Row]:
    return [
        loop("tool.call", at, toolCallId="c", stepUuid="s1", name=name, args=arguments),
        loop("tool.result", at, toolCallId="c", result=result),
    ]


def source(rows: list[Row], session: int = 1, agent: str = "main") -> Input:
    head = {"type": "metadata", "protocol_version": "1.5", "created_at": T}
    return given(lines(head, *rows), "kimi-code", f"/k/{ID.format(session)}/agents/{agent}/wire.jsonl")


def state(session: int = 1, **more: Any) -> Input:
    data = json.dumps(
        {"id": ID.format(session), "version": 2, "cwd": "/w", "createdAt": T, "agents": {}, **more}
    ).encode()
    return given(data, "kimi-code", f"/k/{ID.format(session)}/state.json")


def read(*rows: Row) -> Session:
    return read_one(FORMAT, source(list(rows)))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("turn.prompt")], "kimi-code"),
        ([row("forked"), row("turn.prompt")], "kimi-code"),
        ([], "kimi-code"),
        ([{"timestamp": 1.5, "message": {"type": "TurnBegin", "payload": {}}}], "kimi-cli"),
        ([{"type": "text", "time": 1}], None),
    ],
)
def test_lines_with_dots_are_kimi_code_s(rows: list[Row], expected: str | None) -> None:
    assert format_of(source(rows).data, "w.jsonl") == expected


def test_a_prompt_stands_three_times_and_usage_twice() -> None:
    session = read(*prompt("go"), *answer(), *answer(2), *prompt("go", 90))
    assert [t.text for t in session.turns] == ["go", "go"]
    assert [(s.input_tokens, s.output_tokens, s.cache_read_tokens, s.model) for s in session.steps] == [
        (137, 40, 64, "m-1")
    ] * 2


def test_a_call_that_no_step_tells_of_is_paid_for_too() -> None:
    session = read(*prompt("go"), *answer(), row("usage.record", 5, usage=usage(900), usageScope="session"))
    assert [s.input_tokens for s in session.steps] == [137, 900]


def test_a_try_that_the_provider_turned_away_has_no_tokens_and_is_no_turn() -> None:
    failed = [loop("step.begin", uuid="f"), loop("step.end", uuid="f", finishReason="error")]
    session = read(*prompt("go"), *failed, row("turn.step.retrying", errorMessage="429 slow down"), *answer())
    assert [s.input_tokens for s in session.steps] == [None, 137]
    assert [e.kind for e in session.events] == ["human_turn", "api_error", "text"]


@pytest.mark.parametrize(
    ("kind", "origin", "type_", "expected"),
    [
        ("user", {}, "turn.prompt", "prompt"),
        ("user", {}, "turn.steer", "queued_prompt"),
        ("skill_activation", {"trigger": "user-slash"}, "turn.prompt", "slash_command"),
        ("skill_activation", {"trigger": "model"}, "turn.prompt", None),
        ("system_trigger", {"name": "cron"}, "turn.prompt", None),
        ("injection", {"variant": "date_change"}, "turn.prompt", None),
        ("shell_command", {"phase": "input"}, "turn.prompt", None),
    ],
)
def test_who_a_prompt_is_from_stands_in_its_origin(kind: str, origin: Row, type_: str, expected: str | None) -> None:
    session = read(*prompt("look", 0, kind, type_, **origin))
    assert [t.kind for t in session.turns] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("result", "status", "code"),
    [
        ({"output": "x\nCommand failed with exit code: 3.", "isError": True}, "error", 3),
        ({"output": "grep found: Command failed with exit code: 3.\n"}, "ok", 0),
        ({"output": [{"type": "text", "text": "x"}]}, "ok", 0),
        ({"output": "Tool not found", "isError": True}, "error", None),
    ],
)
def test_how_a_command_ended(result: Row, status: str, code: int | None) -> None:
    session = read(*prompt("go"), *answer(), *call("Bash", {"command": "x"}, **result, durationMs=1500))
    (ran,) = session.tool_calls
    assert (ran.status, ran.exit_code, ran.ran_s) == (status, code, 1.5)


def test_what_the_person_says_to_a_call_it_refuses() -> None:
    no = row(
        "permission.record_approval_result", toolCallId="c", result={"decision": "rejected", "feedback": "not there"}
    )
    asked, answered = call("Write", {"path": "a", "content": "x"}, output="rejected", isError=True)
    session = read(*prompt("go"), *answer(), asked, no, answered)
    assert [c.status for c in session.tool_calls] == ["rejected"]
    assert [(t.kind, t.text) for t in session.turns[1:]] == [("rejection_feedback", "not there")]
    assert session.edits == []


def test_what_was_taken_back_is_left_and_paid_for() -> None:
    session = read(
        *prompt("one"), *answer(), *prompt("two", 5), *answer(6), row("context.undo", 8, count=1), *answer(9)
    )
    assert [t.text for t in session.turns] == ["one"]
    assert [s.thread for s in session.steps] == [MAIN, ABANDONED, MAIN]


@pytest.mark.parametrize("parent_is_read", [True, False])
def test_a_fork_begins_with_a_copy(parent_is_read: bool) -> None:
    """The copy counts for the session it is of, where that is read; else it is no turn of the fork's."""
    parent = [*prompt("one"), *answer()]
    fork = source([*parent, row("forked", 9), *prompt("two", 10), *answer(11)], 2)
    inputs = [fork, state(2, forkedFrom=ID.format(1)), *([source(parent)] if parent_is_read else [])]
    forked = FORMAT.read(inputs).sessions[-1]
    assert [t.text for t in forked.turns] == ["two"]
    assert [s.thread for s in forked.steps] == ([MAIN] if parent_is_read else [REPLAYED, MAIN])
    assert forked.parent_session_id == ID.format(1)


def test_a_subagent_is_a_session_of_its_parent() -> None:
    inputs = [
        source([*prompt("go"), *answer()]),
        source([*prompt("look", kind="system_trigger"), *answer()], agent="a0"),
    ]
    for agents in ({}, {"a0": {"parentAgentId": "main"}}, {"a0": {"parentAgentId": 7}}, {"a0": None, "a1": 7}):
        main, sub = FORMAT.read([*inputs, state(agents=agents)]).sessions
        assert (sub.session_id, sub.parent_session_id, sub.turns) == (f"{main.session_id}.a0", main.session_id, [])
        assert main.cwd == sub.cwd == "/w"


def test_sessions_say_what_the_scripted_model_sent(tmp_path: Path) -> None:
    """Counted over the file by hand: 5 calls with 137 to 141 fresh tokens and 64 cached, 4 tool calls, one failed."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus at {CORPUS}")
    _, store = pipeline.ingest_into([str(CORPUS)], tmp_path / "s", jobs=1)
    session = store.session("session_2000d2ae-9258-4fc2-ba6a-406707700677")
    assert [(s.input_tokens, s.cache_read_tokens, s.output_tokens, s.model) for s in session.steps] == [
        (137 + n, 64, 40, "mock-1") for n in range(5)
    ]
    assert [(c.name, c.status, c.exit_code) for c in session.tool_calls] == [
        ("Write", "ok", None),
        ("Read", "ok", None),
        ("Edit", "ok", None),
        ("Bash", "error", 3),
    ]
    assert [t.text for t in session.turns] == ["Write hello.py that prints hello, change it, run it"]
