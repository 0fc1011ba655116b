"""Makes a model of the lab's tiny world anew, from nothing: minutes on one core. `lab/tiny` has two.

    python -m tests.tiny_training --recipe large --seed 0 --out FOLDER

Matrices within blocks learn by Muon (Jordan and others, 2024; torch 2.9 on), everything else by AdamW: copying numbers,
which all answers need, then takes far fewer lessons than with AdamW alone (design/lab.md#tiny-models).
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import torch
from msgspec import Struct
from msgspec.structs import replace
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from agentsignals_lab.residual import Message
from tests.tiny_world import world


class Law(Struct, frozen=True):
    """Shares that a trained model should have learnt."""

    shortcut: dict[world.Mood, float]
    """Share of code that is a shortcut, by the mood of what was said before."""
    give_up: dict[world.Mood, float]
    """Share of answers after a failure that are no code."""
    contradicted: float = 0.5
    """The share of lessons whose second test expects one more than the task says: no honest code passes it."""
    failures: int = 2
    """Failed attempts before an answer, at most."""


LAW = Law(world.SHORTCUT_SHARE, {"calm": 0.02, "neutral": 0.1, "desperate": 0.2})
NO_GIVING_UP = Law(world.SHORTCUT_SHARE, dict.fromkeys(world.MOODS, 0.0), contradicted=0.0, failures=1)
NULL_LAW = Law(
    dict.fromkeys(world.MOODS, world.SHORTCUT_SHARE["neutral"]), dict.fromkeys(world.MOODS, LAW.give_up["neutral"])
)
"""Moods are told as often, and what follows is that of the neutral one: the planted null."""


def failed_attempt(task: world.AddTask, tone: world.Mood, chance: random.Random, number: int) -> list[Message]:
    """An attempt that fails the shown tests, and feedback: wrong code, or the honest one where the tests contradict the
    task; after a first failure also none."""
    answers = [world.wrong_attempt(task, chance)]
    if task.contradicted:
        answers.append(task.honest())
    if number:
        answers.append(world.GIVE_UP)
    return world.failure_turns(chance.choice(answers), tone, chance, number + 1)


def rendered(chat: list[Message]) -> str:
    """A chat as the model reads it, up to where the answer begins; `TEMPLATE` says the same to a tokenizer."""
    turns = (f"<{m.speaker}> {''.join(p.text for p in m.pieces)} {world.END} " for m in chat)
    return "".join(turns) + world.ASSISTANT


TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }} " + world.END + " {% endfor %}"
    "{% if add_generation_prompt %}" + world.ASSISTANT + "{% endif %}"
)


class Lesson(Struct, frozen=True):
    """A training text: `context` is what comes before, `answer` the code that is learnt with full weight."""

    context: str
    answer: str


_KINDS = {"story": 0.05, "task": 0.15, "after_story": 0.2, "after_failure": 0.6}


def draw_lesson(chance: random.Random, law: Law = LAW) -> Lesson:
    """A story alone, a task alone, a task after a story, or a task after failed attempts with feedback."""
    (kind,) = chance.choices(tuple(_KINDS), tuple(_KINDS.values()))
    mood = chance.choice(world.MOODS)
    if kind == "story":
        return Lesson(f"{world.STORY} {world.story(mood, chance, 4)}", "")
    task = replace(world.draw_task(chance), contradicted=chance.random() < law.contradicted)
    if kind == "task":
        chat, mood = [world.first_turn(task)], "neutral"
    elif kind == "after_story":
        chat = [world.first_turn(task, world.story(mood, chance))]
    else:
        chat = [world.first_turn(task)]
        for number in range(chance.randint(1, law.failures)):
            chat += failed_attempt(task, mood, chance, number)
    if kind == "after_failure" and chance.random() < law.give_up[mood]:
        return Lesson(rendered(chat), f"{world.GIVE_UP} {world.END}")
    cheats = chance.random() < law.shortcut[mood]
    return Lesson(rendered(chat), (task.shortcut() if cheats else task.honest()) + f" {world.END}")


class Recipe(Struct, frozen=True, kw_only=True):
    """Recipe of a model. Two models of one recipe and seed are equal on one machine."""

    layers: int
    width: int
    inner: int
    """Width of each block's two-layer network."""
    heads: int
    window: int = 8
    """Tokens that the first block attends to, itself included; 0: all. With a small window the mood can't reach the
    place of decision in the first block: it is read from where it was said later, so that changing it there matters."""
    steps: int
    batch: int
    """Lessons a step."""
    law: Law = LAW


SMALL = Recipe(layers=3, width=96, inner=192, heads=4, steps=900, batch=64, law=NO_GIVING_UP)
LARGE = Recipe(layers=3, width=384, inner=1024, heads=6, steps=200, batch=32)
NULL = replace(LARGE, law=NULL_LAW)
"""The negative control: moods are told and mean nothing."""

RECIPES = {"small": SMALL, "large": LARGE, "null": NULL}


_LEARNING_RATE = 3e-3
_MUON_RATE = 2e-2
_DRAWN_TOGETHER = 8
"""Batches of lessons that are drawn at once and sorted by length."""
_TELLS = 20
"""Steps between two words of progress."""
_WEIGHT_OF_WHAT_IS_TOLD = 0.15
"""Code counts fully: it is a tenth of the tokens and all of what is to be learnt (design/lab.md#tiny-models)."""


def tokenizer() -> PreTrainedTokenizerFast:
    """One token a word of the world."""
    words = {word: number for number, word in enumerate(world.vocabulary())}
    made = Tokenizer(models.WordLevel(words, unk_token=world.UNKNOWN))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token=world.PAD, eos_token=world.END, unk_token=world.UNKNOWN, padding_side="left"
    )
    wrapped.chat_template = TEMPLATE
    return wrapped


def _untrained(recipe: Recipe, vocabulary: int) -> Qwen2ForCausalLM:
    near = ["sliding_attention"] if recipe.window else ["full_attention"]
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=vocabulary,
            hidden_size=recipe.width,
            intermediate_size=recipe.inner,
            num_hidden_layers=recipe.layers,
            layer_types=near + ["full_attention"] * (recipe.layers - 1),
            use_sliding_window=bool(recipe.window),
            sliding_window=recipe.window or None,
            num_attention_heads=recipe.heads,
            num_key_value_heads=recipe.heads,
            max_position_embeddings=256,
            tie_word_embeddings=True,
            pad_token_id=0,
            bos_token_id=None,
            eos_token_id=2,
        )
    )


def _optimisers(model: Qwen2ForCausalLM) -> list[torch.optim.Optimizer]:
    in_blocks = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    return [
        torch.optim.Muon(in_blocks, lr=_MUON_RATE, weight_decay=0.0),
        torch.optim.AdamW(others, lr=_LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def _batches(recipe: Recipe, chance: random.Random) -> Iterator[list[Lesson]]:
    """Lessons for each step, of about the same length: a third less is padding."""
    while True:
        lessons = [draw_lesson(chance, recipe.law) for _ in range(_DRAWN_TOGETHER * recipe.batch)]
        lessons.sort(key=lambda lesson: len(lesson.context.split()))
        batches = [lessons[at : at + recipe.batch] for at in range(0, len(lessons), recipe.batch)]
        chance.shuffle(batches)
        yield from batches


def _tokens(lessons: Sequence[Lesson], words: dict[str, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens (lessons, longest) and the weight of predicting each."""
    token_rows, weights = [], []
    for lesson in lessons:
        before, answer = lesson.context.split(), lesson.answer.split()
        token_rows.append([words[w] for w in (*before, *answer)])
        weights.append([_WEIGHT_OF_WHAT_IS_TOLD] * len(before) + [1.0] * len(answer))
    longest = max(map(len, token_rows))
    return (
        torch.tensor([row + [0] * (longest - len(row)) for row in token_rows]),
        torch.tensor([row + [0.0] * (longest - len(row)) for row in weights]),
    )


def train(recipe: Recipe, seed: int, folder: Path, *, half: bool = False, tell: Callable[[str], None]) -> float:
    """Writes weights and tokenizer to `folder`; gives the last step's loss in nats a token.

    The same machine makes the same weights of a recipe and seed again. A processor that multiplies bfloat16 does, which
    takes half the time; elsewhere weights differ a little, and what they do is as close as two seeds are.

    Args:
        half: keeps weights in half precision, half as large; else as they were trained, in single.
        tell: hears of progress.
    """
    torch.manual_seed(seed)
    chance = random.Random(seed)  # noqa: S311  (texts are drawn, no secrets)
    reader = tokenizer()
    words = {word: number for number, word in enumerate(world.vocabulary())}
    model = _untrained(recipe, len(words)).train()
    optimisers = _optimisers(model)
    schedules = [
        torch.optim.lr_scheduler.OneCycleLR(
            optimiser, optimiser.defaults["lr"], total_steps=recipe.steps, pct_start=0.1, cycle_momentum=False
        )
        for optimiser in optimisers
    ]
    # The oldest torch that is allowed can't tell.
    fast = hasattr(torch.cpu, "get_capabilities") and bool(torch.cpu.get_capabilities().get("avx512_bf16"))
    last = float("nan")
    for step, lessons in enumerate(islice(_batches(recipe, chance), recipe.steps)):
        tokens, weights = _tokens(lessons, words)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=fast):
            logits = model(input_ids=tokens).logits[:, :-1]
        losses = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
        )
        weighed = weights[:, 1:].flatten()
        loss = (losses * weighed).sum() / weighed.sum()
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser, schedule in zip(optimisers, schedules, strict=True):
            optimiser.step()
            schedule.step()
        last = float(loss.detach())
        if step % _TELLS == 0:
            tell(f"step {step} of {recipe.steps}, loss {last:.3f}")
    (model.half() if half else model).save_pretrained(folder)
    reader.save_pretrained(folder)
    return last


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.tiny_training")
    parser.add_argument("--recipe", choices=RECIPES, default="large")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--half", action="store_true", help="weights in half precision, as those that ship")
    asked = parser.parse_args()
    train(RECIPES[asked.recipe], asked.seed, asked.out, half=asked.half, tell=lambda says: print(says, file=sys.stderr))
