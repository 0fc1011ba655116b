"""What experiments are made of, without a model: the registry, choices, verdicts, marked decisions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from agentsignals.errors import LabError

from agentsignals_lab import experiments, steering
from agentsignals_lab.conditions import BASELINE, Condition
from agentsignals_lab.directions import DirectionSet
from agentsignals_lab.experiments import checked_config, grid
from agentsignals_lab.experiments.setting import SettingConfig, with_decision
from agentsignals_lab.residual import Prompt, Span
from agentsignals_lab.statistics import caveat, p_random


@pytest.mark.parametrize("name", experiments.NAMES)
def test_every_experiment_says_what_it_asks_and_runs_without_settings(name: str) -> None:
    found = experiments.experiment(name)
    assert len(experiments.NAMES[name]) > 20
    assert experiments.config(name, {}) == found.Config()
    assert callable(found.run)
    assert checked_config(found.Config()) == {}, "its defaults name no file"


def test_a_setting_that_is_unknown_or_of_a_wrong_kind_is_refused() -> None:
    assert experiments.config("grid", {"layers": [1], "setting": {"tasks": 5}}).setting.tasks == 5
    for name, settings, says in (
        ("grid", {"layer": 1}, "no setting 'layer'"),
        ("grid", {"layers": "1"}, "Expected `array`"),
        ("grid", {"places": ["somewhere"]}, "places takes feedback, task, tests"),
        ("grid", {"doses": []}, "length >= 1"),
        ("grid", {"places": ["generated"], "interventions": ["patch"]}, "leave it out"),
        ("directions", {"recipes": ["best"]}, "recipes takes published, grand_mean"),
        ("grid", {"setting": {"taks": 5}}, "`taks`"),
        ("nothing", {}, "no experiment 'nothing'"),
    ):
        with pytest.raises(LabError) as refused:
            experiments.config(name, settings)
        assert says in f"{refused.value} {refused.value.hint}", (name, settings)


def test_the_token_where_code_parts_ways_is_a_span_of_its_own() -> None:
    prompt = Prompt((1, 2, 3, 4, 5), (Span("task", 0, 2), Span("code", 2, 5, "1")))
    last, inner = with_decision(prompt), with_decision(prompt, 3)
    assert last.spans == (Span("task", 0, 2), Span("code", 2, 4, "1"), Span("code", 4, 5, "decision"))
    assert inner.spans[1:] == (Span("code", 2, 3, "1"), Span("code", 3, 4, "decision"), Span("code", 4, 5, "1"))


def test_layer_and_dose_are_chosen_by_what_goes_beyond_chance_not_by_the_effect() -> None:
    upward = {(0, 1.0): 0.3, (2, 2.0): 0.6, (1, 1.0): 0.2}
    by_chance = {(0, 1.0): [0.0, 0.05], (2, 2.0): [0.1, 0.5], (1, 1.0): [-0.1, 0.0]}
    assert grid.most_specific(upward, by_chance) == (0, 1.0)


@pytest.mark.parametrize(
    ("does", "dose", "moved", "opposed"),
    [("steer", 1.0, -1.0, 1.0), ("steer", -1.0, -1.0, 0.0), ("ablate", 1.0, -1.0, 0.0), ("patch", None, -1.0, 0.0)],
)
def test_what_is_opposed_moves_against_a_steering_dose_else_against_the_effect(
    does: str, dose: float | None, moved: float, opposed: float
) -> None:
    scenes = [SimpleNamespace(task=SimpleNamespace(key=f"t{n}")) for n in range(4)]
    ground = grid.Ground(SimpleNamespace(unit="nats"), grid.Config(), (0,), None, lambda: None)
    half = grid.Half(scenes, {"read": np.zeros(4)})
    found = ground.effect(grid.Cell(does, "calm", dose=dose), half, {"read": np.full(4, moved)})
    assert found["read"].opposed == opposed


def test_the_random_directions_of_experiments_are_the_controls_of_conditions() -> None:
    asked = SettingConfig(randoms=3)
    drawn = grid.randoms(asked, 16)
    of = DirectionSet(
        names=("d",), layers=(0, 1), vectors=np.ones((1, 2, 16), np.float32), centre=np.zeros((2, 16), np.float32),
        recipe="contrast", texts="", model="", counts={},
    )  # fmt: skip
    for name, vector in zip([f"random:{n}" for n in grid.seeds(asked)], drawn, strict=True):
        for layer in of.layers:
            assert steering.vector(of, name, layer) / 4 == pytest.approx(vector, abs=1e-6)
        assert Condition(name=name, direction=name).is_control
    assert np.linalg.norm(drawn, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    assert not Condition(name="c", direction="desperate").is_control
    assert not BASELINE.is_control


def test_random_directions_that_choose_are_others_than_those_that_judge() -> None:
    assert not set(grid.seeds(SettingConfig())) & set(grid.seeds(SettingConfig(), chooses=True))
    assert len(grid.seeds(SettingConfig(), chooses=True)) == 20
    assert len(grid.seeds(SettingConfig(randoms=3), chooses=True)) == 3
    with pytest.raises(LabError, match="0 random directions"):
        grid.seeds(SettingConfig(randoms=0))


@pytest.mark.parametrize(
    ("effect", "by_chance", "p"), [(2.0, [0.0, 1.0, -3.0], 0.25), (1.0, [0.0, 1.0, 2.0], 0.75), (-1.0, [0.0], 1.0)]
)
def test_the_share_of_random_directions_counts_the_real_one_and_ties(
    effect: float, by_chance: list[float], p: float
) -> None:
    assert p_random(effect, by_chance) == p


def road(up: float, by_chance: np.ndarray) -> grid.Judged:
    def side(effect: float) -> grid.EffectRow:
        return grid.EffectRow(
            **grid.Cell("steer", "calm")._asdict(), outcome="read", unit="", effect=effect, low=effect, high=effect,
        )  # fmt: skip

    return grid.Judged(
        intervention="steer", source="stories", place="feedback", outcome="read", layer=0, dose=1.0, up=side(up),
        down=side(-up), random_mean=0.0, random_sd=1.0, random_most=float(by_chance.max()),
        p_random=p_random(up, by_chance.tolist()),
    )  # fmt: skip


@pytest.mark.parametrize("shared", [False, True])
def test_of_runs_where_nothing_is_specific_one_in_twenty_says_otherwise(shared: bool) -> None:
    """Six roads whose directions are as random as those they are held against, and whose other two conditions are met:
    places may share their random directions, which makes the roads alike."""
    chance, asked, runs = np.random.default_rng(7), SettingConfig(), 2_000
    false, by_20 = 0, 0
    for _ in range(runs):
        by_chance = chance.exponential(size=(1 if shared else 6, asked.randoms))
        ups = chance.exponential(size=6)
        roads = [road(up, by_chance[n % len(by_chance)]) for n, up in enumerate(ups)]
        false += any(one.specific for one in grid.with_verdicts(roads, asked))
        by_20 += any(up > by_chance[n % len(by_chance)][:20].max() for n, up in enumerate(ups))
    assert false / runs < 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
    assert by_20 / runs > 0.15  # as it was told of 20 random directions, uncorrected


def test_a_direction_beyond_all_random_ones_is_specific_where_there_are_enough_of_them() -> None:
    by_chance = np.linspace(-1, 1, SettingConfig().randoms)
    found = grid.with_verdicts([road(2.0, by_chance)] + [road(0.0, by_chance)] * 5, SettingConfig())
    assert [one.specific for one in found] == [True] + [False] * 5
    assert found[0].p_adjusted == pytest.approx(6 / 120)
    assert found[0].caveat is None
    few = SettingConfig(randoms=20)
    found = grid.with_verdicts([road(2.0, by_chance[:20])] + [road(0.0, by_chance[:20])] * 5, few)
    assert not any(one.specific for one in found)
    assert "no adjusted p is below 0.29" in found[0].caveat and "Set randoms = 119" in found[0].caveat


@pytest.mark.parametrize(
    ("randoms", "tests", "says"),
    [
        (119, 6, None), (119, 7, "no adjusted p is below 0.058, whatever a direction does. Set randoms = 139."),
        (100, 1, None), (99, 1, "p moves in steps of 0.01. Set randoms = 100."),
        (18, 1, "no adjusted p is below 0.053"),
    ],
)  # fmt: skip
def test_a_cell_is_judged_by_a_hundred_random_directions_and_twenty_a_test(
    randoms: int, tests: int, says: str | None
) -> None:
    told = caveat(randoms, tests)
    assert told is None if says is None else told is not None and says in told
