"""Judging by a small classifier without any package, network or server: the shipped one of a task, or one that
`labels.training` made from other gold. Its file has its measured quality.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentsignals.errors import UsageError
from agentsignals.labels.labellers import Kind, LocalLabeller
from agentsignals.labels.prompting import Question
from agentsignals.labels.tasks import Task, Verdict
from agentsignals.model import CLASSIFIER
from agentsignals.words.classifier import Model, classifier_of, features, judged, shipped_tasks


class Classifier(LocalLabeller):
    kind = CLASSIFIER
    at_once = 256  # an encoder is quicker with many

    def __init__(self, file: str = "", **_: Any) -> None:
        self.name = f"{self.kind}:{file}" if file else self.kind
        self._models: dict[str, Model] = {}

    def classifier(self, task: str) -> Model:
        """The model for a task. UsageError where it is another task's, another labeller's, or none is shipped."""
        if task not in self._models:
            model = classifier_of(self.name, task)
            if model is None or (model.task, model.kind) != (task, self.kind):
                can = f"{model.task} by {model.kind}" if model else ", ".join(shipped_tasks(self.kind))
                raise UsageError(f"The labeller {self.name} can't label {task}.", f"It labels {can}.")
            self._models[task] = model
        return self._models[task]

    def version(self, task: Task) -> str:
        return f"{self.kind}-{self.classifier(task.name).version}"

    def verdicts(self, task: str, messages: list[Question]) -> Iterable[Verdict]:
        model = self.classifier(task)
        for counted in self.features_of(messages, model):
            value, probabilities = judged(model, counted)
            detail = {"probability": probabilities[value]}
            yield Verdict(value, detail=detail | ({"probabilities": probabilities} if model.calibration else {}))

    def features_of(self, messages: list[Question], model: Model) -> list[dict[str, float]]:
        return [features(q.message, q.answer_end if model.uses_answer else None) for q in messages if q.message]


LABELLER = Kind(Classifier, "FILE", optional=True, own_version=True)
