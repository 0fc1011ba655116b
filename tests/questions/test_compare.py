"""`compare`: planted candidates with known answers, what must not be mixed, and what it says against itself."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import main
from agentsignals.cli.compare import comparison_text
from agentsignals.errors import AgentSignalsError
from agentsignals.model import Attempt as RunAttempt
from agentsignals.model import Session
from agentsignals.questions.compare import Comparison, compare, outcome_rule
from agentsignals.questions.compare.attempts import mapped, proposed, read_mapping
from agentsignals.stats.intervals import wilson
from agentsignals.store import Store
from tests.build import call, session, user
from tests.questions.stores import store_of
from tests.signals.attempts import graded, patched, trial
from tests.verbs import printed, printed_json

NOTHING = dict.fromkeys(
    ("repo", "run_id", "format", "agent_version", "agent_type", "dataset", "attempt1_tool_cap", "retry_tool_cap",
     "effective_tool_cap", "timeout_s", "concurrency")
)  # fmt: skip


Trial = list[tuple[dict[str, Any], dict[str, Any]]]


def tried(
    model: str | None,
    task: str | None,
    *rewards: Any,
    trial: str = "",
    knobs: dict[str, Any] | None = None,
    **told: Any,
) -> Trial:
    """The attempts of a trial by their rewards, in order; a text is why there is none, `...` an attempt not there."""
    name = trial or f"{model}/{task}"
    made = []
    for index, reward in enumerate(rewards):
        base = {"session_id": f"{name}#{index}", "trial_id": name, "attempt_index": index, "task_id": task}
        row = {**NOTHING, **base, "model_id": model, "knobs": json.dumps(knobs or {}), **told}
        absent = reward if isinstance(reward, str) else None
        value = {"session_id": base["session_id"], "signal": "verification.reward", "absent": absent}
        if reward is not ...:
            made.append((row, {**value, "value": None if absent else json.dumps(reward), "absent_detail": None}))
    return made


def compared(*trials: Trial, outcome: str = "reward", **how: Any) -> Comparison:
    made = [one for attempts in trials for one in attempts]
    rows = {"attempts": [row for row, _ in made], "values": [value for _, value in made]}
    return compare(outcome_rule(outcome), rows, **how)


def arm(model: str, rewards: str, **told: Any) -> list[Trial]:
    """One trial a task, t0, t1 …; `1` is solved at once, `01` by its retry, `-` has no reward, `_` was not tried."""
    of = {"1": 1.0, "0": 0.0, "-": "missing_artifact"}
    return [
        tried(model, f"t{n}", *(of[r] for r in told_rewards), **told)
        for n, told_rewards in enumerate(rewards.split())
        if told_rewards != "_"
    ]


def test_planted_candidates_give_the_known_answer() -> None:
    found = compared(*arm("base", "1 0 0 0 0 0 0 0 0 1 1 0"), *arm("better", "1 1 1 1 1 1 1 0 0 0 1 0"))
    assert found.by == ["model_id"] and found.baseline == "base"
    first = {c.name: c.first for c in found.candidates}
    assert (first["base"].value, first["base"].n) == (0.25, 12)
    assert (first["base"].low, first["base"].high) == wilson(3, 12) and first["base"].method == "Wilson"
    (pair,) = found.pairs
    stats = pytest.importorskip("scipy.stats")
    assert (pair.paired.tasks, pair.paired.gained, pair.paired.lost) == (12, 6, 1)
    assert pair.paired.value == pytest.approx(5 / 12)
    assert pair.paired.p == pytest.approx(stats.binomtest(1, 7).pvalue) == pair.p_adjusted
    assert pair.unpaired.candidate.n == pair.unpaired.baseline.n == 0
    assert pair.paired.low is not None and pair.paired.low < 0, "as the test has it"


def test_retries_are_never_first_attempts() -> None:
    found = compared(*arm("a", "1 01 001 000 00 0 1"), *arm("b", "0 0 0 0 0 0 0"), baseline="b")
    a = found.candidates[0]
    assert (a.name, a.attempts, a.trials, a.first_attempts, a.retries) == ("a", 13, 7, 7, 6)
    assert (a.first.value, a.first.n) == (pytest.approx(2 / 7), 7)
    assert (a.retry.value, a.retry.n) == (pytest.approx(2 / 6), 6)
    assert [(w.attempts, w.solved.value) for w in a.within] == [(1, 2 / 7), (2, 3 / 7), (3, 4 / 7)]
    assert a.recovery is not None
    assert (a.recovery.solved.value, a.recovery.failed, a.recovery.retried) == (0.4, 5, 4)
    assert found.candidates[1].recovery is None and found.candidates[1].within == []
    assert found.pairs[0].paired.value == pytest.approx(2 / 7), "only first attempts are held against each other"


def test_a_trial_that_is_not_known_to_fail_is_no_failure() -> None:
    found = compared(*arm("a", "0- -1 -0 0-1 1"))
    (a,) = found.candidates
    assert a.absent == {"missing_artifact": 2} and a.retry_absent == {"missing_artifact": 2}
    assert (a.first.value, a.first.n) == (pytest.approx(1 / 3), 3)
    assert [(w.solved.value, w.solved.n) for w in a.within] == [(1 / 3, 3), (1.0, 2), (1.0, 3)]
    assert a.recovery is not None and (a.recovery.solved.value, a.recovery.solved.n, a.recovery.failed) == (1, 1, 2)


def test_a_trial_without_its_first_attempt_is_said_and_left_out() -> None:
    found = compared(tried("a", "t", ..., 1.0), tried("a", "u", 0.0, 0.0))
    (a,) = found.candidates
    assert (a.trials, a.without_first, a.first.n) == (2, 1, 1)
    assert a.recovery is not None and a.recovery.solved.value == 0
    assert any("1 trials have no first attempt" in w for w in found.warnings)


def test_tasks_of_one_side_only_are_named_apart() -> None:
    found = compared(*arm("a", "1 1 1 1 _ _ _"), *arm("b", "0 1 _ _ 0 0 1"), baseline="a")
    (pair,) = found.pairs
    assert (pair.paired.tasks, pair.paired.value) == (2, -0.5)
    assert (pair.unpaired.candidate.value, pair.unpaired.candidate.n) == (pytest.approx(1 / 3), 3)
    assert (pair.unpaired.baseline.value, pair.unpaired.baseline.n) == (1, 2)
    assert pair.unpaired.value == pytest.approx(-2 / 3)
    assert pair.unpaired.low is not None and pair.unpaired.high is not None
    assert -1 <= pair.unpaired.low < -2 / 3 < pair.unpaired.high


def test_a_task_without_an_outcome_on_one_side_is_not_matched() -> None:
    (pair,) = compared(*arm("a", "1 0 1"), *arm("b", "1 - 0")).pairs
    assert (pair.paired.tasks, pair.unpaired.baseline.n, pair.unpaired.candidate.n) == (2, 1, 0)


def test_the_same_number_of_another_data_set_is_another_task() -> None:
    same = (*arm("a", "1 1", dataset="x"), *arm("b", "0 0", dataset="y"))
    assert compared(*same, anyway=True).pairs[0].paired.tasks == 0
    assert compared(*same, by=["dataset"]).pairs[0].paired.tasks == 2, "asked for, the data set is the treatment"


def test_attempts_without_a_task_are_matched_with_none() -> None:
    found = compared(
        tried("a", None, 1.0), tried("a", None, 0.0, trial="x"), tried("b", None, 0.0), *arm("a", "1"), *arm("b", "1")
    )
    assert found.pairs[0].paired.tasks == 1
    assert (found.candidates[0].first.n, found.candidates[0].first.tasks, found.candidates[0].tasks) == (3, 3, 1)
    assert any("3 of 5 attempts record no task" in w for w in found.warnings)


def test_many_candidates_pay_for_their_number() -> None:
    found = compared(
        *arm("base", "0 0 0 0 0 0 0 0"),
        *arm("b", "1 1 1 1 1 1 1 1"),
        *arm("c", "1 1 1 0 0 0 0 0"),
        *arm("d", "_ _ 0"),
        baseline="base",
    )
    p, q = [one.paired.p for one in found.pairs], [one.p_adjusted for one in found.pairs]
    assert p == pytest.approx([2 / 256, 0.25, 1.0]) and q[:2] == pytest.approx([4 / 256, 0.25])
    assert q[2] is None, "of one task nothing can be significant, and the others need not pay for it"
    alone = compared(*arm("base", "0"), tried("e", "other", 1.0), anyway=True).pairs[0]
    assert alone.p_adjusted is None, "nothing matched, nothing tested"


def test_tasks_tried_several_times_are_drawn_as_tasks() -> None:
    repeated = [tried("a", f"t{n}", float(n < 4), trial=f"{n}.{k}") for n in range(8) for k in range(10)]
    (a,) = compared(*repeated).candidates
    assert (a.first.value, a.first.n, a.first.tasks, a.first.method) == (0.5, 80, 8, "Student's over tasks")
    independent = wilson(40, 80)
    assert independent is not None and a.first.low is not None and a.first.low < independent[0] - 0.05


def test_columns_that_always_change_together_are_confounded() -> None:
    found = compared(*arm("a", "1 0", knobs={"temperature": 0}), *arm("b", "0 0", knobs={"temperature": 1}))
    assert found.by == ["model_id"] and found.pairs[0].also_differ == ["temperature"]
    assert [w for w in found.warnings if "always change together" in w] == [
        "model_id, temperature always change together, so their effects cannot be separated."
    ]
    assert not any("differs from the baseline" in w for w in found.warnings), "once is enough"


def test_treatments_that_never_overlap_are_said_of_the_pair() -> None:
    cold, warm = {"temperature": 0}, {"temperature": 1}
    found = compared(
        *arm("a", "1 0", knobs=cold),
        *arm("b", "0 0", knobs=warm),
        *arm("c", "0 0", knobs=cold),
        by=["model"],
        baseline="a",
    )
    assert {p.candidate: p.also_differ for p in found.pairs} == {"b": ["temperature"], "c": []}
    assert "b differs from the baseline also in temperature." in found.warnings


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        (["bash", "edit"], ["bash", "patch"], {"m · tools with edit", "m · tools with patch"}),
        (["bash"], ["bash", "patch"], {"m · tools without patch", "m · tools with patch"}),
    ],
)
def test_lists_are_named_by_what_differs(one: list[str], other: list[str], names: set[str]) -> None:
    made = *arm("m", "1 0", knobs={"tools": one}), *arm("m", "0 0", knobs={"tools": other})
    assert {candidate.name for candidate in compared(*made, by=["model", "tools"]).candidates} == names


def test_what_differs_within_a_candidate_is_said() -> None:
    found = compared(
        *arm("a", "1 0", knobs={"cap": 5}), tried("a", "t7", 1.0, knobs={"cap": 9}), *arm("b", "1"), by=["model"]
    )
    assert found.candidates[0].pooled == {"cap": 2}
    assert any(w.startswith("candidates mix attempts that differ in cap (in 1 of 2)") for w in found.warnings)


def test_other_versions_of_harness_or_evaluator_are_said_and_make_no_candidate() -> None:
    found = compared(*arm("a", "1 0", knobs={"harness_version": "1"}), *arm("b", "1 0", knobs={"harness_version": "2"}))
    assert found.by == ["model_id"]
    assert any("different versions: harness_version (1, 2)" in w for w in found.warnings)
    assert not any("always change together" in w for w in found.warnings)
    alone = (tried("a", "t", 1.0, trial=f"x{v}", knobs={"harness_version": v}) for v in (1, 2))
    assert compared(*alone).candidates[0].attempts == 2


def test_a_knob_of_the_task_or_of_the_trial_makes_no_candidate() -> None:
    own = [tried(m, f"t{n}", 1.0, knobs={"task_timeout": n, "out": f"{m}-{n}"}) for m in ("a", "b") for n in range(12)]
    assert compared(*own).by == ["model_id"]
    of_candidates = [tried("a", f"t{n}", 1.0, trial=f"{n}{c}", knobs={"cap": c}) for n in range(3) for c in (1, 2)]
    assert compared(*of_candidates).by == ["cap"]
    apart = [tried("a", f"t{n}", 1.0, knobs={"cap": n % 2}) for n in range(6)]
    assert compared(*apart).by == ["cap"], "with nothing else to tell attempts at one task apart, it is kept"


def test_setting_nothing_is_not_the_same_as_not_recording() -> None:
    found = compared(
        tried("a", "t", 1.0, knobs={"limit": None}),
        tried("a", "u", 1.0, trial="x"),
        by=["limit"],
        baseline="not recorded",
        anyway=True,
    )
    assert {c.name for c in found.candidates} == {"none", "not recorded"}


def test_one_candidate_alone_is_compared_with_nothing_and_says_so() -> None:
    found = compared(*arm("a", "1 0 1", run_id="r1"), tried("a", "t9", 0.0, run_id="r2"))
    assert (len(found.candidates), found.pairs) == (1, [])
    assert (
        found.warnings[0].startswith("only one candidate, a,") and "run_id: choose one with --by" in found.warnings[0]
    )


def test_what_a_run_calls_its_baseline_is_the_baseline() -> None:
    found = compared(*arm("a", "1 1 1"), *arm("Baseline", "1 0"))
    assert [(p.candidate, p.baseline) for p in found.pairs] == [("a", "Baseline")]


def test_missing_outcomes_are_counted_with_their_reason() -> None:
    found = compared(*arm("a", "1 - - 0"), *arm("b", "1 0 1 1"))
    assert next(c for c in found.candidates if c.name == "a").absent == {"missing_artifact": 2}
    assert found.baseline == "b", "the usual baseline has most known outcomes"
    assert any("a: 2 of 4 (missing_artifact)" in w for w in found.warnings)


def test_a_partial_reward_is_not_solved_unless_the_bar_is_lower() -> None:
    partial = (tried("a", "t", 0.6), tried("a", "u", 1.0))
    found = compared(*partial)
    assert found.candidates[0].first.value == 0.5
    assert any("1 rewards are neither 0 nor 1" in w for w in found.warnings)
    lower = compared(*partial, outcome="reward>=0.5")
    assert lower.yes_or_no and lower.candidates[0].first.value == 1
    assert compared(*partial, outcome="verification.reward").candidates[0].first.value == pytest.approx(0.8)


def test_numbers_are_compared_by_their_means() -> None:
    lots = [tried(m, f"t{n}", n + d + 0.5, trial=f"{m}{n}") for m, d in (("a", 0), ("b", 2)) for n in range(8)]
    found = compared(*lots, outcome="verification.reward", baseline="a")
    assert not found.yes_or_no and found.candidates[0].first.value == 4
    assert found.candidates[0].first.low is not None and found.candidates[0].within == []
    assert (found.pairs[0].paired.value, found.pairs[0].paired.p) == (2, 2 / 256)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("nonsense", "no signal 'nonsense'"),
        ("patch_outcome_label", "write verification.patch_outcome_label=value"),
        ("patch_outcome_label>=2", "is for numbers"),
        ("reward>=high", "is for numbers"),
        ("dynamics.repetition_rate", "not a signal of eval attempts"),
    ],
)
def test_what_is_no_outcome_is_refused_with_a_way_out(outcome: str, words: str) -> None:
    with pytest.raises(AgentSignalsError) as problem:
        outcome_rule(outcome)
    assert words in f"{problem.value.message} {problem.value.hint}".lower()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"by": ["nothing"]}, "no attempt records a setting 'nothing'"),
        ({"baseline": "gamma"}, "no candidate is called 'gamma'"),
        ({"baseline": "model"}, "several candidates are called 'model'"),
    ],
)
def test_columns_and_candidates_that_are_not_there_are_refused(how: dict[str, Any], words: str) -> None:
    with pytest.raises(AgentSignalsError) as problem:
        compared(*arm("model-1", "1"), *arm("model-2", "0"), **how)
    assert words in problem.value.message.lower() and "model" in problem.value.hint


def test_candidates_that_would_be_called_the_same_are_told_apart() -> None:
    long = "m" * 300
    found = compared(tried(f"{long}1", "t", 1.0), tried(f"{long}2", "t", 0.0))
    names = [c.name for c in found.candidates]
    assert len(set(names)) == 2 and all(len(name) < 180 and " #" in name for name in names)


def test_a_name_that_is_the_beginning_of_another_is_still_a_name() -> None:
    both = (*arm("m", "1"), *arm("m2", "0"))
    assert compared(*both, baseline="m").baseline == "m" and compared(*both, baseline="2").baseline == "m2"


def test_what_took_nothing_is_not_what_is_not_known() -> None:
    made = [*tried("a", "t", 1.0, 1.0), *tried("a", "u", 0.0), *tried("a", "v", 0.0)]
    times = [("a/t#0", "0.0", None), ("a/t#1", "900.0", None), ("a/u#0", "4.0", None), ("a/v#0", None, "missing_field")]
    values = [value for _, value in made]
    values += [
        {"session_id": s, "signal": "infra.wall_time_s", "value": v, "absent": a, "absent_detail": "duration"}
        for s, v, a in times
    ]
    (a,) = compare(outcome_rule("reward"), {"attempts": [row for row, _ in made], "values": values}).candidates
    took = a.took["wall_time_s"]
    assert (took.median, took.n, took.absent) == (2.0, 2, {"missing_field: duration": 1}), "of first attempts alone"
    assert a.took["cost_usd"].absent == {"not measured": 3}


@pytest.mark.parametrize("value", ["1" + "0" * 400, "[1]", "{}", "{broken", "null"])
def test_a_value_that_is_no_number_is_counted_and_stops_nothing(value: str) -> None:
    (row, given), = tried("a", "t", 1.0)  # fmt: skip
    (other, known), = tried("a", "u", 1.0)  # fmt: skip
    time = {**given, "signal": "infra.wall_time_s", "value": value}
    rows = {"attempts": [row, other], "values": [{**given, "value": value}, known, time]}
    (a,) = compare(outcome_rule("reward"), rows).candidates
    assert (a.first.value, a.first.n, sum(a.absent.values())) == (1, 1, 1)
    assert a.took["wall_time_s"].n == 0


@pytest.mark.parametrize("knobs", ["[1, 2]", "{broken", "null", "7", '{"a": ' * 2000 + "1" + "}" * 2000])
def test_knobs_that_are_none_make_no_treatment(knobs: str) -> None:
    ((row, value),) = tried("a", "t", 1.0)
    found = compare(outcome_rule("reward"), {"attempts": [{**row, "knobs": knobs}], "values": [value]})
    assert [c.name for c in found.candidates] == ["a"]


def test_order_of_rows_changes_nothing() -> None:
    trials = [*arm("a", "1 01 0 1 - 0 1"), *arm("b", "0 0 1 1 1 01 1"), *arm("c", "1 1 1")]
    made = [one for attempts in trials for one in attempts]

    def told(order: Sequence[Any]) -> Comparison:
        rows = {"attempts": [row for row, _ in order], "values": [value for _, value in order]}
        return compare(outcome_rule("reward"), rows)

    assert told(made) == told(made[::-1])


def laddered(trials: Sequence[Trial], *rungs: tuple[str, str, bool]) -> Comparison:
    """Compared by reward, each attempt of these trials on its rung: outcome, reason, whether it was inferred."""
    made = [entry for attempts in trials for entry in attempts]
    ladder = [
        {"session_id": row["session_id"], "signal": "verification.outcome", "value": json.dumps(rung), "absent": None,
         "absent_detail": None, "detail": json.dumps({"reason": reason, "inferred": inferred})}
        for (row, _), (rung, reason, inferred) in zip(made, rungs, strict=True)
    ]  # fmt: skip
    values = [value for _, value in made] + ladder
    return compare(outcome_rule("reward"), {"attempts": [row for row, _ in made], "values": values})


def test_what_the_infrastructure_broke_is_apart_whatever_its_reward() -> None:
    rungs = [("solved", "reward", False), ("failed", "tests", False), ("infrastructure", "RateLimit", False),
             ("infrastructure", "RateLimit", False), ("not_judged", "verifier crashed", False)]  # fmt: skip
    (a,) = laddered(arm("a", "1 0 1 - 0"), *rungs).candidates
    assert (a.first.value, a.first.n) == (0.5, 2)
    assert (a.infrastructure, a.absent, a.failed) == (
        {"RateLimit": 2},
        {"not judged: verifier crashed": 1},
        {"tests": 1},
    )
    assert a.bounds is not None and (a.bounds.worst, a.bounds.best, a.bounds.n) == (0.2, 0.8, 5)


def test_what_ended_without_a_verdict_failed_only_where_others_were_judged() -> None:
    ended = ("failed", "no_artifact", True)
    (a,) = laddered(arm("a", "1 - -"), ("solved", "reward", False), ended, ("failed", "time", True)).candidates
    assert (a.first.value, a.first.n) == (pytest.approx(1 / 3), 3)
    (b,) = laddered(arm("b", "- -"), ended, ("not_judged", "no verdict", False)).candidates
    assert b.first.n == 0 and b.bounds is not None and (b.bounds.worst, b.bounds.best) == (0, 1)


@pytest.mark.parametrize(
    ("left", "right", "by", "reason"),
    [
        ({"dataset": "lite"}, {"dataset": "verified"}, [], "dataset differs: a lite; b verified"),
        ({"timeout_s": 1800}, {"timeout_s": 7200}, [], "timeout_s differs: a 1800; b 7200"),
        ({"timeout_s": 1800}, {"timeout_s": 7200}, ["timeout_s"], ""),
        ({"attempt1_tool_cap": 30}, {"attempt1_tool_cap": 90}, [], "attempt1_tool_cap differs"),
        ({"retry_tool_cap": 30}, {"retry_tool_cap": 90}, [], "retry_tool_cap differs"),
        ({"knobs": {"maxTurns": 50}}, {"knobs": {"maxTurns": 90}}, [], "maxTurns differs: a 50; b 90"),
        ({"knobs": {"step_limit": 50}}, {"knobs": {"step_limit": None}}, [], "step_limit differs: a 50; b none"),
        ({"knobs": {"max_retries": 0}}, {"knobs": {"max_retries": 3}}, [], "max_retries differs"),
        ({"knobs": {"split": "dev"}}, {"knobs": {"split": "test"}}, [], "split differs"),
        ({"knobs": {"task_version": 1}}, {"knobs": {"task_version": 2}}, [], "task_version differs"),
        ({"knobs": {"max_attempts": "1"}}, {"knobs": {"max_attempts": "2+"}}, [], "max_attempts differs"),
        ({"knobs": {"step_limit": 50}}, {"knobs": {"step_limit": 50.0}}, [], ""),
        ({"knobs": {"tools": ["a", "b"]}}, {"knobs": {"tools": ["b", "a"]}}, [], ""),
        ({"knobs": {"limits": {"a": 1, "b": 2}}}, {"knobs": {"limits": {"b": 2, "a": 1}}}, [], ""),
        ({"knobs": {"reasoning_effort": "low"}}, {"knobs": {"reasoning_effort": "high"}}, [],
         "reasoning_effort differs: a low; b high"),
        ({"knobs": {"reasoning_effort": "low"}}, {"knobs": {"reasoning_effort": "high"}}, ["reasoning_effort"], ""),
        ({"knobs": {"reasoning_tokens": 9}}, {"knobs": {"reasoning_tokens": 99}}, [], "reasoning_tokens differs"),
        ({"knobs": {"tools": ["bash"]}}, {"knobs": {"tools": ["bash", "edit"]}}, [], "tools differs"),
        ({"knobs": {"allowed_tools": "a"}}, {"knobs": {"allowed_tools": "b"}}, [], "allowed_tools differs"),
        ({"knobs": {"mcp_servers": ["docs"]}}, {"knobs": {"mcp_servers": ["web"]}}, [], "mcp_servers differs"),
        ({"timeout_s": 9, "knobs": {"timeout_multiplier": 1}}, {"timeout_s": 9, "knobs": {"timeout_multiplier": 2}},
         [], ""),
        ({"knobs": {"timeout_multiplier": 1}}, {"knobs": {"timeout_multiplier": 2}}, [], "timeout_multiplier differs"),
        ({"knobs": {"max_connections": 1}}, {"knobs": {"max_connections": 9}}, [], ""),
        ({"knobs": {"step_limit": 50}}, {}, [], ""),
        ({"knobs": {"temperature": 0}}, {"knobs": {"temperature": 1}}, [], ""),
    ],
)  # fmt: skip
def test_other_data_limits_and_retries_are_no_comparison(
    left: dict[str, Any], right: dict[str, Any], by: list[str], reason: str
) -> None:
    found = compared(*arm("a", "1 1 0", **left), *arm("b", "1 0 0", **right), by=by or ["model"], anyway=True)
    assert [u for u in found.unlike if not u.startswith("tasks")][:1] == [u for u in found.unlike if reason in u][:1]
    assert bool(found.unlike) == bool(reason)


def test_a_limit_of_the_task_is_alike_for_both() -> None:
    own = [tried(m, f"t{n}", 1.0, timeout_s=60 * n + 60) for m in ("a", "b") for n in range(4)]
    assert compared(*own, by=["model"]).unlike == []


def test_rates_are_of_the_tasks_that_all_tried() -> None:
    found = compared(*arm("a", "0 0 1 1"), *arm("b", "_ _ 1 1"), baseline="a")
    assert found.unlike == [] and found.common_tasks == 2
    assert {c.name: c.missing_tasks for c in found.candidates} == {"a": 0, "b": 2}
    alike = compared(*arm("a", "0 0 1 1"), *arm("b", "_ _ 1 1"), baseline="a", anyway=True)
    assert [u.partition(":")[0] for u in alike.unlike] == ["tasks differ"] and alike.other_groups == []
    assert [(c.name, c.first.value, c.all_tasks.value) for c in found.candidates] == [("a", 1, 0.5), ("b", 1, 1)]


ALIKE = {"dataset": "x", "timeout_s": 60}
ODD = [
    ("other tasks", [tried("odd", f"o{n}", 1.0, **ALIKE) for n in range(6)], "tasks differ", False),
    (
        "few of the tasks",
        [*arm("odd", "1 1", **ALIKE), *(tried("odd", f"o{n}", 1.0, **ALIKE) for n in range(9))],
        "tasks differ",
        True,
    ),
    ("another data set", arm("odd", "1 0 1 0 1 0 1 0", **{**ALIKE, "dataset": "y"}), "dataset differs", False),
    ("another limit", arm("odd", "1 0 1 0 1 0 1 0", **{**ALIKE, "timeout_s": 90}), "timeout_s differs", True),
    ("other tools", arm("odd", "1 0 1 0 1 0 1 0", **ALIKE, knobs={"tools": ["a"]}), "tools differs", True),
]


@pytest.mark.parametrize(("odd", "reason", "shares"), [pytest.param(*each, id=name) for name, *each in ODD])
@pytest.mark.parametrize("first", [True, False])
def test_an_odd_candidate_is_a_footnote_and_stops_no_comparison(
    odd: list[Trial], reason: str, shares: bool, first: bool
) -> None:
    knobs = {"tools": ["b"]} if "tools" in reason else {}
    alike = [*arm("a", "0 0 0 0 0 0 1 0", **ALIKE, knobs=knobs), *arm("b", "1 1 1 1 1 1 1 1", **ALIKE, knobs=knobs)]
    found = compared(*(odd + alike if first else alike + odd), by=["model"])
    assert sorted(c.name for c in found.candidates) == ["a", "b"] and found.unlike == []
    assert found.pairs[0].paired.tasks == 8 and found.pairs[0].p_adjusted is not None
    (other,) = found.other_groups
    assert other.candidates == ["odd"] and other.shares_tasks == shares and reason in "".join(other.reasons)
    assert bool(other.command) == shares
    if not shares:
        return
    words = shlex.split(other.command)
    assert words[:5] == ["agentsignals", "evals", "compare", "--by", "model"] and words[-1] == "--anyway"
    given = {"baseline": words[words.index("--baseline") + 1], "only": [words[words.index("--only") + 1]]}
    again = compared(*alike, *odd, by=["model"], anyway=True, **given)
    assert len(again.pairs) == 1 and "odd" in {again.pairs[0].candidate, again.pairs[0].baseline} and again.unlike


@pytest.mark.parametrize(
    ("tasks", "other_data_set", "common"),
    [
        pytest.param("0 1 2 3", False, True, id="all names the same"),
        pytest.param("2 3 14 15", False, True, id="half of the names"),
        pytest.param("3 14 15 16", False, False, id="fewer than half"),
        pytest.param("0 1 2 3", True, False, id="names of two data sets"),
    ],
)
def test_tasks_without_a_data_set_count_under_the_one_that_has_their_names(
    tasks: str, other_data_set: bool, common: bool
) -> None:
    known = [tried("a", f"t{n}", 1.0, dataset="x") for n in range(8)]
    more = [tried("c", f"t{n}", 1.0, dataset="y") for n in range(8)] if other_data_set else []
    found = compared(*known, *more, *(tried("b", f"t{n}", 0.0) for n in tasks.split()), by=["model"], anyway=True)
    (pair,) = [pair for pair in found.pairs if "b" in (pair.candidate, pair.baseline)]
    assert (pair.paired.tasks > 0) == common
    assert any("record no data set and count as tasks of x" in warning for warning in found.warnings) == common


def test_groups_are_compared_each_by_its_command() -> None:
    trials = [*arm("a", "1 0 1", dataset="x"), *arm("b", "1 1 1", dataset="x"), *arm("c", "0 0 1", dataset="x"),
              *arm("d", "1 0", dataset="y"), *arm("e", "0 0", dataset="y")]  # fmt: skip
    found = compared(*trials, by=["model"])
    (other,) = found.other_groups
    assert f"    {other.command} --store s\n" in comparison_text(found, named=" --store s") + "\n"
    assert {c.name for c in found.candidates} == {"a", "b", "c"} and other.candidates == ["d", "e"]
    words = shlex.split(other.command)
    again = compared(*trials, by=["model"], baseline=words[words.index("--baseline") + 1])
    assert {c.name for c in again.candidates} == {"d", "e"} and again.other_groups[0].candidates == ["a", "b", "c"]


def test_a_candidate_with_few_of_the_tasks_does_not_shrink_the_rates_of_the_others() -> None:
    whole = " ".join("10"[n % 2] for n in range(20))
    trials = [one for name in "abcd" for one in arm(name, whole)]
    found = compared(*trials, *arm("few", " ".join("0" * 7)), by=["model"], baseline="a")
    assert found.common_tasks == 20 and {c.name: c.first.n for c in found.candidates}["few"] == 7
    assert all(c.first.n == 20 and not c.missing_tasks for c in found.candidates if c.name != "few")
    assert {p.candidate: p.paired.tasks for p in found.pairs} == {"b": 20, "c": 20, "d": 20, "few": 7}
    one = compared(*trials, *arm("near", " ".join(["_", *"0" * 19])), by=["model"], baseline="a")
    assert one.common_tasks == 19, "a task that one lacks costs that task"
    assert compared(*arm("a", whole), *arm("few", " ".join("0" * 7)), baseline="a").common_tasks == 7


def test_remarks_are_of_those_in_the_table_alone() -> None:
    found = compared(*arm("a", "1 0"), tried(None, "t9", 0.25), outcome="reward")
    assert found.unrecorded == 1 and not any("neither 0 nor 1" in remark for remark in found.warnings)
    labels = compared(*arm("a", "1 0"), tried(None, "t9", "odd label", trial="x"), outcome="verification.reward=0.3")
    assert not any("odd" in remark for remark in labels.warnings)


def test_who_is_not_recorded_is_nobody() -> None:
    trials = (*arm("a", "1 0"), *(tried(None, f"t{n}", 1.0, trial=f"x{n}") for n in range(6)))
    found = compared(*trials)
    assert [c.name for c in found.candidates] == ["a"] and found.baseline == "a" and found.unrecorded == 6
    with pytest.raises(AgentSignalsError) as problem:
        compared(*(tried(None, f"t{n}", 1.0) for n in range(3)))
    assert "so the candidates are unknown" in problem.value.message
    runs = [tried(None, "t", float(n), trial=f"r{n}", run_id=f"r{n}") for n in range(2)]
    assert {c.name for c in compared(*runs).candidates} == {"r0", "r1"}, "the run is recorded"


def runs(model: str, solved: Sequence[tuple[int, int]], task: str = "t{}") -> list[Trial]:
    """Independent runs of each task, of which so many of n solve it."""
    return [
        tried(model, task.format(k), float(n < good), trial=f"{model}/{k}/{n}", run_id=f"run-{n}")
        for k, (good, of) in enumerate(solved)
        for n in range(of)
    ]


def test_pass_at_k_is_the_mean_over_all_choices_of_k_runs() -> None:
    solved = [(0, 5), (1, 5), (5, 5), (3, 4), (2, 3), (1, 1)]
    (a,) = compared(*runs("a", solved)).candidates
    assert [p.k for p in a.passes] == [1, 2, 3, 4, 5]
    for passes in a.passes:
        enough = [(good, of) for good, of in solved if of >= passes.k]
        choices = [list(combinations([n < good for n in range(of)], passes.k)) for good, of in enough]
        for found, meets in ((passes.pass_at_k, any), (passes.pass_hat_k, all)):
            shares = [sum(map(meets, of_task)) / len(of_task) for of_task in choices]
            assert found.value == pytest.approx(sum(shares) / len(shares)) and found.tasks == len(enough)
            assert found.low is not None and found.high is not None and 0 <= found.low <= found.value <= found.high <= 1
        assert passes.left_out == len(solved) - len(enough)


def test_retries_and_single_runs_are_no_repeats() -> None:
    (a,) = compared(*arm("a", "01 1 001 0")).candidates
    assert a.passes == []


def in_repositories(model: str, sizes: Sequence[int], solved: Callable[[int, int], bool], task: str) -> list[Trial]:
    return [
        tried(model, task.format(repo, n), float(solved(repo, n))) for repo, of in enumerate(sizes) for n in range(of)
    ]


OF_SWE_BENCH = "owner__repo{}-{}"


@pytest.mark.parametrize(
    ("sizes", "better", "task", "word", "words"),
    [
        ((28, 4, 4, 4, 4, 4), lambda repo, n: repo == 0 or n == 0, OF_SWE_BENCH, "undecided", "their 6 repositories"),
        ((28, 4, 4, 4, 4, 4), lambda repo, n: n % 4 != 3, OF_SWE_BENCH, "better", "over their 6 repositories is +50.0"),
        ((8,) * 8, lambda repo, n: n % 4 != 3, "instance_owner__repo{}-{:040x}", "better", "their 8 repositories"),
        ((8,) * 8, lambda repo, n: n % 4 != 3, "owner/repo{}:pr-{}", "better", "their 8 repositories"),
        ((8,) * 8, lambda repo, n: n % 4 != 3, "owner__repo{}.{:08x}.combine__x1", "better", "their 8 repositories"),
        ((48,), lambda repo, n: n % 4 != 3, OF_SWE_BENCH, "better", "from one repository, owner/repo0"),
        ((24, 12, 12), lambda repo, n: n % 4 != 3, OF_SWE_BENCH, "better", "from only 3 repositories"),
        ((1,) * 48, lambda repo, n: repo % 4 != 3, OF_SWE_BENCH, "better", ""),
        ((48,), lambda repo, n: n % 4 != 3, "task-{}-{}", "better", ""),
        ((8,) * 6, lambda repo, n: n % 4 != 3, "make_it__work{}_{}", "better", ""),
    ],
)
def test_a_conclusion_says_over_which_repositories_it_holds(
    sizes: Sequence[int], better: Callable[[int, int], bool], task: str, word: str, words: str
) -> None:
    alone = len(sizes) == 48
    base = in_repositories("a", sizes, lambda repo, n: (repo if alone else n) % 4 == 0, task)
    found = compared(*base, *in_repositories("b", sizes, better, task), baseline="a")
    (conclusion,) = found.conclusions
    assert conclusion.word == word and words in conclusion.sentence
    assert words or "repositor" not in conclusion.sentence
    assert ("better than a on these tasks" in conclusion.sentence) == ("from one" in words or "only" in words)


def test_what_each_solved_task_took_holds_the_failed_ones() -> None:
    made = [entry for attempts in arm("a", "1 0 1") for entry in attempts]
    costs = [
        {"session_id": row["session_id"], "signal": "tokens.cost_usd", "value": str(n + 1), "absent": None}
        for n, (row, _) in enumerate(made)
    ]
    rows = {"attempts": [row for row, _ in made], "values": [value for _, value in made] + costs}
    (a,) = compare(outcome_rule("reward"), rows).candidates
    assert (a.per_solved["cost_usd"].value, a.per_solved["cost_usd"].n) == (3.0, 3)
    assert a.per_solved["wall_time_s"].value is None


HOSTILE = "\x1b[31m{0}'; DROP TABLE attempts; --<script>"
SOLVED: dict[str, Any] = {"reward": 1.0, "verification": graded(fixed=2, kept=3)}
FAILED: dict[str, Any] = {"reward": 0.0, "verification": graded(unfixed=2, broken=1, kept=2)}


def sessions(model: str, task: str, *facts: dict[str, Any]) -> Iterator[Session]:
    for view in trial(*({"patch": [patched("a.py")], "knobs": {"model_id": model}, **one} for one in facts)):
        made = view.session
        assert made.attempt is not None
        made.session_id, made.attempt.trial_id = f"{model}-{task}-{made.attempt.attempt_index}", f"{model}-{task}"
        made.attempt.task_id = task
        yield made


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return store_of(
        tmp_path_factory.mktemp("compare") / "s",
        session(user("hello"), call("Bash", command="ls"), session_id="person"),
        *sessions("m1", "t1", {**FAILED, "wall_time_s": 30.0}, SOLVED),
        *sessions("m1", "t2", {**SOLVED, "wall_time_s": 10.0}),
        *sessions(HOSTILE, "t1", SOLVED),
        *sessions(HOSTILE, "t2", {"reward": 0.0, "verification": graded(status="crashed")}),
    )


def told(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = printed_json(capsys, "compare", *arguments)
    return found


def test_the_verb_tells_what_the_store_holds(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "--store", store.folder)
    m1 = next(c for c in found["candidates"] if c["name"] == "m1")
    assert found["attempts"] == 5 and (m1["first"]["value"], m1["retries"]) == (0.5, 1)
    assert m1["took"]["wall_time_s"]["median"] == 20 and m1["took"]["wall_time_s"]["n"] == 2
    assert m1["took"]["cost_usd"]["n"] == 0 and sum(m1["took"]["cost_usd"]["absent"].values()) == 2


def test_resolved_leaves_out_what_no_verifier_could_judge(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "--store", store.folder, "--outcome", "resolved", "--baseline", "m1")
    (pair,) = found["pairs"]
    hostile = next(c for c in found["candidates"] if c["name"] == HOSTILE)
    assert hostile["first"]["n"] == 1 and hostile["absent"] == {"not judged: verifier crashed": 1}
    assert (pair["paired"]["tasks"], pair["paired"]["value"]) == (1, 1.0)
    labelled = told(capsys, "--store", store.folder, "--outcome", "patch_outcome_label=correct")
    again = next(c for c in labelled["candidates"] if c["name"] == HOSTILE)
    assert (again["first"]["value"], again["first"]["n"]) == (0.5, 2), "a label other than the one asked for"


def test_a_value_nobody_has_is_said_with_those_there_are(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "--store", store.folder, "--outcome", "patch_outcome_label=corect")
    assert any(
        w.startswith("no attempt has patch_outcome_label=corect; available: correct_patch") for w in found["warnings"]
    )


def test_a_condition_is_over_sessions_and_attempts(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "--store", store.folder, "--where", "task_id = 't2' AND context = 'eval'")
    assert found["attempts"] == 2
    assert main(["compare", "--store", str(store.folder), "--where", "no_column = 1"]) == 1
    assert "no_column" in capsys.readouterr().err


def test_a_name_out_of_a_trace_drives_no_terminal(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "compare", "--store", store.folder, "--baseline", HOSTILE, "--outcome", "resolved")
    assert "\x1b" not in shown and "retries, reported separately" in shown
    assert "1: 50.0%, 2: 100.0%  100.0% (5% to 100%) of 1 failed, 1 retried" in shown
    assert any("warning: " in line and "DROP TABLE" in line and "1 of 2" in line for line in shown.splitlines())


def test_a_file_says_who_was_tried_where_the_run_is_silent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = {"/runs/t1/trace_01_m-a": SOLVED, "/runs/t1/trace_02_m-b": FAILED, "/other": SOLVED}
    made = []
    for folder, facts in folders.items():
        ((view,),) = (trial(facts),)
        assert view.session.attempt is not None
        view.session.session_id = view.session.attempt.trial_id = view.session.attempt.root = folder
        made.append(view.session)
    store = store_of(tmp_path / "s", *made)
    rules = tmp_path / "rules.yaml"
    rules.write_text("'**/trace_??_{model_id}': {effort: high, dataset: mine}\n", encoding="utf-8")
    found = told(capsys, "--store", store.folder, "--by", "model", "--treatments", rules)
    assert sorted((c["name"], c["first"]["value"]) for c in found["candidates"]) == [("m-a", 1), ("m-b", 0)]
    assert found["unrecorded"] == 1
    named = told(capsys, "--store", store.folder, "--by", "effort", "--treatments", rules)
    assert [(c["name"], c["attempts"]) for c in named["candidates"]] == [("high", 2)]
    rules.write_text("[1, 2]", encoding="utf-8")
    assert main(["compare", "--store", str(store.folder), "--treatments", str(rules)]) == 2


def test_without_an_attempt_there_is_a_plain_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = store_of(tmp_path / "s", session(user("hello"), call("Bash", command="ls"), session_id="person"))
    assert main(["compare", "--store", str(people.folder)]) == 1
    said = capsys.readouterr().err
    assert "There are no eval attempts" in said and "Harbor" in said


# -- who was tried: models out of folders, one model in several spellings, knobs of the machine ------------------------


def lying(*folders: str, agent: str | None = None, tasks: int = 4) -> list[dict[str, Any]]:
    """Attempts of no model, one a task in each folder."""
    rows = []
    for folder in folders:
        for n in range(tasks):
            root = f"/data/results/{folder}/task-{n}/task-{n}.1-of-1.{folder}"
            own = {"session_id": root, "trial_id": root, "attempt_index": 0, "task_id": f"task-{n}", "root": root}
            rows.append({**NOTHING, **own, "model_id": None, "agent_type": agent, "knobs": "{}"})
    return rows


@pytest.mark.parametrize(
    ("folders", "agent", "models"),
    [
        (("20260504_orchestrator_qwen3-coder-480b", "20260504_orchestrator_glm-4.6"), "orchestrator",
         ["glm-4.6", "qwen3-coder-480b"]),
        (("20260504_goose_gpt-5.1", "20260511_terminus_claude-sonnet-4-5"), None, ["claude-sonnet-4-5", "gpt-5.1"]),
        (("20260504_goose_gpt-5.1",), None, ["gpt-5.1"]),
        (("claude-code-opus-4.1", "codex-gpt-5"), None, ["gpt-5", "opus-4.1"]),
        (("claude-code__kimi-k2__high", "claude-code__glm-4.6__low"), "claude-code", ["glm-4.6", "kimi-k2"]),
        (("gpt-5", "claude-sonnet-4-5"), None, ["claude-sonnet-4-5", "gpt-5"]),  # nothing around the names
        (("gpt-5-mini@day1", "gpt-5@day1"), None, ["gpt-5", "gpt-5-mini"]),
        (("eval_acme-large_v1", "eval_acme-small_v1"), None, ["acme-large", "acme-small"]),
        (("a_gpt-5", "gpt-5.1_x_y"), None, ["gpt-5", "gpt-5.1"]),
    ],
)  # fmt: skip
def test_a_model_in_a_folders_name_is_proposed(folders: tuple[str, ...], agent: str | None, models: list[str]) -> None:
    rows = lying(*folders, agent=agent)
    found = mapped(rows, read_mapping(Path(proposed(rows))))
    assert sorted({row["model_id"] for row in found}) == models
    made = compare(outcome_rule("resolved"), {"attempts": found, "values": []}, ["model"])
    assert sorted(c.name for c in made.candidates) == models


def test_a_model_in_the_names_of_one_run_is_proposed_beside_other_runs() -> None:
    models = ("gpt-5", "kimi-k2", "claude-sonnet-4")
    of_run = [f"{part}/task-{n}/trace_0{at}_{m}" for part in "ab" for n in range(2) for at, m in enumerate(models)]
    others = ["/other/demos/ctf/crypto", "/other/atif", "/other/demos/default__t-0.20__p-0.95"]
    unnamed = {**NOTHING, "attempt_index": 0, "model_id": None, "agent_type": None, "knobs": "{}"}
    rows = [
        {**unnamed, "session_id": f"{n}", "trial_id": f"{n}", "task_id": root.split("/")[-2], "root": root}
        for n, root in enumerate([*(f"/data/{folder}" for folder in of_run), *others])
    ]
    pattern = proposed(rows)
    assert pattern == "**/trace_0?_{model_id}/**"
    found = mapped(rows, read_mapping(Path(pattern)))
    assert [row["model_id"] for row in found] == [*models * 4, None, None, None]
    levels = [f"/other/demos/level_{name}/task-{n}" for name in ("easy", "hard") for n in range(3)]
    told = [{**row, "root": root, "task_id": root} for row, root in zip(rows, [*levels, *others], strict=False)]
    assert proposed(told) == "", "of one folder among others only names of known makers are models"


@pytest.mark.parametrize(
    "folders",
    [
        ("run-1", "run-2"),
        ("2026-05-04__10-00-00", "2026-05-05__10-00-00"),
        ("3f2a9c1e", "9b8c7d6e"),
        ("all",),
        ("swe-agent-demos", "atif"),
    ],
)
def test_numbers_dates_ids_and_whole_names_of_anything_name_no_model(folders: tuple[str, ...]) -> None:
    assert proposed(lying(*folders)) == ""


def test_the_refusal_has_the_option_ready_to_copy() -> None:
    with pytest.raises(AgentSignalsError) as problem:
        compare(outcome_rule("resolved"), {"attempts": lying("x_gpt-5", "x_glm-4.6"), "values": []}, ["model"])
    assert "--treatments '**/x_{model_id}/**'" in problem.value.hint


def test_a_candidate_is_named_by_what_distinguishes_it() -> None:
    router = "openai/accounts/fireworks/models/kimi-k2"
    trials = [
        tried(model, f"t{n}", 1.0, knobs={"prompt": prompt, "tools": tools}, trial=f"{model}/{n}/{prompt}{tools}")
        for model, prompt, tools in (
            (router, "p", "x"),
            ("acme/m", "p", "x"),
            ("acme/m", "q", "x"),
            ("acme/n", "q", "y"),
        )
        for n in range(3)
    ]
    found = compared(*trials, by=["model_id", "prompt", "tools"], anyway=True)
    assert sorted(c.name for c in found.candidates) == ["acme/m · prompt=p", "acme/m · prompt=q", "acme/n", "kimi-k2"]
    for asked, name in {"kimi": "kimi-k2", "fireworks": "kimi-k2", "prompt=p": "acme/m · prompt=p"}.items():
        assert compared(*trials, by=["model_id", "prompt", "tools"], anyway=True, baseline=asked).baseline == name
    with pytest.raises(AgentSignalsError, match="Several candidates"):
        compared(*trials, by=["model_id", "prompt", "tools"], anyway=True, baseline="acme/m")


def test_one_model_in_three_spellings_is_one_candidate_with_its_spellings_kept() -> None:
    names = ("openai/neulab/claude-sonnet-4-20250514", "anthropic/claude-sonnet-4-20250514", "claude-sonnet-4-20250514")
    trials = [tried(name, f"t{n}", 1.0) for name in (*names, "anthropic/claude-opus-4-1") for n in range(3)]
    found = compared(*trials)
    assert sorted(c.name for c in found.candidates) == ["anthropic/claude-opus-4-1", "claude-sonnet-4-20250514"]
    assert any("count as one model" in warning for warning in found.warnings)
    assert {c.name for c in compared(*trials, by=["recorded_model"]).candidates} == {
        *names,
        "anthropic/claude-opus-4-1",
    }


@pytest.mark.parametrize(
    "knob",
    ["concurrency", "n_concurrent_trials", "num_workers", "maxWorkers", "max_connections", "output_path", "outputDir",
     "jobs_dir", "log_dir", "run_folder", "no_rebuild", "host", "environment.n_concurrent", "log_level", "workers"],
)  # fmt: skip
def test_knobs_of_the_machine_split_no_candidate(knob: str) -> None:
    trials = [
        tried(m, f"t{n}", 1.0, knobs={knob: k}, trial=f"{m}/{n}/{k}") for m in "ab" for n in range(3) for k in (1, 2)
    ]
    found = compared(*trials)
    assert (sorted(c.name for c in found.candidates), found.unlike) == (["a", "b"], [])
    assert not any(knob in warning for warning in found.warnings)
    assert len(compared(*trials, by=[knob]).candidates) == 2, "unless it is asked for"


@pytest.mark.parametrize("knob", ["temperature", "max_output_tokens", "prompt", "scaffold", "tools", "runtime"])
def test_knobs_of_the_treatment_still_do(knob: str) -> None:
    trials = [tried("a", f"t{n}", 1.0, knobs={knob: k}, trial=f"{n}/{k}") for n in range(3) for k in (1, 2)]
    found = compared(*trials)
    assert len(found.candidates) + len(found.other_groups) == 2


def test_the_group_proposes_what_the_store_can_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def proposes(folder: Path) -> dict[str, dict[str, str]]:
        verbs = printed_json(capsys, "evals", "--store", folder)["verbs"]
        assert all(verb["command"].endswith(f" --store {folder}") for verb in verbs)
        return {verb["command"].split()[2]: verb for verb in verbs}

    def tried_twice(*parts: Any, model: str | None) -> list[Session]:
        return [
            session(user("go"), *parts, session_id=f"{model}{run}{task}", context="eval", model=model,
                    attempt=RunAttempt(root=f"r{run}{task}", trial_id=f"{run}{task}", task_id=task, reward=reward,
                                       kinds=["session_jsonl"] if parts else []))
            for run in range(2) for task, reward in (("a", 1.0), ("b", float(run)))
        ]  # fmt: skip

    made = store_of(tmp_path / "calls", *tried_twice(call("Bash", command="ls"), model="m1"))
    with_calls = proposes(made.folder)
    assert "--task b " in with_calls["align"]["command"], "the task with both outcomes"
    assert "--by model" in with_calls["compare"]["command"] and not any(v["lacks"] for v in with_calls.values())
    without = proposes(store_of(tmp_path / "bare", *tried_twice(model=None)).folder)
    assert {name for name, verb in without.items() if verb["lacks"]} == {"align", "audit", "drivers"}
    partly = [*tried_twice(call("Bash", command="ls"), model="m1")]
    assert partly[0].attempt is not None
    partly[0].attempt.reward = 0.4
    counts = printed_json(capsys, "evals", "--store", store_of(tmp_path / "partly", *partly).folder)["counts"]
    assert (counts["judged"], counts["passed"], counts["failed"]) == (4, 2, 2), "a part of the reward is no pass"
    assert not any("--by model" in verb["command"] for verb in without.values())
