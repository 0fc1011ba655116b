"""Copilot CLI, words and tokens: every trap of design/formats.md#copilot-cli, each with events made up for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsignals.formats import Input, identify
from agentsignals.formats.copilot_cli import FORMAT
from agentsignals.formats.head import HEAD_BYTES, Head
from agentsignals.model import Artifact
from tests.formats.copilot_events import (
    ID,
    ROW,
    done,
    event,
    failed,
    given,
    metrics,
    one,
    only_call,
    request,
    says,
    shutdown,
    start,
    texts,
    usage,
    user,
)

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

# -- the person ----------------------------------------------------------------------------------------------------


def test_the_persons_words_are_those_shown_not_those_sent() -> None:
    session = one(start(), event("system.message", content="long"), user("count the boats\n"))
    assert [t.text for t in session.turns] == ["count the boats"]


@pytest.mark.parametrize(
    ("more", "kinds"),
    [
        ({}, ["prompt"]),
        ({"delivery": "idle"}, ["prompt"]),
        ({"delivery": "steering"}, ["queued_prompt"]),
        ({"delivery": "queued"}, ["queued_prompt"]),
        ({"source": "skill-pdf"}, []),
        ({"source": "agent-7"}, []),
        ({"isAutopilotContinuation": True}, []),
    ],
)
def test_a_message_is_the_persons_unless_it_names_another_source(more: ROW, kinds: list[str]) -> None:
    session = one(start(), user("go on", **more))
    assert [t.kind for t in session.turns] == kinds
    assert texts(session, "meta") == ([] if kinds else ["go on"])


def test_a_message_of_pictures_only_is_an_attachment() -> None:
    picture = {"type": "file", "path": "/w/a.png"}
    session = one(start(), event("user.message", content="", attachments=[picture]), event("user.message", content=""))
    assert [t.kind for t in session.turns] == ["attachment"]


def test_turn_ids_begin_anew_and_are_no_turns() -> None:
    rows = [event("assistant.turn_start", turnId="0"), says("a", "x"), event("assistant.turn_end", turnId="0")]
    session = one(start(), user("one"), *rows, user("two"), *rows[:1], says("b", "y"))
    assert [(s.message_id, s.turn) for s in session.steps] == [("api-a", 0), ("api-b", 1)]


def test_an_abort_is_an_interruption() -> None:
    assert texts(one(start(), user("x"), event("abort", reason="user_initiated")), "interrupt") == ["user_initiated"]


def test_a_command_run_by_hand_is_no_call() -> None:
    arguments = {"command": "git status"}
    session = one(
        start(),
        event("tool.user_requested", toolCallId="u", toolName="bash", arguments=arguments),
        event("tool.execution_start", toolCallId="u", toolName="bash", arguments=arguments),
        done("u", "clean"),
    )
    assert (session.tool_calls, texts(session, "user_shell"), texts(session, "command_output")) == (
        [],
        ["git status"],
        ["clean"],
    )


# -- the model's calls ---------------------------------------------------------------------------------------------


def test_parts_of_one_answer_are_one_step_and_its_tokens_count_once() -> None:
    session = one(start(), says("a", "x", outputTokens=30), says("a", "y", outputTokens=30), says("b", outputTokens=5))
    assert [(s.message_id, s.output_tokens) for s in session.steps] == [("api-a", 30), ("api-b", 5)]
    assert [e.step for e in session.events] == [0, 0, 1]


def test_thinking_may_be_hidden_and_is_told_once() -> None:
    session = one(
        start(),
        event("assistant.reasoning", content="hm"),
        says("a", "x", reasoningText="hm", reasoningOpaque="z"),
        says("b", "y", encryptedContent="z"),
        says("c", "z"),
    )
    assert texts(session, "thinking") == ["hm", ""]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # one call: the totals are its own; input as logged contains what the cache gave and took
        ([says("a", outputTokens=7), shutdown(opus=metrics(1, 100, 7, 60, 10))], [("opus", 30, 60, 10, 7, None)]),
        # two calls: nobody knows who used what
        (
            [says("a", outputTokens=7), says("b", outputTokens=8), shutdown(opus=metrics(2, 300, 15, 200, 0))],
            [
                ("opus", None, None, None, 7, None),
                ("opus", None, None, None, 8, None),
                ("opus", 100, 200, 0, None, "session_total"),
            ],
        ),
        # a call that left no message
        (
            [says("a", outputTokens=7), shutdown(opus=metrics(2, 100, 9, 0, 0))],
            [("opus", None, None, None, 7, None), ("opus", 100, 0, 0, 2, "session_total")],
        ),
        # a model that only worked unseen
        ([shutdown(mini=metrics(1, 50, 2, 0, 0))], [("mini", 50, 0, 0, 2, "session_total")]),
        # a provider that reports nothing
        (
            [says("a", "hi", outputTokens=0), shutdown(opus=metrics(1, 0, 0, 0, 0))],
            [("opus", None, None, None, None, None)],
        ),
        # a crash
        ([says("a", outputTokens=7)], [("opus", None, None, None, 7, None)]),
        # resumed: the totals of the second run are its own
        (
            [
                says("a", outputTokens=7),
                shutdown(opus=metrics(1, 100, 7, 0, 0)),
                event("session.resume"),
                says("b", outputTokens=8),
                shutdown(opus=metrics(1, 150, 8, 100, 0)),
            ],
            [("opus", 100, 0, 0, 7, None), ("opus", 50, 100, 0, 8, None)],
        ),
    ],
)
def test_input_is_known_at_shutdown_only(rows: list[ROW], expected: list[tuple[object, ...]]) -> None:
    session = one(start(), *rows)
    assert usage(session) == expected
    assert all(step.cost_usd is None for step in session.steps), "premium requests are no money"
    assert all(step.seq < len(session.events) for step in session.steps)


def test_a_subagents_totals_are_the_subagents() -> None:
    agents = {
        "main": {"modelMetrics": {"opus": metrics(1, 90, 7)}},
        "sub": {"modelMetrics": {"opus": metrics(1, 40, 3)}},
    }
    ended = event("session.shutdown", modelMetrics={"opus": metrics(2, 130, 10)}, agentMetrics=agents)
    session = one(start(), says("a", outputTokens=7), says("b", outputTokens=3, agent="sub"), ended)
    assert [(s.thread, s.input_tokens, s.output_tokens) for s in session.steps] == [("main", 90, 7), ("sub", 40, 3)]
    by_model = shutdown(opus=metrics(1, 90, 7), mini=metrics(2, 40, 3))
    mini = {"model": "mini", "agent": "sub"}
    session = one(
        start(),
        says("a", outputTokens=7),
        says("b", outputTokens=1, **mini),
        says("c", outputTokens=2, **mini),
        by_model,
    )
    assert [s.thread for s in session.steps] == ["main", "sub", "sub", "sub"]


def test_the_model_is_the_one_that_answers_not_the_one_selected() -> None:
    session = one(
        start(selectedModel="auto"),
        user("x"),
        says("a", "hi"),
        event("session.model_change", newModel="mini"),
        says("b", "yo", model="mini"),
    )
    assert [s.model for s in session.steps] == ["opus", "mini"]
    assert [t.model for t in session.turns] == ["auto"]
    assert texts(session, "model_change") == ["opus -> mini"]


# -- the session ---------------------------------------------------------------------------------------------------


def test_a_subagents_work_is_beside() -> None:
    session = one(
        start(),
        user("count"),
        event("subagent.started", "sub", agentName="explore"),
        event("user.message", "sub", content="Count them."),
        says("b", "two", request("t", "grep", pattern="boat"), agent="sub"),
        done("t", "a"),
        says("c", "older", parentToolCallId="k"),
    )
    assert [t.text for t in session.turns] == ["count"]
    assert [s.thread for s in session.steps] == ["sub", "k"]
    assert {e.thread for e in session.events if e.kind != "human_turn"} == {"sub", "k"}


def test_compaction_hooks_and_errors_leave_their_events() -> None:
    session = one(
        start(),
        event("session.compaction_start"),
        event("session.compaction_complete", success=True, preCompactionTokens=90, summaryContent="boats"),
        event("session.compaction_complete", success=False),
        event("session.truncation", preTruncationTokensInMessages=70, postTruncationTokensInMessages=30),
        event(
            "hook.end", hookType="preToolUse", output={"permissionDecision": "deny", "permissionDecisionReason": "no"}
        ),
        event("session.error", errorType="quota", message="used up"),
    )
    assert [(e.kind, e.text) for e in session.events] == [
        ("compaction", '{"preTokens":90,"summary":"boats"}'),
        ("meta", "compaction failed"),
        ("compaction", '{"kind":"truncation","preTokens":70,"postTokens":30}'),
        ("hook_block", "no"),
        ("api_error", "used up"),
    ]


def test_what_is_not_known_is_kept_by_name_and_counted() -> None:
    file = given("a", [start(), event("gangway.lowered", angle=3), {**user("x"), "data": {"content": 7}}])
    (session,) = FORMAT.read([file]).sessions
    assert texts(session, "unknown") == ["gangway.lowered"]
    assert (file.artifact.record_kinds["gangway.lowered"], file.artifact.skipped_reasons) == (1, {"bad_shape": 1})


def test_snapshots_of_a_session_are_united_by_event_id() -> None:
    rows = [{"id": f"k{n}", **r} for n, r in enumerate([start(), user("a"), says("x", "hi"), user("b"), user("c")])]
    files = [given("early", rows[:3]), given("slice", rows[3:]), given("middle", rows[:4])]
    files[1].session_hint = ID
    (session,) = FORMAT.read(files).sessions
    assert sorted(t.text for t in session.turns) == ["a", "b", "c"]
    assert texts(session, "text") == ["hi"]
    assert sum(f.artifact.record_kinds.get("repeated", 0) for f in files) == 4


def test_the_session_says_where_it_took_place() -> None:
    session = one(start(), user("x"))
    assert (session.repo, session.branch, session.cwd, session.agent_version) == ("ilo/ferry", "tide", "/w", "1.0.64")


@pytest.mark.parametrize(
    ("record", "keys", "beside"),
    [
        (start(), [f"session:{ID}"], False),
        (user("x"), [], True),
        ({"type": "session_start", "data": {}, "parentId": None}, None, False),
        ({"type": "session", "id": "x", "parentId": None}, None, False),
        ({"type": "user.message", "data": "x", "parentId": None}, None, False),
    ],
)
def test_events_are_recognised_by_their_envelope(record: ROW, keys: list[str] | None, beside: bool) -> None:
    claim = FORMAT.claims(Head(json.dumps(record).encode() + b"\n", "x", True))
    assert (claim.keys if claim else None, claim.beside if claim else False) == (keys, beside)


# -- real files ----------------------------------------------------------------------------------------------------


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_real_sessions_have_the_figures_counted_another_way() -> None:
    """Counted with plain json; the collector recorded the same tokens of the ten sessions that shut down."""
    totals = dict.fromkeys(("turns", "steps", "calls", "output", "prompt", "failed", "edits"), 0)
    recorded = 0
    for path in sorted(CORPUS.glob("sessions/copilot-cli/*/*/transcript.jsonl")):
        data = path.read_bytes()
        claimed = identify(Head(data[:HEAD_BYTES], path.name, len(data) <= HEAD_BYTES))
        assert claimed is not None and claimed[0] is FORMAT
        artifact = Artifact(
            artifact_id=path.name, source="corpus", path=path.name, format="copilot-cli", sha256="", bytes=len(data)
        )
        (session,) = FORMAT.read([Input(data, artifact)]).sessions
        got = {
            "turns": len(session.turns),
            "steps": len(session.steps),
            "calls": len(session.tool_calls),
            "output": sum(s.output_tokens or 0 for s in session.steps),
            "prompt": sum((s.input_tokens or 0) + (s.cache_read_tokens or 0) for s in session.steps),
            "failed": sum(c.status == "error" for c in session.tool_calls),
            "edits": sum(e.via == "edit_tool" for e in session.edits),
        }
        assert got == count(data), path.parent.name
        assert (artifact.skipped, texts(session, "unknown")) == (0, [])
        totals = {key: totals[key] + n for key, n in got.items()}
        theirs = json.loads((path.parent / "entire.metadata.json").read_text())["token_usage"]
        recorded += theirs["input_tokens"] == got["prompt"] > 0 and theirs["output_tokens"] == got["output"]
    assert totals == {
        "turns": 6, "steps": 120, "calls": 129, "output": 62143, "prompt": 100640, "failed": 5, "edits": 12,
    }  # fmt: skip
    assert recorded == 7, "three of the ten shut down without any figure"


def count(data: bytes) -> dict[str, int]:
    """A second road to the same figures."""
    events = [json.loads(line) for line in data.splitlines()]
    by_type: dict[str, list[ROW]] = {}
    for one_event in events:
        by_type.setdefault(one_event["type"], []).append(one_event["data"])
    completed = by_type.get("tool.execution_complete", [])
    results = [c.get("result") or {} for c in completed]
    models = [m["usage"] for s in by_type.get("session.shutdown", []) for m in s["modelMetrics"].values()]
    ends = [r.get("content", "")[-60:] for r in results]
    names = {b["toolCallId"]: b["toolName"] for b in by_type.get("tool.execution_start", [])}
    changed = [c["result"]["detailedContent"] for c in completed if names[c["toolCallId"]] in ("edit", "create")]
    return {
        "turns": sum(not d["content"].startswith("[[ ## ") for d in by_type["user.message"]),
        "steps": len(by_type["assistant.message"]),
        "calls": len(names),
        "output": sum(m["outputTokens"] for m in by_type["assistant.message"]),
        "prompt": sum(u["inputTokens"] for u in models),
        "failed": sum("with exit code" in e and not e.endswith("code 0>") for e in ends)
        + sum(not c["success"] for c in completed),
        "edits": sum(text.count("\n@@ -") for text in changed),
    }


HELD = "<command with shellId: 9 is still running after 30 seconds. Use read_bash to continue waiting.>"


# -- tools ---------------------------------------------------------------------------------------------------------


def test_a_call_told_of_in_four_events_is_one_call() -> None:
    arguments = {"command": "ls"}
    hook = {"hookType": "postToolUse", "input": {"toolResult": {"textResultForLlm": "boats"}}}
    session = one(
        start(),
        says("a", "", request("t", "bash", **arguments)),
        event("tool.execution_start", toolCallId="t", toolName="bash", arguments=arguments),
        event("hook.start", **hook),
        event("hook.end", hookType="postToolUse", success=True),
        done("t", "boats\n<shellId: 0 completed with exit code 0>"),
    )
    assert [(c.name, c.status, c.exit_code, c.step) for c in session.tool_calls] == [("bash", "ok", 0, 0)]
    assert [e.kind for e in session.events] == ["tool_call", "tool_result"]


def test_a_call_known_from_its_execution_only_is_kept() -> None:
    begun = event("tool.execution_start", toolCallId="t", toolName="view", arguments={"path": "/w/a.py"})
    found = only_call(begun, done("t", "1. x"))
    assert (found.name, found.path, found.status, found.step) == ("view", "a.py", "ok", None)


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (done("t", "x\n<shellId: 3 completed with exit code 0>"), ("ok", 0, None)),
        (done("t", "x\n<shellId: 3 completed with exit code 1>"), ("error", 1, "test_failed")),
        (done("t", "x\n<exited with exit code 2>"), ("error", 2, "test_failed")),
        (done("t", "x", contents=[{"type": "shell_exit", "shellId": "3", "exitCode": 4}]), ("error", 4, "test_failed")),
        (done("t", "it says <shellId: 3 completed with exit code 1> somewhere"), ("ok", None, None)),
        (failed("t", "Path does not exist", "failure"), ("error", None, "not_found")),
        (failed("t", "stopped", "aborted"), ("cancelled", None, None)),
        (failed("t", "The user rejected this tool call.", "rejected"), ("rejected", None, None)),
    ],
)
def test_success_only_means_that_the_tool_ran(completion: ROW, expected: tuple[object, ...]) -> None:
    found = only_call(says("a", "", request("t", "bash", command="npm test")), completion)
    assert (found.status, found.exit_code, found.error_class) == expected


ENDED = event("system.notification", content="failed", kind={"type": "shell_completed", "shellId": "9", "exitCode": 2})
LOOK = [says("b", "", request("r", "read_bash", shellId="9")), done("r", "x\n<shellId: 9 completed with exit code 2>")]


@pytest.mark.parametrize("later", [[ENDED], LOOK, [*LOOK, ENDED]])
def test_a_command_left_running_has_the_code_it_ended_with(later: list[ROW]) -> None:
    session = one(start(), says("a", "", request("t", "bash", command="npm run watch")), done("t", HELD), *later)
    assert [(c.status, c.exit_code) for c in session.tool_calls] == [("error", 2), ("ok", None)][
        : len(session.tool_calls)
    ]


@pytest.mark.parametrize(
    ("decision", "turns", "interrupts"),
    [
        ({"kind": "denied-interactively-by-user", "feedback": "keep the boats"}, ["keep the boats"], 0),
        ({"kind": "denied-interactively-by-user"}, [], 1),
        ({"kind": "denied-by-rules"}, [], 0),
    ],
)
def test_a_refusal_may_carry_words(decision: ROW, turns: list[str], interrupts: int) -> None:
    session = one(
        start(),
        says("a", "", request("t", "bash", command="rm -rf boats")),
        event("permission.requested", requestId="p"),
        event("permission.completed", requestId="p", toolCallId="t", result=decision),
        failed("t", "Permission denied", "failure"),
    )
    assert [(t.kind, t.text) for t in session.turns] == [("rejection_feedback", text) for text in turns]
    assert len(texts(session, "interrupt")) == interrupts
    assert session.tool_calls[0].status == ("rejected" if turns or interrupts else "error")


@pytest.mark.parametrize(
    ("name", "server", "class_"),
    [
        ("bash", None, "shell"),
        ("view", None, "read"),
        ("grep", None, "search"),
        ("edit", None, "edit"),
        ("task", None, "task"),
        ("report_intent", None, "plan"),
        ("ask_user", None, "ask"),
        ("web_fetch", None, "web"),
        ("github-mcp-server-list_issues", None, "mcp"),
        ("tides-lookup", "tides", "mcp"),
        ("tides-lookup", None, "other"),
    ],
)
def test_tools_have_the_classes_every_agent_shares(name: str, server: str | None, class_: str) -> None:
    begun = event("tool.execution_start", toolCallId="t", toolName=name, arguments={}, mcpServerName=server)
    assert only_call(says("a", "", request("t", name)), begun).class_ == class_


def diff(*hunks: str, header: str = "index 0..0 100644\n") -> str:
    names = "--- a/w/a.py\n+++ b/w/a.py\n"
    return f"\ndiff --git a/w/a.py b/w/a.py\n{header}{names}" + "".join(hunks)


EDIT = {"path": "/w/a.py", "old_str": "x\nold\n", "new_str": "x\nnew\nnewer\n"}
TWO_PLACES = [("a.py", "modify", 1, 1, 1, 1), ("a.py", "modify", 9, 9, 1, 1)]
PATCH = "*** Begin Patch\n*** Update File: b.py\n@@\n-old\n+new\n*** End Patch\n"


@pytest.mark.parametrize(
    ("name", "arguments", "detailed", "expected"),
    [
        ("edit", EDIT, diff("@@ -4,2 +4,3 @@\n x\n-old\n+new\n+newer\n"), [("a.py", "modify", 5, 6, 2, 1)]),
        ("edit", EDIT, diff("@@ -1 +1 @@\n-a\n+b\n", "@@ -9 +9 @@\n-c\n+d\n"), TWO_PLACES),
        ("edit", EDIT, "updated", [("a.py", "modify", None, None, 2, 1)]),
        ("create", {"path": "/w/a.py", "file_text": "one\ntwo\n"}, "", [("a.py", "create", 1, 2, 2, 0)]),
        ("str_replace_editor", {"command": "view", "path": "/w/a.py"}, "1. x", []),
        ("apply_patch", {"input": PATCH}, "Done", [("b.py", "modify", None, None, 1, 1)]),
        ("apply_patch", {"patch": PATCH}, diff("@@ -7 +7 @@\n-old\n+new\n"), [("b.py", "modify", 7, 7, 1, 1)]),
    ],
)  # fmt: skip
def test_edits_have_the_lines_of_their_diff(name: str, arguments: ROW, detailed: str, expected: list[object]) -> None:
    session = one(start(), says("a", "", request("t", name, **arguments)), done("t", "ok", detailed=detailed))
    assert [(e.path, e.op, e.start_line, e.end_line, e.added, e.removed) for e in session.edits] == expected


def test_a_patch_may_be_the_whole_of_the_arguments() -> None:
    bare = {**request("t", "apply_patch"), "arguments": PATCH}
    session = one(start(), says("a", "", bare), done("t", "ok"))
    assert (session.tool_calls[0].path, [e.path for e in session.edits]) == ("b.py", ["b.py"])
