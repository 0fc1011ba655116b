"""The classifier with a small sentence encoder beside its words (extra `encoder`): a little better, a hundred times
slower. `encoder:FILE` is a model of one's own, trained with `--encoder`.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentsignals.labels.classifier.encoder import vectors
from agentsignals.labels.classifier.linear_model import Model
from agentsignals.labels.labellers import Kind
from agentsignals.labels.labellers.classifier import Classifier
from agentsignals.labels.question import Question
from agentsignals.model import ENCODER


class EncodedClassifier(Classifier):
    """`encoder`, or `encoder:FILE`."""

    kind = ENCODER

    def features_of(self, batch: Sequence[Question], model: Model) -> list[dict[str, float]]:
        """The features of each message: the classifier's, and its vector."""
        of_words = super().features_of(batch, model)
        encoded = vectors([question.message.text if question.message else "" for question in batch])
        return [words | vector for words, vector in zip(of_words, encoded, strict=True)]


LABELLER = Kind(EncodedClassifier, "FILE", optional=True, own_version=True)
