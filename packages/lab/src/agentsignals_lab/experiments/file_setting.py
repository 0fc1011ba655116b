"""A setting from files: tasks that failed, told in tones, and an outcome that is read off the model.

The package's own function tasks are such a setting (`functions.toml`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from agentsignals.errors import LabError

from agentsignals_lab import texts
from agentsignals_lab.coding_tasks import Task
from agentsignals_lab.evaluation.evaluator import evaluate
from agentsignals_lab.experiments.setting import Floats, Scene, SettingConfig, Text, with_decision
from agentsignals_lab.experiments.setting_files import Continuation, NextToken, of_task, read_setting
from agentsignals_lab.residual.interface import Edit, Generation, Message, Piece, Prompt, Sampling
from agentsignals_lab.retry.loop import visible_failure
from agentsignals_lab.retry.wording import Wording
from agentsignals_lab.runs import seed_of

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel

_BEGUN = "answer"
_CONTINUED = "continued"


class Setting:
    """Tones are those of the feedback. A scene is a task, an attempt, and what its tests said.

    `low` is the tone with the least of the bad outcome by design, `high` that with the most; `low_class` and
    `high_class` are the classes of texts that directions lead away from, and to. More of the outcome is worse.
    """

    def __init__(self, model: HookedModel, asked: SettingConfig) -> None:
        self.model, self.seed, self.read = model, asked.seed, read_setting(asked)
        self.document = self.read.document
        self.name, self.unit = self.read.name, self.document.outcome.unit
        self.low, self.neutral, self.high = self.document.low, self.read.neutral, self.document.high
        self.low_class, self.neutral_class, self.high_class = (
            self.read.texts.low, self.read.texts.neutral, self.read.texts.high,
        )  # fmt: skip
        self.fingerprint = self.read.texts.fingerprint
        self.wording: Wording = self.read.wording
        self.tasks: Sequence[Task] = self.read.tasks
        self._failures: dict[str, str] = {}

    def scenes(self, tone: str, tasks: Sequence[Task] | None = None) -> list[Scene]:
        """One a task, after a failed attempt and feedback in this tone."""
        return [self.scene(task, tone, self._failed(task, (tone,))) for task in tasks or self.tasks]

    def _failed(self, task: Task, tones: Sequence[str]) -> list[Message]:
        """The task and one failed attempt a tone, each with feedback in it."""
        attempt = of_task(self.document.scene.attempt, task)
        if task.key not in self._failures:
            verdict = evaluate(task, attempt, source=attempt)
            self._failures[task.key] = visible_failure(task, verdict)
        chat = self.wording.opening(task, tones[0])
        for number, tone in enumerate(tones):
            chat.append(Message("assistant", (Piece("code", attempt, f"attempt {number}"),)))
            left = len(tones) - number
            chat.append(self.wording.after_failure(task, self._failures[task.key], number, left, tone))
        return chat

    def scene(self, task: Task, tone: str, chat: Sequence[Message]) -> Scene:
        """A chat of one's own as a scene."""
        return Scene(task, tone, tuple(chat), with_decision(self.model.encode(self._begun(chat))))

    def _begun(self, chat: Sequence[Message], more: str = "") -> list[Message]:
        """The chat with the answer begun, and perhaps gone on with."""
        parts = ((self.document.outcome.begun, _BEGUN), (more, _CONTINUED))
        pieces = tuple(Piece("text", text, label) for text, label in parts if text)
        return [*chat, Message("assistant", pieces)] if pieces else list(chat)

    def anchored(self) -> list[Scene]:
        """Failed attempts; the feedback on one of them, which is drawn, is in the high tone."""
        scenes = []
        for task in self.tasks:
            chance = random.Random(seed_of(self.seed, task.key, "anchored"))  # noqa: S311  (a place is drawn, no secret)
            tones = [self.neutral] * self.document.scene.attempts
            tones[chance.randrange(len(tones))] = self.high
            scenes.append(self.scene(task, self.high, self._failed(task, tones)))
        return scenes

    def outcome(self, scenes: Sequence[Scene], edits: Sequence[Edit] = ()) -> Floats:
        """Return the outcome of each scene as one number, without sampling."""
        form = self.document.outcome
        if isinstance(form, Continuation):
            worse, better = (self._likelihood(scenes, side, edits) for side in (form.worse, form.better))
            return worse - better
        logprobs = self.model.next_logprobs([scene.prompt for scene in scenes], edits)[:, self._tokens]
        share = np.exp(logprobs.astype(np.float64)).sum(axis=1)
        return np.asarray(share if form.worse else 1 - share, np.float64)

    @cached_property
    def _tokens(self) -> list[int]:
        """The first tokens of the words that the outcome counts, as they stand after the answer that was begun."""
        form = self.document.outcome
        if not isinstance(form, NextToken):
            return []
        chat = self._failed(self.tasks[0], (self.neutral,))
        before = self.model.encode(self._begun(chat)).tokens
        firsts = []
        for word in form.worse or form.better:
            tokens = self.model.encode(self._begun(chat, word)).tokens
            if len(tokens) <= len(before) or tokens[: len(before)] != before:
                raise LabError(f"{word!r} has no token of its own after {form.begun!r}.", "Check the space before it.")
            firsts.append(tokens[len(before)])
        return sorted(set(firsts))

    def _likelihood(self, scenes: Sequence[Scene], template: str, edits: Sequence[Edit]) -> Floats:
        """Mean natural-log probability of a token of the continuation, written after the scene."""
        prompts, starts = [], []
        for scene in scenes:
            whole = self.model.encode(self._begun(scene.chat, of_task(template, scene.task)))
            (start,) = (span.start for span in whole.spans if span.label == _CONTINUED)
            prompts.append(with_decision(whole, start - 1))
            starts.append(start)
        logprobs = self.model.logprobs_of(prompts, edits)
        return np.asarray([row[start:].mean() for row, start in zip(logprobs, starts, strict=True)], np.float64)

    def answers(
        self, scenes: Sequence[Scene], sampling: Sequence[Sampling], edits: Sequence[Edit] = ()
    ) -> list[Generation]:
        """Draw the model's text after the chat of each scene, from the start of its answer."""
        return self.model.generate([self.model.encode(scene.chat) for scene in scenes], sampling, edits)

    def texts(self) -> dict[str, list[Text]]:
        """Texts by class; `low_class`, `neutral_class` and `high_class` are among them."""
        return {
            name: [Text(self.model.encode_text([Piece("text", text)]), topic) for topic, text in rows]
            for name, rows in self.read.texts.classes.items()
        }

    def dialogues(self) -> list[Prompt]:
        """Prompts without emotion."""
        if not self.read.texts.dialogues:
            return [self.model.encode(self.wording.opening(task, self.neutral)) for task in self.tasks]
        return [
            self.model.encode([Message("user", (Piece("text", asked),)), Message("assistant", (Piece("text", reply),))])
            for asked, reply in self.read.texts.dialogues
        ]

    def stages(self) -> dict[str, list[list[Message]]]:
        """Chats by how far a failure has gone; chat i of every stage is of the same task."""
        if not self.document.trajectory:
            tones = dict.fromkeys((self.low, self.neutral, self.high))
            return {tone: [list(scene.chat) for scene in self.scenes(tone)] for tone in tones}
        stages, task_texts = texts.trajectory()

        def chat(text: str, feedback: Sequence[str]) -> list[Message]:
            told = (Piece("feedback", f"\n{words}", str(n)) for n, words in enumerate(feedback))
            return [Message("user", (Piece("task", text), *told))]

        return {stage: [chat(text, feedback) for text in task_texts] for stage, feedback in stages.items()}


def setting(model: HookedModel, asked: SettingConfig) -> Setting:
    """The setting, ready. LabError for fewer than two tasks."""
    if asked.tasks < 2:
        raise LabError(
            f"An experiment can't run on {asked.tasks} tasks.", "Ask for two at least: intervals are over tasks."
        )
    return Setting(model, asked)
