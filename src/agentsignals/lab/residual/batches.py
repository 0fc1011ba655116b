"""Prompts side by side, padded on the left, and which of their tokens are meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from agentsignals.errors import LabError
from agentsignals.lab.residual.interface import Positions, Prompt


def in_batches(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Indices of prompts, alike in length, in batches of at most `most_tokens` with their padding; a longer prompt is
    alone. The longest come first, so that what does not fit in memory fails at once.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batch and (len(batch) + 1) * lengths[batch[0]] > most_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _meant(prompt: Prompt, positions: Positions) -> list[bool]:
    length = len(prompt.tokens)
    if positions.which in ("all", "prompt"):
        return [True] * length
    meant = [False] * length
    if positions.which in ("last", "generated"):
        meant[-1] = True
        return meant
    for span in prompt.spans:
        if span.role in positions.roles and (not positions.labels or span.label in positions.labels):
            meant[span.start : span.end] = [True] * (span.end - span.start)
    return meant


class Batch:
    """Prompts of one batch. `ids`, `real` (no padding) and `places` (positions of the unpadded sequence) are
    (prompts, longest).
    """

    def __init__(self, prompts: Sequence[Prompt], padding: int, device: torch.device) -> None:
        if not all(prompt.tokens for prompt in prompts):
            raise LabError("A prompt has no tokens.", "Give every prompt a text.")
        self.prompts = prompts
        self.device = device
        self.longest = max(len(p.tokens) for p in prompts)
        self.ids = self._padded([p.tokens for p in prompts], padding)
        self.real = self._padded([[True] * len(p.tokens) for p in prompts], False)
        self.places = (self.real.long().cumsum(1) - 1).clamp(min=0)
        self._chosen: dict[Positions, torch.Tensor] = {}

    def _padded(self, rows: Sequence[Sequence[int]], padding: int) -> torch.Tensor:
        return torch.tensor([[padding] * (self.longest - len(row)) + list(row) for row in rows], device=self.device)

    def chosen(self, positions: Positions) -> torch.Tensor:
        """Which tokens of the prompts are meant, sinks included: (prompts, longest)."""
        if positions not in self._chosen:
            self._chosen[positions] = self._padded([_meant(p, positions) for p in self.prompts], False)
        return self._chosen[positions]

    def without_padding(self, row: int) -> slice:
        return slice(self.longest - len(self.prompts[row].tokens), None)
