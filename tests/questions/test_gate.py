"""`compare --fail-if`: what each part of a condition changes, what can't be told, and what a machine reads of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from agentsignals.cli import main
from agentsignals.errors import UsageError
from agentsignals.questions.compare import Comparison
from agentsignals.questions.compare.gate import FIGURES, gate, parse_condition
from tests.questions.stores import store_of
from tests.questions.test_compare import FAILED, HOSTILE, SOLVED, arm, compared, sessions, tried

BETTER = "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"
WORSE = "0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 1 1 1 1 1"
NEARLY = "0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"


def of(candidate: str, baseline: str = BETTER) -> Comparison:
    return compared(*arm("new", candidate), *arm("old", baseline), baseline="old")


def with_costs(new: Sequence[float | None], old: Sequence[float], *, at_least: bool = False) -> Comparison:
    """A comparison whose median costs, with their ends, are these."""
    made = of(NEARLY)
    ends = {"new": new, "old": old}
    candidates = []
    for candidate in made.candidates:
        low, median, high = ends[candidate.name]
        taken = replace(candidate.took["cost_usd"], median=median, low=low, high=high, n=20, at_least=at_least)
        candidates.append(replace(candidate, took={**candidate.took, "cost_usd": taken}))
    return replace(made, candidates=candidates)


def ending(made: Comparison, *conditions: str, by_value: bool = False) -> str:
    return gate(made, conditions, baseline="old", by_value=by_value).ending


@pytest.mark.parametrize(
    ("candidate", "condition", "by_interval", "by_value"),
    [
        (WORSE, "solve_rate < baseline - 0.05", "failed", "failed"),
        (WORSE, "solve_rate < baseline - 0.65", "cannot tell", "passed"),  # 65 points: at the bound, not below
        (WORSE, "solve_rate <= baseline - 0.65", "cannot tell", "failed"),
        (WORSE, "solve_rate < baseline - 0.95", "passed", "passed"),
        (NEARLY, "solve_rate < baseline - 0.04", "cannot tell", "failed"),
        (NEARLY, "solve_rate < baseline - 0.5", "passed", "passed"),
        (NEARLY, "solve_rate < baseline", "cannot tell", "failed"),
        (NEARLY, "solve_rate < baseline + 0.5", "failed", "failed"),
        (NEARLY, "solve_rate < 0.5", "passed", "passed"),
        (NEARLY, "solve_rate < 0.96", "cannot tell", "failed"),
        (WORSE, "solve_rate < 0.9 * baseline", "failed", "failed"),
        (WORSE, "solve_rate < baseline * 0.3", "cannot tell", "passed"),
        (NEARLY, "p < 0.05", "passed", "passed"),
        (WORSE, "p < 0.05", "failed", "failed"),
        (WORSE, "p_adjusted < 0.0001", "passed", "passed"),
        ("1 1 1", "p < 0.05", "cannot tell", "cannot tell"),  # of three tasks p is 0.25 at least
        ("1 1 1 1 1 1", "p < 0.05", "passed", "passed"),
        ("1 1 1 1 1 1", "p < 0.03125", "cannot tell", "cannot tell"),
        ("1 1 1 1 1 1", "p <= 0.03125", "passed", "passed"),
        ("1 1 1", "p > 0.05", "failed", "failed"),
        (NEARLY, "regressions > 0", "failed", "failed"),
        (NEARLY, "regressions > 1", "passed", "passed"),
        (NEARLY, "regressions >= 1", "failed", "failed"),
        (NEARLY, "improvements > 0", "passed", "passed"),
        ("- 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "regressions > 0", "cannot tell", "passed"),  # the first may be
        ("- 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "regressions > 1", "cannot tell", "passed"),
        ("- 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "improvements > 0", "passed", "passed"),  # nothing to improve
        (WORSE, "worse", "failed", "failed"),
        (WORSE, "better", "passed", "passed"),
        (NEARLY, "worse", "passed", "passed"),
        (NEARLY, "not better", "failed", "failed"),
        (NEARLY, "undecided and regressions > 0", "failed", "failed"),
        ("1 1 1 1 1", "worse", "cannot tell", "cannot tell"),
        ("1 1 1 1 1", "not better", "cannot tell", "cannot tell"),
        (NEARLY, "matched_tasks < 21", "failed", "failed"),
        (WORSE, "difference < -0.05 and p < 0.05", "failed", "failed"),
        (NEARLY, "difference < -0.04 and p < 0.05", "passed", "passed"),
        (NEARLY, "difference < -0.04 and regressions > 0", "cannot tell", "failed"),
        ("1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 -", "not_judged > 0", "failed", "failed"),
        (BETTER, "not_judged > 0", "passed", "passed"),
        ("1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 -", "worst_rate < 1", "failed", "failed"),
        ("1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 -", "best_rate < 1", "passed", "passed"),
        (NEARLY, "attempts < baseline", "passed", "passed"),
        ("1 1 1", "solve_rate < baseline - 0.05", "cannot tell", "passed"),  # no interval of three tasks
        (NEARLY, "cost_usd > 1.2 * baseline", "cannot tell", "cannot tell"),  # of no attempt it is known
    ],
)
def test_each_part_of_a_condition_changes_the_result(
    candidate: str, condition: str, by_interval: str, by_value: str
) -> None:
    made = of(candidate)
    assert (ending(made, condition), ending(made, condition, by_value=True)) == (by_interval, by_value)


@pytest.mark.parametrize(
    ("new", "old", "at_least", "by_interval", "by_value"),
    [
        ((1.0, 1.3, 1.6), (0.5, 0.7, 0.8), False, "failed", "failed"),
        ((1.0, 1.3, 1.6), (0.5, 0.7, 0.9), False, "cannot tell", "failed"),
        ((1.0, 1.3, 1.6), (1.4, 1.5, 1.6), False, "passed", "passed"),
        ((None, 1.3, None), (0.5, 0.7, 0.8), False, "cannot tell", "failed"),
        ((1.0, 1.3, 1.6), (0.5, 0.7, 0.8), True, "cannot tell", "cannot tell"),  # the baseline may have cost more
    ],
)
def test_costs_are_held_against_the_baselines(
    new: Sequence[float | None], old: Sequence[float], at_least: bool, by_interval: str, by_value: str
) -> None:
    made = with_costs(new, old, at_least=at_least)
    condition = "cost_usd > 1.2 * baseline"
    assert (ending(made, condition), ending(made, condition, by_value=True)) == (by_interval, by_value)


def test_a_lower_bound_shows_that_a_number_is_passed_and_never_that_it_is_kept() -> None:
    made = with_costs((1.0, 1.3, 1.6), (0.5, 0.7, 0.8), at_least=True)
    assert [ending(made, c) for c in ("cost_usd > 0.9", "cost_usd > 2", "cost_usd < 0.9")] == [
        "failed", "cannot tell", "passed"
    ]  # fmt: skip


def test_one_that_is_met_outweighs_one_that_is_not_told() -> None:
    made = of(NEARLY)
    assert ending(made, "cost_usd > 1", "regressions > 0") == "failed"
    assert ending(made, "cost_usd > 1", "regressions > 5") == "cannot tell"


def test_every_candidate_beside_the_baseline_is_asked() -> None:
    made = compared(*arm("new", WORSE), *arm("fine", BETTER), *arm("old", BETTER), baseline="old")
    checks = gate(made, ["regressions > 0"], baseline="old").checks
    assert {check.candidate: check.verdict for check in checks} == {"new": "met", "fine": "not met"}


def test_the_baseline_must_be_named_where_there_are_several() -> None:
    made = compared(*arm("new", WORSE), *arm("old", BETTER))
    with pytest.raises(UsageError, match="Which candidate is the baseline"):
        gate(made, ["regressions > 0"])
    called = compared(*arm("new", WORSE), *arm("baseline", BETTER))
    assert gate(called, ["regressions > 0"]).ending == "failed", "one that its run calls so is named"


def test_a_candidate_that_is_not_there_is_no_pass() -> None:
    alone = compared(*arm("old", BETTER))
    assert gate(alone, ["solve_rate < 0.1"], baseline="old").ending == "cannot tell"
    assert gate(alone, ["solve_rate < 0.1"]).ending == "passed", "without a baseline the only one is judged"
    assert gate(alone, ["regressions > 0"]).ending == "cannot tell"


def test_rates_of_other_tasks_are_not_held_against_each_other() -> None:
    other = (*arm("new", "1 1 1 1 _ _ _ _"), *arm("old", "_ _ _ _ 0 0 0 0"))
    made = compared(*other, baseline="old", anyway=True)
    assert ending(made, "solve_rate < 0.5 * baseline", by_value=True) == "cannot tell"


@pytest.mark.parametrize(("new", "ends"), [(WORSE, "failed"), (BETTER, "passed")])
def test_a_candidate_of_other_tasks_decides_no_gate(new: str, ends: str) -> None:
    odd = [tried("odd", f"o{n}", 0.0) for n in range(8)]
    made = compared(*arm("new", new), *arm("old", BETTER), *odd, by=["model"], baseline="old")
    checked = gate(made, ["worse"], baseline="old")
    assert (checked.ending, checked.not_compared) == (ends, ["odd"])
    assert {check.candidate for check in checked.checks} == {"new"}


def test_a_candidate_under_other_limits_cannot_be_told_and_hides_no_failure() -> None:
    for new, ends in ((WORSE, "failed"), (BETTER, "cannot tell")):
        limited = arm("odd", BETTER, timeout_s=9)
        made = compared(*arm("new", new, timeout_s=5), *arm("old", BETTER, timeout_s=5), *limited, by=["model"],
                        baseline="old")  # fmt: skip
        checked = gate(made, ["worse"], baseline="old")
        (odd,) = [check for check in checked.checks if check.candidate == "odd"]
        assert (checked.ending, odd.verdict, checked.not_compared) == (ends, "cannot tell", [])
        assert "timeout_s differs" in odd.because


@pytest.mark.parametrize(
    ("condition", "says", "hint"),
    [
        ("solverate < 1", "No condition can ask for 'solverate'", "Did you mean solve_rate?"),
        ("solve_rate", "is no condition", "A condition is FIGURE"),
        ("solve_rate < baseline - 5%", "is no condition", "baseline"),
        ("solve_rate == 1", "is no condition", "<="),
        ("solve_rate < 1 or p < 1", "is no condition", "and"),
        ("p < baseline", "no p of the baseline", "p < 0.05"),
        ("cost_usd > -1 * baseline", "-1 times", "above 0"),
        ("cost_usd > 0 * baseline", "0 times", "above 0"),
        ("cost_usd > 1e999", "too large", ""),
        ("", "is no condition", "FIGURE"),
        ("p < 0.05 and", "is no condition", "FIGURE"),
        ("not worse than", "No condition can ask for 'not'", "There are"),
        ("solve_rate < " + "9" * 20_000 + "x", "characters is too long", "several"),
        ("solve_rate < \u0663", "is no condition", "FIGURE"),
        ("wrose", "No condition can ask for 'wrose'", "worse"),
    ],
)
def test_a_condition_that_is_none_is_refused_with_what_there_is(condition: str, says: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_condition(condition)
    assert says in refused.value.message and hint in refused.value.hint


def test_a_mean_is_no_rate() -> None:
    numbers = compared(*arm("new", WORSE), *arm("old", BETTER), baseline="old", outcome="verification.reward")
    assert [ending(numbers, c) for c in ("mean < baseline - 0.05", "mean < baseline - 0.65")] == [
        "failed",
        "cannot tell",
    ]
    with pytest.raises(UsageError, match="it has no solve_rate"):
        ending(numbers, "solve_rate < 0.5")
    with pytest.raises(UsageError, match="it has no mean"):
        ending(of(WORSE), "mean < 0.5")


def test_every_figure_can_be_asked() -> None:
    made = of(WORSE)
    for name, figure in FIGURES.items():
        if figure.outcomes != "numbers":
            assert ending(made, f"{name} < 1e9") in ("passed", "failed", "cannot tell")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = store_of(
        tmp_path_factory.mktemp("gate") / "s",
        *sessions("m1", "t1", SOLVED), *sessions("m1", "t2", SOLVED),
        *sessions(HOSTILE, "t1", SOLVED), *sessions(HOSTILE, "t2", FAILED),
    )  # fmt: skip
    return str(made.folder)


@pytest.mark.parametrize(
    ("condition", "more", "code"),
    [
        ("regressions > 0", (), 1),
        ("regressions > 1", (), 0),
        ("solve_rate < baseline", (), 3),
        ("solve_rate < baseline", ("--decide-by", "value"), 1),
        ("solverate < 1", (), 2),
    ],
)
def test_exit_codes_say_what_became_of_it(
    store: str, condition: str, more: Sequence[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gate.xml"
    words = ["compare", "--store", store, "--by", "model", "--baseline", "m1", "--fail-if", condition, *more]
    assert main([*words, "--json", "--junit", str(file)]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    if code == 2:
        assert "Did you mean solve_rate" in found["error"]["hint"] and not file.exists()
        return
    assert found["gate"]["exit_code"] == code and len(found["gate"]["checks"]) == 1
    (case,) = ElementTree.parse(file).getroot().iter("testcase")  # noqa: S314  (ours)
    assert {child.tag for child in case} == {{0: "system-out", 1: "failure", 3: "error"}[code]}
    assert "DROP TABLE" in case.attrib["classname"]
    assert main(words) == code
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and {0: "PASSED", 1: "FAILED", 3: "CANNOT TELL"}[code] in shown


def test_a_file_without_a_gate_is_refused(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--store", store, "--junit", str(tmp_path / "f.xml")]) == 2
    assert main(["compare", "--store", store, "--baseline", "m1", "--by", "model", "--fail-if", "p < 1",
                 "--junit", str(tmp_path / "no" / "f.xml")]) == 1  # fmt: skip
    assert "can't be written" in capsys.readouterr().err
