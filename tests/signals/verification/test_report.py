"""verification.*: reward, outcome, patch. The rules of the outcome are in test_patch_outcome."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import HarnessSummary, Verification
from tests.build import call
from tests.signals.ask import absent, detail, evidence, lines, value
from tests.signals.attempts import graded, patched, ran, unseen

REWARD = "verification.reward"
LABEL = "verification.patch_outcome_label"
APPLIES = "verification.patch_applies"
PRESENT = "verification.patch_present"
PATCH = [patched("a.py")]


@pytest.mark.parametrize(
    ("facts", "expected", "more"),
    [
        ({"reward": 1.0}, 1.0, {}),
        ({"reward": 0.0}, 0.0, {}),
        ({"reward": 0.4417}, 0.4417, {"non_binary": True}),
        ({"reward": 1.0, "rewards": {"a": 1.0}}, 1.0, {}),
        ({"reward": 1.0, "rewards": {"a": 1.0, "b": 0.0}}, 1.0, {"rewards": {"a": 1.0, "b": 0.0}}),
        ({"reward": 1.0, "verification": graded(fixed=1, broken=1)}, 1.0, {"inconsistent": True}),
        ({"reward": 0.0, "verification": graded(fixed=1)}, 0.0, {"inconsistent": True}),
        ({"reward": 1.0, "verification": graded(fixed=1)}, 1.0, {}),
    ],
)
def test_a_reward_is_copied_and_never_computed(facts: dict[str, Any], expected: float, more: dict[str, Any]) -> None:
    one = unseen(patch=PATCH, **facts)
    assert (value(one, REWARD), detail(one, REWARD)) == (expected, more)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"patch": PATCH}, ("missing_artifact", "result_json")),
        ({"kinds": ["stdout"]}, ("missing_artifact", "result_json")),
        ({"kinds": ["result_json"]}, ("missing_field", "reward")),
        ({"kinds": ["verifier_report"], "verification": graded(fixed=1)}, ("missing_field", "reward")),
        ({"reward": float("nan")}, ("missing_field", "reward")),
    ],
)
def test_without_a_reward_it_says_what_is_missing(facts: dict[str, Any], why: tuple[str, str]) -> None:
    assert absent(unseen(**facts), REWARD) == why


@pytest.mark.parametrize(
    ("facts", "label", "more"),
    [
        ({"reward": 1.0, "verification": graded(fixed=2, kept=9)}, "correct_patch", {"rule": 4, "method": "counts"}),
        ({"reward": 0.0, "verification": graded(fixed=1, unfixed=1)}, "partial_patch", {"rule": 5, "method": "counts"}),
        ({"reward": 0.0, "verification": graded(fixed=1, broken=2)}, "partial_patch", {"rule": 5, "method": "counts"}),
        (
            {"reward": 0.0, "verification": graded(unfixed=1, broken=1)},
            "regressive_patch",
            {"rule": 6, "method": "counts"},
        ),
        (
            {"reward": 0.0, "verification": graded(unfixed=1, kept=5)},
            "no_effect_patch",
            {"rule": 7, "method": "counts"},
        ),
        (
            {"reward": 1.0, "verification": graded(unfixed=2)},
            "unverifiable",
            {"rule": 8, "method": "counts", "inconsistent": True},
        ),
        ({"reward": 1.0}, "correct_patch", {"rule": 3, "method": "reward_only"}),
        ({"verification": graded(fixed=1)}, "correct_patch", {"rule": 4, "method": "reward_from_counts"}),
        (
            {"reward": 0.0, "verification": Verification(patch_applies=False)},
            "unverifiable",
            {"rule": 2, "method": "gate"},
        ),
        (
            {"reward": 0.0, "verification": Verification(status="crashed")},
            "unverifiable",
            {"rule": 2, "method": "gate"},
        ),
        (
            {"reward": 0.0, "verification": graded(layout="B", left=3)},
            "no_effect_patch",
            {"rule": 7, "method": "counts", "targets": "assumed"},
        ),
        (
            {"reward": 1.0, "verification": graded(layout="B", fixed=2, left=3)},
            "correct_patch",
            {"rule": 4, "method": "counts", "targets": "assumed"},
        ),
    ],
)
def test_what_became_of_the_patch(facts: dict[str, Any], label: str, more: dict[str, Any]) -> None:
    one = unseen(patch=PATCH, **facts)
    assert (value(one, LABEL), detail(one, LABEL)) == (label, more)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"patch": [], "reward": 0.0, "verification": graded(unfixed=1)}, ("not_applicable", "no_patch")),
        ({"patch": PATCH, "reward": 0.0}, ("missing_artifact", "verifier_report")),
        ({"patch": PATCH}, ("missing_artifact", "verifier_report")),
        ({"patch": PATCH, "verification": Verification(fixed=["a"])}, ("missing_artifact", "verifier_report")),
        ({"patch": PATCH, "verification": graded(fixed=1, broken=None)}, ("missing_artifact", "verifier_report")),
    ],
)
def test_an_attempt_without_label_says_why(facts: dict[str, Any], why: tuple[str, str]) -> None:
    assert absent(unseen(**facts), LABEL) == why


def test_an_agent_that_ran_out_of_time_is_graded_all_the_same() -> None:
    assert (
        value(unseen(patch=PATCH, timed_out=True, reward=1.0, verification=graded(fixed=1)), LABEL) == "correct_patch"
    )


def test_the_label_shows_the_report_and_its_rule() -> None:
    found = evidence(unseen(patch=PATCH, reward=0.0, verification=graded(unfixed=1)), LABEL)
    assert [i.excerpt.split()[0] for i in found.items if i.role == "support"] == ["verification", "reward", "patch"]
    assert found.rules == ["rule 7: no target fixed, nothing broken, reward not 1"]


@pytest.mark.parametrize(
    ("facts", "expected", "method"),
    [
        ({"patch": PATCH}, True, "patch"),
        ({"patch": []}, False, "patch"),
        ({"patch_text_bytes": 0}, False, "patch"),
        ({"patch_text_bytes": 9}, True, "patch"),
        ({"summary": HarnessSummary(touched_files=[("a.py", 2)])}, True, "harness"),
        ({"summary": HarnessSummary(touched_files=[])}, False, "harness"),
        ({"patch": [], "summary": HarnessSummary(touched_files=[("a.py", 2)])}, True, "harness"),
    ],
)
def test_a_patch_is_there_when_anything_shows_one(facts: dict[str, Any], expected: bool, method: str) -> None:
    one = unseen(**facts)
    assert (value(one, PRESENT), detail(one, PRESENT)) == (expected, {"method": method})


def test_without_patch_or_list_of_files_the_log_of_edits_tells() -> None:
    assert value(ran(call("Edit", path="a.py")), PRESENT) is True
    assert value(ran(call("Read", path="a.py")), PRESENT) is False
    assert value(ran(call("Write", path="/root/notes.md", creates=True)), PRESENT) is False
    one = ran(call("Edit", path="a.py"))
    assert detail(one, PRESENT) == {"method": "edit_log"}
    assert lines(one, PRESENT) == [2]
    told = evidence(unseen(patch=PATCH), PRESENT).items
    assert [i.excerpt for i in told if i.role == "support"] == ["patch is said here"]


def test_a_patch_the_verifier_applied_is_there_though_the_log_shows_no_edit() -> None:
    script = ran(call("Bash", command="python fix.py"), reward=1.0, verification=graded(fixed=1))
    assert absent(script, PRESENT) == ("missing_artifact", "patch")
    assert value(script, LABEL) == "correct_patch"


def test_nobody_knows_of_a_patch() -> None:
    assert absent(unseen(reward=1.0), PRESENT) == ("missing_artifact", "patch")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"verification": Verification(patch_applies=True)}, True),
        ({"verification": Verification(patch_applies=False)}, False),
        ({"verification": Verification()}, ("missing_field", "patch_applies")),
        ({"kinds": ["result_json"]}, ("missing_field", "patch_applies")),
        ({}, ("missing_artifact", "verifier_report")),
        ({"patch": [], "verification": Verification(patch_applies=True)}, ("not_applicable", "no_patch")),
    ],
)
def test_whether_the_patch_applies(facts: dict[str, Any], expected: Any) -> None:
    one = unseen(**{"patch": PATCH, **facts})
    assert (value(one, APPLIES) if isinstance(expected, bool) else absent(one, APPLIES)) == expected
