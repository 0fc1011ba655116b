"""Attention heads of one prompt with what they put out in another: exactly, and by the gradient for all at once.

A head's output is what goes into its block's output projection. Attribution is the first-order estimate of what
patching that head at all tokens does to an outcome (Nanda 2023): two passes and one backward, for any number of heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from agentsignals.errors import LabError

from agentsignals_lab.residual.packing import PackedLinear

_PROJECTIONS = ("o_proj", "c_proj", "out_proj", "dense")


class Heads:
    """The heads of a model's blocks in one prompt and another of its length; the outcome is the difference of two next
    tokens' log-probabilities."""

    def __init__(
        self, model: Any, blocks: Sequence[torch.nn.Module], prompts: Sequence[torch.Tensor], ends: tuple[int, int]
    ) -> None:
        self._model, self._ends, (self._here, self._other) = model, list(ends), prompts
        self.count = int(model.config.get_text_config().num_attention_heads)
        self._projections = [_projection(block) for block in blocks]

    def attributed(self) -> np.ndarray:
        """Estimated effect of patching each head: (layers, heads)."""
        if any(isinstance(one, PackedLinear) for one in self._projections):
            raise LabError("Packed weights have no gradients.", "Load the model with Loading(packed=False).")
        with torch.no_grad(), self._read() as there:
            self._outcome(self._other)
        with self._read() as seen, torch.enable_grad(), self._followed():
            gradients = torch.autograd.grad(self._outcome(self._here), seen)
        moved = [(b - a) * g for a, b, g in zip(seen, there, gradients, strict=True)]
        by_head = [m.detach().float()[0].unflatten(-1, (self.count, -1)).sum(dim=(0, 2)) for m in moved]
        return np.stack([one.cpu().numpy() for one in by_head])

    def patched(self, layer: int, head: int, share: float = 1.0) -> float:
        """Effect of one head's output moved by `share` of the way to the other prompt's, at all tokens."""
        with torch.no_grad():
            with self._read() as there:
                self._outcome(self._other)
            plain = float(self._outcome(self._here))

            def put(_: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
                states = args[0].clone().unflatten(-1, (self.count, -1))
                of_other = there[layer].unflatten(-1, (self.count, -1))[..., head, :]
                states[..., head, :] += share * (of_other - states[..., head, :])
                return (states.flatten(-2), *args[1:])

            handle = self._projections[layer].register_forward_pre_hook(put)
            try:
                return float(self._outcome(self._here)) - plain
            finally:
                handle.remove()

    def _outcome(self, tokens: torch.Tensor) -> torch.Tensor:
        first, second = self._model(input_ids=tokens, use_cache=False).logits[0, -1].float()[self._ends]
        return first - second

    @contextmanager
    def _read(self) -> Iterator[list[torch.Tensor]]:
        """What goes into each block's output projection, (1, tokens, heads x d), in the order of the blocks."""
        seen: list[torch.Tensor] = []
        with ExitStack() as hooks:
            for projection in self._projections:
                handle = projection.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
                hooks.callback(handle.remove)
            yield seen

    @contextmanager
    def _followed(self) -> Iterator[None]:
        """From the embeddings on, gradients are kept: the weights have none."""
        embeddings = self._model.get_input_embeddings()
        handle = embeddings.register_forward_hook(lambda _, __, output: output.requires_grad_())
        try:
            yield
        finally:
            handle.remove()


def _projection(block: torch.nn.Module) -> torch.nn.Module:
    attention = getattr(block, "self_attn", None) or getattr(block, "attn", None) or getattr(block, "attention", None)
    found = next((getattr(attention, name) for name in _PROJECTIONS if hasattr(attention, name)), None)
    if not isinstance(found, torch.nn.Module):
        raise LabError(
            f"The attention heads of {type(block).__name__} can't be located.", "Use another model for attribution."
        )
    return found
