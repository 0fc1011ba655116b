"""Runs episodes of an agent on repositories, several at a time. Conditions share tasks, words and random numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agentsignals.errors import LabError, SandboxError
from agentsignals.lab import sandbox, steering, texts
from agentsignals.lab.coding_tasks.repository import RepositoryTask
from agentsignals.lab.conditions import Condition
from agentsignals.lab.evaluation.patches import LIMITS, Runner, evaluate_patch
from agentsignals.lab.repo_agent import protocol
from agentsignals.lab.repo_agent.protocol import Action, read_answer
from agentsignals.lab.repo_agent.rows import RepoEpisodeRow, RepoStepRow
from agentsignals.lab.repo_agent.scores import episode_row, step_row
from agentsignals.lab.repo_agent.workspace import Seen, Workspace
from agentsignals.lab.residual.interface import Generation, Message, Piece, Sampling, Writer
from agentsignals.lab.retry.loop import Steered
from agentsignals.lab.runs import seed_of
from agentsignals.lab.sandbox import Limits


class Plan(Struct, frozen=True, kw_only=True):
    """What every episode of a run shares."""

    steps: int = 15
    """Answers at most."""
    shown_chars: int = 4_000
    """The most that the model is shown of what came of a step; head and tail of longer ones."""
    chat_chars: int = 100_000
    """An episode whose chat is longer ends: a model's window is finite, and what it does beyond is no behaviour."""
    max_new_tokens: int = 800
    temperature: float = 0.2
    top_p: float = 0.9
    seed: int = 13
    limits: Limits = LIMITS
    """Of each test run."""
    batch: int = 8
    """Episodes that are generated together; of an interrupted run so many are lost at most."""


class Step(Struct, frozen=True):
    """One answer: as a row, and the action it was understood as (None: none)."""

    row: RepoStepRow
    action: Action | None


class Done(Struct, frozen=True):
    """An episode that is over."""

    task: RepositoryTask
    condition: Condition
    episode: RepoEpisodeRow
    steps: list[Step]
    chat: list[Message]


class _Episode(Struct, kw_only=True):
    task: RepositoryTask
    sample: int
    space: Workspace
    chat: list[Message]
    steps: list[Step] = []
    over: bool = False


def episodes(  # noqa: PLR0913  (what a loop is of)
    writer: Writer,
    plan: Plan,
    condition: Condition,
    work: Sequence[tuple[RepositoryTask, int]],
    steered: Steered | None = None,
    run: Runner | None = None,
) -> Iterator[Done]:
    """Runs (task, sample) pairs under a condition, `plan.batch` at a time.

    Args:
        run: runs the agent's own test runs in a folder; the sandbox's strict tier.

    Raises:
        SandboxError: this machine can't lock tests in; said before the model is asked anything.
        LabError: a server should be steered, or there is no such tone.
    """
    if condition.steers and steered is None:
        raise LabError(
            f"Condition {condition.name!r} steers, and {writer.name} is no model in this process.", "Give --model."
        )
    if run is None and "strict" not in sandbox.tiers():
        raise SandboxError(
            "An agent's tests run in the strict sandbox, which this machine does not have.",
            "Install bubblewrap; `agentsignals doctor` says what is missing.",
        )
    if plan.steps < 1:
        raise LabError(f"{plan.steps} steps were asked for.", "One at least.")
    tone = _tone(condition.tone)
    for start in range(0, len(work), plan.batch):
        batch = [
            _Episode(
                task=task,
                sample=sample,
                space=Workspace(task.files, run, plan.limits),
                chat=opening(task, tone, plan.steps),
            )
            for task, sample in work[start : start + plan.batch]
        ]
        for step in range(plan.steps):
            going = [episode for episode in batch if not episode.over]
            if not going:
                break
            for episode, answer in zip(going, _answers(writer, plan, condition, going, step, steered), strict=True):
                _take(episode, answer, plan, condition, step)
        for episode in batch:
            verdict = evaluate_patch(episode.task, episode.space.changes_of_code(), plan.limits)
            rows = [each.row for each in episode.steps]
            row = episode_row(condition.name, episode.task, episode.sample, rows, episode.space, verdict, plan.steps)
            yield Done(episode.task, condition, row, episode.steps, episode.chat)


def opening(task: RepositoryTask, tone: str, steps: int) -> list[Message]:
    """The chat before the first step: the rules, what is reported, the names of the files."""
    names = "\n".join(sorted(task.files))
    return [
        Message("system", (Piece("system", f"{texts.repository_system_words(tone)}\n\n{protocol.WORDS}"),)),
        Message(
            "user",
            (Piece("task", f"{task.issue}\n"), Piece("text", f"\nThe files:\n{names}\n\nYou have {steps} steps.")),
        ),
    ]


def after_a_step(task: RepositoryTask, tone: str, steps: int) -> list[Message]:
    """A fixed trajectory, of which nothing is run: the opening, a first action and what it showed."""
    names = "\n".join(sorted(task.files))
    acted = Message("assistant", (Piece("code", "```list\n```", "0"),))
    return [*opening(task, tone, steps), acted, Message("user", (Piece("feedback", names, "0"),))]


def _tone(tone: str) -> str:
    if tone not in texts.TONES:
        raise LabError(f"There is no tone {tone!r}.", f"Say one of {', '.join(texts.TONES)}.")
    return tone


def _answers(  # noqa: PLR0913  (a round of the loop and all it goes by)
    writer: Writer,
    plan: Plan,
    condition: Condition,
    going: Sequence[_Episode],
    step: int,
    steered: Steered | None,
) -> list[Generation]:
    how = [Sampling(plan.max_new_tokens, plan.temperature, plan.top_p, _seed(plan, episode, step)) for episode in going]
    if steered is None or not condition.steers:
        return writer.write([episode.chat for episode in going], how)
    does = steering.edits(condition, steered.directions, steered.calibration)
    return steered.model.generate([steered.model.encode(episode.chat) for episode in going], how, does)


def _seed(plan: Plan, episode: _Episode, step: int) -> int:
    """Without the condition: its random numbers are those of every other condition."""
    return seed_of(plan.seed, episode.task.key, step, episode.sample)


def _take(episode: _Episode, generation: Generation, plan: Plan, condition: Condition, step: int) -> None:
    """Does what an answer says, and tells the model what came of it."""
    # A server's answer may hold halves of characters, which no file can.
    answer = msgspec.structs.replace(generation, text=generation.text.encode("utf-8", "replace").decode("utf-8"))
    asked = "\n".join(
        piece.text for message in episode.chat if message.speaker != "assistant" for piece in message.pieces
    )
    understood = read_answer(answer.text)
    action = understood.does if isinstance(understood.does, Action) else None
    if isinstance(understood.does, Action):
        seen = episode.space.do(understood.does)
    else:
        seen = Seen(text=f"Nothing was done: {understood.does.why}.", status="error")
    chat_chars = len(asked) + sum(len(each.row.answer) for each in episode.steps) + len(answer.text) + len(seen.text)
    episode.over = (
        (action is not None and action.kind == "submit") or step + 1 == plan.steps or chat_chars > plan.chat_chars
    )
    shown = _shown(seen, understood.more, plan, plan.steps - step - 1, _tone(condition.tone))
    episode.chat.append(Message("assistant", (Piece("code", answer.text, str(step)),)))
    if not episode.over:
        episode.chat.append(Message("user", (Piece("feedback", shown, str(step)),)))
    who: dict[str, Any] = {
        "condition": condition.name,
        "task": episode.task.key,
        "sample": episode.sample,
        "step": step,
    }
    row = step_row(who, _seed(plan, episode, step), answer, understood, seen, shown, asked)
    episode.steps.append(Step(row, action))


def _shown(seen: Seen, more: int, plan: Plan, left: int, tone: str) -> str:
    """What the model is told. Only tests that failed are told in a tone: the rest are facts."""
    text = clipped(seen.text, plan.shown_chars)
    if seen.status == "refused":
        text = f"Refused: {text}."
    if more:
        text += f"\nOnly the first of {more + 1} blocks was done."
    return f"{text}\n{texts.after_failing_tests(tone, left) if seen.passed is False else f'Steps left: {left}.'}"


def clipped(text: str, most: int) -> str:
    """Head and tail of a text longer than `most` characters, and how much is missing."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
