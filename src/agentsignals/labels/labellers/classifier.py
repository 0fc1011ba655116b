"""Judging by a small classifier without any package, network or server: the one that is shipped for a task, or one
that `labels.classifier.training` made of somebody's own gold. How good it is stands in its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from agentsignals.errors import LabelError, UsageError
from agentsignals.labels.answers import Outcome, now
from agentsignals.labels.classifier import Model, classifier_of, features, shipped_tasks
from agentsignals.labels.labellers import DEFAULT_WINDOW_TOKENS, Done, Kind
from agentsignals.labels.prompting import Question
from agentsignals.labels.tasks import Task, Verdict, read_back, written
from agentsignals.model import CLASSIFIER, Absent
from agentsignals.words.lexicon import is_english

BATCH = 256
"""Messages whose features are worked out at once; an encoder is quicker with many."""


class Classifier:
    """`classifier`, or `classifier:FILE`."""

    leaves = False
    keeps = False
    kind = CLASSIFIER

    def __init__(self, file: str = "", **_: Any) -> None:
        self.model: str | None = None
        self.name = f"{self.kind}:{file}" if file else self.kind
        self._models: dict[str, Model] = {}

    def classifier(self, task: str) -> Model:
        """The model for a task. UsageError where it is another task's, another labeller's, or none is shipped."""
        if task not in self._models:
            model = classifier_of(self.name, task)
            if model is None or (model.task, model.kind) != (task, self.kind):
                can = f"{model.task} by {model.kind}" if model else ", ".join(shipped_tasks(self.kind))
                raise UsageError(f"{self.name} can't judge {task}.", f"It judges {can}.")
            self._models[task] = model
        return self._models[task]

    def version(self, task: Task) -> str:
        return f"{self.kind}-{self.classifier(task.name).version}"

    def window(self) -> int:
        return DEFAULT_WINDOW_TOKENS

    def run_figures(self) -> dict[str, Any]:
        return {}

    def ask(self, questions: Iterable[Question], done: Done) -> None:
        waiting = iter(questions)
        while batch := list(islice(waiting, BATCH)):
            judged = []
            for question in batch:
                if question.message is None:
                    raise LabelError(f"There is no message to classify in {question.task}.", "")
                if is_english(question.message.text):
                    judged.append(question)
                else:
                    done(question, Outcome(text=written(Absent("not_computable", "language")), created_at=now()))
            if not judged:
                continue
            model = self.classifier(batch[0].task)
            for question, counted in zip(judged, self.features_of(judged, model), strict=True):
                chances = model.probabilities(counted)
                highest = max(chances)
                verdict = Verdict(model.classes[chances.index(highest)], detail={"probability": round(highest, 3)})
                done(question, Outcome(text=written(verdict), created_at=now()))

    def features_of(self, batch: Sequence[Question], model: Model) -> list[dict[str, float]]:
        """The features of each message."""
        return [
            features(question.message, question.answer_end if model.uses_answer else None)
            for question in batch
            if question.message is not None
        ]

    def read(self, question: Question, text: str) -> Verdict | Absent | str:
        return read_back(text)


LABELLER = Kind(Classifier, "FILE", optional=True, own_version=True)
