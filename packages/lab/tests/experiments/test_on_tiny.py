"""Experiments find what was put into the tiny world, and nothing where nothing is. Bands are wide: it is retrained.

Seed 0 sees little in its first block, so the tone stays on the feedback's tokens until the next; seed 1 has moved it to
where the answer begins before anything can be steered: there, steering the feedback must do nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

from agentsignals.errors import LabError  # noqa: E402

from agentsignals_lab import directions  # noqa: E402  (after the check that it can be loaded)
from agentsignals_lab.experiments import directions as directions_experiment  # noqa: E402
from agentsignals_lab.experiments import grid, trajectory_probe  # noqa: E402
from agentsignals_lab.experiments.setting import SettingConfig, setting  # noqa: E402
from agentsignals_lab.runs import Run  # noqa: E402
from tests.experiments import tiny  # noqa: E402
from tests.tiny_world.setting import TinySetting  # noqa: E402

pytestmark = pytest.mark.torch
FEW = {"setting": {"tasks": 16}}


def summary(folder: Path, name: str) -> Any:
    return msgspec.json.decode((folder / f"{name}.json").read_bytes())


def told(run: Run) -> dict[tuple[str, ...], grid.EffectRow]:
    """Effects by intervention, place, tone and outcome."""
    rows = run.table("effects", grid.EffectRow).rows
    return {(row.intervention, row.place, row.tone, row.outcome): row for row in rows if row.part != "dev"}


@pytest.mark.parametrize("seed", [0, 1])
def test_a_tone_changes_the_outcome_and_hiding_the_feedback_takes_that_away(tmp_path: Path, seed: int) -> None:
    run = tiny.ran(tmp_path / "s", "grid", {**FEW, "interventions": ["suppress"], "places": ["feedback", "code"]}, seed)
    found = told(run)
    assert {cell[:3] for cell in found} == {("tone", "", "calm"), ("tone", "", "desperate")} | {
        ("suppress", place, tone) for place in ("feedback", "code") for tone in ("calm", "neutral", "desperate")
    }
    assert found["tone", "", "calm", "read"].effect < -0.15
    desperate = found["tone", "", "desperate", "read"]
    assert desperate.effect > 0.4
    assert desperate.low > 0.3
    assert desperate.opposed == 0
    assert desperate.q is not None
    assert desperate.q < 0.01
    left = summary(tmp_path / "s", "suppression")["left"]
    assert abs(left["feedback/read"]) < 0.15
    assert left["code/read"] > 0.8


def test_drawn_answers_are_counted_by_kind_and_random_directions_do_nothing(tmp_path: Path) -> None:
    kinds = ["hardcoded", "gave_up", "other_code", "no_code"]
    config = {
        "setting": {"tasks": 60, "randoms": 2}, "sources": ["feedback"], "places": ["feedback"], "layers": [0],
        "doses": [1.0], "max_new_tokens": 20, "outcomes": kinds,
    }  # fmt: skip
    for seed in (0, 1):
        run = tiny.ran(tmp_path / str(seed), "grid", config, seed)
        found = told(run)
        for cell in {cell[:3] for cell in found}:
            assert sum(found[*cell, kind].treated for kind in kinds) == pytest.approx(1)
        assert found["tone", "", "calm", "hardcoded"].high < 0
        assert found["tone", "", "calm", "hardcoded"].q < 0.05
        chosen = {one["outcome"]: one for one in summary(tmp_path / str(seed), "chosen")}
        assert set(chosen) == set(kinds)
        assert chosen["hardcoded"]["p_random"] in (1 / 3, 2 / 3, 1.0)
        assert chosen["hardcoded"]["p_adjusted"] == 1.0
        assert "4 tests" in chosen["hardcoded"]["caveat"]
        assert abs(chosen["hardcoded"]["random_mean"]) < 0.15
    # Seed 1 copies numbers, so that the tone shows in whole answers; it has moved the mood on before block 0 ends.
    assert found["tone", "", "desperate", "hardcoded"].low > 0.2
    assert chosen["hardcoded"]["up"]["low"] <= 0 <= chosen["hardcoded"]["up"]["high"]


def test_a_patch_says_where_the_tone_is(tmp_path: Path) -> None:
    shares: dict[int, dict[tuple[int, str, str], float]] = {}
    for seed in (0, 1):
        config = {"setting": {"tasks": 6}, "interventions": ["patch"], "places": ["feedback", "task", "decision"]}
        run = tiny.ran(tmp_path / str(seed), "grid", config, seed)
        rows = [row for row in run.table("effects", grid.EffectRow).rows if row.intervention == "patch"]
        assert all(row.unfit == 0 and row.n == 6 for row in rows)
        shares[seed] = {(r.layer, r.place, r.source): r.share for r in rows if r.share is not None}
        for way in ("denoise", "noise"):
            assert shares[seed][2, "decision", way] > 0.9
            assert abs(shares[seed][2, "task", way]) < 0.1
    assert shares[0][0, "feedback", "denoise"] > 0.9
    assert shares[0][0, "decision", "denoise"] < 0.1
    assert shares[1][0, "feedback", "noise"] < 0.1
    assert summary(tmp_path / "1", "patching")["carried_from"]["feedback/read"] is None


def test_steering_the_feedback_works_where_the_tone_still_is_and_not_where_it_has_left(tmp_path: Path) -> None:
    config = {
        "setting": {"tasks": 24}, "sources": ["feedback"], "places": ["feedback"], "doses": [1.0, 2.0],
        "layers": [0, 1],
    }  # fmt: skip
    for seed in (0, 1):
        tiny.ran(tmp_path / str(seed), "grid", config, seed)
    (works,), (null,) = (summary(tmp_path / str(seed), "chosen") for seed in (0, 1))
    assert works["specific"]
    assert works["layer"] == 0
    assert works["up"]["effect"] > 0.2 + works["random_mean"]
    assert works["up"]["effect"] > works["random_mean"] + 5 * works["random_sd"]
    assert works["p_random"] == works["p_adjusted"] == pytest.approx(1 / 120)
    assert works["caveat"] is None
    assert works["down"]["effect"] < 0
    assert abs(null["up"]["effect"]) < 0.1


def test_a_direction_taken_out_where_the_tone_is_lowers_the_outcome_as_no_random_one_does(tmp_path: Path) -> None:
    config = {
        "setting": {"tasks": 24, "randoms": 19}, "interventions": ["ablate"], "sources": ["feedback"],
        "places": ["feedback"], "layers": [0],
    }  # fmt: skip
    tiny.ran(tmp_path / "r", "grid", config)
    (found,) = summary(tmp_path / "r", "chosen")
    assert (found["intervention"], found["dose"], found["down"]) == ("ablate", 1.0, None)
    assert found["specific"]
    assert found["up"]["high"] < 0
    assert found["up"]["effect"] < found["random_most"]


def test_at_the_decision_only_its_own_direction_goes_beyond_every_random_push(tmp_path: Path) -> None:
    config = {
        "setting": {"tasks": 24}, "sources": ["decision"], "places": ["decision"], "doses": [1.0, 2.0], "layers": [2],
    }  # fmt: skip
    run = tiny.ran(tmp_path / "r", "grid", config)
    (found,) = summary(tmp_path / "r", "chosen")
    assert found["specific"]
    assert found["up"]["effect"] > found["random_most"]
    assert found["down"]["effect"] < -0.1
    rows = [row for row in run.table("effects", grid.EffectRow).rows if row.intervention == "steer"]
    assert {(row.part, row.dose) for row in rows} == {(p, d) for p in ("dev", "test") for d in (-2, -1, 1, 2)}
    assert {row.part for row in rows if row.q is None} == {"dev"}
    judged = {row.task for row in run.table("items", grid.ItemRow).rows if row.part == "test"}
    assert len(judged) == 12  # those that had no say in the choice


def test_a_direction_of_a_file_is_a_source_too(tmp_path: Path) -> None:
    tiny.ran(tmp_path / "d", "directions", {"setting": {"tasks": 8}, "shuffles": 2, "layers": [0]})
    config = {
        "setting": {"tasks": 4, "randoms": 1}, "directions": str(tmp_path / "d" / "directions-contrast.npz"),
        "sources": ["desperate"], "places": ["feedback"], "doses": [1.0], "layers": [0],
    }  # fmt: skip
    tiny.ran(tmp_path / "r", "grid", config)
    assert [one["source"] for one in summary(tmp_path / "r", "chosen")] == ["desperate"]
    with pytest.raises(LabError, match="no direction 'bored'"):
        tiny.ran(tmp_path / "no", "grid", {**config, "sources": ["bored"]})


@pytest.mark.parametrize("randoms", [1, 3])
def test_as_many_random_directions_as_the_setting_says_are_compared(tmp_path: Path, randoms: int) -> None:
    few: dict[str, Any] = {"setting": {"tasks": 4, "randoms": randoms}}
    tiny.ran(
        tmp_path / "f", "grid", {**few, "sources": ["feedback"], "places": ["feedback"], "doses": [1.0], "layers": [0]}
    )
    (judged,) = summary(tmp_path / "f", "chosen")
    assert judged["p_random"] == judged["p_adjusted"] == pytest.approx(1 / (1 + randoms))
    assert not judged["specific"]
    assert "Set randoms = 100" in judged["caveat"]


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
    opposed = {}
    for recipe in ("published", "grand_mean"):
        made = directions.read(tmp_path / "r" / f"directions-{recipe}.npz")
        high, low = (directions.unit(made.vectors[made.names.index(name)]) for name in ("desperate", "calm"))
        opposed[recipe] = (high * low).sum(axis=-1)
    assert (opposed["grand_mean"] < np.minimum(0, opposed["published"])).all()
    for name in ("published", "grand_mean", "grand_mean_cleaned", "contrast", "probe", "feedback", "decision"):
        assert directions.read(tmp_path / "r" / f"directions-{name}.npz").layers == (0, 1, 2)


def test_directions_of_texts_alone_encode_no_scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TinySetting, "scenes", None)
    told: list[tuple[int, int]] = []
    config = {"setting": {"tasks": 8}, "layers": [1], "recipes": ["contrast", "probe"], "scenes": False}
    run = tiny.ran(tmp_path / "r", "directions", config, progress=lambda done, of: told.append((done, of)))
    rows = run.table("separation", directions_experiment.SeparationRow).rows
    assert {(row.recipe, row.judged_on) for row in rows} == {("contrast", "stories"), ("probe", "stories")}
    assert sorted(p.name for p in (tmp_path / "r").glob("*.npz")) == ["directions-contrast.npz", "directions-probe.npz"]
    assert told[0] == (0, 6)
    assert told[-1] == (6, 6)


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


def test_a_run_that_is_run_again_keeps_its_rows(tmp_path: Path) -> None:
    config = {"setting": {"tasks": 4}, "interventions": ["patch"], "places": ["feedback"], "layers": [1]}
    once, again = (tiny.ran(tmp_path / "r", "grid", config) for _ in range(2))
    assert once.table("effects", grid.EffectRow).rows == again.table("effects", grid.EffectRow).rows


def test_scenes_of_two_tones_differ_in_their_adjectives_alone() -> None:
    at = setting(tiny.model(), SettingConfig(file="tiny", tasks=5))
    for low, high in zip(at.scenes(at.low), at.scenes(at.high), strict=True):
        assert low.task == high.task
        assert low.prompt.spans == high.prompt.spans
        assert low.prompt.spans[-1].label == "decision"
        different = [n for n, (a, b) in enumerate(zip(low.prompt.tokens, high.prompt.tokens, strict=True)) if a != b]
        (feedback,) = (span for span in low.prompt.spans if span.role == "feedback")
        assert 0 < len(different) <= 2
        assert all(feedback.start <= n < feedback.end for n in different)
