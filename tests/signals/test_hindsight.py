"""What reads how an attempt was judged says so: nothing else may change when only the verdict does."""

from __future__ import annotations

from typing import Any

import pytest

from agentsignals.questions.drivers.predictors import hindsight_of
from agentsignals.signals.catalog import by_path, measure
from tests.build import call, say
from tests.signals.attempts import graded, patched, ran

SOLVED: dict[str, Any] = {
    "reward": 1.0,
    "rewards": {"visible": 1.0, "hidden": 1.0},
    "verification": graded(fixed=2, kept=3),
    "gold_patch": [patched("a.py")],
    "localization": {"attempt1Mode": "hit", "trialRecoveryMode": "none", "finalFailureMode": "none"},
    "wall_time_s": 60.0,
}
FAILED: dict[str, Any] = {
    "reward": 0.0,
    "rewards": {"visible": 0.0, "hidden": 0.0},
    "verification": graded(unfixed=2, broken=3, status="crashed", patch_applies=False),
    "gold_patch": [patched("b.py")],
    "localization": {"attempt1Mode": "miss", "trialRecoveryMode": "retry", "finalFailureMode": "lost"},
    "wall_time_s": 2000.0,
}


def values(verdict: dict[str, Any]) -> dict[str, Any]:
    work = (
        call("Read", path="/testbed/a.py"),
        call("Edit", path="/testbed/a.py"),
        call("Bash", command="pytest -q", status="error"),
        say("Done.", input_tokens=10, output_tokens=5),
    )
    same = {"patch": [patched("a.py")], "attempt_index": 0, "knobs": {"timeout_s": 1800}}
    kinds = ["session_jsonl", "result_json", "verifier_report", "gold_patch", "attempt_log"]
    return {r.signal.path: (r.value, r.detail) for r in measure(ran(*work, **same, **verdict, kinds=kinds))}


@pytest.mark.parametrize("name", [*SOLVED, "all"])
def test_a_signal_that_changes_with_the_verdict_declares_it(name: str) -> None:
    changed = FAILED if name == "all" else {**SOLVED, name: FAILED[name]}
    before, after = values(SOLVED), values(changed)
    moved = {path for path in before if before[path] != after.get(path)}
    assert moved, f"no signal reads {name}: the case is none"
    assert {path for path in moved if not hindsight_of(by_path(path))} == set()


def test_what_needs_a_signal_that_reads_the_verdict_reads_it_too() -> None:
    assert hindsight_of(by_path("verification.reward")) == "the verdict"
    assert hindsight_of(by_path("loop.attempt_result")) == "the verdict, through verification.reward"
    assert hindsight_of(by_path("behavior.localized_correct_file")) == "the gold patch"
    assert hindsight_of(by_path("behavior.tool_call_count")) == ""
