"""Answers in the making, side by side. A row that ends leaves and another comes in: rows of any prompt, length and
edits share a pass, each padded on the left up to the longest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from agentsignals.errors import LabError
from transformers.cache_utils import Cache, DynamicLayer

from agentsignals_lab.residual import Edit, Generation, Prompt, Request, Sampling
from agentsignals_lab.residual.hooks import Acting, Run, hooked, in_batches

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel


_LIKELIEST = 1024
"""Tokens among which a nucleus is looked for first; where it is larger the whole vocabulary is sorted. Changes no
result (tests/residual/test_drawing.py)."""


class Answer:
    """One answer in the making. Its random numbers come from its own seed alone, one a token, drawn at every
    temperature: the n-th token of two conditions is decided by the same number, whatever stands beside them in a batch.
    """

    def __init__(self, sampling: Sampling, prompt_tokens: int) -> None:
        self.sampling = sampling
        self.finish: Literal["stop", "length"] | None = None if sampling.max_new_tokens > 0 else "length"
        self._prompt_tokens = prompt_tokens
        self._numbers = np.random.default_rng(sampling.seed)
        self.tokens: list[int] = []
        """Drawn so far."""
        self._logprob_sum = 0.0

    def number(self) -> float:
        """The next random number, uniform in [0, 1)."""
        return float(self._numbers.random())

    def take(self, token: int, logprob: float, ends: Collection[int]) -> None:
        """Appends a token."""
        self.tokens.append(token)
        self._logprob_sum += logprob
        if token in ends:
            self.finish = "stop"
        elif len(self.tokens) >= self.sampling.max_new_tokens:
            self.finish = "length"

    def whole(self, read: Callable[[list[int]], str]) -> Generation:
        """The answer; `read` makes text of tokens."""
        return Generation(
            text=read(self.tokens),
            tokens=tuple(self.tokens),
            finish=self.finish or "length",
            prompt_tokens=self._prompt_tokens,
            new_tokens=len(self.tokens),
            logprob_sum=self._logprob_sum,
        )


def drawn(logits: torch.Tensor, answers: Sequence[Answer]) -> tuple[list[int], list[float]]:
    """The next token of each answer, and its natural-log probability before temperature and top-p.

    Drawn by inverting the distribution over the vocabulary in its own order, so that an edit which changes few
    probabilities changes few tokens.
    """
    logprobs = logits.double().log_softmax(-1)
    tokens = logprobs.argmax(-1)
    numbers = [answer.number() for answer in answers]
    warm = [i for i, answer in enumerate(answers) if answer.sampling.temperature > 0]
    if warm:

        def column(values: list[float]) -> torch.Tensor:
            return torch.tensor(values, dtype=torch.float64, device=logits.device).unsqueeze(-1)

        chances = (logprobs[warm] / column([answers[i].sampling.temperature for i in warm])).softmax(-1)
        if any(answers[i].sampling.top_p < 1 for i in warm):
            chances = _nucleus(chances, column([answers[i].sampling.top_p for i in warm]))
        upto = chances.cumsum(-1)
        below = column([numbers[i] for i in warm]) * upto[:, -1:]
        tokens[warm] = torch.searchsorted(upto, below, right=True).squeeze(-1).clamp(max=logits.shape[-1] - 1)
    finite = torch.isfinite(logits.amax(-1)).double()
    chosen = logprobs.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    # One journey to the host for all: token numbers are far below 2 ** 53.
    rows = torch.stack((finite, tokens.double(), chosen)).tolist()
    if not all(rows[0]):
        raise LabError("The model's probabilities are not finite under these edits.", "Use a smaller dose.")
    return [int(token) for token in rows[1]], rows[2]


def _nucleus(chances: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Chances of the likeliest tokens that together reach `top_p`, zero for the others; of equals the first ones."""
    many = chances.shape[-1]
    if many > _LIKELIEST:
        # To sort a whole vocabulary for each token costs more than a small model's pass.
        places = chances.topk(_LIKELIEST, dim=-1).indices.sort(dim=-1).values
        ordered, kept, order = _kept(chances.gather(-1, places), top_p)
        # Where the last one looked at is kept, or equals one that is, others may have to be, too.
        if bool((ordered[:, -1:] < ordered.masked_fill(kept == 0, torch.inf).amin(-1, keepdim=True)).all()):
            return torch.zeros_like(chances).scatter(-1, places.gather(-1, order), kept)
    _, kept, order = _kept(chances, top_p)
    return torch.zeros_like(chances).scatter(-1, order, kept)


def _kept(chances: torch.Tensor, top_p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Chances from the highest down, the same with 0 beyond `top_p`, and their places."""
    ordered, places = chances.sort(dim=-1, descending=True, stable=True)
    return ordered, ordered.masked_fill(ordered.cumsum(-1) - ordered >= top_p, 0.0), places


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


def empty() -> Cache:
    """A cache with nothing in it."""
    return Cache(layer_class_to_replicate=RoomyLayer)


def joined(parts: Sequence[tuple[Cache, list[int]]], columns: int) -> Cache:
    """One cache of the rows kept of each, all ending at the same column; what a row lacks on the left is zeros, which
    the attention mask hides."""
    whole = empty()
    for layer in range(len(parts[0][0].layers)):
        keys, values = (
            torch.cat([aligned(getattr(cache.layers[layer], name)[rows], columns) for cache, rows in parts])
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


_ENDED_SHARE = 0.25
"""Rows that ended are computed on until they are this share of all: to take one out copies the cache of the others."""


class Row(NamedTuple):
    """An answer under way."""

    key: Any
    request: Request
    answer: Answer

    @property
    def cached(self) -> int:
        """Its tokens that a pass has seen: all but the last drawn."""
        return len(self.request.prompt.tokens) + max(0, len(self.answer.tokens) - 1)

    @property
    def to_come(self) -> int:
        """At most so many passes."""
        return self.request.sampling.max_new_tokens - max(0, len(self.answer.tokens) - 1)


class Part(NamedTuple):
    """Rows that go through the model together, at the same column."""

    rows: list[Row]
    run: Run
    acting: list[Acting]
    cache: Any


class Decoding:
    """Answers of a model in this process."""

    def __init__(self, model: HookedModel) -> None:
        self._model, self._bounds, self._cached, self._ends = model, model.bounds, model.cached, model.ends
        self._part: Part | None = None
        self._ended: list[tuple[Any, Generation]] = []
        self._acting: dict[int, tuple[Edit, Acting]] = {}

    def __len__(self) -> int:
        return len(self._alive) + len(self._ended)

    @property
    def _alive(self) -> list[Row]:
        return [row for row in self._part.rows if row.answer.finish is None] if self._part else []

    def fits(self, requests: Sequence[Request]) -> bool:
        new = [Row(None, request, Answer(request.sampling, 0)) for request in requests]
        rows = [*self._alive, *new]
        columns = max(row.cached for row in rows) + max(row.to_come for row in rows)
        most_rows, most_tokens = self._bounds
        return len(rows) == 1 or (len(rows) <= most_rows and len(rows) * columns <= most_tokens)

    def add(self, requests: Sequence[tuple[Any, Request]]) -> None:
        rows = [Row(key, asked, Answer(asked.sampling, len(asked.prompt.tokens))) for key, asked in requests]
        for row in rows:
            self._model.check(row.request.prompt, row.request.edits)
        self._leave(row for row in rows if row.answer.finish is not None)
        rows = [row for row in rows if row.answer.finish is None]
        lengths, (most_rows, most_tokens) = [len(row.request.prompt.tokens) for row in rows], self._bounds
        parts = [self._part] if self._alive and self._part else []
        for places in in_batches(lengths, most_tokens, most_rows):
            parts.append(self._begun([rows[place] for place in places]))
        self._part = self._joined(parts)

    def step(self) -> list[tuple[Any, Generation]]:
        alive = len(self._alive)
        part = self._part
        if not self._ended and part is not None and alive:
            if len(part.rows) - alive > _ENDED_SHARE * len(part.rows):
                self._part = part = self._joined([part]) or part
            self._write(part)
        ended, self._ended = self._ended, []
        return ended

    def _begun(self, rows: list[Row]) -> Part:
        """New rows after a pass of their prompts, with a first token each. Equal prompts under the same edits, as
        samples of one task have, go through it once."""
        alike: dict[tuple[Prompt, tuple[int, ...]], int] = {}
        places = [alike.setdefault((r.request.prompt, tuple(map(id, r.request.edits))), len(alike)) for r in rows]
        once = [rows[places.index(n)] for n in range(len(alike))] if self._cached else rows
        run = self._model.run_of([row.request.prompt for row in once])
        cache = empty() if self._cached else None
        part = Part(once, run, self._acting_on(once), cache)
        logits = self._through(part, part.run.batch.ids)
        if len(once) < len(rows):
            part, logits = self._of([part], [places], rows), logits[places]
        self._draw(part, logits)
        return part

    def _write(self, part: Part) -> None:
        if part.cache is None:
            self._pass(part, part.run.batch.ids)
            self._part = self._joined([part])
            return
        last = [[row.answer.tokens[-1]] for row in part.rows]
        self._pass(part, torch.tensor(last, device=part.run.batch.device))

    def _pass(self, part: Part, ids: torch.Tensor) -> None:
        """Through the model with these tokens, and a token drawn for every row that goes on."""
        self._draw(part, self._through(part, ids))

    def _through(self, part: Part, ids: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode(), hooked(self._model.blocks, part.run, part.acting):
            logits = self._model.logits(part.run, ids, part.cache, keep=1)[:, -1]
        if part.cache is not None:
            part.run.start += ids.shape[1]
        return logits

    def _draw(self, part: Part, logits: torch.Tensor) -> None:
        going = [n for n, row in enumerate(part.rows) if row.answer.finish is None]
        answers = [part.rows[n].answer for n in going]
        for answer, token, logprob in zip(answers, *drawn(logits[going], answers), strict=True):
            answer.take(token, logprob, self._ends)
        self._leave(row for row in (part.rows[n] for n in going) if row.answer.finish is not None)

    def _leave(self, rows: Any) -> None:
        self._ended += [(row.key, row.answer.whole(self._model.read)) for row in rows]

    def _joined(self, parts: Sequence[Part]) -> Part | None:
        """Their rows that go on, as one part; None where none does."""
        kept = [[n for n, row in enumerate(part.rows) if row.answer.finish is None] for part in parts]
        rows = [part.rows[n] for part, places in zip(parts, kept, strict=True) for n in places]
        if not rows:
            return None
        return self._of(parts, kept, rows)

    def _of(self, parts: Sequence[Part], kept: Sequence[list[int]], rows: list[Row]) -> Part:
        """One part of the rows `kept` of each, which may be one several times."""
        # Without a cache every pass has all tokens; with one, the last drawn is still to go in.
        written = [row.answer.tokens[: -1 if self._cached else None] for row in rows]
        run, cache = self._model.run_of([row.request.prompt for row in rows], written), None
        if self._cached:
            run.start = longest = run.batch.longest
            held = [(part.cache, places) for part, places in zip(parts, kept, strict=True) if places]
            cache = joined(held, longest)
            run.visible = _joined_visible(parts, kept, longest)
        return Part(rows, run, self._acting_on(rows), cache)

    def _acting_on(self, rows: Sequence[Row]) -> list[Acting]:
        """Edits with the rows they are for: rows of the same edits are one group, and act in their order."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for n, row in enumerate(rows):
            groups.setdefault(tuple(map(id, row.request.edits)), []).append(n)
        acting = []
        for places in groups.values():
            of = None if len(places) == len(rows) else tuple(places)
            for edit in rows[places[0]].request.edits:
                # The edit is kept beside what was made of it: its id is its own as long as it lives.
                _, made = self._acting.setdefault(id(edit), (edit, Acting.of(edit)))
                acting.append(made._replace(rows=of))
        return acting


def _joined_visible(parts: Sequence[Part], kept: Sequence[list[int]], columns: int) -> dict[int, torch.Tensor]:
    """Which tokens came into each block as no sinks, of the rows kept. Where nobody looked nothing was hidden."""
    layers = {layer for part in parts for layer in part.run.visible}
    joined = {}
    for layer in layers:
        of_parts = []
        for part, places in zip(parts, kept, strict=True):
            seen = part.run.visible.get(layer)
            if seen is None:
                seen = torch.ones(len(part.rows), columns, dtype=torch.bool, device=part.run.batch.device)
            lacking = columns - seen.shape[1]
            of_parts.append(torch.nn.functional.pad(seen[places], (lacking, 0), value=True))
        joined[layer] = torch.cat(of_parts)
    return joined
