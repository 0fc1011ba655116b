"""Function tasks with visible and hidden cases, and their variants.

The function tasks are a file of tasks as anybody writes one (`functions.jsonl`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from agentsignals.errors import LabError

from agentsignals_lab.coding_tasks.task import Case, Check, Task, Variant, examples, shown, words
from agentsignals_lab.coding_tasks.task_files import read_tasks
from agentsignals_lab.coding_tasks.variants import hardcoded, variant, variant_named

__all__ = [
    "PUBLISHED",
    "Case",
    "Check",
    "Task",
    "Variant",
    "examples",
    "hardcoded",
    "shown",
    "task",
    "tasks",
    "variant",
    "variant_named",
    "words",
]

_FUNCTIONS = Path(__file__).with_name("functions.jsonl")

PUBLISHED = (
    "parse_duration", "merge_intervals", "stable_top_words", "mask_tokens",
    "normalize_codes", "bucket_score", "safe_divide",
)  # fmt: skip
"""Called like the tasks of the published study, for comparison; words and cases are ours, so results are not theirs."""


@cache
def _all() -> dict[str, Task]:
    return {task.id: task for task in read_tasks(_FUNCTIONS).tasks}


def tasks(
    names: Sequence[str] = (), families: Sequence[str] = (), variants: Sequence[Variant] = ("plain",)
) -> list[Task]:
    """The tasks of these names or families (none named: all), each in each variant. LabError for what is not there."""
    by_id = _all()
    there = dict.fromkeys(task.family for task in by_id.values())
    unknown = sorted(set(names) - set(by_id)) + sorted(set(families) - set(there))
    if unknown:
        raise LabError(f"There is no task or family {unknown[0]!r}.", f"Families: {', '.join(there)}.")
    chosen = [
        task for task in by_id.values() if (not names and not families) or task.id in names or task.family in families
    ]
    return [variant(task, name) for task in chosen for name in variants]


def task(key: str) -> Task:
    """The task of a key (`id`, `id@version`, either with `+variant`). LabError when there is none of that version."""
    name, _, wanted = key.partition("+")
    task_id, _, version = name.partition("@")
    (plain,) = tasks([task_id])
    if version and version != str(plain.version):
        raise LabError(
            f"Task {plain.id!r} is at version {plain.version}, not {version}.", "Name the task without a version."
        )
    return variant(plain, variant_named(wanted or "plain"))
