"""dynamics.*: corrections and repetitions."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.changes.hunks import Hunk
from agentsignals.model import Absent, ToolCall
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path as signal_of
from agentsignals.signals.catalog import explain, measure, values
from agentsignals.signals.dynamics import drift_onset_turn, goals, max_cp
from agentsignals.views.session import NO_EVIDENCE
from agentsignals.words.vectors import DISABLED, counting_vectors
from tests.build import Part, call, say, user, view
from tests.quick import each_row
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


@each_row("case", CASES)
def test_a_case(case: Case) -> None:
    case.check()
