"""Wording of a task, and of the feedback after a failure: a chat in pieces that are known by role."""

from __future__ import annotations

from collections.abc import Mapping

from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab import texts
from agentsignals_lab.coding_tasks import Task, examples, words
from agentsignals_lab.residual.interface import Message, Piece
from agentsignals_lab.runs import seed_of
from agentsignals_lab.texts.tones import Tone, filled


class Words(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Wording of a task: a table `[words]`. `{words}` is all that a task says, `{says}`, `{signature}` and
    `{function}` its parts; `{args}` and `{expected}` are of a case."""

    task: str = "{words}\n"
    tests: str = "It must pass:\n{tests}"
    """Around the visible cases; left out where there are none."""
    case: str = ""
    """A visible case; empty: as Python has it."""


class Wording:
    """Words around tasks, in English but for a file's: system words, the task, its visible tests, and feedback. What it
    says of a failure is what the visible tests said, never a hidden one."""

    def __init__(self, tones: Mapping[str, Tone] | None = None, words: Words | None = None) -> None:
        self.by_tone = {**texts.tones(), **(tones or {})}
        self.words = words or Words()

    @property
    def tones(self) -> tuple[str, ...]:
        """The tones that it has words for."""
        return tuple(self.by_tone)

    def opening(self, task: Task, tone: str) -> list[Message]:
        """The chat before the first attempt."""
        system = self._tone(tone).system
        fields = {"words": words(task), "says": task.says, "signature": task.signature, "function": task.function}
        pieces = [Piece("task", filled(self.words.task, fields))]
        if tests := self._tests(task):
            pieces.append(Piece("tests", filled(self.words.tests, {"tests": tests})))
        asked = Message("user", tuple(pieces))
        return [Message("system", (Piece("system", system),)), asked] if system else [asked]

    def _tests(self, task: Task) -> str:
        if not self.words.case:
            return examples(task)
        return "".join(
            filled(
                self.words.case,
                {
                    "function": task.function,
                    "args": ", ".join(map(repr, case.args)),
                    "expected": repr(case.expected),
                },
            )
            for case in task.visible
        )

    def after_failure(self, task: Task, failure: str, attempt: int, left: int, tone: str) -> Message:
        """Return the message after attempt number `attempt` (from 0), with `left` to come."""
        # Of the task and attempt alone: every condition of a tone hears the same of its wordings.
        feedback = self._tone(tone).feedback(failure, left, seed_of(0, task.key, attempt))
        return Message("user", (Piece("feedback", feedback, str(attempt)),))

    def _tone(self, tone: str) -> Tone:
        if tone not in self.by_tone:
            raise LabError(f"There is no tone {tone!r}.", f"Tones: {', '.join(self.by_tone)}.")
        return self.by_tone[tone]


def after_a_failure(wording: Wording, task: Task, tone: str) -> list[Message]:
    """A fixed trajectory, of which nothing is run: the task, an attempt that returns nothing, what is said of it."""
    attempt = f"def {task.signature}:\n    return None\n"
    failure = f"expected {task.visible[0].expected!r}, got None"
    answer = Message("assistant", (Piece("code", attempt, "0"),))
    return [*wording.opening(task, tone), answer, wording.after_failure(task, failure, 0, 1, tone)]
