"""The traps of Gemini CLI chat files, one test each (design/formats.md#gemini-cli)."""

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
FILES = "--- Content from referenced files ---"


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
    ("content", "shown"),
    [
        ([{"text": "read @a"}, {"text": f"\n{FILES}"}, {"text": "\nContent from @a:\nx = 1"}], None),
        ([{"text": "read @a"}, {"text": "whatever the client put there"}], [{"text": "read @a"}]),
        (f"read @a\n{FILES}\nContent from @a:\nx = 1", None),
    ],
    ids=["parts", "displayContent", "string"],
)
def test_files_behind_a_prompt_are_not_the_persons_words(content: Any, shown: Any) -> None:
    facts = {"displayContent": shown} if shown is not None else {}
    assert [t.text for t in read(user(content, **facts)).turns] == ["read @a"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("Please continue.", "meta"),
        ("System: Please continue.", "meta"),
        ("I ran the following shell command:\n```sh\nls\n```", "user_shell"),
        ("<state_snapshot><overall_goal>x</overall_goal></state_snapshot>", "compaction"),
    ],
)
def test_what_the_client_says_in_the_persons_name_is_no_turn(content: str, kind: str) -> None:
    session = read(user(content))
    assert session.turns == []
    assert kinds(session) == [kind]


def test_answers_of_tools_in_a_rewritten_history_are_no_turn() -> None:
    session = read(user([{"functionResponse": {"id": "c1", "name": "glob", "response": {"output": "a.py"}}}]))
    assert (session.turns, session.events) == ([], [])


def test_a_picture_alone_is_an_attachment() -> None:
    (turn,) = read(user([{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}])).turns
    assert (turn.kind, turn.text) == ("attachment", "")


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


def test_what_another_tool_says_of_plans_is_no_answer_to_one() -> None:
    run = call("read_file", {"file_path": "a"}, output="Plan rejected. No feedback provided.")
    assert [c.status for c in read(gemini(toolCalls=[run])).tool_calls] == ["ok"]


def test_a_call_denied_by_policy_is_an_error_of_permission() -> None:
    denied = call(
        "run_shell_command", {"command": "rm x"}, "error", output='Tool execution for "Shell" denied by policy.'
    )
    assert [(c.status, c.error_class) for c in read(gemini(toolCalls=[denied])).tool_calls] == [("error", "permission")]


def test_a_failed_command_is_a_success_for_the_client_and_says_its_exit_code() -> None:
    run = call(
        "run_shell_command", {"command": "npm test"}, output="Output: 1 failed\nExit Code: 1\nProcess Group PGID: 7"
    )
    assert [(c.status, c.exit_code, c.class_) for c in read(gemini(toolCalls=[run])).tool_calls] == [
        ("error", 1, "test")
    ]


def test_a_shell_s_folder_places_the_files_it_writes() -> None:
    run = call("run_shell_command", {"command": "echo x > out.txt", "dir_path": "web"})
    assert [(e.path, e.via) for e in read(gemini(toolCalls=[run])).edits] == [("web/out.txt", "shell")]


def test_of_answers_filed_together_the_call_s_own_counts() -> None:
    answers = [{"functionResponse": {"id": i, "response": {"output": f"text of {i}"}}} for i in ("c1", "c2")]
    calls = [{**call("read_file", {"file_path": i}, call_id=i), "result": answers} for i in ("c1", "c2")]
    session = read(gemini(toolCalls=calls))
    assert [e.text for e in session.events if e.kind == "tool_result"] == ["text of c1", "text of c2"]


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


def test_calls_cut_off_from_their_model_call_by_a_notice_belong_to_it() -> None:
    stopped = call("run_shell_command", {"command": "git add -A"}, "cancelled", output="Operation cancelled")
    before = gemini("I stage it.", tokens=tokens(10, 5))
    session = read(user("go"), before, message("info", "Request cancelled."), gemini("", toolCalls=[stopped]))
    assert len(session.steps) == 1
    assert [(c.step, c.status) for c in session.tool_calls] == [(0, "cancelled")]


@pytest.mark.parametrize(
    "last",
    [gemini("words", toolCalls=[call("glob", {})]), gemini("", tokens=tokens(3, 1), toolCalls=[call("glob", {})])],
    ids=["text without tokens", "tokens without text"],
)
def test_any_other_message_is_a_step_of_its_own(last: Any) -> None:
    assert len(read(user("go"), gemini("a", tokens=tokens(1, 1)), last).steps) == 2


def test_calls_after_the_next_prompt_are_not_of_the_model_call_before_it() -> None:
    late = gemini("", toolCalls=[call("glob", {})])
    assert [s.turn for s in read(user("a"), gemini("x", tokens=tokens(1, 1)), user("b"), late).steps] == [0, 1]


def test_thoughts_are_thinking_at_their_own_time() -> None:
    thought = {"subject": "Reading", "description": "the rule", "timestamp": LATER}
    (event,) = read(gemini("", thoughts=[thought], tokens=tokens(1, 1))).events
    assert (event.kind, event.text, event.timestamp) == ("thinking", "Reading: the rule", AT_US + 9_000_000)


def test_thought_parts_of_an_answer_are_not_its_text() -> None:
    content = [
        {"text": "It "},
        {"text": "secret", "thought": True},
        {"text": "works."},
        {"functionCall": {"name": "x"}},
    ]
    assert [e.text for e in read(gemini(content)).events] == ["It works."]


def test_a_change_of_model_is_an_event() -> None:
    session = read(gemini("a"), gemini("b", model="gemini-3-pro"))
    assert [(e.kind, e.text) for e in session.events][1] == ("model_change", "gemini-3-flash -> gemini-3-pro")


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


def test_the_user_of_a_subagent_s_file_is_the_parent_agent() -> None:
    session = read(user("Find the rule"), gemini("a.css:3"), kind="subagent")
    assert session.turns == []
    assert kinds(session) == ["meta", "text"]


@pytest.mark.parametrize(
    ("content", "claimed"),
    [
        ('{"sessionId": "s", "projectHash": "h", "messages": []}', True),
        (
            '{"sessionId": "s", "projectHash": "h", "startTime": "t", "kind": "main"}\n{"id": "m", "type": "user"}',
            True,
        ),
        ('{"sessionId": "s", "messages": []}', False),
        ('{"sessionId": "", "projectHash": "h", "messages": []}', False),
    ],
    ids=["document", "header of JSON Lines", "no project", "no id"],
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
