"""behavior.*: calls, edits, files, and what was looked at before the first change."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.changes.hunks import Hunk
from agentsignals.model import Absent, HarnessSummary
from tests.build import Part, call, say, think, user, view
from tests.signals.ask import Case, absent, detail, evidence, lines, value
from tests.signals.attempts import patched, ran, trial, unseen

REPO = "/home/me/app"
EDITED = call("Edit", path="a.py")
READ = call("Read", path="a.py")


def bash(command: str, **more: Any) -> Part:
    return call("Bash", command=command, **more)


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


@pytest.mark.parametrize(
    ("parts", "expected"),
    [([READ, EDITED, EDITED], 2.0), ([READ, READ, bash("sed -i s/a/b/ a.py")], 0.5), ([READ], 0.0)],
)
def test_edit_to_read_ratio_counts_shell_writes_as_edits(parts: list[Part], expected: float) -> None:
    assert value(view(user("go"), *parts), "behavior.edit_to_read_ratio") == expected


# Whether the right file was changed first, and the controller's words for it.

HIT = "behavior.localized_correct_file"
MODE = "behavior.localization_mode"
GOLD = [patched("src/a.py")]
READ_CALL = call("Read", path="src/a.py")
RIGHT = call("Edit", path="src/a.py")
WRONG = call("Edit", path="src/b.py")
SCRATCH = call("Write", path="repro.py", creates=True)


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


def test_the_controllers_words_are_copied_and_the_one_of_this_attempt_is_named() -> None:
    words = {"attempt1Mode": "broad", "trialRecoveryMode": "narrowed", "finalFailureMode": None}
    first, second = trial({"localization": words}, {"localization": words})
    copied = {"attempt1_mode": "broad", "trial_recovery_mode": "narrowed", "final_failure_mode": None}
    assert value(first, MODE) == value(second, MODE) == copied
    assert (detail(first, MODE), detail(second, MODE)) == ({"mode": "broad"}, {"mode": "narrowed"})


def test_the_projects_own_class_needs_a_gold_patch_and_a_transcript() -> None:
    words = {"attempt1Mode": "broad"}
    for one in (unseen(gold_patch=GOLD, localization=words), ran(RIGHT, localization=words)):
        assert detail(one, MODE) == {"mode": "broad"}


CASES = (
    Case("a model call counts once however many lines it was logged on",
         view(user("go"), say("a", "m1"), say("b", "m1"), say("c", "m2"), say("d", "m3", thread="agent-1")),
         "behavior.turn_count", 2, support=[2, 4]),
    Case("a session without an agent has no steps and no calls", view(user("go")), "behavior.turn_count", 0),
    Case("a session without an agent has no steps and no calls", view(user("go")), "behavior.tool_call_count", 0),
    Case("a session without an agent has no steps and no calls", view(user("go")), "behavior.tool_sequence[]", []),
    Case("unanswered and rejected calls count and subagents stand beside",
         view(user("go"), READ, call("Edit", path="a.py", status="rejected"), call("Bash", command="ls", result=None),
         call("Read", path="b.py", thread="agent-1")), "behavior.tool_call_count", 3,
         {"subagent_calls": 1, "rejected": 1}, support=[2, 3, 4]),
    Case("edit calls include the failed and the rejected",
         view(user("go"), EDITED, call("MultiEdit", path="b.py", status="error"), call("Write", path="c.py",
         status="rejected"), bash("sed -i s/a/b/ d.py"), READ), "behavior.edit_calls", 3, {"succeeded": 1},
         support=[2, 3, 4]),
    Case("bash mediated edits shows the shell writes", view(user("go"), READ, bash("sed -i s/a/b/ a.py"), cwd=REPO),
         "behavior.bash_mediated_edits", support=[3], some={"shell_write_calls": 1}),
    Case("touched files are unique sorted and relative to the repository",
         view(user("go"), call("Edit", path=f"{REPO}/z.py"), call("Edit", path="z.py"), call("Write", path="./a.py",
         creates=True), call("Edit", path="b.py", status="error"), bash("touch c.py"), cwd=REPO),
         "behavior.touched_files[]", ["a.py", "c.py", "z.py"], {"outside": 0, "shell_only": 1, "confidence": "medium"},
         support=[2, 3, 4, 6]),
    Case("touched files outside the repository keep their absolute path",
         view(user("go"), call("Write", path="/home/me/.claude/plans/p.md", creates=True), cwd=REPO),
         "behavior.touched_files[]", ["/home/me/.claude/plans/p.md"], some={"outside": 1}),
    Case("no touched files is an empty list", view(user("go"), READ), "behavior.touched_files[]", []),
    Case("absolute paths are inside when nobody knows where the repository is",
         view(user("go"), call("Edit", path="/testbed/a.py")), "behavior.touched_files[]", some={"outside": 0}),
    Case("diff lines of a session without edits is zero", view(user("go"), READ), "behavior.diff_lines", 0),
    Case("diff lines are absent when no edit tells its lines and flagged when some do not",
         view(user("go"), bash("touch a.py")), "behavior.diff_lines", Absent("missing_field", "line_counts")),
    Case("diff lines are absent when no edit tells its lines and flagged when some do not",
         view(user("go"), bash("touch a.py"), call("Edit", path="a.py", hunks=[Hunk(start_line=1, end_line=1, added=1,
         removed=0)])), "behavior.diff_lines", 1, support=[3], counter=[2], some={"edits_without_lines": 1}),
    Case("without a change the whole session counts and is censored",
         view(user("go"), READ, call("Read", path="b.py"), think("hm"), cwd=REPO), BEFORE, 2, support=[2, 3],
         some={"censored": True}),
    Case("files read tells the shell readers and the first change",
         view(user("go"), READ, READ, bash("head -20 b.py"), EDITED, bash("cat late.py"), cwd=REPO), READ_BEFORE,
         detail={"censored": False, "outside": 0, "shell_reads": 1}, support=[2, 4], counter=[5]),
    Case("edit to read ratio without reads is not computable", view(user("go"), EDITED), "behavior.edit_to_read_ratio",
         Absent("not_computable", "zero_denominator")),
    Case("edit to read ratio without reads is not computable", view(user("go"), READ, EDITED),
         "behavior.edit_to_read_ratio", support=[3], denominator=[2]),
    Case("a new file counts where the gold patch makes it too",
         ran(READ_CALL, call("Write", path="src/new.py", creates=True), gold_patch=[patched("src/new.py", "create")]),
         HIT, True, some={"file": "src/new.py"}),
    Case("a change by a script is known from the patch",
         ran(READ_CALL, call("Bash", command="python fix.py"), gold_patch=GOLD, patch=[patched("src/a.py")]), HIT,
         True, some={"method": "single_touched"}),
    Case("without an edit or a gold patch it says so", ran(READ_CALL, gold_patch=GOLD), HIT,
         Absent("not_applicable", "no_edit")),
    Case("without an edit or a gold patch it says so", ran(RIGHT), HIT, Absent("missing_artifact", "gold_patch")),
    Case("without the controller its words are a missing artifact", ran(RIGHT, gold_patch=GOLD), MODE,
         Absent("missing_artifact", "harbor_result")),
    *(Case("a file that no edit tool changed was changed through the shell", view(user("go"), *parts, cwd=REPO),
           "behavior.bash_mediated_edits", files > 0, some={"files": files, "pure": pure})
      for parts, files, pure in [
        ([bash("sed -i s/a/b/ a.py")], 1, True),
        ([bash("cat > notes.md <<'EOF'\nhello\nEOF")], 1, True),
        ([bash("sed -i s/a/b/ a.py"), EDITED], 0, False),
        ([bash("sed -i s/a/b/ c.py d.py"), EDITED], 2, False),
        ([bash("sed -i s/a/b/ a.py"), call("Edit", path="a.py", status="error")], 1, False),
        ([EDITED], 0, False),
        ([READ], 0, False),
        ([bash("sed -i s/a/b/ a.py", status="error")], 0, False),
        ([bash("echo x > /tmp/scratch.txt")], 0, False),
      ]),
    *(Case("the first change of a file that was there decides", ran(*parts, gold_patch=GOLD), HIT, expected,
           {"method": "edit_order", "file": file, "localization_class": kind})
      for parts, expected, file, kind in [
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
      ]),
    *(Case("both names of a renamed file are right",
           ran(READ_CALL, call("Edit", path=path), gold_patch=[patched("src/new.py", "rename", old_path="src/old.py")]),
           HIT, True)
      for path in ["src/old.py", "src/new.py"]),
    *(Case("with a gold patch the projects own class stands beside",
           ran(*parts, gold_patch=GOLD, localization={"attempt1Mode": "broad"}), MODE,
           detail={"mode": "broad", "localization_class": kind})
      for parts, kind in [
        ([READ_CALL], "no_edit"),
        ([READ_CALL, RIGHT], "hit_first"),
        ([READ_CALL, WRONG], "wrong_file"),
      ]),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    case.check()
