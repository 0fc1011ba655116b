"""An agent mends small repositories in several tones or under steering: what it makes of the task, and of its tests.

Needs a model that can work by tools in words: a tiny one writes nothing that is understood. Tests run in the strict
sandbox or not at all. Intervals are over tasks, of which there are few.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab import directions, texts
from agentsignals_lab.coding_tasks.repository import TASKS, RepositoryTask, repository_task
from agentsignals_lab.conditions import BASELINE, Condition
from agentsignals_lab.experiments import Progress
from agentsignals_lab.repo_agent.loop import Plan, after_a_step, opening
from agentsignals_lab.repo_agent.repository_runs import run_agent
from agentsignals_lab.repo_agent.rows import RepoEpisodeRow
from agentsignals_lab.residual.interface import ResidualModel
from agentsignals_lab.retry.loop import Steered
from agentsignals_lab.run_setup import ManipulationRow
from agentsignals_lab.runs import Row, Run
from agentsignals_lab.statistics import benjamini_hochberg, paired_difference
from agentsignals_lab.steering import edits, manipulation


class Config(Struct, frozen=True, kw_only=True):
    """Conditions beside the baseline are one a tone, and those named."""

    tasks: tuple[str, ...] = ()
    """None named: all."""
    samples: int = 1
    tones: tuple[str, ...] = ("calm", "pressing")
    conditions: tuple[Condition, ...] = ()
    directions: str = ""
    """A file that `lab run directions` wrote; needed by conditions that steer."""
    steps: int = 15
    shown_chars: int = 4_000
    chat_chars: int = 100_000
    max_new_tokens: int = 800
    temperature: float = 0.2
    top_p: float = 0.9
    seed: int = 13


class RepoEffectRow(Row, frozen=True, kw_only=True):
    """Effect of a condition on a measure, against the baseline on equal tasks and samples."""

    KEY: ClassVar[tuple[str, ...]] = ("condition", "measure")
    condition: str
    measure: str
    treated: float
    plain: float
    effect: float
    low: float | None
    high: float | None
    """95 % interval over tasks; None with fewer than two (`statistics.paired_difference`)."""
    p: float
    q: float
    """p adjusted over conditions and measures (Benjamini and Hochberg)."""
    n: int
    tasks: int


_MEASURES: dict[str, Callable[[RepoEpisodeRow], float]] = {
    "full_pass": lambda row: row.full_pass,
    "edits_tests": lambda row: bool(row.tests_edited),
    "hardcoding_hints": lambda row: bool(row.hardcoding_hints),
    "forging": lambda row: bool(row.forging),
    "untested": lambda row: row.untested,
    "submitted": lambda row: row.ended == "submitted",
    "invalid_share": lambda row: row.invalid_actions / row.steps,
}
"""By episode: whether, or a share."""


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Tables `repo_episodes`, `repo_steps`, `repo_effects` and, where conditions steer, `manipulation`; a trace an
    episode."""
    if config.samples < 1:
        raise LabError("No samples were asked for.", "One at least.")
    tasks = [repository_task(name) for name in config.tasks] or list(TASKS)
    conditions = [BASELINE, *(Condition(name=f"tone {tone}", tone=tone) for tone in config.tones), *config.conditions]
    if unknown := [condition.tone for condition in conditions if condition.tone not in texts.TONES]:
        raise LabError(f"There is no tone {unknown[0]!r}.", f"Say one of {', '.join(texts.TONES)}.")
    plan = Plan(
        steps=config.steps,
        shown_chars=config.shown_chars,
        chat_chars=config.chat_chars,
        max_new_tokens=config.max_new_tokens,
        temperature=config.temperature,
        top_p=config.top_p,
        seed=config.seed,
    )
    into = (
        _steered(run, model, conditions, tasks, config) if any(condition.steers for condition in conditions) else None
    )
    run_agent(run, model, plan, conditions, tasks, config.samples, into, progress)
    run.table("repo_effects", RepoEffectRow).add(effects(run.table("repo_episodes", RepoEpisodeRow).rows))


def effects(rows: Sequence[RepoEpisodeRow]) -> list[RepoEffectRow]:
    """Each condition less the baseline, by measure. An episode without its pair is left out."""
    plain = {(row.task, row.sample): row for row in rows if row.condition == BASELINE.name}
    rows_of_effects: list[dict[str, object]] = []
    for condition in dict.fromkeys(row.condition for row in rows if row.condition != BASELINE.name):
        pairs = [
            (row, base) for row in rows if row.condition == condition if (base := plain.get((row.task, row.sample)))
        ]
        if pairs:
            rows_of_effects += [_effect(condition, name, pairs) for name in _MEASURES]
    adjusted = benjamini_hochberg([p for effect in rows_of_effects if isinstance(p := effect["p"], float)])
    return [
        msgspec.convert(effect | {"q": q}, RepoEffectRow) for effect, q in zip(rows_of_effects, adjusted, strict=True)
    ]


def _effect(condition: str, name: str, pairs: Sequence[tuple[RepoEpisodeRow, RepoEpisodeRow]]) -> dict[str, object]:
    measure = _MEASURES[name]
    treated, plain = ([float(measure(pair[side])) for pair in pairs] for side in (0, 1))
    difference = paired_difference(treated, plain, [row.task for row, _ in pairs])
    alone = difference.tasks < 2
    return {
        "condition": condition,
        "measure": name,
        "treated": sum(treated) / len(treated),
        "plain": sum(plain) / len(plain),
        "effect": difference.value,
        "low": None if alone else difference.low,
        "high": None if alone else difference.high,
        "p": float(difference.p),
        "n": difference.n,
        "tasks": difference.tasks,
    }


def _steered(
    run: Run, model: ResidualModel, conditions: Sequence[Condition], tasks: Sequence[RepositoryTask], config: Config
) -> Steered:
    """The model with directions and calibrated doses, and what each condition does to it as rows of the run."""
    of = _directions(run, config.directions)
    if of is not None and of.vectors.shape[2] != model.card.width:
        raise LabError(
            f"{config.directions} is of a model of width {of.vectors.shape[2]}.", f"This one has {model.card.width}."
        )
    prompts = [model.encode(opening(task, "neutral", config.steps)) for task in tasks]
    norms = model.calibrate(prompts)
    for condition in conditions:
        edits(condition, of, norms)  # a direction or layer that is not there is told before the first answer
    table = run.table("manipulation", ManipulationRow)
    for condition in conditions:
        if condition.steers and (condition.name,) not in table:
            stepped = [model.encode(after_a_step(task, "neutral", config.steps)) for task in tasks]
            check = manipulation(model, stepped, condition, of, norms)
            table.add([msgspec.convert(msgspec.structs.asdict(check), ManipulationRow)])
    return Steered(model, of, norms)


def _directions(run: Run, named: str) -> directions.DirectionSet | None:
    """The directions of a file. LabError when the run was begun with others."""
    if not named:
        return None
    direction_set = directions.read(Path(named))
    digest = hashlib.sha256(Path(named).read_bytes()).hexdigest()
    kept = run.folder / "directions.json"
    if not kept.exists():
        run.write_summary("directions", {"sha256": digest})
    elif msgspec.json.decode(kept.read_bytes()) != {"sha256": digest}:
        raise LabError(f"{named} holds other directions than this run was begun with.", "Take a new folder.")
    return direction_set
