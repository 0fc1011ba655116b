"""The shipped tiny models: what was designed into them is found by the lab's own means, and what was not is not.

Bands are wide: they hold for a retrained model, too. What was measured when these tests were written stands beside.
"""

from __future__ import annotations

import random
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

from agentsignals_lab import directions, residual, steering
from agentsignals_lab.conditions import Condition, over_steered
from agentsignals_lab.directions import DirectionSet
from agentsignals_lab.residual import (
    Calibration,
    Edit,
    Loading,
    Piece,
    Prompt,
    Span,
)
from agentsignals_lab.residual.model import HookedModel
from agentsignals_lab.retry_loop import Plan, Steered, Work, episodes
from tests import tiny_world
from tests.tiny_world import world
from tests.tiny_world.tasks import drawn
from tests.tiny_world.wording import TinyWording

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (extra lab): make test-lab"),
]

LAYERS = (0, 1, 2)
TASKS = 40


@cache
def model(seed: int) -> HookedModel:
    return residual.load(str(tiny_world.MODELS[seed]), Loading(dtype="float32"))


@cache
def prompts(seed: int, mood: world.Mood) -> tuple[Prompt, ...]:
    """Tasks after a failure told in a tone, up to the token where honest code and a shortcut part."""
    chance, told = random.Random(5), []  # noqa: S311  (texts are drawn, no secrets)
    begun = tuple(world.vocabulary().index(word) for word in f"def {world.FUNCTION} ( x ) : return".split())
    for _ in range(TASKS):
        prompt = model(seed).encode(world.chat_after_failure(world.draw_task(chance), mood, chance))
        span = Span("code", len(prompt.tokens), len(prompt.tokens) + len(begun), "answer")
        told.append(Prompt(prompt.tokens + begun, (*prompt.spans, span)))
    return tuple(told)


def shortcut(seed: int, mood: world.Mood, *edits: Edit) -> float:
    """The mean chance that the next token is no `x`: a number, as a shortcut returns."""
    x = world.vocabulary().index("x")
    return float(1 - np.exp(model(seed).next_logprobs(prompts(seed, mood), edits)[:, x]).mean())


@cache
def calibration(seed: int) -> Calibration:
    return model(seed).calibrate([p for mood in world.MOODS for p in prompts(seed, mood)])


@cache
def from_stories(seed: int) -> DirectionSet:
    """Desperate against calm stories: no task and no feedback is in them."""
    states, chance = {}, random.Random(11)  # noqa: S311  (as above)
    for mood in ("calm", "desperate"):
        stories = [
            model(seed).encode_text([Piece("text", f"{world.STORY} {world.story(mood, chance)}")]) for _ in range(TASKS)
        ]
        states[mood] = model(seed).record(stories, LAYERS)
    made = directions.contrast(states["desperate"], states["calm"])
    return DirectionSet(
        names=("desperate",),
        layers=LAYERS,
        vectors=made[0][None],
        centre=made[1],
        recipe="contrast",
        texts="world 1",
        model="tiny",
    )


@pytest.mark.parametrize("seed", [0, 1])  # measured: .05 .33 .97 and .05 .37 .97
def test_tones_set_the_share_of_shortcuts(seed: int) -> None:
    told = {mood: shortcut(seed, mood) for mood in world.MOODS}
    for mood, share in world.SHORTCUT_SHARE.items():
        assert abs(told[mood] - share) < 0.12
    assert told["desperate"] - told["calm"] > 0.5


def test_ablating_the_direction_in_desperate_feedback_takes_shortcuts_away() -> None:
    condition = Condition(name="c", direction="desperate", layers=(0,), where="feedback", ablate=True)
    does = steering.edits(condition, from_stories(0), calibration(0))
    assert shortcut(0, "desperate", *does) < shortcut(0, "desperate") - 0.1


def test_the_retry_loop_runs_and_conditions_share_their_draws() -> None:
    plan = Plan(wording=TinyWording(), attempts=2, max_new_tokens=24, temperature=1.0, top_p=1.0)
    work = [(task, 0) for task in drawn(8, 3)]
    held = Steered(model(0), from_stories(0), calibration(0))
    nothing = Condition(name="nothing", direction="desperate", dose=0.0, layers=(0,), where="feedback", tone="neutral")
    conditions = (Condition(name="neutral", tone="neutral"), nothing, Condition(name="desperate", tone="desperate"))
    dones = list(episodes(model(0), plan, [Work(c, *w) for w in work for c in conditions], held))
    dones.sort(key=lambda done: done.task.key)
    runs = {c.name: [done for done in dones if done.condition is c] for c in conditions}
    answers = {name: [a.answer for done in dones for a in done.attempts] for name, dones in runs.items()}
    assert answers["neutral"] == answers["nothing"]
    assert all(a.valid_python for done in runs["neutral"] for a in done.attempts)
    spans = {p.span for done in runs["desperate"] for p in done.projections}
    assert {"all", "task", "tests"} <= spans
    first = [done.attempts[0].answer for done in runs["neutral"]]
    assert first == [
        done.attempts[0].answer for done in runs["desperate"]
    ]  # no feedback yet: the same words, the same draws


def test_too_much_of_a_direction_breaks_the_answers_and_is_seen_as_that() -> None:
    plan = Plan(wording=TinyWording(), attempts=1, max_new_tokens=24, temperature=1.0, top_p=1.0)
    work = [(task, 0) for task in drawn(12, 4)]
    held = Steered(model(0), from_stories(0), calibration(0))
    invalid = {}
    for condition in (
        Condition(name="none", tone="neutral"),
        Condition(name="far", direction="desperate", dose=6.0, layers=(2,), where="generated", tone="neutral"),
    ):
        done = list(episodes(model(0), plan, [Work(condition, *w) for w in work], held))
        invalid[condition.name] = sum(not d.attempts[0].valid_python for d in done) / len(done)
    assert over_steered(invalid["far"], invalid["none"])
    assert not over_steered(invalid["none"], invalid["none"])
