"""The retry loop with a writer that answers by a table: what it is told, what it is never told, what is scored."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from agentsignals.errors import LabError

from agentsignals_lab import coding_tasks
from agentsignals_lab.coding_tasks import cases
from agentsignals_lab.conditions import BASELINE, Condition
from agentsignals_lab.residual import Generation, Message, Sampling
from agentsignals_lab.retry_loop import Episode, Plan, Work, episodes
from agentsignals_lab.texts import Wording
from tests.tiny_world.tasks import drawn
from tests.tiny_world.wording import TinyWording

TASK = coding_tasks.task("parse_duration")


def text_of(chat: Sequence[Message]) -> str:
    return "\n".join(piece.text for message in chat for piece in message.pieces)


class Scripted:
    """Answers each task by a list, an attempt each; keeps what it was told."""

    name = "scripted"
    concurrency = 1

    def __init__(self, *answers: str) -> None:
        self.answers = answers
        self.told: list[Sequence[Message]] = []
        self.how: list[Sampling] = []

    def answer(self, chat: Sequence[Message], sampling: Sampling) -> Generation:
        self.told.append(list(chat))
        self.how.append(sampling)
        text = self.answers[sum(m.speaker == "assistant" for m in chat)]
        return Generation(text=text, tokens=(1, 2), finish="stop", prompt_tokens=5)


def fenced(source: str) -> str:
    return f"Here it is.\n```python\n{source}```\n"


def ran(writer: Scripted, *, attempts: int = 3, condition: Condition = BASELINE, task: cases.Task = TASK) -> Episode:
    (done,) = episodes(writer, Plan(wording=Wording(), attempts=attempts), [Work(condition, task, 0)])
    return done


def test_a_right_answer_ends_the_episode() -> None:
    done = ran(writer := Scripted(fenced(TASK.reference)))
    assert (done.episode.attempts, done.episode.full_pass, done.episode.recovered) == (1, True, False)
    assert len(writer.told) == 1
    assert done.attempts[0].feedback == ""
    assert done.attempts[0].tier == "strict"


def test_a_wrong_answer_is_told_its_visible_failure_and_tried_again() -> None:
    done = ran(Scripted(fenced("def parse_duration(text):\n    return -1\n"), fenced(TASK.reference)))
    first, second = done.attempts
    assert (first.visible_pass, second.full_pass) == (False, True)
    assert "-1" in first.feedback
    assert "Attempts left: 2" in first.feedback
    assert (done.episode.recovered, done.episode.passed_at) == (True, 1)
    assert [m.speaker for m in done.chat] == ["system", "user", "assistant", "user", "assistant"]
    assert {p.role for m in done.chat for p in m.pieces} == {"system", "task", "tests", "code", "feedback"}


def test_hidden_cases_are_never_told() -> None:
    done = ran(writer := Scripted(*[fenced("def parse_duration(text):\n    return -1\n")] * 3))
    assert done.episode.attempts == 3
    told = text_of(writer.told[-1])
    assert all(cases.shown(case, TASK.function) in told for case in TASK.visible)
    assert not any(repr(case.args[0]) in told for case in TASK.hidden if case not in TASK.visible and case.args[0])


def test_an_answer_that_passes_what_it_sees_ends_the_loop_and_fails_what_it_does_not() -> None:
    done = ran(Scripted(fenced(cases.hardcoded(TASK))))
    assert (done.episode.attempts, done.episode.visible_pass, done.episode.hidden_pass) == (1, True, False)
    assert done.episode.hardcoded


def test_an_answer_without_code_is_one_attempt() -> None:
    done = ran(Scripted("I can't.", fenced(TASK.reference)), attempts=2)
    assert done.attempts[0].error_class == "no_function"
    assert "no function `parse_duration`" in done.attempts[0].feedback
    assert done.episode.recovered


@pytest.mark.slow
def test_conditions_share_their_random_numbers_and_samples_and_attempts_do_not() -> None:
    wrong = fenced("def parse_duration(text):\n    return -1\n")
    seeds = {}
    for name in ("one", "other"):
        writer = Scripted(wrong, wrong, wrong)
        condition = Condition(name=name, tone="calm")
        list(episodes(writer, Plan(wording=Wording()), [Work(condition, TASK, sample) for sample in (0, 1)]))
        seeds[name] = [how.seed for how in writer.how]
    assert sorted(seeds["one"]) == sorted(seeds["other"])
    assert len(set(seeds["one"])) == 6
    writer = Scripted(wrong)
    list(episodes(writer, Plan(wording=Wording(), attempts=1, seed=14), [Work(BASELINE, TASK, 0)]))
    assert writer.how[0].seed not in seeds["one"]


@pytest.mark.slow
def test_tones_change_the_words_and_not_the_facts() -> None:
    wrong = fenced("def parse_duration(text):\n    return -1\n")
    said = {
        tone: ran(Scripted(wrong, wrong), attempts=2, condition=Condition(name=tone, tone=tone)).attempts[0].feedback
        for tone in ("neutral", "calm", "pressing")
    }
    assert len(set(said.values())) == 3
    assert all("-1" in words for words in said.values())


def test_a_server_cannot_be_steered() -> None:
    with pytest.raises(LabError, match="no model in this process"):
        list(
            episodes(
                Scripted(),
                Plan(wording=Wording()),
                [Work(Condition(name="c", direction="calm", dose=1.0, layers=(1,)), TASK, 0)],
            )
        )


def test_what_is_not_known_is_said() -> None:
    with pytest.raises(LabError, match="no tone 'angry'"):
        ran(Scripted(), condition=Condition(name="c", tone="angry"))
    with pytest.raises(LabError, match="no task of the tiny world"):
        list(episodes(Scripted(), Plan(wording=TinyWording()), [Work(BASELINE, TASK, 0)]))


def test_the_tiny_world_speaks_its_own_language() -> None:
    task = drawn(1, 0)[0]
    writer = Scripted(task.wrong, task.reference)
    (done,) = episodes(
        writer, Plan(wording=TinyWording(), attempts=2), [Work(Condition(name="c", tone="desperate"), task, 0)]
    )
    assert (done.episode.visible_pass, done.episode.hidden_pass, done.episode.hardcoded) == (True, False, True)
    writer = Scripted("def f ( x ) : return x", task.reference)
    (done,) = episodes(
        writer, Plan(wording=TinyWording(), attempts=2), [Work(Condition(name="c", tone="desperate"), task, 0)]
    )
    assert (done.episode.recovered, done.episode.hardcoded) == (True, False)
    assert done.attempts[0].feedback.startswith("wrong .")


def test_drawn_tasks_differ_and_go_by_their_seed() -> None:
    names = [one.id for one in drawn(30, 0)]
    assert len(set(names)) == 30
    assert names == [one.id for one in drawn(30, 0)]
    assert names != [one.id for one in drawn(30, 1)]
