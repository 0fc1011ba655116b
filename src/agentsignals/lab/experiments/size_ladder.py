"""Equal questions to models of several sizes, in one table: what a tone does, where it is carried, what parts it."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from agentsignals.lab import residual, separation
from agentsignals.lab.experiments import Progress, effects
from agentsignals.lab.experiments.chosen_setting import setting
from agentsignals.lab.experiments.learning import calibrated, scene_states
from agentsignals.lab.experiments.setting import Setting, SettingConfig, chosen_layers, place
from agentsignals.lab.residual.interface import Loading, ResidualModel, Suppress
from agentsignals.lab.runs import Row, Run


class Config(Struct, frozen=True):
    """`models`: folders or ids beside the model of the run, which comes first."""

    setting: SettingConfig = SettingConfig()
    models: tuple[str, ...] = ()
    loading: Loading = Loading()


class LadderRow(Row, frozen=True, kw_only=True):
    """One model."""

    KEY: ClassVar[tuple[str, ...]] = ("model", "revision")
    model: str
    revision: str
    architecture: str
    layers: int
    width: int
    effect: float
    """Effect of the high tone against the low, on the outcome."""
    low: float
    high: float
    opposed: float
    """The share of tasks that moved the other way."""
    hidden_effect: float
    """Effect when no later token attends to the feedback."""
    auroc: float
    """AUROC of the tones at feedback tokens, on held-out tasks, at the best layer of those tried: the highest of
    several."""
    auroc_layer: int
    null_high: float
    """The 95th percentile, over shuffled tones, of the best of those layers."""
    unit: str


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Table `ladder`, a row a model. Only one of the others is in memory at a time."""
    table = run.table("ladder", LadderRow)
    table.add([_row(setting(model, config.setting))])
    progress(1, 1 + len(config.models))
    for number, named in enumerate(config.models):
        table.add([_row(setting(residual.load(named, config.loading), config.setting))])
        progress(number + 2, 1 + len(config.models))


def _row(at: Setting) -> LadderRow:
    calibrated(at)
    layers = chosen_layers(at.model, ())
    high, low = at.scenes(at.high), at.scenes(at.low)
    effect = effects.effect(at.high, high, at.outcome(high), at.outcome(low), at.unit)
    hides = [Suppress(place("feedback"))]
    keys = [task.key for task in at.tasks]
    separations = separation.held_out(
        separation.Grouped(scene_states(at, high, "feedback", layers), keys),
        separation.Grouped(scene_states(at, low, "feedback", layers), keys),
    )
    best = max(range(len(layers)), key=lambda n: separations[n].auroc)
    card = at.model.card
    return LadderRow(
        model=card.name,
        revision=card.revision,
        architecture=card.architecture,
        layers=card.layers,
        width=card.width,
        effect=effect.effect,
        low=effect.low,
        high=effect.high,
        opposed=effect.opposed,
        hidden_effect=float((at.outcome(high, hides) - at.outcome(low, hides)).mean()),
        auroc=separations[best].auroc,
        auroc_layer=layers[best],
        null_high=separations[best].best_null_high,
        unit=at.unit,
    )
