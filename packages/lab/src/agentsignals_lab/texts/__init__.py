"""Text sets: stories by emotion, neutral dialogues, a failure trajectory, words around tasks in four tones.

They are data files beside this module, each with a version; `fingerprint` tells which words an experiment used. Stories
never name their emotion, share their topics over emotions, and are about equally long (design/lab.md#texts).
"""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab.texts.contrasts import ContrastTexts
from agentsignals_lab.texts.tones import Tone, read_tones

_FOLDER = Path(__file__).parent

EMOTIONS = ("calm", "patient", "confident", "frustrated", "desperate", "stuck", "stressed")
NO_EMOTION = "none"

TONES = ("neutral", "calm", "pressing", "honest")

_VARIANTS = 3


class Story(Struct, frozen=True):
    """A short text about a person and a thing they do."""

    topic: str
    """Shared by all emotions: what a held-out split goes by."""
    text: str


class Stage(Struct, frozen=True):
    """A point of a failure trajectory: what had come back by then."""

    name: str
    feedback: tuple[str, ...]


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8"))


@cache
def fingerprint() -> str:
    """Twelve hex digits over all text sets, in the order of their names."""
    files = sorted(_FOLDER.glob("*.toml"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:12]


def stories(emotion: str, variants: int = _VARIANTS) -> list[Story]:
    """Stories of one emotion, `variants` (1 to 16) a topic.

    Story number i of a topic is made of the same places in the lists for every emotion, so sets match sentence by
    sentence. LabError for an emotion that has none.
    """
    document = _read("stories")
    if emotion not in document["emotions"]:
        raise LabError(f"There are no stories of {emotion!r}.", f"Say one of {', '.join(document['emotions'])}.")
    first, then = document["emotions"][emotion]["first"], document["emotions"][emotion]["then"]
    if not 1 <= variants <= len(first) * len(then):
        raise LabError(f"{variants} variants of a topic.", f"Say 1 to {len(first) * len(then)}.")
    made = []
    for kind in ("coding", "other"):
        for place, (topic, opening) in enumerate(document["topics"][kind].items()):
            for variant in range(variants):
                # Steps that share no divisor: over the topics each sentence is used equally often.
                pick = (place * variants + variant) * 5 % (len(first) * len(then))
                made.append(Story(topic, " ".join((opening, first[pick % len(first)], then[pick // len(first)]))))
    return made


def dialogues() -> list[tuple[str, str]]:
    """Neutral questions and answers; the main directions among them are nothing of emotion."""
    return [(asked, reply) for asked, reply in _read("stories")["dialogues"]["turns"]]


def trajectory() -> tuple[list[Stage], list[tuple[str, str]]]:
    """The stages of a failure trajectory, and the tasks (name, text) that each is told of."""
    document = _read("trajectory")
    stages = [Stage(stage["name"], tuple(stage["feedback"])) for stage in document["stages"]]
    return stages, [(task["name"], task["text"]) for task in document["tasks"]]


@cache
def tones() -> dict[str, Tone]:
    """The tones of retry loops, by name."""
    return read_tones(_read("feedback")["tones"])


def contrast() -> ContrastTexts:
    """The stories as texts by class: calm against desperate, and stories of no emotion."""
    rows = {emotion: tuple((s.topic, s.text) for s in stories(emotion)) for emotion in _read("stories")["emotions"]}
    return ContrastTexts(
        low="calm",
        high="desperate",
        neutral=NO_EMOTION,
        classes=rows,
        dialogues=tuple(dialogues()),
        fingerprint=fingerprint(),
    )
