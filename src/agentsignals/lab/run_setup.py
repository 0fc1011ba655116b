"""What a run of the lab begins with: tasks by name, conditions of a file, a model or a server, the manifest."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from agentsignals.errors import LabError
from agentsignals.lab import sandbox, texts
from agentsignals.lab.coding_tasks import PUBLISHED, Task, Variant, task, tasks, variant
from agentsignals.lab.conditions import BASELINE, Condition
from agentsignals.lab.evaluation.case_runs import Confinement
from agentsignals.lab.residual.interface import Calibration, Loading, Prompt, ResidualModel, Writer
from agentsignals.lab.retry.loop import Plan, Steered
from agentsignals.lab.retry.wording import wording
from agentsignals.lab.runs import Config, Manifest, Row, Run, packages
from agentsignals.lab.sandbox import Tier

if TYPE_CHECKING:
    from agentsignals.lab.directions import DirectionSet

EVALUATOR = "1"
TINY = "tiny:"
CALIBRATION_PROMPTS = 32
"""Prompts that norms are measured on, and that manipulation checks compare: openings of the run's own tasks."""
_LONGEST_NAME = 80


class ManipulationRow(Row, frozen=True, kw_only=True):
    """What a condition did to the model on fixed prompts (`steering.Manipulation`)."""

    KEY = ("condition",)
    condition: str
    kl: float
    shift: float | None
    anti_steered: float | None
    n: int


class Asked(Struct, frozen=True, kw_only=True):
    """What a person asks of a retry loop."""

    tasks: str = "all"
    variants: tuple[str, ...] = ("plain",)
    conditions: Path | None = None
    directions: Path | None = None
    samples: int = 1
    attempts: int = 3
    temperature: float = 0.2
    max_new_tokens: int = 360
    seed: int = 13
    tier: Tier = "default"
    allow_weak: bool = False
    """Runs answers in whatever sandbox there is."""
    wording: str = "plain"


class Begun(Struct, frozen=True):
    """A run that is open, with what its loop needs."""

    run: Run
    plan: Plan
    tasks: list[Task]
    conditions: list[Condition]
    samples: int


def chosen_tasks(named: str, variants: Sequence[str] = ("plain",), seed: int = 13) -> list[Task]:
    """Tasks by what a person writes: `all`, `published`, `tiny:COUNT`, or names, keys and families between commas.

    LabError for what is not there, for a variant that is none, and for variants of tiny tasks, which have none.
    """
    wanted = [_variant(name) for name in variants]
    if named.startswith(TINY):
        if wanted != ["plain"]:
            raise LabError("Tasks of the tiny world have no variants.", "Leave --variants out.")
        return _tiny(named.removeprefix(TINY), seed)
    if named == "all":
        return tasks(variants=wanted)
    names = list(PUBLISHED) if named == "published" else [name for name in named.split(",") if name]
    families = {candidate.family for candidate in tasks()}
    by_key: dict[str, Task] = {}
    for name in names:
        group = tasks(families=[name]) if name in families else [task(name)]
        for candidate in group:
            for each in [candidate] if candidate.variant != "plain" else [variant(candidate, kind) for kind in wanted]:
                by_key[each.key] = each
    if not by_key:
        raise LabError(f"{named!r} names no task.", f"Say all, published, tiny:COUNT, or of {', '.join(families)}.")
    return list(by_key.values())


def _variant(name: str) -> Variant:
    for kind in get_args(Variant):
        if name == kind:
            chosen: Variant = kind
            return chosen
    raise LabError(f"There is no variant {name!r}.", f"Say one of {', '.join(get_args(Variant))}.")


def _tiny(count: str, seed: int) -> list[Task]:
    from agentsignals.lab.tiny.tasks import drawn  # noqa: PLC0415  (only who asks for it)

    # More than so many different ones are hard to draw: they are 19 addends by pairs of inputs.
    if not count.isdecimal() or not 1 <= int(count) <= 5_000:
        raise LabError(f"{count!r} is no number of tiny tasks.", "Write tiny:60, and at most 5000.")
    return drawn(int(count), seed)


def read_conditions(path: Path | None) -> list[Condition]:
    """The conditions of a TOML file, `[[condition]]` each; the baseline comes first, named or not.

    LabError when it can't be read, has an unknown setting or a name twice.
    """
    if path is None:
        return [BASELINE]
    try:
        document = tomllib.loads(path.read_text("utf-8"))
        tables = document.pop("condition", [])
        if document or not isinstance(tables, list) or not tables:
            raise LabError(f"{path} has no list of conditions.", "Write [[condition]] and name = … for each.")
        conditions = [_condition(table) for table in tables]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise LabError(f"The conditions {path} can't be read: {problem}", "See docs/lab.md.") from problem
    names = [condition.name for condition in conditions]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise LabError(f"{path} has two conditions called {twice[0]!r}.", "Rows are told apart by that name.")
    return conditions if BASELINE.name in names else [BASELINE, *conditions]


def checked(asked: Asked) -> None:
    """LabError where tasks, conditions or wording are not what they should be; nothing is made or loaded."""
    chosen_tasks(asked.tasks, asked.variants, asked.seed)
    read_conditions(asked.conditions)
    wording(asked.wording)


def _condition(table: Any) -> Condition:
    made = msgspec.convert(table, Condition)
    fields = Condition.__struct_fields__
    if unknown := sorted(set(table) - set(fields)):
        raise LabError(f"A condition has no {unknown[0]!r}.", f"It has {', '.join(fields)}.")
    if not made.name.strip() or len(made.name) > _LONGEST_NAME or not made.name.isprintable():
        raise LabError(f"{made.name[:_LONGEST_NAME]!r} is no name.", f"At most {_LONGEST_NAME} printable characters.")
    return made


def loaded(named: str, revision: str | None = None, dtype: str = "auto", device: str | None = None) -> ResidualModel:
    """A model in this process, from a folder or the Hub. LabError when it, or a package, is missing."""
    from agentsignals.lab.residual import load  # noqa: PLC0415  (torch takes seconds)

    return load(named, Loading(revision=revision, dtype=dtype, device=device))


def served(url: str, model: str, tell: Callable[[str], None]) -> tuple[Writer, dict[str, Any]]:
    """A model behind a server, and its card. What a URL holds of names and passwords is not in the card."""
    from agentsignals.lab.served_model import Served  # noqa: PLC0415

    writer = Served(f"{model}@{url}", tell=tell)
    parts = urlsplit(writer.url)
    where = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
    return writer, {"name": model, "server": where}


def card_of(model: ResidualModel) -> dict[str, Any]:
    """A model's card as plain data."""
    card: dict[str, Any] = msgspec.to_builtins(model.card)
    return card


def manifest(card: dict[str, Any], seed: int, tier: str) -> Manifest:
    """What a run beginning now stands on."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return Manifest(
        model=card,
        evaluator=EVALUATOR,
        texts=texts.fingerprint(),
        sandbox=tier,
        seed=seed,
        packages=packages(),
        started_at=now,
    )


def begin(folder: Path, asked: Asked, card: dict[str, Any]) -> Begun:
    """Opens a retry loop's run in a new folder, or goes on with it. LabError for what is not there or does not fit;
    SandboxError when this machine has no such tier: before a model answers anything."""
    tier = sandbox.call("def f():\n    pass\n", "f", [()], tier=asked.tier, allow_weak=asked.allow_weak).tier
    if asked.samples < 1 or asked.attempts < 1:
        raise LabError("No samples or no attempts were asked for.", "One of each at least.")
    chosen = chosen_tasks(asked.tasks, asked.variants, asked.seed)
    conditions = read_conditions(asked.conditions)
    if asked.directions is None and (steering := [condition.name for condition in conditions if condition.steers]):
        raise LabError(f"Condition {steering[0]!r} steers, and no directions came.", "Give --directions, with --model.")
    plan = Plan(
        wording=wording(asked.wording),
        attempts=asked.attempts,
        max_new_tokens=asked.max_new_tokens,
        temperature=asked.temperature,
        seed=asked.seed,
        inside=Confinement(tier=asked.tier, allow_weak=asked.allow_weak),
    )
    settings: dict[str, Any] = {
        "tasks": [task.key for task in chosen],
        "conditions": msgspec.to_builtins(conditions),
        "directions": _digest(asked.directions),
        "samples": asked.samples,
        "attempts": asked.attempts,
        "temperature": asked.temperature,
        "top_p": plan.top_p,
        "max_new_tokens": asked.max_new_tokens,
        "wording": asked.wording,
    }
    run = Run.open(folder, Config("retry_loop", settings), manifest(card, asked.seed, tier))
    return Begun(run, plan, chosen, conditions, asked.samples)


def _digest(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as problem:
        raise LabError(f"{path} can't be read: {problem.strerror}.", "Name a file of directions.") from problem


def steered(model: ResidualModel, begun: Begun, path: Path | None) -> Steered:
    """The model with directions and calibrated doses, and what each condition does to it as rows of the run."""
    from agentsignals.lab import directions  # noqa: PLC0415  (NumPy is of an extra)
    from agentsignals.lab.steering import edits  # noqa: PLC0415  (as above)

    of = directions.read(path) if path is not None else None
    if of is not None and of.vectors.shape[2] != model.card.width:
        raise LabError(f"{path} is of a model of width {of.vectors.shape[2]}.", f"This one has {model.card.width}.")
    prompts = _openings(model, begun)
    norms = model.calibrate(prompts)
    for condition in begun.conditions:
        edits(condition, of, norms)  # a direction or layer that is not there is told before the first answer
    _check(model, begun, prompts, norms, of)
    return Steered(model, of, norms)


def _openings(model: ResidualModel, begun: Begun) -> list[Prompt]:
    tone = begun.conditions[0].tone
    return [model.encode(begun.plan.wording.opening(task, tone)) for task in begun.tasks[:CALIBRATION_PROMPTS]]


def _check(
    model: ResidualModel,
    begun: Begun,
    prompts: list[Prompt],
    norms: Calibration,
    of: DirectionSet | None,
) -> None:
    from agentsignals.lab.steering import manipulation  # noqa: PLC0415  (as above)

    table = begun.run.table("manipulation", ManipulationRow)
    for condition in begun.conditions:
        if not condition.steers or (condition.name,) in table:
            continue
        check = manipulation(model, prompts, condition, of, norms)
        fields = msgspec.structs.asdict(check)
        table.add([ManipulationRow(**fields)])


def settings_of(path: str | None) -> dict[str, Any]:
    """An experiment's settings from a TOML file; none named: none. LabError when it can't be read."""
    if path is None:
        return {}
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise LabError(f"The settings {path} can't be read: {problem}", "They are written as TOML.") from problem


def begin_experiment(folder: Path, name: str, config: Any, model: ResidualModel, seed: int) -> Run:
    """Opens an experiment's run in a new folder, or goes on with it."""
    tier = "default" if "default" in sandbox.tiers() else "none"  # as `Confinement` has it
    return Run.open(folder, Config(name, msgspec.to_builtins(config)), manifest(card_of(model), seed, tier))
