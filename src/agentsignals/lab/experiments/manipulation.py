"""Did a treatment do anything, and is the model still whole? Asked before any null, or any effect, is believed.

A condition whose answers are no code far more often than without it is over-steered: it is marked, and no behaviour is
told of it (design/lab.md#steering).
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from agentsignals.lab import steering
from agentsignals.lab.conditions import Condition, Where, over_steered
from agentsignals.lab.directions import DirectionSet
from agentsignals.lab.experiments import Progress
from agentsignals.lab.experiments.answering import Answered, drawn
from agentsignals.lab.experiments.chosen_setting import setting
from agentsignals.lab.experiments.learning import Source, calibrated, halves, learnt
from agentsignals.lab.experiments.setting import SettingConfig, chosen_layers
from agentsignals.lab.residual.interface import ResidualModel
from agentsignals.lab.runs import Row, Run


class Config(Struct, frozen=True, kw_only=True):
    """One condition for each place and dose, at one layer (none: the middle one). `last` is the token where code parts
    ways when the next token is looked at, and the last of the prompt when answers are drawn."""

    setting: SettingConfig = SettingConfig(tasks=40)
    source: Source = "feedback"
    layer: int | None = None
    where: tuple[Where, ...] = ("feedback", "last", "generated")
    doses: tuple[float, ...] = (1.0, 2.0, 4.0)
    max_new_tokens: int = 360
    temperature: float = 1.0


class ManipulationRow(Row, frozen=True, kw_only=True):
    """A condition on scenes in the neutral tone."""

    KEY: ClassVar[tuple[str, ...]] = ("condition",)
    condition: str
    where: str
    layer: int
    dose: float
    verdict: str
    """`moved`, `nothing`, or `not testable`: no scene holds a token where it acts."""
    kl: float | None
    """Divergence of the next token's distribution, steered from plain, in nats."""
    shift: float | None
    """Shift of the projection downstream, in median norms there."""
    anti_steered: float | None
    invalid: float
    """The share of drawn answers without the function as Python."""
    invalid_plain: float
    over_steered: bool
    hardcoded: float | None
    """The share of drawn answers that know the visible cases; None where the condition is over-steered."""
    n: int


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Table `manipulation`; summary `over_steered`: the names of the conditions that broke the model."""
    at = setting(model, config.setting)
    layers = chosen_layers(model, ())
    layer = layers[len(layers) // 2] if config.layer is None else config.layer
    calibration = calibrated(at)
    learns, judges = halves(at, config.setting.seed)
    # The deepest layer is where the projection is read downstream.
    of: DirectionSet = learnt(at, config.source, sorted({layer, model.card.layers - 1}), learns)
    scenes = at.scenes(at.neutral, judges)
    prompts = [scene.prompt for scene in scenes]
    table = run.table("manipulation", ManipulationRow)
    plain = drawn(at, scenes, config)
    conditions = [
        Condition(name=f"{where}/{dose:g}", direction=of.names[0], dose=dose, layers=(layer,), where=where)
        for where in config.where
        for dose in config.doses
    ]
    for number, condition in enumerate(conditions):
        if (condition.name,) not in table:
            did = steering.manipulation(model, prompts, condition, of, calibration)
            treated = drawn(at, scenes, config, steering.edits(condition, of, calibration))
            table.add([_row(condition, did, treated, plain)])
        progress(number + 1, len(conditions))
    run.write_summary("over_steered", [row.condition for row in table.rows if row.over_steered])


def _row(
    condition: Condition, did: steering.Manipulation, treated: list[Answered], plain: list[Answered]
) -> ManipulationRow:
    invalid, before = (sum(not answer.valid for answer in rows) / len(rows) for rows in (treated, plain))
    broken = over_steered(invalid, before)
    return ManipulationRow(
        condition=condition.name,
        where=condition.where,
        layer=condition.layers[0],
        dose=condition.dose,
        verdict=did.verdict,
        kl=did.kl,
        shift=did.shift,
        anti_steered=did.anti_steered,
        invalid=invalid,
        invalid_plain=before,
        over_steered=broken,
        hardcoded=None if broken else sum(answer.hardcoded for answer in treated) / len(treated),
        n=did.n,
    )
