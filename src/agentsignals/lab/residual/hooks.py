"""Hooks on a model's blocks: what is changed, what is read, which keys no later token sees.

One hook a block, in a fixed order: sinks are told by the states as they come, then the edits act in the order given,
then the states are read. So a recorder sees what was edited, and an edit makes no sink of a token at its own layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from agentsignals.errors import LabError
from agentsignals.lab.residual.batches import Batch
from agentsignals.lab.residual.edits import Change
from agentsignals.lab.residual.interface import Edit, Positions, Replace, Suppress

Reader = Callable[[int, torch.Tensor, Callable[[Positions], "torch.Tensor | None"]], None]
"""Told the layer, its states (batch, tokens, d) after the edits, and which of these tokens given positions mean."""


class Enough(Exception):
    """All that was asked for is read: what the blocks above would make of it nobody wants to know."""


class Run:
    """A batch on its way through the model: its prompts, then what is written after them."""

    def __init__(self, batch: Batch, sink_norms: Sequence[float] | None, ends_at: int | None = None) -> None:
        self.batch = batch
        self.ends_at = ends_at
        """The layer after which a pass ends with `Enough`."""
        self.start = 0
        """Place, in the padded sequence, of the first token now in the model."""
        self._sink_norms = sink_norms

    def meant(self, positions: Positions, upto: int) -> torch.Tensor | None:
        """Which of the tokens so far, sinks included: (batch, upto). None: none of those now in the model."""
        grows = positions.which in ("all", "generated")
        if self.start >= self.batch.longest and not grows:
            return None
        chosen = self.batch.chosen(positions)
        return torch.nn.functional.pad(chosen, (0, upto - chosen.shape[1]), value=grows)

    def ordinary(self, states: torch.Tensor, layer: int) -> torch.Tensor | None:
        """Which tokens are no sinks by their states at the output of `layer`; None when no calibration says."""
        if self._sink_norms is None or layer < 0:
            return None
        return torch.linalg.vector_norm(states, dim=-1, dtype=torch.float32) <= self._sink_norms[layer]


@contextmanager
def hooked(
    blocks: Sequence[torch.nn.Module],
    run: Run,
    edits: Sequence[Edit],
    reader: Reader | None = None,
    layers: Sequence[int] = (),
) -> Iterator[None]:
    """While open, `edits` act on passes of `run`, and `reader` sees the outputs of `layers`."""
    handles = []
    try:
        for layer, block in enumerate(blocks):
            changes = [Change(e) for e in edits if not isinstance(e, Suppress) and e.layer == layer]
            read = reader if layer in layers else None
            if changes or read:
                handles.append(block.register_forward_hook(partial(_after, run, layer, changes, read)))
            hidden = [e.positions for e in edits if isinstance(e, Suppress) and (not e.layers or layer in e.layers)]
            if hidden:
                handles.append(block.register_forward_pre_hook(Veil(run, layer, hidden), with_kwargs=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _after(
    run: Run, layer: int, changes: Sequence[Change], reader: Reader | None, _: Any, __: Any, output: Any
) -> torch.Tensor | tuple[Any, ...] | None:
    states: torch.Tensor = output if isinstance(output, torch.Tensor) else output[0]
    width = states.shape[1]
    ordinary: list[torch.Tensor | None] = []

    def chosen(positions: Positions) -> torch.Tensor | None:
        meant = run.meant(positions, run.start + width)
        if meant is None:
            return None
        meant = meant[:, run.start :].to(original.device)
        if positions.skip_sinks:
            if not ordinary:
                ordinary.append(run.ordinary(original, layer))
            if ordinary[0] is not None:
                meant = meant & ordinary[0]
        return meant

    original = states
    for change in changes:
        states = _changed(change, states, run, chosen)
    states = states.to(original.dtype)
    if reader is not None:
        reader(layer, states, chosen)
    if layer == run.ends_at:
        raise Enough
    if states is original:
        return None
    return states if isinstance(output, torch.Tensor) else (states, *output[1:])


def _changed(
    change: Change, states: torch.Tensor, run: Run, chosen: Callable[[Positions], torch.Tensor | None]
) -> torch.Tensor:
    positions = change.edit.positions
    if isinstance(change.edit, Replace):
        # A patch names its rows: were sinks left out, the rows would shift. And it is of the prompt alone.
        if run.start:
            return states
        prompt = run.batch.longest
        where = chosen(Positions(positions.which, positions.roles, positions.labels, skip_sinks=False))
        if where is None:
            return states
        where = torch.nn.functional.pad(where[:, :prompt], (0, where.shape[1] - prompt), value=False)
    else:
        where = chosen(positions)
    if where is None:
        return states
    return change.of(states.to(torch.promote_types(states.dtype, torch.float32)), where)


class Veil:
    """Takes keys out of the attention of every later token, in one block."""

    def __init__(self, run: Run, layer: int, hidden: Sequence[Positions]) -> None:
        self._run = run
        self._layer = layer
        self._hidden = hidden
        self._ordinary: torch.Tensor | None = None

    def __call__(
        self, _: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        states: torch.Tensor = args[0] if args else kwargs["hidden_states"]
        start, width = self._run.start, states.shape[1]
        self._remember(states)
        blocked = self._blocked(start, width).to(states.device)
        return args, {**kwargs, "attention_mask": _without(kwargs.get("attention_mask"), blocked)}

    def _remember(self, states: torch.Tensor) -> None:
        """Sinks among the keys are told by what comes into the block: it is what the keys are made of."""
        ordinary = self._run.ordinary(states, self._layer - 1)
        if ordinary is not None and self._run.start and self._ordinary is not None:
            ordinary = torch.cat((self._ordinary, ordinary), 1)
        self._ordinary = ordinary

    def _blocked(self, start: int, width: int) -> torch.Tensor:
        """(batch, 1, queries, keys): which key is hidden from which query."""
        upto = start + width
        batch = self._run.batch
        keys = torch.zeros(len(batch.prompts), upto, dtype=torch.bool, device=batch.device)
        for positions in self._hidden:
            chosen = batch.chosen(positions)
            grows = positions.which in ("all", "generated")
            meant = torch.nn.functional.pad(chosen, (0, upto - chosen.shape[1]), value=grows)
            if positions.skip_sinks and self._ordinary is not None:
                meant = meant & self._ordinary.to(meant.device)
            keys |= meant
        queries = torch.arange(start, upto, device=batch.device)
        later = queries[:, None] > torch.arange(upto, device=batch.device)[None, :]
        return keys[:, None, None, :] & later[None, None]


def _without(mask: torch.Tensor | None, blocked: torch.Tensor) -> torch.Tensor:
    """An attention mask of the model (true or 0: seen) with the blocked keys taken out."""
    if mask is None:
        # No mask means that nothing is padded and the kernel itself looks only backward.
        queries, keys = blocked.shape[-2:]
        seen = torch.ones(queries, keys, dtype=torch.bool, device=blocked.device).tril(keys - queries)
        return seen & ~blocked
    if mask.dim() != blocked.dim() or mask.shape[-1] != blocked.shape[-1]:
        raise LabError(
            "This model's attention takes no mask of queries and keys.", "Load it with attention sdpa or eager."
        )
    if mask.dtype == torch.bool:
        return mask & ~blocked
    return mask.masked_fill(blocked, torch.finfo(mask.dtype).min)
