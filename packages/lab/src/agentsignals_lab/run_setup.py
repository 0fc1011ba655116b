"""Setup of a run of the lab: tasks by name, conditions of a file, the manifest, a model's directions and doses."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab import sandbox, texts
from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.coding_tasks.benchmarks import BENCHMARKS
from agentsignals_lab.coding_tasks.chosen import chosen_tasks, files_of, task_files
from agentsignals_lab.coding_tasks.task_files import TaskFile
from agentsignals_lab.condition_files import ConditionFile, check_directions, read_conditions
from agentsignals_lab.conditions import BASELINE, Condition, beside
from agentsignals_lab.evaluation.evaluator import evaluate
from agentsignals_lab.evaluation.verdict import EVALUATOR
from agentsignals_lab.residual.interface import Prompt
from agentsignals_lab.retry.loop import Plan, Steered
from agentsignals_lab.retry.wording import Words, after_a_failure
from agentsignals_lab.runs import Config, Manifest, Row, Run, versions_of

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel

CALIBRATION_PROMPTS = 32
"""Prompts that norms are measured on, openings of the run's own tasks; and those that manipulation checks compare, the
same tasks after a failed attempt, so that there is feedback to act on."""


class ManipulationRow(Row, frozen=True, kw_only=True):
    """Effect of a condition on the model on fixed prompts (`steering.Manipulation`)."""

    KEY = ("condition",)
    condition: str
    verdict: str
    """`moved`, `nothing`, or `not testable`."""
    kl: float | None
    noise: float | None = None
    shift: float | None
    anti_steered: float | None
    n: int


class Asked(Struct, frozen=True, kw_only=True):
    """Options of a retry loop as a person gave them (`lab agent`)."""

    tasks: str = "all"
    variants: str = "plain"
    conditions: str | None = None
    condition: Sequence[str] = ()
    """Names of conditions, the baseline beside them; none named: all of the file."""
    directions: str | None = None
    samples: int = 1
    attempts: int = 3
    temperature: float = 0.2
    max_new_tokens: int = 360
    seed: int = 13


class Prepared(Struct, frozen=True):
    """Options whose files are read and found to be right; nothing is made or loaded yet."""

    asked: Asked
    tasks: list[Task]
    files: dict[str, TaskFile]
    conditions: ConditionFile


class Begun(Struct, frozen=True, kw_only=True):
    """A run that is open, with what its loop needs."""

    run: Run
    plan: Plan
    tasks: list[Task]
    conditions: list[Condition]
    samples: int
    left_out: dict[str, int] = {}
    """Tasks of files that can't be asked, by file."""


def prepared(asked: Asked) -> Prepared:
    """LabError where tasks, conditions, tones or directions are not what they should be."""
    chosen = chosen_tasks(asked.tasks, asked.variants.split(","))
    file = read_conditions(Path(asked.conditions) if asked.conditions else None, asked.condition)
    check_directions(Path(asked.directions) if asked.directions else None, file.conditions)
    if asked.samples < 1 or asked.attempts < 1:
        raise LabError("No samples or no attempts were asked for.", "Ask for at least one of each.")
    return Prepared(asked, chosen, task_files(asked.tasks), file)


def manifest(card: dict[str, Any], seed: int, files: dict[str, str]) -> Manifest:
    """Return the manifest of a run beginning now."""
    return Manifest(
        model=card,
        evaluator=EVALUATOR,
        texts=texts.fingerprint(),
        sandbox=sandbox.TIER,
        seed=seed,
        packages=versions_of("agentsignals", "torch", "transformers", "tokenizers", "numpy"),
        started_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        files=files,
    )


def begin(folder: Path, of: Prepared, card: dict[str, Any]) -> Begun:
    """Opens a retry loop's run in a new folder, or goes on with it. LabError for what does not fit the model, or a
    reference that does not pass; SandboxError when this machine has no sandbox: before a model answers anything."""
    sandbox.require()
    asked, conditions = of.asked, list(of.conditions.conditions)
    if not card.get("has_chat_template", True) and asked.attempts > 1:
        raise LabError(
            f"{card['name']} has no chat template, so it can't receive feedback.",
            "Use an instruct model, or --attempts 1.",
        )
    if asked.directions is None and (steering := [condition.name for condition in conditions if condition.steers]):
        others = " ".join(
            f"--condition {one.name!r}" for one in conditions if not one.steers and one.name != BASELINE.name
        )
        raise LabError(
            f"Condition {steering[0]!r} steers, and no directions came.",
            f"Give --directions, with --model{f', or run the others: {others}' if others else ''}.",
        )
    chosen, unsound = _sound(of)
    plan = Plan(
        wording=of.conditions.wording,
        attempts=asked.attempts,
        max_new_tokens=asked.max_new_tokens,
        temperature=asked.temperature,
        seed=asked.seed,
    )
    settings: dict[str, Any] = {
        "tasks": [task.key for task in chosen],
        "conditions": msgspec.to_builtins(conditions),
        "directions": digest(asked.directions),
        "samples": asked.samples,
        "attempts": asked.attempts,
        "temperature": asked.temperature,
        "top_p": plan.top_p,
        "max_new_tokens": asked.max_new_tokens,
    }
    if of.conditions.tones or of.conditions.words is not None:
        settings |= {
            "tones": msgspec.to_builtins(of.conditions.tones),
            "words": msgspec.to_builtins(of.conditions.words or Words()),
        }
    run = Run.open(folder, Config("retry_loop", settings), manifest(card, asked.seed, files_of(asked.tasks)))
    run.keep_tasks(task for read in of.files.values() for task in read.tasks)
    left_out = {name: len(read.left_out) + sum(t.id in unsound for t in read.tasks) for name, read in of.files.items()}
    return Begun(
        run=run,
        plan=plan,
        tasks=chosen,
        conditions=conditions,
        samples=asked.samples,
        left_out={name: n for name, n in left_out.items() if n},
    )


def _sound(of: Prepared) -> tuple[list[Task], set[str]]:
    """The tasks without those of a benchmark whose own solution does not pass here, and the ids of these. LabError for
    such a task of this package's shape: who wrote it can mend it."""
    of_file = {task.key: task for read in of.files.values() for task in read.tasks if task.reference}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(
            pool.map(lambda t: evaluate(t, t.reference, source=t.reference if t.function else None), of_file.values())
        )
    failing = {task: verdict for task, verdict in zip(of_file.values(), verdicts, strict=True) if not verdict.full_pass}
    for task, verdict in failing.items():
        if task.family not in BENCHMARKS:
            raise LabError(
                f"The reference of task {task.id!r} fails its own cases: {verdict.error or verdict.error_class}.",
                "Correct the reference or the cases.",
            )
    left = {task.id for task in failing}
    kept = [task for task in of.tasks if task.id not in left]
    if not kept:
        raise LabError("No task is left: each one's own reference fails its cases here.", "Name other tasks.")
    return kept, left


def digest(path: str | None) -> str | None:
    """SHA-256 of a file; LabError when it can't be read."""
    if path is None:
        return None
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as problem:
        raise LabError(f"{path} can't be read: {problem.strerror}.", "Name a file of directions.") from problem


def steered(model: HookedModel, begun: Begun, path: str) -> Steered:
    """The model with directions and calibrated doses, and what each condition does to it as rows of the run."""
    from agentsignals_lab import directions  # noqa: PLC0415  (NumPy is of an extra)
    from agentsignals_lab.steering import Unsteered, edits, manipulation  # noqa: PLC0415  (as above)

    of = directions.read(Path(path))
    if of.vectors.shape[2] != model.card.width:
        raise LabError(
            f"The directions of {path} are of a model of width {of.vectors.shape[2]}; this one has {model.card.width}.",
            "Compute directions of this model: `agentsignals lab run directions`.",
        )
    tasks, wording, tone = begun.tasks[:CALIBRATION_PROMPTS], begun.plan.wording, begun.conditions[0].tone
    norms = model.calibrate([model.encode(wording.opening(task, tone)) for task in tasks])
    for condition in begun.conditions:
        edits(condition, of, norms)  # a direction or layer that is not there is told before the first answer
    unsteered: dict[tuple[Prompt, ...], Unsteered] = {}
    table, controls = begun.run.table("manipulation", ManipulationRow), beside(begun.conditions)
    for condition in begun.conditions:
        if condition.steers and condition.name not in controls and (condition.name,) not in table:
            prompts = [model.encode(after_a_failure(wording, task, condition.tone)) for task in tasks]
            check = manipulation(model, prompts, condition, of, norms, unsteered)
            table.add([ManipulationRow(**msgspec.structs.asdict(check))])
    return Steered(model, of, norms)
