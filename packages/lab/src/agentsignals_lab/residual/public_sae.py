"""Autoencoders that others trained, in the files of `sae-lens`, which reads them: a folder with `cfg.json` and
`sae_weights.safetensors`.

Its own loader of releases asks the Hub and can't be told to stay at home; what it saves as a folder needs no network.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab.residual.interface import EMBEDDING, ModelCard

FILES = ("cfg.json", "sae_weights.safetensors")
_BY_TOKEN = (
    "standard", "gated", "jumprelu", "topk", "batchtopk", "abstopk", "matching_pursuit", "matryoshka_batchtopk",
)  # fmt: skip
"""Architectures that give back the state they read, token by token; a transcoder gives back another one."""
_OUTPUT = re.compile(r"blocks\.(\d+)\.hook_resid_(post|pre)")
_UNFOLDED = ("expected_average_only_in", "covariance_whitening")
"""Statistics of the training states to scale them; they are not in the files, unless folded into the weights."""


class PublicAutoencoder(Struct, frozen=True):
    """An autoencoder of the output of one block."""

    layer: int
    """Layer in our numbers: the output of block `layer`."""
    made_for: str
    """The model it was trained on, as its files say; empty where they do not."""
    decoder: np.ndarray
    """(features, d), rows of length 1."""
    centred: bool
    """It was trained on states less the mean over their coordinates, as TransformerLens' centred weights give them."""
    network: Any

    def features(self, states: np.ndarray) -> np.ndarray:
        """Activations (n, features) of token states (n, d)."""
        return self._passed(states, decodes=False)

    def rebuilt(self, states: np.ndarray) -> np.ndarray:
        """States (n, d) as the features give them back."""
        return self._passed(states, decodes=True)

    def _passed(self, states: np.ndarray, *, decodes: bool) -> np.ndarray:
        import torch  # noqa: PLC0415  (seconds to load, and `checked` runs before a model is)

        mean = states.mean(axis=1, keepdims=True) if self.centred else np.zeros((1, 1))
        with torch.no_grad():
            active = self.network.encode(torch.from_numpy((states - mean).astype(np.float32)))
            # Of scaled states the network remembers the scale from here to `decode`.
            passed: np.ndarray = (self.network.decode(active) if decodes else active).numpy()
        return passed + mean.astype(np.float32) if decodes else passed


class _Metadata(Struct, frozen=True):
    hook_name: str | None = None


class _Settings(Struct, frozen=True):
    """The fields needed of `cfg.json`; older ones name the hook at the top."""

    d_in: int
    architecture: str = "standard"
    normalize_activations: str = "none"
    hook_name: str | None = None
    metadata: _Metadata = _Metadata()


def checked(folder: Path) -> dict[str, str]:
    """SHA-256 of an autoencoder's files. LabError where one is missing, where it is none of a block's output, or where
    sae-lens is not installed; nothing of it is loaded."""
    settings = _settings(folder)
    hook = settings.metadata.hook_name or settings.hook_name or ""
    if _layer(hook) is None:
        raise LabError(
            f"{folder} is of {hook or 'a place that it does not name'}.",
            "Take one of a block's output: blocks.N.hook_resid_post, or hook_resid_pre of a later block.",
        )
    if settings.architecture not in _BY_TOKEN:
        raise LabError(f"{folder} is a {settings.architecture}.", f"Take one of {', '.join(_BY_TOKEN)}.")
    if settings.normalize_activations in _UNFOLDED:
        raise LabError(
            f"{folder} scales states by what its files do not hold ({settings.normalize_activations}).",
            "Load it by its release with sae-lens, which folds that into the weights, and save it as a folder.",
        )
    if find_spec("sae_lens") is None:
        raise LabError("An autoencoder of others is read by sae-lens.", "Install it: pip install sae-lens.")
    return {f"sae/{name}": hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}


def read(folder: Path, card: ModelCard) -> PublicAutoencoder:
    """The autoencoder in a folder. LabError as `checked`, and where it does not fit the model."""
    checked(folder)
    settings = _settings(folder)
    layer = _layer(settings.metadata.hook_name or settings.hook_name or "")
    if layer is None or layer >= card.layers or settings.d_in != card.width:
        raise LabError(
            f"{folder} is of layer {layer} and width {settings.d_in}.",
            f"{card.name} has layers 0 to {card.layers - 1} of width {card.width}.",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages that it brings, about each other
        from sae_lens import SAE  # noqa: PLC0415  (ten seconds to load, and no package of ours needs it)

        try:
            network = SAE.load_from_disk(folder, device="cpu", dtype="float32")
        except Exception as problem:  # which errors a reader of foreign files has is its own matter
            raise LabError(f"sae-lens can't read {folder}: {problem}", "Save it anew with sae-lens.") from problem
    wanted = network.cfg.metadata.model_from_pretrained_kwargs or {}
    decoder = network.W_dec.detach().numpy()
    lengths = np.linalg.norm(decoder, axis=1, keepdims=True)
    return PublicAutoencoder(
        layer,
        str(network.cfg.metadata.model_name or ""),
        decoder / np.maximum(lengths, np.finfo(np.float32).tiny),
        bool(wanted.get("center_writing_weights")),
        network,
    )


def _settings(folder: Path) -> _Settings:
    for name in FILES:
        if not (folder / name).is_file():
            raise LabError(f"{folder} has no {name}.", "Name a folder that sae-lens saved (`save_model`).")
    try:
        return msgspec.json.decode((folder / FILES[0]).read_bytes(), type=_Settings)
    except (OSError, msgspec.MsgspecError) as problem:
        raise LabError(f"{folder / FILES[0]} can't be read: {problem}", "sae-lens writes it.") from problem


def _layer(hook: str) -> int | None:
    """The block whose output that is; what comes into a block is what the one before it gives. None of all else, the
    embedding among them."""
    named = _OUTPUT.fullmatch(hook)
    if named is None:
        return None
    layer = int(named[1]) - (named[2] == "pre")
    return None if layer == EMBEDDING else layer
