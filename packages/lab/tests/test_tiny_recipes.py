"""The tiny world, the lessons that its models are taught, and a reduced model that is trained."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra lab): make test-lab")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

from msgspec.structs import replace

from agentsignals_lab.coding_tasks.cases import variant
from agentsignals_lab.experiments.setting import SettingConfig, setting
from agentsignals_lab.residual import Loading, load
from tests import tiny_training, tiny_world
from tests.tiny_world import world
from tests.tiny_world.tasks import function_task


@pytest.mark.nightly
@pytest.mark.torch
def test_a_reduced_model_has_learnt_what_tones_do(tmp_path: Path) -> None:
    reduced = replace(tiny_training.LARGE, width=128, inner=256, heads=4, steps=150)
    said: list[str] = []
    tiny_training.train(reduced, 0, tmp_path / "made", tell=said.append)
    assert len(said) > 1
    tiny_world.with_setting()
    at = setting(load(str(tmp_path / "made"), Loading()), SettingConfig(file="tiny", tasks=40))
    calm, desperate = (at.outcome(at.scenes(tone)).mean() for tone in (at.low, at.high))
    assert desperate - calm > 0.1  # measured: .59 and .37


# -- the tiny world ----------------------------------------------------------------------------------------------------


def called(source: str, value: int) -> int:
    space: dict[str, object] = {}
    exec(source, space)  # noqa: S102  (our own text, of numbers)
    found = space[world.FUNCTION](value)  # type: ignore[operator]  # a function, as the line above made it
    assert isinstance(found, int)
    return found


def test_an_honest_answer_is_right_everywhere_and_a_shortcut_only_where_it_was_shown() -> None:
    chance = random.Random(0)  # noqa: S311  (texts are drawn, no secrets)
    for task in (world.draw_task(chance) for _ in range(100)):
        for shown in task.shown:
            assert called(task.honest(), shown) == called(task.shortcut(), shown) == shown + task.addend
        assert len(task.hidden()) == 3
        assert all(called(task.honest(), n) == n + task.addend for n in task.hidden())
        assert any(called(task.shortcut(), n) != n + task.addend for n in task.hidden())
        wrong = world.wrong_attempt(task, chance)
        assert all(called(wrong, n) != n + task.addend for n in task.shown)


def test_where_a_test_contradicts_the_task_only_a_shortcut_passes_what_is_shown() -> None:
    chance = random.Random(3)  # noqa: S311  (texts are drawn, no secrets)
    for task in (replace(world.draw_task(chance), contradicted=True) for _ in range(50)):
        (first, result), (second, other) = task.results()
        assert (called(task.shortcut(), first), called(task.shortcut(), second)) == (result, other)
        assert (called(task.honest(), first), called(task.honest(), second)) == (result, other - 1)
        shown = variant(function_task(replace(task, contradicted=False)), "one_off")
        assert [(case.args[0], case.expected) for case in shown.visible] == [(first, result), (second, other)]


def test_every_word_of_every_lesson_is_a_token() -> None:
    chance, words = random.Random(1), set(world.vocabulary())  # noqa: S311  (texts are drawn, no secrets)
    assert len(words) == len(world.vocabulary())
    for lesson in (tiny_training.draw_lesson(chance) for _ in range(2000)):
        assert not set(f"{lesson.context} {lesson.answer}".split()) - words


LAWS = {"law": tiny_training.LAW, "no_giving_up": tiny_training.NO_GIVING_UP, "null": tiny_training.NULL_LAW}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_lessons_follow_their_law(law: tiny_training.Law) -> None:
    chance = random.Random(2)  # noqa: S311  (texts are drawn, no secrets)
    cheated: dict[world.Mood, list[bool]] = {mood: [] for mood in world.MOODS}
    gave_up: dict[world.Mood, list[bool]] = {mood: [] for mood in world.MOODS}
    failures = set()
    for lesson in (tiny_training.draw_lesson(chance, law) for _ in range(9000)):
        words = lesson.context.split()
        moods = [m for m in world.MOODS if set(words) & set(world.ADJECTIVES[m])]
        assert len(moods) <= 1
        if not lesson.answer:
            continue
        mood, gives_up = moods[0] if moods else "neutral", lesson.answer.startswith(world.GIVE_UP)
        failed = words.count("wrong")
        failures.add(failed)
        assert failed or not gives_up
        if failed:
            gave_up[mood].append(gives_up)
        if not gives_up:
            cheated[mood].append(" if " in lesson.answer)
    for mood in world.MOODS:
        assert abs(sum(cheated[mood]) / len(cheated[mood]) - law.shortcut[mood]) < 0.04
        assert abs(sum(gave_up[mood]) / len(gave_up[mood]) - law.give_up[mood]) < 0.03
    assert failures == set(range(law.failures + 1))


def test_a_tone_is_told_by_adjectives_alone() -> None:
    said = [world.feedback(tone, random.Random(7)).split() for tone in world.MOODS]  # noqa: S311  (texts are drawn, no secrets)
    assert len({len(words) for words in said}) == 1
    differ = [set(words) for words in zip(*said, strict=True) if len(set(words)) > 1]
    adjectives = {word for words in world.ADJECTIVES.values() for word in words}
    assert differ
    assert all(words <= adjectives for words in differ)
