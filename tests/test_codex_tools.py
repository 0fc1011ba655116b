"""Codex, tools and patches: every trap of design/formats.md#codex, each with records made up for it."""

from __future__ import annotations

import json

import pytest

from agentsignals.model import Session
from tests.codex_rows import ROW, call, context, event, item, meta, one, only_call, output, ran

# -- tools ---------------------------------------------------------------------------------------------------------

WRAPPED = json.dumps({"output": "no", "metadata": {"exit_code": 3, "duration_seconds": 0.1}})


@pytest.mark.parametrize(
    ("name", "arguments", "said", "expected"),
    [
        ("shell", {"command": ["bash", "-lc", "make it"]}, WRAPPED, ("make it", 3, "error")),
        ("shell", {"command": ["ls", "a b"]}, {"content": "x", "success": False}, ("ls 'a b'", None, "error")),
        ("shell_command", {"command": "x"}, "Exit code: 2\nWall time: 1 seconds\nOutput:\n", ("x", 2, "error")),
        ("exec_command", {"cmd": "x"}, ran("Process exited with code 0"), ("x", 0, "ok")),
        ("exec_command", {"cmd": "x"}, ran("Process exited with code -1"), ("x", -1, "error")),
        ("exec_command", {"cmd": "x"}, ran("Process running with session ID 5", "Exit code: 1"), ("x", None, "ok")),
        (
            "exec_command",
            {"cmd": "cat log"},
            ran("Process exited with code 0", "rejected by user"),
            ("cat log", 0, "ok"),
        ),
        ("exec_command", {"cmd": "x"}, "exec command rejected by user", ("x", None, "rejected")),
        ("exec_command", {"cmd": "x"}, "aborted by user after 4.1s", ("x", None, "cancelled")),
        ("exec_command", {"cmd": "x"}, "exec_command failed for `x`: no such file", ("x", None, "error")),
        ("exec_command", {"cmd": "x"}, [{"type": "input_text", "text": "fine"}], ("x", None, "ok")),
    ],
)
def test_each_generation_of_the_shell_tool_says_how_it_ended(
    name: str, arguments: ROW, said: object, expected: tuple[object, ...]
) -> None:
    found = only_call(call("c", name, **arguments), output("c", said))
    assert (found.command, found.exit_code, found.status) == expected


def test_a_code_that_comes_with_a_later_poll_is_the_commands() -> None:
    session = one(
        meta(),
        context(),
        call("a", cmd="pytest -q"),
        output("a", ran("Process running with session ID 5")),
        call("b", "write_stdin", session_id=5, chars=""),
        output("b", ran("Process running with session ID 5")),
        call("c", "write_stdin", session_id=5, chars=""),
        output("c", ran("Process exited with code 1", "1 failed")),
    )
    outcomes = [(c.name, c.status, c.exit_code, c.error_class) for c in session.tool_calls]
    assert outcomes == [
        ("exec_command", "error", 1, "test_failed"),
        ("write_stdin", "ok", None, None),
        ("write_stdin", "ok", None, None),
    ]


@pytest.mark.parametrize("before", [True, False])
def test_a_code_that_only_the_process_end_tells_is_used(before: bool) -> None:
    end = event("exec_command_end", call_id="a", source="agent", command=["x"], exit_code=4)
    result = output("a", "no header" if before else ran("Process running with session ID 5"))
    found = only_call(call("a", cmd="x"), *([end, result] if before else [result, end]))
    assert (found.status, found.exit_code) == ("error", 4)


def test_a_search_among_tools_and_a_search_of_the_web_are_calls_with_results() -> None:
    session = one(
        meta(),
        context(),
        event("web_search_end", call_id="ws", query="pears"),
        item("web_search_call", status="completed", action={"type": "search", "query": "pears"}),
        item("tool_search_call", call_id="t", status="completed", arguments={"query": "git"}),
        item("tool_search_output", call_id="t", tools=[{"name": "mcp__git"}]),
    )
    rows = [(c.name, c.class_, c.status, c.result_tokens) for c in session.tool_calls]
    assert rows == [("web_search", "web", "ok", None), ("tool_search", "search", "ok", 6)]


@pytest.mark.parametrize(
    ("namespace", "name", "full"),
    [
        ("mcp__deepwiki", "ask", "mcp__deepwiki__ask"),
        ("mcp__apps__github", "_fetch_pr", "mcp__apps__github_fetch_pr"),
        (None, "mcp__files__read", "mcp__files__read"),
    ],
)
@pytest.mark.parametrize(
    ("result", "status"),
    [
        ({"Ok": {"content": [], "isError": False}}, "ok"),
        ({"Ok": {"isError": True}}, "error"),
        ({"Err": "gone"}, "error"),
    ],
)
def test_an_mcp_tool_has_its_servers_name_and_its_events_verdict(
    namespace: str | None, name: str, full: str, result: ROW, status: str
) -> None:
    begun = item("function_call", call_id="m", name=name, namespace=namespace, arguments="{}")
    end = event("mcp_tool_call_end", call_id="m", invocation={"server": "s", "tool": "t"}, result=result)
    found = only_call(begun, end, output("m", "Wall time: 1.0 seconds\nOutput:\nx"))
    assert (found.name, found.class_, found.status) == (full, "mcp", status)


def test_paths_are_relative_to_where_the_command_ran() -> None:
    session = one(
        meta(),
        context(),
        call("a", cmd="cat x.py", workdir="/w/sub"),
        call("b", cmd="cat x.py", workdir="/elsewhere"),
        call("c", cmd="cat x.py"),
        call("d", cmd="echo 1 > y.py", workdir="/w/sub"),
        output("d", ran("Process exited with code 0")),
    )
    assert [c.path for c in session.tool_calls[:3]] == ["sub/x.py", "/elsewhere/x.py", "x.py"]
    assert [(e.path, e.via) for e in session.edits] == [("sub/y.py", "shell")]


# -- patches -------------------------------------------------------------------------------------------------------

PATCH = (
    "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ def f\n x\n-old\n+new\n+newer\n@@\n-gone\n"
    "*** Add File: c.py\n+one\n+two\n*** Delete File: d.py\n*** End Patch\n"
)
DIFF = "@@ -4,3 +4,4 @@ def f\n x\n-old\n+new\n+newer\n y\n@@ -20,2 +21 @@\n z\n-gone\n"
CHANGES = {
    "/w/a.py": {"type": "update", "unified_diff": DIFF, "move_path": "/w/b.py"},
    "/w/c.py": {"type": "add", "content": "one\ntwo\n"},
    "/w/d.py": {"type": "delete", "content": "x\n"},
}
PATCH_TEXT_EDITS = [
    ("a.py", "delete", None, 0, None),
    ("b.py", "rename", None, 2, 1),
    ("c.py", "create", 1, 2, 0),
    ("d.py", "delete", None, 0, None),
    ("b.py", "rename", None, 0, 1),
]


def edits(session: Session) -> list[tuple[object, ...]]:
    return [(e.path, e.op, e.start_line, e.added, e.removed) for e in session.edits]


def patched(*between: ROW, said: str = "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.") -> Session:
    begun = item("custom_tool_call", call_id="p", name="apply_patch", status="completed", input=PATCH)
    return one(meta(), context(), begun, *between, item("custom_tool_call_output", call_id="p", output=said))


def test_a_recorded_patch_gives_real_lines() -> None:
    session = patched(event("patch_apply_end", call_id="p", success=True, changes=CHANGES))
    assert edits(session) == [
        ("a.py", "delete", None, 0, None),
        ("b.py", "rename", 5, 2, 1),
        ("c.py", "create", 1, 2, 0),
        ("d.py", "delete", None, 0, 1),
        ("b.py", "rename", 22, 0, 1),
    ]
    assert {e.via for e in session.edits} == {"edit_tool"}
    assert (session.tool_calls[0].path, session.tool_calls[0].class_) == ("a.py", "edit")


def test_a_patch_that_is_not_recorded_gives_sizes_only() -> None:
    assert edits(patched()) == PATCH_TEXT_EDITS


@pytest.mark.parametrize(
    "session",
    [
        patched(said="apply_patch verification failed: Failed to find expected lines in /w/a.py"),
        patched(event("patch_apply_end", call_id="p", success=False, changes=CHANGES), said=WRAPPED),
        patched(said="patch rejected by user"),
    ],
)
def test_a_patch_that_failed_changed_nothing(session: Session) -> None:
    assert session.edits == []
    assert session.tool_calls[0].status in ("error", "rejected")


def test_a_patch_given_to_the_oldest_shell_as_words_is_an_edit() -> None:
    session = one(
        meta(), context(), call("p", "shell", command=["apply_patch", PATCH]), output("p", WRAPPED.replace("3", "0"))
    )
    assert session.tool_calls[0].class_ == "edit"
    assert edits(session) == PATCH_TEXT_EDITS


def test_a_patch_applied_through_the_shell_is_recorded_once_and_as_the_shells() -> None:
    begun = call("p", cmd=f"apply_patch <<'EOF'\n{PATCH}EOF")
    recorded = event("patch_apply_end", call_id="p", success=True, changes={"/w/c.py": CHANGES["/w/c.py"]})
    session = one(meta(), context(), begun, recorded, output("p", ran("Process exited with code 0")))
    assert [(e.path, e.via, e.start_line) for e in session.edits] == [("c.py", "shell", 1)]
