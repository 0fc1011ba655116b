"""Names of topics by a language model, through any labeller that has one: asked once a topic, and kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct, field

from agentsignals.errors import UsageError
from agentsignals.labels.answers import Answers, Outcome
from agentsignals.labels.labellers import Labeller
from agentsignals.labels.prompting import Question, made
from agentsignals.labels.task import Unfit, prompt, read_as
from agentsignals.store import Store, sidecars

NAMING = "topic_name"
CENTRAL = 100
"""Prompts that are shown of a topic, those in its middle (design/attribution.md#topics-of-swe-chat)."""
MOST_CHARS = 200
"""Of each: the beginning."""
TOKENS = 300
FEWEST_WORDS, MOST_WORDS = 2, 12
"""Of a name; 4 to 10 are asked for."""


class NameAnswer(Struct, forbid_unknown_fields=True):
    technologies: str
    activity: str
    name: str


class Named(Struct, kw_only=True):
    """What naming took."""

    by: str
    names: int = 0
    kept: int = 0
    """Names out of answers of an earlier run."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    """Topics that got no name, by reason; the next run asks again."""


class Naming:
    """Asks one labeller for names. What it is shown was masked before topics were made of it."""

    def __init__(self, store: Store, by: Labeller) -> None:
        if by.model is None:
            raise UsageError(f"{by.name} writes no names.", "--names openai:MODEL@URL")
        self._by = by
        self._folder = store.folder / sidecars.LABELS_FOLDER
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        self.usage = Named(by=by.name)

    def names(self, topics: Sequence[tuple[list[str], list[str]]]) -> list[str | None]:
        """The name of each topic, given its words and its prompts, the most central first; None where it got none."""
        asked = [self._question(words, texts) for words, texts in topics]
        answers = Answers(self._folder)
        try:
            new = [q for q in {q.key: q for q in asked}.values() if not self._kept(answers, q)]
            self._by.ask(new, partial(self._done, answers))
        finally:
            answers.close()
        names = [self._names.get(question.key) for question in asked]
        self.usage.names = sum(name is not None for name in names)
        return names

    def _question(self, words: list[str], texts: list[str]) -> Question:
        lines = [f"Words: {', '.join(words)}", "Messages:"]
        lines += [f"- {' '.join(text.split())[:MOST_CHARS]}" for text in texts[:CENTRAL]]
        return made(self._by.name, NAMING, prompt(NAMING), "\n".join(lines), NameAnswer, TOKENS, name_in)

    def _kept(self, answers: Answers, question: Question) -> bool:
        outcome = answers.get(question.key)
        if outcome is None or outcome.text is None:
            return False
        with suppress(Unfit):  # what an older version of this code took for a name is asked again
            self._names[question.key] = name_in(outcome.text)
            self.usage.kept += 1
        return question.key in self._names

    def _done(self, answers: Answers, question: Question, outcome: Outcome) -> None:
        answers.put(question.key, self._by.name, question.task, outcome)
        usage = self.usage
        with self._lock:
            usage.calls += outcome.calls
            usage.input_tokens += outcome.input_tokens
            usage.output_tokens += outcome.output_tokens
            if outcome.text is None:
                reason = outcome.failure or "no_answer"
                usage.failed[reason] = usage.failed.get(reason, 0) + 1
            else:
                self._names[question.key] = name_in(outcome.text)


def name_in(text: str) -> str:
    """The name in an answer, on one line. Unfit for what is none."""
    name = " ".join(read_as(NameAnswer, text).name.split())
    if not FEWEST_WORDS <= len(name.split()) <= MOST_WORDS:
        raise Unfit("invalid_answer", f"a name of {len(name.split())} words")
    return name
