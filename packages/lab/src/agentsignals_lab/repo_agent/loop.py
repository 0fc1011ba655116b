"""Episodes of an agent on repositories, in the pool of the retry loop. Conditions share tasks, words and draws."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from agentsignals.errors import LabError, SandboxError
from msgspec import Struct

from agentsignals_lab import sandbox, texts
from agentsignals_lab.coding_tasks.repository import RepositoryTask
from agentsignals_lab.conditions import Condition
from agentsignals_lab.evaluation.patches import LIMITS, Runner, evaluate_patch
from agentsignals_lab.repo_agent import protocol
from agentsignals_lab.repo_agent.protocol import Action, read_answer
from agentsignals_lab.repo_agent.rows import RepoEpisodeRow, RepoStepRow
from agentsignals_lab.repo_agent.scores import episode_row, step_row
from agentsignals_lab.repo_agent.workspace import Seen, Workspace
from agentsignals_lab.residual.interface import Generation, Message, Piece, Sampling, Writer
from agentsignals_lab.retry.loop import Steered
from agentsignals_lab.retry.pool import pooled
from agentsignals_lab.runs import seed_of
from agentsignals_lab.sandbox import Limits


class Plan(Struct, frozen=True, kw_only=True):
    """Facts that every episode of a run shares."""

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
    """Limits of each test run."""
    evaluating: int = max(1, (os.cpu_count() or 1) - 1)
    """Answers that are done, tests and all, at a time beside the writing (`retry.loop.Plan`)."""


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


class Work(NamedTuple):
    """An episode to be run."""

    condition: Condition
    task: RepositoryTask
    sample: int


class _Episode:
    """An episode under way."""

    first = None
    """A first step may be anybody's, and is short: none is shared."""

    def __init__(self, work: Work, plan: Plan, run: Runner | None) -> None:
        self.condition, self.task, self.sample = work
        self.space = Workspace(self.task.files, run, plan.limits)
        self.chat = opening(self.task, self.condition.tone, plan.steps)
        self.steps: list[Step] = []
        self.over = False
        self.row: RepoEpisodeRow
        """There when it is over."""

    def done(self) -> Done:
        return Done(self.task, self.condition, self.row, self.steps, self.chat)


class _Loop(NamedTuple):
    """The pool's `Loop`: an answer is done and, where it was the last, the patch evaluated, beside the writing."""

    plan: Plan
    run: Runner | None

    @property
    def evaluating(self) -> int:
        return self.plan.evaluating

    def begin(self, work: Work) -> _Episode:
        return _Episode(work, self.plan, self.run)

    def sampling(self, episode: _Episode) -> Sampling:
        """Without the condition: its random numbers are those of every other condition."""
        plan = self.plan
        seed = seed_of(plan.seed, episode.task.key, len(episode.steps), episode.sample)
        return Sampling(plan.max_new_tokens, plan.temperature, plan.top_p, seed)

    def evaluate(self, episode: _Episode, answer: Generation) -> RepoEpisodeRow | None:
        plan = self.plan
        _do(episode, answer, plan, self.sampling(episode).seed)
        if not episode.over:
            return None
        verdict = evaluate_patch(episode.task, episode.space.changes_of_code(), plan.limits)
        rows, name = [each.row for each in episode.steps], episode.condition.name
        return episode_row(name, episode.task, episode.sample, rows, episode.space, verdict, plan.steps)

    def take(self, episode: _Episode, answer: Generation, verdict: RepoEpisodeRow | None) -> None:
        if verdict is not None:
            episode.row = verdict


def episodes(
    writer: Writer, plan: Plan, work: Sequence[Work], steered: Steered | None = None, run: Runner | None = None
) -> Iterator[Done]:
    """Runs episodes of all conditions in one pool, and gives each when it is over (`retry.pool`).

    Args:
        run: runs the agent's own test runs in a folder; the sandbox's strict tier. Several at a time.

    Raises:
        SandboxError: this machine can't lock tests in; said before the model is asked anything.
        LabError: a server should be steered, or there is no such tone.
    """
    if run is None and "strict" not in sandbox.tiers():
        raise SandboxError(
            "An agent's tests run in the strict sandbox, which this machine does not have.",
            "Install bubblewrap; `agentsignals doctor` says what is missing.",
        )
    if plan.steps < 1:
        raise LabError(f"{plan.steps} steps were asked for.", "One at least.")
    for tone in {each.condition.tone for each in work} - set(texts.TONES):
        raise LabError(f"There is no tone {tone!r}.", f"Say one of {', '.join(texts.TONES)}.")
    into = steered and msgspec.structs.replace(steered, project=False)
    yield from pooled(writer, _Loop(plan, run), work, into)


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


def _do(episode: _Episode, generation: Generation, plan: Plan, seed: int) -> None:
    """Does what an answer says, and tells the model what came of it."""
    condition, step = episode.condition, len(episode.steps)
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
    shown = _shown(seen, understood.more, plan, plan.steps - step - 1, condition.tone)
    episode.chat.append(Message("assistant", (Piece("code", answer.text, str(step)),)))
    if not episode.over:
        episode.chat.append(Message("user", (Piece("feedback", shown, str(step)),)))
    who: dict[str, Any] = {
        "condition": condition.name,
        "task": episode.task.key,
        "sample": episode.sample,
        "step": step,
    }
    row = step_row(who, seed, answer, understood, seen, shown, asked)
    episode.steps.append(Step(row, action))


def _shown(seen: Seen, more: int, plan: Plan, left: int, tone: str) -> str:
    """Return the message to the model. Only failed tests are told in a tone: the rest are facts."""
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
