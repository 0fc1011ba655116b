"""Prompts side by side, padded on the left, and which of their tokens are meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from agentsignals.errors import LabError

from agentsignals_lab.residual.interface import Positions, Prompt


def longest_first(lengths: Sequence[int]) -> list[int]:
    """Indices by length: what does not fit in memory fails at once, and neighbours are alike in length."""
    return sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))


def in_batches(lengths: Sequence[int], most_tokens: int, most_rows: int) -> Iterator[list[int]]:
    """Indices of prompts, alike in length, in batches of at most `most_rows` and `most_tokens` with their padding; a
    longer prompt is alone. The longest come first.
    """
    batch: list[int] = []
    for index in longest_first(lengths):
        if batch and (len(batch) == most_rows or (len(batch) + 1) * lengths[batch[0]] > most_tokens):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def grows_with_answer(positions: Positions) -> bool:
    """Return whether tokens written after the prompt are meant, too."""
    return positions.which in ("all", "generated")


def meant(prompt: Prompt, positions: Positions) -> list[bool]:
    """Which tokens of a prompt are meant, sinks included."""
    length = len(prompt.tokens)
    if positions.which in ("all", "prompt"):
        return [True] * length
    marks = [False] * length
    if positions.which in ("last", "generated"):
        marks[-1] = True
        return marks
    for span in prompt.spans:
        if span.role in positions.roles and (not positions.labels or span.label in positions.labels):
            marks[span.start : span.end] = [True] * (span.end - span.start)
    return marks


class Batch:
    """Prompts of one batch, each with the tokens `written` after it so far. `ids`, `real` (no padding) and `places`
    (positions of the unpadded sequence) are (prompts, longest).
    """

    def __init__(
        self,
        prompts: Sequence[Prompt],
        padding: int,
        device: torch.device,
        written: Sequence[Sequence[int]] | None = None,
    ) -> None:
        if not all(prompt.tokens for prompt in prompts):
            raise LabError("A prompt has no tokens.", "Give every prompt a text.")
        self.prompts = prompts
        self.device = device
        self._written = [()] * len(prompts) if written is None else written
        rows = [[*p.tokens, *more] for p, more in zip(prompts, self._written, strict=True)]
        self.longest = max(map(len, rows))
        self.ids = self._padded(rows, padding)
        self.real = self._padded([[True] * len(row) for row in rows], False)
        self.places = (self.real.long().cumsum(1) - 1).clamp(min=0)
        self._chosen: dict[tuple[Positions, bool], torch.Tensor] = {}

    def _padded(self, rows: Sequence[Sequence[int]], padding: int) -> torch.Tensor:
        return torch.tensor([[padding] * (self.longest - len(row)) + list(row) for row in rows], device=self.device)

    def chosen(self, positions: Positions, *, answer: bool = True) -> torch.Tensor:
        """Which tokens are meant, sinks included, those of the answer only with `answer`: (prompts, longest)."""
        if (positions, answer) not in self._chosen:
            grows = answer and grows_with_answer(positions)
            rows = zip(self.prompts, self._written, strict=True)
            marks = [meant(prompt, positions) + [grows] * len(written) for prompt, written in rows]
            self._chosen[positions, answer] = self._padded(marks, False)
        return self._chosen[positions, answer]

    def without_padding(self, row: int) -> slice:
        return slice(self.longest - len(self.prompts[row].tokens), None)
