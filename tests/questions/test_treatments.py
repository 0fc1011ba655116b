"""Who was tried, by layout: what each layout records lands in `attempts`, and what it does not is known not to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.test_attempts import analyzed, rows
from tests.inspect_logs import archive

NOT = "not recorded by this layout"
FIELDS = (
    "model_id", "agent_type", "agent_version", "dataset", "split", "timeout_s", "cap", "retries", "seed", "temperature",
    "reasoning_effort", "tools", "condition", "run_id",
)  # fmt: skip
TASK = "acme__tools-12"
SILENT = dict.fromkeys(FIELDS, NOT)


def harbor(folder: Path) -> None:
    kwargs = {"version": "9", "reasoning_effort": "high", "temperature": 0.5, "seed": 7, "attempt1ToolCap": 40}
    agent = {"name": "codex", "model_name": "acme/m-1", "override_timeout_sec": 600, "mcp_servers": [{"name": "docs"}]}
    trial = {
        "task_name": "t", "trial_name": "t__abc", "source": "tb-core",
        "config": {"job_id": "j1", "agent": {**agent, "kwargs": {**kwargs, "condition": "steered"}}},
        "agent_info": {"name": "codex", "version": "1.2.3"}, "verifier_result": {"rewards": {"reward": 1.0}},
    }  # fmt: skip
    job = {
        "job_name": "j",
        "jobs_dir": "d",
        "retry": {"max_retries": 2},
        "datasets": [{"name": "tb-core", "version": "2"}],
    }
    write(folder / "j/config.json", job)
    write(folder / "j/t__abc/result.json", trial)


def terminal_bench(folder: Path) -> None:
    run = {"run_id": "r1", "output_path": "o", "agent_name": "terminus", "model_name": "acme/m-1", "n_attempts": 3}
    more = {"reasoning_effort": "high", "temperature": 0.5, "seed": 7, "max_turns": 40, "condition": "steered"}
    write(folder / "run_metadata.json", {**run, "dataset_name": "core", "dataset_version": "0.1", "agent_kwargs": more})
    limits = {"global_agent_timeout_sec": 300.0, "global_timeout_multiplier": 2.0}
    lock = {"dataset": {"name": "core", "version": "0.1"}, "agent": {"name": "terminus", "version": "1.2.3"}}
    write(folder / "tb.lock", {**lock, "run_config": limits})
    trial = {"id": "0" * 36, "trial_name": "t.1", "task_id": "t", "is_resolved": True, "failure_mode": "unset"}
    write(folder / "t/t.1/results.json", {**trial, "parser_results": {"a": "passed"}})


def inspect(folder: Path) -> None:
    spec = {
        "task": "swe", "task_id": "k", "run_id": "r1", "model": "acme/m-1", "solver": "react",
        "dataset": {"location": "acme/set"}, "task_args": {"split": "test"}, "metadata": {"condition": "steered"},
        "solver_args": {"attempts": 3, "api_key": "s"},
        "config": {"time_limit": 600, "message_limit": 40, "retry_on_error": 2},
        "model_generate_config": {"temperature": 0.5, "seed": 7, "reasoning_effort": "high"},
    }  # fmt: skip
    handed = [{"type": "tool", "name": "python", "params": {}}, {"type": "tool", "name": "bash", "params": {}}]
    plan = {"steps": [{"solver": "use_tools", "params": {"tools": handed}}, {"solver": "react", "params": {}}]}
    sample = {
        "id": 1,
        "epoch": 1,
        "messages": [],
        "scores": {"s": {"value": "C"}},
        "completed_at": "2026-01-01T00:00:00Z",
    }
    (folder / "log.eval").write_bytes(
        archive(sample, head={"version": 2, "status": "success", "eval": spec, "plan": plan})
    )


def mini(folder: Path) -> None:
    kwargs = {"temperature": 0.5, "seed": 7, "reasoning_effort": "high"}
    config = {"agent": {"step_limit": 40, "wall_time_limit_seconds": 600},
              "model": {"model_name": "acme/m-1", "model_kwargs": kwargs}}  # fmt: skip
    said = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    info = {"config": config, "mini_version": "1.2.3", "exit_status": "Submitted", "submission": ""}
    write(
        folder / f"r1/{TASK}/{TASK}.traj.json",
        {"info": info, "messages": said, "trajectory_format": "mini-swe-agent-1"},
    )


def swe_agent(folder: Path) -> None:
    model = {"name": "acme/m-1", "per_instance_call_limit": 40, "temperature": 0.5}
    model["completion_kwargs"] = {"seed": 7, "reasoning_effort": "high"}
    tools = {"bundles": [{"path": "tools/edit"}], "total_execution_timeout": 600}
    agent = {"type": "retry", "agent_configs": [{"model": model, "tools": tools}], "retry_loop": {"max_attempts": 2}}
    step = {"action": "ls", "observation": "x", "response": "r", "thought": "t", "state": {}}
    history = [{"role": "system", "content": "s", "agent": "main", "message_type": "system_prompt"}]
    info = {"exit_status": "submitted", "submission": "", "swe_agent_version": "1.2.3"}
    told = {"trajectory": [step], "history": history, "info": info, "replay_config": json.dumps({"agent": agent})}
    write(folder / f"r1/{TASK}/{TASK}.traj", told)
    batch = {"instances": {"type": "swe_bench", "subset": "verified", "split": "test"}, "num_workers": 4}
    write(folder / "r1/run_batch.config.yaml", json.dumps(batch))  # JSON as a YAML text, as SWE-agent has it


def swe_bench(folder: Path) -> None:
    write(folder / f"logs/run_evaluation/r1/acme__m-1/{TASK}/report.json", report())


def submission(folder: Path) -> None:
    home = folder / "evaluation/verified/2026_me"
    write(home / f"logs/{TASK}/report.json", report())
    write(home / "all_preds.jsonl", {"instance_id": TASK, "model_name_or_path": "acme/m-1", "model_patch": "x"})


def table(folder: Path) -> None:
    row = {
        "instance_id": TASK, "resolved": True, "model": "acme/m-1", "agent": "mini", "agent_version": "1.2.3",
        "dataset": "verified", "split": "test", "timeout_s": 600, "max_steps": 40, "max_retries": 2, "seed": 7,
        "temperature": 0.5, "effort": "high", "tools": ["bash"], "condition": "steered", "run_id": "r1",
    }  # fmt: skip
    write(folder / "table.json", [row])


def report() -> dict[str, Any]:
    return {TASK: {"patch_successfully_applied": True, "resolved": True, "tests_status": {}}}


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


SET = {"model_id": "acme/m-1", "agent_version": "1.2.3", "seed": 7, "temperature": 0.5, "reasoning_effort": "high",
       "condition": "steered", "cap": 40, "timeout_s": 600, "retries": 2, "run_id": "r1"}  # fmt: skip
LAYOUTS: dict[Any, dict[str, Any]] = {
    harbor: {**SET, "agent_type": "codex", "dataset": "tb-core@2", "split": NOT, "tools": ["docs"], "run_id": "j1"},
    terminal_bench: {**SET, "agent_type": "terminus", "dataset": "core@0.1", "split": NOT, "tools": NOT,
                     "retries": NOT},
    inspect: {**SET, "agent_type": "react", "agent_version": NOT, "dataset": "acme/set", "split": "test",
              "tools": ["bash", "python"]},
    mini: {**SET, "agent_type": "mini-swe-agent", "dataset": NOT, "split": NOT, "tools": NOT, "retries": NOT,
           "condition": NOT},
    swe_agent: {**SET, "agent_type": "swe-agent", "dataset": "swe-bench_verified", "split": "test", "tools": ["edit"],
                "condition": NOT},
    swe_bench: {**SILENT, "model_id": "acme/m-1", "run_id": "r1"},
    submission: {**SILENT, "model_id": "acme/m-1", "agent_type": "2026_me", "dataset": "verified", "run_id": "2026_me"},
    table: {**SET, "agent_type": "mini", "dataset": "verified", "split": "test", "tools": ["bash"]},
}  # fmt: skip
"""What lands in `attempts` of a run that says all its layout can."""
_ELSEWHERE = {
    "cap": ("attempt1_tool_cap", "max_turns", "message_limit", "step_limit", "per_instance_call_limit", "max_steps"),
    "retries": ("max_retries", "retry_on_error", "max_attempts"),
    "tools": ("tools", "mcp_servers"),
    "timeout_s": ("timeout_s", "total_execution_timeout_s"),
}
"""A harness's own name for it stays: 40 calls are not 40 messages."""


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_what_a_layout_records_of_who_was_tried_lands_in_attempts(layout: Any, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    layout(tmp_path / "runs")
    analyzed(tmp_path / "store", tmp_path / "runs")
    asked = "SELECT a.*, s.agent_version FROM attempts a JOIN sessions s USING (session_id)"
    (row,) = rows(tmp_path / "store", asked)
    knobs = json.loads(row["knobs"])
    assert "s" not in knobs.values(), "a secret is no treatment"
    found = {}
    for field in FIELDS:
        values = [v for name in _ELSEWHERE.get(field, (field,)) if (v := row.get(name, knobs.get(name))) is not None]
        found[field] = values[0] if values else NOT
    assert found == LAYOUTS[layout]
