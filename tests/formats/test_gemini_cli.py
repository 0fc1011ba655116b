"""The traps of Gemini CLI chat files that no sample shows (design/formats.md#gemini-cli)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.gemini_cli import FORMAT
from agentsignals.formats.head import Head
from agentsignals.model import Session
from tests.formats.reading import read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "gemini-cli"
AT = "2026-04-14T15:00:00.000Z"
AT_US = 1_776_178_800_000_000
LATER = "2026-04-14T15:00:09.000Z"


def message(kind: str, content: Any, **facts: Any) -> dict[str, Any]:
    return {"id": "i", "timestamp": AT, "type": kind, "content": content, **facts}


def user(content: Any, **facts: Any) -> dict[str, Any]:
    return message("user", content, **facts)


def gemini(content: Any = "", **facts: Any) -> dict[str, Any]:
    return message("gemini", content, **{"model": "gemini-3-flash", **facts})


def tokens(input: int, output: int, cached: int = 0, thoughts: int = 0, tool: int = 0) -> dict[str, int]:  # noqa: A002  (the file's name)
    total = input + output + thoughts + tool
    return {"input": input, "output": output, "cached": cached, "thoughts": thoughts, "tool": tool, "total": total}


def call(name: str, args: dict[str, Any], status: str = "success", call_id: str = "c1", **facts: Any) -> dict[str, Any]:
    said = facts.pop("output", "done")
    answer = {"functionResponse": {"id": call_id, "response": {"output" if status == "success" else "error": said}}}
    return {
        "id": call_id,
        "name": name,
        "args": args,
        "result": [answer],
        "status": status,
        "timestamp": LATER,
        **facts,
    }


def read(*messages: Any, **facts: Any) -> Session:
    chat = {"sessionId": "s-1", "projectHash": "0" * 64, "startTime": AT, "messages": messages, **facts}
    return read_one(FORMAT, chat)


def kinds(session: Session) -> list[str]:
    return [event.kind for event in session.events]


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (tokens(1000, 50), (1000, 50, 0, 0)),
        (tokens(1000, 50, cached=900), (100, 50, 900, 0)),  # cached is part of the input
        (tokens(1000, 50, thoughts=30), (1000, 80, 0, 30)),  # thoughts are beside the output, and billed as output
        (tokens(1000, 50, cached=900, tool=7), (107, 50, 900, 0)),  # the prompt of a built-in tool is input
        ({"input": 10, "output": 5, "total": 15}, (10, 5, None, None)),
        (tokens(0, 0), (None, None, None, None)),
        (None, (None, None, None, None)),
    ],
)
def test_tokens_are_counted_as_they_are_billed(used: Any, expected: tuple[int | None, ...]) -> None:
    (step,) = read(gemini("hi", tokens=used)).steps
    assert (step.input_tokens, step.output_tokens, step.cache_read_tokens, step.reasoning_tokens) == expected
    assert step.cache_write_tokens is None


@pytest.mark.parametrize(
    "content",
    ["fix it", [{"text": "fix it"}], {"text": "fix it"}, ["fix it"], [{"text": " fix it\n"}]],
    ids=repr,
)
def test_a_prompt_is_a_string_or_parts(content: Any) -> None:
    (turn,) = read(user(content)).turns
    assert (turn.kind, turn.text, turn.timestamp) == ("prompt", "fix it", AT_US)


@pytest.mark.parametrize(
    ("kind", "text", "event"),
    [
        ("info", "Request cancelled.", "interrupt"),
        ("info", "Update available", "meta"),
        ("warning", "Hook failed", "meta"),
        ("error", "[API Error: quota]", "api_error"),
        ("telepathy", "hm", "unknown"),
    ],
)
def test_notices_are_events(kind: str, text: str, event: str) -> None:
    session = read(message(kind, text))
    assert kinds(session) == [event]
    assert session.turns == []


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        ("success", "x", "ok"),
        ("error", "File not found", "error"),
        ("cancelled", "[Operation Cancelled] Reason: Operation cancelled", "cancelled"),
        ("cancelled", "[Operation Cancelled] Reason: User denied execution.", "rejected"),
        ("cancelled", "[Operation Cancelled] Reason: User did not allow tool call", "rejected"),
        ("executing", "", "none"),
        ("awaiting_approval", "", "none"),
    ],
)
def test_a_call_and_its_result_stand_in_one_record(status: str, said: str, expected: str) -> None:
    (found,) = read(
        gemini("", tokens=tokens(1, 1), toolCalls=[call("read_file", {"file_path": "a"}, status, output=said)])
    ).tool_calls
    assert (found.status, found.class_, found.path, found.step) == (expected, "read", "a", 0)
    assert found.started_at == AT_US
    assert found.ended_at == (None if expected == "none" else AT_US + 9_000_000)


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        (
            "Plan rejected. User feedback: keep it small\n\nThe plan is stored at: /p.md\nRevise the plan",
            "rejected",
            True,
        ),
        ("Plan rejected. No feedback provided.\n\nThe plan is stored at: /p.md\nAsk the user", "rejected", False),
        ("User cancelled the plan approval dialog. The plan was not approved", "rejected", False),
        ("Plan approved. Switching to Default mode.\n\nThe approved plan is stored at: /p.md", "ok", False),
    ],
)
def test_a_plan_that_is_turned_down_is_a_success_for_the_client(said: str, status: str, words: bool) -> None:
    session = read(gemini(toolCalls=[call("exit_plan_mode", {"plan_path": "/p.md"}, output=said)]))
    assert [c.status for c in session.tool_calls] == [status]
    assert [(t.kind, t.text) for t in session.turns] == ([("rejection_feedback", "keep it small")] if words else [])


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, ""),
        ("plain", "plain"),
        ([{"functionResponse": {"id": "c1", "response": {"output": {"a": 1}}}}], '{"a": 1}'),
        ([{"functionResponse": {"id": "other", "response": {"content": 1}}}], '{"content": 1}'),
        ([{"text": "one"}, "two"], "one\ntwo"),
        (7, "7"),
    ],
    ids=repr,
)
def test_results_of_every_shape_are_text(result: Any, text: str) -> None:
    session = read(gemini(toolCalls=[{**call("glob", {"pattern": "*"}), "result": result}]))
    assert [e.text for e in session.events if e.kind == "tool_result"] == [text]


DIFF = "Index: a.css\n===\n--- a.css\tCurrent\n+++ a.css\tProposed\n@@ -10,3 +10,4 @@\n x\n-y\n+z\n+w\n v\n"
NEW = "Index: b.css\n===\n--- b.css\tOriginal\n+++ b.css\tWritten\n@@ -0,0 +1,2 @@\n+x\n+y\n"


def shown(diff: str, path: str, new: bool = False) -> dict[str, Any]:
    return {"fileDiff": diff, "fileName": path, "filePath": f"/home/a/{path}", "isNewFile": new, "newContent": "…"}


@pytest.mark.parametrize(
    ("made", "rows"),
    [
        (
            call("replace", {"file_path": "a.css"}, resultDisplay=shown(DIFF, "a.css")),
            [("modify", 11, 12, 2, 1, False)],
        ),
        (
            call("write_file", {"file_path": "b.css", "content": "x\ny\n"}, resultDisplay=shown(NEW, "b.css", True)),
            [("create", 1, 2, 2, 0, True)],
        ),
        (  # 2 of 2 lines are new: the file was rewritten
            call("write_file", {"file_path": "a.css", "content": "z\nw\n"}, resultDisplay=shown(DIFF, "a.css")),
            [("modify", 11, 12, 2, 1, True)],
        ),
        (
            call("replace", {"file_path": "a.css", "old_string": "x\ny", "new_string": "x\nz\nw"}, resultDisplay="ok"),
            [("modify", None, None, 2, 1, False)],
        ),
        (call("write_file", {"file_path": "a.css", "content": "q"}), [("modify", None, None, None, None, True)]),
        (call("replace", {"file_path": "a.css"}, "error", output="no match", resultDisplay=shown(DIFF, "a.css")), []),
    ],
    ids=["replace", "new file", "rewrite", "no diff", "no diff, whole file", "failed"],
)
def test_edits_know_as_much_as_the_file_shows(made: Any, rows: list[tuple[Any, ...]]) -> None:
    session = read(gemini(toolCalls=[made]))
    assert [(e.op, e.start_line, e.end_line, e.added, e.removed, e.whole_file) for e in session.edits] == rows


@pytest.mark.parametrize(
    "made",
    [
        call("read_file", {"file_path": "/home/a/src/x.css"}),
        call("replace", {"file_path": "src/x.css"}, resultDisplay=shown(DIFF, "src/x.css")),
        call("list_directory", {"dir_path": "/home/a"}),
    ],
    ids=["argument", "shown diff", "folder"],
)
def test_the_project_folder_is_the_one_whose_hash_the_file_holds(made: Any) -> None:
    session = read(gemini(toolCalls=[made]), projectHash=hashlib.sha256(b"/home/a").hexdigest())
    assert session.cwd == "/home/a"
    assert not (session.tool_calls[0].path or "").startswith("/")


def test_no_folder_is_guessed() -> None:
    session = read(gemini(toolCalls=[call("read_file", {"file_path": "/home/a/x.css"})]))
    assert (session.cwd, session.branch) == (None, None)
    assert session.tool_calls[0].path == "/home/a/x.css"


@pytest.mark.parametrize(
    ("content", "claimed"),
    [
        ('{"sessionId": "s", "projectHash": "h", "messages": []}', True),
        (
            '{"sessionId": "s", "projectHash": "h", "startTime": "t", "kind": "main"}\n{"id": "m", "type": "user"}',
            True,
        ),
        ('{"sessionId": "s", "projectHash": "h"}\n{"id": "m", "type": "user"}', False),
        ('{"sessionId": "s", "messages": []}', False),
        ('{"sessionId": "", "projectHash": "h", "messages": []}', False),
    ],
    ids=["document", "header of JSON Lines", "header without a start", "no project", "no id"],
)
def test_documents_and_json_lines_of_a_session_are_claimed(content: str, claimed: bool) -> None:
    claim = FORMAT.claims(Head(content.encode(), "chat.json", True))
    assert (claim.keys if claim is not None else None) == (["session:s"] if claimed else None)


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not here")
def test_the_corpus_reads_as_the_raw_messages_and_entire_count_it() -> None:
    found: Counter[str] = Counter()
    for path in sorted(CORPUS.glob("*/*/transcript.json")):
        data = path.read_bytes()
        session = read_one(FORMAT, data)
        raw = json.loads(data)
        used = [m["tokens"] for m in raw["messages"] if m.get("tokens")]
        assert len(session.steps) == len(used)
        fresh = sum(s.input_tokens or 0 for s in session.steps) + sum(s.cache_read_tokens or 0 for s in session.steps)
        assert fresh + sum(s.output_tokens or 0 for s in session.steps) == sum(t["total"] for t in used)
        recorded = json.loads((path.parent / "entire.metadata.json").read_bytes())["token_usage"]
        # Entire keeps cached tokens inside the input and leaves thoughts out of the output
        if recorded["api_call_count"] == len(used):
            assert fresh == recorded["input_tokens"]
            thoughts = sum(s.reasoning_tokens or 0 for s in session.steps)
            assert sum(s.output_tokens or 0 for s in session.steps) - thoughts == recorded["output_tokens"]
            found["as Entire counted"] += 1
        assert hashlib.sha256((session.cwd or "").encode()).hexdigest() == raw["projectHash"]
        calls = [c for m in raw["messages"] for c in m.get("toolCalls", ())]
        shown_edits = [c for c in calls if "diffStat" in (c.get("resultDisplay") or ())]
        stats = [c["resultDisplay"]["diffStat"] for c in shown_edits]
        by_tool = [e for e in session.edits if e.via == "edit_tool"]
        assert len(by_tool) == sum(c["resultDisplay"]["fileDiff"].count("\n@@ ") for c in shown_edits)
        assert sum(e.added or 0 for e in by_tool) == sum(s["model_added_lines"] for s in stats)
        assert sum(e.removed or 0 for e in by_tool) == sum(s["model_removed_lines"] for s in stats)
        found.update(e.kind for e in session.events if e.kind in ("interrupt", "unknown"))
        found.update(c.status for c in session.tool_calls)
        found.update(sessions=1, turns=len(session.turns), steps=len(session.steps), edits=len(by_tool))
    assert found == {
        "sessions": 4,
        "as Entire counted": 3,
        "turns": 11,
        "steps": 60,
        "ok": 57,
        "cancelled": 1,
        "rejected": 1,
        "interrupt": 2,
        "edits": 18,
    }
