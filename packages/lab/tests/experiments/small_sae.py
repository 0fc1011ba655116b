"""A small sparse autoencoder, trained on states at hand, in place of one of others."""

from __future__ import annotations

import numpy as np
import torch
from msgspec import Struct

_BATCH = 256


class SparseAutoencoder(Struct, frozen=True):
    """Features of states (n, d): at most `k` of them differ from 0 for each state (top-k, arXiv 2406.04093)."""

    encoder: np.ndarray
    """(d, features)"""
    decoder: np.ndarray
    """(features, d), rows of length 1."""
    bias: np.ndarray
    """(d,)"""
    k: int
    scale: float
    """Divisor of the states: the mean length of those it was trained on, from their bias."""

    def features(self, states: np.ndarray) -> np.ndarray:
        """Activations (n, features), 0 or more."""
        before = np.maximum((states - self.bias) / self.scale @ self.encoder, 0)
        least = np.partition(before, -self.k, axis=1)[:, -self.k, None]
        return np.where(before >= least, before, 0).astype(np.float32)

    def rebuilt(self, states: np.ndarray) -> np.ndarray:
        """States (n, d) as the features give them back."""
        back: np.ndarray = self.features(states) @ self.decoder * self.scale + self.bias
        return back


def trained(states: np.ndarray, features: int, k: int, *, steps: int = 300, seed: int = 0) -> SparseAutoencoder:
    """Trains on states (n, d) by Adam on the squared error, decoder rows kept at length 1."""
    chance = torch.Generator().manual_seed(seed)
    bias = torch.from_numpy(states.mean(axis=0))
    centred = torch.from_numpy(states.astype(np.float32)) - bias
    scale = float(centred.norm(dim=1).mean()) or 1.0
    centred = centred / scale
    decoder = torch.nn.functional.normalize(torch.randn(features, states.shape[1], generator=chance), dim=1)
    encoder = decoder.T.clone().requires_grad_()
    decoder.requires_grad_()
    optimiser = torch.optim.Adam([encoder, decoder], lr=3e-3)
    with torch.enable_grad():
        for _ in range(steps):
            rows = centred[torch.randint(len(centred), (min(_BATCH, len(centred)),), generator=chance)]
            activations = torch.relu(rows @ encoder)
            held = activations.topk(k, dim=1)
            sparse = torch.zeros_like(activations).scatter(1, held.indices, held.values)
            loss = ((sparse @ decoder - rows) ** 2).sum(dim=1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                decoder /= decoder.norm(dim=1, keepdim=True).clamp(min=1e-8)
    return SparseAutoencoder(
        encoder.detach().numpy(), decoder.detach().numpy(), bias.numpy().astype(np.float32), k, scale
    )
