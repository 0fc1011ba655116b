"""An independent road to the same numbers: nnsight, which wraps a model in a way of its own."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    nnsight = pytest.importorskip("nnsight", reason="nnsight is not installed (an independent check)")

from agentsignals_lab.residual import Add, Piece, Positions, Prompt, Sampling  # noqa: E402  (after the check)
from tests.residual import small  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
LAYER, AMOUNT, NEW = 1, 20.0, 8


@pytest.fixture(params=small.CONFIGS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def prompt(name: str) -> Prompt:
    pieces = [Piece("task", "write a function"), Piece("feedback", " failed again"), Piece("code", " return a")]
    return small.hooked(name).encode_text(pieces)


def unit() -> Any:
    vector = np.random.default_rng(0).normal(size=small.WIDTH)
    return torch.tensor(vector / np.linalg.norm(vector), dtype=torch.float32)


def test_states_are_those_that_nnsight_saves(name: str) -> None:
    asked, theirs = prompt(name), nnsight.NNsight(small.transformer(name))
    with torch.no_grad(), theirs.trace(torch.tensor([asked.tokens])):
        first = nnsight.save(theirs.model.layers[0].output)
        last = nnsight.save(theirs.model.layers[small.LAYERS - 1].output)
    (ours,) = small.hooked(name).states([asked], [0, small.LAYERS - 1])
    np.testing.assert_array_equal(ours[0], first[0].numpy())
    np.testing.assert_array_equal(ours[1], last[0].numpy())


def test_adding_at_a_span_gives_the_logits_that_nnsight_gives(name: str) -> None:
    asked, theirs = prompt(name), nnsight.NNsight(small.transformer(name))
    (span,) = [s for s in asked.spans if s.role == "feedback"]
    with torch.no_grad(), theirs.trace(torch.tensor([asked.tokens])):
        theirs.model.layers[LAYER].output[:, span.start : span.end] += AMOUNT * unit()
        logits = nnsight.save(theirs.lm_head.output)
    edit = Add(LAYER, unit().numpy(), AMOUNT, Positions("roles", roles=("feedback",)))
    found = small.hooked(name).next_logprobs([asked], [edit])[0]
    np.testing.assert_allclose(found, logits[0, -1].log_softmax(-1).numpy(), atol=1e-4)


def test_steered_answers_are_those_of_nnsight(name: str) -> None:
    """Without a cache, so that nnsight runs the plain forward pass once a token."""
    asked, theirs = prompt(name), nnsight.NNsight(small.transformer(name))
    tokens = list(asked.tokens)
    for _ in range(NEW):
        with torch.no_grad(), theirs.trace(torch.tensor([tokens])):
            theirs.model.layers[LAYER].output[:, len(asked.tokens) - 1 :] += AMOUNT * unit()
            logits = nnsight.save(theirs.lm_head.output)
        tokens.append(int(logits[0, -1].argmax()))
    edit = Add(LAYER, unit().numpy(), AMOUNT, Positions("generated"))
    (ours,) = small.hooked(name).generate([asked], [Sampling(NEW)], [edit])
    assert list(ours.tokens) == tokens[len(asked.tokens) :][: len(ours.tokens)]
    assert ours.tokens != small.hooked(name).generate([asked], [Sampling(NEW)])[0].tokens
