"""One grid: what is done to the model, where, along which direction, to which outcome; against random directions.

`steer` adds a direction and `ablate` takes it out; `suppress` hides a place from all later tokens, and `patch` puts the
other tone's states there. Layers and doses are chosen on half of the tasks by what goes beyond random directions of the
same length, and judged on the other half (design/lab.md#tiny-models). One cell of many beats its random directions by
chance: p is adjusted over all that were asked (Holm).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast, get_args

import numpy as np
from agentsignals.errors import LabError
from agentsignals.stats.paired import benjamini_hochberg, holm
from msgspec import Meta, Struct
from msgspec.structs import replace

from agentsignals_lab import directions
from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.directions import Array, DirectionSet
from agentsignals_lab.evaluation.extraction import extract
from agentsignals_lab.evaluation.hardcoding import hardcoding
from agentsignals_lab.evaluation.markers import prose_markers
from agentsignals_lab.experiments import Progress, Steps
from agentsignals_lab.experiments.file_setting import Setting, setting
from agentsignals_lab.experiments.learning import Source, calibrated, halves, learnt
from agentsignals_lab.experiments.setting import Floats, Place, Scene, SettingConfig, chosen_layers, place
from agentsignals_lab.residual.interface import (
    Ablate,
    Add,
    Calibration,
    Edit,
    Positions,
    Replace,
    Role,
    Sampling,
    Suppress,
)
from agentsignals_lab.runs import Row, Run, seed_of
from agentsignals_lab.statistics import LEVEL, caveat, mean, p_random, paired_difference

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
EACH = "sentences"
"""Stands for each labelled sentence and attempt, one at a time."""
_SOME = Meta(min_length=1)


class Config(Struct, frozen=True, kw_only=True):
    """The cells are all combinations of interventions, sources, places and outcomes."""

    setting: SettingConfig = SettingConfig()
    interventions: Annotated[tuple[Intervention, ...], _SOME] = ("steer",)
    sources: Annotated[tuple[str, ...], _SOME] = get_args(Source)
    """Where a direction is learnt; or the name of one in the file `directions`."""
    directions: str | None = None
    places: Annotated[tuple[Place | Literal["sentences"], ...], _SOME] = ("feedback", "decision")
    """`sentences`: each labelled sentence and attempt by itself; `suppress` alone takes it."""
    layers: tuple[int, ...] = ()
    doses: Annotated[tuple[Annotated[float, Meta(gt=0)], ...], _SOME] = (0.5, 1.0, 2.0)
    """Fractions of a layer's median norm; both signs are tried. `ablate` takes none."""
    outcomes: Annotated[tuple[Kind, ...], _SOME] = ("read",)
    max_new_tokens: int = 360
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if EACH in self.places and self.interventions != ("suppress",):
            raise ValueError(f"the place {EACH!r} takes no other intervention than suppress: run it by itself")
        if "generated" in self.places and "patch" in self.interventions:
            raise ValueError("the place 'generated' has no states of the other tone to patch: leave it out")


class CellRow(Row, frozen=True, kw_only=True):
    """One cell at one layer and dose, on the tasks that choose (`dev`), judge (`test`), or on all."""

    KEY: ClassVar[tuple[str, ...]] = ("part", "intervention", "source", "place", "layer", "dose", "outcome")
    part: str
    intervention: str
    source: str
    """Where the direction was learnt. Of a patch: `denoise`, states of the worse tone in the better one's prompt;
    `noise`, the other way."""
    place: str
    layer: int
    dose: float
    outcome: str
    effect: float | None
    low: float | None
    high: float | None
    """95 % interval over tasks. None where no scene fits a patch."""
    share: float | None
    """Of a patch: the effect as a share of what the two tones differ by; 1 is all of it."""
    opposed: float | None
    """The share of scenes that moved against the sign of the dose, or of the effect."""
    n: int
    unfit: int = 0
    """Scenes left out of a patch: the place is longer in one tone than in the other."""


class ItemRow(Row, frozen=True, kw_only=True):
    """The outcome of one scene under a treatment and without it."""

    KEY: ClassVar[tuple[str, ...]] = ("condition", "outcome", "task")
    condition: str
    outcome: str
    task: str
    treated: float
    plain: float


class EffectRow(Row, frozen=True, kw_only=True):
    """Effect of a treatment on an outcome, over all its scenes."""

    KEY: ClassVar[tuple[str, ...]] = ("condition", "outcome")
    condition: str
    outcome: str
    treated: float
    plain: float
    effect: float
    low: float
    high: float
    """95 % interval over tasks (`statistics.paired_difference`)."""
    p: float
    q: float | None
    """p adjusted over the effects of the run (Benjamini and Hochberg)."""
    opposed: float
    """The share of scenes that moved against the mean effect."""
    n: int
    tasks: int
    unit: str


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
    """Why no cell of the run can be specific, where that is so: too few random directions."""


class Written:
    """Effects and their items, which are adjusted together and written at the end."""

    def __init__(self) -> None:
        self.effects: list[EffectRow] = []
        self.items: list[ItemRow] = []

    def add(
        self, condition: str, scenes: Sequence[Scene], treated: Reading, plain: Reading, unit: str
    ) -> dict[Kind, EffectRow]:
        """Treated less plain outcomes of the same scenes, by kind."""
        made = {}
        for kind, values in treated.items():
            keys = [scene.task.key for scene in scenes]
            difference = paired_difference(values, plain[kind], keys)
            made[kind] = EffectRow(
                condition=condition, outcome=kind, treated=float(values.mean()), plain=float(plain[kind].mean()),
                effect=difference.value, low=difference.low, high=difference.high, p=difference.p, q=None,
                opposed=float(np.mean((values - plain[kind]) * np.sign(difference.value) < 0)),
                n=difference.n, tasks=difference.tasks, unit=unit if kind == "read" else "share of answers",
            )  # fmt: skip
            self.items += [
                ItemRow(condition=condition, outcome=kind, task=key, treated=float(t), plain=float(p))
                for key, t, p in zip(keys, values, plain[kind], strict=True)
            ]
        self.effects += made.values()
        return made

    def write(self, run: Run) -> None:
        """Tables `effects` and `items`."""
        adjusted = benjamini_hochberg([effect.p for effect in self.effects])
        run.table("items", ItemRow).add(self.items)
        rows = [replace(effect, q=q) for effect, q in zip(self.effects, adjusted, strict=True)]
        run.table("effects", EffectRow).add(rows)


class Ground(Struct, frozen=True):
    """What every cell of a run shares."""

    run: Run
    at: Setting
    config: Config
    layers: tuple[int, ...]
    calibration: Calibration
    written: Written
    done: Steps
    """Told after each place of an intervention, and layer or source there."""

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


def kind_of(task: Task, answer: str) -> Kind:
    """Return whether an answer knows the visible cases by heart, gives up, holds other code, or none."""
    extracted = extract(answer, task.function) if task.function else None
    if extracted is not None and extracted.valid:
        return "hardcoded" if hardcoding(task, extracted.source).flagged else "other_code"
    if prose_markers(answer).counts["give_up"]:
        return "gave_up"
    return "other_code" if not task.function and answer.strip() else "no_code"


def run(run: Run, model: HookedModel, config: Config, progress: Progress) -> None:
    """Tables `cells`, `effects`, `items`; summaries `chosen` (an entry a direction's cell), `suppression` (what hiding
    leaves of the tones' difference), `patching` (the first layer at which a place carries half of it)."""
    at = setting(model, config.setting)
    written = Written()
    layers, many = chosen_layers(model, config.layers), len(config.places)
    steps = {"suppress": many, "patch": many * len(layers)}
    done = Steps(progress, 1 + sum(steps.get(one, many * len(config.sources)) for one in config.interventions))
    ground = Ground(run, at, config, layers, calibrated(at), written, done)
    tones = {tone: at.scenes(tone) for tone in dict.fromkeys((at.low, at.neutral, at.high))}
    plain = {tone: ground.measured(scenes) for tone, scenes in tones.items()}
    for tone, scenes in tones.items():
        if tone != at.neutral:
            written.add(f"tone {tone}", scenes, plain[tone], plain[at.neutral], at.unit)
    done()
    chosen: list[Judged] = []
    for intervention in config.interventions:
        if intervention == "suppress":
            _suppress(ground, tones, plain)
        elif intervention == "patch":
            _patch(ground, tones, plain)
        else:
            chosen += _along(ground, intervention)
    written.write(run)
    if chosen:
        run.write_summary("chosen", with_verdicts(chosen, config.setting))


# -- a place hidden from later tokens --------------------------------------------------------------------------------


def _suppress(ground: Ground, tones: Mapping[str, list[Scene]], plain: Mapping[str, Reading]) -> None:
    at, left = ground.at, {}
    for name in ground.config.places:
        ground.done()
        if name == EACH:
            _each(ground)
            continue
        hides = [Suppress(_unskipped(cast(Place, name)))]
        hidden = {tone: ground.measured(scenes, hides) for tone, scenes in tones.items()}
        for tone, scenes in tones.items():
            ground.written.add(f"suppress/{name}/{tone}", scenes, hidden[tone], plain[tone], at.unit)
        for kind in ground.config.outcomes:
            gap, rest = (float((of[at.high][kind] - of[at.low][kind]).mean()) for of in (plain, hidden))
            left[f"{name}/{kind}"] = rest / gap if gap else None
    ground.run.write_summary("suppression", {"left": left})


def _each(ground: Ground) -> None:
    """Hides each labelled sentence and attempt by itself: the effect of a label is over the tasks that have it."""
    scenes = ground.at.anchored()
    plain = ground.measured(scenes)
    found: dict[str, list[tuple[int, Reading]]] = {}
    for n, scene in enumerate(scenes):
        labels = {piece.label for message in scene.chat for piece in message.pieces if piece.label}
        for label in sorted(labels & {span.label for span in scene.prompt.spans}):
            at = Positions("roles", roles=get_args(Role), labels=(label,), skip_sinks=False)
            found.setdefault(label, []).append((n, ground.measured([scene], [Suppress(at)])))
    for label, rows in found.items():
        having = [n for n, _ in rows]
        treated: Reading = {kind: np.concatenate([row[kind] for _, row in rows]) for kind in ground.config.outcomes}
        here = {kind: values[having] for kind, values in plain.items()}
        name = f"suppress/{EACH}/{label}"
        ground.written.add(name, [scenes[n] for n in having], treated, here, ground.at.unit)


# -- states of the other tone ----------------------------------------------------------------------------------------


def _patch(ground: Ground, tones: Mapping[str, list[Scene]], plain: Mapping[str, Reading]) -> None:
    from agentsignals_lab.residual.batches import meant  # noqa: PLC0415  (torch takes seconds, and settings come first)

    at, table = ground.at, ground.run.table("cells", CellRow)
    ways = {"denoise": (at.low, at.high), "noise": (at.high, at.low)}
    states = {tone: at.model.states([s.prompt for s in tones[tone]], ground.layers) for tone in (at.low, at.high)}
    for (number, layer), name in product(enumerate(ground.layers), ground.config.places):
        where = _unskipped(cast(Place, name))
        ground.done()
        for way, (into, other) in ways.items():
            moved: dict[Kind, list[float]] = {kind: [] for kind in ground.config.outcomes}
            fits = []
            for n, (scene, there) in enumerate(zip(tones[into], tones[other], strict=True)):
                here, from_ = (np.flatnonzero(meant(one.prompt, where)) for one in (scene, there))
                if len(here) and len(here) == len(from_):
                    fits.append(n)
                    edit = Replace(layer, states[other][n][number][from_], where)
                    for kind, value in ground.measured([scene], [edit]).items():
                        moved[kind].append(float(value[0]))
            keys = [tones[into][n].task.key for n in fits]
            for kind, values in moved.items():
                before, wanted = (plain[tone][kind][fits] for tone in (into, other))
                gap = float((wanted - before).mean()) if fits else 0.0
                row = _cell("all", ("patch", way, name, layer, 0.0, kind), np.asarray(values) - before, keys, gap)
                table.add([replace(row, unfit=len(tones[into]) - len(fits))])
    carried: dict[str, int | None] = {}
    for name, kind in product(ground.config.places, ground.config.outcomes):
        shares: dict[int, list[float]] = {}
        for row in table.rows:
            if (row.intervention, row.place, row.outcome) == ("patch", name, kind) and row.share is not None:
                shares.setdefault(row.layer, []).append(row.share)
        halves_ = [layer for layer, both in sorted(shares.items()) if len(both) == 2 and min(both) >= 0.5]
        carried[f"{name}/{kind}"] = halves_[0] if halves_ else None
    ground.run.write_summary("patching", {"carried_from": carried})


def _cell(
    part: str, of: tuple[str, str, str, int, float, str], moved: Floats, keys: Sequence[str], gap: float | None = None
) -> CellRow:
    names = dict(zip(CellRow.KEY[1:], of, strict=True))
    if not len(moved):
        nothing = dict.fromkeys(("effect", "low", "high", "share", "opposed"))
        return CellRow(part=part, n=0, **nothing, **names)  # type: ignore[arg-type]  # the fields, by name
    estimate = mean(moved, keys)
    sign = np.sign(of[4]) or np.sign(estimate.value)
    return CellRow(
        part=part, effect=estimate.value, low=estimate.low, high=estimate.high,
        share=estimate.value / gap if gap else None, opposed=float(np.mean(moved * sign < 0)), n=estimate.n,
        **names,  # type: ignore[arg-type]  # the fields of its key, by name
    )  # fmt: skip


def _unskipped(name: Place) -> Positions:
    at = place(name)
    return Positions(at.which, at.roles, at.labels, skip_sinks=False)


# -- along a direction, against random ones --------------------------------------------------------------------------


def seeds(asked: SettingConfig, *, chooses: bool = False) -> range:
    """Seeds of the random directions. Where something is chosen by what goes beyond them (`chooses`), they are others
    than those that judge, else the choice would seek out the places where these happen to be weak."""
    if asked.randoms < 1:
        raise LabError(f"{asked.randoms} random directions.", "One at least; 19 for one p of .05.")
    if chooses:
        return range(1 + asked.randoms, 1 + asked.randoms + min(asked.randoms, MOST_CHOOSING))
    return range(1, 1 + asked.randoms)


def randoms(asked: SettingConfig, width: int, *, chooses: bool = False) -> Array:
    """The controls `random:1`, `random:2` … of conditions, of length 1, the same at every layer: (n, width)."""
    like = np.ones(width, np.float32) / np.sqrt(np.float32(width))
    return np.concatenate([directions.random_like(like, 1, seed) for seed in seeds(asked, chooses=chooses)])


class Half(Struct, frozen=True):
    """Scenes of the tasks that choose, or that judge, and their outcomes without any edit."""

    part: str
    scenes: list[Scene]
    plain: Reading


def _along(ground: Ground, does: Literal["steer", "ablate"]) -> Iterator[Judged]:
    """A direction is added in the neutral tone, and taken out in the high one, where there is something to take out."""
    at, config = ground.at, ground.config
    tone = at.neutral if does == "steer" else at.high
    first, second = halves(at, config.setting.seed)
    named = directions.read(Path(config.directions)) if config.directions else None
    vectors = {source: _vectors(ground, named, source, first) for source in config.sources}
    doses = config.doses if does == "steer" else (1.0,)
    parts = []
    for part, tasks in (("dev", first), ("test", second)):
        scenes = at.scenes(tone, tasks)
        parts.append(Half(part, scenes, ground.measured(scenes)))
    dev, test = parts
    chance_of: dict[tuple[str, int, float], list[dict[Kind, float]]] = {}
    for where in cast("tuple[Place, ...]", config.places):
        cells = list(product(ground.layers, doses))
        by_cell = {cell: _by_chance(ground, dev, does, cell, where) for cell in cells} if len(cells) > 1 else {}
        for source, of in vectors.items():
            ground.done()
            known = [cell for cell in cells if np.linalg.norm(of[cell[0]]) > 0]
            curves = {half.part: _curve(ground, half, does, (source, of, where), known) for half in parts}
            for kind in config.outcomes:
                sign = 1.0 if does == "steer" else -1.0
                upward = {cell: sign * effects[kind] for cell, effects in curves["dev"].items()}
                chance = {cell: [sign * one[kind] for one in by_cell.get(cell, ())] for cell in known}
                layer, dose = most_specific(upward, chance)
                if (where, layer, dose) not in chance_of:
                    chance_of[where, layer, dose] = _by_chance(ground, test, does, (layer, dose), where)
                by_chance = [one[kind] for one in chance_of[where, layer, dose]]
                yield _judged(ground, test, (does, source, where, kind, layer, dose), of[layer], by_chance)


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


def _by_chance(ground: Ground, half: Half, does: str, cell: tuple[int, float], where: Place) -> list[dict[Kind, float]]:
    """Mean effects of the random directions."""
    effects: list[dict[Kind, float]] = []
    for vector in randoms(ground.config.setting, ground.at.model.card.width, chooses=half.part == "dev"):
        moved = ground.measured(half.scenes, [_edit(ground, does, cell, vector, where)])
        effects.append({kind: float((values - half.plain[kind]).mean()) for kind, values in moved.items()})
    return effects


def _curve(
    ground: Ground, half: Half, does: str, road: tuple[str, dict[int, Array], Place], cells: Sequence[tuple[int, float]]
) -> dict[tuple[int, float], dict[Kind, float]]:
    """All doses of a direction into the table; the effects of those upward, by layer and dose."""
    source, of, where = road
    keys, upward = [scene.task.key for scene in half.scenes], {}
    signs = (-1, 1) if does == "steer" else (1,)
    for layer, dose in sorted((layer, sign * dose) for layer, dose in cells for sign in signs):
        edit = _edit(ground, does, (layer, dose), of[layer], where)
        moved = {kind: v - half.plain[kind] for kind, v in ground.measured(half.scenes, [edit]).items()}
        if dose > 0:
            upward[layer, dose] = {kind: float(values.mean()) for kind, values in moved.items()}
        rows = [
            _cell(half.part, (does, source, where, layer, dose, kind), values, keys) for kind, values in moved.items()
        ]
        ground.run.table("cells", CellRow).add(rows)
    return upward


def _judged(
    ground: Ground, half: Half, of: tuple[str, str, Place, Kind, int, float], vector: Array, by_chance: list[float]
) -> Judged:
    does, source, where, kind, layer, dose = of

    def side(signed: float) -> EffectRow:
        name = f"{does}/{source}/{where}/{layer}/{signed:+g}"
        edit = _edit(ground, does, (layer, signed), vector, where)
        treated = {kind: ground.measured(half.scenes, [edit])[kind]}
        return ground.written.add(name, half.scenes, treated, half.plain, ground.at.unit)[kind]

    up, down = side(dose), side(-dose) if does == "steer" else None
    sign, chance = (1.0 if does == "steer" else -1.0), np.asarray(by_chance)
    return Judged(
        intervention=does, source=source, place=where, outcome=kind, layer=layer, dose=dose, up=up, down=down,
        random_mean=float(chance.mean()), random_sd=float(chance.std()),
        random_most=float((sign * chance).max() * sign),
        p_random=p_random(sign * up.effect, (sign * chance).tolist()),
    )  # fmt: skip


def with_verdicts(cells: Sequence[Judged], asked: SettingConfig) -> list[Judged]:
    """The cells of a run with p adjusted over all of them, and which of them are specific."""
    judged = []
    for cell, p in zip(cells, holm([cell.p_random for cell in cells]), strict=True):
        beyond = cell.up.low > 0 if cell.intervention == "steer" else cell.up.high < 0
        both = cell.down is not None and cell.down.low > 0
        told = caveat(asked.randoms, len(cells))
        judged.append(replace(cell, p_adjusted=p, specific=p <= LEVEL and beyond and not both, caveat=told))
    return judged
