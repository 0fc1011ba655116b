"""Drawing of the next tokens, and the end of an answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal

import numpy as np
import torch
from agentsignals.errors import LabError

from agentsignals_lab.residual.interface import Generation, Sampling

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
        self._tokens: list[int] = []
        self._logprob_sum = 0.0

    @property
    def tokens(self) -> list[int]:
        """Tokens drawn so far."""
        return self._tokens

    def number(self) -> float:
        """The next random number, uniform in [0, 1)."""
        return float(self._numbers.random())

    def take(self, token: int, logprob: float, ends: Collection[int], read: Callable[[list[int]], str]) -> None:
        """Appends a token; `read` makes text of tokens."""
        self._tokens.append(token)
        self._logprob_sum += logprob
        if token in ends or (self.sampling.stop and self._stop_at(read(self._tokens)) is not None):
            self.finish = "stop"
        elif len(self._tokens) >= self.sampling.max_new_tokens:
            self.finish = "length"

    def _stop_at(self, text: str) -> int | None:
        return min((at for at in map(text.find, self.sampling.stop) if at >= 0), default=None)

    def whole(self, read: Callable[[list[int]], str]) -> Generation:
        """The answer; its text ends before the first stop string."""
        text = read(self._tokens)
        text = text[: self._stop_at(text)]
        return Generation(
            text=text,
            tokens=tuple(self._tokens),
            finish=self.finish or "length",
            prompt_tokens=self._prompt_tokens,
            new_tokens=len(self._tokens),
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
