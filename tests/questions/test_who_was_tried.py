"""Who was tried: models out of folders' names, one model in several spellings, knobs of the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentsignals.errors import AgentSignalsError
from agentsignals.questions.compare import compare, outcome_rule
from agentsignals.questions.compare.attempts import mapped, proposed, read_mapping
from tests.questions.test_compare import NOTHING, compared, tried


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


@pytest.mark.parametrize(
    "folders",
    [("run-1", "run-2"), ("2026-05-04__10-00-00", "2026-05-05__10-00-00"), ("3f2a9c1e", "9b8c7d6e"), ("all",)],
)
def test_numbers_dates_and_ids_name_no_model(folders: tuple[str, ...]) -> None:
    assert proposed(lying(*folders)) == ""


def test_a_recorded_model_needs_no_proposal() -> None:
    rows = [{**row, "model_id": "m"} for row in lying("x_gpt-5", "x_glm-4.6")]
    assert proposed(rows) == ""


def test_the_refusal_has_the_option_ready_to_copy() -> None:
    with pytest.raises(AgentSignalsError) as problem:
        compare(outcome_rule("resolved"), {"attempts": lying("x_gpt-5", "x_glm-4.6"), "values": []}, ["model"])
    assert "--treatments '**/x_{model_id}/**'" in problem.value.hint


def test_one_model_in_three_spellings_is_one_candidate_with_its_spellings_kept() -> None:
    names = ("openai/neulab/claude-sonnet-4-20250514", "anthropic/claude-sonnet-4-20250514", "claude-sonnet-4-20250514")
    trials = [tried(name, f"t{n}", 1.0) for name in (*names, "anthropic/claude-opus-4-1") for n in range(3)]
    found = compared(*trials)
    assert sorted(c.name for c in found.candidates) == ["anthropic/claude-opus-4-1", "claude-sonnet-4-20250514"]
    assert any("are taken for one model" in warning for warning in found.warnings)
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
