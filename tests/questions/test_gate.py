"""What may be concluded of two candidates, and `compare --fail-if`: what each part of a condition changes, what can't
be told, and what a machine reads of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from agentsignals.cli import main
from agentsignals.cli.compare import comparison_text
from agentsignals.errors import UsageError
from agentsignals.questions.compare import Comparison, compare, outcome_rule
from agentsignals.questions.compare.gate import FIGURES, gate, parse_condition
from agentsignals.questions.compare.pairs import gap_text
from tests.questions.stores import store_of
from tests.questions.test_compare import FAILED, HOSTILE, SOLVED, arm, compared, sessions, tried
from tests.quick import each_row

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


@each_row(
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
    with pytest.raises(UsageError, match="compares with a baseline"):
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
        ("solverate < 1", "no --fail-if figure 'solverate'", "Did you mean solve_rate?"),
        ("solve_rate", "is not a --fail-if condition", "Write FIGURE"),
        ("solve_rate < baseline - 5%", "is not a --fail-if condition", "baseline"),
        ("solve_rate == 1", "is not a --fail-if condition", "<="),
        ("solve_rate < 1 or p < 1", "is not a --fail-if condition", "and"),
        ("p < baseline", "already is a comparison with the baseline", "p < 0.05"),
        ("cost_usd > -1 * baseline", "by -1", "above 0"),
        ("cost_usd > 0 * baseline", "by 0", "above 0"),
        ("cost_usd > 1e999", "too large", ""),
        ("", "is not a --fail-if condition", "FIGURE"),
        ("p < 0.05 and", "is not a --fail-if condition", "FIGURE"),
        ("not worse than", "no --fail-if figure 'not'", ""),
        ("solve_rate < " + "9" * 20_000 + "x", "characters; 500 are allowed", "Split"),
        ("solve_rate < \u0663", "is not a --fail-if condition", "FIGURE"),
        ("wrose", "no --fail-if figure 'wrose'", "worse"),
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
    with pytest.raises(UsageError, match="there is no solve_rate"):
        ending(numbers, "solve_rate < 0.5")
    with pytest.raises(UsageError, match="there is no mean"):
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


# -- conclusions -------------------------------------------------------------------------------------------------------

ALL, NONE = " ".join("1" * 20), " ".join("0" * 20)


def against(candidate: str, baseline: str, **how: Any) -> Comparison:
    return compared(*arm("new", candidate), *arm("old", baseline), baseline="old", **how)


def half(up: int, down: int, same: int) -> tuple[str, str]:
    """Rewards of tasks that only the candidate, only the baseline, and both solved."""
    return " ".join("1" * up + "0" * down + "1" * same), " ".join("0" * up + "1" * down + "1" * same)


@pytest.mark.parametrize(
    ("up", "down", "same", "how", "word", "says"),
    [
        (8, 1, 11, {}, "better", "new is better than old: +35.0 points"),
        (1, 8, 11, {}, "worse", "new is worse than old: -35.0 points"),
        (8, 2, 10, {}, "undecided", "+30.0 points (-1.1 points to"),
        (6, 0, 0, {}, "better", "on 6 matched tasks, 6 better, 0 worse; p 0.031."),
        (0, 6, 0, {}, "worse", "on 6 matched tasks, 0 better, 6 worse; p 0.031."),
        (5, 0, 0, {}, "too few", "the smallest possible p is 0.062. At least 6 are needed"),
        (1, 0, 0, {}, "too few", "1 matched task is too few"),
        (0, 0, 20, {}, "undecided", "To detect 10 points, run about"),
        (20, 2, 10, {"regression_weight": 2}, "better", "With regressions weighted 2 times, new is better than old"),
        (
            20,
            2,
            10,
            {"regression_weight": 4},
            "undecided",
            "one regression counts as 10 improvements, 2.43 to 88.2 at 95%",
        ),
        (
            20,
            10,
            2,
            {"regression_weight": 9},
            "worse",
            "Break-even: one regression counts as 2 improvements (95%: 4.78)",
        ),
    ],
)
def test_what_is_concluded(up: int, down: int, same: int, how: dict[str, Any], word: str, says: str) -> None:
    (made,) = against(*half(up, down, same), **how).conclusions
    assert (made.word, made.candidate) == (word, "new") and says in made.sentence, made.sentence


def test_nothing_shared_tells_nothing() -> None:
    (made,) = compared(*arm("new", "1 1 _ _"), *arm("old", "_ _ 1 1"), baseline="old", anyway=True).conclusions
    assert made.word == "too few" and "share no task" in made.sentence


def test_many_candidates_take_more() -> None:
    up, down = half(6, 0, 4)
    more = [a for n in range(3) for a in arm(f"other{n}", ALL[:19])]
    made = compared(*arm("new", up), *arm("old", down), *more, baseline="old")
    word = {c.candidate: c.word for c in made.conclusions}
    assert word["new"] == "undecided" and against(up, down).conclusions[0].word == "better"
    assert made.pairs[0].power is not None and made.pairs[0].power.level == 0.0125
    six = compared(*arm("new", "1 1 1 1 1 1"), *arm("old", "0 0 0 0 0 0"), *arm("x", "0 0 0 0 0 0"), baseline="old")
    assert {c.word for c in six.conclusions} == {"too few"}, "of two candidates six tasks tell nothing"
    apart = compared(*arm("new", up), *arm("old", down), tried("x", "elsewhere", 1.0), baseline="old")
    assert {c.candidate: c.word for c in apart.conclusions}["new"] == "better", "who shares no task is tested with none"


def test_one_model_under_two_names_is_asked_about() -> None:
    made = compared(*arm("acme/m-1", "1 0"), *arm("beta/M-1", "_ 1"), *arm("other/m-2", "1 1"), by=["model"])
    (asked,) = [w for w in made.warnings if "similar names" in w]
    assert asked.startswith("acme/m-1 and beta/M-1 have similar names")


def test_missing_outcomes_that_could_undo_it_are_said() -> None:
    lacking = against("1 1 1 1 1 1 1 - - 1", "0 0 0 0 0 0 0 1 1 -")
    (pair,) = lacking.pairs
    assert (pair.missing.candidate, pair.missing.baseline, pair.missing.undone) == (2, 1, True)
    assert (pair.missing.could_regress, pair.missing.could_improve) == (2, 0)
    assert lacking.conclusions[0].sentence.endswith(
        "Without a known outcome: 3 attempts of the two. The difference would not be significant if all of these"
        " favoured old."
    )
    sure = against("1 1 1 1 1 1 1 1 1 1 1 -", "0 0 0 0 0 0 0 0 0 0 0 1")
    assert sure.pairs[0].missing.undone is False and "known outcome" not in sure.conclusions[0].sentence


def test_more_is_only_better_of_what_a_verifier_accepts() -> None:
    up, down = half(8, 0, 4)
    for outcome, word in (("reward>=0.5", "better"), ("reward<=0.5", "lower"), ("verification.reward", "better")):
        assert against(up, down, outcome=outcome).conclusions[0].word == word


def test_several_attempts_at_a_task_are_one_task() -> None:
    def several(model: str, rates: Sequence[int]) -> list[Any]:
        return [tried(model, f"t{n}", float(k < rate), trial=f"{model}{n}.{k}") for n, rate in enumerate(rates)
                for k in range(3)]  # fmt: skip

    made = compared(*several("new", [3, 2, 3, 3, 3]), *several("old", [0] * 5), baseline="old")
    assert made.conclusions[0].word == "too few", "15 attempts of five tasks are five"
    eight = compared(*several("new", [3, 2, 3, 3, 1, 2, 3, 1]), *several("old", [0] * 8), baseline="old")
    assert eight.conclusions[0].word == "better" and eight.pairs[0].paired.p == 2 / 256
    assert eight.pairs[0].power is not None and eight.pairs[0].power.detectable is None


@pytest.mark.parametrize("weight", [0, -1, 1e9, float("nan"), float("inf")])
def test_what_is_no_weight_is_refused(weight: float) -> None:
    with pytest.raises(UsageError, match="out of range"):
        against("1", "0", regression_weight=weight)


def test_tasks_that_tell_nothing_are_named() -> None:
    made = compared(*arm("a", "1 0 1 0 1 -"), *arm("b", "1 0 0 0 _ 1"), *arm("c", "1 0 1 1 1 _"), baseline="a").silent
    assert (made.tasks, made.solved, made.failed, made.telling) == (5, ["t0", "t4"], ["t1"], 2)
    flaky = compared(tried("a", "t", 1.0), tried("a", "t", 0.0, trial="x"), tried("b", "t", 1.0), baseline="a").silent
    assert (flaky.tasks, flaky.telling) == (1, 1), "not always solved by one is not solved by all"
    assert compared(*arm("a", "1 1"), baseline="a").silent.tasks == 0


def with_times(times: Mapping[str, Sequence[float | None]], of_new: str = "{}") -> Comparison:
    """A time for each first attempt, by candidate, with the detail of one candidate's."""
    made = [entry for name in times for attempts in arm(name, " ".join("1" * len(times[name]))) for entry in attempts]
    values = [value for _, value in made]
    for name, seconds in times.items():
        values += [
            {"session_id": f"{name}/t{n}#0", "signal": "infra.wall_time_s", "value": str(s), "absent": None,
             "detail": of_new if name == "new" else None}
            for n, s in enumerate(seconds) if s is not None
        ]  # fmt: skip
    rows = {"attempts": [row for row, _ in made], "values": values}
    return compare(outcome_rule("reward"), rows, baseline="old")


def test_what_it_took_is_held_against_the_baselines_within_tasks() -> None:
    old = [1.0, 10.0, 100.0, 1000.0, 3.0, 30.0, 300.0, None]
    made = with_times({"new": [2.0, 12.0, 90.0, 1100.0, 4.0, 33.0, 330.0, 7.0], "old": old})
    took = made.pairs[0].took["wall_time_s"]
    assert (took.tasks, took.more, took.less, took.value) == (7, 6, 1, 2.0) and (took.low, took.high) == (-10.0, 100.0)
    assert took.p == took.p_adjusted == pytest.approx(0.125), "the only measure there is"
    assert made.pairs[0].took["cost_usd"].tasks == 0
    bounds = with_times({"new": [2.0] * 8, "old": old}, '{"at_least": true}').pairs[0].took["wall_time_s"]
    assert bounds.tasks == 0, "what took that or more is held against nothing"
    stamped = with_times({"new": [0.0] * 8, "old": old}, '{"method": "timestamps"}')
    assert stamped.pairs[0].took["wall_time_s"].tasks == 0, "nor is another clock's"
    assert any("wall times come from different clocks" in w for w in stamped.warnings)
    assert gate(stamped, ["wall_time_s < baseline"], baseline="old", by_value=True).ending == "cannot tell"
    assert gate(made, ["wall_time_s < baseline"], baseline="old", by_value=True).ending == "failed"
    three = with_times({"new": [2.0] * 7, "x": [2.0] * 7, "old": [1.0] * 7})
    assert [p.took["wall_time_s"].p_adjusted for p in three.pairs] == [2 / 64, 2 / 64], "of two tests twice 1/64"


def test_text_and_markdown_say_the_same_and_neither_obeys_a_trace() -> None:
    made = compared(
        *arm(HOSTILE + "\u202e\udc80|*[x](y)", f"1 {ALL}"),
        *arm("old", f"1 {NONE}"),
        baseline="old",
        regression_weight=2,
    )
    text, markdown = comparison_text(made), comparison_text(made, as_markdown=True)
    assert made.pairs[0].power is not None
    plain = markdown.replace("\\", "")
    assert not set("\x1b\u202e\udc80") & set(text + markdown) and "<script>" not in markdown.replace("\\<", "")
    for figure in (
        "BETTER",
        "+95.2 points",
        "exact McNemar",
        "weighted 2 times",
        "solved by",
        "same direction",
        gap_text(made.pairs[0].power.detectable, True, signed=False),
    ):
        assert figure in text and figure in plain, figure
    assert "| candidate |" in markdown and "## Conclusions, compared with old" in plain
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") > 3 for line in rows)


def test_missing_runs_of_tasks_with_other_runs_count_as_missing() -> None:
    runs = [
        tried("new", f"t{n}", reward, trial=f"{n}.{run}")
        for n in range(16)
        for run, reward in enumerate((1.0, 1.0, "missing_artifact"))
    ]
    made = compared(*runs, *[tried("old", f"t{n}", 0.0) for n in range(16)], baseline="old")
    assert (made.pairs[0].missing.candidate, made.pairs[0].missing.attempts) == (0, 16)
    assert made.pairs[0].missing.undone is False, "two of three runs solved it"


def test_what_no_candidate_has_is_told_once_and_takes_no_column() -> None:
    text = comparison_text(against(f"1 {ALL}", f"1 {NONE}"))
    assert "usage: median" not in text and "divided by the number" not in text
    (line,) = [line for line in text.splitlines() if line.startswith("  no cost")]
    assert "no cost, no input tokens, no output tokens" in line and line.count("attempts") == 1


def test_attempts_are_called_first_only_where_some_are_retries() -> None:
    text = comparison_text(against(f"1 {ALL}", f"1 {NONE}"))
    assert "share of attempts\n" in text and "first" not in text and "retries" not in text
    again = compared(*arm("new", ALL), *arm("old", NONE), tried("old", "t0", 0.0, 1.0, trial="again"), baseline="old")
    assert "share of attempts, retries excluded\n" in comparison_text(again)
