"""What experiments are made of, without a model: registry, logistic regression, receiver heads, marked decisions."""

from __future__ import annotations

import numpy as np
import pytest
from agentsignals.errors import LabError

from agentsignals_lab import experiments, steering
from agentsignals_lab.conditions import BASELINE, Condition
from agentsignals_lab.directions import DirectionSet
from agentsignals_lab.experiment_setup import checked_config
from agentsignals_lab.experiments import controls, effects, feedback_steering, prediction, replacements
from agentsignals_lab.experiments.logistic import fitted, gain, held_out
from agentsignals_lab.experiments.receivers import kurtosis, vertical_scores, without_position
from agentsignals_lab.experiments.setting import SettingConfig, with_decision
from agentsignals_lab.residual.interface import Message, Piece, Prompt, Span
from agentsignals_lab.retry.rows import AttemptRow, ProjectionRow
from agentsignals_lab.statistics import caveat, p_random


@pytest.mark.parametrize("name", experiments.NAMES)
def test_every_experiment_says_what_it_asks_and_runs_without_settings(name: str) -> None:
    found = experiments.experiment(name)
    assert len(experiments.NAMES[name]) > 20
    assert experiments.config(name, {}) == found.Config()
    assert callable(found.run)
    assert checked_config(found.Config()) == {}, "its defaults name no file"


def test_a_setting_that_is_unknown_or_of_a_wrong_kind_is_refused() -> None:
    assert experiments.config("patching", {"layers": [1], "setting": {"tasks": 5}}).setting.tasks == 5
    for name, settings in (
        ("patching", {"layer": 1}),
        ("patching", {"layers": "1"}),
        ("patching", {"places": ["somewhere"]}),
        ("nothing", {}),
    ):
        with pytest.raises(LabError):
            experiments.config(name, settings)


def test_the_token_where_code_parts_ways_is_a_span_of_its_own() -> None:
    prompt = Prompt((1, 2, 3, 4, 5), (Span("task", 0, 2), Span("code", 2, 5, "1")))
    last, inner = with_decision(prompt), with_decision(prompt, 3)
    assert last.spans == (Span("task", 0, 2), Span("code", 2, 4, "1"), Span("code", 4, 5, "decision"))
    assert inner.spans[1:] == (Span("code", 2, 3, "1"), Span("code", 3, 4, "decision"), Span("code", 4, 5, "1"))


def test_logistic_weights_are_those_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    chance = np.random.default_rng(1)
    features = chance.normal(size=(200, 3))
    wanted = (features @ [1.0, -2.0, 0.0] + 0.5 + chance.logistic(size=200) > 0).astype(float)
    theirs = linear_model.LogisticRegression(C=1 / 2.5, tol=1e-10, max_iter=1000).fit(features, wanted)
    found = fitted(features, wanted, ridge=2.5)
    assert found[1:] == pytest.approx(theirs.coef_[0], abs=1e-4)
    assert found[0] == pytest.approx(theirs.intercept_[0], abs=1e-4)


def test_a_perfectly_parted_outcome_still_has_finite_weights() -> None:
    features = np.linspace(-1, 1, 20)[:, None]
    assert np.isfinite(fitted(features, (features[:, 0] > 0).astype(float))).all()


def test_a_task_never_helps_to_predict_itself() -> None:
    # The feature names the task, the outcome is the task's: known tasks are perfectly told, new ones not at all.
    tasks = [f"t{n}" for n in range(20) for _ in range(5)]
    outcome = np.repeat(np.random.default_rng(2).permutation([0.0, 1.0] * 10), 5)
    names = np.eye(20)[np.repeat(np.arange(20), 5)]
    of_task = held_out(names, outcome, tasks).reshape(20, 5)
    assert np.ptp(of_task, axis=1) == pytest.approx(np.zeros(20))
    found = gain(np.zeros((100, 1)), names, outcome, tasks)
    assert found.full < 0.6
    assert (found.n, found.positive, found.tasks) == (100, 50, 20)


def test_a_gain_is_found_where_a_feature_tells_more_than_the_baseline_and_only_there() -> None:
    chance = np.random.default_rng(3)
    tasks = [f"t{n}" for n in range(60) for _ in range(4)]
    base, new, noise = chance.normal(size=(3, 240, 1))
    outcome = ((base + 2 * new)[:, 0] + chance.logistic(size=240) > 0).astype(float)
    found, nothing = gain(base, new, outcome, tasks), gain(base, noise, outcome, tasks)
    assert found.gain > 0.1
    assert found.low > 0
    assert found.gain == pytest.approx(found.full - found.base)
    assert nothing.low < 0 < nothing.high + 0.02
    assert abs(nothing.gain) < 0.05


def test_kurtosis_is_scipys_and_leaves_out_what_is_unknown() -> None:
    stats = pytest.importorskip("scipy.stats")
    rows = np.random.default_rng(4).exponential(size=(2, 3, 12))
    assert kurtosis(rows) == pytest.approx(stats.kurtosis(rows, axis=-1))
    holed = np.concatenate([rows, np.full((2, 3, 1), np.nan)], axis=-1)
    assert kurtosis(holed) == pytest.approx(kurtosis(rows))
    assert np.isnan(kurtosis(np.ones((1, 5)))).all()


def test_a_head_that_all_later_sentences_send_to_one_has_that_vertical_score() -> None:
    units = [(0, 2), (2, 3), (3, 5), (5, 6), (6, 8)]
    attention = np.zeros((1, 2, 8, 8))
    attention[0, 0, 3:, 2] = 0.5  # head 0: tokens of units 2, 3 and 4 look at unit 1
    attention[0, 1, 3:5, 2] = 0.5  # head 1: only unit 2, the nearest
    near, far = (vertical_scores(attention, units, ignore) for ignore in (0, 1))
    assert near[0, 0, 1] == pytest.approx(0.5)
    assert near[0, 1, 1] == pytest.approx(0.5 / 3)
    assert far[0, 0, 1] == pytest.approx(0.5)
    assert far[0, 1, 1] == 0
    assert np.isnan(far[0, :, -2:]).all()


def test_what_depends_on_the_place_alone_is_taken_out() -> None:
    places = np.linspace(0, 1, 11)
    by_place = 3 - 2 * places + 5 * places**2
    assert without_position(by_place, places) == pytest.approx(np.zeros(11), abs=1e-9)
    told = by_place.copy()
    told[4] += 1
    assert without_position(told, places).argmax() == 4


def attempt(number: int, **given: object) -> AttemptRow:
    usual: dict[str, object] = {
        "condition": "c", "task": "t@1+one_off", "sample": 0, "attempt": number, "seed": 0,
        "prompt_tokens": 10 + number,
        "tokens": 5, "finish": "stop", "logprob_sum": None, "answer": "", "source": "", "feedback": "", "error": "",
        "error_class": "wrong_value", "valid_python": True, "visible_pass": False, "hidden_pass": False,
        "full_pass": False, "visible_passed": 0, "n_visible": 1, "hidden_passed": 0, "n_hidden": 1, "hardcoded": False,
        "imports_missing": [], "off_task": "", "test_mentions_per_100_words": None,
        "writes_tests": False, "marker_score": number, "frustration_per_100_words": None,
        "desperation_per_100_words": None, "give_up_per_100_words": None, "prose_words": 0, "evaluator": "1",
        "tier": None, "wall_time_s": 0.0,
    }  # fmt: skip
    return AttemptRow(**(usual | given))  # type: ignore[arg-type]  # the fields, by name


def projection(number: int, coordinate: float | None, span: str = "feedback") -> ProjectionRow:
    return ProjectionRow(
        condition="c", task="t@1+one_off", sample=0, attempt=number, direction="d", layer=1, span=span, cosine=0.0,
        coordinate=coordinate,
    )  # fmt: skip


def test_an_attempt_is_predicted_from_what_came_before_it() -> None:
    attempts = [attempt(0, error_class="timeout"), attempt(1, hardcoded=True)]
    told = [projection(0, 9.0), projection(1, 2.5), projection(1, 7.0, "all")]
    (item,), names, left_out = prediction.gathered(attempts, told, [("d", 1)])
    assert dict(zip(names, item.base, strict=True)) == {
        "attempt": 1, "prompt_tokens": 11, "marker_score": 0, "error:timeout": 1, "error:wrong_value": 0,
    }  # fmt: skip
    assert (item.task, item.added, item.hardcoded, item.failed, left_out) == ("t@1", (2.5,), True, True, 0)


def test_attempts_after_visible_frustration_or_without_a_projection_are_left_out_and_counted() -> None:
    told = [projection(n, 1.0) for n in (1, 2)]
    angry = [attempt(0, frustration_per_100_words=1.0), attempt(1), attempt(2)]
    assert prediction.gathered(angry, told, [("d", 1)])[2] == 2
    assert len(prediction.gathered(angry, told, [("d", 1)], before_frustration=False)[0]) == 2
    calm = [attempt(0), attempt(1), attempt(2, frustration_per_100_words=1.0)]
    assert len(prediction.gathered(calm, told, [("d", 1)])[0]) == 2
    assert prediction.gathered(calm, [projection(1, None), projection(2, 1.0)], [("d", 1)])[2] == 1
    assert prediction.gathered([attempt(0), attempt(1, full_pass=None), attempt(2)], told, [("d", 1)])[2] == 1


def test_layer_and_dose_are_chosen_by_what_goes_beyond_chance_not_by_the_effect() -> None:
    upward = {(0, 1.0): 0.3, (2, 2.0): 0.6, (1, 1.0): 0.2}
    by_chance = {(0, 1.0): [0.0, 0.05], (2, 2.0): [0.1, 0.5], (1, 1.0): [-0.1, 0.0]}
    assert feedback_steering.most_specific(upward, by_chance) == (0, 1.0)


def test_the_random_directions_of_experiments_are_the_controls_of_conditions() -> None:
    asked = SettingConfig(randoms=3)
    drawn = controls.vectors(asked, 16)
    of = DirectionSet(
        names=("d",), layers=(0, 1), vectors=np.ones((1, 2, 16), np.float32), centre=np.zeros((2, 16), np.float32),
        recipe="contrast", texts="", model="", counts={},
    )  # fmt: skip
    for name, vector in zip(controls.names(asked), drawn, strict=True):
        for layer in of.layers:
            assert steering.vector(of, name, layer) / 4 == pytest.approx(vector, abs=1e-6)
        assert Condition(name=name, direction=name).is_control
    assert np.linalg.norm(drawn, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    assert not Condition(name="c", direction="desperate").is_control
    assert not BASELINE.is_control


def test_random_directions_that_choose_are_others_than_those_that_judge() -> None:
    assert not set(controls.seeds(SettingConfig())) & set(controls.seeds(SettingConfig(), chooses=True))
    assert len(controls.seeds(SettingConfig(), chooses=True)) == 20
    assert len(controls.seeds(SettingConfig(randoms=3), chooses=True)) == 3
    with pytest.raises(LabError, match="0 random directions"):
        controls.seeds(SettingConfig(randoms=0))


def test_the_spread_along_random_directions_is_that_of_many_drawn_ones() -> None:
    state = np.random.default_rng(5).exponential(size=48).astype(np.float32)
    drawn = controls.vectors(SettingConfig(randoms=10_000), 48) @ state
    assert drawn.std() == pytest.approx(controls.spread(state), rel=0.03)
    assert abs(drawn.mean()) < 0.05 * controls.spread(state)


@pytest.mark.parametrize(
    ("effect", "by_chance", "p"), [(2.0, [0.0, 1.0, -3.0], 0.25), (1.0, [0.0, 1.0, 2.0], 0.75), (-1.0, [0.0], 1.0)]
)
def test_the_share_of_random_directions_counts_the_real_one_and_ties(
    effect: float, by_chance: list[float], p: float
) -> None:
    assert p_random(effect, by_chance) == p


def road(up: float, by_chance: np.ndarray) -> feedback_steering.Judged:
    def side(effect: float) -> effects.EffectRow:
        return effects.EffectRow(
            condition="", treated=effect, plain=0.0, effect=effect, low=effect, high=effect, p=0.0, q=None, opposed=0.0,
            n=9, tasks=9, unit="",
        )  # fmt: skip

    return feedback_steering.Judged(
        source="stories", place="feedback", layer=0, dose=1.0, up=side(up), down=side(-up), random_mean=0.0,
        random_sd=1.0, random_most=float(by_chance.max()), p_random=p_random(up, by_chance.tolist()),
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
        false += any(one.specific for one in feedback_steering.with_verdicts(roads, asked))
        by_20 += any(up > by_chance[n % len(by_chance)][:20].max() for n, up in enumerate(ups))
    assert false / runs < 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
    assert by_20 / runs > 0.15  # as it was told of 20 random directions, uncorrected


def test_a_direction_beyond_all_random_ones_is_specific_where_there_are_enough_of_them() -> None:
    by_chance = np.linspace(-1, 1, SettingConfig().randoms)
    found = feedback_steering.with_verdicts([road(2.0, by_chance)] + [road(0.0, by_chance)] * 5, SettingConfig())
    assert [one.specific for one in found] == [True] + [False] * 5
    assert found[0].p_adjusted == pytest.approx(6 / 120)
    assert found[0].caveat is None
    few = SettingConfig(randoms=20)
    found = feedback_steering.with_verdicts([road(2.0, by_chance[:20])] + [road(0.0, by_chance[:20])] * 5, few)
    assert not any(one.specific for one in found)
    assert "randoms = 119 will do" in found[0].caveat
    assert caveat(SettingConfig().randoms, 6) is None


def unit_with(state: list[float], others: list[list[float]], copies: int = 0, empty: int = 0) -> replacements.Drawn:
    changes = np.arange(1.0, 1.0 + len(others))
    return replacements.Drawn(np.array(state), np.reshape(others, (-1, len(state))), changes, copies, empty)


def test_the_cosine_of_a_replacement_is_seen_from_the_mean_of_the_units() -> None:
    units = [unit_with([11.0, 5.0], [[12.0, 5.0], [9.0, 5.0], [10.0, 7.0]]), unit_with([9.0, 5.0], [])]
    alike = replacements.cosines(units)
    assert alike[0] == pytest.approx([1, -1, 0])
    assert len(alike[1]) == 0
    assert replacements.limit(alike) == pytest.approx(0)
    assert replacements.limit([np.empty(0)]) is None


def counts(change: float | None, *, kept: int, alike: int, unclear: int) -> replacements.Counted:
    return replacements.Counted(change=change, kept=kept, copies=2, empty=1, alike=alike, unclear=unclear)


def test_replacements_below_the_limit_count_and_all_others_are_left_out_for_a_reason() -> None:
    unit, alike = unit_with([1.0], [[1.0], [2.0], [3.0], [4.0]], copies=2, empty=1), np.array([0.9, 0.1, 0.2, np.nan])
    assert replacements.counted(unit, alike, 0.5) == counts(2.5, kept=2, alike=1, unclear=1)
    assert replacements.counted(unit, alike, 0.2) == counts(2.0, kept=1, alike=2, unclear=1)
    assert replacements.counted(unit, alike, None) == counts(None, kept=0, alike=0, unclear=4)


def test_a_state_that_is_unknown_is_like_nothing_and_does_not_count() -> None:
    units = [unit_with([np.nan, 1.0], [[1.0, 1.0]]), unit_with([1.0, 1.0], [[1.0, 1.0]])]
    alike = replacements.cosines(units)
    assert np.isnan(np.concatenate(alike)).all()  # the only known unit is the centre itself
    assert replacements.counted(units[0], alike[0], 1.0).kept == 0


def test_a_replacement_keeps_the_blanks_around_a_unit_and_all_other_words() -> None:
    chat = [Message("user", (Piece("task", "Do it."), Piece("text", " was sad. \n", "0")))]
    (told,) = replacements.with_text(chat, "0", "was glad.")
    assert [piece.text for piece in told.pieces] == ["Do it.", " was glad. \n"]
    assert told.pieces[1].label == "0"
