"""Judging by rules: no model, no network, the same every time. What stands in for judges until there is one, and says
how much it misses (`measured`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from agentsignals import catalog
from agentsignals.errors import LabelError, UsageError
from agentsignals.labels.answers import Outcome, now
from agentsignals.labels.labellers import DEFAULT_WINDOW_TOKENS, Done, Kind
from agentsignals.labels.question import Question
from agentsignals.labels.sentiment_words import feeling
from agentsignals.labels.task import Task, Verdict, read_back, written
from agentsignals.model import RULES, Absent, Session, Turn
from agentsignals.views.evidence import Collected
from agentsignals.views.session import SessionView
from agentsignals.words.lexicon import is_english

VERSION = 1
"""Of the rules; raise it when a label would change."""
_SOMEBODY = Session(session_id="", context="product", format="", agent="", artifact_id="")


class Rules:
    """Sentiment by words (`feelings`), pushback and intent by the rules of the signals of the same names."""

    name = RULES
    model: str | None = None
    leaves = False
    keeps = False

    def __init__(self, _: str = "", **__: Any) -> None:
        """Takes no model and no settings."""

    def version(self, task: Task) -> str:
        if task.name not in BY_TASK:
            raise UsageError(
                f"There are no rules for {task.name}.",
                f"Rules do {', '.join(BY_TASK)}; a model does the others: --by openai:MODEL@URL.",
            )
        return f"rules-{VERSION}"

    def window(self) -> int:
        return DEFAULT_WINDOW_TOKENS

    def run_figures(self) -> dict[str, Any]:
        return {}

    def ask(self, questions: Iterable[Question], done: Done) -> None:
        for question in questions:
            turn = question.message
            if turn is None:
                raise LabelError(f"There are no rules for {question.task}.", "")
            answer = BY_TASK[question.task](turn) if is_english(turn.text) else Absent("not_computable", "language")
            done(question, Outcome(text=written(answer), created_at=now()))

    def read(self, question: Question, text: str) -> Verdict | Absent | str:
        return read_back(text)


def _sentiment(turn: Turn) -> Verdict:
    value, rule, words = feeling(turn.text, turn.kind)
    return Verdict(value, f"{rule}: “{words}”" if rule else "no word of praise or frustration")


def _by_signal(path: str) -> Callable[[Turn], Verdict | Absent]:
    """The value that a turn-level signal gives this message, in a session without labels that it could repeat."""

    def judge(turn: Turn) -> Verdict | Absent:
        view = SessionView(msgspec.structs.replace(_SOMEBODY, turns=[turn]))
        why = Collected(view)
        result = catalog.by_path(path).function(view, why)[0]
        if isinstance(result, Absent):
            return result
        words = next((item.excerpt for item in why.items if item.role == "support"), "")
        return Verdict(str(result.value), words or "no pattern matched")

    return judge


BY_TASK: dict[str, Callable[[Turn], Verdict | Absent]] = {
    "sentiment": _sentiment,
    "pushback": _by_signal("chat.pushback_type"),
    "prompt_intent": _by_signal("chat.prompt_intent"),
}


LABELLER = Kind(Rules, own_version=True)
