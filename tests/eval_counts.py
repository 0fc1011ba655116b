"""Outcomes of eval runs counted over their raw files, without a reader of agentsignals: who was tried at what, and what
came of it, each layout by its own documentation."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


class Tried(NamedTuple):
    """One attempt: solved, failed, not_judged or infrastructure."""

    model: str | None
    dataset: str | None
    task: str
    outcome: str


def trials_with_reports(folder: Path) -> Iterator[Tried]:
    """SWE-agent trials, each a folder of a report and, for some, the trajectory, which alone names the model."""
    for path in sorted(folder.rglob("report.json")):
        ((task, report),) = json.loads(path.read_text("utf-8")).items()
        model = None
        for trajectory in path.parent.glob("*.traj"):
            config = json.loads(trajectory.read_text("utf-8"))["replay_config"]
            model = (json.loads(config) if isinstance(config, str) else config)["agent"]["model"]["name"]
        yield Tried(model, None, task.lower(), "solved" if report["resolved"] else "failed")


def harbor(folder: Path) -> Iterator[Tried]:
    """A trial's result: its reward is 1 or not; an exception but the agent's time-out is the infrastructure's."""
    for path in sorted(folder.rglob("result.json")):
        result = json.loads(path.read_text("utf-8"))
        if "trial_name" not in result:
            continue
        rewards = (result.get("verifier_result") or {}).get("rewards") or {}
        broken = (result.get("exception_info") or {}).get("exception_type") not in (None, "AgentTimeoutError")
        came = "infrastructure" if broken else "not_judged" if "reward" not in rewards else "failed"
        solved = came == "failed" and rewards["reward"] == 1
        yield Tried(result["config"]["agent"]["model_name"], None, result["task_name"], "solved" if solved else came)


def inspect(folder: Path) -> Iterator[Tried]:
    """A sample and epoch of a task's run: of one score its grade; without any not judged; with an error left out."""
    seen = set()
    for path in sorted(folder.rglob("*.eval")):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            head = json.loads(archive.read("header.json" if "header.json" in names else "_journal/start.json"))["eval"]
            for name in names:
                if not name.startswith("samples/"):
                    continue
                sample = json.loads(archive.read(name))
                key = (head.get("task_id"), sample["id"], sample["epoch"], sample.get("uuid"))
                if key in seen:
                    continue
                seen.add(key)
                dataset = head["dataset"]
                task = f"{head['task']}/{sample['id']}"
                yield Tried(head["model"], dataset.get("name") or dataset.get("location"), task, _graded(sample))


def _graded(sample: dict[str, Any]) -> str:
    if sample.get("error"):
        return "infrastructure"
    values = [score["value"] for score in (sample.get("scores") or {}).values()]
    grades = [_GRADES.get(value, value) for value in values if not isinstance(value, dict)]
    numbers = [float(grade) for grade in grades if isinstance(grade, int | float)]
    return "not_judged" if len(numbers) != 1 else "solved" if numbers[0] == 1 else "failed"


def run_folder(folder: Path) -> Iterator[Tried]:
    """An official run: predictions say what was handed in, reports what was resolved; nobody judges the rest."""
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            handed = json.loads(line)
            model, task = handed["model_name_or_path"], handed["instance_id"]
            places = list(folder.rglob(f"run_evaluation/*/{model.replace('/', '__')}/{task}/report.json"))
            if places:
                resolved = json.loads(places[0].read_text("utf-8"))[task]["resolved"]
                yield Tried(model, None, task, "solved" if resolved else "failed")
            else:
                yield Tried(model, None, task, "not_judged" if handed["model_patch"] else "failed")
