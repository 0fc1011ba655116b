"""Answers drawn after scenes, read as code without being run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from agentsignals_lab.evaluation.extraction import extract
from agentsignals_lab.evaluation.hardcoding import hardcoding
from agentsignals_lab.evaluation.markers import prose_markers
from agentsignals_lab.experiments.setting import Scene, Setting, SettingConfig
from agentsignals_lab.residual.interface import Edit, Sampling
from agentsignals_lab.runs import seed_of


class Drawing(Protocol):
    """Settings of a Config for drawing answers."""

    @property
    def setting(self) -> SettingConfig: ...
    @property
    def max_new_tokens(self) -> int: ...
    @property
    def temperature(self) -> float: ...


class Answered(Struct, frozen=True):
    """Facts read from an answer's code."""

    valid: bool
    """The function is there, and is Python."""
    hardcoded: bool
    gave_up: bool
    """There is no function, and the words say that there will be none (`evaluation.markers`)."""


def drawn(at: Setting, scenes: Sequence[Scene], how: Drawing, edits: Sequence[Edit] = ()) -> list[Answered]:
    """One answer a scene. Random numbers are those of its task: the same under every condition and tone."""
    sampling = [
        Sampling(how.max_new_tokens, how.temperature, seed=seed_of(how.setting.seed, scene.task.key))
        for scene in scenes
    ]
    return [read(scene, answer.text) for scene, answer in zip(scenes, at.answers(scenes, sampling, edits), strict=True)]


def read(scene: Scene, answer: str) -> Answered:
    """Return whether the answer holds the function, whether it knows the visible cases by heart, and whether it
    gives up."""
    if not scene.task.function:
        return Answered(bool(answer.strip()), False, prose_markers(answer).counts["give_up"] > 0)
    extracted = extract(answer, scene.task.function)
    if not extracted.valid:
        return Answered(False, False, prose_markers(answer).counts["give_up"] > 0)
    return Answered(True, hardcoding(scene.task, extracted.source).flagged, False)
