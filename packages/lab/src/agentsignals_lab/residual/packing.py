"""Linear layers of a large model on a processor, their weights laid out once as oneDNN reads them: torch's own lay them
out anew at each call, which for 8 to 64 rows takes most of the time."""

from __future__ import annotations

from typing import Any

import torch

LEAST_WEIGHTS = 100_000_000
"""Of smaller models the time is spent elsewhere."""
_ROWS = 32
"""That the layout is made for; others are computed too."""


class PackedLinear(torch.nn.Module):  # type: ignore[misc]  # of a package without types
    """A linear layer without gradients."""

    def __init__(self, of: torch.nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = of.in_features, of.out_features
        self._packed = torch.ops.mkldnn._reorder_linear_weight(of.weight.detach(), _ROWS)
        self._bias = None if of.bias is None else of.bias.detach()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        flat = rows.reshape(-1, self.in_features)
        made: torch.Tensor = torch.ops.mkldnn._linear_pointwise(flat, self._packed, self._bias, "none", [], "")
        return made.reshape(*rows.shape[:-1], self.out_features)


def pack(model: Any, least_weights: int = LEAST_WEIGHTS) -> None:
    """Packs the linear layers of a model of at least so many weights in float32 on a processor; of others, none."""
    weight = model.get_input_embeddings().weight
    many = sum(one.numel() for one in model.parameters()) >= least_weights
    if not (many and weight.device.type == "cpu" and weight.dtype == torch.float32 and torch.backends.mkldnn.enabled):
        return
    kept = model.get_output_embeddings()
    layers = [(name, one) for name, one in model.named_modules() if type(one) is torch.nn.Linear and one is not kept]
    for name, one in layers:
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, PackedLinear(one))
