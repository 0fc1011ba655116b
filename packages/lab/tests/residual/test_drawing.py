"""How tokens are drawn: the distribution, the cut-off, random numbers that conditions share, and where answers end."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

from agentsignals.errors import LabError  # noqa: E402  (after the check that they can be loaded)

from agentsignals_lab.residual import Add, Piece, Positions, Prompt, Sampling  # noqa: E402
from agentsignals_lab.residual.decoding import Answer, drawn  # noqa: E402
from tests.residual import small  # noqa: E402

pytestmark = pytest.mark.torch
CHANCES = np.array([0.05, 0.5, 0.0, 0.3, 0.15])


def logits(rows: int = 1) -> torch.Tensor:
    with np.errstate(divide="ignore"):
        return torch.tensor(np.log(CHANCES), dtype=torch.float32).repeat(rows, 1)


def draws(sampling: Sampling, count: int) -> np.ndarray:
    answers = [Answer(Sampling(1, sampling.temperature, sampling.top_p, seed=n), 1) for n in range(count)]
    return np.bincount(drawn(logits(count), answers)[0], minlength=5) / count


@pytest.mark.parametrize(
    ("temperature", "top_p", "expected"),
    [
        (0.0, 1.0, [0, 1, 0, 0, 0]),
        (1.0, 1.0, CHANCES),
        (0.5, 1.0, CHANCES**2 / (CHANCES**2).sum()),
        (1.0, 0.8, [0, 0.625, 0, 0.375, 0]),
        (1.0, 0.81, [0, 0.5 / 0.95, 0, 0.3 / 0.95, 0.15 / 0.95]),
        (1.0, 0.0001, [0, 1, 0, 0, 0]),
        (2.0, 0.5, None),
    ],
)
def test_tokens_follow_the_distribution_after_temperature_and_cut_off(
    temperature: float, top_p: float, expected: np.ndarray | None
) -> None:
    found = draws(Sampling(1, temperature, top_p), 4000)
    if expected is None:  # warmed first, cut off then: the two likeliest of .38, .29, .21, .12
        warm = np.sqrt(CHANCES) / np.sqrt(CHANCES).sum()
        expected = np.where(warm >= 0.25, warm, 0) / warm[warm >= 0.25].sum()
    np.testing.assert_allclose(found, expected, atol=0.03)
    assert (found[np.asarray(expected) == 0] == 0).all()


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53])
def test_the_ends_of_the_random_numbers_draw_no_impossible_token(
    number: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answer, "number", lambda _: number)
    told = torch.tensor([[-torch.inf, 0.0, 1.0, -torch.inf]])
    assert drawn(told, [Answer(Sampling(1, 1.0), 1)])[0] == [1 if number == 0 else 2]


def test_the_same_number_decides_the_same_step_under_every_condition() -> None:
    """Two conditions that differ a little draw the same tokens but where the number falls into the difference."""
    moved = np.array([0.06, 0.5, 0.0, 0.3, 0.14])
    how = [Sampling(1, 1.0, seed=n) for n in range(3000)]
    one = drawn(logits(3000), [Answer(s, 1) for s in how])[0]
    other = drawn(torch.tensor(np.log(moved + 1e-12)).repeat(3000, 1), [Answer(s, 1) for s in how])[0]
    assert np.mean(np.array(one) != np.array(other)) == pytest.approx(0.03, abs=0.015)


def test_probabilities_are_told_before_temperature_and_cut_off() -> None:
    answers = [Answer(Sampling(1, 0.3, 0.6, seed=n), 1) for n in range(4)]
    tokens, logprobs = drawn(logits(4), answers)
    assert logprobs == pytest.approx([np.log(CHANCES[t]) for t in tokens], abs=1e-6)


def test_numbers_that_are_not_finite_are_an_error_and_no_token() -> None:
    for broken in (torch.nan, torch.inf):
        with pytest.raises(LabError, match="not finite"):
            drawn(torch.tensor([[0.0, broken]]), [Answer(Sampling(1), 1)])


def prompts() -> list[Prompt]:
    texts = ("write a function", "the visible tests failed again: expected 4, got 5", "add")
    return [small.hooked("qwen2").encode_text([Piece("text", text)]) for text in texts]


def test_an_answer_depends_on_its_seed_and_not_on_its_neighbours() -> None:
    model, asked = small.hooked("qwen2"), prompts()
    how = [Sampling(12, 0.8, 0.95, seed=n) for n in (3, 4, 5)]
    together = model.generate(asked, how)
    assert together == model.generate(asked, how)
    turned = model.generate(asked[::-1], how[::-1])[::-1]
    in_small_batches = small.hooked("qwen2", batch_tokens=1).generate(asked, how)
    assert [g.tokens for g in together] == [g.tokens for g in turned] == [g.tokens for g in in_small_batches]
    others = model.generate(asked, [Sampling(12, 0.8, 0.95, seed=n) for n in (6, 7, 8)])
    assert [g.tokens for g in together] != [g.tokens for g in others]


def test_a_warm_answer_under_a_dose_of_nothing_is_the_answer_without() -> None:
    model, asked = small.hooked("qwen2"), prompts()
    how = [Sampling(12, 1.0, seed=n) for n in range(3)]
    none = [Add(1, np.ones(small.WIDTH, np.float32), 0.0, Positions("generated"))]
    assert [g.tokens for g in model.generate(asked, how)] == [g.tokens for g in model.generate(asked, how, none)]


def test_every_answer_ends_at_its_own_length() -> None:
    found = small.hooked("qwen2").generate(prompts(), [Sampling(n, 1.0) for n in (0, 3, 9)])
    assert [(len(g.tokens), g.new_tokens, g.finish) for g in found] == [
        (0, 0, "length"),
        (3, 3, "length"),
        (9, 9, "length"),
    ]
    assert [g.prompt_tokens for g in found] == [len(p.tokens) for p in prompts()]
    assert found[0].text == ""


def said(text: str, most: int = 50) -> tuple[str, str, int]:
    """What becomes of an answer whose tokens are the letters of a text; `$` is the end token."""
    answer = Answer(Sampling(most), 1)
    for letter in text:
        if answer.finish is None:
            answer.take(ord(letter), -0.5, {ord("$")})
    found = answer.whole(lambda tokens: "".join(map(chr, tokens)).replace("$", ""))
    assert found.logprob_sum == -0.5 * len(found.tokens)
    return found.text, found.finish, len(found.tokens)


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("abc$def", 50, ("abc", "stop", 4)),
        ("abcdef", 3, ("abc", "length", 3)),
        ("abc$", 4, ("abc", "stop", 4)),
    ],
)
def test_an_answer_ends_at_the_end_token_or_its_length(text: str, most: int, expected: tuple[str, str, int]) -> None:
    assert said(text, most) == expected


def test_the_models_own_end_token_ends_an_answer() -> None:
    model, asked = small.hooked("qwen2"), prompts()[:1]
    (free,) = model.generate(asked, [Sampling(6)])
    ends, model._model.generation_config.eos_token_id = model._model.generation_config.eos_token_id, [7, free.tokens[2]]
    try:
        (ended,) = model.generate(asked, [Sampling(6)])
    finally:
        model._model.generation_config.eos_token_id = ends
    assert (ended.tokens, ended.finish) == (free.tokens[: free.tokens.index(free.tokens[2]) + 1], "stop")
