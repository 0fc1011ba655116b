"""A sentiment classifier off the shelf, to hold a prompt for this kind of text against: VADER (package vaderSentiment).

It was made for posts on social networks. Cut points of its score are its authors'.
"""

from __future__ import annotations

from importlib.metadata import version as release_of
from typing import Any

from agentsignals.errors import LabelError, UsageError, install_command
from agentsignals.labels.labellers import Kind, LocalLabeller
from agentsignals.labels.prompting import Question
from agentsignals.labels.tasks import Task, Verdict
from agentsignals.model import VADER
from agentsignals.stats.agent_traces import NEGATIVE, NEUTRAL, POSITIVE, TASK

_CUT = 0.05
MOST_CHARS = 5_000
"""Later words of a message are mostly pasted."""


class Vader(LocalLabeller):
    name = VADER

    def __init__(self, argument: str = "", **_: Any) -> None:
        try:
            from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # noqa: PLC0415  (for who asks for it)
        except ImportError as problem:
            hint = f"Install it: {install_command('vader')}"
            raise LabelError("The package vaderSentiment is not installed.", hint) from problem
        self._analyzer = SentimentIntensityAnalyzer()

    def version(self, task: Task) -> str:
        if task.name != TASK:
            raise UsageError(f"The labeller {VADER} can't label {task.name}.", f"It labels {TASK}.")
        return f"{VADER}-{release_of('vaderSentiment')}"

    def verdicts(self, task: str, messages: list[Question]) -> list[Verdict]:
        texts = [q.message.text[:MOST_CHARS] for q in messages if q.message]
        scores = [self._analyzer.polarity_scores(text)["compound"] for text in texts]
        return [
            Verdict(POSITIVE if score >= _CUT else NEGATIVE if score <= -_CUT else NEUTRAL, detail={"compound": score})
            for score in scores
        ]


LABELLER = Kind(Vader, own_version=True)
