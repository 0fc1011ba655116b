"""treatment.*: the knobs as configured, never as observed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import user, view
from tests.quick import each_row
from tests.signals.ask import absent, detail, value
from tests.signals.attempts import unseen

CAP = "treatment.attempt1_tool_cap"
COUNTS = ("attempt1_tool_cap", "retry_tool_cap", "concurrency")


@pytest.mark.parametrize("knob", COUNTS)
@pytest.mark.parametrize(
    ("raw", "expected", "told"), [(50, 50, None), ("50", 50, "50"), (50.0, 50, None), (" 7 ", 7, " 7 ")]
)
def test_a_count_is_copied(knob: str, raw: Any, expected: int, told: Any) -> None:
    one = unseen(knobs={knob: raw})
    assert (value(one, f"treatment.{knob}"), detail(one, f"treatment.{knob}").get("raw")) == (expected, told)


@each_row("knob", [*COUNTS, "timeout_s"])
@each_row(
    ("raw", "told"),
    [
        (None, "unlimited"),
        (0, "unlimited: 0"),
        (-1, "unlimited: -1"),
        ("unlimited", "unlimited: unlimited"),
        ("Auto", "unlimited: Auto"),
        (float("inf"), "unlimited: inf"),
        (10**400, "unlimited: more than anyone counts"),
    ],
)
def test_no_limit_is_not_applicable(knob: str, raw: Any, told: str) -> None:
    assert absent(unseen(knobs={knob: raw}), f"treatment.{knob}") == ("not_applicable", told)


@pytest.mark.parametrize("raw", [True, "many", "5 apples", [5], {"n": 5}, float("nan"), "5" * 5000])
def test_what_is_no_number_is_not_computable_and_says_the_raw(raw: Any) -> None:
    reason, told = absent(unseen(knobs={"attempt1_tool_cap": raw}), CAP)
    assert reason == "not_computable"
    assert told.startswith("no_number: ")
    assert len(told) < 120


def test_two_places_that_differ_are_a_conflict_and_the_first_is_believed() -> None:
    one = unseen(knobs={"dataset": "a@1"})
    assert one.session.attempt is not None
    one.session.attempt.conflicts = ["knobs.dataset"]
    assert (value(one, "treatment.dataset"), detail(one, "treatment.dataset")) == ("a@1", {"conflict": True})


def test_a_product_session_has_no_treatment() -> None:
    with pytest.raises(StopIteration):
        value(view(user("go")), CAP)
