"""Text sets: stories by emotion, neutral dialogues, a failure trajectory; tones, and words around tasks.

They are data files beside this module, each with a version; `fingerprint` tells which words an experiment used. Stories
never name their emotion, share their topics over emotions, and are about equally long (design/lab.md#texts). A person's
texts and tones come from TOML files of their own.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab.coding_tasks.cases import Task, examples, words
from agentsignals_lab.residual import Message, Piece
from agentsignals_lab.runs import seed_of


def read_toml(path: Path, named: str, kind: Any, hint: str) -> tuple[Any, str]:
    """A TOML file as such a struct, and its SHA-256. LabError when it can't be read, or is none."""
    try:
        raw = path.read_bytes()
        return msgspec.convert(tomllib.loads(raw.decode()), kind), hashlib.sha256(raw).hexdigest()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise LabError(f"The {named} {path} can't be read: {problem}", hint) from problem


_FOLDER = Path(__file__).parent
_VARIANTS = 3
"""Stories of a topic."""


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8"))


@cache
def fingerprint() -> str:
    """Twelve hex digits over all text sets, in the order of their names."""
    files = sorted(_FOLDER.glob("*.toml"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:12]


def contrast() -> ContrastTexts:
    """Stories of calm against desperate, of other emotions, and of none.

    Story number i of a topic is made of the same places in the lists for every emotion, so classes match sentence by
    sentence.
    """
    document = _read("stories")
    classes: dict[str, tuple[tuple[str, str], ...]] = {}
    for emotion, sentences in document["emotions"].items():
        first, then = sentences["first"], sentences["then"]
        stories = []
        for topics in (document["topics"]["coding"], document["topics"]["other"]):
            # Steps that share no divisor: over the topics each sentence is used equally often.
            picks = (n * 5 % (len(first) * len(then)) for n in range(len(topics) * _VARIANTS))
            for n, pick in enumerate(picks):
                topic, opening = list(topics.items())[n // _VARIANTS]
                stories.append((topic, f"{opening} {first[pick % len(first)]} {then[pick // len(first)]}"))
        classes[emotion] = tuple(stories)
    dialogues = tuple((asked, reply) for asked, reply in document["dialogues"]["turns"])
    return ContrastTexts(
        low="calm", high="desperate", neutral="none", classes=classes, dialogues=dialogues, fingerprint=fingerprint()
    )


def trajectory() -> tuple[dict[str, list[str]], list[str]]:
    """The stages of a failure, with what had come back by then, and the tasks that each is told of."""
    document = _read("trajectory")
    stages = {stage["name"]: stage["feedback"] for stage in document["stages"]}
    return stages, [task["text"] for task in document["tasks"]]


@cache
def tones() -> dict[str, Tone]:
    """The tones of retry loops, by name."""
    return read_tones(_read("feedback")["tones"])


class Tone(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One manner of saying the same. `{failure}` is what the visible tests said, `{left}` the attempts left."""

    system: str = ""
    """Before the task; empty: no system message."""
    after_failure: str | tuple[str, ...]
    """Several wordings: each task and attempt gets one of them, the same in every condition of the tone."""

    def feedback(self, failure: str, left: int, pick: int = 0) -> str:
        """Return the feedback after a failed attempt, in wording number `pick`, counted round."""
        wordings = (self.after_failure,) if isinstance(self.after_failure, str) else self.after_failure
        return filled(wordings[pick % len(wordings)], {"failure": failure, "left": str(left)})


def read_tones(tables: Any) -> dict[str, Tone]:
    """Tones by name. LabError for a table that is no tone, or one without words."""
    try:
        read = msgspec.convert(tables, dict[str, Tone])
    except msgspec.ValidationError as problem:
        raise LabError(
            f"A tone is wrong: {problem}", "Write [tones.NAME] with after_failure and, perhaps, system."
        ) from problem
    for name, tone in read.items():
        if not name.isprintable() or not name.strip() or not tone.after_failure:
            raise LabError(f"The tone {name!r} has no name or no words.", "Give it after_failure, one text or several.")
    return read


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with `{name}` replaced; other braces stay.

    In one go: a failure message may hold braces, and it comes from code a model wrote.
    """
    return re.sub(r"\{(" + "|".join(values) + r")\}", lambda match: values[match[1]], template)


FEWEST_TOPICS = 2
"""Fewest topics of a class: one to make a direction of, one to judge it by."""


class ContrastTexts(Struct, frozen=True, kw_only=True):
    """Texts by class, and which classes a direction parts."""

    low: str
    high: str
    neutral: str | None
    """The class that the published recipe measures from; None: that recipe can't be made."""
    classes: dict[str, tuple[tuple[str, str], ...]]
    """(topic, text) by class."""
    dialogues: tuple[tuple[str, str], ...]
    """Questions and answers that are of no class; the cleaned grand mean takes out what they vary in."""
    fingerprint: str
    """SHA-256 of the file; of the package's, that of all its text sets, shortened."""


class TextsDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file as it is written: `[classes.NAME]`, in each `topic = ["text", …]`."""

    low: str
    high: str
    neutral: str | None = None
    classes: dict[str, dict[str, tuple[str, ...]]]
    dialogues: tuple[tuple[str, str], ...] = ()


def read_contrast(path: Path) -> ContrastTexts:
    """The texts of a file. LabError when it can't be read, or its texts make no contrast."""
    hint = 'It has low, high and [classes.NAME] with topic = ["text", …]. See docs/lab.md.'
    document, fingerprint = read_toml(path, "texts", TextsDocument, hint)
    for role in ("low", "high", "neutral"):
        name = getattr(document, role)
        if name is not None and name not in document.classes:
            raise LabError(f"{path} has no class {name!r}, its {role} one.", f"It has {', '.join(document.classes)}.")
    if document.low == document.high:
        raise LabError(f"{path} contrasts {document.low!r} with itself.", "Name two classes as low and high.")
    _check(path, document)
    classes = {
        name: tuple((topic, text) for topic, texts in topics.items() for text in texts)
        for name, topics in document.classes.items()
    }
    return ContrastTexts(
        low=document.low,
        high=document.high,
        neutral=document.neutral,
        classes=classes,
        dialogues=document.dialogues,
        fingerprint=fingerprint,
    )


def _check(path: Path, document: TextsDocument) -> None:
    topics = set(document.classes[document.high])
    if len(topics) < FEWEST_TOPICS:
        raise LabError(
            f"{path} has {len(topics)} topic.",
            f"Give at least {FEWEST_TOPICS}: directions are computed from some and tested on the others.",
        )
    seen: dict[str, str] = {}
    for name, by_topic in document.classes.items():
        if differ := sorted(topics ^ by_topic.keys()):
            raise LabError(
                f"{path}: not every class has the topic {differ[0]!r}.", "Give every class texts on the same topics."
            )
        for topic, texts in by_topic.items():
            where = f"{name}/{topic}"
            if not texts:
                raise LabError(f"{path} has no text of {where}.", "Give every class texts on every topic.")
            for text in texts:
                if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE):
                    raise LabError(
                        f"{path}: a text of {where} names its class.",
                        "Rewrite the text: a direction would detect that word alone.",
                    )
                if text in seen:
                    raise LabError(f"{path}: the same text is of {seen[text]} and of {where}.", "Remove one of them.")
                seen[text] = where


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

    def __init__(self, own: Mapping[str, Tone] | None = None, words: Words | None = None) -> None:
        self.by_tone = {**tones(), **(own or {})}
        self.words = words or Words()

    def opening(self, task: Task, tone: str) -> list[Message]:
        """The chat before the first attempt."""
        system = self._tone(tone).system
        fields = {"words": words(task), "says": task.says, "signature": task.signature, "function": task.function}
        pieces = [Piece("task", filled(self.words.task, fields))]
        tests = examples(task)
        if self.words.case:
            shown = ((", ".join(map(repr, case.args)), repr(case.expected)) for case in task.visible)
            of_cases = ({"function": task.function, "args": args, "expected": expected} for args, expected in shown)
            tests = "".join(filled(self.words.case, fields) for fields in of_cases)
        if tests:
            pieces.append(Piece("tests", filled(self.words.tests, {"tests": tests})))
        asked = Message("user", tuple(pieces))
        return [Message("system", (Piece("system", system),)), asked] if system else [asked]

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
