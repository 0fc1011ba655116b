"""The experiment over repositories: conditions beside the baseline, paired effects, steering that reaches the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from agentsignals.errors import LabError, SandboxError
from msgspec.structs import replace

from agentsignals_lab import directions, experiments
from agentsignals_lab.directions import DirectionSet
from agentsignals_lab.experiments.repo_edit import RepoEffectRow, effects
from agentsignals_lab.repo_agent.rows import RepoEpisodeRow, RepoStepRow
from agentsignals_lab.residual.interface import (
    Add,
    Calibration,
    Edit,
    Generation,
    Message,
    ModelCard,
    Prompt,
    Request,
    ResidualModel,
    Sampling,
)
from agentsignals_lab.run_setup import ManipulationRow
from agentsignals_lab.runs import Config, Run
from tests.repo_agent.scripted import MANIFEST, SOLVED, SUBMIT, Scripted, done

GOOD = (SOLVED, SUBMIT)
CALM = {"name": "up", "direction": "calm", "dose": 0.5, "layers": [1]}


class Together:
    """Answers of a made-up model, which needs one step for each."""

    def __init__(self, model: Model) -> None:
        self.model, self.under_way = model, list[tuple[Any, Request]]()

    def __len__(self) -> int:
        return len(self.under_way)

    def fits(self, _: Sequence[Request]) -> bool:
        return True

    def add(self, requests: Sequence[tuple[Any, Request]]) -> None:
        self.under_way += requests

    def step(self) -> list[tuple[Any, Generation]]:
        ended, self.under_way = self.under_way, []
        return [(key, self.model.answered(request)) for key, request in ended]


class Model(Scripted):
    """A made-up model in this process: gives up where it is told that it must pass, or where it is steered."""

    card = ModelCard(
        name="made-up",
        revision="0",
        tokenizer_sha256="0",
        architecture="none",
        layers=2,
        width=3,
        dtype="float32",
        device="cpu",
        has_chat_template=True,
        attention="sdpa",
    )

    def __init__(self) -> None:
        super().__init__(*GOOD)
        self.edits: list[Sequence[Edit]] = []
        self.encoded: list[Sequence[Message]] = []

    def answers(self) -> Together:
        return Together(self)

    def write(self, chats: Sequence[Sequence[Message]], sampling: Sequence[Sampling]) -> list[Generation]:
        found = super().write(chats, sampling)
        pressed = ["This must be working" in chat[0].pieces[0].text for chat in chats]
        return [replace(one, text=SUBMIT) if lost else one for one, lost in zip(found, pressed, strict=True)]

    def encode(self, chat: Sequence[Message]) -> Prompt:
        self.encoded.append(chat)
        return Prompt((len(self.encoded) - 1,), (), "")

    def calibrate(self, prompts: Sequence[Prompt]) -> Calibration:
        return Calibration((2.0, 4.0), (20.0, 40.0), len(prompts), len(prompts))

    def answered(self, request: Request) -> Generation:
        if not request.edits:
            return self.write([self.encoded[request.prompt.tokens[0]]], [request.sampling])[0]
        self.how.append(request.sampling)
        self.edits.append(request.edits)
        return Generation(text=SUBMIT, tokens=(1,), finish="stop", prompt_tokens=1)

    def next_logprobs(self, prompts: Sequence[Prompt], edits: Sequence[Edit] = ()) -> Any:
        return np.log(np.full((len(prompts), 2), 0.5))

    def record(self, prompts: Sequence[Prompt], layers: Sequence[int], *_more: object) -> Any:
        return np.zeros((len(prompts), len(layers), 3))


def ran(folder: Path, model: Model, **settings: Any) -> Run:
    settings = {"tasks": ["basket"], "steps": 2, "tones": [], **settings}
    config = experiments.config("repo_edit", settings)
    with Run.open(folder, Config("repo_edit", settings), MANIFEST) as run:
        try:
            experiments.experiment("repo_edit").run(run, cast(ResidualModel, model), config, lambda done, of: None)
        except SandboxError as problem:
            pytest.skip(f"the strict tier is not to be had here: {problem.message}")
    return run


@pytest.mark.slow
def test_tones_are_conditions_held_against_the_baseline(tmp_path: Path) -> None:
    run = ran(tmp_path, Model(), tones=["calm", "pressing"], samples=2)
    assert {(row.condition, row.full_pass) for row in run.table("repo_episodes", RepoEpisodeRow).rows} == {
        ("baseline", True), ("tone calm", True), ("tone pressing", False),
    }  # fmt: skip
    found = {row.key: row for row in run.table("repo_effects", RepoEffectRow).rows}
    assert found["tone pressing", "full_pass"].effect == -1.0
    assert found["tone pressing", "untested"].effect == 0.0
    assert found["tone calm", "full_pass"].effect == 0.0
    assert (found["tone calm", "full_pass"].low, found["tone calm", "full_pass"].n) == (None, 2)
    assert len(run.table("repo_steps", RepoStepRow).rows) == 2 * (2 + 2 + 1)


def test_a_run_that_goes_on_asks_nothing_again(tmp_path: Path) -> None:
    ran(tmp_path, Model(), tones=["calm"])
    again = Model()
    run = ran(tmp_path, again, tones=["calm"])
    assert again.told == []
    assert len(run.table("repo_effects", RepoEffectRow).rows) == 7


def along(path: Path, width: int = 3) -> str:
    vectors = np.ones((1, 1, width), np.float32)
    directions.write(
        DirectionSet(
            names=("calm",),
            layers=(1,),
            vectors=vectors,
            centre=vectors[0],
            recipe="contrast",
            texts="texts",
            model="made-up",
        ),
        path,
    )
    return str(path)


def test_steering_reaches_the_model_with_the_baselines_random_numbers(tmp_path: Path) -> None:
    model = Model()
    run = ran(tmp_path / "run", model, conditions=[CALM], directions=along(tmp_path / "d.npz"))
    ((edit,),) = model.edits
    assert isinstance(edit, Add)
    assert (edit.layer, edit.amount) == (1, 2.0)
    assert len({how.seed for how in model.how}) == 2, "one a step: the only step of the steered is the others' first"
    assert [row.condition for row in run.table("manipulation", ManipulationRow).rows] == ["up"]
    assert [row.full_pass for row in run.table("repo_episodes", RepoEpisodeRow).rows] == [True, False]


def test_other_directions_do_not_go_on_with_a_run(tmp_path: Path) -> None:
    path = along(tmp_path / "d.npz")
    ran(tmp_path / "run", Model(), conditions=[CALM], directions=path)
    vectors = np.full((1, 1, 3), 2, np.float32)
    directions.write(
        DirectionSet(
            names=("calm",),
            layers=(1,),
            vectors=vectors,
            centre=vectors[0],
            recipe="contrast",
            texts="t",
            model="made-up",
        ),
        Path(path),
    )
    with pytest.raises(LabError, match="other directions"):
        ran(tmp_path / "run", Model(), conditions=[CALM], directions=path)


@pytest.mark.parametrize(("settings", "said"), [
    ({"samples": 0}, "No samples"),
    ({"steps": 0}, "0 steps"),
    ({"tones": ["angry"]}, "no tone 'angry'"),
    ({"tasks": ["nothing"]}, "no repository task 'nothing'"),
    ({"conditions": [CALM]}, "needs directions"),
    ({"tones": ["calm", "calm"]}, "Two conditions"),
    ({"speed": 1}, "no setting 'speed'"),
])  # fmt: skip
def test_what_cannot_be_run_says_so_before_a_model_answers(settings: dict[str, Any], said: str, tmp_path: Path) -> None:
    model = Model()
    with pytest.raises(LabError, match=said):
        ran(tmp_path, model, **settings)
    assert model.told == []


def test_directions_of_another_width_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="width 5"):
        ran(tmp_path / "run", Model(), conditions=[CALM], directions=along(tmp_path / "d.npz", 5))


def test_effects_pair_tasks_and_samples_and_leave_out_who_has_no_pair() -> None:
    row = done(SOLVED, SUBMIT).episode
    rows = [
        replace(row, task="a"), replace(row, task="b", full_pass=False), replace(row, task="c", full_pass=False),
        replace(row, condition="x", task="a", full_pass=False, tests_edited=["t"]),
        replace(row, condition="x", task="b"),
        replace(row, condition="x", task="d"), replace(row, condition="y", task="d"),
    ]  # fmt: skip
    found = {one.key: one for one in effects(rows)}
    assert {condition for condition, _ in found} == {"x"}
    one = found["x", "full_pass"]
    assert (one.effect, one.treated, one.plain, one.n, one.tasks) == (0.0, 0.5, 0.5, 2, 2)
    assert (one.low, one.high) == (pytest.approx(-0.811, abs=0.001), pytest.approx(0.811, abs=0.001))  # Tango's
    assert found["x", "edits_tests"].effect == 0.5
    assert all(one.p <= one.q <= 1 for one in found.values())
