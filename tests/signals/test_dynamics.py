"""dynamics.*: corrections and repetitions."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.changes.hunks import Hunk
from agentsignals.model import Absent, ToolCall
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path, explain, measure, values
from agentsignals.signals.catalog import by_path as signal_of
from agentsignals.signals.dynamics import drift_onset_turn, goals, max_cp
from agentsignals.views.session import NO_EVIDENCE, SessionView
from agentsignals.words.vectors import DISABLED, counting_vectors
from tests.build import Part, call, say, user, view
from tests.signals.ask import Case, detail, evidence, lines, value

RATIO, REPEATS = "dynamics.correction_ratio", "dynamics.repetition_rate"


def bash(command: str, **more: Any) -> Part:
    return call("Bash", command=command, **more)


def test_equal_calls_repeat_whatever_the_order_of_their_arguments() -> None:
    def read(b: Any, at: int) -> None:
        b.call("x", "Read", '{"limit":9,"file_path":"a.py"}', None, at)

    def again(b: Any, at: int) -> None:
        b.call("y", "Read", '{"file_path":"a.py","limit":9}', None, at)

    def other(b: Any, at: int) -> None:
        b.call("z", "Read", '{"file_path":"a.py","limit":8}', None, at)

    one = view(user("go"), read, again, other)
    assert value(one, REPEATS) == pytest.approx(1 / 3)
    assert lines(one, REPEATS) == [3]
    assert lines(one, REPEATS, "denominator") == [2, 3, 4]


def test_arguments_that_are_no_object_repeat_as_logged() -> None:
    def raw(text: str) -> Part:
        return lambda b, at: b.call("x", "apply_patch", text, None, at) and None

    assert detail(view(user("go"), raw("*** p"), raw("*** p"), raw("*** q"), raw("[1]")), REPEATS)["num"] == 1


TEST, EDIT = bash("pytest -q"), call("Edit", path="a.py", old_string="a", new_string="b")
FAILED_EDIT = call("Edit", path="b.py", status="error", result="x", old_string="a", new_string="b")


def test_many_calls_of_one_tool_cost_no_quadratic_time() -> None:
    from agentsignals.signals.dynamics import _repeated  # noqa: PLC0415  (its cost is what is tested)

    calls = [
        ToolCall(
            seq=n,
            turn=0,
            step=None,
            thread="main",
            call_id=str(n),
            name="Grep",
            class_="search",
            arguments=f'{{"pattern":"{n % 5000:05d}"}}',
        )
        for n in range(10_000)
    ]
    assert [len(same) for same in _repeated(calls)] == [2] * 5000


# dynamics.user_msg_length_slope.

PATH = "dynamics.user_msg_length_slope"


def words(n: int) -> str:
    return " ".join(["word"] * n)


# dynamics.gd_inaction.

INACTION = "dynamics.gd_inaction"


def todo(*steps: str) -> Part:
    return call("TodoWrite", todos=[{"content": s, "status": "pending", "activeForm": s} for s in steps])


def edit(path: str, **more: Any) -> Part:
    return call("Edit", path=path, **more)


@pytest.mark.parametrize("step", ["a_" * 30_000, "aB" * 30_000, "a/" * 30_000, "a." * 30_000, "a" * 60_000 + "("])
def test_a_step_of_any_shape_is_read_in_reasonable_time(step: str) -> None:
    view_ = view(user("go"), todo(step, "Do it"))
    evidence(view_, INACTION)


# An assumption that a correction did not move.

LOCK_TURN = "dynamics.assumption_lock_turn"
ASKED = user("Read the settings from the environment")
NO = user("no, that's wrong: settings come from environment variables")
AGAIN = user("that's still not right, environment variables please")


def edit_of(path: str) -> Part:
    return call("Edit", path=path, hunks=[Hunk(start_line=1, end_line=2, added=2, removed=2, old_start=1)])


@pytest.mark.parametrize(("then", "is_locked"), [("a.py", True), ("b.py", False)])
def test_without_an_embedder_the_edited_places_decide(then: str, is_locked: bool) -> None:
    session = view(
        ASKED,
        edit_of("a.py"),
        NO,
        edit_of(then),
        AGAIN,
        edit_of(then),
        cwd="/repo",
    )
    (found,) = [r for r in measure(session, {"vectors": DISABLED}) if r.signal.path == LOCK_TURN]
    assert (found.value == 1) is is_locked
    assert not is_locked or found.detail["method"] == "region"


# dynamics.session_failure_mode.

FAILURE_MODE = "dynamics.session_failure_mode"
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
    return explain(by_path(FAILURE_MODE), one or of(), {**CALM, "vectors": Sure(), **given})


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
    assert value(view(user("go"), say("a")), FAILURE_MODE) == "clean"


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


# Context pollution and what follows from it.

CURVE, MOST, ONSET = "dynamics.cp_curve[]", "dynamics.max_cp", "dynamics.drift_onset_turn"
COHERENCE, CLOSE = "dynamics.intent_coherence_curve[]", "anticipation.close_request_overlap"

CLIENT = "Add a retry with backoff to the download client when the server times out"
ABOUT_CLIENT = "The download client retries with backoff now when the server times out."
INVOICE = "Translate the invoice template into Portuguese"
ABOUT_INVOICE = "The invoice template is translated into Portuguese."


def talk(*said: str) -> list[Part]:
    """The person and the agent in turn."""
    return [user(text) if n % 2 == 0 else say(text) for n, text in enumerate(said)]


@pytest.mark.parametrize(
    ("turns_on_it", "band"),
    [(1, "started_wrong"), (2, "early"), (6, "mid_session"), (12, "late_mid"), (17, "late")],
)
def test_the_onset_has_a_band(turns_on_it: int, band: str) -> None:
    moved = view(*talk(*([CLIENT, ABOUT_CLIENT] * turns_on_it), *([INVOICE, ABOUT_INVOICE] * 4)))
    assert detail(moved, ONSET)["band"] == band
    assert detail(moved, ONSET)["sustained"] is not None


@pytest.mark.parametrize(
    ("curve", "onset", "sustained", "band"),
    [
        ([0.0, 0.2, 0.21], 2, None, "moderate"),
        ([0.0, 0.45, 0.3], 1, 1, "moderate"),
        ([None, 0.0, 0.46], 2, None, "severe"),
    ],
)
def test_the_cuts_are_passed_only_above_them(
    curve: list[float | None], onset: int, sustained: int | None, band: str
) -> None:
    three = view(user("one of three"), user("two of three"), user("three of three"))
    found = drift_onset_turn(three, NO_EVIDENCE, curve)
    assert isinstance(found, Measured)
    assert (found.value, found.detail["sustained"]) == (onset, sustained)
    most = max_cp(three, NO_EVIDENCE, curve)
    assert isinstance(most, Measured)
    assert most.detail["band"] == band


@pytest.mark.parametrize("path", [CURVE, MOST, ONSET, COHERENCE, CLOSE])
def test_without_an_embedder_it_is_said(path: str) -> None:
    two = view(*talk(CLIENT, ABOUT_CLIENT, INVOICE, ABOUT_INVOICE))
    results = {r.signal.path: r.value for r in measure(two, {"vectors": DISABLED})}
    assert results[path] == Absent("backend_disabled", "embedder")


def test_a_long_paste_does_not_push_the_answer_out() -> None:
    pasted = view(*talk(CLIENT, ABOUT_CLIENT, "invoice " * 9000, ABOUT_CLIENT))
    assert detail(pasted, CURVE)["raw"][1] < 1


def test_every_value_names_its_embedder_and_scale() -> None:
    two = view(*talk(CLIENT, ABOUT_CLIENT, INVOICE, ABOUT_INVOICE))
    by_words = {r.signal.path: r for r in measure(two)}
    by_chars = {r.signal.path: r for r in measure(two, {"vectors": counting_vectors("chars")})}
    for path in (CURVE, COHERENCE, CLOSE):
        assert by_words[path].detail["embedder"] == "words-1"
        assert by_chars[path].detail["embedder"] == "chars-1"
        assert by_chars[path].detail["calibration"] != by_words[path].detail["calibration"]
    assert by_words[CURVE].detail["raw"] != by_chars[CURVE].detail["raw"]


def test_explaining_shows_what_was_compared() -> None:
    two = view(*talk(CLIENT, ABOUT_CLIENT, INVOICE, ABOUT_INVOICE))
    shown = evidence(two, CURVE)
    assert [(i.role, i.line) for i in shown.items] == [("support", 1), ("denominator", 3)]
    assert "turn 1: CP" in shown.items[1].excerpt
    assert "0.56" in shown.rules[0]
    chars = {"vectors": counting_vectors("chars")}
    _, told, _ = explain(signal_of(CURVE), two, {**values(two, chars), **chars})
    assert told["embedder"] == "chars-1"


CASES = (
    Case("a long paste counts four hundred tokens", view(user(words(1)), user(words(60_000)), user(words(799))), PATH,
         pytest.approx((400 - 1) / 2)),
    *(Case("a repeat is stale until something is edited", view(user("go"), *parts), REPEATS, some={"stale_max": stale})
      for parts, stale in [
        ([TEST], 1),
        ([TEST, TEST, TEST], 3),
        ([TEST, EDIT, TEST, TEST], 2),
        ([TEST, FAILED_EDIT, TEST], 2),
        ([TEST, bash("sleep 9"), bash("sleep 9")], 1),
        ([EDIT, EDIT], 1),
        ([FAILED_EDIT, FAILED_EDIT, FAILED_EDIT], 3),
        ([bash("git status"), bash("git status"), bash("git status")], 1),
        ([bash("cd app && git diff"), bash("cd app && git diff")], 1),
        ([bash("ls"), bash("ls"), bash("lsblk"), bash("lsblk")], 2),
        ([bash("git stash"), bash("git stash")], 1),
        ([bash("echo x > a.txt; make", status="error")] * 3, 3),
        ([TEST, bash("echo x > a.txt; make", status="error"), TEST], 2),
      ]),
    *(Case("the slope is the least squares line through the lengths",
           view(*[part for n in lengths for part in (user(words(n)), say("ok"))]), PATH, pytest.approx(slope),
           {"n": 3, "norm": norm if norm is None else pytest.approx(norm)}, support=[1, 3, 5])
      for lengths, slope, norm in [
        ([5, 5, 5], 0.0, 0.0),
        ([2, 4, 6], 2.0, 1.0),
        ([6, 4, 2], -2.0, -1.0),
        ([1, 2, 6], 2.5, 5 / 3),
        ([0, 0, 0], 0.0, None),
      ]),
    *(Case("parts of what is masked are nothing to change",
           view(user("go"), todo(f"Change b.py, see {secret}", "Do it")), INACTION, some={"untouched": ["b.py"]})
      for secret in ["jo.doe@example.org", "C:\\Users\\jo.doe\\x", "ghp" + "_a1B2c3D4e5F6g7H8i9J0k1L2"]),
    *(Case("steps that only look plan no change", view(user("go"), todo(f"{verb} a.py", "Do it")), INACTION,
           Absent("not_applicable", "no_plan_items"))
      for verb in ["Read", "check", "**Look** at", "First, review", "Investigate", "Analyse", "Run"]),
    *(Case("reading it changing another or being refused touches nothing",
           view(user("go"), todo("Change a.py", "Do it"), later), INACTION, 1.0)
      for later in [
        call("Read", path="a.py"),
        call("Bash", command="cat a.py"),
        edit("aa.py"),
        edit("b.py", new_string="a.python, x_a.py"),
        edit("a.py", status="rejected"),
      ]),
    *(Case("one turn has no course", view(*talk(CLIENT, ABOUT_CLIENT)), path, Absent("not_applicable", "one_turn"))
      for path in [CURVE, MOST, ONSET, COHERENCE]),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    case.check()
