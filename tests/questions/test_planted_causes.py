"""Raw traces of ordinary work with one cause laid in: read, measured, asked through the public door, it is said first.

The plants are another hand's than the findings' (`tests/plants`).
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import agentsignals
from agentsignals.ingest import pipeline
from agentsignals.questions.ranking import Answer, Bounds
from agentsignals.store import Store
from tests.plants import causes, files, trials, work

SESSIONS = 60
FEWER = 24
"""Enough for what is counted; a contrast between repositories, of some ten sessions each, may not be sure."""
SEEDS = (1, 2, 3)
NAMES = (*(lay.__name__ for lay in causes.CAUSES), "an_outage", "an_unequal_comparison")


def analyzed(folder: Path) -> Store:
    pipeline.analyze([str(folder / "traces")], folder / "store", jobs=1)
    return Store(folder / "store")


def planted(name: str, seed: int, folder: Path, sessions: int = SESSIONS) -> tuple[Store, causes.Plant]:
    """A store with this cause, and what has to be said of it."""
    chance = random.Random(f"{name} {seed}")  # noqa: S311  (made-up data, the same every time)
    by_name = {lay.__name__: lay for lay in causes.CAUSES}
    if name in by_name:
        works = work.ordinary(seed, sessions)
        plant = by_name[name](works, chance)
        files.write(folder / "traces", works)
    else:
        runs = trials.ordinary(seed)
        unequal = trials.other_tasks if seed % 2 else trials.other_limits
        plant = (trials.an_outage if name == "an_outage" else unequal)(runs, chance)
        trials.write(folder / "traces", runs)
    return analyzed(folder), plant


def says(answers: list[Answer], plant: causes.Plant) -> bool:
    """Whether the first sentence answers the question, names what was laid in, and opens with a session it is in."""
    if not answers:
        return False
    first = answers[0]
    named = all(words.lower() in first.sentence.lower() for words in plant.words)
    behind = not plant.sessions or first.sessions[0] in plant.sessions
    return first.question in plant.questions and named and behind


@pytest.mark.slow
def test_a_planted_cause_is_said_first(tmp_path: Path) -> None:
    store, plant = planted("a_loop", 0, tmp_path, FEWER)
    assert says(agentsignals.find(store).answers, plant)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_of_ten_planted_stores_nine_say_it_first(seed: int, tmp_path: Path) -> None:
    assert len(NAMES) == 10
    missed = {}
    for name in NAMES:
        store, plant = planted(name, seed, tmp_path / name)
        if not says(answers := agentsignals.find(store).answers, plant):
            missed[name] = [made.sentence for made in answers[:3]]
    assert len(missed) <= 1, missed


@pytest.mark.slow
def test_of_ten_ordinary_stores_nine_are_silent(tmp_path: Path) -> None:
    loud = {}
    for seed in range(10):
        folder = tmp_path / str(seed)
        if seed < 7:
            files.write(folder / "traces", work.ordinary(seed + 100, SESSIONS))
        else:
            trials.write(folder / "traces", trials.ordinary(seed + 100))
        if answers := agentsignals.find(analyzed(folder)).answers:
            loud[seed] = [made.sentence for made in answers]
    assert len(loud) <= 1, loud


@pytest.mark.slow
def test_every_bound_decides(tmp_path: Path) -> None:
    """The sentence is there at the bound that it keeps, and gone behind it."""
    store, plant = planted("a_failing_tool", 1, tmp_path)
    (made,) = agentsignals.find(store).answers
    assert made.q is not None and says([made], plant)
    kept = Bounds(effect=made.share, sureness=made.sureness, false_discoveries=made.q)
    assert [each.id for each in agentsignals.find(store, bounds=kept).answers] == [made.id]
    for bounds in (
        Bounds(effect=made.share + 0.01),
        Bounds(sureness=made.sureness + 0.01),
        Bounds(false_discoveries=made.q * 0.99),
    ):
        assert agentsignals.find(store, bounds=bounds).answers == []
