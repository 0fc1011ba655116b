"""A retry loop kept on disk: set up from a person's options, done once an episode whatever interrupts it, and traced.

An episode's trace is what `analyze` reads, one JSON object a line: a header with the format's mark, then messages in
order, each answer followed by what became of it. A line stands for what the model met; nothing of hidden cases is in it
but whether they passed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab import sandbox, texts
from agentsignals_lab.coding_tasks import BENCHMARKS, TaskFile, chosen_tasks, files_of, task_files
from agentsignals_lab.coding_tasks.cases import Task, examples, words
from agentsignals_lab.conditions import BASELINE, Condition, ConditionFile, beside, check_directions, read_conditions
from agentsignals_lab.evaluation import EVALUATOR, evaluate
from agentsignals_lab.residual import Generation, Prompt
from agentsignals_lab.retry_loop import (
    EPISODE_KEY,
    AttemptRow,
    Episode,
    EpisodeRow,
    First,
    ManipulationRow,
    Plan,
    ProjectionRow,
    Steered,
    Work,
    Writer,
    episodes,
)
from agentsignals_lab.runs import Config, Manifest, Run, Table, versions_of
from agentsignals_lab.texts import Words, after_a_failure

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel


CALIBRATION_PROMPTS = 32
"""Prompts that norms are measured on, openings of the run's own tasks; and those that manipulation checks compare, the
same tasks after a failed attempt, so that there is feedback to act on."""


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
    left_out: dict[str, int]
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
    how = {name: getattr(asked, name) for name in ("attempts", "temperature", "max_new_tokens")}
    plan = Plan(wording=of.conditions.wording, seed=asked.seed, **how)
    settings: dict[str, Any] = {
        "tasks": [task.key for task in chosen],
        "conditions": msgspec.to_builtins(conditions),
        "directions": digest(asked.directions),
        "samples": asked.samples,
        "top_p": plan.top_p,
        **how,
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
        verdicts = list(pool.map(lambda t: evaluate(t, "", source=t.reference), of_file.values()))
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
            table.add([manipulation(model, prompts, condition, of, norms, unsteered)])
    return Steered(model, of, norms)


MARK = "agentsignals_lab"
VERSION = 1

_SCORED = (
    "attempt", "seed", "prompt_tokens", "tokens", "finish", "error", "error_class", "valid_python", "visible_pass",
    "hidden_pass", "full_pass", "visible_passed", "n_visible", "hidden_passed", "n_hidden", "hardcoded",
    "marker_score",
    "frustration_per_100_words", "desperation_per_100_words", "give_up_per_100_words", "source",
)  # fmt: skip
"""Columns of an attempt that are not said in its messages. What differs between two runs of the same work, the time
its code took, is left to the table."""


def run_id(config: Config, manifest: Manifest) -> str:
    """Names a run wherever its folder lies: 12 hex digits over what was asked, what it ran on, and when it began."""
    encoded = msgspec.json.encode([config, manifest])
    return hashlib.sha256(encoded).hexdigest()[:12]


def name_of(condition: str, task: str, sample: int) -> str:
    """Where the trace of an episode lies below `traces`, without its ending. Names are people's: none leaves the
    folder, and no two share a file."""
    return f"{_part(condition)}/{_part(task)}-{sample}"


def _part(name: str) -> str:
    quoted = quote(name, safe="+@ ")
    return quoted.replace(".", "%2E") if quoted.startswith(".") else quoted


def lines(done: Episode, plan: Plan, run: str, manifest: Manifest, steered: Steered | None) -> list[dict[str, Any]]:
    """The trace of an episode that is over."""
    task, condition, episode = done.task, done.condition, done.episode
    treatment = msgspec.to_builtins(condition)
    if condition.steers and steered is not None and steered.directions is not None:
        treatment |= {"recipe": steered.directions.recipe, "directions_of": steered.directions.model}
    header = {
        MARK: VERSION,
        "trial_id": f"{run}/{condition.name}/{task.key}-{episode.sample}",
        "run_id": run,
        "condition": treatment,
        "task": {"key": task.key, "family": task.family, "says": words(task), "tests": examples(task)},
        "max_attempts": plan.attempts,
        **{name: getattr(manifest, name) for name in ("started_at", "model", "texts", "packages")},
        **{name: getattr(episode, name) for name in ("sample", "evaluator", "tier")},
        **{name: getattr(plan, name) for name in ("seed", "temperature", "top_p", "max_new_tokens")},
    }
    records, rows = [header], iter(done.attempts)
    for message in done.chat:
        records.append({"message": msgspec.to_builtins(message)})
        if message.speaker == "assistant":
            row = next(rows)
            records.append({"attempt": {name: getattr(row, name) for name in _SCORED}})
    return [*records, {"final": msgspec.to_builtins(episode)}]


Progress = Callable[[str, int, int | None], None]


class Ran(Struct, frozen=True):
    """Result of a call of `run_loop`."""

    episodes: int
    """In the run now."""
    new: int
    """Done by this call."""


def run_loop(  # noqa: PLR0913  (what a loop is of)
    run: Run,
    writer: Writer,
    plan: Plan,
    conditions: Sequence[Condition],
    tasks: Sequence[Task],
    samples: int,
    steered: Steered | None = None,
    progress: Progress | None = None,
) -> Ran:
    """Runs each (condition, task, sample) that the run does not have yet, all conditions of a task side by side: rows
    of `episodes`, `attempts` and `projections`, and a trace each, as soon as an episode is over.

    An episode's row is written last and says that it is whole; what an interrupted one left is taken away first, so
    that a server's second answers do not mix with its first. LabError when two conditions share a name.
    """
    names = [chosen.name for chosen in conditions]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise LabError(f"Two conditions are called {twice[0]!r}.", "Rename one of them.")
    kept = run.table("episodes", EpisodeRow)
    others: list[Table[Any]] = [run.table("attempts", AttemptRow), run.table("projections", ProjectionRow)]
    for table in others:
        table.rewrite([row for row in table.rows if row.key[: len(EPISODE_KEY)] in kept])
    order = [(c, t, s) for s in range(samples) for t in tasks for c in conditions]
    work = [Work(c, t, s) for c, t, s in order if (c.name, t.key, s) not in kept]
    before, traced = len(kept.rows), run_id(run.config, run.manifest)
    try:
        for done in episodes(writer, plan, work, steered, _firsts(run, conditions)):
            episode = done.episode
            others[0].add(done.attempts)
            others[1].add(done.projections)
            trace = lines(done, plan, traced, run.manifest, steered)
            run.write_trace(name_of(episode.condition, episode.task, episode.sample), trace)
            kept.add([episode])
            if progress is not None:
                progress("episodes", len(kept.rows), len(order))
    finally:
        # Rows come as episodes end, which no two runs do alike.
        sorting = enumerate((c.name, t.key, s) for c in conditions for t in tasks for s in range(samples))
        places: dict[tuple[object, ...], int] = {key: n for n, key in sorting}
        every: list[Table[Any]] = [kept, *others]
        for table in every:
            table.rewrite(sorted(table.rows, key=lambda row: places.get(row.key[: len(EPISODE_KEY)], len(places))))
    return Ran(len(kept.rows), len(kept.rows) - before)


def _firsts(run: Run, conditions: Sequence[Condition]) -> dict[First, Generation]:
    """First attempts that are there already and that other conditions share."""
    sharing = {c.name: c for c in conditions if not c.acts_before_feedback}
    return {
        (sharing[row.condition].tone, row.task, row.sample): Generation(
            text=row.answer,
            tokens=(),
            finish="length" if row.finish == "length" else "stop",
            prompt_tokens=row.prompt_tokens,
            new_tokens=row.tokens,
            logprob_sum=row.logprob_sum,
        )
        for row in run.table("attempts", AttemptRow).rows
        if row.attempt == 0 and row.condition in sharing
    }
