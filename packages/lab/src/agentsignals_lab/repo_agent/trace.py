"""An episode as a trace file, which `analyze` reads: what was said, done, shown and judged, one JSON object a line.

First a header with the format's mark, then messages in order; an answer that was understood is followed by its tool
call with what came back. What the model was never told, the verdict and the reference solution, is the last line.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agentsignals_lab.coding_tasks.repository import reference_patch
from agentsignals_lab.repo_agent import protocol
from agentsignals_lab.repo_agent.loop import Done, Plan, Step
from agentsignals_lab.repo_agent.protocol import Action
from agentsignals_lab.residual.interface import Message
from agentsignals_lab.retry.loop import Steered
from agentsignals_lab.runs import Manifest

MARK = "agentsignals_lab_repository"
VERSION = 1


def lines(done: Done, plan: Plan, run: str, manifest: Manifest, steered: Steered | None) -> list[dict[str, Any]]:
    """The trace of an episode that is over."""
    records = [_header(done, plan, run, manifest, steered)]
    steps = iter(done.steps)
    called = False
    for message in done.chat:
        if message.speaker != "assistant":
            # What a call gave stands with the call; other words of the harness are messages.
            records += [] if called else [_message(message)]
            called = False
            continue
        step = next(steps)
        records.append(_message(message) | {"step": _step_fields(step)})
        if step.action is not None:
            records.append({"tool": _call(step, step.action)})
            called = True
    final = msgspec.to_builtins(done.episode) | {"reference_patch": reference_patch(done.task)}
    return [*records, {"final": final}]


def _message(message: Message) -> dict[str, Any]:
    return {"message": msgspec.to_builtins(message)}


def _step_fields(step: Step) -> dict[str, Any]:
    names = ("step", "seed", "prompt_tokens", "tokens", "finish", "more_actions")
    return {name: getattr(step.row, name) for name in names}


def _call(step: Step, action: Action) -> dict[str, Any]:
    row = step.row
    failed = row.status != "ok" or row.passed is False
    call: dict[str, Any] = {
        "call_id": f"step-{row.step}",
        "name": action.kind,
        "arguments": _arguments(action),
        "status": "error" if failed else "ok",
        "refused": row.status == "refused",
        "result": row.shown,
    }
    if row.patch:
        call["patch"] = row.patch
    if row.exit_code is not None:
        call["exit_code"] = row.exit_code
    return call


def _arguments(action: Action) -> dict[str, Any]:
    text = {"search": "pattern", "write": "content", "patch": "patch", "replace": "new"}.get(action.kind)
    arguments: dict[str, Any] = {"path": action.path, "old": action.old}
    arguments = {name: value for name, value in arguments.items() if value}
    if text:
        arguments[text] = action.text
    if action.lines:
        arguments["lines"] = list(action.lines)
    return arguments


def _header(done: Done, plan: Plan, run: str, manifest: Manifest, steered: Steered | None) -> dict[str, Any]:
    task, condition, episode = done.task, done.condition, done.episode
    directions = steered.directions if steered is not None else None
    treatment = msgspec.to_builtins(condition)
    if condition.steers and directions is not None:
        treatment |= {"recipe": directions.recipe, "directions_of": directions.model}
    return {
        MARK: VERSION,
        "trial_id": f"{run}/{condition.name}/{task.key}-{episode.sample}",
        "run_id": run,
        "started_at": manifest.started_at,
        "model": manifest.model,
        "condition": treatment,
        "task": {"key": task.key, "issue": task.issue, "files": sorted(task.files)},
        "sample": episode.sample,
        "seed": plan.seed,
        "evaluator": episode.evaluator,
        "tier": episode.tier,
        "protocol": protocol.VERSION,
        "max_steps": plan.steps,
        "shown_chars": plan.shown_chars,
        "chat_chars": plan.chat_chars,
        "temperature": plan.temperature,
        "top_p": plan.top_p,
        "max_new_tokens": plan.max_new_tokens,
        "texts": manifest.texts,
        "packages": manifest.packages,
    }
