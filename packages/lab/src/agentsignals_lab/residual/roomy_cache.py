"""Keys and values of the tokens so far, in buffers with room to spare: a new token is written into its place, where the
library's own growing cache copies all of them for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from transformers.cache_utils import Cache, DynamicLayer

ROOM = 64
"""Columns that a buffer grows by."""


class RoomyLayer(DynamicLayer):  # type: ignore[misc]  # of a package without types
    """A layer's keys and values, (batch, heads, tokens, d) each; what is read is the filled part of the buffers."""

    def __init__(self) -> None:
        super().__init__()
        self._buffers: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any) -> Any:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        filled = self.get_seq_length()
        upto = filled + key_states.shape[-2]
        room = self._buffers[0].shape[-2] if self._buffers else 0
        buffers = self._buffers if self._buffers and upto <= room else self._grown(key_states, value_states, filled)
        for buffer, new in zip(buffers, (key_states, value_states), strict=True):
            buffer[..., filled:upto, :] = new
        self._buffers = buffers
        self.keys, self.values = (buffer[..., :upto, :] for buffer in buffers)
        return self.keys, self.values

    def _grown(self, keys: torch.Tensor, values: torch.Tensor, filled: int) -> tuple[torch.Tensor, torch.Tensor]:
        columns = filled + keys.shape[-2] + ROOM
        grown = tuple(like.new_zeros((*like.shape[:-2], columns, like.shape[-1])) for like in (keys, values))
        if filled:
            for buffer, old in zip(grown, (self.keys, self.values), strict=True):
                buffer[..., :filled, :] = old
        return grown[0], grown[1]


class Kept(NamedTuple):
    """Rows of a cache that are to stay."""

    cache: Cache
    rows: list[int]


def empty() -> Cache:
    """A cache with nothing in it."""
    return Cache(layer_class_to_replicate=RoomyLayer)


def joined(parts: Sequence[Kept], columns: int) -> Cache:
    """One cache of the rows kept of each, all ending at the same column; what a row lacks on the left is zeros, which
    the attention mask hides."""
    whole = empty()
    for layer in range(len(parts[0].cache.layers)):
        keys, values = (
            torch.cat([aligned(getattr(part.cache.layers[layer], name)[part.rows], columns) for part in parts])
            for name in ("keys", "values")
        )
        whole.update(keys, values, layer)
    return whole


def aligned(states: torch.Tensor, columns: int) -> torch.Tensor:
    """(…, tokens, d) cut or filled up on the left to `columns` tokens."""
    lacking = columns - states.shape[-2]
    if lacking <= 0:
        return states[..., -lacking:, :]
    return torch.nn.functional.pad(states, (0, 0, lacking, 0))
