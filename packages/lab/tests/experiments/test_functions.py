"""Function tasks as a setting: what a scene holds, what its outcome is, and that experiments run on it.

On the tiny model, which knows none of these words: this tests where things are, not what a model makes of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

from agentsignals_lab.coding_tasks.cases import hardcoded  # noqa: E402
from agentsignals_lab.experiments import grid  # noqa: E402  (after the check above)
from agentsignals_lab.experiments.setting import SettingConfig, setting  # noqa: E402
from agentsignals_lab.residual import Add, Message, Piece, place  # noqa: E402
from tests.experiments import tiny  # noqa: E402

pytestmark = pytest.mark.torch
ASKED = SettingConfig(tasks=3)


def test_a_scene_is_a_failed_attempt_with_what_its_tests_said_in_this_tone() -> None:
    at = setting(tiny.model(), ASKED)
    for low, high in zip(at.scenes(at.low), at.scenes(at.high), strict=True):
        assert low.task == high.task
        said = low.chat[-1].pieces[0].text
        assert "None" in said
        assert said != high.chat[-1].pieces[0].text
        assert [message.speaker for message in low.chat] == ["system", "user", "assistant", "user"]
        assert low.prompt.spans[-1].label == "decision"
        assert low.prompt.spans[-1].end == len(low.prompt.tokens)


def test_the_outcome_is_how_much_likelier_a_token_of_hardcoded_code_is() -> None:
    at = setting(tiny.model(), ASKED)
    (scene,) = at.scenes(at.neutral, at.tasks[:1])
    likely = []
    for code in (hardcoded(scene.task), scene.task.reference):
        whole = at.model.encode([*scene.chat, Message("assistant", (Piece("text", code),))])
        told = at.model.logprobs_of([whole])[0]
        likely.append(float(told[len(scene.prompt.tokens) :].mean()))
    assert at.outcome([scene])[0] == pytest.approx(likely[0] - likely[1], abs=1e-4)


def test_an_edit_at_the_decision_reaches_the_code_that_follows() -> None:
    at = setting(tiny.model(), ASKED)
    scenes = at.scenes(at.neutral)
    push = Add(1, np.ones(at.model.card.width, np.float32), 20.0, place("decision"))
    assert np.abs(at.outcome(scenes, [push]) - at.outcome(scenes)).min() > 1e-4
    missed = Add(1, np.ones(at.model.card.width, np.float32), 20.0, place("generated"))
    assert not np.allclose(at.outcome(scenes, [missed]), at.outcome(scenes, [push]))


def test_stretches_of_unlike_length_are_left_out_of_patching_and_counted(tmp_path: Path) -> None:
    few = {"setting": {"file": None, "tasks": 2}}
    config = {**few, "interventions": ["patch"], "places": ["feedback", "decision"], "layers": [1]}
    run = tiny.ran(tmp_path / "r", "grid", config)
    rows = run.table("effects", grid.EffectRow).rows
    told = {(row.place, row.source): row for row in rows if row.intervention == "patch"}
    assert (told["feedback", "denoise"].unfit, told["feedback", "denoise"].effect) == (2, None)
    assert (told["decision", "denoise"].unfit, told["decision", "denoise"].n) == (0, 2)


def test_the_grid_runs_on_function_tasks(tmp_path: Path) -> None:
    few = {"setting": {"file": None, "tasks": 2}}
    run = tiny.ran(tmp_path / "s", "grid", {**few, "interventions": ["suppress"], "places": ["feedback", "code"]})
    rows = run.table("effects", grid.EffectRow).rows
    assert {row.unit for row in rows} == {setting(tiny.model(), ASKED).unit}
    assert {row.place for row in rows} == {"", "feedback", "code"}
