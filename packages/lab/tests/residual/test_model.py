"""Sinks and their calibration, batches, loading and saving, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

import transformers  # noqa: E402  (after the check that it can be loaded)
from agentsignals.errors import LabError  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402

from agentsignals_lab.residual import (  # noqa: E402
    Ablate,
    Add,
    Loading,
    Message,
    Piece,
    Positions,
    Prompt,
    Replace,
    Sampling,
    Suppress,
    load,
)
from agentsignals_lab.residual.hooks import in_batches  # noqa: E402
from agentsignals_lab.residual.loading import card_of, folder_sha256, tokenizer_sha256  # noqa: E402
from agentsignals_lab.residual.model import HookedModel, PackedLinear, blocks_of, cache_argument, pack  # noqa: E402
from tests.residual import small  # noqa: E402

pytestmark = pytest.mark.torch
torch.set_num_threads(1)
BOS = 0


def text(model: HookedModel, said: str) -> Prompt:
    return model.encode_text([Piece("text", said)])


def with_sink(model: HookedModel, said: str) -> Prompt:
    prompt = text(model, said)
    return Prompt((BOS, *prompt.tokens), (), said)


@pytest.fixture
def sunk() -> HookedModel:
    """A model whose first token has a massive state at every layer."""
    model = small.transformer("qwen2")
    with torch.no_grad():
        model.model.embed_tokens.weight[BOS] *= 1000
    return HookedModel(model, small.tokenizer(), card_of("sunk", model, small.tokenizer(), ""))


def test_a_calibration_tells_the_median_norm_and_the_sinks(sunk: HookedModel) -> None:
    asked = [with_sink(sunk, "write a function"), with_sink(sunk, "the visible tests failed again: expected 4")]
    norms = [np.linalg.norm(s, axis=-1) for s in sunk.states(asked, range(small.LAYERS))]
    found = sunk.calibrate(asked)
    both = np.concatenate(norms, 1)
    ordinary = np.concatenate([n[:, 1:] for n in norms], 1)
    assert (found.texts, found.tokens) == (2, both.shape[1])
    np.testing.assert_allclose(found.sink_norm, 10 * np.median(both, 1), rtol=1e-5)
    np.testing.assert_allclose(found.median_norm, np.median(ordinary, 1), rtol=1e-5)
    assert (both[:, 0] > found.sink_norm).all()


def test_sinks_count_until_a_calibration_and_are_left_out_after(sunk: HookedModel) -> None:
    asked = [with_sink(sunk, "write a function"), with_sink(sunk, "add")]
    states = sunk.states(asked, [1])
    before = sunk.record(asked, [1])
    np.testing.assert_allclose(before[0, 0], states[0][0].mean(0), rtol=1e-4, atol=1e-3)
    sunk.calibrate(asked)
    after = sunk.record(asked, [1])
    for row in range(2):
        np.testing.assert_allclose(after[row, 0], states[row][0, 1:].mean(0), rtol=1e-4, atol=1e-3)
    kept = sunk.record(asked, [1], Positions(skip_sinks=False))
    np.testing.assert_allclose(kept, before, rtol=1e-5)
    assert np.isnan(sunk.record([Prompt((BOS,), ())], [1])).all()


def test_an_edit_leaves_sinks_alone_and_makes_none_at_its_own_layer(sunk: HookedModel) -> None:
    asked = [with_sink(sunk, "write a function")]
    norm = sunk.calibrate(asked).median_norm[1]
    edits = [Add(1, np.ones(small.WIDTH, np.float32), 100 * norm)]
    (was,), (now,) = sunk.states(asked, [1]), sunk.states(asked, [1], edits)
    moved = np.linalg.norm(now[0] - was[0], axis=-1)
    assert moved[0] == 0
    np.testing.assert_allclose(moved[1:], 100 * norm, rtol=1e-3)
    np.testing.assert_allclose(sunk.record(asked, [1], edits=edits)[0, 0], now[0, 1:].mean(0), rtol=1e-4)


def test_a_sink_stays_in_sight_when_its_span_is_suppressed(sunk: HookedModel) -> None:
    asked = [with_sink(sunk, "write a function")]
    sunk.calibrate(asked)
    without_sinks = sunk.states(asked, [3], [Suppress(Positions("all"), layers=(2,))])[0]
    with_sinks = sunk.states(asked, [3], [Suppress(Positions("all", skip_sinks=False), layers=(2,))])[0]
    assert np.abs(with_sinks - without_sinks).max() > 1e-3
    cached, anew = (HookedModel(sunk._model, small.tokenizer(), sunk.card, cached=cached) for cached in (True, False))
    answers = []
    for model in (cached, anew):
        model.calibrate(asked)
        answers.append(model.generate(asked, [Sampling(8)], [Suppress(Positions("all"), layers=(2,))]))
    assert answers[0][0].tokens == answers[1][0].tokens


def test_a_patch_counts_its_rows_with_sinks_and_is_of_the_prompt_alone(sunk: HookedModel) -> None:
    asked = [with_sink(sunk, "write a function")]
    sunk.calibrate(asked)
    (states,) = sunk.states([with_sink(sunk, "the visible tests")], [1])
    (now,) = sunk.states(asked, [1], [Replace(1, states[0])])
    np.testing.assert_array_equal(now[0], states[0])
    patch = [Replace(1, states[0])]
    plain = HookedModel(sunk._model, small.tokenizer(), sunk.card, cached=False)
    assert sunk.generate(asked, [Sampling(6)], patch)[0].tokens == plain.generate(asked, [Sampling(6)], patch)[0].tokens


def test_sinks_are_told_by_the_states_before_the_edits_of_their_layer(sunk: HookedModel) -> None:
    asked = [with_sink(sunk, "write a function")]
    norm = sunk.calibrate(asked).median_norm[1]
    huge = Add(1, np.ones(small.WIDTH, np.float32), 100 * norm, Positions("last", skip_sinks=False))
    (now,) = sunk.states(asked, [1], [huge])
    np.testing.assert_allclose(sunk.record(asked, [1], edits=[huge])[0, 0], now[0, 1:].mean(0), rtol=1e-4)


def test_a_model_of_absolute_positions_counts_from_the_prompts_first_token() -> None:
    """Rotary models can not tell: they know distances alone."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(small.tokenizer()),
        n_embd=small.WIDTH,
        n_layer=3,
        n_head=4,
        n_positions=64,
        initializer_range=0.3,
    )
    model = transformers.GPT2LMHeadModel(config)
    absolute = HookedModel(model, small.tokenizer(), card_of("gpt2", model, small.tokenizer(), ""))
    asked = [text(absolute, said) for said in ("add", "the visible tests failed again: expected 4, got 5")]
    for together, alone in (
        (absolute.record(asked, [1])[0], absolute.record(asked[:1], [1])[0]),
        (absolute.next_logprobs(asked)[0], absolute.next_logprobs(asked[:1])[0]),
    ):
        np.testing.assert_allclose(together, alone, atol=1e-4)
    how = [Sampling(6)] * 2
    assert absolute.generate(asked, how)[0].tokens == absolute.generate(asked[:1], how[:1])[0].tokens


@pytest.mark.parametrize(
    ("lengths", "most", "expected"),
    [
        ([], 10, []),
        ([3, 9, 4, 5], 10, [[1], [3, 2], [0]]),
        ([50, 2], 10, [[0], [1]]),
        ([2, 2, 2, 2, 2], 4, [[0, 1], [2, 3], [4]]),
    ],
)
def test_batches_hold_prompts_alike_in_length(lengths: list[int], most: int, expected: list[list[int]]) -> None:
    assert list(in_batches(lengths, most, 100)) == expected


def test_a_batch_of_any_size_gives_the_same(sunk: HookedModel) -> None:
    tight = HookedModel(sunk._model, small.tokenizer(), sunk.card, batch_tokens=1)
    sizes: list[int] = []
    sunk._model.model.embed_tokens.register_forward_hook(lambda _, ids, __: sizes.append(len(ids[0])))
    asked = [text(sunk, said) for said in ("add", "write a function", "failed again", "return a + b")]
    for ours, theirs in (
        (sunk.record(asked, [0, 3]), tight.record(asked, [0, 3])),
        (sunk.next_logprobs(asked), tight.next_logprobs(asked)),
        *zip(sunk.logprobs_of(asked), tight.logprobs_of(asked), strict=True),
        *zip(sunk.states(asked, [2]), tight.states(asked, [2]), strict=True),
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert sizes == [4, 1, 1, 1, 1] * 4


def test_no_hook_stays_behind_not_even_after_an_error(sunk: HookedModel) -> None:
    asked = [text(sunk, "add")]
    before = sunk.next_logprobs(asked)
    with pytest.raises(LabError, match="3 states were given for"):
        sunk.next_logprobs(asked, [Suppress(Positions()), Replace(1, np.zeros((3, small.WIDTH), np.float32))])
    sunk.record(asked, [0], edits=[Add(0, np.ones(small.WIDTH, np.float32), 3)])
    assert all(not block._forward_hooks and not block._forward_pre_hooks for block in blocks_of(sunk._model))
    np.testing.assert_array_equal(sunk.next_logprobs(asked), before)


VECTOR = np.ones(small.WIDTH, np.float32)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Add(4, VECTOR, 1), "no layer 4"),
        (Add(-1, VECTOR, 1), "no layer -1"),
        (Suppress(Positions(), layers=(7,)), "no layer 7"),
        (Add(0, VECTOR[:5], 1), r"shape \(5,\)"),
        (Ablate(0, 0 * VECTOR), "length zero"),
        (Add(0, VECTOR * np.inf, 1), "not finite"),
        (Replace(0, VECTOR), r"shape \(32,\)"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_before_anything_runs(sunk: HookedModel, edit: Any, message: str) -> None:
    with pytest.raises(LabError, match=message):
        sunk.record([text(sunk, "add")], [0], edits=[edit])


def test_a_direction_of_any_length_steers_alike(sunk: HookedModel) -> None:
    asked = [text(sunk, "add")]
    for length in (1e-30, 1e30):
        np.testing.assert_allclose(
            sunk.states(asked, [1], [Add(1, VECTOR * np.float32(length), 2.0)])[0],
            sunk.states(asked, [1], [Add(1, VECTOR, 2.0)])[0],
            atol=1e-5,
        )


def test_what_can_not_be_asked_says_so(sunk: HookedModel) -> None:
    with pytest.raises(LabError, match="No layer was named"):
        sunk.record([text(sunk, "add")], [])
    with pytest.raises(LabError, match="no layer 9"):
        sunk.states([text(sunk, "add")], [9])
    with pytest.raises(LabError, match="has no tokens"):
        sunk.next_logprobs([Prompt((), ())])
    with pytest.raises(LabError, match="A prompt has 129 tokens; this model reads 128"):
        sunk.next_logprobs([Prompt((3,) * 129, ())])
    with pytest.raises(LabError, match="1 prompts came with 2 samplings"):
        sunk.generate([text(sunk, "add")], [Sampling(1)] * 2)
    assert sunk.record([], [0]).shape == (0, 1, small.WIDTH)
    assert sunk.generate([], []) == []
    assert sunk.logprobs_of([]) == sunk.states([], [0]) == []


def test_half_precision_adds_in_single_precision() -> None:
    """Beside a large coordinate, bfloat16 alone would add 1/32 of a small dose, or none of it."""
    model = small.transformer("qwen2").to(torch.bfloat16)
    half = HookedModel(model, small.tokenizer(), card_of("half", model, small.tokenizer(), ""))
    asked = [text(half, "write a function")]
    (was,), (now,) = half.states(asked, [1]), half.states(asked, [1], [Add(1, VECTOR, 3.0)])
    exact = torch.tensor(was[0] + 3.0 * VECTOR / np.linalg.norm(VECTOR)).bfloat16().float().numpy()
    np.testing.assert_array_equal(now[0], exact)
    assert half.record(asked, [1]).dtype == np.float32


def test_blocks_are_found_by_their_number_and_not_where_experts_are_as_many() -> None:
    model = small.transformer("deepseek_v2")
    assert blocks_of(model) == list(model.model.layers)
    model.second = torch.nn.ModuleDict({"layers": torch.nn.ModuleList(torch.nn.Identity() for _ in range(4))})
    with pytest.raises(LabError, match="can't be located"):
        blocks_of(model)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small.transformer("qwen2").save_pretrained(tmp_path / "model")
    small.tokenizer().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_comes_from_a_folder_with_a_card_for_the_manifest(folder: Path) -> None:
    model = load(str(folder), Loading(dtype="float32", device="cpu"))
    assert (model.card.layers, model.card.width, model.card.dtype) == (small.LAYERS, small.WIDTH, "float32")
    assert (model.card.architecture, model.card.device, model.card.attention) == ("Qwen2ForCausalLM", "cpu", "sdpa")
    assert model.card.has_chat_template
    assert model.card.revision == f"sha256:{folder_sha256(folder)}"
    assert {"torch", "transformers"} <= set(model.card.packages)
    asked = [model.encode([Message("user", (Piece("task", "add"),))])]
    np.testing.assert_allclose(model.next_logprobs(asked), small.hooked("qwen2").next_logprobs(asked), atol=1e-5)


def test_a_tokenizer_cuts_words_as_its_file_says_whatever_the_models_architecture_usually_does(folder: Path) -> None:
    inner = Tokenizer(models.WordLevel({"?": 0, "add": 1, "two": 2, "</s>": 3}, unk_token="?"))  # noqa: S106
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **{"eos_token": "</s>"}).save_pretrained(folder)
    prompt = load(str(folder), Loading(dtype="float32", device="cpu")).encode_text([Piece("text", "add two numbers")])
    assert prompt.tokens == (1, 2, 0)


def test_a_class_that_cuts_otherwise_than_the_file_is_refused(folder: Path) -> None:
    on = Loading(dtype="float32", device="cpu")
    load(str(folder), on)  # which declares no more than its file
    declared = json.loads((folder / "tokenizer_config.json").read_text())
    for name in ("Qwen2Tokenizer", "BertTokenizer", None):
        (folder / "tokenizer_config.json").write_text(json.dumps({**declared, "tokenizer_class": name}))
        with pytest.raises(LabError, match=r"cuts a text into \d+ tokens where") as refused:
            load(str(folder), on)
        assert "PreTrainedTokenizerFast" in refused.value.hint
    alphabet = {token: n for n, token in enumerate(["</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    transformers.Qwen2Tokenizer(vocab=alphabet, merges=[], **{"eos_token": "</s>"}).save_pretrained(folder)
    assert json.loads((folder / "tokenizer_config.json").read_text())["tokenizer_class"] == "Qwen2Tokenizer"
    load(str(folder), on)


def test_packed_weights_give_the_same_and_are_those_of_large_models_alone(folder: Path) -> None:
    model = small.transformer("qwen2")
    plain = small.hooked("qwen2")
    asked = [plain.encode([Message("user", (Piece("task", words),))]) for words in ("add", "return the sum again")]
    pack(model)
    assert type(model.model.layers[0].mlp.up_proj) is torch.nn.Linear
    pack(model, least_weights=1)
    assert type(model.model.layers[0].mlp.up_proj) is PackedLinear
    packed = HookedModel(model, small.tokenizer(), plain.card)
    np.testing.assert_allclose(packed.next_logprobs(asked), plain.next_logprobs(asked), atol=1e-4)


def test_a_folders_hash_is_of_names_and_contents_and_a_tokenizers_of_its_template_too(folder: Path) -> None:
    first = folder_sha256(folder)
    (folder / ".cache").write_text("x")
    assert folder_sha256(folder) == first
    (folder / "config.json").rename(folder / "other.json")
    assert folder_sha256(folder) != first
    template = tokenizer_sha256(small.tokenizer())
    changed = small.tokenizer().__class__(tokenizer_object=small.tokenizer().backend_tokenizer, chat_template="x")
    assert tokenizer_sha256(changed) != template == tokenizer_sha256(small.tokenizer())


@pytest.mark.parametrize(
    ("named", "how", "message"),
    [
        ("nowhere/at-all", Loading(offline=True), "nowhere/at-all can't be loaded"),
        ("EMPTY", Loading(), "can't be loaded"),
        ("FOLDER", Loading(dtype="float7"), "'float7' is not a number format"),
        ("FOLDER", Loading(device="sun"), "can't be loaded"),
    ],
)
def test_what_can_not_be_loaded_says_what_to_do(
    named: str, how: Loading, message: str, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    path = {"FOLDER": str(folder), "EMPTY": str(tmp_path / "empty")}.get(named, named)
    with pytest.raises(LabError, match=message) as found:
        load(path, how)
    assert found.value.hint


def test_code_that_comes_with_a_model_does_not_run(folder: Path) -> None:
    (folder / "own.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    config = (folder / "config.json").read_text()
    own = '"auto_map": {"AutoModelForCausalLM": "own.Own", "AutoConfig": "own.Config"}, "model_type": "own",'
    (folder / "config.json").write_text(config.replace('"model_type": "qwen2",', own))
    assert "own.Own" in (folder / "config.json").read_text()
    with pytest.raises(LabError):
        load(str(folder), Loading(offline=True))
    assert not (folder / "ran").exists()


def test_a_cache_is_handed_over_by_the_name_that_this_model_takes() -> None:
    class Older(torch.nn.Module):
        def forward(self, input_ids: object, past_key_values: object = None) -> None: ...

    class Newer(torch.nn.Module):
        def forward(self, input_ids: object, cache: object = None, **more: object) -> None: ...

    assert (cache_argument(Older()), cache_argument(Newer())) == ("past_key_values", "cache")
