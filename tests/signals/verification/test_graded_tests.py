"""Counts of tests and their rates."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Verification
from tests.signals.ask import absent, detail, evidence, value
from tests.signals.attempts import graded, patched, unseen

F2P, P2F = "verification.fail_to_pass_count", "verification.pass_to_fail_count"
P2P, F2F = "verification.pass_to_pass_count", "verification.fail_to_fail_count"
FIXED, BROKEN = "verification.partial_fix_rate", "verification.regression_rate"
PATCH = [patched("a.py")]


def test_tests_are_counted_by_what_was_and_what_came() -> None:
    one = unseen(patch=PATCH, reward=0.0, verification=graded(fixed=2, unfixed=1, kept=7, broken=3, left=4))
    assert [value(one, path) for path in (F2P, P2F, P2P, F2F)] == [2, 3, 7, 5]
    assert (detail(one, F2P), detail(one, F2F)) == ({"total": 3}, {"target_remaining": 1})
    assert value(one, FIXED) == pytest.approx(2 / 3)
    assert value(one, BROKEN) == pytest.approx(3 / 10)
    for path in (P2F, FIXED, BROKEN):
        assert [i.excerpt for i in evidence(one, path).items if i.role == "support"] == ["verification is said here"]


def test_nothing_fixed_and_nothing_broken_are_zeros() -> None:
    one = unseen(patch=PATCH, reward=0.0, verification=graded(unfixed=2, kept=5))
    assert [value(one, path) for path in (F2P, P2F, FIXED, BROKEN)] == [0, 0, 0.0, 0.0]


def test_without_targets_or_tests_there_is_no_rate() -> None:
    one = unseen(patch=PATCH, reward=1.0, verification=graded())
    assert (value(one, F2P), value(one, P2P)) == (0, 0)
    assert absent(one, FIXED) == absent(one, BROKEN) == ("not_computable", "zero_denominator")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({}, ("missing_artifact", "verifier_report")),
        ({"verification": Verification()}, ("missing_artifact", "verifier_report")),
        ({"verification": Verification(), "kinds": ["verifier_report"]}, ("missing_field", "tests_status")),
        ({"verification": graded(fixed=1, status="crashed")}, ("not_computable", "verifier_failed")),
        ({"verification": graded(fixed=1, status="timed_out")}, ("not_computable", "verifier_failed")),
        (
            {"verification": graded(fixed=1, status="crashed", patch_applies=False)},
            ("dependency_null", "verification.patch_applies"),
        ),
    ],
)
def test_without_a_report_that_means_something_there_are_no_counts(facts: dict[str, Any], why: tuple[str, str]) -> None:
    one = unseen(patch=PATCH, **facts)
    assert [absent(one, path) for path in (F2P, P2F, P2P, F2F)] == [why] * 4
    assert absent(one, FIXED) == ("dependency_null", F2P)
    assert absent(one, BROKEN) == ("dependency_null", P2F)


def test_in_a_report_by_transition_tests_that_still_fail_count_as_targets_unless_the_task_is_solved() -> None:
    failed = unseen(patch=PATCH, reward=0.0, verification=graded(layout="B", fixed=1, left=3))
    solved = unseen(patch=PATCH, reward=1.0, verification=graded(layout="B", fixed=1, left=3))
    assert (detail(failed, F2P), value(failed, FIXED)) == ({"total": 4}, 0.25)
    assert (detail(solved, F2P), value(solved, FIXED)) == ({"total": 1}, 1.0)
    assert detail(failed, F2F) == {"target_remaining": 3}


def test_a_report_that_lists_no_unfixed_tests_has_no_total_and_no_rate() -> None:
    one = unseen(patch=PATCH, reward=0.0, verification=Verification(patch_applies=True, fixed=["a"]))
    assert (value(one, F2P), detail(one, F2P)) == (1, {"total": None})
    assert absent(one, FIXED) == absent(one, P2P) == ("missing_field", "tests_status")
