"""Eval runs as Harbor leaves them: a folder a job, a folder a trial, with result, trajectory and what tests said."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.plants.causes import Plant

ROW = dict[str, Any]
START = datetime(2026, 5, 4, 6, 0, tzinfo=UTC)
WHO = "Which model, agent or setting solved more of the same tasks?"
WHY = "Why did eval attempts fail?"
TASKS = tuple(f"mend-{name}-{n}" for name in ("parser", "cache", "dates", "paths", "quotes") for n in range(1, 6))


@dataclass(kw_only=True)
class Trial:
    """One attempt of a candidate at a task."""

    job: str
    model: str
    task: str
    start: datetime
    solved: bool
    seconds: float
    time_limit: int = 1800
    broke: str = ""
    """the exception of the machine, where it never came to an answer"""


def ordinary(seed: int) -> list[Trial]:
    """Two candidates at the same tasks, as good as each other."""
    chance = random.Random(seed)  # noqa: S311  (made-up data, the same every time)
    ease = {task: chance.betavariate(2, 2) for task in TASKS}
    made = []
    for job, model in (("left", "acme/lynx-2"), ("right", "acme/otter-1")):
        for number, task in enumerate(TASKS):
            start = START + timedelta(minutes=11 * number + (300 if job == "right" else 0))
            solved = chance.random() < ease[task]
            made.append(
                Trial(job=job, model=model, task=task, start=start, solved=solved, seconds=chance.uniform(120, 600))
            )
    return made


def an_outage(trials: list[Trial], chance: random.Random) -> Plant:
    """For some hours the containers did not start, whoever was to be tried."""
    kind = chance.choice(("EnvironmentStartTimeoutError", "DockerException", "DaytonaError"))
    hit = [trial for trial in trials if 6 <= TASKS.index(trial.task) < 16]
    for trial in hit:
        trial.broke, trial.solved, trial.seconds = kind, False, 5
    return Plant(questions=(WHY,), words=("infrastructure",))


def other_tasks(trials: list[Trial], chance: random.Random) -> Plant:
    """One candidate was tried at the easy tasks alone, the other at all the others and two of these."""
    easy = chance.sample(TASKS, 13)
    for trial in trials:
        trial.solved = chance.random() < (0.85 if trial.task in easy else 0.25)
    keep = [t for t in trials if (t.task in easy) == (t.job == "left") or t.task in easy[:2]]
    trials[:] = keep
    return Plant(questions=(WHO,), words=("none are compared",))


def other_limits(trials: list[Trial], chance: random.Random) -> Plant:
    """One candidate had an hour a task, the other five minutes, and solves less for want of time."""
    for trial in trials:
        trial.time_limit = 3600 if trial.job == "left" else 300
        trial.solved = chance.random() < (0.85 if trial.job == "left" else 0.25)
        trial.seconds = chance.uniform(500, 2000) if trial.job == "left" else chance.uniform(150, 299)
    return Plant(questions=(WHO,), words=("none are compared",))


RUNS: tuple[Callable[[list[Trial], random.Random], Plant], ...] = (an_outage, other_tasks, other_limits)


def write(folder: Path, trials: list[Trial]) -> Path:
    """A job a candidate."""
    for trial in trials:
        name = f"{trial.task}__{abs(hash_of(trial)):07d}"
        place = folder / trial.job / name
        (place / "verifier").mkdir(parents=True)
        (place / "result.json").write_text(json.dumps(_result(trial, name), indent=2))
        if trial.broke:
            continue
        (place / "agent").mkdir()
        (place / "agent" / "trajectory.json").write_text(json.dumps(_trajectory(trial, name)))
        (place / "verifier" / "reward.txt").write_text(f"{int(trial.solved)}\n")
        (place / "verifier" / "ctrf.json").write_text(json.dumps(_tests(trial)))
    return folder


def hash_of(trial: Trial) -> int:
    """A number of a trial that is the same in every run."""
    return random.Random(f"{trial.job} {trial.task}").randrange(10_000_000)  # noqa: S311  (a name, no secret)


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _result(trial: Trial, name: str) -> ROW:
    end = trial.start + timedelta(seconds=trial.seconds)
    provider, _, model = trial.model.partition("/")
    config: ROW = {"task": {"path": f"tasks/{trial.task}"}, "trial_name": name, "trials_dir": f"jobs/{trial.job}"}
    config |= {"timeout_multiplier": 1.0, "environment": {"type": "docker"}, "job_id": f"job-{trial.job}"}
    config["agent"] = {"name": "terminus-2", "model_name": trial.model, "override_timeout_sec": trial.time_limit}
    row: ROW = {"id": f"id-{name}-{trial.job}", "task_name": trial.task, "trial_name": name, "task_checksum": "1" * 64}
    row |= {"config": config, "started_at": _stamp(trial.start), "finished_at": _stamp(end)}
    row["agent_info"] = {"name": "terminus-2", "version": "2.0", "model_info": {"name": model, "provider": provider}}
    if trial.broke:
        words = f"{trial.broke}: the container did not start within 600 seconds"
        row["exception_info"] = {"exception_type": trial.broke, "exception_message": words, "occurred_at": _stamp(end)}
        return row
    row["agent_result"] = {"n_input_tokens": 90_000, "n_cache_tokens": 70_000, "n_output_tokens": 4_000}
    row["verifier_result"] = {"rewards": {"reward": float(trial.solved)}}
    row["agent_execution"] = {"started_at": _stamp(trial.start), "finished_at": _stamp(end)}
    return {**row, "exception_info": None}


def _tests(trial: Trial) -> ROW:
    broken = {"name": "tests.py::test_mended", "status": "passed" if trial.solved else "failed", "duration": 0.1}
    tests = [{"name": f"tests.py::test_{n}", "status": "passed", "duration": 0.1} for n in range(4)] + [broken]
    summary = {"tests": 5, "passed": 4 + trial.solved, "failed": 1 - trial.solved, "skipped": 0, "pending": 0}
    return {"results": {"tool": {"name": "pytest"}, "summary": {**summary, "other": 0}, "tests": tests}}


def _trajectory(trial: Trial, name: str) -> ROW:
    """Some commands, then an edit and a check, then the end; as many seconds as the trial took."""
    commands = ["ls -la", f"cat src/{trial.task}.py", "grep -rn handle src", f"sed -n 1,80p src/{trial.task}.py"]
    commands += [f"sed -i 's/old/new/' src/{trial.task}.py", "python -m pytest -q tests"]
    steps: list[ROW] = [{"step_id": 1, "timestamp": _stamp(trial.start), "source": "user", "message": "Mend the bug."}]
    for number, command in enumerate(commands):
        at = trial.start + timedelta(seconds=trial.seconds * (number + 1) / (len(commands) + 2))
        call = {"tool_call_id": f"c{number}", "function_name": "bash", "arguments": {"command": command}}
        seen = {"source_call_id": f"c{number}", "content": f"output of step {number} for {trial.task}\n" * 8}
        step = {
            "step_id": number + 2,
            "timestamp": _stamp(at),
            "source": "agent",
            "message": "Next.",
            "tool_calls": [call],
        }
        used = {"prompt_tokens": 4000 + 900 * number, "completion_tokens": 120, "cached_tokens": 3000 + 800 * number}
        steps.append({**step, "model_name": trial.model, "observation": {"results": [seen]}, "metrics": used})
    end = _stamp(trial.start + timedelta(seconds=trial.seconds * 0.95))
    steps.append({"step_id": len(steps) + 1, "timestamp": end, "source": "agent", "message": "It is mended."})
    agent = {"name": "terminus-2", "version": "2.0", "model_name": trial.model}
    return {"schema_version": "ATIF-v1.5", "session_id": f"s-{name}-{trial.job}", "agent": agent, "steps": steps}
