"""Stored answers of a run, or of published ones, evaluated by another evaluator: what changes, and for whom.

The stored rows stay as they are: rows of two evaluators never stand in one table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from agentsignals.errors import LabError
from agentsignals.lab.coding_tasks import Task, id_of, keyed, task
from agentsignals.lab.comparing import RETRY_LOOP
from agentsignals.lab.evaluation.case_runs import Confinement
from agentsignals.lab.evaluation.rescoring import Change, Rescored, Rescorer
from agentsignals.lab.evaluation.verdict import EVALUATORS, Evaluator
from agentsignals.lab.retry.rows import AttemptRow
from agentsignals.lab.runs import Run
from agentsignals.lab.tiny import world

TINY_FAMILY = "add_"


class Group(Struct, frozen=True):
    """Outcomes of the answers of one condition, or of one published run."""

    name: str
    answers: int
    was: int
    """Passed their task before."""
    now: int
    changes: dict[Change, int]


class RescoredAnswers(Struct, frozen=True):
    """Verdicts of an evaluator on stored answers."""

    evaluator: Evaluator
    before: str
    """The evaluators of the stored verdicts."""
    groups: list[Group]
    rows: list[Rescored]
    """Each answer, with its new verdict."""


def rescored(
    folder: Path,
    evaluator: str,
    inside: Confinement | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> RescoredAnswers:
    """Evaluates the answers below a folder again: of a run of ours, else of published results.

    LabError for an unknown evaluator, for a run that is no retry loop, or for answers to tasks of another version.
    """
    by = next((name for name in EVALUATORS if name == evaluator), None)
    if by is None:
        raise LabError(f"There is no evaluator {evaluator!r}.", f"There are {', '.join(EVALUATORS)}.")
    done = Counter[str]()

    def tick() -> None:
        done["answers"] += 1
        if progress is not None:
            progress("answers", done["answers"], None)

    if (folder / "config.json").exists():
        return _of_run(Run.read(folder), by, Rescorer(inside, tick))
    from agentsignals.lab.evaluation.rescoring import rescore  # noqa: PLC0415  (the published tasks)

    rows = rescore(folder, by, inside, on_answer=tick)
    return RescoredAnswers(by, "as published", _groups(rows, [row.run for row in rows]), rows)


def _of_run(run: Run, evaluator: Evaluator, rescorer: Rescorer) -> RescoredAnswers:
    if run.config.experiment != RETRY_LOOP:
        raise LabError(f"{run.folder} is a run of {run.config.experiment}.", "Answers of retry loops are stored.")
    stored = run.table("attempts", AttemptRow).rows
    if not stored:
        raise LabError(f"{run.folder} has no answer yet.", "Run it again: it goes on.")
    of_files = run.tasks()
    rows = [_again(run.folder.name, row, task_of(row.task, of_files), evaluator, rescorer) for row in stored]
    before = " and ".join(sorted({row.evaluator for row in stored}))
    return RescoredAnswers(evaluator, before, _groups(rows, [row.condition for row in rows]), rows)


def _again(name: str, row: AttemptRow, of: Task, evaluator: Evaluator, rescorer: Rescorer) -> Rescored:
    return Rescored(
        run=name,
        task_id=row.task,
        condition=row.condition,
        attempt=row.attempt,
        seed=str(row.seed),
        was=row.full_pass,
        was_error=row.error,
        verdict=rescorer.verdict(of, row.answer, evaluator),
    )


def task_of(key: str, of_files: Mapping[str, Task] = {}) -> Task:
    """The task of a stored row: of a file (by id), of the tiny world, or the package's. LabError when it is there in
    another version."""
    if (plain := of_files.get(id_of(key))) is not None:
        return keyed(plain, key)
    if not key.startswith(TINY_FAMILY):
        return task(key)
    from agentsignals.lab.tiny.tasks import function_task  # noqa: PLC0415  (only for runs of the tiny world)

    parts = key.partition("@")[0].split("_")[1:]
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        return task(key)
    made = function_task(world.AddTask(int(parts[0]), (int(parts[1]), int(parts[2]))))
    if made.key != key:
        raise LabError(f"There is no task {key!r}.", f"This version has {made.key}.")
    return made


def _groups(rows: Sequence[Rescored], names: Sequence[str]) -> list[Group]:
    groups: dict[str, list[Rescored]] = {}
    for name, row in zip(names, rows, strict=True):
        groups.setdefault(name, []).append(row)
    return [
        Group(
            name,
            len(group),
            sum(row.was is True for row in group),
            sum(row.verdict.task_pass is True for row in group),
            dict(Counter(row.change for row in group)),
        )
        for name, group in groups.items()
    ]
