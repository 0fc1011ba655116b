"""Behaviour of drawn answers: by tone of the feedback, along a learnt direction, along random ones.

Every condition is compared with the neutral tone without steering, over the same tasks and random numbers. The
direction is learnt on other tasks than it is judged on. A condition that breaks the model is seen by its `no_code`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from agentsignals.stats.intervals import wilson
from agentsignals.stats.paired import holm
from msgspec import Struct
from msgspec.structs import replace

from agentsignals_lab import steering
from agentsignals_lab.conditions import Condition, Where
from agentsignals_lab.experiments import Progress, controls
from agentsignals_lab.experiments.answering import Answered, drawn
from agentsignals_lab.experiments.chosen_setting import setting
from agentsignals_lab.experiments.learning import Source, calibrated, halves, learnt
from agentsignals_lab.experiments.setting import SettingConfig, chosen_layers
from agentsignals_lab.residual.interface import ResidualModel
from agentsignals_lab.runs import Row, Run
from agentsignals_lab.statistics import benjamini_hochberg, caveat, enough, p_random, paired_difference

PLAIN = "neutral"
BEHAVIOURS: dict[str, Callable[[Answered], bool]] = {
    "hardcoded": lambda answer: answer.hardcoded,
    "gave_up": lambda answer: answer.gave_up,
    "other_code": lambda answer: answer.valid and not answer.hardcoded,
    "no_code": lambda answer: not answer.valid and not answer.gave_up,
}
"""Kinds of answers; each answer is one of them. `other_code` is not run, and may be wrong; `no_code` says nothing
of giving up."""
ASKED = ("hardcoded", "gave_up")
"""Kinds that a direction is asked to bring about; the others are what is left."""


class Config(Struct, frozen=True, kw_only=True):
    """Half of the tasks teach the direction, the others are answered, one answer each under each condition."""

    setting: SettingConfig = SettingConfig(tasks=200, randoms=enough(4))
    """Four tests: two doses, and two kinds of answers that are asked for."""
    source: Source = "feedback"
    layer: int | None = None
    """None: the middle one."""
    where: Where = "feedback"
    doses: tuple[float, ...] = (1.0, -1.0)
    """Random directions (`setting.randoms`) are each as strong as the first."""
    max_new_tokens: int = 360
    temperature: float = 1.0


class BehaviourRow(Row, frozen=True, kw_only=True):
    """Frequency of one kind of answers under a condition."""

    KEY: ClassVar[tuple[str, ...]] = ("condition", "behaviour")
    condition: str
    behaviour: str
    count: int
    n: int
    """Tasks, an answer each."""
    rate: float
    low: float
    high: float
    """Wilson's 95 % interval."""
    difference: float | None
    """To the neutral tone without steering; None for that itself."""
    difference_low: float | None
    difference_high: float | None
    """95 % interval over tasks."""
    p: float | None
    q: float | None
    """p adjusted over the conditions, a behaviour at a time (Benjamini and Hochberg); None for random directions."""
    p_random: float | None
    """The share of random directions that move the rate at least as far, either way (`statistics.p_random`); None for
    tones, for them, for doses other than theirs, and for kinds that are not asked for."""
    p_adjusted: float | None = None
    """p_random adjusted over the run (Holm)."""


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Table `behaviour`; summary `randoms`: why no adjusted p can be low, where that is so."""
    at = setting(model, config.setting)
    layers = chosen_layers(model, ())
    layer = layers[len(layers) // 2] if config.layer is None else config.layer
    norms = calibrated(at)
    learns, judges = halves(at, config.setting.seed)
    of = learnt(at, config.source, [layer], learns)
    conditions = [Condition(name=PLAIN, tone=at.neutral)]
    conditions += [Condition(name=f"tone {tone}", tone=tone) for tone in (at.low, at.high) if tone != at.neutral]
    steered = [(at.high, dose) for dose in config.doses]
    steered += [(name, config.doses[0]) for name in controls.names(config.setting)]
    conditions += [
        Condition(
            name=f"{name} {dose:+g}", direction=name, dose=dose, layers=(layer,), where=config.where, tone=at.neutral
        )
        for name, dose in steered
    ]
    answers: dict[str, list[Answered]] = {}
    for number, condition in enumerate(conditions):
        scenes = at.scenes(condition.tone, judges)
        answers[condition.name] = drawn(at, scenes, config, steering.edits(condition, of, norms))
        progress(number + 1, len(conditions))
    keys, rows = [task.key for task in judges], []
    for behaviour, shows in BEHAVIOURS.items():
        seen = {name: [shows(answer) for answer in of_condition] for name, of_condition in answers.items()}
        rows += _rows(behaviour, conditions, seen, keys)
    p = [row.p_random for row in rows if row.p_random is not None]
    adjusted = iter(holm(p))
    run.table("behaviour", BehaviourRow).add(
        replace(row, p_adjusted=next(adjusted)) if row.p_random is not None else row for row in rows
    )
    if (short := caveat(config.setting.randoms, len(p))) is not None:
        run.write_summary("randoms", {"caveat": short})


def _rows(
    behaviour: str, conditions: Sequence[Condition], seen: dict[str, list[bool]], keys: Sequence[str]
) -> list[BehaviourRow]:
    rows, differences = [], {name: paired_difference(flags, seen[PLAIN], keys) for name, flags in seen.items()}
    by_chance = [c for c in conditions if c.is_control]
    for condition in conditions:
        name, flags = condition.name, seen[condition.name]
        low, high = wilson(sum(flags), len(flags)) or (0.0, 1.0)
        differs = None if name == PLAIN else differences[name]
        held = behaviour in ASKED and condition not in by_chance and abs(condition.dose) == abs(by_chance[0].dose)
        rows.append(
            BehaviourRow(
                condition=name,
                behaviour=behaviour,
                count=sum(flags),
                n=len(flags),
                rate=sum(flags) / len(flags),
                low=low,
                high=high,
                difference=differs.value if differs is not None else None,
                difference_low=differs.low if differs is not None else None,
                difference_high=differs.high if differs is not None else None,
                p=differs.p if differs is not None else None,
                q=None,
                p_random=p_random(abs(differences[name].value), [abs(differences[c.name].value) for c in by_chance])
                if held
                else None,
            )
        )
    asked = {c.name for c in conditions if c.name != PLAIN and c not in by_chance}
    adjusted = iter(benjamini_hochberg([row.p for row in rows if row.p is not None and row.condition in asked]))
    return [replace(row, q=next(adjusted)) if row.condition in asked else row for row in rows]
