"""Setup of a run of the lab: tasks by name, conditions of a file, a model or a server, the manifest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab import sandbox, texts
from agentsignals_lab.answer_streams import Writer
from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.coding_tasks.benchmarks import BENCHMARKS
from agentsignals_lab.coding_tasks.chosen import chosen_tasks, files_of, task_files
from agentsignals_lab.coding_tasks.task_files import TaskFile
from agentsignals_lab.condition_files import check_directions, read_conditions, wording_of
from agentsignals_lab.conditions import BASELINE, Condition, beside
from agentsignals_lab.evaluation.evaluator import evaluate
from agentsignals_lab.evaluation.verdict import EVALUATOR
from agentsignals_lab.residual.interface import Calibration, Loading, Prompt
from agentsignals_lab.retry.loop import Plan, Steered
from agentsignals_lab.retry.wording import Words, after_a_failure
from agentsignals_lab.runs import Config, Manifest, Row, Run, packages

if TYPE_CHECKING:
    from agentsignals_lab.directions import DirectionSet
    from agentsignals_lab.residual.model import HookedModel

CALIBRATION_PROMPTS = 32
"""Prompts that norms are measured on, openings of the run's own tasks; and those that manipulation checks compare, the
same tasks after a failed attempt, so that there is feedback to act on."""


class ManipulationRow(Row, frozen=True, kw_only=True):
    """Effect of a condition on the model on fixed prompts (`steering.Manipulation`)."""

    KEY = ("condition",)
    condition: str
    verdict: str = ""
    """`moved`, `nothing`, or `not testable`; empty in runs of before there was one."""
    kl: float | None
    noise: float | None = None
    shift: float | None
    anti_steered: float | None
    n: int


class Asked(Struct, frozen=True, kw_only=True):
    """Options of a retry loop as a person gave them."""

    tasks: str = "all"
    variants: tuple[str, ...] = ("plain",)
    conditions: Path | None = None
    only: tuple[str, ...] = ()
    """Names of conditions, the baseline beside them; none named: all of the file."""
    directions: Path | None = None
    samples: int = 1
    attempts: int = 3
    temperature: float = 0.2
    max_new_tokens: int = 360
    seed: int = 13
    wording: str = "plain"


class Begun(Struct, frozen=True, kw_only=True):
    """A run that is open, with what its loop needs."""

    run: Run
    plan: Plan
    tasks: list[Task]
    conditions: list[Condition]
    samples: int
    left_out: dict[str, int] = {}
    """Tasks of files that can't be asked, by file."""


def checked(asked: Asked) -> None:
    """LabError where tasks, conditions, tones, directions or wording are not what they should be; nothing is made or
    loaded."""
    chosen = chosen_tasks(asked.tasks, asked.variants, asked.seed)
    file = read_conditions(asked.conditions, asked.only)
    words = wording_of(asked.wording, file)
    for task in chosen:
        words.opening(task, file.conditions[0].tone)
    check_directions(asked.directions, file.conditions)


def loaded(named: str, how: Loading) -> HookedModel:
    """A model in this process, from a folder or the Hub. LabError when it, or a package, is missing."""
    from agentsignals_lab.residual import load  # noqa: PLC0415  (torch takes seconds)

    return load(named, how)


def served(url: str, model: str, tell: Callable[[str], None], calls: int = 8) -> tuple[Writer, dict[str, Any]]:
    """A model behind a server, asked `calls` at a time, and its card. What a URL holds of names and passwords is not in
    the card."""
    from agentsignals_lab.served_model import Served  # noqa: PLC0415

    writer = Served(f"{model}@{url}", concurrency=calls, tell=tell)
    parts = urlsplit(writer.url)
    where = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
    return writer, {"name": model, "server": where}


def card_of(model: HookedModel) -> dict[str, Any]:
    """A model's card as plain data."""
    card: dict[str, Any] = msgspec.to_builtins(model.card)
    if not model.card.exact:
        del card["exact"]  # as in runs that were begun before there was an exact mode: they go on
    return card


def manifest(card: dict[str, Any], seed: int, files: dict[str, str] | None = None) -> Manifest:
    """Return the manifest of a run beginning now."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return Manifest(
        model=card,
        evaluator=EVALUATOR,
        texts=texts.fingerprint(),
        sandbox=sandbox.TIER,
        seed=seed,
        packages=packages(),
        started_at=now,
        files=files or {},
    )


def begin(folder: Path, asked: Asked, card: dict[str, Any]) -> Begun:
    """Opens a retry loop's run in a new folder, or goes on with it. LabError for what is not there or does not fit;
    SandboxError when this machine has no sandbox: before a model answers anything."""
    sandbox.require()
    if asked.samples < 1 or asked.attempts < 1:
        raise LabError("No samples or no attempts were asked for.", "One of each at least.")
    if not card.get("has_chat_template", True) and asked.attempts > 1:
        raise LabError(
            f"{card['name']} has no chat template, so it can't be told what failed.",
            "Take an instruct model, or --attempts 1.",
        )
    files = task_files(asked.tasks)
    chosen, unsound = _sound(chosen_tasks(asked.tasks, asked.variants, asked.seed), files)
    file = read_conditions(asked.conditions, asked.only)
    conditions = list(file.conditions)
    if asked.directions is None and (steering := [condition.name for condition in conditions if condition.steers]):
        others = " ".join(
            f"--condition {one.name!r}" for one in conditions if not one.steers and one.name != BASELINE.name
        )
        raise LabError(
            f"Condition {steering[0]!r} steers, and no directions came.",
            f"Give --directions, with --model{f', or run the others: {others}' if others else ''}.",
        )
    plan = Plan(
        wording=wording_of(asked.wording, file),
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
        "wording": asked.wording,
    }
    if file.tones or file.words is not None:
        settings |= {"tones": msgspec.to_builtins(file.tones), "words": msgspec.to_builtins(file.words or Words())}
    hashes = files_of(asked.tasks)
    run = Run.open(folder, Config("retry_loop", settings), manifest(card, asked.seed, hashes))
    run.keep_tasks(task for read in files.values() for task in read.tasks)
    left_out = {
        name: n for name, read in files.items() if (n := len(read.left_out) + sum(t.id in unsound for t in read.tasks))
    }
    return Begun(run=run, plan=plan, tasks=chosen, conditions=conditions, samples=asked.samples, left_out=left_out)


def _sound(chosen: list[Task], files: Mapping[str, TaskFile]) -> tuple[list[Task], set[str]]:
    """The tasks without those of a benchmark whose own solution does not pass here, and the ids of these. LabError for
    such a task of this package's shape: who wrote it can mend it."""
    of_file = {task.key: task for read in files.values() for task in read.tasks if task.reference}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(
            pool.map(lambda t: evaluate(t, t.reference, source=t.reference if t.function else None), of_file.values())
        )
    failing = {task: verdict for task, verdict in zip(of_file.values(), verdicts, strict=True) if not verdict.task_pass}
    for task, verdict in failing.items():
        if task.family not in BENCHMARKS:
            raise LabError(
                f"Task {task.id!r}: its own reference does not pass: {verdict.error or verdict.error_class}.",
                "Mend the reference or the cases: what no right answer passes measures nothing.",
            )
    left = {task.id for task in failing}
    if left and not (kept := [task for task in chosen if task.id not in left]):
        raise LabError("No task is left whose own reference passes here.", "Name other tasks.")
    return (kept, left) if left else (chosen, left)


def digest(path: Path | None) -> str | None:
    """SHA-256 of a file; LabError when it can't be read."""
    if path is None:
        return None
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as problem:
        raise LabError(f"{path} can't be read: {problem.strerror}.", "Name a file of directions.") from problem


def steered(model: HookedModel, begun: Begun, path: Path | None) -> Steered:
    """The model with directions and calibrated doses, and what each condition does to it as rows of the run."""
    from agentsignals_lab import directions  # noqa: PLC0415  (NumPy is of an extra)
    from agentsignals_lab.steering import edits  # noqa: PLC0415  (as above)

    of = directions.read(path) if path is not None else None
    if of is not None and of.vectors.shape[2] != model.card.width:
        raise LabError(f"{path} is of a model of width {of.vectors.shape[2]}.", f"This one has {model.card.width}.")
    prompts = _openings(model, begun)
    norms = model.calibrate(prompts)
    for condition in begun.conditions:
        edits(condition, of, norms)  # a direction or layer that is not there is told before the first answer
    _check(model, begun, norms, of)
    return Steered(model, of, norms)


def _openings(model: HookedModel, begun: Begun) -> list[Prompt]:
    tone = begun.conditions[0].tone
    return [model.encode(begun.plan.wording.opening(task, tone)) for task in begun.tasks[:CALIBRATION_PROMPTS]]


def _check(
    model: HookedModel,
    begun: Begun,
    norms: Calibration,
    of: DirectionSet | None,
) -> None:
    from agentsignals_lab.steering import Unsteered, manipulation  # noqa: PLC0415  (as above)

    unsteered: dict[tuple[Prompt, ...], Unsteered] = {}
    table, controls = begun.run.table("manipulation", ManipulationRow), beside(begun.conditions)
    for condition in begun.conditions:
        if not condition.steers or condition.name in controls or (condition.name,) in table:
            continue
        tasks = begun.tasks[:CALIBRATION_PROMPTS]
        prompts = [model.encode(after_a_failure(begun.plan.wording, task, condition.tone)) for task in tasks]
        check = manipulation(model, prompts, condition, of, norms, unsteered)
        fields = msgspec.structs.asdict(check)
        table.add([ManipulationRow(**fields)])
