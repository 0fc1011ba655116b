"""What recording and steering cost beside a plain forward pass, on a model of random weights.

    python -m benchmarks.overhead [--shape tiny|small|0.5b|7b] [--device cpu|cuda] [--dtype fp32|bf16] [--rounds 7]
                                      [--texts 4] [--tokens 128] [--new 32] [--json]

Every case runs once in every round, in an order that turns round every round, so that a busy machine hurts all alike:
the ratios are the result (medians over rounds of a case by the plain pass of its round), the seconds are not. On a
processor the seconds are those of the process, on a GPU those of the clock; there the peak of allocated memory is told.

Recording ends a pass at the last layer that is read: three layers up to two thirds of the depth cost less than a plain
pass.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers

from agentsignals_lab.residual import Add, Edit, ModelCard, Positions, Prompt, Sampling
from agentsignals_lab.residual.model import HookedModel

SHAPES: dict[str, dict[str, int]] = {
    "tiny": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 256},
    "small": {"hidden_size": 320, "intermediate_size": 864, "num_hidden_layers": 12, "num_attention_heads": 5,
              "num_key_value_heads": 5, "vocab_size": 8192},
    "0.5b": {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
             "num_key_value_heads": 2, "vocab_size": 151936},
    "7b": {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
           "num_key_value_heads": 4, "vocab_size": 152064},
}  # fmt: skip
"""Qwen2's shapes: 0.05 and 16 million parameters, 0.5 and 7.6 billion."""
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
PLAIN, PLAIN_ANSWER = "forward", "generate, the library's own"


class NoText:
    """A tokenizer for prompts that are numbers already."""

    pad_token_id = 0
    eos_token_id = None

    def decode(self, *_: Any, **__: Any) -> str:
        return ""


class Spent(NamedTuple):
    seconds: float
    peak_gib: float | None


def model_of(shape: str, device: str, dtype: str) -> HookedModel:
    config = transformers.Qwen2Config(
        **SHAPES[shape], bos_token_id=None, eos_token_id=None, pad_token_id=0, max_position_embeddings=4096
    )
    torch.manual_seed(0)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype])
    card = ModelCard(
        name=shape,
        revision="",
        tokenizer_sha256="",
        architecture=type(model).__name__,
        layers=config.num_hidden_layers,
        width=config.hidden_size,
        dtype=dtype,
        device=device,
        has_chat_template=False,
        attention="sdpa",
    )
    return HookedModel(model, NoText(), card)


def cases(model: HookedModel, prompts: Sequence[Prompt], new: int) -> dict[str, Callable[[], object]]:
    inner, backbone = model._model, model._backbone
    ids = torch.tensor([prompt.tokens for prompt in prompts], device=model._device)
    mask = torch.ones_like(ids)
    n = model.card.layers
    thirds, twelve = (n // 3, n // 2, 2 * n // 3), tuple(range(n - 12, n))
    vector = np.random.default_rng(0).normal(size=model.card.width).astype(np.float32)
    steered: list[Edit] = [Add(layer, vector, 1.0) for layer in thirds]
    on_answer: list[Edit] = [Add(layer, vector, 1.0, Positions("generated")) for layer in thirds]
    how = [Sampling(new)] * len(prompts)

    def pass_through(part: Any, **more: Any) -> None:
        with torch.inference_mode():
            part(input_ids=ids, attention_mask=mask, use_cache=False, **more)

    def answer() -> None:
        with torch.inference_mode():
            inner.generate(ids, attention_mask=mask, max_new_tokens=new, min_new_tokens=new, do_sample=False)

    return {
        PLAIN: lambda: pass_through(inner),
        "forward without the head": lambda: pass_through(backbone),
        "library's output_hidden_states": lambda: pass_through(inner, output_hidden_states=True),
        "record 3 layers up to 2/3 of the depth": lambda: model.record(prompts, thirds),
        "record the last 12 layers": lambda: model.record(prompts, twelve),
        "all states of the last 12 layers": lambda: model.states(prompts, twelve),
        "steer 3 layers, record the last": lambda: model.record(prompts, (n - 1,), edits=steered),
        "next token's probabilities": lambda: model.next_logprobs(prompts),
        PLAIN_ANSWER: answer,
        "generate": lambda: model.generate(prompts, how),
        "generate, steered at 3 layers": lambda: model.generate(prompts, how, on_answer),
    }


def spent(case: Callable[[], object], device: str) -> Spent:
    if device == "cpu":
        started = time.process_time()
        case()
        return Spent(time.process_time() - started, None)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    case()
    torch.cuda.synchronize()
    return Spent(time.perf_counter() - started, torch.cuda.max_memory_allocated() / 2**30)


def measured(asked: dict[str, Callable[[], object]], device: str, rounds: int) -> dict[str, dict[str, float | None]]:
    for case in asked.values():
        case()  # whatever is set up at first use
    found: dict[str, list[Spent]] = {name: [] for name in asked}
    for turn in range(rounds):
        for name in list(asked)[:: 1 if turn % 2 else -1]:
            found[name].append(spent(asked[name], device))
    against = {name: PLAIN_ANSWER if "generate" in name else PLAIN for name in asked}
    return {
        name: {
            "median_s": statistics.median(one.seconds for one in runs),
            "ratio": statistics.median(
                one.seconds / plain.seconds for one, plain in zip(runs, found[against[name]], strict=True)
            ),
            "peak_gib": max((one.peak_gib for one in runs if one.peak_gib is not None), default=None),
        }
        for name, runs in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=DTYPES, default="fp32")
    for name, default in (("rounds", 7), ("texts", 4), ("tokens", 128), ("new", 32)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args()
    model = model_of(told.shape, told.device, told.dtype)
    numbers = np.random.default_rng(1).integers(1, SHAPES[told.shape]["vocab_size"], size=(told.texts, told.tokens))
    prompts = [Prompt(tuple(row), ()) for row in numbers.tolist()]
    found = measured(cases(model, prompts, told.new), told.device, told.rounds)
    if told.json:
        print(json.dumps({"settings": vars(told), "cases": found}, indent=2))
        return
    amount = f"{told.texts} texts of {told.tokens} tokens, {told.new} new ones"
    print(f"{told.shape} in {told.dtype} on {told.device}: {amount}")
    for name, figures in found.items():
        peak = f"{figures['peak_gib']:8.2f} GiB" if figures["peak_gib"] is not None else ""
        print(f"{name:40} {figures['median_s']:8.3f} s {figures['ratio']:6.2f} x {peak}")


if __name__ == "__main__":
    main()
