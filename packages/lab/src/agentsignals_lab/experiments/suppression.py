"""What does a tone do to the outcome, and what is left of that when no later token attends to where it stands?

Every steering result is compared with the tone alone: prompting beats steering more often than not (AxBench).
"""

from __future__ import annotations

from msgspec import Struct

from agentsignals_lab.experiments import Progress, effects
from agentsignals_lab.experiments.chosen_setting import setting
from agentsignals_lab.experiments.setting import Place, SettingConfig, place
from agentsignals_lab.residual.interface import ResidualModel, Suppress
from agentsignals_lab.runs import Run


class Config(Struct, frozen=True):
    """Which stretches are hidden, in which blocks (none named: all)."""

    setting: SettingConfig = SettingConfig()
    places: tuple[Place, ...] = ("feedback", "tests", "code")
    layers: tuple[int, ...] = ()


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Tables `effects` and `items`: `tone TONE` against the neutral one, `PLACE/TONE` with that place hidden against
    without; summary `suppression`: the spread of the outcome over tones that is left when a place is hidden, as a share
    of the spread with nothing hidden."""
    at = setting(model, config.setting)
    suppressed, rows, left = [], [], {}
    tones = tuple(dict.fromkeys((at.low, at.neutral, at.high)))
    scenes = {tone: at.scenes(tone) for tone in tones}
    plain = {tone: at.outcome(scenes[tone]) for tone in tones}
    spread = float(plain[at.high].mean() - plain[at.low].mean())
    for tone in (at.low, at.high):
        if tone != at.neutral:
            of_tone = f"tone {tone}", scenes[tone], plain[tone], plain[at.neutral]
            suppressed.append(effects.effect(*of_tone, at.unit))
            rows += effects.items(*of_tone)
    for number, name in enumerate(config.places):
        hidden = [Suppress(place(name), config.layers)]
        means = {}
        for tone in tones:
            treated = at.outcome(scenes[tone], hidden)
            means[tone] = float(treated.mean())
            suppressed.append(effects.effect(f"{name}/{tone}", scenes[tone], treated, plain[tone], at.unit))
            rows += effects.items(f"{name}/{tone}", scenes[tone], treated, plain[tone])
        left[name] = (means[at.high] - means[at.low]) / spread if spread else None
        progress(number + 1, len(config.places))
    effects.write(run, suppressed, rows)
    run.write_summary("suppression", {"spread": spread, "unit": at.unit, "left": left})
