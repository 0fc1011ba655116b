"""behavior.*: calls, edits, files, and what was looked at before the first change."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.changes.hunks import Hunk
from tests.build import Part, call, say, think, user, view
from tests.signals.ask import absent, detail, lines, value

REPO = "/home/me/app"
EDITED = call("Edit", path="a.py")
READ = call("Read", path="a.py")


def bash(command: str, **more: Any) -> Part:
    return call("Bash", command=command, **more)


def test_a_model_call_counts_once_however_many_lines_it_was_logged_on() -> None:
    one = view(user("go"), say("a", "m1"), say("b", "m1"), say("c", "m2"), say("d", "m3", thread="agent-1"))
    assert value(one, "behavior.turn_count") == 2
    assert lines(one, "behavior.turn_count") == [2, 4]


def test_a_session_without_an_agent_has_no_steps_and_no_calls() -> None:
    nothing = view(user("go"))
    assert value(nothing, "behavior.turn_count") == 0
    assert value(nothing, "behavior.tool_call_count") == 0
    assert value(nothing, "behavior.tool_sequence[]") == []


def test_unanswered_and_rejected_calls_count_and_subagents_stand_beside() -> None:
    one = view(
        user("go"),
        READ,
        call("Edit", path="a.py", status="rejected"),
        call("Bash", command="ls", result=None),
        call("Read", path="b.py", thread="agent-1"),
    )
    assert value(one, "behavior.tool_call_count") == 3
    assert detail(one, "behavior.tool_call_count") == {"subagent_calls": 1, "rejected": 1}
    assert lines(one, "behavior.tool_call_count") == [2, 3, 4]


def test_edit_calls_include_the_failed_and_the_rejected() -> None:
    one = view(
        user("go"),
        EDITED,
        call("MultiEdit", path="b.py", status="error"),
        call("Write", path="c.py", status="rejected"),
        bash("sed -i s/a/b/ d.py"),
        READ,
    )
    assert value(one, "behavior.edit_calls") == 3
    assert detail(one, "behavior.edit_calls") == {"succeeded": 1}
    assert lines(one, "behavior.edit_calls") == [2, 3, 4]


@pytest.mark.parametrize(
    ("parts", "expected", "mixed"),
    [
        ([bash("sed -i s/a/b/ a.py")], True, False),
        ([bash("cat > notes.md <<'EOF'\nhello\nEOF")], True, False),
        ([bash("sed -i s/a/b/ a.py"), EDITED], False, True),
        ([EDITED], False, False),
        ([READ], False, False),
        ([bash("sed -i s/a/b/ a.py", status="error")], False, False),
        ([bash("echo x > /tmp/scratch.txt")], False, False),
    ],
)
def test_bash_mediated_edits_is_the_pure_case(parts: list[Part], expected: bool, mixed: bool) -> None:
    one = view(user("go"), *parts, cwd=REPO)
    assert value(one, "behavior.bash_mediated_edits") is expected
    assert detail(one, "behavior.bash_mediated_edits")["mixed"] is mixed


def test_bash_mediated_edits_shows_the_shell_writes() -> None:
    one = view(user("go"), READ, bash("sed -i s/a/b/ a.py"), cwd=REPO)
    assert detail(one, "behavior.bash_mediated_edits")["shell_write_calls"] == 1
    assert lines(one, "behavior.bash_mediated_edits") == [3]


def test_touched_files_are_unique_sorted_and_relative_to_the_repository() -> None:
    one = view(
        user("go"),
        call("Edit", path=f"{REPO}/z.py"),
        call("Edit", path="z.py"),
        call("Write", path="./a.py", creates=True),
        call("Edit", path="b.py", status="error"),
        bash("touch c.py"),
        cwd=REPO,
    )
    assert value(one, "behavior.touched_files[]") == ["a.py", "c.py", "z.py"]
    assert detail(one, "behavior.touched_files[]") == {"outside": 0, "shell_only": 1, "confidence": "medium"}
    assert lines(one, "behavior.touched_files[]") == [2, 3, 4, 6]


def test_touched_files_outside_the_repository_keep_their_absolute_path() -> None:
    one = view(user("go"), call("Write", path="/home/me/.claude/plans/p.md", creates=True), cwd=REPO)
    assert value(one, "behavior.touched_files[]") == ["/home/me/.claude/plans/p.md"]
    assert detail(one, "behavior.touched_files[]")["outside"] == 1


def test_no_touched_files_is_an_empty_list() -> None:
    assert value(view(user("go"), READ), "behavior.touched_files[]") == []


def test_absolute_paths_are_inside_when_nobody_knows_where_the_repository_is() -> None:
    one = view(user("go"), call("Edit", path="/testbed/a.py"))
    assert detail(one, "behavior.touched_files[]")["outside"] == 0


def test_diff_lines_adds_up_every_edit_of_the_repository() -> None:
    one = view(
        user("go"),
        call(
            "Edit",
            path="a.py",
            hunks=[
                Hunk(start_line=1, end_line=3, added=3, removed=1),
                Hunk(start_line=9, end_line=9, added=0, removed=2),
            ],
        ),
        call("Edit", path="a.py", hunks=[Hunk(start_line=1, end_line=1, added=1, removed=1)]),
        call("Write", path="/home/me/x.md", hunks=[Hunk(start_line=1, end_line=9, added=9, removed=0)]),
        cwd=REPO,
    )
    assert value(one, "behavior.diff_lines") == 3 + 1 + 2 + 2
    assert detail(one, "behavior.diff_lines") == {
        "method": "edit_log",
        "added": 4,
        "removed": 4,
        "edits_without_lines": 0,
    }
    assert lines(one, "behavior.diff_lines") == [2, 2, 3]


def test_diff_lines_of_a_session_without_edits_is_zero() -> None:
    assert value(view(user("go"), READ), "behavior.diff_lines") == 0


def test_diff_lines_are_absent_when_no_edit_tells_its_lines_and_flagged_when_some_do_not() -> None:
    assert absent(view(user("go"), bash("touch a.py")), "behavior.diff_lines") == ("missing_field", "line_counts")
    some = view(
        user("go"),
        bash("touch a.py"),
        call("Edit", path="a.py", hunks=[Hunk(start_line=1, end_line=1, added=1, removed=0)]),
    )
    assert value(some, "behavior.diff_lines") == 1
    assert detail(some, "behavior.diff_lines")["edits_without_lines"] == 1
    assert (lines(some, "behavior.diff_lines"), lines(some, "behavior.diff_lines", "counter")) == ([3], [2])


def test_the_tool_sequence_has_the_finer_classes_and_their_bigrams() -> None:
    one = view(
        user("go"),
        READ,
        EDITED,
        bash("pytest -q", status="error"),
        bash("git status"),
        bash("go build ./..."),
        bash("echo hi > a.txt"),
        bash("python x.py"),
        call("Task", result=None),
        call("mcp__db__query"),
    )
    sequence = value(one, "behavior.tool_sequence[]")
    assert [s["class"] for s in sequence] == [
        "read",
        "edit",
        "test",
        "vcs",
        "build",
        "shell_write",
        "shell",
        "agent",
        "mcp",
    ]
    assert sequence[0] == {"i": 0, "name": "Read", "class": "read", "file": "a.py", "status": "ok"}
    assert [s["status"] for s in sequence][2] == "error"
    assert [s["status"] for s in sequence][7] == "none"
    assert detail(one, "behavior.tool_sequence[]")["class_bigrams"]["read>edit"] == 1
    assert lines(one, "behavior.tool_sequence[]") == list(range(2, 11))


BEFORE = "behavior.files_searched_before_edit"
READ_BEFORE = "behavior.files_read_before_edit"


@pytest.mark.parametrize(
    ("parts", "searched", "read"),
    [
        ([EDITED], 0, 0),
        ([READ, READ, EDITED], 1, 1),
        ([READ, call("Grep", path="b.py"), EDITED], 2, 1),
        ([call("Grep", path="src"), call("Glob", pattern="*.py"), EDITED], 0, 0),
        ([bash("cat src/c.py"), bash("grep -n x src/d.py"), EDITED], 2, 1),
        ([READ, EDITED, call("Read", path="late.py")], 1, 1),
        ([call("Read", path="/home/me/shot.png"), EDITED], 0, 0),
        ([READ, call("Edit", path="a.py", status="error"), call("Read", path="b.py"), EDITED], 2, 2),
        ([READ, call("Write", path="/home/me/.claude/plans/p.md"), call("Read", path="b.py"), EDITED], 2, 2),
        ([READ, bash("sed -i s/a/b/ a.py"), call("Read", path="b.py"), EDITED], 1, 1),
    ],
)
def test_files_looked_at_before_the_first_change(parts: list[Part], searched: int, read: int) -> None:
    one = view(user("go"), *parts, cwd=REPO)
    assert (value(one, BEFORE), value(one, READ_BEFORE)) == (searched, read)
    assert detail(one, BEFORE)["censored"] is False


def test_without_a_change_the_whole_session_counts_and_is_censored() -> None:
    one = view(user("go"), READ, call("Read", path="b.py"), think("hm"), cwd=REPO)
    assert value(one, BEFORE) == 2
    assert detail(one, BEFORE)["censored"] is True
    assert lines(one, BEFORE) == [2, 3]


def test_files_read_tells_the_shell_readers_and_the_first_change() -> None:
    one = view(user("go"), READ, READ, bash("head -20 b.py"), EDITED, bash("cat late.py"), cwd=REPO)
    assert detail(one, READ_BEFORE) == {"censored": False, "outside": 0, "shell_reads": 1}
    assert lines(one, READ_BEFORE) == [2, 4]
    assert lines(one, READ_BEFORE, "counter") == [5]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [([READ, EDITED, EDITED], 2.0), ([READ, READ, bash("sed -i s/a/b/ a.py")], 0.5), ([READ], 0.0)],
)
def test_edit_to_read_ratio_counts_shell_writes_as_edits(parts: list[Part], expected: float) -> None:
    assert value(view(user("go"), *parts), "behavior.edit_to_read_ratio") == expected


def test_edit_to_read_ratio_without_reads_is_not_computable() -> None:
    assert absent(view(user("go"), EDITED), "behavior.edit_to_read_ratio") == ("not_computable", "zero_denominator")
    one = view(user("go"), READ, EDITED)
    assert (lines(one, "behavior.edit_to_read_ratio"), lines(one, "behavior.edit_to_read_ratio", "denominator")) == (
        [3],
        [2],
    )
