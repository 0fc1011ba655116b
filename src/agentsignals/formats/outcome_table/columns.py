"""What the columns of a table are, by their usual names (design/formats.md#tables-of-outcomes)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

_NAMED_TASK = ("instance_id", "task_id", "problem_id", "task_name")
_TASK = (*_NAMED_TASK, "task", "problem")
"""The first are of a task and nothing else; the others are also topics, todo lists, kinds of work."""
_PASSED = (
    "resolved", "is_resolved", "solved", "is_solved", "passed", "is_passed", "success", "is_success", "successful",
    "succeeded", "correct", "is_correct", "pass", "outcome", "verdict",
)  # fmt: skip
_SCORED = ("reward", "score")
_MODEL = ("model_id", "model", "model_name", "model_name_or_path")
_AGENT = ("agent_type", "agent", "agent_name", "scaffold", "system", "harness")
_RUN = ("run_id", "run", "run_name", "submission", "submission_id", "experiment", "experiment_id")
_SUMS = frozenset((
    "n", "count", "n_samples", "num_samples", "n_tasks", "num_tasks", "n_instances", "num_instances", "n_trials",
    "num_trials", "num_runs", "n_runs", "total", "accuracy", "stderr", "std", "pass_rate", "success_rate",
    "resolve_rate", "resolved_rate", "mean_score", "avg_score", "average", "pass_1", "pass_at_1", "rank",
))  # fmt: skip
"""What a row over several attempts has: it is none."""
KNOBS = {
    "model_id": _MODEL,
    "agent_type": _AGENT,
    "agent_version": ("agent_version",),
    "dataset": ("dataset", "benchmark"),
    "split": ("split",),
    "condition": ("condition",),
    "seed": ("seed",),
    "repeat": ("attempt", "attempt_index", "epoch", "repetition", "repeat"),
    "reasoning_effort": ("reasoning_effort", "effort"),
    "temperature": ("temperature",),
    "tools": ("tools",),
    "timeout_s": ("timeout_s",),
    "attempt1_tool_cap": ("tool_cap", "attempt1_tool_cap"),
    "max_steps": ("max_steps", "max_turns", "step_limit"),
    "max_retries": ("max_retries", "retries"),
    "cost_limit": ("cost_limit",),
}
"""Who was tried, by the columns' usual names, best first; other columns are the table's own."""
FIGURES = {
    "run_id": _RUN,
    "cost_usd": ("cost_usd", "total_cost_usd", "cost"),
    "input_tokens": ("input_tokens", "n_input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "n_output_tokens", "completion_tokens"),
    "wall_time_s": ("wall_time_s", "duration_s", "duration_seconds", "elapsed_s", "runtime_s"),
    "exit_status": ("exit_status", "failure_mode"),
    "model_patch": ("model_patch",),
}
_YES = frozenset(("true", "yes", "1", "1.0", "resolved", "solved", "pass", "passed", "success", "correct"))
_NO = frozenset(
    ("false", "no", "0", "0.0", "unresolved", "unsolved", "fail", "failed", "failure", "incorrect", "wrong")
)
_NOT_JUDGED = frozenset(("", "none", "null", "nan", "na", "n/a", "error", "timeout", "skipped", "not_judged"))
_LONGEST_NAME = 300
"""Characters of a task's name: what is longer is its text."""
_APART = re.compile(r"[\s.@/-]+")


class Columns(Struct, frozen=True, kw_only=True):
    """The columns of a table that are read, as the table spells them."""

    task: str | None
    passed: str | None
    """Says yes or no."""
    score: str | None
    """A number."""
    settings: dict[str, str]
    """By the name of the knob or figure."""
    lacks: str
    """The reason for which it is no table of outcomes; empty where it is."""
    is_near: bool = False
    """It lacks one thing alone, and what it has hardly anything else has."""
    is_swe_bench: bool = False

    @property
    def outcomes(self) -> list[str]:
        return [name for name in (self.passed, self.score) if name is not None]

    @property
    def read(self) -> frozenset[str]:
        return frozenset((*self.outcomes, *self.settings.values(), *([self.task] if self.task else [])))


def columns_of(names: Iterable[str]) -> Columns:
    """By their names, in any case and with any signs between the words."""
    return _columns_of(tuple(names))


@lru_cache(maxsize=1024)
def _columns_of(names: tuple[str, ...]) -> Columns:
    """Asked of every file of JSON, by two formats; an agent's records begin alike."""
    spelt: dict[str, str] = {}
    for name in names:
        spelt.setdefault(_APART.sub("_", name.strip().lower()).strip("_"), name)
    task, passed, score = (_first(spelt, usual) for usual in (_TASK, _PASSED, _SCORED))
    usually = (*KNOBS.items(), *FIGURES.items())
    settings = {knob: column for knob, usual in usually if (column := _first(spelt, usual)) is not None}
    is_swe_bench = "instance_id" in spelt and "resolved" in spelt
    has_id = any(usual in spelt for usual in _NAMED_TASK)
    is_tried = any(usual in spelt for usual in (*_MODEL, *_AGENT, *_RUN))
    lacks = [
        reason
        for reason, is_there in (
            ("no_task_column", task is not None and (has_id or passed is not None)),
            ("no_outcome_column", passed is not None or score is not None),
            ("no_model_column", is_tried or is_swe_bench),
            ("rows_of_sums", _SUMS.isdisjoint(spelt)),
        )
        if not is_there
    ]
    return Columns(
        task=task,
        passed=passed,
        score=score,
        settings=settings,
        lacks=lacks[0] if lacks else "",
        is_near=len(lacks) == 1
        and (passed is not None or lacks == ["no_outcome_column"])
        and (has_id or lacks == ["no_task_column"]),
        is_swe_bench=is_swe_bench,
    )


def _first(spelt: Mapping[str, str], usual: Iterable[str]) -> str | None:
    return next((spelt[name] for name in usual if name in spelt), None)


def are_rows(rows: Sequence[Mapping[str, Any]], columns: Columns) -> bool:
    """Whether most of them are: a broken one costs itself."""
    return 2 * sum(is_row(row, columns) for row in rows) > len(rows)


def is_row(row: Mapping[str, Any], columns: Columns) -> bool:
    """Whether it names a task, and what stands in its columns of outcomes may stand there."""
    task = row.get(columns.task or "")
    is_named = (isinstance(task, str) and 0 < len(task) <= _LONGEST_NAME) or (
        type(task) is int and not columns.is_swe_bench
    )
    passed, score = row.get(columns.passed or ""), row.get(columns.score or "")
    return (
        is_named
        and any(name in row for name in columns.outcomes)
        and (is_missing(passed) or verdict(passed) is not None)
        and (is_missing(score) or score_of(score) is not None)
    )


def is_missing(value: object) -> bool:
    """Whether it says that nobody judged."""
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in _NOT_JUDGED)  # noqa: PLR0124


def verdict(value: object) -> bool | None:
    """Yes or no, as people write it; None of anything else."""
    word = str(value).strip().lower() if isinstance(value, bool | int | float | str) else ""
    return True if word in _YES else False if word in _NO else None


def score_of(value: object) -> float | None:
    """A number; None of what is none, and of yes and no."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
