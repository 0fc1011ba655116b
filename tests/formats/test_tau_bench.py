"""tau-bench, tau2-bench and SWE-bench Pro: who spoke, whose end it was, and what was judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsignals.formats import by_name, identify
from agentsignals.formats.records import head_of
from agentsignals.ingest import pipeline
from agentsignals.store import Store
from tests.formats.reading import given
from tests.questions.stores import outcome

SAMPLES = Path(__file__).parent


def attempts(folder: Path, store: Path) -> list[Any]:
    pipeline.analyze([str(folder)], store, jobs=1)
    return Store(store).sql("SELECT task_id, outcome, outcome_reason FROM attempts ORDER BY ALL").fetchall()


def test_a_trial_of_the_machine_is_no_failure(tmp_path: Path) -> None:
    assert attempts(SAMPLES / "tau-bench" / NAMED, tmp_path) == [
        ("bo_2/1", "failed", "tests"),
        ("cy_3/2", "failed", "budget"),
        ("mia_1/0", "infrastructure", "ServiceUnavailableError"),
        ("mia_1/0", "solved", "reward"),
    ]
    (told,) = Store(tmp_path).sql("SELECT DISTINCT model_id, agent_type FROM attempts").fetchall()
    assert told == ("acme-one", "tool-calling")


NAMED = "tool-calling-acme-one-0.0_range_0-3_user-acme-two-llm_0504090000.json"


def test_who_ended_a_simulation(tmp_path: Path) -> None:
    assert attempts(SAMPLES / "tau2-bench" / "whole", tmp_path) == [
        ("telecom/t1", "not_judged", "no verdict"),
        ("telecom/t1", "solved", "reward"),
        ("telecom/t2", "failed", "budget"),
        ("telecom/t2", "not_judged", "max_steps"),
        ("telecom/t3", "infrastructure", "APIConnectionError"),
        ("telecom/t3", "infrastructure", "user_error"),
    ]


def test_a_folder_of_simulations_and_copies_of_them_count_once(tmp_path: Path) -> None:
    folder = SAMPLES / "tau2-bench" / "folder"
    told = [("telecom/t1", "failed", "tests"), ("telecom/t1", "solved", "reward")]
    assert attempts(folder, tmp_path / "a") == told
    run = json.loads((folder / "results.json").read_text("utf-8"))
    run["simulations"] = [json.loads(p.read_text("utf-8")) for p in sorted((folder / "simulations").iterdir())]
    both = tmp_path / "both"
    (both / "simulations").mkdir(parents=True)
    (both / "whole.json").write_text(json.dumps(run))
    for path in folder.rglob("*.json"):
        (both / path.relative_to(folder)).write_bytes(path.read_bytes())
    assert attempts(both, tmp_path / "b") == told


@pytest.mark.parametrize("folder", ["tau-bench", "tau2-bench"])
def test_no_word_is_a_person_s_and_no_call_the_simulator_s(folder: str, tmp_path: Path) -> None:
    pipeline.analyze([str(SAMPLES / folder)], tmp_path, jobs=1)
    store = Store(tmp_path)
    assert store.sql("SELECT DISTINCT kind FROM turns").fetchall() == [("scripted_prompt",)]
    assert store.sql("SELECT count(*) FROM tool_calls WHERE name = 'check_status_bar'").fetchall() == [(0,)]
    assert set(store.sql("SELECT DISTINCT status FROM tool_calls").fetchall()) >= {("ok",), ("error",)}


PRO = f"instance_acme__shop-{'a' * 40}-vnan"


@pytest.mark.parametrize(
    ("document", "is_claimed"),
    [
        ({PRO: True}, True),
        ({PRO: False, PRO.replace("shop", "desk"): True}, True),
        ({"dark_mode": True, "sounds": False}, False),
        ({PRO: True, "dark_mode": True}, False),
        ({PRO: 1}, False),
        ({"instance_count-1": True}, False),
        ({}, False),
    ],
)
def test_only_verdicts_of_instances_are_results(document: Any, is_claimed: bool) -> None:
    found = identify(head_of(json.dumps(document).encode(), "r/eval_results.json"))
    assert (found is not None and found[0].name == "swe-bench-pro") == is_claimed


def test_verdicts_by_instance_are_attempts(tmp_path: Path) -> None:
    outcomes = [row[1] for row in attempts(SAMPLES / "swe-bench-pro" / "acme-one", tmp_path)]
    assert sorted(outcomes) == ["failed", "failed", "solved"]


BOOK = {"name": "book_flight", "kwargs": {"user": "u", "bags": 1}}


def judged(reward: float, calls: list[dict[str, Any]], info: dict[str, Any], expected: list[Any]) -> list[str]:
    """The failed checks of one trial."""
    said = [
        {"function": {"name": call["name"], "arguments": json.dumps(call["kwargs"])}, "id": f"c{n}"}
        for n, call in enumerate(calls)
    ]
    traj = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": said}]
    traj += [{"role": "tool", "tool_call_id": f"c{n}", "content": "{}"} for n in range(len(calls))]
    told = {"task": {"user_id": "u"}, "reward_info": {"reward": reward, "info": info, "actions": expected}}
    result = {"task_id": 1, "reward": reward, "info": told, "traj": traj, "trial": 0}
    (part,) = by_name("tau-bench").read([given([result], "tau-bench")]).attempts
    assert part.verification is not None
    return part.verification.failed or []


@pytest.mark.parametrize(
    ("calls", "info", "expected", "failed"),
    [
        ([BOOK], {"r_actions": 1.0}, [BOOK], []),
        ([], {"r_actions": 0.0}, [BOOK], ["book_flight not called", "database"]),
        ([{**BOOK, "kwargs": {"user": "u", "bags": 2}}], {"r_actions": 0.0}, [BOOK],
         ["book_flight called with other bags", "database"]),
        ([BOOK, {"name": "cancel_flight", "kwargs": {}}], {"r_actions": 0.0}, [BOOK],
         ["cancel_flight called, not expected", "database"]),
        ([BOOK, {"name": "get_user", "kwargs": {}}], {"r_actions": 0.0}, [BOOK, {"name": "find_x", "kwargs": {}}],
         ["database"]),
        ([BOOK], {"r_outputs": 0.0, "outputs": {"327": False, "12": True}}, [BOOK], ["told: 327"]),
        ([], {"r_outputs": 1.0, "outputs": {"12": True}}, [BOOK], ["book_flight not called", "database"]),
    ],
    ids=["right", "not called", "other arguments", "not expected", "looks", "not told", "told, not done"],
)  # fmt: skip
def test_checks_of_the_environment_are_named(
    calls: list[dict[str, Any]], info: dict[str, Any], expected: list[Any], failed: list[str]
) -> None:
    assert judged(float(not failed), calls, info, expected) == failed


@pytest.mark.parametrize(
    ("checks", "failed"),
    [
        ({"reward_basis": ["DB"], "db_check": {"db_match": True}}, []),
        ({"reward_basis": ["DB", "COMMUNICATE"], "db_check": {"db_match": False}, "communicate_checks": [
            {"info": "12", "met": False}], "action_checks": [
            {"action": {"name": "pay"}, "action_match": False, "tool_type": "write"},
            {"action": {"name": "look"}, "action_match": False, "tool_type": "read"}]},
         ["database", "told: 12", "action: pay"]),
        ({"reward_basis": ["COMMUNICATE"], "db_check": {"db_match": False}, "communicate_checks": [
            {"info": "12", "met": False}]}, ["told: 12"]),
        ({"reward_basis": ["ENV_ASSERTION"], "env_assertions": [
            {"env_assertion": {"func_name": "is_online"}, "met": False}]}, ["environment: is_online"]),
    ],
    ids=["right", "database", "not in the basis", "environment"],
)  # fmt: skip
def test_checks_of_tau2_are_those_that_the_reward_rests_on(checks: dict[str, Any], failed: list[str]) -> None:
    run = json.loads((SAMPLES / "tau2-bench" / "folder" / "results.json").read_text("utf-8"))
    path = next((SAMPLES / "tau2-bench" / "folder" / "simulations").iterdir())
    simulation = json.loads(path.read_text("utf-8"))
    simulation["reward_info"] = {"reward": float(not failed), **checks}
    run["simulations"] = [simulation]
    (part,) = by_name("tau2-bench").read([given(run, "tau2-bench")]).attempts
    assert part.verification is not None
    assert part.verification.failed == failed


def test_the_simulated_user_is_in_the_bill_by_itself(tmp_path: Path) -> None:
    pipeline.analyze([str(SAMPLES / "tau2-bench" / "whole")], tmp_path, jobs=1)
    (paid,) = Store(tmp_path).sql("SELECT sum(harness_other_cost_usd) FROM attempts").fetchall()
    told = {finding.id: finding.value for finding in outcome(Store(tmp_path), "attempts").findings}
    assert told["attempts.other_cost"] == paid[0] > 0
