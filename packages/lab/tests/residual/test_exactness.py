"""What a hook does is exactly what it says, on random models of six architectures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

from agentsignals_lab.residual import Ablate, Add, Edit, Piece, Positions, Prompt, Replace, Sampling, Span, Suppress  # noqa: E402  (after the check that they can be loaded)
from tests.residual import small  # noqa: E402

pytestmark = pytest.mark.torch
torch.set_num_threads(1)

TEXTS = ("write a function that adds", "the visible tests failed again: expected 4, got 5", "def add(a, b):")
ROUNDING = 1e-4
"""States of these models are around 10, and a batch's shape changes the order of sums in single precision."""


@pytest.fixture(params=small.CONFIGS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def prompts(name: str) -> list[Prompt]:
    return [small.hooked(name).encode_text([Piece("text", text)]) for text in TEXTS]


def fed_back(name: str) -> Prompt:
    """A prompt in three pieces, feedback in the middle."""
    pieces = [
        Piece("task", "write a function"),
        Piece("feedback", " failed again", "1"),
        Piece("code", " return a + b"),
    ]
    return small.hooked(name).encode_text(pieces)


def tokens_of(prompt: Prompt, role: str) -> slice:
    (span,) = [s for s in prompt.spans if s.role == role]
    return slice(span.start, span.end)


def direction(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=small.WIDTH).astype(np.float32)


def unit(seed: int = 0) -> np.ndarray:
    return direction(seed) / np.linalg.norm(direction(seed))


def library_states(name: str, prompt: Prompt) -> np.ndarray:
    """Outputs of all blocks but the last (whose hidden state is told after the final norm): (layers, tokens, d)."""
    told = small.hooked(name)._model(input_ids=torch.tensor([prompt.tokens]), output_hidden_states=True).hidden_states
    return np.stack([one[0].detach().numpy() for one in told[1:-1]])


def library_logprobs(name: str, tokens: tuple[int, ...], **more: Any) -> np.ndarray:
    logits = small.hooked(name)._model(input_ids=torch.tensor([tokens]), **more).logits
    return np.asarray(logits[0].detach().log_softmax(-1).numpy())


def test_what_is_recorded_is_what_the_library_calls_hidden_states(name: str) -> None:
    for prompt in prompts(name):
        (states,) = small.hooked(name).states([prompt], [0, 1, 2])
        np.testing.assert_array_equal(states, library_states(name, prompt))


def test_the_last_blocks_output_is_the_state_before_the_final_norm(name: str) -> None:
    model, prompt = small.hooked(name), prompts(name)[1]
    (states,) = model.states([prompt], [small.LAYERS - 1])
    logits = model._model.lm_head(model._backbone.norm(torch.tensor(states[0])))
    np.testing.assert_allclose(logits.log_softmax(-1).numpy(), library_logprobs(name, prompt.tokens), atol=ROUNDING)


def test_a_left_padded_batch_says_what_each_prompt_says_alone(name: str) -> None:
    model, asked = small.hooked(name), prompts(name)
    edits = [Add(1, direction(), 3.0, Positions("last")), Suppress(Positions("roles", roles=("text",)), layers=(2,))]
    together = model.states(asked, [0, 3], edits)
    odds, own = model.next_logprobs(asked, edits), model.logprobs_of(asked, edits)
    for row, prompt in enumerate(asked):
        np.testing.assert_allclose(together[row], model.states([prompt], [0, 3], edits)[0], atol=ROUNDING)
        np.testing.assert_allclose(odds[row], model.next_logprobs([prompt], edits)[0], atol=ROUNDING)
        np.testing.assert_allclose(own[row], model.logprobs_of([prompt], edits)[0], atol=ROUNDING)


def test_means_are_those_of_the_states_and_nan_where_no_token_is_meant(name: str) -> None:
    model, prompt = small.hooked(name), fed_back(name)
    (states,) = model.states([prompt], [0, 2])
    asked = [prompt, prompts(name)[1]]
    found = model.record(asked, [2, 0], Positions("roles", roles=("feedback",)))
    feedback = tokens_of(prompt, "feedback")
    np.testing.assert_allclose(found[0, 0], states[1, feedback].mean(0), atol=ROUNDING)
    np.testing.assert_allclose(found[0, 1], states[0, feedback].mean(0), atol=ROUNDING)
    assert np.isnan(found[1]).all()


def test_adding_moves_the_states_by_the_amount_and_nothing_upstream(name: str) -> None:
    model, asked = small.hooked(name), prompts(name)
    before, after = model.states(asked, [0, 1]), model.states(asked, [0, 1], [Add(1, 100 * direction(), -2.5)])
    for was, now in zip(before, after, strict=True):
        np.testing.assert_array_equal(now[0], was[0])
        np.testing.assert_allclose(now[1] - was[1], np.broadcast_to(-2.5 * unit(), was[1].shape), atol=2e-6)


def test_adding_at_a_span_changes_only_its_tokens_and_what_comes_after(name: str) -> None:
    model, prompt = small.hooked(name), fed_back(name)
    feedback = tokens_of(prompt, "feedback")
    edit = Add(1, direction(), 4.0, Positions("roles", roles=("feedback",), labels=("1",)))
    (was,), (now,) = model.states([prompt], [1, 3]), model.states([prompt], [1, 3], [edit])
    moved = np.abs(now[0] - was[0]).max(1) > 0
    assert np.flatnonzero(moved).tolist() == list(range(feedback.start, feedback.stop))
    np.testing.assert_array_equal(now[1, : feedback.start], was[1, : feedback.start])
    assert np.abs(now[1, feedback.stop :] - was[1, feedback.stop :]).max() > 1e-3
    assert model.states([prompt], [1], [Add(1, direction(), 4.0, Positions("roles", ("feedback",), ("2",)))])[0] == (
        pytest.approx(was[:1], abs=0)
    )


def test_ablation_leaves_nothing_along_the_direction_and_all_across_it(name: str) -> None:
    model, prompt = small.hooked(name), prompts(name)[1]
    (was,), (now,) = model.states([prompt], [2]), model.states([prompt], [2], [Ablate(2, direction())])
    np.testing.assert_allclose(now[0] @ unit(), 0, atol=1e-5)
    across = unit(1) - (unit(1) @ unit()) * unit()
    np.testing.assert_allclose(now[0] @ across, was[0] @ across, atol=1e-4)


def test_edits_of_one_layer_act_in_their_order(name: str) -> None:
    model, prompt = small.hooked(name), prompts(name)[0]
    ablate, add = Ablate(1, direction()), Add(1, direction(), 2.0)
    (first,), (last,) = model.states([prompt], [1], [add, ablate]), model.states([prompt], [1], [ablate, add])
    np.testing.assert_allclose(first[0] @ unit(), 0, atol=1e-5)
    np.testing.assert_allclose(last[0] @ unit(), 2, atol=1e-5)


def test_patching_a_whole_layer_restores_the_other_prompts_answer(name: str) -> None:
    model = small.hooked(name)
    calm = model.encode_text([Piece("text", "the visible tests")])
    other = model.encode_text([Piece("text", "write a function")])
    assert len(calm.tokens) == len(other.tokens)
    for layer in range(small.LAYERS):
        (states,) = model.states([calm], [layer])
        patched = model.next_logprobs([other], [Replace(layer, states[0])])
        np.testing.assert_array_equal(patched, model.next_logprobs([calm]))
    assert np.abs(model.next_logprobs([other]) - model.next_logprobs([calm])).max() > 0.1


def test_patching_some_positions_sets_these_rows_in_every_prompt_of_a_batch(name: str) -> None:
    model, asked = small.hooked(name), prompts(name)
    rows = np.stack([direction(5)])
    for now, was in zip(
        model.states(asked, [1], [Replace(1, rows, Positions("last"))]), model.states(asked, [1]), strict=True
    ):
        np.testing.assert_array_equal(now[0, -1], rows[0])
        np.testing.assert_allclose(now[0, :-1], was[0, :-1], atol=0)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_suppression_is_attention_without_these_keys(name: str, attention: str) -> None:
    """Held against the library's own mask, which hides keys in all blocks for good: the hidden tokens come first, and
    what they make of themselves is out of sight of all others.
    """
    model = small.hooked(name, attention=attention)
    hidden, kept = model.encode_text([Piece("text", "def add")]), model.encode_text([Piece("text", " return a")])
    n = len(hidden.tokens)
    pieces = [Piece("feedback", "def add"), Piece("text", " return a")]
    whole = model.encode_text(pieces)
    assert whole.tokens == hidden.tokens + kept.tokens
    mask = torch.tensor([[0] * n + [1] * len(kept.tokens)])
    places = torch.arange(len(whole.tokens))[None]
    logits = model._model(input_ids=torch.tensor([whole.tokens]), attention_mask=mask, position_ids=places).logits
    edit = Suppress(Positions("roles", roles=("feedback",)))
    for asked in ([whole], [whole, *prompts(name)]):
        np.testing.assert_allclose(
            model.next_logprobs(asked, [edit])[0], logits[0, -1].detach().log_softmax(-1).numpy(), atol=ROUNDING
        )
    assert np.abs(model.next_logprobs([whole])[0] - model.next_logprobs([whole], [edit])[0]).max() > 1e-2


def test_suppression_in_one_block_leaves_the_blocks_below_as_they_were(name: str) -> None:
    model, prompt = small.hooked(name), fed_back(name)
    edit = Suppress(Positions("roles", roles=("feedback",)), layers=(2,))
    (was,), (now,) = model.states([prompt], [1, 2]), model.states([prompt], [1, 2], [edit])
    feedback = tokens_of(prompt, "feedback")
    np.testing.assert_array_equal(now[0], was[0])
    np.testing.assert_allclose(now[1, : feedback.start + 1], was[1, : feedback.start + 1], atol=1e-5)
    assert (np.abs(now[1, feedback.stop :] - was[1, feedback.stop :]).max(1) > 1e-3).all()


@pytest.mark.parametrize("which", ["generated", "all", "last", "prompt"])
def test_answers_with_and_without_a_cache_are_the_same(name: str, which: Any) -> None:
    asked = [*prompts(name), fed_back(name)]
    edits: list[Edit] = [
        Add(1, direction(), 6.0, Positions(which)),
        Ablate(2, direction(1), Positions(which)),
        Suppress(Positions("roles", roles=("feedback",)), layers=(1, 3)),
    ]
    how = [Sampling(10)] * len(asked)
    fast = small.hooked(name).generate(asked, how, edits)
    slow = small.hooked(name, cached=False).generate(asked, how, edits)
    alone = [small.hooked(name).generate([prompt], [Sampling(10)], edits)[0] for prompt in asked]
    assert [g.tokens for g in fast] == [g.tokens for g in slow] == [g.tokens for g in alone]
    assert [g.logprob_sum for g in fast] == pytest.approx([g.logprob_sum for g in slow], abs=1e-3)
    assert [g.tokens for g in fast] != [g.tokens for g in small.hooked(name).generate(asked, how)]


def test_the_dose_on_what_is_generated_begins_at_the_prompts_last_token(name: str) -> None:
    """The first new token comes out of the prompt's last position; a second one shows that the dose goes on."""
    model, prompt = small.hooked(name), prompts(name)[1]
    vector = direction(3)
    (answer,) = model.generate([prompt], [Sampling(2)], [Add(2, vector, 8.0, Positions("generated"))])
    first = model.next_logprobs([prompt], [Add(2, vector, 8.0, Positions("last"))])[0]
    assert answer.tokens[0] == first.argmax()
    longer = Prompt((*prompt.tokens, answer.tokens[0]), ())
    moved = model.states([prompt], [2])[0][0, -1] + 8.0 * unit(3)
    both = [Replace(2, moved[None], Positions("roles", roles=("text",))), Add(2, vector, 8.0, Positions("last"))]
    spans = (Span("text", len(prompt.tokens) - 1, len(prompt.tokens)),)
    second = model.next_logprobs([Prompt(longer.tokens, spans)], both)[0]
    assert answer.tokens[1] == second.argmax()
    assert answer.logprob_sum == pytest.approx(first.max() + second.max(), abs=1e-3)


def test_greedy_answers_are_the_librarys_own(name: str) -> None:
    model, prompt = small.hooked(name), prompts(name)[0]
    theirs = model._model.generate(
        torch.tensor([prompt.tokens]),
        attention_mask=torch.ones(1, len(prompt.tokens), dtype=torch.long),
        max_new_tokens=12,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )[0, len(prompt.tokens) :]
    (ours,) = model.generate([prompt], [Sampling(12)])
    assert list(ours.tokens) == theirs.tolist()[: len(ours.tokens)]


def test_own_probabilities_are_the_librarys(name: str) -> None:
    model, prompt = small.hooked(name), prompts(name)[1]
    (own,) = model.logprobs_of([prompt])
    theirs = library_logprobs(name, prompt.tokens)
    assert np.isnan(own[0])
    wanted = [theirs[i, token] for i, token in enumerate(prompt.tokens[1:])]
    np.testing.assert_allclose(own[1:], wanted, atol=ROUNDING)
