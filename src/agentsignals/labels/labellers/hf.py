"""Any text classifier of the transformers library, as `cardiffnlp/twitter-roberta-base-sentiment-latest` (extra `hf`):
what a task's own judge is compared with (agent-traces).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import Any

from agentsignals.errors import LabelError, UsageError
from agentsignals.labels.answers import Outcome, now
from agentsignals.labels.labellers import DEFAULT_WINDOW_TOKENS, Done, Kind
from agentsignals.labels.prompting import Question
from agentsignals.labels.task import Task, Verdict, read_back, written
from agentsignals.model import Absent

BATCH = 64
MOST_TOKENS = 512
"""A longer message is cut by the tokenizer: these models can't read more. The label says when it may have been."""
_DOUBTFUL_CHARS = 1_500
"""From here on a message may have more tokens than that."""


class Classifier:
    """`hf:MODEL`: an id of the Hub, or a local folder. Its labels must be the task's, in any case."""

    leaves = False
    keeps = True

    def __init__(self, named: str, **_: Any) -> None:
        self.model: str | None = named
        self.name = f"hf:{named}"

    @cached_property
    def _pipeline(self) -> Any:
        try:
            import transformers  # noqa: PLC0415  (seconds to load, only for who asks for it)
        except ImportError as problem:
            raise LabelError(
                f"A classifier can't be loaded: {problem}.", 'Install it: pip install "agentsignals[hf]".'
            ) from problem
        try:
            return transformers.pipeline("text-classification", model=self.model, top_k=None)
        except (OSError, ValueError, ImportError) as problem:
            raise LabelError(
                f"{self.model} can't be loaded: {str(problem).splitlines()[0]}", "Give a local folder with a model."
            ) from problem

    def version(self, task: Task) -> str:
        if task.level != "turn" or not task.values:
            raise UsageError(f"A text classifier can't judge {task.name}.", "It judges single messages by classes.")
        return "as it is"

    def window(self) -> int:
        return DEFAULT_WINDOW_TOKENS

    def run_figures(self) -> dict[str, Any]:
        return {"most_tokens": MOST_TOKENS}

    def read(self, question: Question, text: str) -> Verdict | Absent | str:
        return read_back(text)

    def ask(self, questions: Iterable[Question], done: Done) -> None:
        waiting = iter(questions)
        while batch := list(islice(waiting, BATCH)):
            texts = [question.message.text if question.message else "" for question in batch]
            scored = self._pipeline(texts, truncation=True, max_length=MOST_TOKENS, batch_size=BATCH)
            for question, text, scores in zip(batch, texts, scored, strict=True):
                verdict = self._verdict(question, text, {s["label"]: float(s["score"]) for s in scores})
                done(question, Outcome(text=written(verdict), calls=1, created_at=now()))

    def _verdict(self, question: Question, text: str, scores: dict[str, float]) -> Verdict:
        wanted = question.schema["properties"]["label"]["enum"]
        named = {value.lower(): value for value in wanted}
        if {label.lower() for label in scores} != set(named):
            raise UsageError(
                f"{self.model} says {', '.join(sorted(scores))}; {question.task} has {', '.join(sorted(wanted))}.",
                "Take a model with these classes, or name them in its config.json (id2label).",
            )
        best = max(scores, key=lambda label: (scores[label], label))
        by_label = {named[label.lower()]: round(score, 4) for label, score in scores.items()}
        detail: dict[str, Any] = {"scores": by_label} | ({"may_be_cut": True} if len(text) > _DOUBTFUL_CHARS else {})
        return Verdict(named[best.lower()], f"score {scores[best]:.2f}", detail=detail)


LABELLER = Kind(Classifier, "MODEL", own_version=True)
