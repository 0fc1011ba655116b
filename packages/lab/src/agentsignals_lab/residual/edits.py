"""Edits of the states at the output of a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from agentsignals.errors import LabError

from agentsignals_lab.residual.interface import Ablate, Add, Edit, Replace, Suppress

StateEdit = Add | Ablate | Replace


def checked(edits: Sequence[Edit], layers: int, width: int) -> None:
    """LabError for an edit at a layer that is not there, or with a vector that does not fit."""
    for edit in edits:
        named = edit.layers if isinstance(edit, Suppress) else (edit.layer,)
        for layer in named:
            checked_layer(layer, layers)
        if isinstance(edit, Replace):
            _fits(edit.states.shape[1:] == (width,), edit.states, f"(n, {width})")
        elif not isinstance(edit, Suppress):
            _fits(edit.vector.shape == (width,), edit.vector, f"({width},)")
            if not np.any(edit.vector):
                raise LabError("A vector of length zero has no direction.", "Give another vector, or no edit.")


def checked_layer(layer: int, layers: int) -> None:
    if not 0 <= layer < layers:
        raise LabError(f"There is no layer {layer}.", f"Layers go from 0 to {layers - 1}.")


def _fits(shape_is_right: bool, array: np.ndarray, wanted: str) -> None:
    if not shape_is_right:
        raise LabError(f"An edit's array has the shape {array.shape}; this model needs {wanted}.")
    if not np.isfinite(array).all():
        raise LabError("An edit's array has values that are not finite.")


class Change:
    """An edit ready for a model: its vector of length one, moved to the states' device when first met."""

    def __init__(self, edit: StateEdit) -> None:
        self.edit = edit
        if isinstance(edit, Replace):
            array = edit.states
        else:
            # In double precision: the length of a vector of small numbers would underflow otherwise.
            array = edit.vector.astype(np.float64)
            array = array / np.linalg.norm(array)
        self._array = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))

    def of(self, states: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """States (batch, tokens, d) of single precision or better, changed where `chosen` (batch, tokens)."""
        if self._array.device != states.device:
            self._array = self._array.to(states.device)
        if isinstance(self.edit, Replace):
            return self._replaced(states, chosen)
        return torch.where(chosen.unsqueeze(-1), self._moved(states, self._array, self.edit), states)

    @staticmethod
    def _moved(states: torch.Tensor, unit: torch.Tensor, edit: Add | Ablate) -> torch.Tensor:
        if isinstance(edit, Add):
            return states + edit.amount * unit
        return states - (states @ unit).unsqueeze(-1) * unit

    def _replaced(self, states: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        counts = chosen.sum(1).tolist()
        n_states = self._array.shape[0]
        if any(count != n_states for count in counts):
            raise LabError(
                f"{n_states} states were given for {max(counts)} positions.",
                "A patch has one row a position, and prompts patched together have as many positions each.",
            )
        changed = states.clone()
        changed[chosen] = self._array.to(states.dtype).repeat(states.shape[0], 1)
        return changed


class Acting(NamedTuple):
    """An edit and the rows of a batch that it acts on; None: all of them."""

    what: Change | Suppress
    rows: tuple[int, ...] | None = None

    @classmethod
    def of(cls, edit: Edit, rows: tuple[int, ...] | None = None) -> Acting:
        return cls(edit if isinstance(edit, Suppress) else Change(edit), rows)
