"""Rewrites of one failure: the effect of the tone alone on the outcome, task by task.

Every steering result is compared with this condition: prompting beats steering more often than not (AxBench).
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.lab.experiments import Progress, effects
from agentsignals.lab.experiments.answering import Answered, drawn
from agentsignals.lab.experiments.chosen_setting import setting
from agentsignals.lab.experiments.setting import SettingConfig
from agentsignals.lab.residual.interface import ResidualModel
from agentsignals.lab.runs import Row, Run
from agentsignals.lab.statistics import benjamini_hochberg, mcnemar


class Config(Struct, frozen=True):
    """Tones against the setting's neutral one (none named: its lowest and highest)."""

    setting: SettingConfig = SettingConfig()
    tones: tuple[str, ...] = ()
    sample: bool = True
    """True if an answer for each scene is drawn as well, and read for hardcoded cases."""
    max_new_tokens: int = 360
    temperature: float = 1.0


class SampledRow(Row, frozen=True, kw_only=True):
    """Answers drawn with the same random numbers in both tones, one a task; McNemar over the pairs."""

    KEY: ClassVar[tuple[str, ...]] = ("condition",)
    condition: str
    hardcoded: int
    hardcoded_plain: int
    invalid: int
    invalid_plain: int
    gained: int
    lost: int
    p: float
    q: float | None
    n: int


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Tables `effects`, `items` and, where answers are drawn, `sampled`; the condition is the tone."""
    at = setting(model, config.setting)
    tones = config.tones or tuple(tone for tone in (at.low, at.high) if tone != at.neutral)
    neutral = at.scenes(at.neutral)
    plain = at.outcome(neutral)
    drawn_plain = drawn(at, neutral, config) if config.sample else []
    tone_effects, rows, sampled = [], [], []
    for number, tone in enumerate(tones):
        scenes = at.scenes(tone)
        treated = at.outcome(scenes)
        tone_effects.append(effects.effect(tone, scenes, treated, plain, at.unit))
        rows += effects.items(tone, scenes, treated, plain)
        if config.sample:
            sampled.append(_sampled(tone, drawn(at, scenes, config), drawn_plain))
        progress(number + 1, len(tones))
    effects.write(run, tone_effects, rows)
    if config.sample:
        adjusted = benjamini_hochberg([row.p for row in sampled])
        run.table("sampled", SampledRow).add(replace(row, q=q) for row, q in zip(sampled, adjusted, strict=True))


def _sampled(tone: str, treated: list[Answered], plain: list[Answered]) -> SampledRow:
    test = mcnemar([answer.hardcoded for answer in treated], [answer.hardcoded for answer in plain])
    return SampledRow(
        condition=tone,
        hardcoded=sum(answer.hardcoded for answer in treated),
        hardcoded_plain=sum(answer.hardcoded for answer in plain),
        invalid=sum(not answer.valid for answer in treated),
        invalid_plain=sum(not answer.valid for answer in plain),
        gained=test.gained,
        lost=test.lost,
        p=test.p,
        q=None,
        n=test.n,
    )
