"""Parts of an episode: attempts, feedback, scores, projections. Conditions share tasks, words and draws."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.conditions import Condition
from agentsignals_lab.evaluation.verdict import Verdict
from agentsignals_lab.residual.interface import Calibration, Generation, Message, Piece, Sampling
from agentsignals_lab.retry.rows import AttemptRow, EpisodeRow, ProjectionRow
from agentsignals_lab.retry.scores import attempt_row, episode_row
from agentsignals_lab.retry.wording import Wording
from agentsignals_lab.runs import seed_of
from agentsignals_lab.sandbox import Limits

if TYPE_CHECKING:
    from agentsignals_lab.directions import DirectionSet
    from agentsignals_lab.residual.model import HookedModel


class Plan(Struct, frozen=True, kw_only=True):
    """Facts that every episode of a run shares."""

    wording: Wording
    attempts: int = 3
    max_new_tokens: int = 360
    temperature: float = 0.2
    top_p: float = 0.9
    seed: int = 13
    limits: Limits = Limits()
    """Of the code of one answer."""
    evaluating: int = max(1, (os.cpu_count() or 1) - 1)
    """Answers that are evaluated at a time, beside the writing. More than there are processors would make code slow
    that is stopped by the clock."""


class Steered(Struct, frozen=True):
    """A model in this process with what steering and projecting need."""

    model: HookedModel
    directions: DirectionSet | None
    calibration: Calibration


class Work(NamedTuple):
    """An episode to be run."""

    condition: Condition
    task: Task
    sample: int


First = tuple[str, str, int]
"""Which first attempt: tone, task, sample. It is the same in every condition that does nothing before feedback."""


class Episode:
    """An episode under way."""

    def __init__(self, work: Work, plan: Plan) -> None:
        self.condition, self.task, self.sample = work
        self.chat = list(plan.wording.opening(self.task, self.condition.tone))
        self.attempts: list[AttemptRow] = []
        self.verdicts: list[Verdict] = []
        self.projections: list[ProjectionRow] = []
        self.over = False

    @property
    def attempt(self) -> int:
        """The number of the next attempt, from 0."""
        return len(self.attempts)

    @property
    def first(self) -> First | None:
        """The part that other conditions share now; None: nothing."""
        if self.attempts or self.condition.acts_before_feedback:
            return None
        return self.condition.tone, self.task.key, self.sample

    def done(self) -> Done:
        return Done(
            task=self.task,
            condition=self.condition,
            episode=episode_row(self.condition.name, self.task, self.sample, self.attempts, self.verdicts),
            attempts=self.attempts,
            projections=self.projections,
            chat=self.chat,
        )


class Done(Struct, frozen=True, kw_only=True):
    """An episode that is over: its rows, and the chat that led to them."""

    task: Task
    condition: Condition
    episode: EpisodeRow
    attempts: list[AttemptRow]
    projections: list[ProjectionRow]
    chat: list[Message]


def sampling_of(plan: Plan, episode: Episode) -> Sampling:
    """Return the sampling of an episode's next answer. It does not depend on the condition: all conditions share
    random numbers."""
    seed = seed_of(plan.seed, episode.task.key, episode.attempt, episode.sample)
    return Sampling(plan.max_new_tokens, plan.temperature, plan.top_p, seed)


def take(episode: Episode, answer: Generation, verdict: Verdict, plan: Plan) -> None:
    """Keeps an answer and what it was worth, and says what comes back of it."""
    condition, attempt, seed = episode.condition, episode.attempt, sampling_of(plan, episode).seed
    asked = "\n".join(
        piece.text for message in episode.chat if message.speaker != "assistant" for piece in message.pieces
    )
    episode.over = verdict.visible_pass is True or attempt + 1 == plan.attempts
    episode.chat.append(Message("assistant", (Piece("code", answer.text, str(attempt)),)))
    feedback = ""
    if not episode.over:
        left = plan.attempts - attempt - 1
        back = plan.wording.after_failure(
            episode.task, visible_failure(episode.task, verdict), attempt, left, condition.tone
        )
        episode.chat.append(back)
        feedback = "".join(piece.text for piece in back.pieces)
    episode.verdicts.append(verdict)
    episode.attempts.append(
        attempt_row(
            episode.task,
            verdict,
            answer,
            condition=condition.name,
            sample=episode.sample,
            attempt=attempt,
            seed=seed,
            feedback=feedback,
            asked=asked,
        )
    )


def visible_failure(task: Task, verdict: Verdict) -> str:
    """Return the message a model may get: the first visible failure. A failure of hidden tests alone is never told,
    since the loop ends where the visible ones pass."""
    if verdict.visible_pass:
        return ""
    if verdict.error_class == "no_function":
        return f"there is no function `{task.function}` in the answer."
    return verdict.error or verdict.error_class
