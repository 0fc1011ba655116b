"""What a notebook calls, on the tiny model: curves find what its world holds, and files are read again."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra torch)")
pytest.importorskip("transformers", reason="transformers is not installed (extra torch)")

from agentsignals.errors import LabError  # noqa: E402

from agentsignals_lab import notebook  # noqa: E402
from agentsignals_lab.directions import DirectionSet  # noqa: E402
from agentsignals_lab.experiments.setting import Setting, SettingConfig, learnt, setting  # noqa: E402
from agentsignals_lab.residual import place  # noqa: E402
from agentsignals_lab.residual.model import HookedModel, pack  # noqa: E402
from tests.experiments import tiny  # noqa: E402
from tests.residual import small  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def at() -> Setting:
    return setting(tiny.model(), SettingConfig(file="tiny", tasks=24))


def stories(at: Setting, mood: str) -> dict[str, list[str]]:
    return {text.topic: [text.prompt.text] for text in at.texts()[mood][:24]}


def test_a_curve_over_layers_parts_moods_on_topics_it_did_not_learn(at: Setting) -> None:
    rows = notebook.layer_curve(tiny.model(), stories(at, "desperate"), stories(at, "calm"), shuffles=40)
    assert [row["layer"] for row in rows] == [0, 1, 2]
    assert rows[1]["auroc"] > 0.9
    assert rows[1]["low"] > 0.5
    assert rows[1]["null_high"] <= 1


def test_a_curve_over_doses_goes_up_along_the_tone_and_not_along_random_directions(at: Setting) -> None:
    of = learnt(at, "feedback", [0], at.tasks[:12])
    prompts = [scene.prompt for scene in at.scenes("neutral", at.tasks[12:])]
    honest = tiny.model().encode_text([notebook.Piece("text", "x")]).tokens[-1]
    curve = notebook.dose_curve(
        tiny.model(), prompts, of.vectors[0, 0], 0, lambda logprobs: 1 - np.exp(logprobs[:, honest]),
        doses=(-1.0, 1.0), positions=place("feedback"), randoms=19,
    )  # fmt: skip
    down, up = curve
    assert up["effect"] > up["random_high"] > up["random_low"]
    assert up["p_random"] == 1 / 20
    assert down["effect"] < 0


def test_tokens_of_desperate_feedback_lie_further_along_it(at: Setting) -> None:
    of = learnt(at, "feedback", [0, 1], at.tasks[:12])
    means = {}
    for mood in ("calm", "desperate"):
        (scene,) = at.scenes(mood, at.tasks[12:13])
        words, along = notebook.token_projections(tiny.model(), scene.prompt, of, "desperate")
        assert along.shape == (2, len(words)) and len(words) == len(scene.prompt.tokens)
        (span,) = (s for s in scene.prompt.spans if s.role == "feedback")
        means[mood] = along[0, span.start : span.end].mean()
    assert means["desperate"] > means["calm"]


def test_the_lens_at_the_last_layer_is_the_model_s_own_answer(at: Setting) -> None:
    (scene,) = at.scenes("neutral", at.tasks[:1])
    lens = notebook.logit_lens(tiny.model(), scene.prompt, [0, 2], top=1)
    own = int(tiny.model().next_logprobs([scene.prompt])[0].argmax())
    assert lens[1][-1] == tiny.model().token_texts([own])
    assert len(lens[0]) == len(scene.prompt.tokens)


def test_a_probe_is_read_again_as_it_was_saved(at: Setting, tmp_path: Path) -> None:
    texts = {mood: [t.prompt.text for t in at.texts()[mood]] for mood in ("desperate", "calm")}
    probe = notebook.train_probe(tiny.model(), texts["desperate"][:20], texts["calm"][:20], layer=1)
    probe.save(tmp_path / "probe.npz")
    again = notebook.Probe.read(tmp_path / "probe.npz")
    (new,) = (t.prompt for t in at.texts()["desperate"][30:31])
    assert again.tokens(tiny.model(), new) == pytest.approx(probe.tokens(tiny.model(), new))
    states = tiny.model().record([new], [1])[:, 0]
    assert again.of_states(states)[0] > 0.5
    (tmp_path / "none.npz").write_text("x")
    with pytest.raises(LabError, match="as a probe"):
        notebook.Probe.read(tmp_path / "none.npz")


@pytest.mark.parametrize("name", small.CONFIGS)
def test_heads_are_attributed_what_a_small_patch_of_them_does(name: str) -> None:
    model = small.hooked(name)
    here, other = (notebook.chat(model, f"add {word} numbers") for word in ("two", "the"))
    assert len(here.tokens) == len(other.tokens)
    by_head = notebook.head_attribution(model, here, other, better="def", worse="sum")
    assert by_head.shape == (small.LAYERS, 4)
    heads = model.heads(here, other, "sum", "def")
    for layer, head in ((0, 0), (1, 3), (3, 2)):
        assert heads.patched(layer, head, 0.01) / 0.01 == pytest.approx(by_head[layer, head], abs=0.02, rel=0.05)
    whole = notebook.patched_head(model, here, other, "def", "sum", 1, 3)
    assert whole == heads.patched(1, 3) != 0
    with pytest.raises(LabError, match="token for token"):
        notebook.head_attribution(model, here, notebook.chat(model, "x"), better="def", worse="sum")


def test_packed_weights_have_no_gradients_and_say_so() -> None:
    inner = small.transformer("qwen2")
    pack(inner, least_weights=1)
    model = HookedModel(inner, small.tokenizer(), small.hooked("qwen2").card)
    prompt = notebook.chat(model, "add")
    with pytest.raises(LabError, match="no gradients"):
        notebook.head_attribution(model, prompt, prompt, better="def", worse="sum")


def test_a_control_vector_is_gguf_with_a_tensor_a_layer(tmp_path: Path) -> None:
    vectors = np.arange(1, 25, dtype=np.float32).reshape(1, 3, 8)
    of = DirectionSet(
        names=("d",), layers=(0, 1, 2), vectors=vectors, centre=vectors[0] * 0, recipe="contrast", texts="", model="m"
    )
    notebook.control_vector(of, "d", tmp_path / "v.gguf", hint="qwen2")
    told = read_gguf((tmp_path / "v.gguf").read_bytes())
    assert told["fields"] == {
        "general.architecture": "controlvector", "controlvector.model_hint": "qwen2", "controlvector.layer_count": 2,
    }  # fmt: skip
    assert list(told["tensors"]) == ["direction.1", "direction.2"]
    for layer in (1, 2):
        expected = vectors[0, layer] / np.linalg.norm(vectors[0, layer])
        assert told["tensors"][f"direction.{layer}"] == pytest.approx(expected)
    with pytest.raises(LabError, match="no layer above 0"):
        notebook.control_vector(notebook.directions.read(written(of, tmp_path)), "d", tmp_path / "no.gguf")


def written(of: DirectionSet, folder: Path) -> Path:
    first = DirectionSet(
        names=of.names, layers=(0,), vectors=of.vectors[:, :1], centre=of.centre[:1], recipe="contrast", texts="",
        model="m",
    )  # fmt: skip
    notebook.directions.write(first, folder / "first.npz")
    return folder / "first.npz"


def read_gguf(data: bytes) -> dict[str, dict[str, object]]:
    """A reader by the format's specification (ggml's docs/gguf.md), version 3."""
    place = 0

    def number(form: str) -> int:
        nonlocal place
        (value,) = struct.unpack_from(f"<{form}", data, place)
        place += struct.calcsize(f"<{form}")
        return int(value)

    def text() -> str:
        nonlocal place
        length = number("Q")
        place += length
        return data[place - length : place].decode()

    assert data[:4] == b"GGUF"
    place = 4
    assert number("I") == 3
    tensors, pairs = number("Q"), number("Q")
    fields: dict[str, object] = {}
    for _ in range(pairs):
        key, kind = text(), number("I")
        fields[key] = text() if kind == 8 else number("I")
    infos = []
    for _ in range(tensors):
        name = text()
        assert number("I") == 1
        infos.append((name, number("Q"), number("I"), number("Q")))
    start = -(-place // 32) * 32
    assert all(kind == 0 and offset % 32 == 0 for _, _, kind, offset in infos)
    return {
        "fields": fields,
        "tensors": {name: np.frombuffer(data, "<f4", length, start + at) for name, length, _, at in infos},
    }


@pytest.mark.slow
def test_the_notebook_runs_as_it_lies_there(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads((Path(__file__).parents[1] / "notebooks" / "lab.ipynb").read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    assert not any(cell.get("outputs") for cell in document["cells"])
    names: dict[str, Any] = {}
    for source in cells:
        exec(compile(source, "lab.ipynb", "exec"), names)  # noqa: S102  (our own file)
    assert {p.name for p in (names["study"] / "runs" / "agent" / "inspect").iterdir()} == {
        "baseline.json",
        "harsh words.json",
    }
    assert names["layer"] in range(3)
    assert abs(names["exact"]) > 0.01
    assert "error" not in capsys.readouterr().err
    names["scratch"].cleanup()


def test_a_heat_map_escapes_what_a_model_wrote() -> None:
    shown = notebook.heat_map(["<b>", " x"], np.array([1.0, -0.5]))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "40,90,220,0.50" in shown
