"""Reads episodes of the lab's retry loop: its attempts as sessions of one trial, each with verdict and treatment."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from agentsignals.formats import Input
from agentsignals.formats.builder import SessionBuilder
from agentsignals.formats.lab_repository.reader import Episode, Message, verification
from agentsignals.formats.lab_retry import MARK
from agentsignals.formats.records import convert_leniently
from agentsignals.model import Attempt, Session, Step, Verification


class Scores(Struct, kw_only=True):
    """Scores of an answer. Its further columns are judgements."""

    attempt: int
    prompt_tokens: int | None = None
    tokens: int | None = None
    finish: str | None = None
    error: str | None = None
    visible_pass: bool | None = None
    hidden_pass: bool | None = None
    full_pass: bool | None = None
    visible_passed: int | None = None
    n_visible: int | None = None
    hidden_passed: int | None = None
    n_hidden: int | None = None


class Try(Struct):
    """An attempt while it is read: its session, its answer, its scores."""

    builder: SessionBuilder
    answer: Step | None = None
    scores: Scores | None = None
    logged: dict[str, Any] = {}
    line: int = 0


class RetryEpisode(Episode):
    agent, mark, kinds = "lab-retry", MARK, ("message", "attempt", "final")
    settings = ("seed", "evaluator", "tier", "wording", "max_attempts", "temperature", "top_p", "max_new_tokens")
    rated = (
        "valid_python", "hardcoded", "imports_missing", "off_task", "writes_tests", "test_mentions_per_100_words",
        "marker_score", "frustration_per_100_words", "desperation_per_100_words", "give_up_per_100_words",
        "error_class",
    )  # fmt: skip

    def __init__(self, source: Input) -> None:
        super().__init__(source)
        self.tries = [Try(self.begin())]

    def message(self, record: dict[str, Any]) -> None:
        """Read a message. What follows an answer begins the next attempt."""
        message = convert_leniently(record["message"], Message, self.artifact)
        if self.tries[-1].answer is not None:
            self.tries.append(Try(self.begin()))
        builder = self.tries[-1].builder
        builder.line = self.line
        if message.speaker == "assistant":
            self.tries[-1].answer = step = builder.step(None, self.model, None)
            builder.event("text", message.text, None, step)
        elif message.speaker == "user":
            builder.turn("prompt", message.text)
        else:
            builder.event("meta", message.text)

    def attempt(self, record: dict[str, Any]) -> None:
        last, scores = self.tries[-1], record["attempt"]
        last.scores, last.logged, last.line = convert_leniently(scores, Scores, self.artifact), scores, self.line

    def final(self, record: dict[str, Any]) -> None:
        """Skip the verdict: the attempts have it."""

    def attempts(self) -> list[tuple[Session, Attempt]]:
        read = [attempt for attempt in self.tries if attempt.answer is not None or attempt.scores is not None]
        return [self._attempt(number, attempt) for number, attempt in enumerate(read)]

    def _attempt(self, number: int, attempt: Try) -> tuple[Session, Attempt]:
        scores, step = attempt.scores, attempt.answer
        index = scores.attempt if scores is not None and scores.attempt >= 0 else number
        part = Attempt(root=f"lab:{self.trial}", trial_id=self.trial, attempt_index=index, kinds=["attempt_log"])
        self.configure(part)
        if scores is not None:
            if step is not None:
                step.input_tokens, step.output_tokens = scores.prompt_tokens, scores.tokens
                step.stop_reason = scores.finish
            passes = {"visible": scores.visible_pass, "hidden": scores.hidden_pass, "task": scores.full_pass}
            self.judge(part, passes, attempt.logged)
            error = scores.error or ""
            part.verification = verification(passes, "cases", "" if scores.visible_pass else error)
            if part.verification is None and error:
                part.verification = Verification(status="crashed", message=error)
            part.exit_status = "token_limit" if scores.finish == "length" else scores.finish
            visible = _of(scores.visible_passed, scores.n_visible)
            cases = f"visible cases {visible}, hidden cases {_of(scores.hidden_passed, scores.n_hidden)}"
            fields = ["reward", "rewards", "verification", "exit_status", "ratings"]
            self.state(part, f"{cases}: {error}" if error else cases, fields, attempt.line)
        return self.finish(attempt.builder, part, f"{self.trial}#{index}")


def _of(passed: int | None, n: int | None) -> str:
    return "unknown" if passed is None or n is None else f"{passed} of {n}"


read = RetryEpisode.read
