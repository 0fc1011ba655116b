"""behavior.*: calls, edits, files, and what was looked at before the first change."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.changes.hunks import Hunk
from agentsignals.model import HarnessSummary
from tests.build import Part, call, say, think, user, view
from tests.signals.ask import absent, detail, evidence, lines, value
from tests.signals.attempts import patched, ran, trial, unseen

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


# Whether the right file was changed first, and the controller's words for it.

HIT = "behavior.localized_correct_file"
MODE = "behavior.localization_mode"
GOLD = [patched("src/a.py")]
READ_CALL = call("Read", path="src/a.py")
RIGHT = call("Edit", path="src/a.py")
WRONG = call("Edit", path="src/b.py")
SCRATCH = call("Write", path="repro.py", creates=True)


@pytest.mark.parametrize(
    ("parts", "expected", "file", "kind"),
    [
        ([READ_CALL, RIGHT], True, "src/a.py", "hit_first"),
        ([READ_CALL, WRONG, RIGHT], False, "src/b.py", "hit_late"),
        ([READ_CALL, WRONG], False, "src/b.py", "wrong_file"),
        ([RIGHT], True, "src/a.py", "blind_edit"),
        ([READ_CALL, SCRATCH, RIGHT], True, "src/a.py", "hit_first"),
        ([READ_CALL, SCRATCH, call("Edit", path="repro.py"), RIGHT], True, "src/a.py", "hit_first"),
        ([READ_CALL, SCRATCH], False, None, "wrong_file"),
        ([READ_CALL, call("Edit", path="src/b.py", status="error"), RIGHT], True, "src/a.py", "hit_first"),
        ([READ_CALL, call("Write", path="/root/notes.md"), RIGHT], True, "src/a.py", "hit_first"),
        (
            [READ_CALL, call("Bash", command="sed -i s/x/y/ src/a.py"), WRONG],
            True,
            "src/a.py",
            "hit_first",
        ),
    ],
)
def test_the_first_change_of_a_file_that_was_there_decides(
    parts: list[Part], expected: bool, file: str | None, kind: str
) -> None:
    one = ran(*parts, gold_patch=GOLD)
    assert value(one, HIT) is expected
    assert detail(one, HIT) == {"method": "edit_order", "file": file, "localization_class": kind}


def test_a_new_file_counts_where_the_gold_patch_makes_it_too() -> None:
    one = ran(
        READ_CALL,
        call("Write", path="src/new.py", creates=True),
        gold_patch=[patched("src/new.py", "create")],
    )
    assert (value(one, HIT), detail(one, HIT)["file"]) == (True, "src/new.py")


@pytest.mark.parametrize("path", ["src/old.py", "src/new.py"])
def test_both_names_of_a_renamed_file_are_right(path: str) -> None:
    gold = [patched("src/new.py", "rename", old_path="src/old.py")]
    assert value(ran(READ_CALL, call("Edit", path=path), gold_patch=gold), HIT) is True


def test_absolute_paths_match_where_nobody_knows_the_folder_of_the_repository() -> None:
    assert value(ran(call("Edit", path="/testbed/src/a.py"), cwd=None, gold_patch=GOLD), HIT) is True
    assert value(ran(call("Edit", path="/testbed/other_src/a.py"), cwd=None, gold_patch=GOLD), HIT) is False
    assert value(ran(call("Edit", path="/testbed/src/aa.py"), cwd=None, gold_patch=GOLD), HIT) is False


def test_the_first_change_and_the_gold_patch_are_the_evidence() -> None:
    one = ran(READ_CALL, SCRATCH, WRONG, RIGHT, gold_patch=GOLD)
    assert lines(one, HIT) == [4]
    assert [i.excerpt for i in evidence(one, HIT).items if i.role == "denominator"] == ["gold: gold_patch is said here"]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"patch": [patched("src/a.py")]}, True),
        ({"patch": [patched("src/b.py")]}, False),
        ({"patch": [patched("src/a.py"), patched("repro.py", "create")]}, True),
        ({"patch": [patched("repro.py", "create")]}, False),
        ({"summary": HarnessSummary(touched_files=[("./src/a.py", 3)])}, True),
        ({"patch": [patched("src/a.py"), patched("src/b.py")]}, ("not_computable", "order_unknown")),
        (
            {"summary": HarnessSummary(touched_files=[("src/a.py", 3), ("x.py", 1)])},
            ("not_computable", "order_unknown"),
        ),
        ({"patch": []}, ("not_applicable", "no_edit")),
        ({}, ("missing_artifact", "session_jsonl")),
    ],
)
def test_without_an_order_of_edits_only_a_single_file_tells(facts: dict[str, Any], expected: Any) -> None:
    one = unseen(gold_patch=GOLD, **facts)
    assert (value(one, HIT) if isinstance(expected, bool) else absent(one, HIT)) == expected
    if isinstance(expected, bool):
        assert detail(one, HIT)["method"] == "single_touched"


def test_a_change_by_a_script_is_known_from_the_patch() -> None:
    one = ran(READ_CALL, call("Bash", command="python fix.py"), gold_patch=GOLD, patch=[patched("src/a.py")])
    assert (value(one, HIT), detail(one, HIT)["method"]) == (True, "single_touched")


def test_without_an_edit_or_a_gold_patch_it_says_so() -> None:
    assert absent(ran(READ_CALL, gold_patch=GOLD), HIT) == ("not_applicable", "no_edit")
    assert absent(ran(RIGHT), HIT) == ("missing_artifact", "gold_patch")


def test_the_controllers_words_are_copied_and_the_one_of_this_attempt_is_named() -> None:
    words = {"attempt1Mode": "broad", "trialRecoveryMode": "narrowed", "finalFailureMode": None}
    first, second = trial({"localization": words}, {"localization": words})
    copied = {"attempt1_mode": "broad", "trial_recovery_mode": "narrowed", "final_failure_mode": None}
    assert value(first, MODE) == value(second, MODE) == copied
    assert (detail(first, MODE), detail(second, MODE)) == ({"mode": "broad"}, {"mode": "narrowed"})


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ([READ_CALL], "no_edit"),
        ([READ_CALL, RIGHT], "hit_first"),
        ([READ_CALL, WRONG], "wrong_file"),
    ],
)
def test_with_a_gold_patch_the_projects_own_class_stands_beside(parts: list[Part], kind: str) -> None:
    one = ran(*parts, gold_patch=GOLD, localization={"attempt1Mode": "broad"})
    assert detail(one, MODE) == {"mode": "broad", "localization_class": kind}


def test_without_the_controller_its_words_are_a_missing_artifact() -> None:
    assert absent(ran(RIGHT, gold_patch=GOLD), MODE) == ("missing_artifact", "harbor_result")


def test_the_projects_own_class_needs_a_gold_patch_and_a_transcript() -> None:
    words = {"attempt1Mode": "broad"}
    for one in (unseen(gold_patch=GOLD, localization=words), ran(RIGHT, localization=words)):
        assert detail(one, MODE) == {"mode": "broad"}
