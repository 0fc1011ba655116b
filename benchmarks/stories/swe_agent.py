"""A run as SWE-agent and the SWE-bench harness leave it: `<instance>/instance_data.json` with the gold patch, and for
each run a folder with its trajectory, its patch and the report of the tests."""

from __future__ import annotations

import json
import posixpath
from pathlib import Path
from typing import Any

from benchmarks.stories.run import Run, Step
from benchmarks.stories.task import diff

ROOT = "/testbed"
_SYSTEM = "You are a helpful assistant that can interact with a computer to solve tasks."


def session_of(name: str) -> str:
    """What the session id of a run has in it."""
    return name


def write(run: Run, name: str, folder: Path) -> Path:
    """Writes the files of a run; where its trial is."""
    task = run.task
    instance = folder / task.instance
    trial = instance / name
    trial.mkdir(parents=True)
    row = {
        "instance_id": task.instance,
        "repo": task.repository,
        "problem_statement": task.issue,
        "patch": run.gold(),
        "test_patch": diff(task.test_path, "", task.test),
        "FAIL_TO_PASS": json.dumps([f"{task.test_path}::{task.failing}"]),
        "PASS_TO_PASS": "[]",
    }
    _dump(instance / "instance_data.json", row)
    report = {
        "patch_is_None": False,
        "patch_exists": True,
        "patch_successfully_applied": True,
        "resolved": True,
        "tests_status": {
            "FAIL_TO_PASS": {"success": [f"{task.test_path}::{task.failing}"], "failure": []},
            "PASS_TO_PASS": {"success": [], "failure": []},
            "FAIL_TO_FAIL": {"success": [], "failure": []},
            "PASS_TO_FAIL": {"success": [], "failure": []},
        },
    }
    _dump(trial / "report.json", {task.instance: report})
    (trial / "agent_patch.diff").write_text(run.patch(), encoding="utf-8")
    _dump(trial / f"{task.instance}.traj", _trajectory(run))
    return trial


def _trajectory(run: Run) -> dict[str, Any]:
    prompt = (
        f"<uploaded_files>\n{ROOT}\n</uploaded_files>\nI've uploaded a code repository in the directory {ROOT}."
        f" Consider the following PR description:\n\n<pr_description>\n{run.task.issue}\n</pr_description>\n\n"
        "Can you help me implement the necessary changes to the repository so that the requirements specified in the"
        f" <pr_description> are met?\n{run.prompt}"
    ).rstrip()
    history: list[dict[str, Any]] = [
        {"role": "system", "content": _SYSTEM, "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": [{"type": "text", "text": prompt}], "agent": "main", "message_type": "observation"},
    ]
    trajectory: list[dict[str, Any]] = []
    submit = Step("shell", "", run.patch(), command="submit")
    for number, step in enumerate([*run.steps, submit]):
        tool, arguments, action, observation = _call(step)
        if step is submit:
            tool, arguments = "submit", {}
        query = [dict(m) for m in history[-1:]] if trajectory else list(history)
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": tool, "arguments": json.dumps(arguments)},
        }
        said = {
            "role": "assistant",
            "content": step.thought,
            "thought": step.thought,
            "action": action,
            "agent": "main",
        }
        history.append({**said, "tool_calls": [call], "message_type": "action"})
        seen = observation or "Your last command ran successfully and did not produce any output."
        text = [{"type": "text", "text": f"OBSERVATION:\n{seen}"}]
        answer = {"role": "tool", "content": text, "agent": "main", "message_type": "observation"}
        history.append({**answer, "tool_call_ids": [f"call_{number}"]})
        trajectory.append(
            {
                "action": action,
                "observation": observation,
                "response": step.thought,
                "thought": step.thought,
                "execution_time": 0.2,
                "state": {"working_dir": ROOT},
                "query": query,
                "extra_info": {},
            }
        )
    info = {
        "swe_agent_version": "1.1.0",
        "submission": run.patch(),
        "exit_status": "submitted",
        "model_stats": {
            "instance_cost": 0.31,
            "tokens_sent": 91000,
            "tokens_received": 4100,
            "api_calls": len(trajectory),
        },
    }
    agent = {"agent": {"name": run.task.instance, "model": {"name": "anthropic/claude-sonnet-4"}}}
    return {
        "trajectory": trajectory,
        "history": history,
        "info": info,
        "replay_config": json.dumps(agent),
        "environment": run.task.instance,
    }


def _call(step: Step) -> tuple[str, dict[str, Any], str, str]:
    """The tool, its arguments, the action as SWE-agent writes it, what was observed."""
    path = posixpath.join(ROOT, step.path)
    editor = "str_replace_editor"
    if step.kind == "shell":
        return "bash", {"command": step.command}, step.command, _with_end(step.output)
    if step.kind == "fetch":
        command = f"curl -sL {step.command}"
        return "bash", {"command": command}, command, _with_end(step.output)
    if step.kind == "view":
        seen = f"Here's the result of running `cat -n` on {path}:\n{numbered(step.output)}\n"
        return editor, {"command": "view", "path": path}, f"{editor} view {path}", seen
    if step.kind == "create":
        arguments = {"command": "create", "path": path, "file_text": step.after}
        action = f"{editor} create {path} --file_text {_shown(step.after or '')}"
        return editor, arguments, action, f"File created successfully at: {path}\n"
    arguments = {"command": "str_replace", "path": path, "old_str": step.hunk.old, "new_str": step.hunk.new}
    action = f"{editor} str_replace {path} --old_str {_shown(step.hunk.old)} --new_str {_shown(step.hunk.new)}"
    first = (step.before or "").split(step.hunk.old)[0].count("\n")
    lines = (step.after or "").split("\n")[max(0, first - 4) : first + step.hunk.new.count("\n") + 5]
    snippet = numbered("\n".join(lines), max(0, first - 4) + 1)
    seen = (
        f"The file {path} has been edited. Here's the result of running `cat -n` on a snippet of {path}:\n{snippet}\n"
        "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the"
        " file again if necessary.\n"
    )
    return editor, arguments, action, seen


def numbered(text: str, first: int = 1) -> str:
    return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(text.split("\n"), first))


def _shown(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _with_end(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _dump(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False), encoding="utf-8")
