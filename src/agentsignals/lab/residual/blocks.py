"""Where a model keeps its decoder blocks, whatever its makers call them."""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch

from agentsignals.errors import LabError


def blocks_of(model: Any) -> list[torch.nn.Module]:
    """The decoder blocks: the outermost ModuleList that has as many members as the configuration says layers."""
    wanted = int(model.config.get_text_config().num_hidden_layers)
    modules = [
        (name.count("."), module)
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == wanted
    ]
    outermost = [module for depth, module in modules if depth == min(d for d, _ in modules)]
    if len(outermost) != 1:
        raise LabError(
            f"{type(model).__name__} keeps its {wanted} decoder blocks in no place that can be told apart.",
            "The lab reads causal models of one stack of blocks.",
        )
    return list(outermost[0])


def backbone_of(model: Any) -> Any:
    """The model without its head: what is run when nobody asks for logits."""
    return model.get_decoder() if hasattr(model, "get_decoder") else model.base_model


def cache_argument(model: Any) -> str:
    """Return by which name the model takes a cache of keys and values: transformers call it `cache` from 5.24 on, and
    warn of the older name."""
    return "cache" if "cache" in signature(model.forward).parameters else "past_key_values"
