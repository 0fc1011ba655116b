"""Where is the tone on its way to the answer? States of one tone are put into the prompt of another, layer by layer.

Run it before steering: what has left a place already can't be steered there (design/lab.md#tiny-models).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct

from agentsignals_lab.experiments import Progress
from agentsignals_lab.experiments.chosen_setting import setting
from agentsignals_lab.experiments.setting import Floats, Place, Scene, Setting, SettingConfig, chosen_layers, place
from agentsignals_lab.residual.interface import Edit, Positions, Prompt, Replace, ResidualModel
from agentsignals_lab.runs import Row, Run
from agentsignals_lab.statistics import mean


class Config(Struct, frozen=True):
    """Layers (none named: chosen by depth) and stretches that are patched, alone."""

    setting: SettingConfig = SettingConfig(tasks=20)
    layers: tuple[int, ...] = ()
    places: tuple[Place, ...] = ("feedback", "code", "tests", "task", "decision")


class PatchRow(Row, frozen=True, kw_only=True):
    """Over the scenes whose two prompts have the same number of tokens at the place."""

    KEY: ClassVar[tuple[str, ...]] = ("layer", "place", "way")
    layer: int
    place: str
    way: str
    """`denoise`: states of the worse tone into the better one's prompt; `noise`: the other way."""
    recovered: float | None
    """The mean change towards the other tone's outcome over the mean difference of the two; 1 is all of it. None where
    no scene fits, or the tones do not differ."""
    low: float | None
    high: float | None
    """95 % interval over tasks, of the change over that fixed difference."""
    n: int
    unfit: int
    """Scenes left out: the stretch is longer in one tone than in the other."""


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Table `patches`; summary `patching`: the earliest layer at which each place, and the decision, carries half."""
    at = setting(model, config.setting)
    layers = chosen_layers(model, config.layers)
    low, high = at.scenes(at.low), at.scenes(at.high)
    outcomes = at.outcome(low), at.outcome(high)
    table = run.table("patches", PatchRow)
    states = {
        "denoise": model.states([s.prompt for s in high], layers),
        "noise": model.states([s.prompt for s in low], layers),
    }
    done, of = 0, len(layers) * len(config.places)
    for number, layer in enumerate(layers):
        for name in config.places:
            for way, into, other in (("denoise", low, high), ("noise", high, low)):
                source = [states_of_way[number] for states_of_way in states[way]]
                moved = _patched(at, layer, name, (into, other), source)
                plain = outcomes if way == "denoise" else outcomes[::-1]
                table.add([_row((layer, name, way), into, moved, plain)])
            done += 1
            progress(done, of)
    run.write_summary(
        "patching", {"gap": float((outcomes[1] - outcomes[0]).mean()), "carried_from": _carried(table.rows)}
    )


def _patched(
    at: Setting, layer: int, name: Place, scenes: tuple[Sequence[Scene], Sequence[Scene]], states: Sequence[np.ndarray]
) -> Floats:
    """Outcomes with the place's states of the other prompt; NaN where the two do not fit."""
    outcomes = np.full(len(states), np.nan)
    for number, (scene, other, held) in enumerate(zip(*scenes, states, strict=True)):
        here, there = _tokens(scene.prompt, name), _tokens(other.prompt, name)
        if here and len(here) == len(there):
            edit: list[Edit] = [Replace(layer, held[there], _unskipped(name))]
            outcomes[number] = at.outcome([scene], edit)[0]
    return outcomes


def _unskipped(name: Place) -> Positions:
    meant = place(name)
    return Positions(meant.which, meant.roles, meant.labels, skip_sinks=False)


def _tokens(prompt: Prompt, name: Place) -> list[int]:
    meant = place(name)
    return [
        token
        for span in prompt.spans
        if span.role in meant.roles and (not meant.labels or span.label in meant.labels)
        for token in range(span.start, span.end)
    ]


def _row(of: tuple[int, str, str], scenes: Sequence[Scene], moved: Floats, plain: tuple[Floats, Floats]) -> PatchRow:
    fits = ~np.isnan(moved)
    layer, name, way = of
    here, there = plain
    gap = float((there - here)[fits].mean()) if fits.any() else 0.0
    if not gap:
        return PatchRow(
            layer=layer, place=name, way=way, recovered=None, low=None, high=None, n=0, unfit=int((~fits).sum())
        )
    tasks = [scene.task.key for scene, fit in zip(scenes, fits, strict=True) if fit]
    share = mean((moved - here)[fits] / gap, tasks)
    return PatchRow(
        layer=layer,
        place=name,
        way=way,
        recovered=share.value,
        low=share.low,
        high=share.high,
        n=share.n,
        unfit=int((~fits).sum()),
    )


def _carried(rows: Sequence[PatchRow]) -> dict[str, int | None]:
    """By place: the first layer whose patch moves at least half in both ways."""
    carried: dict[str, int | None] = {}
    for name in dict.fromkeys(row.place for row in rows):
        ways: dict[int, list[float]] = {}
        for row in rows:
            if row.place == name and row.recovered is not None:
                ways.setdefault(row.layer, []).append(row.recovered)
        carried[name] = next(
            (layer for layer, shares in sorted(ways.items()) if len(shares) == 2 and min(shares) >= 0.5), None
        )
    return carried
