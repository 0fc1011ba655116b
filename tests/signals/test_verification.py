"""`verification.outcome`: the rungs of the ladder, and that a known outcome never rests on the reward's value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agentsignals.changes.patches import PatchFacts, Verdict, judged, unfixed_targets
from agentsignals.model import Absent, HarnessSummary, Verification
from agentsignals.signals.catalog import by_path
from agentsignals.views.failure import CLASSES, RULES, failure_of
from agentsignals.views.session import SessionView
from tests.build import call, say
from tests.quick import each_row
from tests.signals.ask import detail, value
from tests.signals.attempts import graded, patched, ran, unseen

PATCH: dict[str, Any] = {"patch": [patched("a.py")]}
LISTED = Verification(passed=["test_header", "test_rows"], failed=["test_total"])
TOUCHED = HarnessSummary(touched_files=[("src/b.py", 4), ("docs/x.md", 2)])
NOT_RUN = Verification(status="not_run", message="sh: pytest: not found")


@each_row(
    ("facts", "rung", "reason", "inferred"),
    [
        ({"reward": 1.0}, "solved", "reward", False),
        ({"reward": 0.0}, "failed", "tests", False),
        ({"reward": 0.5}, "failed", "tests", False),
        ({"reward": float("nan")}, "not_judged", "no verdict", False),
        ({"reward": 0.0, "patch": []}, "failed", "no_artifact", False),
        ({"patch": [], "ending": "finished"}, "failed", "no_artifact", True),
        ({"patch": [], "reward": 1.0}, "solved", "reward", False),
        ({"ending": "time", "reward": 0.0}, "failed", "time", False),
        ({"ending": "time", "reward": 1.0}, "solved", "reward", False),
        ({"ending": "time", **PATCH}, "failed", "time", True),
        ({"timed_out": True}, "failed", "time", True),
        ({"ending": "budget"}, "failed", "budget", True),
        ({**PATCH, "ending": "finished"}, "not_judged", "no verdict", False),
        ({**PATCH, "verification": graded(fixed=2, kept=1)}, "solved", "tests", False),
        ({**PATCH, "verification": graded(unfixed=2)}, "failed", "tests", False),
        ({**PATCH, "verification": graded(patch_applies=False), "reward": 0.0}, "failed", "patch_not_applied", False),
        ({"verification": graded(status="crashed"), "reward": 0.0}, "not_judged", "verifier crashed", False),
        ({"verification": graded(status="timed_out"), "reward": 1.0}, "not_judged", "verifier timed out", False),
        ({"ending": "verifier"}, "not_judged", "verifier failed", False),
        ({"ending": "infrastructure", "exception": "RateLimit", "reward": 0.0}, "infrastructure", "RateLimit", False),
        ({"ending": "infrastructure", "exception": "RateLimit", "reward": 1.0}, "infrastructure", "RateLimit", False),
        ({"ending": "infrastructure", "exit_status": "exit_api", "patch": []}, "infrastructure", "exit_api", False),
        ({"agent_started": False, "reward": 0.0}, "agent_not_started", "its program was missing", False),
        ({"agent_started": False, "reward": 1.0}, "agent_not_started", "its program was missing", False),
        ({"agent_started": False, "output_tokens": 9, "reward": 0.0}, "failed", "tests", False),
        ({"verification": NOT_RUN, "reward": 0.0}, "verifier_not_run", "sh: pytest: not found", False),
        ({"verification": NOT_RUN, "reward": 1.0}, "verifier_not_run", "sh: pytest: not found", False),
        ({"verification": NOT_RUN, "reward": 0.0, "patch": []}, "failed", "no_artifact", False),
        ({"fault": "out of memory", "reward": 0.0}, "infrastructure", "out of memory", False),
        ({"fault": "disk full", "reward": 0.0, "verification": graded(fixed=1, unfixed=1)}, "failed", "tests", False),
        ({"ending": "infrastructure", "reward_counts": True, "reward": 1.0}, "solved", "reward", False),
        ({"reward_counts": False, "reward": 0.0}, "not_judged", "the harness calls the reward invalid", False),
    ],
)
def test_each_rung(facts: dict[str, Any], rung: str, reason: str, inferred: bool) -> None:
    view, path = unseen(**facts), "verification.outcome"
    noted = detail(view, path)
    assert (value(view, path), noted["reason"], noted.get("inferred", False)) == (rung, reason, inferred)


# verification.*: reward, outcome, patch. The rules of the outcome are in test_patch_outcome.


# Counts of tests and their rates.


# Why an attempt failed: each rule decides a case of its own, the earlier of two that hold wins, and none claims
# more than is recorded.

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
BLOCKED = call("Bash", status="error", result="PreToolUse hook blocked this call")


@each_row(("view", "expected", "because"), [
        (unseen(ending="infrastructure", exception="RateLimit", reward=1.0), "infrastructure", "RateLimit"),
        (ran(*CIRCLE, ending="infrastructure", exception="RateLimit"), "infrastructure", "RateLimit"),
        (ran(*CIRCLE, ending="budget", **FAILED), "stuck", "the budget was used up"),
        (ran(*CIRCLE, *CALM, ending="budget", **FAILED), "limit_reached", "the budget was used up"),
        (ran(*CIRCLE, *CALM[1:], ending="budget", **FAILED), "stuck", "the budget was used up"),
        (ran(*CIRCLE[2:], ending="budget", **FAILED), "limit_reached", "the budget was used up"),
        (ran(*CIRCLE, patch=[], **FAILED), "stuck", "it ended without a fix"),
        (ran(*CIRCLE, **RIGHT, **GOLD, **NONE_FIXED), "wrong_fix", "0 of 2 tests fixed"),
        (unseen(timed_out=True, patch=[], **FAILED), "limit_reached", "the time limit was reached"),
        (unseen(ending="time", **WRONG, **GOLD, **FAILED), "limit_reached", "the time limit was reached"),
        (ran(say("half an ans", stop_reason="max_tokens"), **FAILED), "limit_reached", "the answer was cut"),
        (unseen(patch=[], **FAILED), "gave_up", "no change"),
        (unseen(**NEW, **GOLD, **NONE_FIXED), "gave_up", "no existing code changed"),
        (unseen(**NEW, **NONE_FIXED), "tests_failed", "0 of 2 tests fixed, 0 broken; not fixed: test_unfixed_0"),
        (unseen(**NEW, gold_patch=[patched("src/n.py", "create")], **FAILED), "cannot_tell", "other names"),
        (unseen(patch=[patched("src/a.py.bak2", "create")], **NONE_FIXED), "gave_up", "only new files, copies"),
        (unseen(patch=[patched("src/back.py", "create")], **NONE_FIXED), "tests_failed", "0 of 2 tests fixed"),
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
        (ran(call("Edit", path="src/b.py"), **NONE_FIXED, **GOLD), "tests_failed", "0 of 2 tests fixed"),
        (unseen(**FAILED, **RIGHT, **GOLD), "cannot_tell", "no file of the run lists tests"),
        (unseen(**NONE_FIXED, **RIGHT), "tests_failed", "not fixed: test_unfixed_0"),
        (unseen(**FAILED), "cannot_tell", "no file of the run lists tests"),
        (unseen(reward=0.4417), "cannot_tell", "or the parts of the reward of 0.44"),
        (unseen(verification=graded(fixed=2), **FAILED), "cannot_tell", "the verdict contradicts the tests"),
        (unseen(verification=graded(kept=2), **FAILED), "cannot_tell", "no test to fix"),
        (ran(say("42"), **FAILED), "wrong_answer", "the answer was wrong"),
        (unseen(verification=LISTED, **FAILED), "tests_failed", "1 of 3 tests fails: test_total"),
        (ran(call("Bash", command="ls"), verification=LISTED, **FAILED), "tests_failed", "1 of 3 tests fails"),
        (unseen(verification=Verification(failed=["a", "b"]), **FAILED), "tests_failed", "2 of 2 tests fail: a, b"),
        (unseen(verification=LISTED, timed_out=True, **FAILED), "limit_reached", "the time limit was reached"),
        (unseen(verification=Verification(message="got 12"), **FAILED), "tests_failed", "last words: got 12"),
        (unseen(verification=Verification(passed=["a"], failed=[]), **FAILED), "cannot_tell", "contradicts the tests"),
        (ran(say("I will now run:\n```bash\nls\n```"), **FAILED), "no_call", "written as text: ```bash ls"),
        (ran(CALM[0], say('{"name": "bash", "arguments": {}}'), **FAILED), "no_call", "written as text"),
        (ran(call("Bash", command="ls"), say("Done:\n```bash\nls\n```"), **FAILED), "cannot_tell", "no file"),
        (ran(call("Bash", command="ls", status="rejected"), **FAILED), "no_call", "its only call was refused"),
        (ran(BLOCKED, **FAILED), "no_call", "its only call was refused"),
        (ran(say("done"), verification=LISTED, **FAILED), "no_call", "no tool call in one model call"),
        (unseen(summary=TOUCHED, **FAILED, **GOLD), "wrong_place", "none of the 1 files"),
        (unseen(agent_started=False, **FAILED), "agent_not_started", "its program was missing"),
        (unseen(verification=NOT_RUN, **FAILED), "verifier_not_run", "pytest: not found"),
        (unseen(fault="disk full", **FAILED), "infrastructure", "disk full"),
        (ran(say("42"), call("Bash", command="ls"), **FAILED), "cannot_tell", "no file of the run lists tests"),
        (ran(say("42"), **FAILED, **GOLD), "no_call", "no tool call in one model call"),
    ])  # fmt: skip
def test_the_first_rule_that_holds_names_the_class(view: SessionView, expected: str, because: str) -> None:
    assert (value(view, CLASS), because in detail(view, CLASS)["because"]) == (expected, True), detail(view, CLASS)


@pytest.mark.parametrize("patch", [RIGHT, {"patch": [patched("setup.py"), *RIGHT["patch"]]}])
def test_the_file_to_open_is_one_that_was_handed_in(patch: dict[str, Any]) -> None:
    scratch = call("Write", path="repro.py")
    assert detail(ran(scratch, EDIT, **NONE_FIXED, **patch), CLASS)["file"] == "src/a.py"


def test_the_table_names_each_class_once_and_the_page_holds_it() -> None:
    assert tuple(rule.name for rule in RULES) == CLASSES == tuple(by_path(CLASS).unit.split("|"))
    page = (Path(__file__).parents[2] / "docs" / "design" / "failures.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.*?) \|$", page, re.MULTILINE)
    assert rows == [(rule.name, rule.means, rule.needs or "–") for rule in RULES]


PATCHES: tuple[dict[str, Any], ...] = ({}, {"patch": []}, RIGHT, WRONG, OTHER_FUNCTION, NEW)
GOLDS: tuple[dict[str, Any], ...] = ({}, GOLD, {"gold_patch": []}, {"gold_patch": [patched("src/n.py", "create")]})
VERIFIED: tuple[dict[str, Any], ...] = (
    {},
    {"reward": 0.0},
    {"reward": 0.5},
    *({"verification": graded(**tests), "reward": 0.0} for tests in (
        {}, {"kept": 1}, {"fixed": 1}, {"unfixed": 1}, {"fixed": 1, "unfixed": 1}, {"fixed": 1, "broken": 1},
        {"unfixed": 1, "broken": 1}, {"patch_applies": False}, {"fixed": None, "unfixed": None}, {"status": "not_run"},
    )),
)  # fmt: skip
ENDINGS: tuple[dict[str, Any], ...] = (
    {}, {"ending": "finished"}, {"ending": "budget"}, {"ending": "infrastructure"}, {"agent_started": False},
)  # fmt: skip


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
        if failure.name == "tests_failed":
            assert failure.tests and all(name in failure.because for name in failure.tests[:1]), recorded
        if failure.name in ("regression", "incomplete", "wrong_fix"):
            assert tests is not None and tests.fixed is not None and tests.unfixed is not None, recorded
            assert bool(tests.fixed) == (failure.name != "wrong_fix"), recorded
        if failure.name == "cannot_tell":
            assert recorded.get("ending") not in ("budget", "infrastructure") and recorded.get("patch") != [], recorded
    assert set(named) == set(CLASSES) - {"stuck", "no_call", "wrong_answer"}, "these three rest on the conversation"


# The truth table of patch_outcome_label (design/signals.md#patch-outcome), row by row and over every combination of
# facts.

ANY = "any"
YES = (True, None)
DOWN = ("crashed", "timed_out")

OUTCOME_PATCHES = (True, False, None)
PATCH_APPLIES = (True, False, None)
VERIFIERS = ("ok", "crashed", "timed_out", "missing")
REWARDS = (1.0, 0.0, None)
TARGETS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
COUNTS: tuple[Any, ...] = (None, *((fixed, of, broken) for (fixed, of), broken in product(TARGETS, (0, 1))))


class Row(NamedTuple):
    """A line of the table: what each column admits, and what comes of it."""

    present: Any
    applies: Any
    verifier: Any
    reward: Any
    fixed: Any
    broken: Any
    outcome: str


OK = ("ok",)
MISSING = ("missing",)
UNSOLVED = (0.0, None)
TABLE = (
    Row((False,), ANY, ANY, ANY, ANY, ANY, "not_applicable:no_patch"),
    Row(YES, (False,), ANY, ANY, ANY, ANY, "unverifiable"),
    Row(YES, YES, DOWN, ANY, ANY, ANY, "unverifiable"),
    Row(YES, YES, MISSING, (1.0,), ANY, ANY, "correct_patch reward_only"),
    Row(YES, YES, MISSING, UNSOLVED, ANY, ANY, "missing_artifact:verifier_report"),
    Row(YES, YES, OK, (1.0, None), "all", "none", "correct_patch"),
    Row(YES, YES, OK, (0.0,), "all", "none", "unverifiable inconsistent"),
    Row(YES, YES, OK, ANY, "all", "some", "partial_patch"),
    Row(YES, YES, OK, ANY, "part", "none", "partial_patch"),
    Row(YES, YES, OK, ANY, "part", "some", "partial_patch"),
    Row(YES, YES, OK, ANY, "none", "some", "regressive_patch"),
    Row(YES, YES, OK, UNSOLVED, "none", "none", "no_effect_patch"),
    Row(YES, YES, OK, (1.0,), "none", "none", "unverifiable inconsistent"),
    Row(YES, YES, OK, (1.0,), "no targets", "none", "correct_patch empty_target_set"),
    Row(YES, YES, OK, UNSOLVED, "no targets", "none", "unverifiable inconsistent"),
    Row(YES, YES, OK, ANY, "no targets", "some", "regressive_patch"),
)


def facts_of(present: Any, applies: Any, verifier: Any, reward: Any, counts: Any) -> PatchFacts:
    fixed, targets, broken = counts or (None, None, None)
    return PatchFacts(
        present=present, applies=applies, verifier=verifier, reward=reward, fixed=fixed, targets=targets, broken=broken
    )


COMBINATIONS = [facts_of(*one) for one in product(OUTCOME_PATCHES, PATCH_APPLIES, VERIFIERS, REWARDS, COUNTS)]


def share(fixed: int, targets: int) -> str:
    if targets == 0:
        return "no targets"
    return "none" if fixed == 0 else "all" if fixed == targets else "part"


def admits(row: Row, facts: PatchFacts) -> bool:
    """Whether the line speaks of these facts. A report without counts is as good as none."""
    missing = facts.verifier == "missing" or (facts.verifier == "ok" and facts.fixed is None)
    told: list[tuple[Any, Any]] = [
        (row.present, facts.present),
        (row.applies, facts.applies),
        (row.verifier, "missing" if missing else facts.verifier),
        (row.reward, facts.reward),
    ]
    if not all(wanted == ANY or value in wanted for wanted, value in told):
        return False
    if facts.fixed is None or facts.targets is None or missing:
        return row.fixed == ANY
    return (row.fixed in (ANY, share(facts.fixed, facts.targets))) and row.broken in (
        ANY,
        "some" if facts.broken else "none",
    )


def told(found: Verdict) -> str:
    if isinstance(found.outcome, Absent):
        return f"{found.outcome.reason}:{found.outcome.detail}"
    return found.outcome


def test_there_are_1404_combinations_and_each_stands_on_exactly_one_line_of_the_table() -> None:
    assert len(COMBINATIONS) == 1404
    for facts in COMBINATIONS:
        lines = [row for row in TABLE if admits(row, facts)]
        assert len(lines) == 1, facts
        expected, _, note = lines[0].outcome.partition(" ")
        found = judged(facts)
        assert told(found) == expected, facts
        against = facts.reward == 1 and expected in ("partial_patch", "regressive_patch")
        assert found.inconsistent is (note == "inconsistent" or against), facts
        assert found.method == note or note in ("", "inconsistent"), facts


def test_every_line_of_the_table_is_met() -> None:
    met = Counter(n for facts in COMBINATIONS for n, row in enumerate(TABLE) if admits(row, facts))
    assert sorted(met) == list(range(16))


PROPERTIES: dict[str, Callable[[PatchFacts, Verdict], bool]] = {
    "an absent patch has no label": lambda f, v: (f.present is False) == (told(v) == "not_applicable:no_patch"),
    "a correct patch breaks nothing": lambda f, v: (
        v.outcome != "correct_patch" or v.method == "reward_only" or not f.broken
    ),
    "a correct patch leaves no target": lambda f, v: (
        v.outcome != "correct_patch" or v.method == "reward_only" or f.fixed == f.targets
    ),
    "what is regressive fixed nothing": lambda f, v: (
        v.outcome != "regressive_patch" or (f.fixed == 0 and bool(f.broken))
    ),
    "what is partial fixed something": lambda f, v: v.outcome != "partial_patch" or bool(f.fixed),
    "a reward of 1 is never without effect": lambda f, v: v.outcome != "no_effect_patch" or f.reward != 1,
    "unknown whether it applies is as good as yes": lambda f, v: (
        f.applies is not None
        or judged(
            PatchFacts(
                present=f.present,
                applies=True,
                verifier=f.verifier,
                reward=f.reward,
                fixed=f.fixed,
                targets=f.targets,
                broken=f.broken,
            )
        )
        == v
    ),
    "an unknown patch is as good as one": lambda f, v: (
        f.present is not None
        or judged(
            PatchFacts(
                present=True,
                applies=f.applies,
                verifier=f.verifier,
                reward=f.reward,
                fixed=f.fixed,
                targets=f.targets,
                broken=f.broken,
            )
        )
        == v
    ),
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_over_all_combinations(name: str) -> None:
    assert [f for f in COMBINATIONS if not PROPERTIES[name](f, judged(f))] == []


@pytest.mark.parametrize(
    ("reward", "counts", "label", "method"),
    [
        (0.4417, (0, 2, 0), "no_effect_patch", "counts"),
        (0.4417, (1, 2, 0), "partial_patch", "counts"),
        (0.4417, None, "missing_artifact:verifier_report", "counts"),
        (None, (2, 2, 0), "correct_patch", "reward_from_counts"),
        (float("nan"), (0, 2, 0), "no_effect_patch", "counts"),
    ],
)
def test_a_reward_between_0_and_1_is_not_solved(reward: float, counts: Any, label: str, method: str) -> None:
    found = judged(facts_of(True, True, "ok", reward, counts))
    assert (told(found), found.method) == (label, method)


@pytest.mark.parametrize(
    ("layout", "unfixed", "still", "reward", "left"),
    [
        ("A", ["t1"], ["t2", "t3"], 0.0, 1),
        ("A", None, None, 0.0, None),
        ("B", [], ["t2", "t3"], 0.0, 2),
        ("B", [], ["t2", "t3"], None, 2),
        ("B", [], ["t2", "t3"], 1.0, 0),
    ],
)
def test_a_report_by_transition_has_targets_among_the_tests_that_fail_still(
    layout: Any, unfixed: list[str] | None, still: list[str] | None, reward: float | None, left: int | None
) -> None:
    assert unfixed_targets(Verification(layout=layout, unfixed=unfixed, still_failing=still), reward) == left


@pytest.mark.parametrize("counts", [(1, None, 0), (None, 1, 0), (1, 1, None)])
def test_half_the_counts_are_no_counts(counts: Any) -> None:
    assert told(judged(facts_of(True, True, "ok", 0.0, counts))) == "missing_artifact:verifier_report"
    assert told(judged(facts_of(True, True, "ok", 1.0, counts))) == "correct_patch"
