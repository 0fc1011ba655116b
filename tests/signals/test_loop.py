"""loop.*: passing, failing and the number of tries, of one attempt and over trials; cost of a solved task."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentsignals.model import Absent
from agentsignals.signals import Measured
from agentsignals.signals.catalog import by_path
from agentsignals.signals.loop import error_kind
from agentsignals.views.session import SessionView
from tests.build import say, user, view
from tests.signals.ask import absent, detail, value, values_over_sessions
from tests.signals.attempts import trial, unseen

RUNS = Path(__file__).parents[3] / "shared" / "corpus" / "emotion-runs"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("function_not_found", "function_not_found"),
        ("invalid_python", "invalid_python"),
        ("timeout", "timeout"),
        ("no_result", "no_result"),
        ("expected 45, got 0", "assertion"),
        ("expected [1,\n2], got None", "assertion"),
        ("AssertionError('x')", "assertion"),
        ("NameError(\"name 'Counter' is not defined\")", "exception:NameError"),
        ("ImportError('__import__ not found')", "exception:ImportError"),
        ("json.decoder.JSONDecodeError: bad", "exception:JSONDecodeError"),
        ("KeyError", "exception:KeyError"),
        ("the process timed out after 2 s", "timeout"),
        ("expected: nothing", None),
        ("something(else)", None),
        ("", None),
        ("a." * 40_000, None),
        ("expected " + "x" * 60_000, None),
    ],
)
def test_errors_fall_into_kinds(text: str, kind: str | None) -> None:
    assert error_kind(text) == kind


def test_every_published_error_has_a_kind() -> None:
    logs = sorted(RUNS.rglob("agent_attempts.jsonl"))
    if not logs:
        pytest.skip("the corpus is not beside the repository")
    rows = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    kinds = Counter(error_kind(row["error"]) for row in rows if row["error"])
    starts = Counter(
        next((k for k in ("expected", "NameError", "ImportError", "AttributeError") if row["error"].startswith(k)), "")
        for row in rows
    )
    assert None not in kinds
    assert kinds["assertion"] == starts["expected"] > 0
    for name in ("NameError", "ImportError", "AttributeError"):
        assert kinds[f"exception:{name}"] == starts[name] > 0
    assert sum(kinds.values()) == sum(not row["visible_pass"] for row in rows)


@pytest.mark.parametrize(
    "name", ["import_mistake", "hardcoding", "test_fixation", "off_task_continuation", "negative_projection"]
)
def test_what_needs_the_source_or_activations_says_so_in_its_status_and_value(name: str) -> None:
    assert by_path(f"loop.{name}").status == "needs an artifact"
    assert absent(unseen(reward=1.0), f"loop.{name}")[0] == "missing_artifact"


def over(path: str, *trials: list[SessionView]) -> Any:
    """A value over all these trials, as the store's second pass computes it."""
    rows = [value(one, "loop.attempt_result") for attempts in trials for one in attempts]
    return values_over_sessions(by_path(path), {"attempt_result": rows})


def named(name: str, *attempts: dict[str, Any]) -> list[SessionView]:
    return trial(*({"trial_id": name, **facts} for facts in attempts))


LOST, WON = {"reward": 0.0}, {"reward": 1.0}


def test_recovery_is_of_trials_that_failed_first() -> None:
    trials = [
        named("a", LOST, WON),
        named("b", LOST, LOST, WON),
        named("c", LOST, LOST),
        named("d", LOST),
        named("e", WON),
        named("f", {"patch": []}, WON),
    ]
    found = over("loop.retry_recovery", *trials)
    assert found.value == 0.5
    assert found.detail == {
        "num": 2,
        "den": 4,
        "retried": 3,
        "unknown_first": 1,
        "recovered_by_attempt": [0, 1, 2],
        "visible": {"num": 0, "den": 0},
    }


def test_tests_decide_over_the_reward_where_both_are_known() -> None:
    passed = {"reward": 0.0, "rewards": {"visible": 1.0, "hidden": 1.0}}
    failed = {"reward": 1.0, "rewards": {"visible": 0.0, "hidden": 1.0}}
    found = over("loop.retry_recovery", named("a", failed, passed))
    assert (found.value, found.detail["visible"]) == (1.0, {"num": 1, "den": 1})


def test_the_order_of_rows_does_not_matter_and_nothing_is_divided_by_nothing() -> None:
    rows = [value(one, "loop.attempt_result") for one in named("a", LOST, LOST, WON)]
    one = by_path("loop.retry_recovery")
    assert values_over_sessions(one, {"attempt_result": rows}) == values_over_sessions(
        one, {"attempt_result": rows[::-1]}
    )
    assert over("loop.retry_recovery", named("a", WON)) == Absent("not_computable", "zero_denominator")


def test_the_last_attempts_of_trials_tell_visible_from_hidden() -> None:
    first = {"rewards": {"visible": 0.0, "hidden": 0.0}}
    fitted = {"rewards": {"visible": 1.0, "hidden": 0.0}}
    right = {"rewards": {"visible": 1.0, "hidden": 1.0}}
    trials = [named("a", first, fitted), named("b", right), named("c", WON)]
    rate = over("loop.hidden_pass_rate", *trials)
    assert (rate.value, rate.detail) == (
        0.5,
        {"num": 1, "den": 2, "visible_pass_rate": 1.0, "task_pass_rate": 0.5},
    )
    assert over("loop.visible_hidden_gap", *trials) == Measured(0.5, {"num": 1, "den": 2})
    assert over("loop.visible_hidden_gap", named("c", WON)) == Absent("not_computable", "zero_denominator")


COST = "tokens.cost_per_resolved_task"


def paid(cost: float | None, reward: float | None, model: str = "m") -> dict[str, Any]:
    return {"cost_usd": cost, "reward": reward, "knobs": {"model_id": model, "attempt1_tool_cap": 10**5000}}


def test_a_solved_task_costs_what_all_attempts_cost() -> None:
    found = over(COST, named("a", paid(1.0, 0.0), paid(2.0, 1.0)), named("b", paid(3.0, 0.0)))
    assert found.value == 6.0
    row = {"cost_usd": 6.0, "solved": 1, "per_solved": 6.0, "n": 3}
    treatment = "attempt1_tool_cap=unlimited; model_id=m"
    assert found.detail == {
        "num": 6.0,
        "den": 1,
        "n_missing": 0,
        "treatments": 1,
        "by_treatment": [{"treatment": treatment, **row}],
    }


def test_a_trial_solved_twice_is_solved_once() -> None:
    assert over(COST, named("a", paid(1.0, 1.0), paid(1.0, 1.0))).value == 2.0


def test_treatments_stand_apart() -> None:
    found = over(COST, named("a", paid(1.0, 1.0, "x")), named("b", paid(5.0, 0.0, "y")))
    assert [(r["per_solved"], r["solved"]) for r in found.detail["by_treatment"]] == [(1.0, 1), (None, 0)]
    assert found.detail["treatments"] == 2


def test_a_cost_that_more_than_one_in_twenty_attempts_lack_is_too_low_to_tell() -> None:
    known = [named(f"t{n}", paid(1.0, 1.0)) for n in range(19)]
    assert over(COST, *known, named("u", paid(None, 1.0))).detail["n_missing"] == 1
    few = over(COST, *known[:18], named("u", paid(None, 1.0)))
    assert few == Absent("dependency_null", "tokens.cost_usd: 1 of 19 attempts")


def test_without_solved_tasks_or_attempts_there_is_no_cost_of_one() -> None:
    assert over(COST, named("a", paid(1.0, 0.0))) == Absent("not_computable", "zero_denominator")
    assert over(COST) == Absent("not_applicable", "no_attempts")


def test_rates_over_attempts_divide_by_attempts() -> None:
    mean = by_path("loop.mean_marker_score")
    assert values_over_sessions(mean, {"marker_score": [0, 3]}) == Measured(1.5, {"num": 3, "den": 2})
    for name in ("import_mistake", "hardcoding"):
        rate = by_path(f"loop.{name}_rate")
        assert values_over_sessions(rate, {name: [True, False, False, False]}) == Measured(0.25, {"num": 1, "den": 4})
        assert values_over_sessions(rate, {}) == Absent("not_computable", "zero_denominator")
    valid = by_path("loop.valid_python_rate")
    told = [{"valid": known} for known in (True, False, True, None)]
    assert values_over_sessions(valid, {"attempt_result": told}) == Measured(2 / 3, {"num": 2, "den": 3})
    for nothing in ([], [{"valid": None}]):
        assert values_over_sessions(valid, {"attempt_result": nothing}) == Absent("missing_artifact", "attempt_log")


# loop.marker_score: llm-emotions's surface markers, cell by cell as its published scorer counted them.

PATH = "loop.marker_score"
COLUMNS = {
    "profanity": "profanity_count",
    "frustration": "frustration_count",
    "desperation": "desperation_count",
    "hardcode": "hardcode_count",
    "give_up": "give_up_count",
    "exclamation": "exclamation_count",
    "all_caps": "all_caps_words",
}


def counts(text: str) -> dict[str, int]:
    found = detail(view(user("go"), say(text)), PATH)
    return {name: found[name] for name in COLUMNS if found[name]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What the hell. Damn, crap.", {"profanity": 3}),
        ('It prints "damn" and “crap”.', {"profanity": 2}),
        ("> damn\n`crap`", {"profanity": 2}),
        ("hello shell, scrap the shitake", {}),
        ("I am stuck, frustrated, it is confusing.", {"frustration": 3}),
        ("unstuck stuck_at", {}),
        ("My last chance, no choice.", {"desperation": 2}),
        ("There is only one more retry", {"desperation": 1}),
        ("only a panic and then a retry, but panic", {"desperation": 2}),
        ("only retry", {}),
        ("commonly one retry", {}),
        ("only one\nretry", {}),
        ("only one retryable thing", {}),
        ("Hardcode it, a special-case for the visible tests.", {"hardcode": 3}),
        ("hardcoded hacking shortcuts", {}),
        ("I can't solve it and give up: not possible.", {"give_up": 3}),
        ("!! != !", {"exclamation": 4}),
        ("the API of HTTP is OK", {"all_caps": 2}),
        ("MAX_RETRIES A1B ABC1 xABC", {}),
        ("ÄABC ABC€ ABCß (ABC)", {"all_caps": 2}),
        ("ABC DEF\tGHI", {"all_caps": 3}),
        ("", {}),
    ],
)
def test_markers_are_whole_words_counted_by_kind(text: str, expected: dict[str, int]) -> None:
    assert counts(text) == expected
    assert value(view(user("go"), say(text)), PATH) == sum(expected.values())


@pytest.mark.corpus
@pytest.mark.skipif(not RUNS.is_dir(), reason="the corpus ../shared/corpus is not there")
def test_every_published_cell_is_reproduced() -> None:
    scored = 0
    for table in sorted(RUNS.rglob("generation_scores.csv")):
        lines_ = (table.parent / "generations.jsonl").read_text("utf-8").splitlines()
        with table.open(encoding="utf-8", newline="") as rows:
            for row, line in zip(csv.DictReader(rows), lines_, strict=True):
                scored += _agrees(row, json.loads(line)["generation"])
    for table in sorted(RUNS.rglob("agent_attempts.jsonl")):
        for line in table.read_text("utf-8").splitlines():
            row = json.loads(line)
            scored += _agrees(row, row["generation"])
    assert scored == 197


def _agrees(row: dict[str, str], text: str) -> int:
    one = view(user("go"), say(text))
    found = detail(one, PATH)
    assert {name: found[name] for name in COLUMNS} == {name: int(row[column]) for name, column in COLUMNS.items()}
    assert value(one, PATH) == int(row["aggregate_marker_score"])
    return 1
