"""One attempt a task under each condition, run and judged: what steering does to whether code is right."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from agentsignals.lab import directions
from agentsignals.lab.conditions import BASELINE, Condition, over_steered
from agentsignals.lab.directions import DirectionSet
from agentsignals.lab.evaluation.case_runs import Confinement
from agentsignals.lab.experiments import Progress, controls
from agentsignals.lab.experiments.chosen_setting import setting
from agentsignals.lab.experiments.learning import calibrated, learnt
from agentsignals.lab.experiments.setting import Setting, SettingConfig, chosen_layers
from agentsignals.lab.residual.interface import ResidualModel
from agentsignals.lab.retry.loop import Plan, Steered
from agentsignals.lab.retry.retry_runs import run_loop
from agentsignals.lab.retry.rows import AttemptRow
from agentsignals.lab.runs import Row, Run
from agentsignals.lab.sandbox import Tier
from agentsignals.lab.statistics import benjamini_hochberg, mcnemar
from agentsignals.stats.paired import holm


class Config(Struct, frozen=True, kw_only=True):
    """Conditions (none named: the setting's high direction both ways, and random ones, on all of the prompt)."""

    setting: SettingConfig = SettingConfig(tasks=30, randoms=controls.enough(2))
    """Two tests: the direction up and down."""
    conditions: tuple[Condition, ...] = ()
    directions: str | None = None
    """A file that the experiment `directions` wrote; none: a contrast of the setting's texts."""
    dose: float = 1.0
    layer: int | None = None
    """None: the middle one."""
    samples: int = 1
    max_new_tokens: int = 360
    temperature: float = 1.0
    tier: Tier = "default"


class OneShotRow(Row, frozen=True, kw_only=True):
    """A condition against the baseline, the same tasks, samples and random numbers."""

    KEY: ClassVar[tuple[str, ...]] = ("condition",)
    condition: str
    full_pass: int | None
    full_pass_plain: int | None
    hardcoded: int | None
    hardcoded_plain: int | None
    """Counts of n; None where the condition is over-steered: a broken model shows no behaviour."""
    invalid: float
    invalid_plain: float
    over_steered: bool
    p: float | None
    """Exact McNemar of full passes; with one sample a task its pairs are independent."""
    q: float | None
    """p adjusted over the conditions that are no random directions."""
    p_random: float | None
    """The share of random directions at the same place and dose that move full passes at least as far, either way
    (`controls.p_random`); None without such, for them, and where over-steered. Over-steered ones do not count."""
    p_adjusted: float | None = None
    """p_random adjusted over the conditions that have one (Holm)."""
    n: int
    not_run: int
    """Pairs left out, since an answer was not run."""


def run(run: Run, model: ResidualModel, config: Config, progress: Progress) -> None:
    """Tables of the retry loop with one attempt, and `one_shot`; summary `randoms`: why no adjusted p can be low, where
    that is so."""
    at = setting(model, config.setting)
    conditions, of = _conditions(at, config)
    plan = Plan(
        wording=at.wording,
        attempts=1,
        max_new_tokens=config.max_new_tokens,
        temperature=config.temperature,
        top_p=1.0,
        seed=config.setting.seed,
        inside=Confinement(config.tier),
    )
    total = len(conditions) * len(at.tasks) * config.samples
    run_loop(
        run, model, plan, conditions, at.tasks, config.samples, Steered(model, of, calibrated(at), project=False),
        lambda _, done, __: progress(done, total),
    )  # fmt: skip
    rows = run.table("attempts", AttemptRow).rows
    by_name = {condition.name: _row(condition.name, rows) for condition in conditions[1:]}
    asked = [c.name for c in conditions[1:] if not controls.is_control(c.direction) and by_name[c.name].p is not None]
    adjusted = benjamini_hochberg([p for name in asked if (p := by_name[name].p) is not None])
    q = dict(zip(asked, adjusted, strict=True))
    shares = {c.name: share for c in conditions[1:] if (share := _p_random(c, conditions, by_name)) is not None}
    over_all = dict(zip(shares, holm(list(shares.values())), strict=True))
    run.table("one_shot", OneShotRow).add(
        replace(row, q=q.get(name), p_random=shares.get(name), p_adjusted=over_all.get(name))
        for name, row in by_name.items()
    )
    if not config.conditions and (caveat := controls.caveat(config.setting, len(shares))) is not None:
        run.write_summary("randoms", {"caveat": caveat})


def _p_random(of: Condition, conditions: list[Condition], by_name: dict[str, OneShotRow]) -> float | None:
    def place(condition: Condition) -> tuple[object, ...]:
        return condition.layers, condition.where, condition.tone, abs(condition.dose)

    like = [c for c in conditions if controls.is_control(c.direction) and place(c) == place(of)]
    by_chance = [moved for c in like if (moved := _moved(by_name[c.name])) is not None]
    moved = _moved(by_name[of.name])
    return controls.p_random(moved, by_chance) if moved is not None and by_chance and of not in like else None


def _moved(row: OneShotRow) -> float | None:
    """By how much the share of full passes differs, either way."""
    if row.full_pass is None or row.full_pass_plain is None or not row.n:
        return None
    return abs(row.full_pass - row.full_pass_plain) / row.n


def _conditions(at: Setting, config: Config) -> tuple[list[Condition], DirectionSet]:
    layers = chosen_layers(at.model, ())
    layer = layers[len(layers) // 2] if config.layer is None else config.layer
    of = directions.read(Path(config.directions)) if config.directions else learnt(at, "stories", [layer], ())
    pushes = [(of.names[0], config.dose), (of.names[0], -config.dose)]
    pushes += [(name, config.dose) for name in controls.names(config.setting)]
    made = [
        Condition(name=f"{name}{dose:+g}", direction=name, dose=dose, layers=(layer,), where="prompt")
        for name, dose in pushes
    ]
    return [BASELINE, *(config.conditions or made)], of


def _row(name: str, rows: list[AttemptRow]) -> OneShotRow:
    plain = {(row.task, row.sample): row for row in rows if row.condition == BASELINE.name}
    pairs = [(row, plain[row.task, row.sample]) for row in rows if row.condition == name]
    ran = [(a, b) for a, b in pairs if a.full_pass is not None and b.full_pass is not None]
    invalid, before = (sum(not pair[side].valid_python for pair in ran) / max(1, len(ran)) for side in (0, 1))
    broken = over_steered(invalid, before)
    test = mcnemar([bool(a.full_pass) for a, _ in ran], [bool(b.full_pass) for _, b in ran])
    return OneShotRow(
        condition=name,
        full_pass=None if broken else sum(bool(a.full_pass) for a, _ in ran),
        full_pass_plain=None if broken else sum(bool(b.full_pass) for _, b in ran),
        hardcoded=None if broken else sum(a.hardcoded for a, _ in ran),
        hardcoded_plain=None if broken else sum(b.hardcoded for _, b in ran),
        invalid=invalid,
        invalid_plain=before,
        over_steered=broken,
        p=None if broken else test.p,
        q=None,
        p_random=None,
        n=len(ran),
        not_run=len(pairs) - len(ran),
    )
