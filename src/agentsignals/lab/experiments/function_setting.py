"""Function tasks as a setting: the outcome is how much likelier hardcoded code is than the reference solution."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from agentsignals.lab import texts
from agentsignals.lab.coding_tasks import Task, hardcoded, tasks
from agentsignals.lab.evaluation.evaluator import evaluate
from agentsignals.lab.experiments.setting import Floats, Scene, SettingConfig, Text, with_decision
from agentsignals.lab.residual.interface import (
    Edit,
    Generation,
    Message,
    Piece,
    Prompt,
    ResidualModel,
    Sampling,
)
from agentsignals.lab.retry.loop import visible_failure
from agentsignals.lab.retry.wording import PlainWording, Wording
from agentsignals.lab.runs import seed_of

_CONTINUED = "continued"
_ATTEMPTS = 3


class FunctionSetting:
    """Tones are those of the feedback. A scene is a task, an attempt that returns nothing, and what its tests said."""

    name = "functions"
    low, neutral, high = "calm", "neutral", "pressing"
    unit = "log-odds of hardcoded against reference code, nats a token"

    def __init__(self, model: ResidualModel, asked: SettingConfig) -> None:
        self.model, self.seed = model, asked.seed
        self.wording: Wording = PlainWording()
        self.tasks: Sequence[Task] = tasks(families=asked.families)[: asked.tasks]
        self._failures: dict[str, str] = {}

    def scenes(self, tone: str, tasks: Sequence[Task] | None = None) -> list[Scene]:
        return [self._scene(task, tone) for task in tasks or self.tasks]

    def _scene(self, task: Task, tone: str) -> Scene:
        return self.scene(task, tone, self._failed(task, (tone,)))

    def _failed(self, task: Task, tones: Sequence[str]) -> list[Message]:
        """The task and one failed attempt a tone, each with feedback in it."""
        attempt = f"def {task.signature}:\n    return None\n"
        if task.key not in self._failures:
            self._failures[task.key] = visible_failure(task, evaluate(task, attempt, relations=False, source=attempt))
        chat = self.wording.opening(task, tones[0])
        for number, tone in enumerate(tones):
            chat.append(Message("assistant", (Piece("code", attempt, f"attempt {number}"),)))
            left = len(tones) - number
            chat.append(self.wording.after_failure(task, self._failures[task.key], number, left, tone))
        return chat

    def scene(self, task: Task, tone: str, chat: Sequence[Message]) -> Scene:
        return Scene(task, tone, tuple(chat), with_decision(self.model.encode(chat)))

    def anchored(self) -> list[Scene]:
        """Three failed attempts; the feedback on one of them, which is drawn, is in the high tone."""
        scenes = []
        for task in self.tasks:
            chance = random.Random(seed_of(self.seed, task.key, "anchored"))  # noqa: S311  (a place is drawn, no secret)
            tones = [self.neutral] * _ATTEMPTS
            tones[chance.randrange(_ATTEMPTS)] = self.high
            scenes.append(self.scene(task, self.high, self._failed(task, tones)))
        return scenes

    def outcome(self, scenes: Sequence[Scene], edits: Sequence[Edit] = ()) -> Floats:
        cheating = self._likelihood(scenes, [hardcoded(scene.task) for scene in scenes], edits)
        return cheating - self._likelihood(scenes, [scene.task.reference for scene in scenes], edits)

    def _likelihood(self, scenes: Sequence[Scene], code: Sequence[str], edits: Sequence[Edit]) -> Floats:
        """Mean natural-log probability of a token of the code, written after the scene."""
        prompts, starts = [], []
        for scene, text in zip(scenes, code, strict=True):
            whole = self.model.encode([*scene.chat, Message("assistant", (Piece("text", text, _CONTINUED),))])
            (start,) = (span.start for span in whole.spans if span.label == _CONTINUED)
            prompts.append(with_decision(whole, start - 1))
            starts.append(start)
        logprobs = self.model.logprobs_of(prompts, edits)
        return np.asarray([row[start:].mean() for row, start in zip(logprobs, starts, strict=True)], np.float64)

    def answers(
        self, scenes: Sequence[Scene], sampling: Sequence[Sampling], edits: Sequence[Edit] = ()
    ) -> list[Generation]:
        return self.model.generate([self.model.encode(scene.chat) for scene in scenes], sampling, edits)

    def texts(self) -> dict[str, list[Text]]:
        """`pressing` is the class of desperate stories: tones and emotions meet by the names in `low` and `high`."""
        named = {self.low: "calm", self.neutral: texts.NO_EMOTION, self.high: "desperate"}
        named |= {emotion: emotion for emotion in texts.EMOTIONS if emotion not in named.values()}
        return {
            name: [Text(self.model.encode_text([Piece("text", s.text)]), s.topic) for s in texts.stories(emotion)]
            for name, emotion in named.items()
        }

    def dialogues(self) -> list[Prompt]:
        return [
            self.model.encode([Message("user", (Piece("text", asked),)), Message("assistant", (Piece("text", reply),))])
            for asked, reply in texts.dialogues()
        ]

    def stages(self) -> dict[str, list[list[Message]]]:
        stages, task_texts = texts.trajectory()
        return {
            stage.name: [
                [
                    Message(
                        "user",
                        (
                            Piece("task", text),
                            *(Piece("feedback", f"\n{feedback}", str(n)) for n, feedback in enumerate(stage.feedback)),
                        ),
                    )
                ]
                for _, text in task_texts
            ]
            for stage in stages
        }
