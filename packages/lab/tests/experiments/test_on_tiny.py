"""Experiments find what was put into the tiny world, and nothing where nothing is. Bands are wide: it is retrained.

Seed 0 sees little in its first block, so the tone stays on the feedback's tokens until the next; seed 1 has moved it to
where the answer begins before anything can be steered: there, steering the feedback must do nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

from agentsignals.errors import LabError  # noqa: E402

from agentsignals_lab import directions  # noqa: E402  (after the check that it can be loaded)
from agentsignals_lab.experiments import directions as directions_experiment  # noqa: E402
from agentsignals_lab.experiments import (  # noqa: E402
    effects,
    emotion_anchors,
    feedback_steering,
    patching,
    sae_features,
    sampled_behaviour,
    trajectory_probe,
)
from agentsignals_lab.experiments.chosen_setting import setting  # noqa: E402
from agentsignals_lab.experiments.setting import SettingConfig  # noqa: E402
from agentsignals_lab.residual import public_sae  # noqa: E402
from tests.experiments import small_sae, tiny  # noqa: E402

pytestmark = pytest.mark.torch
FEW = {"setting": {"tasks": 16}}


def summary(folder: Path, name: str) -> Any:
    return msgspec.json.decode((folder / f"{name}.json").read_bytes())


@pytest.mark.parametrize("seed", [0, 1])
def test_a_tone_changes_the_outcome_and_hiding_the_feedback_takes_that_away(tmp_path: Path, seed: int) -> None:
    run = tiny.ran(tmp_path / "s", "suppression", {**FEW, "places": ["feedback", "code"]}, seed)
    told = {row.condition: row for row in run.table("effects", effects.EffectRow).rows}
    assert set(told) == {"tone calm", "tone desperate"} | {
        f"{place}/{tone}" for place in ("feedback", "code") for tone in ("calm", "neutral", "desperate")
    }
    assert told["tone calm"].effect < -0.15
    desperate = told["tone desperate"]
    assert desperate.effect > 0.4
    assert desperate.low > 0.3
    assert desperate.opposed == 0
    assert desperate.q is not None
    assert desperate.q < 0.01
    left = summary(tmp_path / "s", "suppression")["left"]
    assert abs(left["feedback"]) < 0.15
    assert left["code"] > 0.8


def test_drawn_answers_are_counted_by_kind_and_random_directions_do_nothing(tmp_path: Path) -> None:
    config = {"setting": {"tasks": 60, "randoms": 2}, "layer": 0, "doses": [1.0, -1.0], "max_new_tokens": 20}
    for seed in (0, 1):
        run = tiny.ran(tmp_path / str(seed), "sampled_behaviour", config, seed)
        rows = {(r.condition, r.behaviour): r for r in run.table("behaviour", sampled_behaviour.BehaviourRow).rows}
        conditions = {condition for condition, _ in rows}
        assert len(conditions) == 7
        for condition in conditions:
            kinds = [rows[condition, behaviour] for behaviour in sampled_behaviour.BEHAVIOURS]
            assert sum(row.count for row in kinds) == kinds[0].n == 30
        assert rows["neutral", "hardcoded"].difference is None
        calm, chance = rows["tone calm", "hardcoded"], rows["random:1 +1", "hardcoded"]
        assert calm.difference_high < 0 < calm.high
        assert calm.q < 0.05
        assert chance.difference_low <= 0 <= chance.difference_high
        assert (chance.q, chance.p_random, calm.p_random) == (None, None, None)
        assert rows["desperate +1", "hardcoded"].p_random in (1 / 3, 2 / 3, 1.0)
        assert rows["desperate +1", "hardcoded"].p_adjusted == 1.0
        assert rows["desperate +1", "other_code"].p_random is None
        assert "4 tests" in summary(tmp_path / str(seed), "randoms")["caveat"]
    # Seed 1 copies numbers, so that the tone shows in whole answers; it has moved the mood on before block 0 ends.
    assert rows["tone desperate", "hardcoded"].difference_low > 0.2
    assert rows["desperate +1", "hardcoded"].difference_low <= 0 <= rows["desperate +1", "hardcoded"].difference_high


def test_a_patch_says_where_the_tone_is(tmp_path: Path) -> None:
    shares: dict[int, dict[tuple[int, str, str], float]] = {}
    for seed in (0, 1):
        config = {"setting": {"tasks": 6}, "places": ["feedback", "task", "decision"]}
        run = tiny.ran(tmp_path / str(seed), "patching", config, seed)
        rows = run.table("patches", patching.PatchRow).rows
        assert all(row.unfit == 0 and row.n == 6 for row in rows)
        shares[seed] = {(r.layer, r.place, r.way): r.recovered for r in rows if r.recovered is not None}
        for way in ("denoise", "noise"):
            assert shares[seed][2, "decision", way] > 0.9
            assert abs(shares[seed][2, "task", way]) < 0.1
    assert shares[0][0, "feedback", "denoise"] > 0.9
    assert shares[0][0, "decision", "denoise"] < 0.1
    assert shares[1][0, "feedback", "noise"] < 0.1
    assert summary(tmp_path / "1", "patching")["carried_from"]["feedback"] is None


def test_steering_the_feedback_works_where_the_tone_still_is_and_not_where_it_has_left(tmp_path: Path) -> None:
    config = {
        "setting": {"tasks": 24}, "sources": ["feedback"], "places": ["feedback"], "doses": [1.0, 2.0],
        "layers": [0, 1],
    }  # fmt: skip
    for seed in (0, 1):
        tiny.ran(tmp_path / str(seed), "feedback_steering", config, seed)
    (works,), (null,) = (summary(tmp_path / str(seed), "chosen") for seed in (0, 1))
    assert works["specific"]
    assert works["layer"] == 0
    assert works["up"]["effect"] > 0.2 + works["random_mean"]
    assert works["up"]["effect"] > works["random_mean"] + 5 * works["random_sd"]
    assert works["p_random"] == works["p_adjusted"] == pytest.approx(1 / 120)
    assert works["caveat"] is None
    assert works["down"]["effect"] < 0
    assert abs(null["up"]["effect"]) < 0.1


def test_at_the_decision_only_its_own_direction_goes_beyond_every_random_push(tmp_path: Path) -> None:
    config = {
        "setting": {"tasks": 24}, "sources": ["decision"], "places": ["decision"], "doses": [1.0, 2.0], "layers": [2],
    }  # fmt: skip
    run = tiny.ran(tmp_path / "r", "feedback_steering", config)
    (found,) = summary(tmp_path / "r", "chosen")
    assert found["specific"]
    assert found["up"]["effect"] > found["random_most"]
    assert found["down"]["effect"] < -0.1
    rows = run.table("doses", feedback_steering.DoseRow).rows
    assert {(row.part, row.dose) for row in rows} == {(p, d) for p in ("dev", "test") for d in (-2, -1, 1, 2)}
    judged = {row.task for row in run.table("items", effects.ItemRow).rows}
    assert len(judged) == 12  # those that had no say in the choice


def test_directions_part_tones_on_held_out_tasks_and_the_published_recipe_blurs_them(tmp_path: Path) -> None:
    run = tiny.ran(tmp_path / "r", "directions", {"setting": {"tasks": 30}, "shuffles": 20})
    apart = {
        (r.recipe, r.learnt_from, r.judged_on, r.layer): r
        for r in run.table("separation", directions_experiment.SeparationRow).rows
    }
    assert apart["grand_mean", "stories", "stories", 1].auroc > 0.9
    assert apart["contrast", "stories", "feedback", 1].auroc > 0.9
    assert apart["contrast", "decision", "decision", 2].auroc > 0.8
    # The control: mood words part stories by themselves; the last token is the same in both tones and tells nothing.
    assert apart["grand_mean", "stories", "stories", -1].auroc > 0.9
    assert apart["contrast", "decision", "decision", -1].auroc == 0.5
    cosines = {(r.recipe, r.layer): r for r in run.table("geometry", directions_experiment.GeometryRow).rows}
    for layer in range(3):
        published = cosines["published", layer].high_low_cosine
        assert cosines["grand_mean", layer].high_low_cosine < min(0, published)
    for name in ("published", "grand_mean", "grand_mean_cleaned", "contrast", "probe", "feedback", "decision"):
        assert directions.read(tmp_path / "r" / f"directions-{name}.npz").layers == (0, 1, 2)


def test_prompts_move_along_the_emotion_of_their_tone(tmp_path: Path) -> None:
    run = tiny.ran(tmp_path / "r", "trajectory_probe", {"setting": {"tasks": 8}, "layers": [1]})
    trends = {one["direction"]: one["change"] for one in summary(tmp_path / "r", "trends")}
    assert trends["desperate"]["low"] > 0
    assert trends["calm"]["high"] < 0
    rows = run.table("probe", trajectory_probe.ProbeRow).rows
    means = {
        span: np.mean([r.z for r in rows if (r.stage, r.direction, r.span) == ("desperate", "desperate", span)])
        for span in ("feedback", "tests")
    }
    assert means["feedback"] > means["tests"] + 0.5


@pytest.mark.parametrize("seed", [0, 1])
def test_the_sentence_that_sets_the_mood_is_the_anchor(tmp_path: Path, seed: int) -> None:
    run = tiny.ran(tmp_path / "r", "emotion_anchors", {**FEW, "ignore": 0, "heads": 2, "samples": 2}, seed)
    rows = run.table("anchors", emotion_anchors.AnchorRow).rows
    hidden = {
        kind: np.mean([r.hidden_beyond_place for r in rows if r.unit.endswith(kind)])
        for kind in ("desperate", "neutral")
    }
    assert hidden["desperate"] > hidden["neutral"] + 0.2
    assert {r.place for r in rows if r.unit == "tests"} == {1.0}
    assert all(r.removed_sampled is not None and -1 <= r.removed_sampled <= 1 for r in rows)
    assert len(summary(tmp_path / "r", "receiver_heads")) == 2
    replaced = {
        kind: np.mean([r.replaced for r in rows if r.unit.endswith(kind) and r.replaced is not None])
        for kind in ("desperate", "neutral")
    }
    assert replaced["desperate"] > replaced["neutral"] + 0.2


@pytest.mark.parametrize("seed", [0, 1])
def test_replacements_that_say_the_same_do_not_count(tmp_path: Path, seed: int) -> None:
    """Those of a desperate sentence are desperate, too, now and then: leaving them out shows more of what it does."""
    change: dict[float | None, float] = {}
    for cosine in (None, 1.0):
        folder = tmp_path / str(cosine)
        run = tiny.ran(folder, "emotion_anchors", {"setting": {"tasks": 10}, "ignore": 0, "cosine": cosine}, seed)
        rows = run.table("anchors", emotion_anchors.AnchorRow).rows
        assert {row.kept + row.copies + row.empty + row.alike + row.unclear for row in rows} == {8}
        counts = summary(folder, "counterfactuals")
        names = ("kept", "copies", "empty", "alike", "unclear")
        assert [counts[name] for name in names] == [sum(getattr(row, name) for row in rows) for name in names]
        assert all((row.replaced is None) == (row.kept == 0) for row in rows)
        change[cosine] = np.mean([r.replaced for r in rows if r.unit.endswith("desperate") and r.kept])
    assert change[None] > change[1.0] + 0.03
    run = tiny.ran(
        tmp_path / "few",
        "emotion_anchors",
        {"setting": {"tasks": 2}, "ignore": 0, "cosine": -1.0, "replacements": 3},
        seed,
    )
    rows = run.table("anchors", emotion_anchors.AnchorRow).rows
    assert {(row.kept, row.copies + row.empty + row.alike, row.replaced) for row in rows} == {(0, 3, None)}


@pytest.mark.parametrize("randoms", [1, 3])
def test_as_many_random_directions_as_the_setting_says_stand_beside_the_direction(tmp_path: Path, randoms: int) -> None:
    few: dict[str, Any] = {"setting": {"tasks": 4, "randoms": randoms}}
    config = {**few, "sources": ["feedback"], "places": ["feedback"], "doses": [1.0], "layers": [0]}
    tiny.ran(tmp_path / "f", "feedback_steering", config)
    (judged,) = summary(tmp_path / "f", "chosen")
    assert judged["p_random"] == judged["p_adjusted"] == pytest.approx(1 / (1 + randoms))
    assert not judged["specific"]
    assert "randoms = 19 will do" in judged["caveat"]


def test_projections_before_an_attempt_tell_of_cheating_beyond_what_anyone_sees(tmp_path: Path) -> None:
    config = {"setting": {"tasks": 18}, "attempts": 2, "max_new_tokens": 20}
    tiny.ran(tmp_path / "r", "prediction", config, 1)
    told = {one["outcome"]: one for one in summary(tmp_path / "r", "prediction")}
    found = told["hardcoded"]["auroc"]
    assert found["gain"] > 0.1
    assert found["low"] > 0
    assert "attempt" in told["hardcoded"]["baselines"]
    again = tiny.ran(tmp_path / "again", "prediction", {"run": str(tmp_path / "r")}, 1)
    assert summary(again.folder, "prediction") == summary(tmp_path / "r", "prediction")


def test_an_autoencoder_finds_a_planted_feature_and_gives_states_back() -> None:
    chance = np.random.default_rng(0)
    axes = np.linalg.qr(chance.normal(size=(16, 16)))[0][:6].astype(np.float32)
    on = (chance.random((2000, 6)) < 0.1) * chance.uniform(1, 2, (2000, 6))
    states = (on @ axes + 0.5).astype(np.float32)
    made = small_sae.trained(states, features=12, k=2, steps=600)
    assert sae_features.explained(made, [states[:900], states[900:]]) > 0.9
    found = made.features(states)
    assert ((found > 0).sum(axis=1) <= 2).all()
    assert np.abs(made.decoder @ axes.T).max(axis=0).min() > 0.9
    assert np.linalg.norm(made.decoder, axis=1) == pytest.approx(np.ones(12), abs=1e-4)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Stands in for sae-lens: an autoencoder of the tiny model's states in layer 1."""

    def of(**how: int) -> None:
        at = setting(tiny.model(), SettingConfig(tasks=30))
        prompts = [scene.prompt for tone in (at.low, at.neutral, at.high) for scene in at.scenes(tone)]
        states = np.concatenate([states[0] for states in tiny.model().states(prompts, [1])])
        made = small_sae.trained(states, **how)
        found = SimpleNamespace(
            layer=1, made_for="tiny", decoder=made.decoder, features=made.features, rebuilt=made.rebuilt
        )
        monkeypatch.setattr(public_sae, "read", lambda folder, card: found)

    return of


def test_features_that_part_the_tones_are_found_on_other_tasks(tmp_path: Path, read: Callable[..., None]) -> None:
    read(features=64, k=8, steps=150)
    run = tiny.ran(tmp_path / "r", "sae_features", {"setting": {"tasks": 30}, "sae": "s", "best": 3, "shuffles": 40})
    rows = run.table("features", sae_features.FeatureRow).rows
    best = rows[0]
    assert abs(best.auroc - 0.5) + 0.5 > best.null_high
    told = summary(tmp_path / "r", "sae")
    assert told["direction_auroc"] > 0.95
    assert (told["of"], told["layer"], told["caveat"]) == ("s", 1, None)
    assert told["explained"] == best.explained > 0.5


def test_an_autoencoder_that_gives_little_back_is_told_with_a_caveat(tmp_path: Path, read: Callable[..., None]) -> None:
    read(features=4, k=1, steps=1)
    tiny.ran(tmp_path / "r", "sae_features", {"setting": {"tasks": 8}, "sae": "s", "shuffles": 5})
    told = summary(tmp_path / "r", "sae")
    assert told["explained"] < 0.5
    assert "gives back" in told["caveat"]
    with pytest.raises(LabError, match="No autoencoder was named"):
        tiny.ran(tmp_path / "none", "sae_features", {"setting": {"tasks": 8}})


def test_a_run_that_is_run_again_keeps_its_rows(tmp_path: Path) -> None:
    config = {"setting": {"tasks": 4}, "places": ["feedback"], "layers": [1]}
    once, again = (tiny.ran(tmp_path / "r", "patching", config) for _ in range(2))
    assert once.table("patches", patching.PatchRow).rows == again.table("patches", patching.PatchRow).rows


def test_scenes_of_two_tones_differ_in_their_adjectives_alone() -> None:
    at = setting(tiny.model(), SettingConfig(tasks=5))
    for low, high in zip(at.scenes(at.low), at.scenes(at.high), strict=True):
        assert low.task == high.task
        assert low.prompt.spans == high.prompt.spans
        assert low.prompt.spans[-1].label == "decision"
        different = [n for n, (a, b) in enumerate(zip(low.prompt.tokens, high.prompt.tokens, strict=True)) if a != b]
        (feedback,) = (span for span in low.prompt.spans if span.role == "feedback")
        assert 0 < len(different) <= 2
        assert all(feedback.start <= n < feedback.end for n in different)
