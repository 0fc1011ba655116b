"""Antigravity's transcripts (design/formats.md#small-formats): steps whose results name no call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsignals.formats.antigravity import FORMAT
from agentsignals.formats.head import Head
from agentsignals.model import Session
from tests.formats.reading import given, lines, read_one

PATH = "/home/me/.gemini/antigravity/brain/1b2c3d4e-aaaa/.system_generated/logs/transcript_full.jsonl"


def step(n: int, type_: str, content: str = "", source: str = "MODEL", **more: Any) -> dict[str, Any]:
    return {"step_index": n, "source": source, "type": type_, "status": "DONE", "content": content, **more}


def calls(n: int, *named: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return step(n, "PLANNER_RESPONSE", tool_calls=[{"name": name, "args": args} for name, args in named])


def asks(n: int, content: str, source: str = "USER_EXPLICIT") -> dict[str, Any]:
    return step(n, "USER_INPUT", content, source)


def talk(*steps: object) -> Session:
    return read_one(FORMAT, given(lines(*steps), "antigravity", PATH))


@pytest.mark.parametrize(
    ("first", "keys"),
    [
        (asks(0, "hi"), ["session:1b2c3d4e-aaaa"]),
        ({**asks(0, "hi"), "step_index": "0"}, None),
        ({**asks(0, "hi"), "type": "user_input"}, None),
        ({"step_index": 0, "type": "USER_INPUT"}, None),
    ],
)
def test_a_step_has_an_index_and_its_source_and_type_in_capitals(first: object, keys: list[str] | None) -> None:
    claim = FORMAT.claims(Head(json.dumps(first).encode(), PATH, True))
    assert (claim.keys if claim else None) == keys


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<USER_REQUEST>\nhi\n</USER_REQUEST>\n<ADDITIONAL_METADATA>\nnoise\n</ADDITIONAL_METADATA>", "hi"),
        ("hi\n<ADDITIONAL_METADATA>noise</ADDITIONAL_METADATA>", "hi"),
        ("hi", "hi"),
        ("<USER_REQUEST>what is <B>?</USER_REQUEST>", "what is <B>?"),
        ("<ADDITIONAL_METADATA>noise</ADDITIONAL_METADATA>", None),
    ],
)
def test_a_prompt_is_what_the_person_wrote(content: str, text: str | None) -> None:
    assert [turn.text for turn in talk(asks(0, content)).turns] == ([] if text is None else [text])


def test_what_the_editor_adds_by_itself_is_no_prompt() -> None:
    assert talk(asks(0, "a file was opened", "USER_IMPLICIT")).turns == []


def test_a_result_answers_the_call_of_its_name_and_else_the_oldest() -> None:
    asked = calls(
        1, ("run_command", {"CommandLine": '"make"'}), ("list_dir", {}), ("view_file", {"AbsolutePath": "/a"})
    )
    session = talk(
        asked, step(2, "VIEW_FILE", "the file"), step(3, "RUN_COMMAND", "ran"), step(4, "LIST_DIRECTORY", "a")
    )
    said = {e.text: e.seq for e in session.events if e.kind == "tool_result"}
    answers = {call.name: call.result_seq for call in session.tool_calls}
    assert answers == {"run_command": said["ran"], "list_dir": said["a"], "view_file": said["the file"]}
    assert session.tool_calls[0].command == "make", "values may be JSON text"


@pytest.mark.parametrize(
    ("text", "status", "ended", "code"),
    [
        ("The command completed successfully.\nOutput:\nok", "DONE", "ok", 0),
        ("The command failed with exit code: 2\nOutput:\nno", "DONE", "error", 2),
        ("The command failed with exit code 2", "ERROR", "error", 2),
        (
            "Created At: 2026-09-01T10:00:00Z\nCompleted At: 2026-09-01T10:00:09Z\n\nThe command failed.",
            "DONE",
            "error",
            None,
        ),
        ("Tool is running as a background task with task id: t/1", "RUNNING", "unknown", None),
        ("", "CANCELED", "cancelled", None),
        ("a text that says: The command failed with exit code: 2", "DONE", "ok", None),
    ],
)
def test_how_a_command_ended(text: str, status: str, ended: str, code: int | None) -> None:
    (call,) = talk(
        calls(1, ("run_command", {"CommandLine": "make"})), step(2, "RUN_COMMAND", text, status=status)
    ).tool_calls
    assert (call.status, call.exit_code) == (ended, code)


def test_steps_out_of_order_are_put_in_order() -> None:
    session = talk(asks(0, "go"), step(2, "RUN_COMMAND", "done"), calls(1, ("run_command", {"CommandLine": "ls"})))
    assert [call.status for call in session.tool_calls] == ["ok"]


def test_the_model_is_the_one_that_was_chosen_last() -> None:
    def chosen(a: str, b: str) -> str:
        changed = f"The user changed setting `Model Selection` from {a} to {b}. No need to say so."
        return f"<USER_SETTINGS_CHANGE>{changed}</USER_SETTINGS_CHANGE>"

    session = talk(
        step(0, "PLANNER_RESPONSE", "before"), asks(1, chosen("None", "Gemini 3.6 Flash (High)") + "go"),
        step(2, "PLANNER_RESPONSE", "first"), asks(3, chosen("Gemini 3.6 Flash (High)", "GPT-5.5") + "on"),
        step(4, "PLANNER_RESPONSE", "second"),
    )  # fmt: skip
    assert [call.model for call in session.steps] == [None, "Gemini 3.6 Flash (High)", "GPT-5.5"]
    assert [e.text for e in session.events if e.kind == "model_change"] == ["Gemini 3.6 Flash (High) -> GPT-5.5"]
