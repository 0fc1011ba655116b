"""Copilot CLI, tools and edits: every trap of design/formats.md#copilot-cli, each with events made up for it."""

from __future__ import annotations

import pytest

from tests.copilot_events import ROW, done, event, failed, one, only_call, request, says, start, texts

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
