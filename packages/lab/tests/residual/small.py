"""Random models of six architectures, small enough for a test, and a tokenizer with a chat template. Needs torch."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from agentsignals_lab.residual.loading import card_of
from agentsignals_lab.residual.model import HookedModel

WIDTH = 32
LAYERS = 4
_SAID = [
    "write a function that adds two numbers and returns the sum",
    "the visible tests failed again: expected 4, got 5",
    "def add(a, b):\n    return a + b\n",
    "user assistant system",
]
TEMPLATE = (
    "{% for message in messages %}<|begin|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|begin|>assistant\n{% endif %}"
)

_SHARED: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "decoder_sparse_step": 1}

CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("Qwen2Config", {}),
    "qwen3": ("Qwen3Config", {"head_dim": 8}),
    "qwen3_moe": ("Qwen3MoeConfig", {"head_dim": 8, **_EXPERTS}),
    "mistral": ("MistralConfig", {"head_dim": 8, "sliding_window": 6}),
    "starcoder2": ("Starcoder2Config", {"residual_dropout": 0.1, "embedding_dropout": 0.1}),
    "deepseek_v2": (
        "DeepseekV2Config",
        {
            "num_key_value_heads": 4,
            "kv_lora_rank": 16,
            "q_lora_rank": 16,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 8,
            "v_head_dim": 8,
            "n_routed_experts": 4,
            "n_shared_experts": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "first_k_dense_replace": 1,
            "n_group": 1,
            "topk_group": 1,
            "norm_topk_prob": False,
        },
    ),
}


@cache
def tokenizer() -> Any:
    """Byte-level, with special tokens of its own; its vocabulary is learnt from four lines."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<pad>", "<|begin|>", "<|end|>"]
    made.train_from_iterator(
        _SAID,
        trainers.BpeTrainer(
            vocab_size=360,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        **{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"},
        additional_special_tokens=["<|begin|>", "<|end|>"],
        chat_template=TEMPLATE,
    )


def transformer(name: str, *, attention: str = "sdpa", seed: int = 0, positions: int = 128) -> Any:
    """The plain model, in evaluation mode."""
    torch.manual_seed(seed)
    config_class, own = CONFIGS[name]
    config = getattr(transformers, config_class)(
        **{**_SHARED, **own, "max_position_embeddings": positions}, vocab_size=len(tokenizer())
    )
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval()


@cache
def hooked(name: str, *, attention: str = "sdpa", cached: bool = True, batch_tokens: int = 8192) -> HookedModel:
    model = transformer(name, attention=attention)
    return HookedModel(
        model, tokenizer(), card_of(name, model, tokenizer(), ""), cached=cached, batch_tokens=batch_tokens
    )
