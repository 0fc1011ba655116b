"""Hooks on a model's blocks: which tokens are meant, what is changed and read, which keys no later token sees.

One hook a block, in a fixed order: sinks are told by the states as they come, then the edits act in the order given,
then the states are read. So a recorder sees what was edited, and an edit makes no sink of a token at its own layer.
An edit acts on the rows that it is for: rows of several conditions go through the model together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from agentsignals.errors import LabError

from agentsignals_lab.residual import EMBEDDING, Ablate, Add, Edit, Positions, Prompt, Replace, Suppress


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
        edit, array = self.edit, self._array
        if isinstance(edit, Replace):
            counts = chosen.sum(1).tolist()
            if any(count != len(array) for count in counts):
                raise LabError(
                    f"{len(array)} states were given for {max(counts)} positions.",
                    "A patch has one row a position, and prompts patched together have as many positions each.",
                )
            changed = states.clone()
            changed[chosen] = array.to(states.dtype).repeat(states.shape[0], 1)
            return changed
        moved = edit.amount * array if isinstance(edit, Add) else -(states @ array).unsqueeze(-1) * array
        return torch.where(chosen.unsqueeze(-1), states + moved, states)


class Acting(NamedTuple):
    """An edit and the rows of a batch that it acts on; None: all of them."""

    what: Change | Suppress
    rows: tuple[int, ...] | None = None

    @classmethod
    def of(cls, edit: Edit) -> Acting:
        return cls(edit if isinstance(edit, Suppress) else Change(edit))


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
        self.visible: dict[int, torch.Tensor] = {}
        """By block, which tokens so far came into it as no sinks, (batch, tokens): kept where something is suppressed,
        since keys of earlier passes are hidden by it."""
        self._sink_norms = sink_norms

    def meant(self, positions: Positions, upto: int) -> torch.Tensor | None:
        """Which of the tokens so far, sinks included: (batch, upto). None: none of those now in the model."""
        if self.start >= self.batch.longest and not grows_with_answer(positions):
            return None
        return self.so_far(positions, upto)

    def so_far(self, positions: Positions, upto: int) -> torch.Tensor:
        chosen = self.batch.chosen(positions)
        return torch.nn.functional.pad(chosen, (0, upto - chosen.shape[1]), value=grows_with_answer(positions))

    def ordinary(self, states: torch.Tensor, layer: int) -> torch.Tensor | None:
        """Which tokens are no sinks by their states at the output of `layer`; None when no calibration says."""
        if self._sink_norms is None or layer < 0:
            return None
        return torch.linalg.vector_norm(states, dim=-1, dtype=torch.float32) <= self._sink_norms[layer]


@contextmanager
def hooked(
    blocks: Sequence[torch.nn.Module],
    run: Run,
    edits: Sequence[Acting],
    reader: Reader | None = None,
    layers: Sequence[int] = (),
) -> Iterator[None]:
    """While open, `edits` act on passes of `run`, and `reader` sees the outputs of `layers`."""
    handles = []
    try:
        if reader is not None and EMBEDDING in layers:
            handles.append(blocks[0].register_forward_pre_hook(partial(_before, run, reader), with_kwargs=True))
        for layer, block in enumerate(blocks):
            changes = [(e.what, e.rows) for e in edits if isinstance(e.what, Change) and e.what.edit.layer == layer]
            read = reader if layer in layers else None
            if changes or read:
                handles.append(block.register_forward_hook(partial(_after, run, layer, changes, read)))
            hidden = [
                (e.what.positions, e.rows)
                for e in edits
                if isinstance(e.what, Suppress) and (not e.what.layers or layer in e.what.layers)
            ]
            if hidden:
                handles.append(block.register_forward_pre_hook(partial(_veiled, run, layer, hidden), with_kwargs=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _chosen_in(run: Run, layer: int, states: torch.Tensor) -> Callable[[Positions], torch.Tensor | None]:
    """Return which of the tokens now in the model, of these states, given positions mean."""
    ordinary: list[torch.Tensor | None] = []

    def chosen(positions: Positions) -> torch.Tensor | None:
        meant = run.meant(positions, run.start + states.shape[1])
        if meant is None:
            return None
        meant = meant[:, run.start :].to(states.device)
        if positions.skip_sinks:
            if not ordinary:
                ordinary.append(run.ordinary(states, layer))
            if ordinary[0] is not None:
                meant = meant & ordinary[0]
        return meant

    return chosen


def _before(run: Run, reader: Reader, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    states: torch.Tensor = args[0] if args else kwargs["hidden_states"]
    reader(EMBEDDING, states, _chosen_in(run, EMBEDDING, states))
    if run.ends_at == EMBEDDING:
        raise Enough


Rows = tuple[int, ...] | None


def _after(
    run: Run,
    layer: int,
    changes: Sequence[tuple[Change, Rows]],
    reader: Reader | None,
    _: Any,
    __: Any,
    output: Any,
) -> torch.Tensor | tuple[Any, ...] | None:
    original: torch.Tensor = output if isinstance(output, torch.Tensor) else output[0]
    chosen, states = _chosen_in(run, layer, original), original
    for change, rows in changes:
        states = _changed(change, rows, states, run, chosen)
    states = states.to(original.dtype)
    if reader is not None:
        reader(layer, states, chosen)
    if layer == run.ends_at:
        raise Enough
    if states is original:
        return None
    return states if isinstance(output, torch.Tensor) else (states, *output[1:])


def _changed(
    change: Change, rows: Rows, states: torch.Tensor, run: Run, chosen: Callable[[Positions], torch.Tensor | None]
) -> torch.Tensor:
    positions = change.edit.positions
    if isinstance(change.edit, Replace):
        # A patch names its rows: were sinks left out, the rows would shift. And it is of the prompt alone.
        if run.start:
            return states
        where = run.batch.chosen(positions, answer=False)
        where = torch.nn.functional.pad(where, (0, states.shape[1] - where.shape[1]), value=False).to(states.device)
    else:
        where = chosen(positions)
    if where is None:
        return states
    states = states.to(torch.promote_types(states.dtype, torch.float32))
    if rows is None:
        return change.of(states, where)
    at = torch.tensor(rows, device=states.device)
    return states.index_copy(0, at, change.of(states[at], where[at]))


def _veiled(
    run: Run,
    layer: int,
    hidden: Sequence[tuple[Positions, Rows]],
    _: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Takes keys out of the attention of every later token, in one block. Sinks among the keys are told by what comes
    into the block: it is what the keys are made of."""
    states: torch.Tensor = args[0] if args else kwargs["hidden_states"]
    batch, upto = run.batch, run.start + states.shape[1]
    now, before = run.ordinary(states, layer - 1), run.visible.get(layer)
    if now is not None:
        run.visible[layer] = torch.cat((before, now), 1) if run.start and before is not None else now
    visible = run.visible.get(layer)
    keys = torch.zeros(len(batch.prompts), upto, dtype=torch.bool, device=batch.device)
    for positions, rows in hidden:
        meant = run.so_far(positions, upto)
        if positions.skip_sinks and visible is not None:
            meant = meant & visible.to(meant.device)
        if rows is not None:
            of_rows = torch.zeros(len(batch.prompts), 1, dtype=torch.bool, device=batch.device)
            of_rows[list(rows)] = True
            meant = meant & of_rows
        keys |= meant
    queries = torch.arange(run.start, upto, device=batch.device)
    later = queries[:, None] > torch.arange(upto, device=batch.device)[None, :]
    # (batch, 1, queries, keys): which key is hidden from which query.
    blocked = (keys[:, None, None, :] & later[None, None]).to(states.device)
    return args, {**kwargs, "attention_mask": _without(kwargs.get("attention_mask"), blocked)}


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
