"""A treatment against none, over the same scenes: rows an item, rows a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from agentsignals_lab.experiments.setting import Floats, Scene
from agentsignals_lab.runs import Row, Run
from agentsignals_lab.statistics import benjamini_hochberg, paired_difference


class ItemRow(Row, frozen=True, kw_only=True):
    """The outcome of one scene under a treatment and without it, in the unit of the setting."""

    KEY: ClassVar[tuple[str, ...]] = ("condition", "task")
    condition: str
    task: str
    treated: float
    plain: float


class EffectRow(Row, frozen=True, kw_only=True):
    """Effect of a treatment on the outcome, over all scenes."""

    KEY: ClassVar[tuple[str, ...]] = ("condition",)
    condition: str
    treated: float
    plain: float
    effect: float
    low: float
    high: float
    """95 % interval over tasks (`statistics.paired_difference`)."""
    p: float
    q: float | None
    """p adjusted over the conditions of the run (Benjamini and Hochberg)."""
    opposed: float
    """The share of scenes that moved against the mean effect: anti-steered ones, where the mean is steering's."""
    n: int
    tasks: int
    unit: str


def effect(condition: str, scenes: Sequence[Scene], treated: Floats, plain: Floats, unit: str) -> EffectRow:
    """Treated less plain outcomes of the same scenes."""
    difference = paired_difference(treated, plain, [scene.task.key for scene in scenes])
    return EffectRow(
        condition=condition,
        treated=float(treated.mean()),
        plain=float(plain.mean()),
        effect=difference.value,
        low=difference.low,
        high=difference.high,
        p=difference.p,
        q=None,
        opposed=float(np.mean((treated - plain) * np.sign(difference.value) < 0)),
        n=difference.n,
        tasks=difference.tasks,
        unit=unit,
    )


def items(condition: str, scenes: Sequence[Scene], treated: Floats, plain: Floats) -> list[ItemRow]:
    """A row a scene."""
    return [
        ItemRow(condition=condition, task=scene.task.key, treated=float(t), plain=float(p))
        for scene, t, p in zip(scenes, treated, plain, strict=True)
    ]


def write(run: Run, effects: Sequence[EffectRow], rows: Sequence[ItemRow]) -> list[EffectRow]:
    """Tables `effects`, with p adjusted over all of them, and `items`."""
    adjusted = benjamini_hochberg([effect.p for effect in effects])
    adjusted_effects = [replace(effect, q=q) for effect, q in zip(effects, adjusted, strict=True)]
    run.table("items", ItemRow).add(rows)
    run.table("effects", EffectRow).add(adjusted_effects)
    return adjusted_effects
