"""Why an attempt failed: each rule decides a case of its own, the earlier of two that hold wins, and none claims more
than is recorded."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agentsignals.model import Verification
from agentsignals.signals.catalog import by_path
from agentsignals.views.failure import CLASSES, RULES, failure_of
from agentsignals.views.session import SessionView
from tests.build import call, say
from tests.signals.ask import absent, detail, evidence, lines, value
from tests.signals.attempts import graded, patched, ran, unseen

CLASS, PLACE = "verification.failure_class", "verification.patch_localization"
GOLD = {"gold_patch": [patched("src/a.py", changes=[(3, 3, "f")])]}
RIGHT, WRONG = {"patch": [patched("src/a.py")]}, {"patch": [patched("src/b.py")]}
OTHER_FUNCTION = {"patch": [patched("src/a.py", changes=[(90, 90, "g")])]}
NEW = {"patch": [patched("repro.py", "create"), patched("tests/test_a.py")]}
NONE_FIXED = {"verification": graded(unfixed=2, kept=3), "reward": 0.0}
BROKE = {"verification": graded(unfixed=2, broken=1), "reward": 0.0}
REGRESSED = {"verification": graded(fixed=2, broken=1), "reward": 0.0}
PARTLY = {"verification": graded(fixed=1, unfixed=1, broken=1), "reward": 0.0}
FAILED = {"reward": 0.0}
CIRCLE = [call("Bash", command="make test", status="error", result="1 failed in the parser")] * 4
CALM = [call("Bash", command=f"ls {n}") for n in range(10)]
EDIT = call("Edit", path="src/a.py")


@pytest.mark.parametrize(
    ("view", "expected", "because"),
    [
        (unseen(ending="infrastructure", exception="RateLimit", reward=1.0), "infrastructure", "RateLimit"),
        (ran(*CIRCLE, ending="infrastructure", exception="RateLimit"), "infrastructure", "RateLimit"),
        (ran(*CIRCLE, ending="budget", **FAILED), "stuck", "its budget was used up"),
        (ran(*CIRCLE, *CALM, ending="budget", **FAILED), "limit_reached", "its budget was used up"),
        (ran(*CIRCLE, *CALM[1:], ending="budget", **FAILED), "stuck", "its budget was used up"),
        (ran(*CIRCLE[2:], ending="budget", **FAILED), "limit_reached", "its budget was used up"),
        (ran(*CIRCLE, patch=[], **FAILED), "stuck", "it ended without a fix"),
        (ran(*CIRCLE, **RIGHT, **GOLD, **NONE_FIXED), "wrong_fix", "0 of 2 tests fixed"),
        (unseen(timed_out=True, patch=[], **FAILED), "limit_reached", "its time was up"),
        (unseen(ending="time", **WRONG, **GOLD, **FAILED), "limit_reached", "its time was up"),
        (ran(say("half an ans", stop_reason="max_tokens"), **FAILED), "limit_reached", "its answer was cut"),
        (unseen(patch=[], **FAILED), "gave_up", "no change"),
        (unseen(**NEW, **GOLD, **NONE_FIXED), "gave_up", "nothing that was there"),
        (unseen(**NEW, **NONE_FIXED), "cannot_tell", "no gold patch"),
        (unseen(**NEW, gold_patch=[patched("src/n.py", "create")], **FAILED), "cannot_tell", "another name"),
        (ran(say("  "), **FAILED), "gave_up", "no answer"),
        (unseen(verification=graded(patch_applies=False), **WRONG, **GOLD, **FAILED), "not_applied", "could not apply"),
        (unseen(**REGRESSED), "regression", "2 of 2 tests fixed, 1 broken: test_broken_0"),
        (unseen(**REGRESSED, **WRONG, **GOLD), "regression", "2 of 2 tests fixed"),
        (unseen(**PARTLY), "incomplete", "1 of 2 tests fixed, 1 broken; not fixed: test_unfixed_0"),
        (unseen(**PARTLY, **WRONG, **GOLD), "incomplete", "1 of 2 tests fixed"),
        (unseen(**NONE_FIXED, **WRONG, **GOLD), "wrong_place", "none of the 1 files"),
        (unseen(**FAILED, **WRONG, **GOLD), "wrong_place", "none of the 1 files"),
        (unseen(**BROKE, **WRONG, **GOLD), "wrong_place", "none of the 1 files"),
        (unseen(**NONE_FIXED, **OTHER_FUNCTION, **GOLD), "wrong_place", "none of the 1 functions"),
        (unseen(**NONE_FIXED, **RIGHT, **GOLD), "wrong_fix", "in 1 of the 1 files"),
        (unseen(**BROKE, **RIGHT, **GOLD), "wrong_fix", "0 of 2 tests fixed, 1 broken"),
        (ran(EDIT, **NONE_FIXED, **GOLD), "wrong_fix", "in 1 of the 1 files"),
        (ran(call("Edit", path="src/b.py"), **NONE_FIXED, **GOLD), "cannot_tell", "the patch was not recorded"),
        (unseen(**FAILED, **RIGHT, **GOLD), "cannot_tell", "the tests are not listed"),
        (unseen(**NONE_FIXED, **RIGHT), "cannot_tell", "no gold patch"),
        (unseen(**FAILED), "cannot_tell", "no gold patch, and the tests are not listed"),
        (unseen(reward=0.4417), "cannot_tell", "of what the reward of 0.44 is a part"),
        (unseen(verification=graded(fixed=2), **FAILED), "cannot_tell", "the verdict contradicts the tests"),
        (unseen(verification=graded(kept=2), **FAILED), "cannot_tell", "no test was to be fixed"),
        (ran(say("42"), **FAILED), "wrong_answer", "the answer was not accepted"),
        (ran(say("42"), call("Bash", command="ls"), **FAILED), "cannot_tell", "no gold patch"),
        (ran(say("42"), **FAILED, **GOLD), "cannot_tell", "the patch was not recorded"),
    ],
)  # fmt: skip
def test_the_first_rule_that_holds_names_the_class(view: SessionView, expected: str, because: str) -> None:
    assert (value(view, CLASS), because in detail(view, CLASS)["because"]) == (expected, True), detail(view, CLASS)


@pytest.mark.parametrize("facts", [{"reward": 1.0}, {}, {"verification": graded(status="crashed"), "reward": 0.0}])
def test_what_did_not_fail_has_no_class(facts: dict[str, Any]) -> None:
    assert absent(unseen(**facts), CLASS) == ("not_applicable", "not_failed")


def test_the_first_tests_are_named_the_end_of_long_names() -> None:
    many = unseen(verification=graded(fixed=1, broken=3), reward=0.0)
    assert detail(many, CLASS)["because"] == "1 of 1 tests fixed, 3 broken: test_broken_0, test_broken_1, …"
    name = "tests/a.py::" + "x" * 90
    long = unseen(verification=Verification(fixed=["a"], unfixed=[], kept=[], broken=[name]), reward=0.0)
    assert detail(long, CLASS)["because"].endswith(f"1 broken: …{'x' * 79}")


def test_a_class_opens_on_the_event_and_the_file_that_show_it() -> None:
    wrong = ran(EDIT, call("Edit", path="src/b.py"), **WRONG, **GOLD, **NONE_FIXED)
    assert detail(wrong, CLASS)["file"] == "src/a.py", "where it should have been"
    stuck = ran(*CIRCLE, ending="budget", **FAILED)
    assert lines(stuck, CLASS)[0] == 5 and stuck.session.events[detail(stuck, CLASS)["seq"]].line == 5
    fix = ran(call("Edit", path="src/b.py"), EDIT, **RIGHT, **GOLD, **NONE_FIXED)
    assert (lines(fix, CLASS)[0], detail(fix, CLASS)["file"]) == (3, "src/a.py"), "the edit in the right file first"
    answer = ran(say("first"), say("42"), **FAILED)
    assert lines(answer, CLASS)[0] == 3
    assert evidence(answer, CLASS).rules == ["wrong_answer: " + detail(answer, CLASS)["because"]]


def test_the_table_names_each_class_once_and_the_page_holds_it() -> None:
    assert tuple(rule.name for rule in RULES) == CLASSES == tuple(by_path(CLASS).unit.split("|"))
    page = (Path(__file__).parents[3] / "docs" / "design" / "failures.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.*?) \|$", page, re.MULTILINE)
    assert rows == [(rule.name, rule.means, rule.needs or "–") for rule in RULES]


@pytest.mark.parametrize(
    ("facts", "level", "method"),
    [(RIGHT, "file", "patch"), (WRONG, "elsewhere", "patch"),
     ({"patch": [patched("src/a.py", changes=[(3, 3, "f")], digests=["00ff00ff"])]}, "function", "patch")],
)  # fmt: skip
def test_how_near_a_patch_came(facts: dict[str, Any], level: str, method: str) -> None:
    view = unseen(**facts, **GOLD)
    assert (value(view, PLACE), detail(view, PLACE)["method"]) == (level, method)


def test_without_the_patch_the_transcript_shows_what_was_hit_and_never_what_was_not() -> None:
    assert value(ran(EDIT, **GOLD), PLACE) == "file" and detail(ran(EDIT, **GOLD), PLACE)["method"] == "edit_log"
    assert absent(ran(call("Edit", path="src/b.py"), **GOLD), PLACE) == ("missing_artifact", "patch")
    assert absent(unseen(patch=[], **GOLD), PLACE) == ("not_applicable", "no_patch")
    assert absent(unseen(**RIGHT), PLACE) == ("missing_artifact", "gold_patch")


PATCHES: tuple[dict[str, Any], ...] = ({}, {"patch": []}, RIGHT, WRONG, OTHER_FUNCTION, NEW)
GOLDS: tuple[dict[str, Any], ...] = ({}, GOLD, {"gold_patch": []}, {"gold_patch": [patched("src/n.py", "create")]})
VERIFIED: tuple[dict[str, Any], ...] = (
    {},
    {"reward": 0.0},
    {"reward": 0.5},
    *({"verification": graded(**tests), "reward": 0.0} for tests in (
        {}, {"kept": 1}, {"fixed": 1}, {"unfixed": 1}, {"fixed": 1, "unfixed": 1}, {"fixed": 1, "broken": 1},
        {"unfixed": 1, "broken": 1}, {"patch_applies": False}, {"fixed": None, "unfixed": None},
    )),
)  # fmt: skip
ENDINGS: tuple[dict[str, Any], ...] = ({}, {"ending": "finished"}, {"ending": "budget"}, {"ending": "infrastructure"})


def test_whatever_is_recorded_one_class_is_named_and_none_claims_more() -> None:
    """All combinations of what a run may leave."""
    named: dict[str, int] = {}
    for facts in product(PATCHES, GOLDS, VERIFIED, ENDINGS):
        recorded = {name: value for part in facts for name, value in part.items()}
        failure = failure_of(unseen(**recorded), None)
        if failure is None:
            continue
        named[failure.name] = named.get(failure.name, 0) + 1
        assert failure.because, recorded
        tests = recorded.get("verification")
        if failure.name == "wrong_place":
            assert recorded["patch"] and recorded["gold_patch"], recorded
        if failure.name in ("regression", "incomplete", "wrong_fix"):
            assert tests is not None and tests.fixed is not None and tests.unfixed is not None, recorded
            assert bool(tests.fixed) == (failure.name != "wrong_fix"), recorded
        if failure.name == "cannot_tell":
            assert recorded.get("ending") not in ("budget", "infrastructure") and recorded.get("patch") != [], recorded
    assert set(named) == set(CLASSES) - {"stuck", "wrong_answer"}, "these two rest on the conversation"
