"""Whether the right file was changed first, and the controller's words for it."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import HarnessSummary
from tests.build import Part, call
from tests.signals.ask import absent, detail, evidence, lines, value
from tests.signals.attempts import patched, ran, trial, unseen

HIT = "behavior.localized_correct_file"
MODE = "behavior.localization_mode"
GOLD = [patched("src/a.py")]
READ = call("Read", path="src/a.py")
RIGHT = call("Edit", path="src/a.py")
WRONG = call("Edit", path="src/b.py")
SCRATCH = call("Write", path="repro.py", creates=True)


@pytest.mark.parametrize(
    ("parts", "expected", "file", "kind"),
    [
        ([READ, RIGHT], True, "src/a.py", "hit_first"),
        ([READ, WRONG, RIGHT], False, "src/b.py", "hit_late"),
        ([READ, WRONG], False, "src/b.py", "wrong_file"),
        ([RIGHT], True, "src/a.py", "blind_edit"),
        ([READ, SCRATCH, RIGHT], True, "src/a.py", "hit_first"),
        ([READ, SCRATCH, call("Edit", path="repro.py"), RIGHT], True, "src/a.py", "hit_first"),
        ([READ, SCRATCH], False, None, "wrong_file"),
        ([READ, call("Edit", path="src/b.py", status="error"), RIGHT], True, "src/a.py", "hit_first"),
        ([READ, call("Write", path="/root/notes.md"), RIGHT], True, "src/a.py", "hit_first"),
        ([READ, call("Bash", command="sed -i s/x/y/ src/a.py"), WRONG], True, "src/a.py", "hit_first"),
    ],
)
def test_the_first_change_of_a_file_that_was_there_decides(
    parts: list[Part], expected: bool, file: str | None, kind: str
) -> None:
    one = ran(*parts, gold_patch=GOLD)
    assert value(one, HIT) is expected
    assert detail(one, HIT) == {"method": "edit_order", "file": file, "localization_class": kind}


def test_a_new_file_counts_where_the_gold_patch_makes_it_too() -> None:
    one = ran(READ, call("Write", path="src/new.py", creates=True), gold_patch=[patched("src/new.py", "create")])
    assert (value(one, HIT), detail(one, HIT)["file"]) == (True, "src/new.py")


@pytest.mark.parametrize("path", ["src/old.py", "src/new.py"])
def test_both_names_of_a_renamed_file_are_right(path: str) -> None:
    gold = [patched("src/new.py", "rename", old_path="src/old.py")]
    assert value(ran(READ, call("Edit", path=path), gold_patch=gold), HIT) is True


def test_absolute_paths_match_where_nobody_knows_the_folder_of_the_repository() -> None:
    assert value(ran(call("Edit", path="/testbed/src/a.py"), cwd=None, gold_patch=GOLD), HIT) is True
    assert value(ran(call("Edit", path="/testbed/other_src/a.py"), cwd=None, gold_patch=GOLD), HIT) is False
    assert value(ran(call("Edit", path="/testbed/src/aa.py"), cwd=None, gold_patch=GOLD), HIT) is False


def test_the_first_change_and_the_gold_patch_are_the_evidence() -> None:
    one = ran(READ, SCRATCH, WRONG, RIGHT, gold_patch=GOLD)
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
    one = ran(READ, call("Bash", command="python fix.py"), gold_patch=GOLD, patch=[patched("src/a.py")])
    assert (value(one, HIT), detail(one, HIT)["method"]) == (True, "single_touched")


def test_without_an_edit_or_a_gold_patch_it_says_so() -> None:
    assert absent(ran(READ, gold_patch=GOLD), HIT) == ("not_applicable", "no_edit")
    assert absent(ran(RIGHT), HIT) == ("missing_artifact", "gold_patch")


def test_the_controllers_words_are_copied_and_the_one_of_this_attempt_is_named() -> None:
    words = {"attempt1Mode": "broad", "trialRecoveryMode": "narrowed", "finalFailureMode": None}
    first, second = trial({"localization": words}, {"localization": words})
    copied = {"attempt1_mode": "broad", "trial_recovery_mode": "narrowed", "final_failure_mode": None}
    assert value(first, MODE) == value(second, MODE) == copied
    assert (detail(first, MODE), detail(second, MODE)) == ({"mode": "broad"}, {"mode": "narrowed"})


@pytest.mark.parametrize(
    ("parts", "kind"), [([READ], "no_edit"), ([READ, RIGHT], "hit_first"), ([READ, WRONG], "wrong_file")]
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
