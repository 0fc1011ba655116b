"""Tiny models by name: where they are kept, what is refused, and a reduced one that is trained."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import platformdirs
import pytest
from msgspec.structs import replace

from agentsignals.errors import LabError
from agentsignals.lab.residual.interface import Loading
from agentsignals.lab.run_setup import chosen_tasks, loaded
from agentsignals.lab.tiny import kept, recipes


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda _: str(tmp_path))
    return tmp_path


def test_a_model_is_kept_by_all_that_it_was_made_from(cache: Path) -> None:
    large, null = (kept.kept_at(recipe, 0) for recipe in (recipes.LARGE, recipes.NULL))
    others = [kept.kept_at(replace(recipes.LARGE, steps=3), 0), kept.kept_at(recipes.LARGE, 1), null]
    assert len({large, *others}) == 4
    assert large == kept.kept_at(recipes.LARGE, 0)
    assert large.is_relative_to(cache)


def test_what_is_kept_is_not_trained_again_and_other_names_are_none(cache: Path) -> None:
    said: list[str] = []
    for recipe, name in ((recipes.LARGE, "tiny:7"), (recipes.NULL, "tiny-null:7")):
        folder = kept.kept_at(recipe, 7)
        folder.mkdir(parents=True)
        assert kept.by_name(name, said.append) == folder
    assert not said
    assert kept.by_name(str(cache), said.append) is None


@pytest.mark.parametrize("name", ["tiny:", "tiny:x", "tiny-null:-1", "tiny:9999999999"])
def test_a_seed_is_a_number(cache: Path, name: str) -> None:
    with pytest.raises(LabError, match="no seed of a tiny model"):
        loaded(name, Loading())
    assert not list(cache.iterdir())


def test_tasks_of_the_tiny_world_have_the_impossible_variants() -> None:
    plain, one_off = (chosen_tasks("tiny:5", kinds) for kinds in (("plain",), ("one_off",)))
    assert [task.key + "+one_off" for task in plain] == [task.key for task in one_off]
    assert not any(task.honest for task in one_off)
    assert len(chosen_tasks("tiny:5", ("plain", "conflicting"))) == 10
    with pytest.raises(LabError, match="invite"):
        chosen_tasks("tiny:5", ("hardcode_inviting",))


REDUCED = replace(recipes.LARGE, width=128, inner=256, heads=4, steps=150)


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (extra lab): make test-lab")
def test_a_reduced_model_is_trained_once_and_has_learnt_what_tones_do(cache: Path) -> None:
    from agentsignals.lab.experiments.chosen_setting import setting  # noqa: PLC0415  (torch is not always here)
    from agentsignals.lab.experiments.setting import SettingConfig  # noqa: PLC0415

    said: list[str] = []
    folder = kept.trained(REDUCED, 0, said.append)
    told = len(said)
    assert kept.trained(REDUCED, 0, said.append) == folder
    assert (told > 1, len(said)) == (True, told)
    assert list((cache / "tiny").iterdir()) == [folder], "nothing half made is left"
    at = setting(loaded(str(folder), Loading()), SettingConfig(tasks=40))
    calm, desperate = (at.outcome(at.scenes(tone)).mean() for tone in (at.low, at.high))
    assert desperate - calm > 0.1  # measured: .59 and .37
