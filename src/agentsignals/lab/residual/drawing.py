"""How the next tokens are drawn, and when an answer is at its end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal

import numpy as np
import torch

from agentsignals.errors import LabError
from agentsignals.lab.residual.interface import Generation, Sampling


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
    if not bool(torch.isfinite(logits.amax(-1)).all()):
        raise LabError("The model's probabilities are not finite under these edits.", "Take a smaller dose.")
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
        tokens[warm] = torch.searchsorted(upto, below, right=True).squeeze(-1)
    return tokens.tolist(), logprobs.gather(-1, tokens.unsqueeze(-1)).squeeze(-1).tolist()


def _nucleus(chances: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Chances of the likeliest tokens that together reach `top_p`, zero for the others."""
    ordered, places = chances.sort(dim=-1, descending=True, stable=True)
    kept = ordered.masked_fill(ordered.cumsum(-1) - ordered >= top_p, 0.0)
    return torch.zeros_like(chances).scatter(-1, places, kept)
