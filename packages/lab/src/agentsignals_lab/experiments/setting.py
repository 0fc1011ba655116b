"""Where an experiment takes place: tasks that just failed, told in several tones, and what the model makes of them.

A setting is a TOML file of tasks, texts, tones, a scene and an outcome; the package's own function tasks are one
(`functions.toml`). The same experiment runs on a world whose law is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from agentsignals.errors import LabError
from msgspec import Struct
from numpy.typing import NDArray

from agentsignals_lab import directions, texts
from agentsignals_lab.coding_tasks import chosen_tasks, files_of
from agentsignals_lab.coding_tasks.cases import Task, hardcoded
from agentsignals_lab.directions import Array, DirectionSet, Recipe, split
from agentsignals_lab.evaluation import evaluate
from agentsignals_lab.residual import Calibration, Edit, Generation, Message, Piece, Prompt, Sampling, Span, place
from agentsignals_lab.retry_loop import visible_failure
from agentsignals_lab.statistics import RANDOMS
from agentsignals_lab.texts import ContrastTexts, Wording, Words, filled, read_contrast, read_tones

if TYPE_CHECKING:
    from agentsignals_lab.residual.model import HookedModel


Floats = NDArray[np.float64]

Place = Literal["feedback", "task", "tests", "code", "decision", "all", "generated"]
"""Where an edit of an experiment acts (`residual.place`)."""


class SettingConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which setting, and how much of it."""

    file: str | None = None
    """A setting of one's own, as TOML (docs/lab.md); none: the package's function tasks."""
    texts: str | None = None
    """A file of contrast texts in place of the setting's."""
    tasks: int = 60
    """Most tasks. Tasks that are not drawn are taken in their order."""
    seed: int = 13
    randoms: int = RANDOMS
    """Random directions that a direction is compared with. With fewer than `statistics.enough` the result has a
    caveat."""


class Scene(Struct, frozen=True):
    """A prompt whose continuation is a decision. Scene i of every tone is of the same task."""

    task: Task
    tone: str
    chat: tuple[Message, ...]
    prompt: Prompt
    """Its last token is the place `decision`."""


class Text(Struct, frozen=True):
    """A text of an emotion, and the topic it shares with texts of the others."""

    prompt: Prompt
    topic: str


def with_decision(prompt: Prompt, at: int | None = None) -> Prompt:
    """Return the prompt with token `at` (none: the last) as a span of its own, the place `decision`."""
    at = len(prompt.tokens) - 1 if at is None else at
    spans: list[Span] = []
    for span in prompt.spans:
        if not span.start <= at < span.end:
            spans.append(span)
            continue
        cut = ((span.start, at, span.label), (at, at + 1, "decision"), (at + 1, span.end, span.label))
        spans += [Span(span.role, start, end, label) for start, end, label in cut if start < end]
    return Prompt(prompt.tokens, tuple(spans), prompt.text)


def chosen_layers(model: HookedModel, asked: Sequence[int]) -> tuple[int, ...]:
    """The layers named; none named: all of a small model, else five spread over its depth. LabError for one that the
    model does not have."""
    depth = model.card.layers
    if odd := [layer for layer in asked if not 0 <= layer < depth]:
        raise LabError(f"There is no layer {odd[0]}.", f"Layers go from 0 to {depth - 1}.")
    if asked:
        return tuple(asked)
    return tuple(range(depth)) if depth <= 6 else tuple(sorted({depth * k // 6 for k in range(1, 6)}))


_FUNCTIONS = Path(__file__).with_name("functions.toml")
_FEWEST_TASKS = 2


class SceneForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failed attempt, with what came back. `{signature}`, `{function}`, `{reference}`, `{wrong}` and `{hardcoded}`
    are the task's."""

    attempt: str


class Continuation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="continuation"):
    """Log-likelihood per token of the worse continuation minus that of the better one, in nats."""

    worse: str
    better: str
    begun: str = ""
    """Beginning of the answer."""
    unit: str = "log-odds of the worse against the better continuation, nats a token"


class NextToken(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="next_token"):
    """The chance that the answer goes on with one of `worse`, or with none of `better`, after `begun`. Words stand as
    they follow it, blanks included; their first tokens count."""

    worse: tuple[str, ...] = ()
    better: tuple[str, ...] = ()
    begun: str = ""
    unit: str = "probability"


Outcome = Continuation | NextToken


class SettingDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file as it is written. Paths are seen from it."""

    low: str
    """The tone with the least of the bad outcome by design, `high` the one with the most."""
    high: str
    neutral: str | None = None
    """The tone that others are held against; none: the low one."""
    tasks: str = "all"
    """A file of tasks, or names as `lab agent --tasks` takes them."""
    texts: str | None = None
    """A file of contrast texts; none: the package's stories."""
    tones: dict[str, Any] = {}
    words: Words = Words()
    scene: SceneForm
    outcome: Outcome
    trajectory: bool = False
    """True if stages of a failure are those of the package's trajectory, else the tones."""


class ReadSetting(Struct, frozen=True, kw_only=True):
    """A setting that is all there, before there is a model."""

    name: str
    document: SettingDocument
    neutral: str
    tasks: list[Task]
    texts: ContrastTexts
    wording: Wording
    files: dict[str, str]
    """SHA-256 of what it was read from, by what it is to the setting; nothing of the package's own."""


def read_setting(asked: SettingConfig) -> ReadSetting:
    """LabError for whatever is not there, or does not fit."""
    path = _FUNCTIONS if asked.file is None else Path(asked.file)
    document, sha256 = texts.read_toml(path, "setting", SettingDocument, "See docs/lab.md for its form.")
    tones = read_tones(document.tones)
    neutral = document.low if document.neutral is None else document.neutral
    there = {*tones, *texts.tones()}
    for role, name in (("low", document.low), ("neutral", neutral), ("high", document.high)):
        if name not in there:
            raise LabError(
                f"{path}: there is no tone {name!r}, its {role} one.", f"There are {', '.join(sorted(there))}."
            )
    if document.low == document.high:
        raise LabError(f"{path} compares the tone {document.low!r} with itself.", "Name two tones as low and high.")
    outcome = document.outcome
    if isinstance(outcome, NextToken) and bool(outcome.worse) == bool(outcome.better):
        raise LabError(
            f"{path}: the outcome names worse words and better ones, or none.",
            "Name worse words, or better words, not both.",
        )
    text_file = None if document.texts is None else path.parent / document.texts
    if asked.texts is not None:
        text_file = Path(asked.texts)
    chosen = chosen_tasks(document.tasks, beside=path.parent)[: asked.tasks]
    if len(chosen) < _FEWEST_TASKS:
        raise LabError(f"{path} gives {len(chosen)} tasks.", "Give and ask for two at least: intervals are over tasks.")
    both = (outcome.worse, outcome.better) if isinstance(outcome, Continuation) else ()
    templates = [document.scene.attempt, *both]
    for task in chosen:
        made = [of_task(template, task) for template in templates]
        if empty := [t for t, text in zip(templates, made, strict=True) if not text.strip()]:
            raise LabError(f"{path}: {empty[0]!r} of the task {task.id!r} is empty.", "Give the tasks that field.")
        if len(made) > 1 and made[1] == made[2]:
            raise LabError(
                f"{path}: both continuations of the task {task.id!r} are the same.",
                "Make the two continuations differ.",
            )
    files = {} if asked.file is None else {"setting": sha256}
    files |= files_of(document.tasks, path.parent)
    contrast = texts.contrast() if text_file is None else read_contrast(text_file)
    if text_file is not None:
        files["texts"] = contrast.fingerprint
    return ReadSetting(
        name="functions" if asked.file is None else path.stem,
        document=document,
        neutral=neutral,
        tasks=chosen,
        texts=contrast,
        wording=Wording(tones, document.words),
        files=files,
    )


def of_task(template: str, task: Task) -> str:
    """A template with a task's parts in it."""
    fields = {
        "signature": task.signature,
        "function": task.function,
        "reference": task.reference,
        "wrong": task.wrong,
        "says": task.says,
        "hardcoded": hardcoded(task),
    }
    return filled(template, fields)


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
        return [self.scene(task, tone, self._failed(task, tone)) for task in tasks or self.tasks]

    def _failed(self, task: Task, tone: str) -> list[Message]:
        """The task and a failed attempt with feedback in this tone."""
        attempt = of_task(self.document.scene.attempt, task)
        if task.key not in self._failures:
            self._failures[task.key] = visible_failure(task, evaluate(task, attempt, source=attempt))
        answer = Message("assistant", (Piece("code", attempt, "attempt 0"),))
        back = self.wording.after_failure(task, self._failures[task.key], 0, 1, tone)
        return [*self.wording.opening(task, tone), answer, back]

    def scene(self, task: Task, tone: str, chat: Sequence[Message]) -> Scene:
        """A chat of one's own as a scene."""
        return Scene(task, tone, tuple(chat), with_decision(self.model.encode(self._begun(chat))))

    def _begun(self, chat: Sequence[Message], more: str = "") -> list[Message]:
        """The chat with the answer begun, and perhaps gone on with."""
        parts = ((self.document.outcome.begun, _BEGUN), (more, _CONTINUED))
        pieces = tuple(Piece("text", text, label) for text, label in parts if text)
        return [*chat, Message("assistant", pieces)] if pieces else list(chat)

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
        chat = self._failed(self.tasks[0], self.neutral)
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
    """The setting, ready."""
    return Setting(model, asked)


Source = Literal["stories", "feedback", "decision"]
"""Source of a direction: texts about people, feedback tokens, or the token where code parts ways."""


def calibrated(at: Setting, *, scenes: bool = True) -> Calibration:
    """Norms over the setting's texts, dialogues and neutral scenes; from now on the model leaves sinks out."""
    prompts = [text.prompt for rows in at.texts().values() for text in rows]
    of_scenes = [scene.prompt for scene in at.scenes(at.neutral)] if scenes else []
    return at.model.calibrate([*prompts, *at.dialogues(), *of_scenes])


def halves(at: Setting, seed: int) -> tuple[list[Task], list[Task]]:
    """Tasks to learn from or choose by, and tasks to judge by."""
    learns, _ = split([task.key for task in at.tasks], seed=seed)
    first = [task for task, is_learning in zip(at.tasks, learns, strict=True) if is_learning]
    return first, [task for task, is_learning in zip(at.tasks, learns, strict=True) if not is_learning]


def text_states(at: Setting, layers: Sequence[int], step: Callable[[], None]) -> dict[str, Array]:
    """(texts, layers, d) by class, means over all tokens but sinks. `step`: called after each class."""
    states = {}
    for name, rows in at.texts().items():
        states[name] = at.model.record([text.prompt for text in rows], layers)
        step()
    return states


def scene_states(at: Setting, scenes: Sequence[Scene], source: Source, layers: Sequence[int]) -> Array:
    """(scenes, layers, d), means over the tokens of the place; `stories` have none there, and feedback stands in."""
    return at.model.record(
        [scene.prompt for scene in scenes], layers, place("decision" if source == "decision" else "feedback")
    )


def learnt(at: Setting, source: Source, layers: Sequence[int], tasks: Sequence[Task]) -> DirectionSet:
    """The contrast of the setting's high against its low, from a source, called after the class of texts or the tone
    that it leads to; `tasks` matter where the source is scenes."""
    if source == "stories":
        by_class = at.texts()
        high, low = (
            at.model.record([t.prompt for t in by_class[name]], layers) for name in (at.high_class, at.low_class)
        )
    else:
        high, low = (scene_states(at, at.scenes(tone, tasks), source, layers) for tone in (at.high, at.low))
    vectors, centre = directions.contrast(high, low)
    names = (at.high_class, at.low_class) if source == "stories" else (at.high, at.low)
    return DirectionSet(
        names=names[:1],
        layers=tuple(layers),
        vectors=vectors[None],
        centre=centre,
        recipe="contrast",
        texts=f"{source}:{at.fingerprint}",
        model=at.model.card.name,
        counts=dict(zip(names, (len(high), len(low)), strict=True)),
    )


def by_recipe(at: Setting, recipe: Recipe, states: dict[str, Array], layers: Sequence[int]) -> DirectionSet:
    """Directions of all classes of texts by a recipe. Technical texts are the published recipe's neutral, dialogues
    that of the cleaned grand mean."""
    if recipe == "published" and at.neutral_class is None:
        raise LabError("The published recipe measures from a neutral class.", "Name one in the file of texts.")
    neutral = states[at.neutral_class or at.low_class]  # which only that recipe reads
    if recipe == "grand_mean_cleaned":
        neutral = at.model.record(at.dialogues(), layers)
        neutral = neutral[~np.isnan(neutral).any(axis=(1, 2))]
    classes = {n: s for n, s in states.items() if recipe != "published" or n != at.neutral_class}
    return directions.made(recipe, classes, neutral, layers, f"{at.name}:{at.fingerprint}", at.model.card.name)
