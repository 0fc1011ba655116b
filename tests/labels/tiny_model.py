"""Models made on the spot, with a tokenizer of bytes: enough for every library that runs real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

MARKS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
POSITIONS = 8192


def language_model(folder: Path, *, terse: bool = False) -> Path:
    """A Llama with random weights, which talks nonsense and may never end. A terse one finds every word as good as any
    other, and so says the first it may: that ends a string as soon as it has begun."""
    torch, transformers, vocabulary = _made(folder)
    torch.manual_seed(3)
    # vLLM's kernels take no narrower heads than of 64.
    sizes = {**_sizes(vocabulary), "hidden_size": 128, "head_dim": 64}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, max_position_embeddings=POSITIONS))
    if terse:
        torch.nn.init.zeros_(model.lm_head.weight)
    model.save_pretrained(folder)
    return folder


def _sizes(vocabulary: int) -> dict[str, int]:
    sizes = {"vocab_size": vocabulary, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    return sizes | {"num_attention_heads": 2, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}


def _made(folder: Path) -> tuple[Any, Any, int]:
    """Writes the tokenizer; gives torch, transformers and how many tokens there are."""
    torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    letters = sorted(set(tokenizers.pre_tokenizers.ByteLevel.alphabet()) - {'"'})
    vocabulary = {piece: n for n, piece in enumerate([*MARKS.values(), '"', *letters])}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **MARKS)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    return torch, transformers, len(vocabulary)
