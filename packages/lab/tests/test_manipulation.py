"""Manipulation checks on planted cases: what works, what does nothing, and what can't be told, at every position."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import get_args

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

from msgspec import to_builtins  # noqa: E402  (after the check that they can be loaded)

from agentsignals_lab import steering  # noqa: E402  (after the check that they can be loaded)
from agentsignals_lab.coding_tasks import tasks  # noqa: E402
from agentsignals_lab.conditions import Condition, Where  # noqa: E402
from agentsignals_lab.directions import DirectionSet  # noqa: E402
from agentsignals_lab.residual import Calibration, Prompt  # noqa: E402
from agentsignals_lab.residual.loading import card_of  # noqa: E402
from agentsignals_lab.residual.model import HookedModel  # noqa: E402
from agentsignals_lab.retry_loop import ManipulationRow  # noqa: E402
from agentsignals_lab.retry_runs import Asked, begin, prepared, steered  # noqa: E402
from agentsignals_lab.texts import Wording, after_a_failure  # noqa: E402
from tests import tiny_world  # noqa: E402
from tests.experiments.tiny import model  # noqa: E402
from tests.residual import small  # noqa: E402
from tests.test_tiny_models import calibration, from_stories  # noqa: E402
from tests.tiny_world.tasks import drawn  # noqa: E402
from tests.tiny_world.wording import TinyWording  # noqa: E402

pytestmark = pytest.mark.torch
PLACES = get_args(Where)


@cache
def prompts(*, failed: bool = True) -> tuple[Prompt, ...]:
    wording = TinyWording()
    chats = (after_a_failure(wording, t, "neutral") if failed else wording.opening(t, "neutral") for t in drawn(6, 0))
    return tuple(model(0).encode(chat) for chat in chats)


def check(where: Where, dose: float, *, failed: bool = True, ablate: bool = False) -> ManipulationRow:
    condition = Condition(name="c", direction="desperate", dose=dose, layers=(0,), where=where, ablate=ablate)
    return steering.manipulation(model(0), prompts(failed=failed), condition, from_stories(0), calibration(0))


@pytest.mark.parametrize("where", PLACES)
def test_what_works_and_what_does_nothing_are_told_apart_at_every_position(where: Where) -> None:
    works, idle = check(where, 1.0), check(where, 1e-7)
    assert (works.verdict, works.n) == ("moved", 6)
    assert (idle.verdict, idle.n) == ("nothing", 6)
    assert works.kl is not None
    assert idle.kl is not None
    assert works.kl > 1e-5
    assert idle.kl < 1e-8


@pytest.mark.parametrize("where", PLACES)
def test_only_where_no_prompt_has_such_tokens_nothing_can_be_told(where: Where) -> None:
    for ablate in (False, True):
        found = check(where, 1.0, failed=False, ablate=ablate)
        if where == "feedback":
            assert found == ManipulationRow(
                condition="c", verdict="not testable", kl=None, noise=None, shift=None, anti_steered=None, n=0
            )
        else:
            assert found.verdict == "moved"


def test_prompts_without_such_tokens_are_left_out_of_the_means() -> None:
    mixed = [*prompts(), *prompts(failed=False)]
    condition = Condition(name="c", direction="desperate", dose=1.0, layers=(0,), where="feedback")
    found = steering.manipulation(model(0), mixed, condition, from_stories(0), calibration(0))
    assert found.n == 6
    assert found.kl == pytest.approx(check("feedback", 1.0).kl, rel=1e-4)


def test_the_least_divergence_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("all", 0.3).verdict == "moved"
    monkeypatch.setattr(steering, "LEAST_KL", 1.0)
    assert check("all", 0.3).verdict == "nothing"


def test_in_bf16_rounding_is_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a batch changes is more than `LEAST_KL` there, and a tiny dose is told as nothing."""
    inner = small.transformer("qwen2").to(torch.bfloat16)
    noisy = HookedModel(inner, small.tokenizer(), card_of("noisy", inner, small.tokenizer(), ""))
    wording = Wording()
    asked = [noisy.encode(after_a_failure(wording, t, "neutral")[1:2]) for t in tasks(families=["times"])[:3]]
    asked = [Prompt(p.tokens[:90], tuple(s for s in p.spans if s.end <= 90)) for p in asked]
    asked = [Prompt(p.tokens[: 90 - 20 * n], ()) for n, p in enumerate(asked)]
    norms: Calibration = noisy.calibrate(asked)
    of = directions_of(noisy)
    found = {
        dose: steering.manipulation(noisy, asked, Condition(name="c", direction="d", dose=dose, layers=(1,)), of, norms)
        for dose in (1e-6, 1.0)
    }
    assert found[1e-6].noise > steering.LEAST_KL
    assert [found[dose].verdict for dose in (1e-6, 1.0)] == ["nothing", "moved"]
    condition = Condition(name="c", direction="d", dose=1.0, layers=(1,))
    with monkeypatch.context() as fewer:
        fewer.setattr(steering, "_ALONE", 1)
        of_one = steering.manipulation(noisy, asked, condition, of, norms)
    assert (of_one.kl, of_one.n) == (found[1.0].kl, 3)
    assert of_one.noise != found[1.0].noise, "what a batch changes is seen in those prompts that are run alone, too"
    monkeypatch.setattr(steering, "NOISE_FACTOR", 1e9)
    assert steering.manipulation(noisy, asked, condition, of, norms).verdict == "nothing"


def directions_of(of: HookedModel) -> DirectionSet:
    vector = torch.randn(1, 1, of.card.width, generator=torch.Generator().manual_seed(0)).numpy()
    return DirectionSet(
        names=("d",), layers=(1,), vectors=vector, centre=vector[0] * 0, recipe="contrast", texts="", model="m"
    )


def test_the_check_of_a_run_stands_on_prompts_with_feedback(tmp_path: Path) -> None:
    from agentsignals_lab import directions  # noqa: PLC0415  (one use)

    directions.write(from_stories(0), tmp_path / "d.npz")
    (tmp_path / "c.toml").write_text(
        "".join(
            f'[[condition]]\nname = "{where}"\ndirection = "desperate"\ndose = 1.0\nlayers = [0]\nwhere = "{where}"\n'
            'tone = "neutral"\n'
            for where in PLACES
        )
        + tiny_world.tones()
    )
    tasks = tiny_world.tasks_file(tmp_path / "t.jsonl", 4)
    files = {"conditions": str(tmp_path / "c.toml"), "directions": str(tmp_path / "d.npz")}
    asked = Asked(tasks=str(tasks), **files)
    begun = begin(tmp_path / "run", prepared(asked), to_builtins(model(0).card))
    with begun.run:
        steered(model(0), begun, str(asked.directions))
        rows = begun.run.table("manipulation", ManipulationRow).rows
    assert {row.condition: (row.verdict, row.n) for row in rows} == dict.fromkeys(PLACES, ("moved", 4))
