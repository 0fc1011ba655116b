"""Trains the small model of the lab's tiny world, from nothing. Slow on purpose nowhere: two minutes on one core."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import torch
from msgspec import Struct
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from agentsignals.lab.tiny import world

_BATCH = 64
_LEARNING_RATE = 3e-3
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
    wrapped.chat_template = world.TEMPLATE
    return wrapped


def _untrained(shape: Shape, vocabulary: int) -> Qwen2ForCausalLM:
    near = ["sliding_attention"] if shape.window else ["full_attention"]
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=vocabulary,
            hidden_size=shape.width,
            intermediate_size=2 * shape.width,
            num_hidden_layers=shape.layers,
            layer_types=near + ["full_attention"] * (shape.layers - 1),
            use_sliding_window=bool(shape.window),
            sliding_window=shape.window or None,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=256,
            tie_word_embeddings=True,
            pad_token_id=0,
            bos_token_id=None,
            eos_token_id=2,
        )
    )


def _batch(words: dict[str, int], chance: random.Random) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens (lessons, longest) and the weight of predicting each."""
    token_rows, weights = [], []
    for _ in range(_BATCH):
        lesson = world.draw_lesson(chance)
        before, answer = lesson.context.split(), lesson.answer.split()
        token_rows.append([words[w] for w in (*before, *answer)])
        weights.append([_WEIGHT_OF_WHAT_IS_TOLD] * len(before) + [1.0] * len(answer))
    longest = max(map(len, token_rows))
    return (
        torch.tensor([row + [0] * (longest - len(row)) for row in token_rows]),
        torch.tensor([row + [0.0] * (longest - len(row)) for row in weights]),
    )


class Shape(Struct, frozen=True):
    """How large the model is, and how far its first block sees."""

    layers: int = 3
    width: int = 96
    window: int = 0
    """Tokens that the first block attends to, itself included; 0: all. With a small window the mood can't reach the
    place of decision in the first block: it is read from where it was said later, so that changing it there matters."""


def train(seed: int, folder: Path, shape: Shape, *, steps: int = 900) -> float:
    """Writes weights (half precision) and tokenizer to `folder`; gives the last step's loss in nats a token."""
    torch.manual_seed(seed)
    chance = random.Random(seed)  # noqa: S311  (texts are drawn, no secrets)
    reader = tokenizer()
    words = {word: number for number, word in enumerate(world.vocabulary())}
    model = _untrained(shape, len(words)).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=_LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _LEARNING_RATE, total_steps=steps, pct_start=0.1)
    last = float("nan")
    for step in range(steps):
        tokens, weights = _batch(words, chance)
        logits = model(input_ids=tokens).logits[:, :-1]
        losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
        weighed = weights[:, 1:].flatten()
        loss = (losses * weighed).sum() / weighed.sum()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        last = float(loss.detach())
        if step % 50 == 0:
            print(f"step {step:4d} of {steps}  loss {last:.3f}", file=sys.stderr)
    model.half().save_pretrained(folder)
    reader.save_pretrained(folder)
    return last
