"""Answers side by side: rows come and go, each under its own edits, and say what they say alone."""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

from agentsignals.errors import LabError  # noqa: E402  (after the check that they can be loaded)

from agentsignals_lab.residual import (  # noqa: E402
    EMBEDDING,
    EVERYWHERE,
    Ablate,
    Add,
    Generation,
    Piece,
    Positions,
    Prompt,
    Replace,
    Request,
    Sampling,
    Suppress,
    decoding,
)
from agentsignals_lab.residual.loading import TOKENS_OF_A_PROCESSOR, card_of, tokens_for  # noqa: E402
from agentsignals_lab.residual.model import HookedModel  # noqa: E402
from tests.residual import small  # noqa: E402

pytestmark = pytest.mark.torch
torch.set_num_threads(1)

FEEDBACK = Positions("roles", roles=("feedback",))


def vector(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=small.WIDTH).astype(np.float32)


UP = (Add(1, vector(0), 5.0, Positions("generated")),)
WITH_FEEDBACK = (Add(0, vector(1), 8.0, FEEDBACK), Ablate(2, vector(2)))
UNSEEN = (Suppress(FEEDBACK, layers=(1, 2)), Ablate(1, vector(3)))
SHORT_SIGHT = (Suppress(Positions("generated"), layers=(3,)),)
PATCHED = (Replace(1, np.stack([vector(4)]), Positions("last")),)


def model_of(name: str, *, batch: int = 32, tokens: int = 8192, dtype: torch.dtype = torch.float32) -> HookedModel:
    model = small.transformer(name).to(dtype)
    return HookedModel(
        model, small.tokenizer(), card_of(name, model, small.tokenizer(), ""), batch=batch, batch_tokens=tokens
    )


def prompt(model: HookedModel, task: str, feedback: str = "") -> Prompt:
    return model.encode_text([Piece("task", task), Piece("feedback", feedback)])


def requests(model: HookedModel) -> list[Request]:
    """Of several lengths, lives and treatments; those with feedback edits have some feedback."""
    return [
        Request(prompt(model, "write a function that adds"), Sampling(9)),
        Request(prompt(model, "def add(a, b):", " failed again"), Sampling(3, 1.0, seed=1), WITH_FEEDBACK),
        Request(prompt(model, "x"), Sampling(12, 0.7, 0.9, seed=2), UP),
        Request(prompt(model, "write a function", " failed: expected 4, got 5"), Sampling(8), UNSEEN),
        Request(prompt(model, "the visible tests"), Sampling(1, 1.0, seed=3), PATCHED),
        Request(prompt(model, "def add", " failed"), Sampling(7, 1.0, seed=4), WITH_FEEDBACK),
        Request(prompt(model, "the sum"), Sampling(0)),
        Request(prompt(model, "two numbers"), Sampling(6, 1.0, seed=5), SHORT_SIGHT),
        Request(prompt(model, "write", " again"), Sampling(10, 1.0, seed=6), UNSEEN),
    ]


def written(model: HookedModel, asked: list[Request]) -> tuple[dict[int, Generation], list[int]]:
    """Answers by their place, in a pool that is filled whenever there is room, and the order in which they ended."""
    waiting, answers = deque(enumerate(asked)), model.answers()
    by_place: dict[int, Generation] = {}
    while waiting or len(answers):
        while waiting and answers.fits([waiting[0][1]]):
            answers.add([waiting.popleft()])
        by_place.update(answers.step())
    return by_place, list(by_place)


@cache
def alone(name: str) -> list[Generation]:
    model = model_of(name)
    return [model.generate([r.prompt], [r.sampling], r.edits)[0] for r in requests(model)]


@pytest.mark.parametrize("name", small.CONFIGS)
@pytest.mark.parametrize("batch", [2, 4, 32])
def test_rows_of_several_treatments_say_what_each_says_alone(name: str, batch: int) -> None:
    model = model_of(name, batch=batch)
    found, order = written(model, requests(model))
    for place, expected in enumerate(alone(name)):
        assert found[place].tokens == expected.tokens
        assert found[place].logprob_sum == pytest.approx(expected.logprob_sum, abs=1e-3)
    assert order.index(1) < order.index(0), "what ends is told at once, and not when the longest ends"


def test_a_treatment_of_one_row_is_not_one_of_its_neighbour() -> None:
    model = model_of("qwen2")
    plain = Request(prompt(model, "x"), Sampling(12))
    steered = Request(prompt(model, "x"), Sampling(12), UP)
    found, _ = written(model, [plain, steered])
    assert found[0].tokens == model.generate([plain.prompt], [plain.sampling])[0].tokens
    assert found[1].tokens != found[0].tokens


def test_sinks_are_remembered_by_row_when_rows_come_and_go() -> None:
    models = [model_of("qwen2", batch=batch) for batch in (1, 3)]
    for model in models:
        with torch.no_grad():
            model._model.model.embed_tokens.weight[0] *= 1000
        model.calibrate([Prompt((0, *prompt(model, "write a function").tokens), ())])
    hides = (Suppress(Positions("all"), layers=(2,)),)
    asked = [
        Request(Prompt((0, *prompt(models[0], text).tokens), ()), Sampling(length, 1.0, seed=length), edits)
        for text, length, edits in (
            ("write", 4, hides),
            ("def add", 9, ()),
            ("the sum of", 8, hides),
            ("two", 6, hides),
        )
    ]
    one, three = (written(model, asked)[0] for model in models)
    assert {place: answer.tokens for place, answer in one.items()} == {p: a.tokens for p, a in three.items()}


@pytest.mark.parametrize(
    ("batch", "tokens", "fit"), [(32, 8192, True), (1, 8192, False), (2, 8192, True), (32, 20, False), (32, 60, True)]
)
def test_rows_and_tokens_bound_a_batch_and_one_row_always_fits(batch: int, tokens: int, fit: bool) -> None:
    model = model_of("qwen2", batch=batch, tokens=tokens)
    request = Request(prompt(model, "def add(a, b):"), Sampling(10))
    answers = model.answers()
    assert answers.fits([request])
    answers.add([("a", request)])
    assert answers.fits([request]) is fit


@pytest.mark.parametrize(
    ("share", "passes"),
    [(0.0, [8] * 2 + [6] * 7), (0.25, [8] * 9), (0.2, [8] * 2 + [6] * 7)],
)
def test_rows_that_ended_go_along_until_they_are_a_share_of_all(
    monkeypatch: pytest.MonkeyPatch, share: float, passes: list[int]
) -> None:
    """Two of eight rows end early. Their share decides how many rows a pass has, and no answer."""
    model, seen = model_of("qwen2"), []
    asked = [Request(prompt(model, "def add"), Sampling(2 if n < 2 else 9, 1.0, seed=n)) for n in range(8)]
    expected = model.generate([r.prompt for r in asked], [r.sampling for r in asked])
    monkeypatch.setattr(decoding, "_ENDED_SHARE", share)
    answers = model.answers()
    answers.add(list(enumerate(asked)))
    watched = model._model.register_forward_pre_hook(
        lambda _, __, given: seen.append(len(given["input_ids"])), with_kwargs=True
    )
    found = {}
    while len(answers):
        found.update(answers.step())
    watched.remove()
    assert [found[n].tokens for n in range(8)] == [answer.tokens for answer in expected]
    assert seen == passes[1:]


@pytest.mark.parametrize("room", [2, 64])
def test_buffers_grow_by_their_room_and_hold_the_same(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    monkeypatch.setattr(decoding, "ROOM", room)
    layer, states = decoding.RoomyLayer(), torch.randn(1, 2, 10, 4, generator=torch.Generator().manual_seed(0))
    layer.update(states[:, :, :3], -states[:, :, :3])
    places = set()
    for n in range(3, 10):
        keys, values = layer.update(states[:, :, n : n + 1], -states[:, :, n : n + 1])
        places.add(keys.untyped_storage().nbytes())
    assert torch.equal(keys, states)
    assert torch.equal(values, -states)
    columns = [size // (2 * 4 * 4) for size in sorted(places)]
    assert columns == ([67] if room == 64 else [5, 8, 11])


@pytest.mark.parametrize("bounds", [{"batch": 0}, {"tokens": 0}])
def test_a_batch_that_holds_nothing_is_refused(bounds: dict[str, int]) -> None:
    with pytest.raises(LabError, match="holds nothing"):
        model_of("qwen2", **bounds)


def test_in_bf16_a_batch_changes_answers_and_the_exact_mode_does_not() -> None:
    """With random weights, at temperature 1, 24 answers of 30 tokens."""
    together, exact = (model_of("qwen2", batch=batch, dtype=torch.bfloat16) for batch in (24, 1))
    texts = ["write", "def add(a, b):", "the visible tests failed again", "two numbers"]
    asked = [Request(prompt(exact, texts[n % 4]), Sampling(30, 1.0, seed=n)) for n in range(24)]

    def tokens(found: dict[int, Generation]) -> list[tuple[int, ...]]:
        return [found[n].tokens for n in range(24)]

    one_by_one = [exact.generate([r.prompt], [r.sampling])[0].tokens for r in asked]
    assert tokens(written(exact, asked)[0]) == one_by_one
    backwards, _ = written(exact, asked[::-1])
    assert [backwards[23 - n].tokens for n in range(24)] == one_by_one
    assert tokens(written(together, asked)[0]) != one_by_one


def test_several_places_are_recorded_in_one_pass_as_they_are_one_by_one() -> None:
    model = model_of("qwen2")
    asked = [prompt(model, "write a function", " failed again"), prompt(model, "def add")]
    places = [EVERYWHERE, FEEDBACK, Positions("last")]
    passes = []
    model.blocks[0].register_forward_hook(lambda *_: passes.append(1))
    found = model.record_places(asked, [2, 0], places, UP)
    assert len(passes) == 1
    np.testing.assert_array_equal(found, np.stack([model.record(asked, [2, 0], at, UP) for at in places]))
    assert np.isnan(found[1, 1]).all()


@pytest.mark.parametrize("name", small.CONFIGS)
def test_the_embedding_layer_is_what_comes_into_the_first_block(name: str) -> None:
    model = model_of(name)
    asked = [prompt(model, "write a function"), prompt(model, "def add")]
    for one, states in zip(asked, model.states(asked, [EMBEDDING, 1]), strict=True):
        told = model._model(input_ids=torch.tensor([one.tokens]), output_hidden_states=True).hidden_states
        np.testing.assert_array_equal(states[0], told[0][0].detach().numpy())
    assert model.record(asked, [EMBEDDING]).shape == (2, 1, small.WIDTH)
    with pytest.raises(LabError, match="no layer -1"):
        model.record(asked, [1], edits=[Add(EMBEDDING, vector(0), 1.0)])


@pytest.mark.parametrize("top_p", [0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("coarse", [True, False])
def test_a_nucleus_among_the_likeliest_is_that_of_the_whole_vocabulary(
    top_p: float, coarse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coarse logits, as those of 16 bits, have many equals at the edge: of these the first are taken."""
    logits = torch.randn(64, 500, generator=torch.Generator().manual_seed(0)) * 3
    logits = (logits.round() if coarse else logits).double()
    chances, share = logits.softmax(-1), torch.full((64, 1), top_p, dtype=torch.float64)
    whole = decoding._nucleus(chances, share)
    for likeliest in (8, 64):
        monkeypatch.setattr(decoding, "_LIKELIEST", likeliest)
        torch.testing.assert_close(decoding._nucleus(chances, share), whole, rtol=0, atol=0)


def test_a_gpus_batch_is_by_half_of_what_memory_it_has_left() -> None:
    """A 7B model with grouped attention takes 57,344 bytes a token."""
    assert tokens_for(60 * 2**30, 57_344) == 561_737
    assert tokens_for(2**20, 57_344) == TOKENS_OF_A_PROCESSOR


def test_samples_of_one_prompt_go_through_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("qwen2")
    one, other = prompt(model, "def add(a, b):", " failed again"), prompt(model, "x")
    asked = [Request(one, Sampling(6, 1.0, seed=n), edits) for n in range(3) for edits in (WITH_FEEDBACK, UNSEEN, ())]
    asked += [Request(other, Sampling(6, 1.0, seed=9), UP)]
    alone = [model.generate([r.prompt], [r.sampling], r.edits)[0] for r in asked]
    rows, logits = [], model.logits

    def counted(run: Any, ids: torch.Tensor, cache: Any, keep: int) -> torch.Tensor:
        rows.append(ids.shape)
        return logits(run, ids, cache, keep)

    monkeypatch.setattr(model, "logits", counted)
    answers = model.answers()
    answers.add(list(enumerate(asked)))
    by_place: dict[int, Generation] = {}
    while len(answers):
        by_place.update(answers.step())
    assert rows[0] == (4, len(one.tokens))
    for n, by_itself in enumerate(alone):
        assert by_place[n].text == by_itself.text
        assert by_place[n].tokens == by_itself.tokens
