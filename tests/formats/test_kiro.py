"""The traps of Kiro conversations, one test each (design/formats.md#small-formats)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.head import Head
from agentsignals.formats.kiro import FORMAT
from agentsignals.formats.kiro.reader import DENIED, STOPPED
from agentsignals.model import Session
from tests.formats.reading import given, read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "kiro"
CANCELLED = [{"Text": "Tool use was cancelled by the user"}]


def prompt(words: str) -> dict[str, Any]:
    return {"Prompt": {"prompt": words}}


def results(*found: dict[str, Any]) -> dict[str, Any]:
    return {"ToolUseResults": {"tool_use_results": list(found)}}


def result(call_id: str = "", content: Any = (), status: str = "Success") -> dict[str, Any]:
    return {"tool_use_id": call_id, "content": list(content), "status": status}


def cancelled(words: str | None, *ids: str) -> dict[str, Any]:
    return {"CancelledToolUses": {"prompt": words, "tool_use_results": [result(i, CANCELLED, "Error") for i in ids]}}


def say(words: str) -> dict[str, Any]:
    return {"Response": {"message_id": "", "content": words}}


def use(*calls: tuple[str, str, dict[str, Any]], words: str = "") -> dict[str, Any]:
    return {
        "ToolUse": {
            "message_id": "",
            "content": words,
            "tool_uses": [{"id": i, "name": n, "args": a} for i, n, a in calls],
        }
    }


def entry(content: Any, answer: Any, **user: Any) -> dict[str, Any]:
    return {"user": {"content": content, **user}, "assistant": answer}


def read(*history: Any, hint: str | None = None, **facts: Any) -> Session:
    return read_one(FORMAT, given({"conversation_id": "", "history": history, **facts}, "kiro", "a1", hint))


def kinds(session: Session) -> list[str]:
    return [event.kind for event in session.events]


BASH = ("", "execute_bash", {"command": "make test"})


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
    assert claim is None or claim.beside == (keys == [])


def test_content_null_is_a_turn_of_results_and_not_of_a_person() -> None:
    session = read(entry(prompt("write it"), use(("", "fs_write", {"path": "a.md"}))), entry(None, say("Done")))
    assert [t.text for t in session.turns] == ["write it"]
    assert [(c.path, c.class_, c.status) for c in session.tool_calls] == [("a.md", "edit", "none")]
    assert len(session.steps) == 2
    assert session.edits == []


def test_nothing_is_known_of_times_models_and_tokens_when_the_collector_left_them_out() -> None:
    session = read(entry(prompt("hi"), say("ho")))
    (step,) = session.steps
    assert (session.started_at, session.model, session.cwd) == (None, None, None)
    assert (step.timestamp, step.message_id, step.input_tokens, step.output_tokens) == (None, None, None, None)


def test_results_without_ids_answer_the_calls_in_order() -> None:
    calls = use(BASH, ("", "fs_read", {"operations": [{"mode": "Line", "path": "b.md"}]}))
    answers = results(result(content=[{"Text": "ran"}]), result(content=[{"Text": "read"}], status="Error"))
    session = read(entry(prompt("go"), calls), entry(answers, say("ok")))
    assert [(c.name, c.status, session.events[c.result_seq or 0].text) for c in session.tool_calls] == [
        ("execute_bash", "ok", "ran"),
        ("fs_read", "error", "read"),
    ]
    assert [c.path for c in session.tool_calls] == [None, "b.md"]


def test_results_with_ids_answer_their_own_call() -> None:
    calls = use(("x", "execute_bash", {"command": "a"}), ("y", "execute_bash", {"command": "b"}))
    answers = results(result("y", [{"Text": "of y"}]), result("x", [{"Text": "of x"}]))
    session = read(entry(prompt("go"), calls), entry(answers, say("ok")))
    assert [session.events[c.result_seq or 0].text for c in session.tool_calls] == ["of x", "of y"]


def test_a_result_does_not_answer_a_call_whose_own_was_not_kept() -> None:
    answered = entry(results(result(content=[{"Text": "second"}])), say("ok"))
    session = read(entry(prompt("go"), use(BASH)), entry(None, use(BASH)), answered)
    assert [c.status for c in session.tool_calls] == ["none", "ok"]


def test_a_shell_result_is_its_output_and_its_exit_status() -> None:
    answer = results(result(content=[{"Json": {"exit_status": "2", "stdout": "1 failed", "stderr": "boom"}}]))
    session = read(entry(prompt("go"), use(BASH)), entry(answer, say("ok")))
    assert [(c.status, c.exit_code, c.class_) for c in session.tool_calls] == [("error", 2, "test")]
    assert session.events[2].text == "1 failed\nboom"


def test_words_instead_of_a_permission_are_a_turn() -> None:
    session = read(entry(prompt("go"), use(BASH)), entry(cancelled("not yet", ""), say("ok")))
    assert [(t.kind, t.text) for t in session.turns] == [("prompt", "go"), ("rejection_feedback", "not yet")]
    assert [c.status for c in session.tool_calls] == ["rejected"]


@pytest.mark.parametrize(("words", "status"), [(DENIED, "rejected"), (STOPPED, "cancelled"), (None, "cancelled")])
def test_a_bare_no_and_a_stopped_tool_are_interruptions(words: str | None, status: str) -> None:
    session = read(entry(prompt("go"), use(BASH)), entry(cancelled(words, ""), None))
    assert [c.status for c in session.tool_calls] == [status]
    assert kinds(session).count("interrupt") == 1
    assert len(session.turns) == 1


def test_replies_the_client_writes_itself_are_no_model_call() -> None:
    notice = "Tool uses were interrupted, waiting for the next user prompt"
    session = read(
        entry(prompt("go"), say("Response was interrupted by the user")), entry(cancelled(STOPPED), say(notice))
    )
    assert session.steps == []
    assert "text" not in kinds(session)


@pytest.mark.parametrize(
    "words",
    [
        "In a few words, summarize our conversation so far.",
        "You took too long to respond - try to split up the work into smaller steps.",
        "[SYSTEM NOTE: This is an automated request, not from the user]\nresume",
    ],
)
def test_prompts_of_the_client_are_no_turn(words: str) -> None:
    session = read(entry(prompt(words), say("ok")))
    assert session.turns == []
    assert kinds(session) == ["meta", "text"]


def test_what_the_client_keeps_is_read() -> None:
    meta = {
        "request_start_timestamp_ms": 1_775_000_001_000,
        "stream_end_timestamp_ms": 1_775_000_004_000,
        "model_id": "m-1",
    }
    env = {"env_state": {"current_working_directory": "/w"}}
    asked = entry(
        prompt("go"), use(("x", "fs_read", {"path": "/w/a.md"})), timestamp="2026-04-01T01:33:20+02:00", env_context=env
    )
    session = read({**asked, "request_metadata": meta}, latest_summary=["before", {}])
    assert (session.cwd, session.model, session.turns[0].model) == ("/w", "m-1", "m-1")
    assert session.turns[0].timestamp == 1_775_000_000_000_000
    assert session.steps[0].timestamp == 1_775_000_001_000_000
    assert [(c.path, c.started_at) for c in session.tool_calls] == [("a.md", 1_775_000_004_000_000)]
    assert kinds(session) == ["compaction", "human_turn", "tool_call"]


def test_entries_as_pairs_are_read() -> None:
    session = read([{"content": prompt("hi")}, say("ho")], [{"content": None}, say("more")])
    assert kinds(session) == ["human_turn", "text", "text"]


@pytest.mark.parametrize(
    ("given", "row"),
    [
        ({"command": "create", "file_text": "1\n2\n"}, ("create", 1, 2, 2, 0, True)),
        ({"command": "str_replace", "old_str": "a\nb", "new_str": "a\nc\nd"}, ("modify", None, None, 2, 1, False)),
        ({"command": "insert", "insert_line": 4, "new_str": "x\ny\n"}, ("modify", 5, 6, 2, 0, False)),
        ({"command": "append", "new_str": "z"}, ("modify", None, None, 1, 0, False)),
        ({}, ("modify", None, None, None, None, False)),
    ],
)
def test_a_write_s_arguments_say_what_changed(given: dict[str, Any], row: tuple[Any, ...]) -> None:
    call = use(("", "fs_write", {"path": "a.md", **given}))
    session = read(entry(prompt("go"), call), entry(results(result()), say("ok")))
    assert [(e.op, e.start_line, e.end_line, e.added, e.removed, e.whole_file) for e in session.edits] == [row]


def test_an_mcp_tool_is_known_by_its_name() -> None:
    session = read(entry(prompt("go"), use(("", "github___list_issues", {}), ("", "shiny_new_tool", {}))))
    assert [c.class_ for c in session.tool_calls] == ["mcp", "other"]


def test_unknown_content_and_answers_are_kept() -> None:
    assert kinds(read(entry({"Telepathy": {}}, {"Silence": {}}))) == ["unknown", "unknown"]


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not here")
def test_the_corpus_reads_as_the_raw_json_says() -> None:
    found: Counter[str] = Counter()
    for path in sorted(CORPUS.glob("*/*/transcript.json")):
        data = path.read_bytes()
        file = given(data, "kiro", hint=path.parent.name)
        session = read_one(FORMAT, file)
        assert session.session_id == json.loads((path.parent / "entire.metadata.json").read_bytes())["session_id"]
        assert data.count(b'"Prompt"') == len(session.turns)
        assert data.count(b'"assistant"') == len(session.steps)
        assert data.count(b'"fs_write"') == len(session.tool_calls)
        found.update(sessions=1, turns=len(session.turns), steps=len(session.steps), calls=len(session.tool_calls))
        found["unknown"] += kinds(session).count("unknown") + file.artifact.skipped
    assert found == {"sessions": 5, "turns": 8, "steps": 14, "calls": 3, "unknown": 0}
