"""A setting as a TOML file: which tasks, texts and tones, what a scene is, what its outcome. No model is asked."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab import texts
from agentsignals_lab.coding_tasks import Task, hardcoded
from agentsignals_lab.coding_tasks.chosen import chosen_tasks, files_of
from agentsignals_lab.experiments.setting import SettingConfig
from agentsignals_lab.retry.wording import Wording, Words
from agentsignals_lab.texts.contrasts import ContrastTexts, read_contrast
from agentsignals_lab.texts.tones import filled, read_tones

_FUNCTIONS = Path(__file__).with_name("functions.toml")
_FEWEST_TASKS = 2


class SceneForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failed attempt, with what came back. `{signature}`, `{function}`, `{reference}`, `{wrong}` and `{hardcoded}`
    are the task's."""

    attempt: str
    attempts: int = 3
    """Attempts of a scene with anchors, one of them followed by feedback in the high tone."""


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
    try:
        raw = path.read_bytes()
        document = msgspec.convert(tomllib.loads(raw.decode()), SettingDocument)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise LabError(f"The setting {path} can't be read: {problem}", "See docs/lab.md for its form.") from problem
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
    chosen = chosen_tasks(document.tasks, beside=path.parent)
    if asked.families:
        chosen = [task for task in chosen if task.family in asked.families]
    if len(chosen) < _FEWEST_TASKS:
        raise LabError(f"{path} has {len(chosen)} tasks.", "Give at least two: intervals are over tasks.")
    for task in chosen[: asked.tasks]:
        check_fields(path, document, task)
    files = {} if asked.file is None else {"setting": hashlib.sha256(raw).hexdigest()}
    files |= files_of(document.tasks, path.parent)
    contrast = texts.contrast() if text_file is None else read_contrast(text_file)
    if text_file is not None:
        files["texts"] = contrast.fingerprint
    return ReadSetting(
        name="functions" if asked.file is None else path.stem,
        document=document,
        neutral=neutral,
        tasks=chosen[: asked.tasks],
        texts=contrast,
        wording=Wording(tones, document.words),
        files=files,
    )


def check_fields(path: Path, document: SettingDocument, task: Task) -> None:
    """LabError where a template takes what a task does not have, or two continuations come out the same."""
    templates = [document.scene.attempt]
    if isinstance(document.outcome, Continuation):
        templates += [document.outcome.worse, document.outcome.better]
    made = [of_task(template, task) for template in templates]
    if empty := [t for t, text in zip(templates, made, strict=True) if not text.strip()]:
        raise LabError(f"{path}: {empty[0]!r} of the task {task.id!r} is empty.", "Give the tasks that field.")
    if len(made) > 1 and made[1] == made[2]:
        raise LabError(
            f"{path}: both continuations of the task {task.id!r} are the same.", "Make the two continuations differ."
        )


def of_task(template: str, task: Task) -> str:
    """A template with a task's parts in it."""
    fields = {
        "signature": task.signature,
        "function": task.function,
        "reference": task.reference,
        "wrong": task.wrong,
        "says": task.says,
        "hardcoded": hardcoded(task) if task.function and task.visible else "",
    }
    return filled(template, fields)
