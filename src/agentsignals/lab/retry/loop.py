"""Runs episodes: attempts, feedback, scores, projections. Conditions share tasks, words and random numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentsignals.errors import LabError
from agentsignals.lab.coding_tasks import Task
from agentsignals.lab.conditions import Condition
from agentsignals.lab.evaluation.case_runs import Confinement
from agentsignals.lab.evaluation.evaluator import evaluate
from agentsignals.lab.evaluation.verdict import Verdict
from agentsignals.lab.residual.interface import (
    Calibration,
    Generation,
    Message,
    Piece,
    Positions,
    ResidualModel,
    Role,
    Sampling,
    Writer,
)
from agentsignals.lab.retry.rows import AttemptRow, EpisodeRow, ProjectionRow
from agentsignals.lab.retry.scores import attempt_row, episode_row
from agentsignals.lab.retry.wording import Wording
from agentsignals.lab.runs import seed_of

if TYPE_CHECKING:
    from agentsignals.lab.directions import DirectionSet

_SPANS: tuple[Role, ...] = ("task", "tests", "code", "feedback")


class Plan(Struct, frozen=True, kw_only=True):
    """What every episode of a run shares."""

    wording: Wording
    attempts: int = 3
    max_new_tokens: int = 360
    temperature: float = 0.2
    top_p: float = 0.9
    seed: int = 13
    inside: Confinement = Confinement()
    batch: int = 16
    """Episodes that are generated together; of an interrupted run so many are lost at most."""


class Steered(Struct, frozen=True):
    """A model in this process with what steering and projecting need."""

    model: ResidualModel
    directions: DirectionSet | None
    calibration: Calibration
    project: bool = True


class Episode(Struct, kw_only=True):
    """An episode under way."""

    task: Task
    sample: int
    chat: list[Message]
    attempts: list[AttemptRow] = []
    verdicts: list[Verdict] = []
    projections: list[ProjectionRow] = []
    over: bool = False


class Done(Struct, frozen=True, kw_only=True):
    """An episode that is over: its rows, and the chat that led to them."""

    task: Task
    condition: Condition
    episode: EpisodeRow
    attempts: list[AttemptRow]
    projections: list[ProjectionRow]
    chat: list[Message]


def episodes(
    writer: Writer, plan: Plan, condition: Condition, work: Sequence[tuple[Task, int]], steered: Steered | None = None
) -> Iterator[Done]:
    """Runs (task, sample) pairs under a condition, `plan.batch` at a time. LabError when a server should be steered."""
    if condition.steers and steered is None:
        raise LabError(
            f"Condition {condition.name!r} steers, and {writer.name} is no model in this process.", "Give --model."
        )
    for start in range(0, len(work), plan.batch):
        batch = [
            Episode(task=task, sample=sample, chat=list(plan.wording.opening(task, condition.tone)))
            for task, sample in work[start : start + plan.batch]
        ]
        for attempt in range(plan.attempts):
            going = [episode for episode in batch if not episode.over]
            if not going:
                break
            if steered is not None and steered.project and steered.directions is not None:
                _project(steered, condition, going, attempt)
            for episode, answer in zip(going, _answers(writer, plan, condition, going, attempt, steered), strict=True):
                _take(episode, answer, plan, condition, attempt)
        for episode in batch:
            row = episode_row(condition.name, episode.task, episode.sample, episode.attempts, episode.verdicts)
            yield Done(
                task=episode.task,
                condition=condition,
                episode=row,
                attempts=episode.attempts,
                projections=episode.projections,
                chat=episode.chat,
            )


def _answers(  # noqa: PLR0913  (a round of the loop and all it goes by)
    writer: Writer,
    plan: Plan,
    condition: Condition,
    going: Sequence[Episode],
    attempt: int,
    steered: Steered | None,
) -> list[Generation]:
    how = [
        # Without the condition: its random numbers are those of every other condition.
        Sampling(
            plan.max_new_tokens,
            plan.temperature,
            plan.top_p,
            seed_of(plan.seed, episode.task.key, attempt, episode.sample),
        )
        for episode in going
    ]
    if steered is None or not condition.steers:
        return writer.write([episode.chat for episode in going], how)
    from agentsignals.lab import steering  # noqa: PLC0415  (NumPy is of an extra, and a server needs none)

    does = steering.edits(condition, steered.directions, steered.calibration)
    return steered.model.generate([steered.model.encode(episode.chat) for episode in going], how, does)


def _take(episode: Episode, answer: Generation, plan: Plan, condition: Condition, attempt: int) -> None:
    """Evaluates an answer, and says what comes back of it."""
    verdict = evaluate(episode.task, answer.text, plan.inside)
    seed = seed_of(plan.seed, episode.task.key, attempt, episode.sample)
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
    """What a model may hear: the first visible failure. A failure of hidden tests alone is never told, since the loop
    ends where the visible ones pass."""
    if verdict.visible_pass:
        return ""
    if verdict.error_class == "no_function":
        return f"there is no function `{task.function}` in the answer."
    return verdict.error or verdict.error_class


def _project(steered: Steered, condition: Condition, going: Sequence[Episode], attempt: int) -> None:
    """Projections of each prompt before the attempt, over all tokens and by role, in the unsteered model."""
    from agentsignals.lab import directions  # noqa: PLC0415  (as above)

    of = steered.directions
    if of is None:
        return
    prompts = [steered.model.encode(episode.chat) for episode in going]
    places: list[tuple[str, Positions]] = [("all", Positions("all"))]
    places += [(role, Positions("roles", roles=(role,))) for role in _SPANS]
    for span, at in places:
        states = steered.model.record(prompts, of.layers, at)
        for number, name in enumerate(of.names):
            cosine = directions.project(states, of.vectors[number], of.centre)
            coordinate = directions.project(states, of.vectors[number], of.centre, "coordinate")
            for place, layer in enumerate(of.layers):
                for row, episode in enumerate(going):
                    along = float(coordinate[row, place]) / steered.calibration.median_norm[layer]
                    episode.projections.append(
                        ProjectionRow(
                            condition=condition.name,
                            task=episode.task.key,
                            sample=episode.sample,
                            attempt=attempt,
                            direction=name,
                            layer=layer,
                            span=span,
                            cosine=_none_if_nan(cosine[row, place]),
                            coordinate=_none_if_nan(along),
                        )
                    )


def _none_if_nan(value: Any) -> float | None:
    return None if value != value else float(value)  # noqa: PLR0124  (NaN is the only value that is not itself)
