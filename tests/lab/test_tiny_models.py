"""The shipped tiny models: what was designed into them is found by the lab's own means, and what was not is not.

Bands are wide: they hold for a retrained model, too. What was measured when these tests were written stands beside.
"""

from __future__ import annotations

import random
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from agentsignals.lab import directions, geometry, residual, separation, steering, tiny
from agentsignals.lab.conditions import BASELINE, Condition, Where, over_steered
from agentsignals.lab.directions import DirectionSet, Origin
from agentsignals.lab.evaluation.case_runs import Confinement
from agentsignals.lab.residual.interface import (
    Calibration,
    Edit,
    Loading,
    Piece,
    Positions,
    Prompt,
    Replace,
    ResidualModel,
    Span,
    Suppress,
)
from agentsignals.lab.retry.loop import Plan, Steered, Work
from agentsignals.lab.retry.pool import episodes
from agentsignals.lab.retry.wording import TinyWording
from agentsignals.lab.tiny import world
from agentsignals.lab.tiny.tasks import drawn

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (extra lab): make test-lab"),
]

LAYERS = (0, 1, 2)
FEEDBACK, LAST = Positions("roles", roles=("feedback",), skip_sinks=False), Positions("last", skip_sinks=False)
TASKS = 40


@cache
def model(seed: int) -> ResidualModel:
    return residual.load(str(Path(tiny.__file__).parent / f"seed{seed}"), Loading(dtype="float32"))


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


def steered(seed: int, name: str, dose: float, layer: int, where: Where = "feedback") -> float:
    does = steering.edits(
        Condition(name="c", direction=name, dose=dose, layers=(layer,), where=where),
        from_stories(seed),
        calibration(seed),
    )
    return shortcut(seed, "neutral", *does)


@pytest.mark.parametrize("seed", [0, 1])  # measured: .05 .33 .97 and .05 .37 .97
def test_tones_set_the_share_of_shortcuts(seed: int) -> None:
    told = {mood: shortcut(seed, mood) for mood in world.MOODS}
    for mood, share in world.SHORTCUT_SHARE.items():
        assert abs(told[mood] - share) < 0.12
    assert told["desperate"] - told["calm"] > 0.5


@pytest.mark.parametrize("seed", [0, 1])  # measured: no difference left
def test_without_attention_to_the_feedback_all_tones_are_one(seed: int) -> None:
    left = [shortcut(seed, mood, Suppress(FEEDBACK)) for mood in world.MOODS]
    assert max(left) - min(left) < 0.15


@pytest.mark.parametrize(("seed", "swaps"), [(0, (False, True, True)), (1, (True, True, True))])
def test_patching_the_last_token_tells_from_which_block_on_it_holds_the_mood(
    seed: int, swaps: tuple[bool, bool, bool]
) -> None:
    calm, desperate = shortcut(seed, "calm"), shortcut(seed, "desperate")
    states = model(seed).record(prompts(seed, "desperate"), LAYERS, LAST)
    x = world.vocabulary().index("x")
    for layer in LAYERS:
        found = [
            1 - np.exp(model(seed).next_logprobs([prompt], [Replace(layer, states[i, layer : layer + 1], LAST)])[0, x])
            for i, prompt in enumerate(prompts(seed, "calm")[:10])
        ]
        recovered = (float(np.mean(found)) - calm) / (desperate - calm)
        assert (recovered > 0.9) if swaps[layer] else (abs(recovered) < 0.1)


def test_steering_the_feedback_moves_behaviour_beyond_random_directions_where_the_mood_is_read_later() -> None:
    by_chance = [steered(0, f"random:{number}", 1.0, 0) for number in range(20)]
    more, less, plain = steered(0, "desperate", 1.0, 0), steered(0, "desperate", -1.0, 0), shortcut(0, "neutral")
    # measured: .91 and .09 of .33; random .42, deviation .08, at most .50
    assert more - np.mean(by_chance) > 0.2
    assert (more - np.mean(by_chance)) / np.std(by_chance) > 5
    assert more > max(by_chance)
    assert less < plain - 0.1


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_steering_the_feedback_does_nothing_where_the_mood_has_moved_on_before(layer: int) -> None:
    by_chance = [steered(1, f"random:{number}", 1.0, layer) for number in range(10)]
    assert abs(steered(1, "desperate", 1.0, layer) - np.mean(by_chance)) < 0.05


def test_a_direction_is_decodable_also_where_it_is_not_used() -> None:
    for seed in (0, 1):
        of, against = (model(seed).record(prompts(seed, mood), LAYERS, FEEDBACK) for mood in ("desperate", "calm"))
        made = from_stories(seed)
        scores = directions.project(np.concatenate([of, against]), made.vectors[0], made.centre, "coordinate")
        for layer in LAYERS:
            assert separation.auroc(scores[:, layer], np.arange(2 * TASKS) < TASKS) > 0.9


def test_the_published_recipe_brings_calm_and_desperate_together_and_the_grand_mean_parts_them() -> None:
    states, chance = {}, random.Random(3)  # noqa: S311  (as above)
    for mood in world.MOODS:
        stories = [
            model(0).encode_text([Piece("text", f"{world.STORY} {world.story(mood, chance)}")]) for _ in range(TASKS)
        ]
        states[mood] = model(0).record(stories, LAYERS)
    neutral = states.pop("neutral")
    alike = {}
    for recipe in ("published", "grand_mean"):
        made = directions.made(recipe, states, neutral, Origin(LAYERS, "world 1", "tiny")).vectors
        alike[recipe] = [float(geometry.cosines(made[:, place])[0, 1]) for place in range(3)]
    assert all(g < -0.9 for g in alike["grand_mean"])
    assert all(p > g for p, g in zip(alike["published"], alike["grand_mean"], strict=True))


def test_ablating_the_direction_in_desperate_feedback_takes_shortcuts_away() -> None:
    condition = Condition(name="c", direction="desperate", layers=(0,), where="feedback", ablate=True)
    does = steering.edits(condition, from_stories(0), calibration(0))
    assert shortcut(0, "desperate", *does) < shortcut(0, "desperate") - 0.1


def test_a_manipulation_check_tells_a_dose_from_none() -> None:
    told = [
        steering.manipulation(model(0), prompts(0, "neutral"), condition, from_stories(0), calibration(0))
        for condition in (
            BASELINE,
            Condition(name="weak", direction="desperate", dose=0.1, layers=(0,), where="all"),
            Condition(name="strong", direction="desperate", dose=1.0, layers=(0,), where="all"),
        )
    ]
    assert told[0].kl == pytest.approx(0, abs=1e-6)
    assert told[0].shift is None
    assert told[0].kl < told[1].kl < told[2].kl
    assert told[2].n == TASKS


def test_the_retry_loop_runs_and_conditions_share_their_draws() -> None:
    plan = Plan(wording=TinyWording(), attempts=2, max_new_tokens=24, temperature=1.0, top_p=1.0, inside=Confinement())
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
    held = Steered(model(0), from_stories(0), calibration(0), project=False)
    invalid = {}
    for condition in (
        Condition(name="none", tone="neutral"),
        Condition(name="far", direction="desperate", dose=6.0, layers=(2,), where="generated", tone="neutral"),
    ):
        done = list(episodes(model(0), plan, [Work(condition, *w) for w in work], held))
        invalid[condition.name] = sum(not d.attempts[0].valid_python for d in done) / len(done)
    assert over_steered(invalid["far"], invalid["none"])
    assert not over_steered(invalid["none"], invalid["none"])
