"""The traps of OpenCode exports, one test each (design/formats.md#opencode)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.formats.opencode import FORMAT
from agentsignals.formats.opencode.reader import SHELL_MARK
from agentsignals.model import Session
from tests.formats.reading import given, read_one

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "sessions" / "opencode"
START = 1_775_000_000_000
ABORT = {"name": "MessageAbortedError", "data": {"message": "The operation was aborted."}}
ZERO = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def text(words: str, **facts: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **facts}


def tool(
    name: str, given: dict[str, Any], status: str = "completed", call_id: str = "call_1", **state: Any
) -> dict[str, Any]:
    run = {"status": status, "input": given, "time": {"start": START + 1, "end": START + 2}, **state}
    return {"type": "tool", "callID": call_id, "tool": name, "state": run}


def user(*parts: dict[str, Any], at: int = 0, **facts: Any) -> dict[str, Any]:
    info = {"role": "user", "id": "msg_u", "time": {"created": START + at}, "agent": "build", **facts}
    return {"info": info, "parts": list(parts)}


def agent(*parts: dict[str, Any], at: int = 10, **facts: Any) -> dict[str, Any]:
    time = {"created": START + at, "completed": START + at + 5}
    info = {"role": "assistant", "id": f"msg_{at}", "time": time, "modelID": "m-1", "cost": 0, "tokens": ZERO, **facts}
    return {"info": info, "parts": [{"type": "step-start"}, *parts]}


def counted(total: int | None = None, **tokens: int) -> dict[str, Any]:
    used = {name: tokens.get(name, 0) for name in ("input", "output", "reasoning")}
    cache = {"read": tokens.get("read", 0), "write": tokens.get("write", 0)}
    return {**used, "cache": cache, **({"total": total} if total is not None else {})}


def read(*messages: Any, **info: Any) -> Session:
    about = {"id": "ses_1", "directory": "/w", "version": "1.2.20", **info}
    return read_one(FORMAT, {"info": about, "messages": messages})


def kinds(session: Session) -> list[str]:
    return [event.kind for event in session.events]


def test_one_message_is_one_step_and_its_step_finish_part_counts_nothing() -> None:
    used = counted(input=10, output=5, read=100, write=3)
    finish = {"type": "step-finish", "reason": "stop", "tokens": used, "cost": 0.5}
    (step,) = read(user(text("hi")), agent(text("ho"), finish, tokens=used, cost=0.5, finish="stop")).steps
    assert (step.input_tokens, step.output_tokens, step.cache_read_tokens, step.cache_write_tokens) == (10, 5, 100, 3)
    assert (step.cost_usd, step.cost_source, step.stop_reason) == (0.5, "recorded", "stop")


@pytest.mark.parametrize(
    ("version", "total", "billed"),
    [
        ("1.2.26", 130, 30),  # input 100, output 30, reasoning 20 of it
        ("1.4.3", 150, 50),  # the same call in a version that takes reasoning out of output
        ("1.2.26", 150, 50),  # the total goes before the version
        ("1.4.3", 130, 30),
        ("1.2.26", None, 30),
        ("1.4.3", None, 50),
        ("1.18.21", 999, 50),
        ("1.2.16", 999, 30),
        (None, None, 50),
    ],
)
def test_billed_output_holds_reasoning_once(version: str | None, total: int | None, billed: int) -> None:
    tokens = counted(total, input=100, output=30, reasoning=20)
    (step,) = read(agent(text("x"), tokens=tokens), version=version).steps
    assert (step.output_tokens, step.reasoning_tokens, step.input_tokens) == (billed, 20, 100)


def test_more_reasoning_than_output_is_never_inside_it() -> None:
    (step,) = read(agent(text("x"), tokens=counted(input=1, output=30, reasoning=40)), version="1.2.20").steps
    assert step.output_tokens == 70


def test_a_cost_of_zero_is_a_subscription_and_not_recorded() -> None:
    (step,) = read(agent(text("x"), tokens=counted(input=7), cost=0)).steps
    assert (step.cost_usd, step.cost_source, step.input_tokens) == (None, None, 7)


def test_an_aborted_call_is_a_step_without_tokens_and_an_interruption() -> None:
    session = read(user(text("hi")), agent(error=ABORT))
    (step,) = session.steps
    assert (step.input_tokens, step.output_tokens, step.cache_read_tokens) == (None, None, None)
    assert kinds(session) == ["human_turn", "interrupt"]
    assert session.events[1].timestamp == (START + 15) * 1000


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"name": "APIError", "data": {"message": "Overloaded"}}, "APIError: Overloaded"),
        ({"name": "MessageOutputLengthError", "data": {}}, "MessageOutputLengthError"),
        ("plain words", '"plain words"'),
    ],
)
def test_other_errors_are_errors_of_the_model_call(error: Any, told: str) -> None:
    session = read(agent(error=error))
    assert [(e.kind, e.text) for e in session.events] == [("api_error", told)]


def test_redacted_messages_and_calls_are_not_one_message_and_one_call() -> None:
    calls = [tool("read", {"filePath": f"/w/{n}.py"}, call_id="REDACTED", output=f"text {n}") for n in (1, 2)]
    session = read(*(agent(call, at=n, id="REDACTED", tokens=counted(input=n)) for n, call in enumerate(calls, 1)))
    assert [s.input_tokens for s in session.steps] == [1, 2]
    assert [s.message_id for s in session.steps] == [None, None]
    assert [(c.path, session.events[c.result_seq or 0].text) for c in session.tool_calls] == [
        ("1.py", "text 1"),
        ("2.py", "text 2"),
    ]
    assert len({c.call_id for c in session.tool_calls} - {"REDACTED"}) == 2


def test_calls_that_share_an_id_are_two_calls() -> None:
    session = read(agent(*(tool("read", {"filePath": f"/w/{n}"}, call_id="same", output=n) for n in "ab")))
    assert len({c.call_id for c in session.tool_calls}) == 2


def test_a_result_belongs_to_its_own_call_although_an_earlier_one_of_that_id_is_open() -> None:
    waiting = tool("task", {"prompt": "p"}, status="running", call_id="REDACTED")
    done = tool("read", {"filePath": "/w/a"}, call_id="REDACTED", output="words")
    task, reading = read(agent(waiting, done)).tool_calls
    assert (task.status, task.result_seq) == ("none", None)
    assert (reading.status, reading.result_seq) == ("ok", 2)


def test_a_command_that_failed_is_completed_for_the_client_and_says_its_exit_code() -> None:
    run = tool("bash", {"command": "npm test"}, output="1 failed", metadata={"exit": 1})
    (call,) = read(agent(run)).tool_calls
    assert (call.status, call.exit_code, call.class_, call.error_class) == ("error", 1, "test", "test_failed")


@pytest.mark.parametrize(
    ("error", "metadata", "status", "error_class"),
    [
        ("Error: File not found: /w/a", None, "error", "not_found"),
        ("Error: File /w/a not found", None, "error", "not_found"),
        ("Error: Found multiple matches for oldString. Provide more", None, "error", "edit_mismatch"),
        ("Error: You must read the file /w/a before overwriting it.", None, "error", "not_read_first"),
        ("Error: The user has specified a rule which prevents you from using", None, "error", "permission"),
        ("Tool execution aborted", None, "cancelled", None),
        ("Error: Cancelled", None, "cancelled", None),
        ("Error: whatever", {"interrupted": True}, "cancelled", None),
        ("Error: The user dismissed this question", None, "rejected", None),
    ],
)
def test_failures_refusals_and_aborts_are_told_apart(
    error: str, metadata: Any, status: str, error_class: str | None
) -> None:
    (call,) = read(agent(tool("edit", {"filePath": "/w/a"}, status="error", error=error, metadata=metadata))).tool_calls
    assert (call.status, call.error_class) == (status, error_class)


def test_words_given_when_refusing_are_a_turn() -> None:
    refused = (
        "Error: The user rejected permission to use this specific tool call with the following feedback: not there"
    )
    session = read(user(text("push")), agent(tool("bash", {"command": "git push"}, status="error", error=refused)))
    assert [(t.kind, t.text) for t in session.turns] == [("prompt", "push"), ("rejection_feedback", "not there")]
    assert "interrupt" not in kinds(session)


def test_calls_rejected_along_with_one_that_was_answered_in_words_are_no_interruption() -> None:
    told = "The user rejected permission to use this specific tool call"
    words = tool("bash", {"command": "a"}, status="error", error=f"{told} with the following feedback: b first")
    along = tool("bash", {"command": "c"}, status="error", error=f"{told}.", call_id="call_2")
    session = read(agent(words, along))
    assert [t.text for t in session.turns] == ["b first"]
    assert "interrupt" not in kinds(session)


def test_refusing_without_words_rejects_all_waiting_calls_and_is_one_interruption() -> None:
    refused = "The user rejected permission to use this specific tool call."
    runs = [tool("bash", {"command": "rm x"}, status="error", error=refused, call_id=f"c{n}") for n in (1, 2)]
    session = read(user(text("clean")), agent(*runs))
    assert [c.status for c in session.tool_calls] == ["rejected", "rejected"]
    assert kinds(session).count("interrupt") == 1
    assert len(session.turns) == 1


def test_synthetic_and_ignored_text_is_not_the_persons() -> None:
    parts = text("read @a"), text("Called the Read tool", synthetic=True), text("plugin note", ignored=True)
    session = read(user(*parts), user(text("Summarize the task tool output above", synthetic=True), at=9))
    assert [t.text for t in session.turns] == ["read @a"]
    assert kinds(session) == ["human_turn", "meta", "meta", "meta"]


def test_a_message_of_files_alone_is_an_attachment() -> None:
    picture = {"type": "file", "mime": "image/png", "filename": "clipboard", "url": "data:image/png;base64,AAAA"}
    (turn,) = read(user(picture)).turns
    assert (turn.kind, turn.text) == ("attachment", "")


@pytest.mark.parametrize("parent", ["ses_0", "REDACTED"])
def test_the_user_of_a_session_with_a_parent_is_the_parent_agent(parent: str) -> None:
    refused = "The user rejected permission to use this specific tool call with the following feedback: no"
    run = tool("bash", {"command": "x"}, status="error", error=refused)
    session = read(user(text("Find all callers")), agent(run), parentID=parent)
    assert session.parent_session_id == parent
    assert session.turns == []
    assert [e.text for e in session.events if e.kind == "meta"] == ["Find all callers", "no"]


def test_what_is_sent_while_the_agent_works_is_queued() -> None:
    session = read(user(text("a")), agent(at=10), user(text("b"), at=12), agent(at=16), user(text("c"), at=21))
    assert [t.kind for t in session.turns] == ["prompt", "queued_prompt", "prompt"]


def test_what_is_sent_after_an_abort_is_not_queued() -> None:
    session = read(user(text("a")), agent(at=10, error=ABORT), user(text("b"), at=12))
    assert [t.kind for t in session.turns] == ["prompt", "prompt"]


def test_a_command_the_person_ran_is_no_call_and_no_step_of_the_agent() -> None:
    ran = agent(tool("bash", {"command": "git status"}, output="clean"))
    session = read(user(text(SHELL_MARK, synthetic=True)), ran, user(text("go"), at=99), agent(text("ok"), at=100))
    assert [(e.kind, e.text) for e in session.events[:2]] == [("user_shell", "git status"), ("command_output", "clean")]
    assert session.tool_calls == []
    assert len(session.steps) == 1


def test_a_command_that_starts_a_subagent_is_a_slash_command_and_its_run_no_model_call() -> None:
    subtask = {"type": "subtask", "prompt": "You are a reviewer", "command": "review", "agent": "build"}
    run = agent(tool("task", {"prompt": "You are a reviewer"}, output="fine"))
    run["parts"] = run["parts"][1:]  # the client writes this message itself: no step begins in it
    session = read(user(subtask), run)
    assert [(t.kind, t.text) for t in session.turns] == [("slash_command", "/review")]
    assert session.steps == []
    assert [(c.name, c.class_, c.status, c.step) for c in session.tool_calls] == [("task", "task", "ok", None)]


def test_a_subagent_asked_for_without_a_command_is_a_prompt() -> None:
    (turn,) = read(user({"type": "subtask", "prompt": "Look at the logs", "agent": "general"})).turns
    assert (turn.kind, turn.text) == ("prompt", "Look at the logs")


@pytest.mark.parametrize(("auto", "told"), [(True, {"trigger": "auto"}), (False, {"trigger": "manual"}), (None, {})])
def test_a_summary_message_is_one_compaction_and_its_text_nobodys_answer(auto: bool | None, told: Any) -> None:
    asked = user({"type": "compaction", "auto": auto})
    session = read(
        asked, agent(text("## Goal"), summary=True, modelID="m-2", tokens=counted(input=9)), agent(text("on"), at=30)
    )
    assert kinds(session) == ["compaction", "meta", "text"]
    assert json.loads(session.events[0].text or "") == told
    assert [s.input_tokens for s in session.steps] == [9, None]


def test_a_summary_that_was_aborted_compacted_nothing() -> None:
    assert kinds(read(agent(summary=True, error=ABORT))) == ["interrupt"]


def test_the_prompt_the_client_repeats_after_a_compaction_is_not_said_twice() -> None:
    overflow = user({"type": "compaction", "auto": True, "overflow": True}, at=20)
    again = user(text("fix it"), at=90_000), agent(text("ok"), at=90_010), user(text("fix it"), at=190_000)
    session = read(
        user(text("fix it")), agent(text("…")), overflow, agent(text("## Goal"), at=30, summary=True), *again
    )
    assert [t.timestamp for t in session.turns] == [START * 1000, (START + 190_000) * 1000]


def test_files_of_a_user_message_s_summary_are_not_a_compaction() -> None:
    session = read(user(text("hi"), summary={"diffs": [{"file": "a", "before": "", "after": "x"}]}), agent(text("ho")))
    assert kinds(session) == ["human_turn", "text"]


def test_mode_and_model_changes_are_events() -> None:
    first = user(text("plan it"), agent="plan"), agent(text("1. …"))
    then = user(text("do it"), at=40), agent(text("done"), at=50, modelID="m-2")
    session = read(*first, *then)
    assert kinds(session) == ["human_turn", "text", "phase", "human_turn", "model_change", "text"]
    assert [e.text for e in session.events if e.kind in ("phase", "model_change")] == ["build", "m-1 -> m-2"]


DIFF = """Index: /w/a.py
===================================================================
--- /w/a.py
+++ /w/a.py
@@ -8,5 +8,6 @@
 one
-two
+zwei
+drei
 three
 four
@@ -30,3 +31,2 @@
 x
--- y
 z
"""
ADDED = "--- /w/b.py\n+++ /w/b.py\n@@ -0,0 +1,2 @@\n+first\n+second\n"
GONE = "--- /w/c.py\n+++ /w/c.py\n@@ -1,2 +0,0 @@\n-first\n-second\n"


def changed(session: Session) -> list[tuple[Any, ...]]:
    return [(e.path, e.op, e.start_line, e.end_line, e.added, e.removed, e.whole_file) for e in session.edits]


def test_an_edit_s_diff_gives_the_changed_lines() -> None:
    run = tool(
        "edit", {"filePath": "/w/a.py", "oldString": "two", "newString": "zwei"}, output="", metadata={"diff": DIFF}
    )
    assert changed(read(agent(run))) == [
        ("a.py", "modify", 9, 10, 2, 1, False),
        ("a.py", "modify", 32, 32, 0, 1, False),  # only a deletion: the line after it
    ]


@pytest.mark.parametrize("key", ["diff", "patch"])
def test_a_patch_s_files_are_edits_each_by_its_kind(key: str) -> None:
    files = [
        {"filePath": "/w/b.py", "type": "add", key: ADDED, "before": "", "after": "first\nsecond\n"},
        {"filePath": "/w/c.py", "type": "delete", key: GONE},
        {"filePath": "/w/old.py", "movePath": "/w/new.py", "type": "move", key: DIFF[: DIFF.index("@@ -30")]},
    ]
    session = read(agent(tool("apply_patch", {"patchText": "*** Begin Patch"}, output="", metadata={"files": files})))
    assert changed(session) == [
        ("b.py", "create", 1, 2, 2, 0, True),
        ("c.py", "delete", 1, 1, 0, 2, True),
        ("old.py", "delete", None, None, None, None, False),
        ("new.py", "rename", 9, 10, 2, 1, False),
    ]


def test_an_early_patch_keeps_one_diff_for_all_files() -> None:
    run = tool(
        "patch",
        {"patchText": "…"},
        output="",
        metadata={"diff": f"{DIFF}\nIndex: /w/b.py\n{ADDED}\nIndex: /w/c.py\n{GONE}"},
    )
    assert sorted(changed(read(agent(run)))) == [
        ("a.py", "modify", 9, 10, 2, 1, False),
        ("a.py", "modify", 32, 32, 0, 1, False),
        ("b.py", "create", 1, 2, 2, 0, True),
        ("c.py", "delete", 1, 1, 0, 2, True),
    ]


def test_a_failed_patch_of_one_file_knows_its_file() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch"
    session = read(
        agent(tool("apply_patch", {"patchText": patch}, status="error", error="Error: apply_patch verification failed"))
    )
    assert [(c.path, c.error_class) for c in session.tool_calls] == [("src/a.py", "edit_mismatch")]
    assert session.edits == []


def test_a_write_is_known_line_by_line_only_when_the_file_is_new() -> None:
    runs = [
        tool(
            "write", {"filePath": f"/w/{n}", "content": "1\n2\n"}, output="", call_id=n, metadata={"exists": n == "old"}
        )
        for n in ("new", "old")
    ]
    assert changed(read(agent(*runs))) == [
        ("new", "create", 1, 2, 2, 0, True),
        ("old", "modify", 1, 2, None, None, True),
    ]


def test_a_shell_s_working_folder_places_the_files_it_writes() -> None:
    run = tool("bash", {"command": "echo x > out.txt", "workdir": "/w/sub"}, output="", metadata={"exit": 0})
    session = read(agent(run))
    assert [(e.path, e.via) for e in session.edits] == [("sub/out.txt", "shell")]


@pytest.mark.parametrize(("root", "path"), [("/w", "a.py"), ("/", "/w/a.py")], ids=["a working tree", "none"])
def test_paths_are_relative_to_the_working_tree_the_session_is_in(root: str, path: str) -> None:
    run = agent(tool("read", {"filePath": "/w/a.py"}, output=""), path={"cwd": "/w/sub", "root": root})
    session = read(run, directory="/w/sub")
    assert (session.cwd, session.tool_calls[0].path) == ("/w/sub", path)


def test_files_changed_since_the_step_began_are_a_note_and_no_edit() -> None:
    session = read(agent({"type": "patch", "hash": "h", "files": ["/w/a.py"]}))
    assert session.edits == []
    assert [(e.kind, (e.text or "").split("\n")[-1]) for e in session.events] == [("meta", "/w/a.py")]


def test_a_part_of_a_new_kind_is_kept_as_unknown() -> None:
    assert [(e.kind, e.text) for e in read(agent({"type": "hologram"})).events] == [("unknown", "hologram")]


def test_an_odd_part_costs_only_itself() -> None:
    odd = agent(text("a"), {"type": "text", "text": 5}, text("b"))
    file = given({"info": {"id": "ses_1"}, "messages": [odd]}, "opencode")
    assert [e.text for e in read_one(FORMAT, file).events] == ["a", "b"]
    assert file.artifact.skipped_reasons == {"bad_shape": 1}


def test_times_are_milliseconds() -> None:
    session = read(user(text("a")), agent(text("b", time={"start": START + 11, "end": START + 14})))
    assert session.events[1].timestamp == (START + 11) * 1000
    assert session.ended_at == (START + 15) * 1000


@pytest.mark.parametrize(
    ("document", "keys"),
    [
        ({"info": {"id": "ses_a"}, "messages": []}, ["session:ses_a"]),
        ({"info": {"id": "REDACTED", "projectID": "p", "directory": "/w"}, "messages": []}, []),
        ({"info": {"id": "other"}, "messages": []}, None),
        ({"info": {"id": "ses_a"}}, None),
        ({"info": {"id": "ses_a", "permission": ["x" * 1000] * 90}, "messages": []}, ["session:ses_a"]),
    ],
    ids=["plain", "redacted", "no session", "no messages", "info longer than the head"],
)
def test_exports_are_recognised_by_their_session_id(document: Any, keys: list[str] | None) -> None:
    data = json.dumps(document, indent=2).encode()
    claim = FORMAT.claims(Head(data[:HEAD_BYTES], "full.jsonl", len(data) <= HEAD_BYTES))
    assert (claim.keys if claim is not None else None) == keys
    assert claim is None or claim.beside == (keys == [])


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not here")
def test_the_corpus_reads_as_entire_counted_it() -> None:
    """Steps and tokens are those Entire recorded beside each transcript; files and lines stand in the raw JSON."""
    found: Counter[str] = Counter()
    for path in sorted(CORPUS.glob("*/*/transcript.json")):
        data = path.read_bytes()
        session = read_one(FORMAT, data)
        raw = json.loads(data)
        recorded = json.loads((path.parent / "entire.metadata.json").read_bytes())["token_usage"]
        assert len(session.steps) == recorded["api_call_count"]
        assert sum(s.input_tokens or 0 for s in session.steps) == recorded["input_tokens"]
        assert sum(s.output_tokens or 0 for s in session.steps) == recorded["output_tokens"]
        assert sum(s.cache_read_tokens or 0 for s in session.steps) == recorded["cache_read_tokens"]
        tools = [p for m in raw["messages"] for p in m["parts"] if p["type"] == "tool"]
        files = [f for p in tools for f in p["state"].get("metadata", {}).get("files", ())]
        by_tool = [e for e in session.edits if e.via == "edit_tool"]
        assert sum(e.added or 0 for e in by_tool) == sum(f["additions"] for f in files)
        gone = sum(f["type"] == "delete" for f in files)  # the client counts what follows the last newline as a line
        assert sum(e.removed or 0 for e in by_tool) == sum(f["deletions"] for f in files) - gone
        assert [c.exit_code for c in session.tool_calls if c.name == "bash"] == [
            p["state"]["metadata"].get("exit") for p in tools if p["tool"] == "bash"
        ]
        assert {e.path for e in by_tool} == {f["relativePath"] for f in files}
        found.update(sessions=1, turns=len(session.turns), calls=len(session.tool_calls), steps=len(session.steps))
        found["subagents"] += session.parent_session_id is not None
        found["failed"] += sum(c.status == "error" for c in session.tool_calls)
        found["exit_not_zero"] += sum(bool(c.exit_code) for c in session.tool_calls)
    assert found == {
        "sessions": 35,
        "subagents": 22,
        "turns": 17,
        "steps": 429,
        "calls": 786,
        "failed": 10,
        "exit_not_zero": 5,
    }
