"""A causal language model whose residual stream can be read and changed. The only package that knows torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentsignals.errors import LabError

from agentsignals_lab import how_to_install
from agentsignals_lab.residual.interface import Loading

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel

AS_STORED = Loading()


def load(named: str, how: Loading = AS_STORED) -> HookedModel:
    """A model from a local folder or, by its id, from the Hub. LabError when a package or the model is missing."""
    try:
        from agentsignals_lab.residual.loading import load_model  # noqa: PLC0415  (seconds to load, only for who asks)
    except ImportError as problem:
        raise LabError(
            f"A model can't be loaded: {problem}.", f"Install what it needs: {how_to_install()}"
        ) from problem
    return load_model(named, how)
