"""One grid: what is done to the model, where, along which direction, to which outcome; against random directions.

`steer` adds a direction and `ablate` takes it out; `suppress` hides a place from all later tokens, and `patch` puts the
other tone's states there. Layers and doses are chosen on half of the tasks by what goes beyond random directions of the
same length, and judged on the other half (design/lab.md#tiny-models). One cell of many beats its random directions by
chance: p is adjusted over all that were asked (Holm).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, cast, get_args

import numpy as np
from agentsignals.errors import LabError
from agentsignals.stats.paired import benjamini_hochberg, holm
from msgspec import Meta, Struct
from msgspec.structs import replace

from agentsignals_lab import directions
from agentsignals_lab.coding_tasks.cases import Task
from agentsignals_lab.directions import Array, DirectionSet
from agentsignals_lab.evaluation import extract, hardcoding, prose_markers
from agentsignals_lab.experiments import Progress, steps
from agentsignals_lab.experiments.setting import (
    Floats,
    Place,
    Scene,
    Setting,
    SettingConfig,
    Source,
    calibrated,
    chosen_layers,
    halves,
    learnt,
    setting,
)
from agentsignals_lab.residual import Ablate, Add, Calibration, Edit, Positions, Replace, Sampling, Suppress, place
from agentsignals_lab.runs import Row, Run, seed_of
from agentsignals_lab.statistics import FEWEST_RANDOMS, LEVEL, RANDOMS, caveat, p_random, paired_difference

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel

Intervention = Literal["steer", "ablate", "suppress", "patch"]
Kind = Literal["read", "hardcoded", "gave_up", "other_code", "no_code"]
"""`read`: the setting's outcome, read off the model without sampling. The others: kinds of one drawn answer a scene,
each of which is one of them; the code is not run."""
Reading = dict[Kind, Floats]
"""Outcomes of scenes, by kind."""

MOST_CHOOSING = 20
"""Random directions at each layer and dose that are chosen among: the choice carries no p, so few will do."""
_SOME = Meta(min_length=1)


class Config(Struct, frozen=True, kw_only=True):
    """The cells are all combinations of interventions, sources, places and outcomes."""

    setting: SettingConfig = SettingConfig()
    interventions: Annotated[tuple[Intervention, ...], _SOME] = ("steer",)
    sources: Annotated[tuple[str, ...], _SOME] = get_args(Source)
    """Where a direction is learnt; or the name of one in the file `directions`."""
    directions: str | None = None
    places: Annotated[tuple[Place, ...], _SOME] = ("feedback", "decision")
    layers: tuple[int, ...] = ()
    doses: Annotated[tuple[Annotated[float, Meta(gt=0)], ...], _SOME] = (0.5, 1.0, 2.0)
    """Fractions of a layer's median norm; both signs are tried. `ablate` takes none."""
    outcomes: Annotated[tuple[Kind, ...], _SOME] = ("read",)
    max_new_tokens: int = 360
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if "generated" in self.places and "patch" in self.interventions:
            raise ValueError("the place 'generated' has no states of the other tone to patch: leave it out")


class Cell(NamedTuple):
    """What is done to the model, on which scenes."""

    intervention: str
    """Of the grid; or `tone`: other feedback, and nothing is done to the model."""
    tone: str
    """Tone of the scenes."""
    place: str = ""
    source: str = ""
    """Where the direction was learnt. Of a patch: `denoise`, states of the worse tone in the better one's prompt;
    `noise`, the other way."""
    layer: int | None = None
    dose: float | None = None
    part: str = "all"
    """Scenes of the tasks that choose (`dev`), that judge (`test`), or of all."""


class OfCell(Row, frozen=True, kw_only=True):
    """A row of one outcome in a cell."""

    KEY: ClassVar[tuple[str, ...]] = (*Cell._fields, "outcome")
    intervention: str
    tone: str
    place: str
    source: str
    layer: int | None
    dose: float | None
    part: str
    outcome: str


class EffectRow(OfCell, frozen=True, kw_only=True):
    """Effect of a cell on one outcome: treated less plain, over its scenes."""

    unit: str
    treated: float | None = None
    plain: float | None = None
    effect: float | None = None
    """None where no scene fits a patch."""
    low: float | None = None
    high: float | None = None
    """95 % interval over tasks (`statistics.paired_difference`); None of one task."""
    p: float | None = None
    q: float | None = None
    """p adjusted over the effects of the run but those that choose (Benjamini and Hochberg)."""
    share: float | None = None
    """Of a patch: the effect as a share of what the two tones differ by; 1 is all of it."""
    opposed: float | None = None
    """The share of scenes that moved against the sign of a steering dose, else of the effect."""
    n: int = 0
    tasks: int = 0
    unfit: int = 0
    """Scenes left out of a patch: the place is longer in one tone than in the other."""


class ItemRow(OfCell, frozen=True, kw_only=True):
    """The outcome of one scene in a cell, and without it."""

    KEY: ClassVar[tuple[str, ...]] = (*OfCell.KEY, "task")
    task: str
    treated: float
    plain: float


class Judged(Struct, frozen=True, kw_only=True):
    """Effect of a direction at its chosen layer and dose, on tasks that had no say in the choice."""

    intervention: str
    source: str
    place: str
    outcome: str
    layer: int
    dose: float
    up: EffectRow
    down: EffectRow | None
    """At minus the dose; None where the direction is taken out."""
    random_mean: float
    random_sd: float
    random_most: float
    """Effects of the random directions at the same place, layer and dose, on the judging tasks."""
    p_random: float
    """The share of them with at least as large an effect, the real one counted among them."""
    p_adjusted: float = 1.0
    """p_random adjusted over the cells of the run (Holm)."""
    specific: bool = False
    """The adjusted p is at most .05, the interval leaves out 0, and minus the direction does not do it as well: what
    does is a push out of what the model knows."""
    caveat: str | None = None
    """Why the random directions are too few to judge the cells of the run, where they are."""


class Half(NamedTuple):
    """Scenes, and their outcomes without any edit."""

    scenes: list[Scene]
    plain: Reading


class Ground(Struct, frozen=True):
    """What every cell of a run shares, and the effects found so far."""

    at: Setting
    config: Config
    layers: tuple[int, ...]
    calibration: Calibration
    done: Callable[[], None]
    """Told after each place of an intervention, and layer or source there."""
    effects: list[EffectRow] = []
    items: list[ItemRow] = []

    def measured(self, scenes: Sequence[Scene], edits: Sequence[Edit] = ()) -> Reading:
        """The outcomes that were asked for. Answers are drawn once, by random numbers of their task: the same under
        every edit and tone."""
        found: Reading = {}
        if "read" in self.config.outcomes:
            found["read"] = self.at.outcome(scenes, edits)
        drawn = [kind for kind in self.config.outcomes if kind != "read"]
        if drawn:
            how = self.config
            sampling = [
                Sampling(how.max_new_tokens, how.temperature, seed=seed_of(how.setting.seed, scene.task.key))
                for scene in scenes
            ]
            answers = self.at.answers(scenes, sampling, edits)
            kinds = [kind_of(scene.task, answer.text) for scene, answer in zip(scenes, answers, strict=True)]
            found |= {kind: np.asarray([float(one == kind) for one in kinds]) for kind in drawn}
        return found

    def half(self, scenes: list[Scene]) -> Half:
        return Half(scenes, self.measured(scenes))

    def effect(self, cell: Cell, of: Half, treated: Reading, **more: Any) -> dict[Kind, EffectRow]:
        """The effect on each outcome, which is kept for the tables. `more`: further columns of the rows."""
        keys, rows = [scene.task.key for scene in of.scenes], {}
        for kind, values in treated.items():
            plain, named = of.plain[kind], {**cell._asdict(), "outcome": kind}
            found = paired_difference(values, plain, keys)
            sign = np.sign(cell.dose if cell.intervention == "steer" and cell.dose else found.value)
            rows[kind] = EffectRow(
                **named, treated=float(values.mean()), plain=float(plain.mean()), effect=found.value,
                low=None if found.tasks < 2 else found.low, high=None if found.tasks < 2 else found.high, p=found.p,
                opposed=float(np.mean((values - plain) * sign < 0)), n=found.n, tasks=found.tasks,
                unit=self.at.unit if kind == "read" else "share of answers", **more,
            )  # fmt: skip
            self.items.extend(
                ItemRow(**named, task=key, treated=float(t), plain=float(p))
                for key, t, p in zip(keys, values, plain, strict=True)
            )
        self.effects.extend(rows.values())
        return rows

    def write(self, run: Run) -> None:
        """Tables `effects` and `items`."""
        tested = [row for row in self.effects if row.part != "dev" and row.p is not None]
        q_of = dict(zip(map(id, tested), benjamini_hochberg([row.p or 0.0 for row in tested]), strict=True))
        run.table("effects", EffectRow).add(replace(row, q=q_of.get(id(row))) for row in self.effects)
        run.table("items", ItemRow).add(self.items)


def kind_of(task: Task, answer: str) -> Kind:
    """Return whether an answer knows the visible cases by heart, gives up, holds other code, or none."""
    extracted = extract(answer, task.function)
    if extracted.valid:
        return "hardcoded" if hardcoding(task, extracted.source).flagged else "other_code"
    return "gave_up" if prose_markers(answer).counts["give_up"] else "no_code"


def run(run: Run, model: HookedModel, config: Config, progress: Progress) -> None:
    """Tables `effects` and `items`; summaries `chosen` (an entry a direction's cell), `suppression` (what hiding leaves
    of the tones' difference), `patching` (the first layer at which a place carries half of it)."""
    at = setting(model, config.setting)
    layers, many = chosen_layers(model, config.layers), len(config.places)
    pieces = {"suppress": many, "patch": many * len(layers)}
    done = steps(progress, 1 + sum(pieces.get(one, many * len(config.sources)) for one in config.interventions))
    ground = Ground(at, config, layers, calibrated(at), done, [], [])
    tones = {tone: ground.half(at.scenes(tone)) for tone in dict.fromkeys((at.low, at.neutral, at.high))}
    for tone, half in tones.items():
        if tone != at.neutral:
            ground.effect(Cell("tone", tone), Half(half.scenes, tones[at.neutral].plain), half.plain)
    done()
    chosen: list[Judged] = []
    for intervention in config.interventions:
        if intervention == "suppress":
            run.write_summary("suppression", {"left": _suppress(ground, tones)})
        elif intervention == "patch":
            run.write_summary("patching", {"carried_from": _patch(ground, tones)})
        else:
            chosen += _along(ground, intervention)
    ground.write(run)
    if chosen:
        run.write_summary("chosen", with_verdicts(chosen, config.setting))


# -- a place hidden from later tokens --------------------------------------------------------------------------------


def _suppress(ground: Ground, tones: Mapping[str, Half]) -> dict[str, float | None]:
    """What hiding each place leaves of the tones' difference, by place and outcome."""
    at, left = ground.at, {}
    for name in ground.config.places:
        ground.done()
        hides = [Suppress(_unskipped(name))]
        hidden = {tone: ground.measured(half.scenes, hides) for tone, half in tones.items()}
        for tone, half in tones.items():
            ground.effect(Cell("suppress", tone, name), half, hidden[tone])
        for kind in ground.config.outcomes:
            gap = float((tones[at.high].plain[kind] - tones[at.low].plain[kind]).mean())
            rest = float((hidden[at.high][kind] - hidden[at.low][kind]).mean())
            left[f"{name}/{kind}"] = rest / gap if gap else None
    return left


# -- states of the other tone ----------------------------------------------------------------------------------------


def _patch(ground: Ground, tones: Mapping[str, Half]) -> dict[str, int | None]:
    """The first layer at which a place carries half of the tones' difference both ways, by place and outcome."""
    from agentsignals_lab.residual.hooks import meant  # noqa: PLC0415  (torch takes seconds, and settings come first)

    at, carried = (
        ground.at,
        dict.fromkeys((f"{p}/{k}" for p, k in product(ground.config.places, ground.config.outcomes))),
    )
    ways = {"denoise": (at.low, at.high), "noise": (at.high, at.low)}
    states = {
        tone: at.model.states([scene.prompt for scene in tones[tone].scenes], ground.layers)
        for tone in (at.low, at.high)
    }
    for (number, layer), name in product(enumerate(ground.layers), ground.config.places):
        where = _unskipped(name)
        ground.done()
        shares: dict[Kind, list[float]] = {kind: [] for kind in ground.config.outcomes}
        for way, (into, other) in ways.items():
            fits, moved = [], []
            for n, (scene, there) in enumerate(zip(tones[into].scenes, tones[other].scenes, strict=True)):
                here, from_ = (np.flatnonzero(meant(one.prompt, where)) for one in (scene, there))
                if len(here) and len(here) == len(from_):
                    fits.append(n)
                    moved.append(ground.measured([scene], [Replace(layer, states[other][n][number][from_], where)]))
            cell, unfit = Cell("patch", into, name, way, layer), len(tones[into].scenes) - len(fits)
            for kind in ground.config.outcomes:
                if not fits:
                    ground.effects.append(EffectRow(**cell._asdict(), outcome=kind, unit="", unfit=unfit))
                    continue
                before, wanted = (tones[tone].plain[kind][fits] for tone in (into, other))
                half = Half([tones[into].scenes[n] for n in fits], {kind: before})
                gap, after = float((wanted - before).mean()), np.concatenate([one[kind] for one in moved])
                share = float((after - before).mean()) / gap if gap else None
                ground.effect(cell, half, {kind: after}, share=share, unfit=unfit)
                if share is not None:
                    shares[kind].append(share)
        for kind, both in shares.items():
            if len(both) == 2 and min(both) >= 0.5 and carried[f"{name}/{kind}"] is None:
                carried[f"{name}/{kind}"] = layer
    return carried


def _unskipped(name: Place) -> Positions:
    at = place(name)
    return Positions(at.which, at.roles, at.labels, skip_sinks=False)


# -- along a direction, against random ones --------------------------------------------------------------------------


def seeds(asked: SettingConfig, *, chooses: bool = False) -> range:
    """Seeds of the random directions. Where something is chosen by what goes beyond them (`chooses`), they are others
    than those that judge, else the choice would seek out the places where these happen to be weak."""
    if asked.randoms < 1:
        raise LabError(
            f"No cell can be judged with {asked.randoms} random directions.",
            f"Set randoms = {FEWEST_RANDOMS} or more (default {RANDOMS}).",
        )
    if chooses:
        return range(1 + asked.randoms, 1 + asked.randoms + min(asked.randoms, MOST_CHOOSING))
    return range(1, 1 + asked.randoms)


def randoms(asked: SettingConfig, width: int, *, chooses: bool = False) -> Array:
    """The controls `random:1`, `random:2` … of conditions, of length 1, the same at every layer: (n, width)."""
    like = np.ones(width, np.float32) / np.sqrt(np.float32(width))
    return np.concatenate([directions.random_like(like, 1, seed) for seed in seeds(asked, chooses=chooses)])


def _along(ground: Ground, does: Literal["steer", "ablate"]) -> Iterator[Judged]:
    """A direction is added in the neutral tone, and taken out in the high one, where there is something to take out."""
    at, config = ground.at, ground.config
    tone, sign = (at.neutral, 1.0) if does == "steer" else (at.high, -1.0)
    first, second = halves(at, config.setting.seed)
    named = directions.read(Path(config.directions)) if config.directions else None
    vectors = {source: _vectors(ground, named, source, first) for source in config.sources}
    dev, test = (ground.half(at.scenes(tone, tasks)) for tasks in (first, second))
    chance_of: dict[tuple[str, int, float], list[dict[Kind, float]]] = {}
    for where in config.places:
        cells = list(product(ground.layers, config.doses if does == "steer" else (1.0,)))
        by_cell = {cell: _by_chance(ground, dev, does, cell, where, chooses=True) for cell in cells if len(cells) > 1}
        for source, of in vectors.items():
            ground.done()
            known = [cell for cell in cells if np.linalg.norm(of[cell[0]]) > 0]
            chose, judged = (
                _curve(ground, half, Cell(does, tone, where, source, part=part), of, known)
                for part, half in (("dev", dev), ("test", test))
            )
            for kind in config.outcomes:
                upward = {cell: sign * (chose[cell][kind].effect or 0.0) for cell in known}
                chance = {cell: [sign * one[kind] for one in by_cell.get(cell, ())] for cell in known}
                layer, dose = most_specific(upward, chance)
                if (where, layer, dose) not in chance_of:
                    chance_of[where, layer, dose] = _by_chance(ground, test, does, (layer, dose), where)
                randoms_ = np.asarray([one[kind] for one in chance_of[where, layer, dose]])
                up, down = judged[layer, dose][kind], judged.get((layer, -dose), {}).get(kind)
                yield Judged(
                    intervention=does, source=source, place=where, outcome=kind, layer=layer, dose=dose, up=up,
                    down=down, random_mean=float(randoms_.mean()), random_sd=float(randoms_.std()),
                    random_most=float((sign * randoms_).max() * sign),
                    p_random=p_random(sign * (up.effect or 0.0), (sign * randoms_).tolist()),
                )  # fmt: skip


def _vectors(ground: Ground, named: DirectionSet | None, source: str, tasks: Sequence[Task]) -> dict[int, Array]:
    """The direction of a source by layer."""
    if source in get_args(Source):
        of = learnt(ground.at, cast(Source, source), ground.layers, tasks)
        return dict(zip(of.layers, of.vectors[0], strict=True))
    if named is None:
        raise LabError(f"There is no source {source!r}.", "Name a file of other directions as `directions`.")
    return {layer: named.of(source, layer) for layer in ground.layers}


def most_specific(
    upward: Mapping[tuple[int, float], float], by_chance: Mapping[tuple[int, float], Sequence[float]]
) -> tuple[int, float]:
    """The layer and dose whose effect goes furthest beyond the strongest random push there; not the largest effect,
    which late layers and high doses have for any direction."""
    return max(upward, key=lambda cell: upward[cell] - max(by_chance[cell], default=0.0))


def _edit(ground: Ground, does: str, cell: tuple[int, float], vector: Array, where: Place) -> Edit:
    layer, dose = cell
    if does == "ablate":
        return Ablate(layer, vector, place(where))
    return Add(layer, vector, dose * ground.calibration.median_norm[layer], place(where))


def _by_chance(  # noqa: PLR0913  (what a direction is compared in)
    ground: Ground, half: Half, does: str, cell: tuple[int, float], where: Place, *, chooses: bool = False
) -> list[dict[Kind, float]]:
    """Mean effects of the random directions."""
    effects: list[dict[Kind, float]] = []
    for vector in randoms(ground.config.setting, ground.at.model.card.width, chooses=chooses):
        moved = ground.measured(half.scenes, [_edit(ground, does, cell, vector, where)])
        effects.append({kind: float((values - half.plain[kind]).mean()) for kind, values in moved.items()})
    return effects


def _curve(
    ground: Ground, half: Half, at: Cell, of: Mapping[int, Array], cells: Sequence[tuple[int, float]]
) -> dict[tuple[int, float], dict[Kind, EffectRow]]:
    """Effects of a direction by layer and dose, both signs where it is added."""
    signs = (-1, 1) if at.intervention == "steer" else (1,)
    curve = {}
    for layer, dose in sorted((layer, sign * dose) for layer, dose in cells for sign in signs):
        edit = _edit(ground, at.intervention, (layer, dose), of[layer], cast(Place, at.place))
        cell = at._replace(layer=layer, dose=dose)
        curve[layer, dose] = ground.effect(cell, half, ground.measured(half.scenes, [edit]))
    return curve


def with_verdicts(cells: Sequence[Judged], asked: SettingConfig) -> list[Judged]:
    """The cells of a run with p adjusted over all of them, and which of them are specific."""
    judged = []
    for cell, p in zip(cells, holm([cell.p_random for cell in cells]), strict=True):
        steered, low, high = cell.intervention == "steer", cell.up.low, cell.up.high
        beyond = low is not None and high is not None and (low > 0 if steered else high < 0)
        both = cell.down is not None and cell.down.low is not None and cell.down.low > 0
        told = caveat(asked.randoms, len(cells))
        judged.append(replace(cell, p_adjusted=p, specific=p <= LEVEL and beyond and not both, caveat=told))
    return judged
