"""What may be concluded of two candidates: the word, its sentence, and what would undo it; tasks that tell nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agentsignals.cli.compare import comparison_markdown, comparison_text
from agentsignals.errors import UsageError
from agentsignals.questions.compare import Comparison, compare, outcome_rule
from agentsignals.questions.compare.gate import gate
from agentsignals.questions.compare.pairs import gap_text
from tests.questions.test_compare import HOSTILE, arm, compared, tried

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
        (8, 2, 10, {}, "undecided", "8 better, 2 worse; p 0.11): the difference is +30.0 points; anything from"),
        (6, 0, 0, {}, "better", "No task regressed; at 95% one may cost up to 1.18 gains."),
        (0, 6, 0, {}, "worse", "No task improved; at 95% one may count for 1.18 regressions."),
        (5, 0, 0, {}, "too few", "p would be 0.062 at least; it takes 6 or more"),
        (1, 0, 0, {}, "too few", "1 matched task is too few"),
        (0, 0, 20, {}, "undecided", "10 points take about"),
        (20, 2, 10, {"regression_weight": 2}, "better", "With a regression counted 2 times new is better than old"),
        (20, 2, 10, {"regression_weight": 4}, "undecided", "it evens out at 10 gains for each, 2.43 to 88.2 at 95%"),
        (20, 10, 2, {"regression_weight": 9}, "worse", "unless a regression costs less than 2 gains (95%: 4.78)"),
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
    (asked,) = [w for w in made.warnings if "under several names" in w]
    assert asked.startswith("acme/m-1 and beta/M-1 end alike")


def test_missing_outcomes_that_could_undo_it_are_said() -> None:
    lacking = against("1 1 1 1 1 1 1 - - 1", "0 0 0 0 0 0 0 1 1 -")
    (pair,) = lacking.pairs
    assert (pair.missing.candidate, pair.missing.baseline, pair.missing.undone) == (2, 1, True)
    assert (pair.missing.could_regress, pair.missing.could_improve) == (2, 0)
    assert "had the 3 missing outcomes all gone against it" in lacking.conclusions[0].sentence
    sure = against("1 1 1 1 1 1 1 1 1 1 1 -", "0 0 0 0 0 0 0 0 0 0 0 1")
    assert sure.pairs[0].missing.undone is False and "gone against" not in sure.conclusions[0].sentence


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
    with pytest.raises(UsageError, match="can't count"):
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
    assert any("wall times are of several clocks" in w for w in stamped.warnings)
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
    text, markdown = comparison_text(made), comparison_markdown(made)
    assert made.pairs[0].power is not None
    plain = markdown.replace("\\", "")
    assert not set("\x1b\u202e\udc80") & set(text + markdown) and "<script>" not in markdown.replace("\\<", "")
    for figure in (
        "BETTER",
        "+95.2 points",
        "exact McNemar",
        "counted 2 times",
        "solved by",
        "needed one way",
        gap_text(made.pairs[0].power.detectable, True, signed=False),
    ):
        assert figure in text and figure in plain, figure
    assert "| candidate |" in markdown and "## What can be concluded, against old" in plain
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") > 3 for line in rows)
