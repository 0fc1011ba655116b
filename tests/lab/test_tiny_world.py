"""The tiny world keeps its own law: tasks are right, shortcuts know the shown tests only, moods set their share."""

from __future__ import annotations

import random

from agentsignals.lab.tiny import world


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


def test_every_word_of_every_lesson_is_a_token() -> None:
    chance, words = random.Random(1), set(world.vocabulary())  # noqa: S311  (texts are drawn, no secrets)
    assert len(words) == len(world.vocabulary())
    for lesson in (world.draw_lesson(chance) for _ in range(2000)):
        assert not set(f"{lesson.context} {lesson.answer}".split()) - words


def test_lessons_follow_the_law() -> None:
    chance = random.Random(2)  # noqa: S311  (texts are drawn, no secrets)
    told: dict[world.Mood, list[bool]] = {mood: [] for mood in world.MOODS}
    for lesson in (world.draw_lesson(chance) for _ in range(9000)):
        words = set(lesson.context.split())
        moods = [m for m in world.MOODS if words & set(world.ADJECTIVES[m])]
        assert len(moods) <= 1
        if lesson.answer:
            told[moods[0] if moods else "neutral"].append(" if " in lesson.answer)
    for mood, cheated in told.items():
        assert abs(sum(cheated) / len(cheated) - world.SHORTCUT_SHARE[mood]) < 0.04


def test_a_tone_is_told_by_adjectives_alone() -> None:
    said = [world.feedback(tone, random.Random(7)).split() for tone in world.MOODS]  # noqa: S311  (texts are drawn, no secrets)
    assert len({len(words) for words in said}) == 1
    differ = [set(words) for words in zip(*said, strict=True) if len(set(words)) > 1]
    adjectives = {word for words in world.ADJECTIVES.values() for word in words}
    assert differ
    assert all(words <= adjectives for words in differ)
