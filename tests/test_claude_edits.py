"""Tools and their results: what was called, how it ended, which lines changed."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.formats.claude_code import PROFILE
from agentsignals.model import Edit
from tests.claude import Log, session

FILE = "/work/shop/cart.py"


def patch(old: int, new: int, *lines: str) -> dict[str, Any]:
    return {"oldStart": old, "oldLines": 0, "newStart": new, "newLines": 0, "lines": list(lines)}


def edit_of(told: Any, name: str = "Edit", **arguments: Any) -> list[Edit]:
    log = Log()
    log.ran(name, "done", told=told, file_path=FILE, **arguments)
    return session(log).edits


def lines(edits: list[Edit]) -> list[tuple[int | None, ...]]:
    return [(e.start_line, e.end_line, e.added, e.removed, e.old_start) for e in edits]


def test_context_lines_are_trimmed_off_a_hunk() -> None:
    edits = edit_of({"filePath": FILE, "structuredPatch": [patch(10, 10, " a", " b", "-c", "+C", "+D", " e")]})
    assert lines(edits) == [(12, 13, 2, 1, 12)]
    assert (edits[0].path, edits[0].op, edits[0].via, edits[0].whole_file) == ("cart.py", "modify", "edit_tool", False)


def test_a_hunk_that_only_deletes_has_the_line_after_it() -> None:
    assert lines(edit_of({"structuredPatch": [patch(4, 4, " a", "-b", "-c", " d")]})) == [(5, 5, 0, 2, 5)]


def test_context_inside_a_hunk_is_part_of_its_range() -> None:
    assert lines(edit_of({"structuredPatch": [patch(1, 1, "+a", " b", "-c", "+d")]})) == [(1, 3, 2, 1, 1)]


def test_the_missing_newline_mark_is_no_line() -> None:
    hunk = patch(7, 7, " a", "-b", "\\ No newline at end of file", "+b", "+c")
    assert lines(edit_of({"structuredPatch": [hunk]})) == [(8, 9, 2, 1, 8)]


def test_each_hunk_of_a_call_is_an_edit_of_its_own() -> None:
    edits = edit_of({"structuredPatch": [patch(1, 1, "-a", "+b", "+c"), patch(20, 21, " x", "-y", "+z")]}, "MultiEdit")
    assert lines(edits) == [(1, 2, 2, 1, 1), (22, 22, 1, 1, 21)]
    assert [e.hunk for e in edits] == [0, 1]


def test_a_new_file_is_created_whole() -> None:
    edits = edit_of(
        {"type": "create", "filePath": FILE, "content": "a\nb\nc", "structuredPatch": []}, "Write", content="a\nb\nc"
    )
    assert lines(edits) == [(1, 3, 3, 0, 1)]
    assert (edits[0].op, edits[0].whole_file) == ("create", True)


@pytest.mark.parametrize(("changed", "whole"), [(5, True), (4, False)])
def test_a_rewrite_of_most_lines_is_one_of_the_whole_file(changed: int, whole: bool) -> None:
    hunk = patch(1, 1, *(f"-{n}" for n in range(changed)), *(f"+{n}" for n in range(changed)))
    told = {"type": "update", "filePath": FILE, "content": "x\n" * 5, "structuredPatch": [hunk]}
    assert [e.whole_file for e in edit_of(told, "Write", content="x\n" * 5)] == [whole]


def test_writing_what_is_there_already_changes_nothing() -> None:
    assert edit_of({"type": "update", "content": "x\n", "structuredPatch": []}, "Write", content="x\n") == []


def test_a_huge_original_and_odd_neighbours_are_not_read() -> None:
    told = {
        "originalFile": "x" * 100_000,
        "userModified": False,
        "gitDiff": {"a": [1]},
        "structuredPatch": [patch(1, 1, "+a")],
    }
    assert lines(edit_of(told)) == [(1, 1, 1, 0, 1)]


def test_without_a_patch_the_arguments_tell_the_sizes() -> None:
    for told in (None, "Error-free text", {"filePath": FILE}):
        edits = edit_of(told, old_string="a\nb\nc", new_string="a\nB\nB2\nc")
        assert lines(edits) == [(None, None, 2, 1, None)]
        assert edits[0].path == "cart.py"


@pytest.mark.parametrize(("text", "error"), [("<tool_use_error>String to replace not found</tool_use_error>", True)])
def test_an_edit_that_failed_changed_nothing(text: str, error: bool) -> None:
    log = Log()
    log.ran("Edit", text, error, {"structuredPatch": [patch(1, 1, "+a")]}, file_path=FILE)
    assert session(log).edits == []


def test_files_that_the_shell_writes_are_edits_where_the_command_ran() -> None:
    log = Log()
    log.user("go")
    log.base["cwd"] = "/work/shop/web"
    log.ran("Bash", "", command="sed -i 's/a/b/' ../cart.py && git checkout -- app.ts && rm /etc/x")
    log.ran("Bash", "Exit code 1\nno", True, command="rm gone.py")
    assert [(e.path, e.op, e.via, e.whole_file) for e in session(log).edits] == [
        ("cart.py", "modify", "shell", False),
        ("web/app.ts", "modify", "shell", True),
        ("/etc/x", "delete", "shell", True),
    ]


Ended = tuple[str, str | None, int | None]
RESULTS: list[tuple[str, Any, Any, Ended]] = [
    ("Bash", "ok", None, ("ok", None, None)),
    ("Bash", "Exit code 0 of the inner tool", False, ("ok", None, None)),
    ("Bash", "Exit code 2\nboom", True, ("error", "exit_nonzero", 2)),
    ("Bash", "<tool_use_error>Sibling tool call errored</tool_use_error>", True, ("cancelled", None, None)),
    (
        "Bash",
        "<tool_use_error>Cancelled: parallel tool call Bash(x) errored</tool_use_error>",
        True,
        ("cancelled", None, None),
    ),
    ("Task", "[Request interrupted by user for tool use]", True, ("cancelled", None, None)),
    (
        "Bash",
        "Permission for this tool use was denied. The tool use was rejected (eg.",
        True,
        ("error", "permission", None),
    ),
    ("Read", "<tool_use_error>File does not exist.</tool_use_error>", True, ("error", "not_found", None)),
    ("Edit", "<tool_use_error>File has not been read yet.</tool_use_error>", True, ("error", "not_read_first", None)),
    ("Skill", "<tool_use_error>Unknown skill: x</tool_use_error>", "true", ("error", "not_found", None)),
    (
        "mcp__db__query",
        [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}],
        None,
        ("ok", None, None),
    ),
    ("ToolSearch", [{"type": "tool_reference", "tool_name": "x"}], None, ("ok", None, None)),
    ("Bash", None, None, ("ok", None, None)),
    ("Bash", ["a", None, {"type": "text", "text": "b"}], None, ("ok", None, None)),
    ("Bash", {"type": "text", "text": "one"}, None, ("ok", None, None)),
]


@pytest.mark.parametrize(("name", "text", "error", "ended"), RESULTS)
def test_a_result_tells_how_the_call_ended(name: str, text: Any, error: Any, ended: Ended) -> None:
    log = Log()
    log.ran(name, text, error, command="./x")
    (call,) = session(log).tool_calls
    assert (call.status, call.error_class, call.exit_code) == ended


def test_result_texts_are_joined_and_sized() -> None:
    log = Log()
    log.ran("mcp__db__query", [{"type": "text", "text": "abcd"}, {"type": "text", "text": "efgh"}])
    found = session(log)
    assert found.events[-1].text == "abcd\nefgh"
    assert found.tool_calls[0].result_tokens == 3


def test_a_result_written_before_its_call_is_still_its_result() -> None:
    log = Log()
    log.result("early", "toolu_9")
    log.call("Bash", "toolu_9", command="ls")
    log.result("nobody's", "toolu_lost")
    found = session(log)
    assert [(e.kind, e.line) for e in found.events] == [("tool_call", 2), ("tool_result", 1), ("tool_result", 3)]
    assert (found.tool_calls[0].status, found.tool_calls[0].result_seq) == ("ok", 1)


def test_a_call_without_a_result_has_no_status() -> None:
    log = Log()
    log.call("Bash", command="sleep 9")
    (call,) = session(log).tool_calls
    assert (call.status, call.result_seq, call.ended_at) == ("none", None, None)


def test_one_structured_result_for_two_results_is_given_to_neither() -> None:
    log = Log()
    for n in ("a", "b"):
        log.call("Edit", n, file_path=f"/work/shop/{n}.py", old_string="x", new_string="y")
    both = [{"tool_use_id": n, "type": "tool_result", "content": "ok"} for n in ("a", "b")]
    log.user(both, toolUseResult={"filePath": "/work/shop/a.py", "structuredPatch": [patch(5, 5, "-x", "+y")]})
    assert [(e.path, e.start_line, e.added) for e in session(log).edits] == [("a.py", None, 1), ("b.py", None, 1)]


CLASSES = {
    "read": "Read NotebookRead",
    "search": "Grep Glob LS LSP",
    "edit": "Edit MultiEdit Write NotebookEdit",
    "shell": "Bash PowerShell Monitor",
    "plan": "TodoWrite TaskCreate TaskUpdate TaskList TaskGet EnterPlanMode ExitPlanMode",
    "task": "Task Agent Workflow Skill SlashCommand SendMessage TaskOutput TaskStop BashOutput KillShell",
    "web": "WebFetch WebSearch",
    "ask": "AskUserQuestion",
    "mcp": "mcp__github__get_issue ListMcpResourcesTool ReadMcpResourceTool",
    "other": "ToolSearch EnterWorktree CronCreate ScheduleWakeup StructuredOutput",
}


@pytest.mark.parametrize(("class_", "name"), [(c, n) for c, names in CLASSES.items() for n in names.split()])
def test_a_tool_of_the_program_has_its_class(class_: str, name: str) -> None:
    known = PROFILE.tool(name)
    assert known is not None
    assert known.class_ == class_


def test_an_unknown_tool_is_other_and_keeps_its_path() -> None:
    log = Log()
    log.ran("Teleport", file_path=FILE)
    (call,) = session(log).tool_calls
    assert (call.class_, call.path, PROFILE.tool("Teleport")) == ("other", "cart.py", None)


def test_windows_paths_and_power_shell_are_understood() -> None:
    log = Log(cwd="D:\\work\\shop")
    log.ran("PowerShell", "x", command="Get-Content -Path .\\src\\cart.cs -TotalCount 20")
    log.ran(
        "Edit", told={"filePath": "D:\\work\\shop\\src\\cart.cs", "structuredPatch": [patch(1, 1, "+a")]}, file_path="x"
    )
    found = session(log)
    assert [(c.class_, c.shell_kind) for c in found.tool_calls] == [("read", "read"), ("edit", None)]
    assert found.tool_calls[0].path == "src/cart.cs"
    assert [e.path for e in found.edits] == ["src/cart.cs"]


def test_a_tool_class_follows_the_command() -> None:
    log = Log()
    for command in ("go test ./...", "cat a.py", "rg x", "git status", "go vet ./...", "echo x > a", "./run"):
        log.ran("Bash", command=command)
    calls = session(log).tool_calls
    assert [c.class_ for c in calls] == ["test", "read", "search", "shell", "shell", "shell", "shell"]
    assert [c.shell_kind for c in calls] == ["test", "read", "search", "vcs", "build", "write", "run"]


@pytest.mark.parametrize("content", [7, ["a"], {"a": 1}])
def test_contents_that_are_no_text_cost_the_lines_only(content: object) -> None:
    (made,) = edit_of({"type": "create", "filePath": FILE, "content": content, "structuredPatch": []}, "Write")
    assert (made.op, made.added) == ("create", None)
    told = {"type": "update", "filePath": FILE, "content": content, "structuredPatch": [patch(1, 1, "-a", "+b")]}
    assert lines(edit_of(told, "Write")) == [(1, 1, 1, 1, 1)]
