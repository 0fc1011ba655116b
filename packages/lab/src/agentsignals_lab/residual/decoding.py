"""Answers in the making, side by side. A row that ends leaves and another comes in: rows of any prompt, length and
edits share a pass, each padded on the left up to the longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from agentsignals_lab.residual import roomy_cache
from agentsignals_lab.residual.batches import in_batches
from agentsignals_lab.residual.drawing import Answer, drawn
from agentsignals_lab.residual.edits import Acting
from agentsignals_lab.residual.hooks import Run, hooked
from agentsignals_lab.residual.interface import Edit, Generation, Prompt, Request

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel

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
        cache = roomy_cache.empty() if self._cached else None
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
            answer.take(token, logprob, self._ends, self._model.read)
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
            held = [roomy_cache.Kept(part.cache, places) for part, places in zip(parts, kept, strict=True) if places]
            cache = roomy_cache.joined(held, longest)
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
