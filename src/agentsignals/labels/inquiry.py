"""One question on its way to a valid answer, whoever is asked: when to ask again, and how.

An answer that was cut gets twice the tokens; one that is none otherwise is asked for a little warmer, since at
temperature 0 the same would come. A refusal is one at once. What is wrong then is a failure with its reason, never bent
into shape.
"""

from __future__ import annotations

from msgspec import Struct

from agentsignals.labels.answers import Outcome, now
from agentsignals.labels.question import Question
from agentsignals.labels.task import Unfit, answer_in

ANSWERS = 3
"""How many answers to one question may be invalid."""
MOST_GROWTH = 8
"""A cut answer gets twice the tokens each time, up to so many times as many."""
WARMER = 0.4
"""Temperature added with each invalid answer."""
_DETAIL_CHARS = 300


class Inquiry(Struct, kw_only=True):
    """A question, and what it has used so far."""

    question: Question
    limit: int
    """Tokens the next answer gets."""
    invalid: int = 0
    wrong: str = ""
    """What was wrong with the last answer, in a word; empty when nothing was."""
    is_formless: bool = False
    """Whether no answer of the wanted shape stood in the last one, whatever it would have said."""
    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    model: str | None = None
    """Who answered last, as the server says."""

    @classmethod
    def at(cls, question: Question) -> Inquiry:
        return cls(question=question, limit=question.tokens)

    @property
    def temperature(self) -> float:
        return self.question.temperature + self.invalid * WARMER

    def spent(self, input_tokens: int | None, output_tokens: int | None) -> None:
        """Adds what a call used."""
        self.input_tokens += input_tokens or 0
        self.output_tokens += output_tokens or 0

    def took(self, text: str, finish_reason: str | None, refusal: str | None = None) -> Outcome | None:
        """What comes of an answer: the outcome, or None when it must be asked again."""
        self.is_formless = True
        try:
            answer = answer_in(self.question.answer, text)
            self.is_formless = False
            self.question.read(answer)
        except Unfit as problem:
            withheld = "refusal" if refusal else "content_filter" if finish_reason == "content_filter" else ""
            self.wrong = withheld or problem.reason
            if withheld:  # the same would come again, and cost again
                return self.failed(withheld, refusal or "the server withheld the answer")
            return self._cut() if finish_reason == "length" else self._invalid(problem)
        self.wrong = ""
        return self._outcome(answer, cut_chars=len(text) - len(answer))

    def _cut(self) -> Outcome | None:
        if self.limit >= self.question.tokens * MOST_GROWTH:
            return self.failed("cut_short", f"no whole answer in {self.limit} tokens")
        self.limit *= 2
        return None

    def _invalid(self, problem: Unfit) -> Outcome | None:
        self.invalid += 1
        return self.failed(problem.reason, str(problem)) if self.invalid >= ANSWERS else None

    def failed(self, reason: str, detail: str) -> Outcome:
        """The end of it without an answer."""
        return self._outcome(None, reason, " ".join(detail.split())[:_DETAIL_CHARS])

    def _outcome(
        self, text: str | None, failure: str | None = None, detail: str | None = None, cut_chars: int = 0
    ) -> Outcome:
        return Outcome(
            text=text,
            failure=failure,
            detail=detail,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            calls=self.calls,
            created_at=now(),
            model=self.model,
            cut_chars=cut_chars,
        )
