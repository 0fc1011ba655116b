"""Autoencoders of others: what `sae-lens` itself writes is read as it reads it, and what does not fit is refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra lab)")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

from agentsignals.errors import LabError  # noqa: E402  (after the check that it can be loaded)

from agentsignals_lab import experiment_setup, experiments  # noqa: E402
from agentsignals_lab.experiments.chosen_setting import setting  # noqa: E402
from agentsignals_lab.experiments.sae_features import FeatureRow, explained  # noqa: E402
from agentsignals_lab.experiments.setting import SettingConfig  # noqa: E402
from agentsignals_lab.residual import public_sae  # noqa: E402
from tests.experiments import small_sae, tiny  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
WIDTH, LAYER = 96, 1
TELLS: dict[str, Any] = {"architecture": "standard", "d_in": WIDTH, "d_sae": 8}


def folder(at: Path, hook: str = "blocks.1.hook_resid_post", **tells: object) -> Path:
    """Files that are looked at, and never loaded."""
    at.mkdir(exist_ok=True)
    (at / "cfg.json").write_text(json.dumps(TELLS | {"metadata": {"hook_name": hook}} | tells))
    (at / "sae_weights.safetensors").write_bytes(b"")
    return at


@pytest.mark.parametrize(
    ("tells", "why"),
    [
        ({"hook": "blocks.1.hook_mlp_out"}, "of blocks.1.hook_mlp_out"),
        ({"hook": "blocks.0.hook_resid_pre"}, "of blocks.0.hook_resid_pre"),
        ({"metadata": {}}, "a place that it does not name"),
        ({"architecture": "transcoder"}, "is a transcoder"),
        ({"normalize_activations": "expected_average_only_in"}, "expected_average_only_in"),
        ({"d_in": "wide"}, "can't be read"),
    ],
)
def test_what_is_no_autoencoder_of_a_block_is_refused_before_anything_is_loaded(
    tmp_path: Path, tells: dict[str, Any], why: str
) -> None:
    with pytest.raises(LabError, match=why):
        public_sae.checked(folder(tmp_path / "s", **tells))
    (tmp_path / "s" / "cfg.json").unlink()
    with pytest.raises(LabError, match=r"no cfg\.json"):
        public_sae.checked(tmp_path / "s")


def test_without_sae_lens_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_sae, "find_spec", lambda _: None)
    config = experiments.config("sae_features", {"sae": str(folder(tmp_path / "s"))})
    with pytest.raises(LabError) as refused:
        experiment_setup.checked_config(config)
    assert "pip install sae-lens" in (refused.value.hint or "")


@pytest.fixture
def lens() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("sae_lens", reason="sae-lens is not installed (pip install sae-lens)")


def states_of(layer: int) -> np.ndarray:
    at = setting(tiny.model(), SettingConfig(tasks=20))
    recorded = tiny.model().states([scene.prompt for scene in at.scenes(at.neutral)], [layer])
    return np.concatenate([states[0] for states in recorded])


def saved(lens: Any, at: Path, hook: str, **metadata: object) -> tuple[Any, small_sae.SparseAutoencoder]:
    """Ours of the tiny model's layer 1, in the files of theirs. What ours divides by is folded into the weights."""
    ours = small_sae.trained(states_of(LAYER), features=64, k=8, steps=150)
    config = lens.TopKSAEConfig(d_in=WIDTH, d_sae=64, k=8, metadata=lens.saes.sae.SAEMetadata(
        model_name="tiny", hook_name=hook, **metadata))  # fmt: skip
    theirs = lens.TopKSAE(config)
    weights = {
        "W_enc": ours.encoder / ours.scale, "W_dec": ours.decoder * ours.scale, "b_dec": ours.bias,
        "b_enc": np.zeros(64, np.float32),
    }  # fmt: skip
    theirs.load_state_dict({name: torch.from_numpy(np.float32(value)) for name, value in weights.items()})
    theirs.save_model(at)
    return theirs, ours


def test_one_that_sae_lens_wrote_is_read_and_judged(tmp_path: Path, lens: Any) -> None:
    theirs, ours = saved(lens, tmp_path / "s", "blocks.1.hook_resid_post")
    read = public_sae.read(tmp_path / "s", tiny.model().card)
    states = states_of(LAYER)
    with torch.no_grad():
        encoded = theirs.encode(torch.from_numpy(states))
        assert np.array_equal(read.features(states), encoded.numpy())
        assert np.array_equal(read.rebuilt(states), theirs.decode(encoded).numpy())
    assert (read.layer, read.made_for) == (1, "tiny")
    assert np.allclose(read.features(states), ours.features(states), atol=1e-4)
    assert np.allclose(read.decoder, ours.decoder, atol=1e-5)
    by_hand = 1 - ((states - ours.rebuilt(states)) ** 2).sum() / ((states - states.mean(axis=0)) ** 2).sum()
    assert explained(read, [states]) == pytest.approx(float(by_hand), abs=1e-4)

    told = ran(tmp_path / "r", tmp_path / "s")
    assert (told["of"], told["made_for"], told["layer"], told["features"]) == ("s", "tiny", 1, 64)
    assert told["explained"] > 0.8
    assert told["caveat"] is None


@pytest.mark.parametrize("kind", ["Standard", "Gated", "JumpReLU", "BatchTopK"])
def test_each_architecture_is_encoded_as_sae_lens_does(tmp_path: Path, lens: Any, kind: str) -> None:
    made = getattr(lens, f"{kind}TrainingSAE" if kind == "BatchTopK" else f"{kind}SAE")
    config = getattr(lens, f"{kind}TrainingSAEConfig" if kind == "BatchTopK" else f"{kind}SAEConfig")
    metadata = lens.saes.sae.SAEMetadata(model_name="tiny", hook_name="blocks.1.hook_resid_post")
    theirs, states = made(config(d_in=WIDTH, d_sae=40, metadata=metadata)), states_of(LAYER)
    torch.manual_seed(0)
    with torch.no_grad():
        for weights in theirs.parameters():
            weights.copy_(torch.rand_like(weights) - 0.5)
    save = theirs.save_inference_model if kind == "BatchTopK" else theirs.save_model
    save(tmp_path / "s")
    read, again = public_sae.read(tmp_path / "s", tiny.model().card), lens.SAE.load_from_disk(tmp_path / "s")
    with torch.no_grad():
        encoded = again.encode(torch.from_numpy(states))
        assert (encoded != 0).any()
        assert np.array_equal(read.features(states), encoded.numpy())
        assert np.array_equal(read.rebuilt(states), again.decode(encoded).numpy())
    assert np.linalg.norm(read.decoder, axis=1) == pytest.approx(np.ones(40), abs=1e-4)


def ran(at: Path, autoencoder: Path) -> dict[str, Any]:
    settings = {"setting": {"tasks": 20}, "sae": str(autoencoder), "best": 3, "shuffles": 20}
    run = tiny.ran(at, "sae_features", settings)
    rows = run.table("features", FeatureRow).rows
    told: dict[str, Any] = msgspec.json.decode((at / "sae.json").read_bytes())
    assert {row.explained for row in rows} == {told["explained"]}
    assert all(0 <= row.auroc <= 1 for row in rows)
    return told


def test_one_that_gives_little_back_is_told_with_a_caveat(tmp_path: Path, lens: Any) -> None:
    """Of what comes into block 1, which is layer 0, with its decoder's rows mixed up."""
    theirs, _ = saved(lens, tmp_path / "s", "blocks.1.hook_resid_pre")
    with torch.no_grad():
        theirs.W_dec[:] = theirs.W_dec[torch.arange(63, -1, -1)]
    theirs.save_model(tmp_path / "s")
    told = ran(tmp_path / "r", tmp_path / "s")
    assert told["layer"] == 0
    assert told["explained"] < 0.5
    assert "gives back" in told["caveat"]


def test_one_of_another_model_is_refused(tmp_path: Path, lens: Any) -> None:
    saved(lens, tmp_path / "s", "blocks.7.hook_resid_post")
    with pytest.raises(LabError, match="layer 7"):
        public_sae.read(tmp_path / "s", tiny.model().card)
    saved(lens, tmp_path / "s", "blocks.1.hook_resid_post")
    with pytest.raises(LabError, match="width 96"):
        public_sae.read(tmp_path / "s", msgspec.structs.replace(tiny.model().card, width=48))
    (tmp_path / "s" / "sae_weights.safetensors").write_bytes(b"broken")
    with pytest.raises(LabError, match="sae-lens can't read"):
        public_sae.read(tmp_path / "s", tiny.model().card)


def test_states_are_centred_for_one_that_was_trained_so(tmp_path: Path, lens: Any) -> None:
    theirs, _ = saved(
        lens, tmp_path / "s", "blocks.1.hook_resid_post", model_from_pretrained_kwargs={"center_writing_weights": True}
    )
    read, states = public_sae.read(tmp_path / "s", tiny.model().card), states_of(LAYER) + 3
    mean = states.mean(axis=1, keepdims=True)
    with torch.no_grad():
        encoded = theirs.encode(torch.from_numpy(states - mean))
        assert np.allclose(read.features(states), encoded.numpy(), atol=1e-4)
        assert np.allclose(read.rebuilt(states), theirs.decode(encoded).numpy() + mean, atol=1e-4)
