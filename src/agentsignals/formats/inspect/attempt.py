"""What an Inspect log says of one attempt around its conversation: treatment, scores, limits, usage
(design/formats.md#inspect).

Epochs are trials of their own. A sample that was run again in the log of a retry is the next attempt of its trial.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from agentsignals.formats.figures import amount, count
from agentsignals.formats.harbor.treatment import SECRET
from agentsignals.formats.inspect.records import Header, Sample, Score
from agentsignals.model.attempt import Attempt, Statement
from agentsignals.model.times import logged_iso

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""What Inspect's own metrics make of a grade: correct, partial, incorrect, no answer, and words for yes and no."""
_RENAMED = {"time_limit": "timeout_s", "max_samples": "concurrency", "effort": "reasoning_effort"}
_CONFIG = ("epochs", "message_limit", "token_limit", "turn_limit", "working_limit", "cost_limit", "time_limit",
           "max_samples", "retry_on_error")  # fmt: skip
_NAMED = frozenset(("split", "condition"))
"""Arguments of a task, and metadata of a run, that are called as such a knob is here."""
_TIME_LIMITS = ("time", "working")
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,6}([A-Z]\w{0,60})(?=[(:]|$)")
_EXPLANATION_CHARS = 600


def part_of(header: Header, sample: Sample, session_id: str, artifact_id: str, place: str) -> Attempt:
    """The part that comes with the sample's session. `place` names the sample in its log."""
    task = f"{header.eval.task}/{sample.id}"
    trial = f"{header.eval.task_id or header.eval.run_id or artifact_id}/{sample.id}_epoch_{sample.epoch}"
    rewards = rewards_of(sample.scores or {})
    limit, error = sample.limit, sample.error
    part = Attempt(root=f"inspect:{trial}", trial_id=trial, task_id=task, run_id=header.eval.run_id)
    part.session_artifact, part.session_id = artifact_id, session_id
    part.knobs = knobs(header)
    part.knobs["epoch"] = sample.epoch
    part.rewards = rewards or None
    part.reward = next(iter(rewards.values())) if len(rewards) == 1 else None
    part.started_at, part.ended_at = logged_iso(sample.started_at), logged_iso(sample.completed_at)
    part.wall_time_s = sample.total_time
    if limit is not None:
        part.exit_status, part.timed_out = f"limit:{limit.type}", limit.type in _TIME_LIMITS
        part.ending = "time" if part.timed_out else "infrastructure" if limit.type == "operator" else "budget"
    elif error is not None:
        part.exit_status, part.exception = "error", exception_of(error.message or error.traceback or "")
        part.ending = "infrastructure"  # Inspect leaves a sample with an error out of its metrics
    elif sample.scores or sample.completed_at:
        part.exit_status, part.timed_out = "completed", False
        part.ending = "finished"
    _count(part, sample)
    part.ratings = {name: score.value for name, score in (sample.scores or {}).items()} or None
    part.kinds = ["harness_config"]
    part.statements = list(_statements(part, sample, artifact_id, place))
    return part


def knobs(header: Header) -> dict[str, Any]:
    """The treatment under Agent Signals's names, and what else the log says was set."""
    spec, plan = header.eval, header.plan
    treatment: dict[str, Any] = {}
    agent = agent_of(header)
    dataset = (spec.dataset.name or spec.dataset.location) if spec.dataset else None
    named = {"model_id": spec.model, "agent_type": agent, "dataset": dataset, "tools": _tools(header)}
    treatment.update({k: v for k, v in named.items() if v})
    if _is_plain(spec.task_version):
        treatment["task_version"] = spec.task_version
    config = spec.config or {}
    treatment.update({_RENAMED.get(k, k): config[k] for k in _CONFIG if _is_plain(config.get(k))})
    for settings in ((plan.config if plan else None) or {}, spec.model_generate_config or {}):
        treatment.update({_RENAMED.get(k, k): v for k, v in settings.items() if _is_plain(v)})
    for place, arguments in (
        ("task_args", spec.task_args),
        ("solver_args", spec.solver_args),
        ("metadata", spec.metadata),
    ):
        for name, value in arguments.items() if isinstance(arguments, dict) else ():
            if _is_plain(value) and not SECRET.search(name):
                treatment.setdefault(name if name in _NAMED else f"{place}.{name}", value)
    version = (spec.packages or {}).get("inspect_ai")
    if isinstance(version, str):
        treatment["inspect_ai"] = version
    sandbox = spec.sandbox.get("type") if isinstance(spec.sandbox, dict) else None
    if isinstance(sandbox, str):
        treatment["sandbox"] = sandbox
    return treatment


def _tools(header: Header) -> list[str]:
    """What the plan's steps were handed as tools (`use_tools`, an agent), by name."""
    steps = header.plan.steps if header.plan is not None else None
    handed = [step.params.get("tools") for step in steps or () if isinstance(step.params, dict)]
    tools = [tool for several in handed if isinstance(several, list) for tool in several]
    names = (tool.get("name") if isinstance(tool, dict) else tool for tool in tools)
    return sorted({name for name in names if isinstance(name, str)})


def agent_of(header: Header) -> str | None:
    """What solved the samples: as asked for, else the last solver of the plan."""
    steps = header.plan.steps if header.plan is not None else None
    return header.eval.solver or next((s.solver for s in reversed(steps or ()) if s.solver), None)


def rewards_of(scores: dict[str, Score]) -> dict[str, float]:
    """Scores as numbers; a score of several values gives one a value. Words that are no grade have none."""
    rewards: dict[str, float] = {}
    for name, score in scores.items():
        values = score.value.items() if isinstance(score.value, dict) else [("", score.value)]
        for key, value in values:
            number = _number(value)
            if number is not None:
                rewards[f"{name}.{key}" if key else name] = number
    return rewards


def exception_of(text: str) -> str | None:
    """The type of an error, off the beginning of its message or the last line of its traceback."""
    last = text.strip().rsplit("\n", 1)[-1] if text.lstrip().startswith("Traceback") else text.strip()
    match = _EXCEPTION.match(last[:600])
    return match.group(1) if match else None


def _number(value: object) -> float | None:
    if isinstance(value, str):
        grade = _GRADES.get(value, _GRADES.get(value.lower()) if len(value) > 1 else None)
        if grade is not None:
            return grade
    elif not isinstance(value, bool | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _count(part: Attempt, sample: Sample) -> None:
    """Usage as Inspect summed it over all models: a model that graded the sample is among them."""
    usages = list((sample.model_usage or {}).values())
    if not usages:
        return
    part.input_tokens = sum(u.uncached or 0 for u in usages)
    part.output_tokens = sum(count(u.output_tokens) or 0 for u in usages)
    if any(u.input_tokens_cache_read is not None for u in usages):
        part.cache_read_tokens = sum(count(u.input_tokens_cache_read) or 0 for u in usages)
    costs = [amount(u.total_cost) for u in usages]
    if None not in costs:
        part.cost_usd = math.fsum(c for c in costs if c is not None)


def _statements(part: Attempt, sample: Sample, artifact_id: str, place: str) -> Iterator[Statement]:
    settings = ", ".join(f"{k} {v}" for k, v in part.knobs.items())
    yield Statement(
        text=f"{place}: {settings}", artifact_id=artifact_id, line=1, fields=[f"knobs.{k}" for k in part.knobs]
    )
    for name, score in (sample.scores or {}).items():
        text = f"{name} scored {score.value!r}: {(score.explanation or '')[:_EXPLANATION_CHARS]}".rstrip(": ")
        yield Statement(text=text, artifact_id=artifact_id, line=1, fields=["reward", "rewards", "ratings"])
    if sample.error is not None:
        yield Statement(
            text=sample.error.message or "error", artifact_id=artifact_id, line=1, fields=["exit_status", "exception"]
        )
    elif sample.limit is not None:
        limit = f"{sample.limit.type} limit of {sample.limit.limit} reached"
        yield Statement(text=limit, artifact_id=artifact_id, line=1, fields=["exit_status", "timed_out"])
    for retried in sample.error_retries or ():
        yield Statement(
            text=f"an earlier run of this sample failed: {retried.message}", artifact_id=artifact_id, line=1, fields=[]
        )
    if part.wall_time_s is not None:
        working = f", {sample.working_time} s without waiting" if sample.working_time is not None else ""
        yield Statement(
            text=f"took {part.wall_time_s} s{working}", artifact_id=artifact_id, line=1, fields=["wall_time_s"]
        )
