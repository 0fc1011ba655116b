"""The lab's own words: matched in length and topic, never naming the emotion, and the same every time."""

from __future__ import annotations

import re
from statistics import mean

import pytest

from agentsignals.errors import LabError
from agentsignals.lab import texts

NAMES = re.compile(r"calm|patien|confiden|frustrat|despair|desper|\bstuck|stress|anxious|panic", re.IGNORECASE)
CLASSES = (*texts.EMOTIONS, texts.NO_EMOTION)


@pytest.mark.parametrize("emotion", CLASSES)
def test_a_set_is_large_distinct_and_does_not_name_its_emotion(emotion: str) -> None:
    told = texts.stories(emotion)
    assert len(told) == len({s.text for s in told}) == 72
    assert sum(s.coding for s in told) == 36
    assert not [s.text for s in told if NAMES.search(s.text)]


def test_sets_are_of_one_length_and_share_their_topics() -> None:
    words = {e: mean(len(s.text.split()) for s in texts.stories(e)) for e in CLASSES}
    assert max(words.values()) / min(words.values()) < 1.05
    assert len({tuple(s.topic for s in texts.stories(e)) for e in CLASSES}) == 1


def test_pressure_differs_in_the_last_sentence_only() -> None:
    pressing, open_ = (texts.stories("none", pressure=p) for p in ("pressing", "open"))
    pairs = list(zip(pressing, open_, texts.stories("none"), strict=True))
    assert all(a.text.startswith(c.text) and b.text.startswith(c.text) and a.text != b.text for a, b, c in pairs)


def test_kinds_of_topics_and_numbers_of_variants_can_be_chosen() -> None:
    assert {s.coding for s in texts.stories("calm", coding=False)} == {False}
    assert len(texts.stories("calm", coding=True, variants=1)) == 12
    assert len({s.text for s in texts.stories("calm", variants=16)}) == 24 * 16
    for asked, says in (("bored", "no stories"), ("calm", "17 variants")):
        with pytest.raises(LabError, match=says):
            texts.stories(asked, variants=17)


def test_each_sentence_of_an_emotion_is_used_about_equally() -> None:
    openings = {s.text.split(". ")[0] for s in texts.stories("stuck")}
    bodies = [s.text.removeprefix(o + ". ") for s in texts.stories("stuck") for o in openings if s.text.startswith(o)]
    firsts = [b.split(". ")[0] for b in bodies]
    uses = [firsts.count(f) for f in set(firsts)]
    assert len(uses) == 4
    assert max(uses) - min(uses) <= 2


def test_a_trajectory_adds_bad_news_stage_by_stage() -> None:
    stages, tasks = texts.trajectory()
    assert [s.name for s in stages] == [
        "start", "first_failure", "repeated_failure", "hidden_tests", "deadline_pressure",
    ]  # fmt: skip
    assert [len(s.feedback) for s in stages] == [0, 1, 3, 3, 4]
    assert len(tasks) >= 4


def test_feedback_keeps_a_hostile_failure_as_it_is() -> None:
    tones = texts.tones()
    assert tuple(tones) == texts.TONES
    said = {name: tone.feedback("{left} {0.__class__} {failure}", 2) for name, tone in tones.items()}
    assert len(set(said.values())) == len(texts.TONES)
    assert all("{left} {0.__class__} {failure}" in words and "Attempts left: 2" in words for words in said.values())
    assert len({tone.system for tone in tones.values()}) > 1


def test_sets_have_versions_and_a_fingerprint() -> None:
    assert set(texts.versions()) == {"feedback", "repository", "stories", "trajectory"}
    assert re.fullmatch("[0-9a-f]{12}", texts.fingerprint())
