"""The truth table of patch_outcome_label (design/signals.md#patch-outcome), row by row and over every combination of
facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import pytest

from agentsignals.changes.patches import PatchFacts, Verdict, judged, unfixed_targets
from agentsignals.model import Absent, Verification

ANY = "any"
YES = (True, None)
DOWN = ("crashed", "timed_out")

PATCHES = (True, False, None)
APPLIES = (True, False, None)
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


COMBINATIONS = [facts_of(*one) for one in product(PATCHES, APPLIES, VERIFIERS, REWARDS, COUNTS)]


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
