"""dynamics.session_failure_mode."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.model import Absent
from agentsignals.signals.catalog import by_path, explain
from agentsignals.signals.dynamics import goals
from agentsignals.views.session import SessionView
from tests.build import Part, call, say, user, view
from tests.signals.ask import value

PATH = "dynamics.session_failure_mode"
NONE, GONE = Absent("none_found", "x"), Absent("backend_disabled", "embedder")
CALM: dict[str, Any] = {
    "user_turn_count": 4,
    "cp_curve": [0.0, 0.1, 0.1, 0.1],
    "correction_ratio": 0.0,
    "repetition_rate": 0.0,
    "repeated_calls": {"n": 0, "of": 0, "stale_max": 1},
    "assumption_lock_turn": NONE,
    "scope_drift": 1.0,
    "unrequested_files": {"n": 0, "touched": 0, "first_turn": None},
    "conflation_turn": NONE,
    "pushback_rate": 0.0,
    "plan_steps_detected": 0,
    "objections": {"corrections": [], "pushback": []},
}


class Sure:
    confidence = "high"


def edits(*paths: str) -> list[Part]:
    return [call("Edit", path=path) for path in paths]


def of(*parts: Part) -> SessionView:
    return view(*(parts or (user("go"), say("a"), user("b"), say("c"), user("d"), user("e"))))


def judged(one: SessionView | None = None, **given: Any) -> tuple[Any, dict[str, Any], Any]:
    return explain(by_path(PATH), one or of(), {**CALM, "vectors": Sure(), **given})


def label(one: SessionView | None = None, **given: Any) -> Any:
    return judged(one, **given)[0]


def repeated(stale: int) -> dict[str, Any]:
    return {"repeated_calls": {"n": 9, "of": 40, "stale_max": stale}}


def files(*names: str) -> list[Part]:
    return [call("Read", path=f"{name}.py") for name in names]


CIRCLES = of(user("go"), *files(*"abcdefgh", *"abab"))
GOES_ON = of(user("go"), *files(*"abcdefgh", *"abax"))


@pytest.mark.parametrize(
    ("one", "given", "expected"),
    [
        (None, {}, "clean"),
        (None, repeated(4), "stuck_loop"),
        (None, repeated(3), "clean"),
        (CIRCLES, {"repetition_rate": 0.2, **repeated(2)}, "stuck_loop"),
        (CIRCLES, {"repetition_rate": 0.2, **repeated(1)}, "clean"),
        (CIRCLES, {"repetition_rate": 0.19, **repeated(2)}, "clean"),
        (GOES_ON, {"repetition_rate": 0.9, **repeated(2)}, "clean"),
        (of(user("go"), *files(*"aaaaaaaa")), {"repetition_rate": 0.9, **repeated(2)}, "clean"),
        (None, {"assumption_lock_turn": 1}, "assumption_locked"),
        (None, {"correction_ratio": 0.2, "objections": {"corrections": [1, 4], "pushback": []}}, "assumption_locked"),
        (None, {"correction_ratio": 0.2, "objections": {"corrections": [1, 5], "pushback": []}}, "clean"),
        (None, {"correction_ratio": 0.19, "objections": {"corrections": [1, 2], "pushback": []}}, "clean"),
        (None, {"correction_ratio": 0.5, "objections": {"corrections": [1], "pushback": []}}, "clean"),
        (None, {"cp_curve": [0.0, 0.45, 0.45, 0.1]}, "shifted_intent"),
        (None, {"cp_curve": [0.0, 0.45, 0.44, 0.45]}, "clean"),
        (None, {"cp_curve": [0.0, 0.9, None, 0.9]}, "clean"),
        (None, {"cp_curve": [0.0, 0.9, 0.9, 0.9], "correction_ratio": 0.2}, "clean"),
        (None, {"cp_curve": GONE}, "clean"),
    ],
)
def test_each_condition_holds_from_its_threshold_on(
    one: SessionView | None, given: dict[str, Any], expected: str
) -> None:
    assert label(one, **given) == expected


THREE_GOALS = "Please:\n- add a flag\n- rename the module\n- write docs"
AT_ONCE = of(user(THREE_GOALS), *edits("a", "b", "c"), user("ok"), *edits("d"))


@pytest.mark.parametrize(
    ("one", "given", "expected"),
    [
        (AT_ONCE, {"pushback_rate": 0.25}, "multi_intent_confusion"),
        (AT_ONCE, {"correction_ratio": 0.15}, "multi_intent_confusion"),
        # A request of many parts that is handled well is clean.
        (AT_ONCE, {"pushback_rate": 0.24, "correction_ratio": 0.14}, "clean"),
        (of(user(THREE_GOALS), *edits("a", "b", "c")), {"pushback_rate": 1.0}, "clean"),
        (of(user(THREE_GOALS), *edits("a", "b"), user("ok"), *edits("c", "d")), {"pushback_rate": 1.0}, "clean"),
        (of(user("fix it"), *edits("a", "b", "c", "d")), {"pushback_rate": 1.0}, "clean"),
        (of(user("fix it"), *edits("a", "b", "c", "d")), {"pushback_rate": 1.0, "plan_steps_detected": 8},
         "multi_intent_confusion"),
    ],
)  # fmt: skip
def test_many_goals_worked_on_at_once_confuse_only_where_the_person_objects(
    one: SessionView, given: dict[str, Any], expected: str
) -> None:
    assert label(one, **given) == expected


WIDE = {"scope_drift": 2.1, "unrequested_files": {"n": 3, "touched": 6, "first_turn": 1}}
LATE = of(user("fix it"), *edits("a"), user("ok"), *edits("b", "c", "d"))
EARLY = of(user("fix it"), *edits("a", "b", "c", "d"), user("ok"), *edits("e", "a"))


@pytest.mark.parametrize(
    ("one", "given", "expected"),
    [
        (LATE, WIDE, "scope_bleed"),
        (EARLY, {**WIDE, "conflation_turn": 1}, "scope_bleed"),
        (EARLY, WIDE, "clean"),
        (LATE, {**WIDE, "scope_drift": 2.0}, "clean"),
        (LATE, {**WIDE, "unrequested_files": {"n": 2, "touched": 6, "first_turn": 1}}, "clean"),
        (LATE, {**WIDE, "user_turn_count": 1}, "clean"),
        (LATE, {**WIDE, "unrequested_files": Absent("not_computable", "no_reference")}, "clean"),
    ],
)
def test_scope_bleeds_where_much_unasked_work_comes_late(
    one: SessionView, given: dict[str, Any], expected: str
) -> None:
    assert label(one, **given) == expected


def test_of_several_conditions_the_surest_names_the_session_and_all_are_kept() -> None:
    found, detail, why = judged(LATE, **WIDE, **repeated(4), cp_curve=[0.0, 0.9, 0.9, 0.9])
    assert found == "stuck_loop"
    assert detail["candidates"] == ["stuck_loop", "shifted_intent", "scope_bleed"]
    assert [name for name, holds in detail["predicates"].items() if holds] == detail["candidates"]
    assert (detail["confidence"], detail["stale_max"]) == ("medium", 4)
    assert "stuck_loop, shifted_intent, scope_bleed" in why.rules[0]


@pytest.mark.parametrize(
    ("given", "confidence"),
    [
        ({}, "high"),
        ({"cp_curve": [0.0, 0.9, 0.9, 0.9]}, "high"),
        ({"cp_curve": [0.0, 0.9, 0.9, 0.9], "vectors": GONE}, "low"),
        ({"assumption_lock_turn": 1, "cp_curve": [0.0, 0.9, 0.9, 0.9]}, "medium"),
        ({**WIDE, "conflation_turn": 1}, "low"),
    ],
)
def test_confidence_tells_what_the_label_rests_on(given: dict[str, Any], confidence: str) -> None:
    assert judged(**given)[1]["confidence"] == confidence


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"cp_curve": GONE, "scope_drift": GONE}, ["cp_curve", "scope_drift"]),
        ({"cp_curve": NONE, "scope_drift": NONE, "correction_ratio": NONE, "repetition_rate": NONE}, None),
    ],
)
def test_up_to_two_missing_inputs_are_named(given: dict[str, Any], missing: list[str] | None) -> None:
    found, detail, _ = judged(**given)
    assert found == "clean"
    assert detail.get("missing") == missing


def test_with_three_missing_inputs_nothing_is_judged() -> None:
    found = label(cp_curve=GONE, scope_drift=GONE, correction_ratio=GONE)
    assert found == Absent("dependency_null", "cp_curve, correction_ratio, scope_drift")


def test_a_session_without_an_answer_has_no_mode_and_one_with_words_alone_is_clean() -> None:
    assert label(of(user("go"))) == Absent("not_applicable", "no_response")
    assert value(view(user("go"), say("a")), PATH) == "clean"


def test_evidence_shows_corrections_and_far_turns() -> None:
    why = judged(cp_curve=[0.0, 0.5, 0.5, 0.1], objections={"corrections": [3], "pushback": []})[2]
    assert [i.line for i in why.items if i.role == "support"] == [6, 3, 5]


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("fix it", 1),
        ("add a flag, rename the module and then update the docs", 3),
        ("Can you fix the parser? Also add tests.", 2),
        ("1. the header\n2. the footer\n3) the menu", 3),
        ("* one\n* two", 2),
        ("the tests fail and the build is red", 0),
        ("look:\n```\n- a\n- b\n- c\n```", 1),
        ("", 0),
    ],
)
def test_goals_are_list_items_or_clauses_that_begin_with_a_verb_of_action(text: str, n: int) -> None:
    assert goals(text) == n


@pytest.mark.parametrize("text", ["and " * 15_000, ", " * 30_000, "\n- " * 20_000, " " * 60_000, "please " * 9_000])
def test_a_prompt_of_any_shape_is_read_in_reasonable_time(text: str) -> None:
    assert goals(text) >= 0
