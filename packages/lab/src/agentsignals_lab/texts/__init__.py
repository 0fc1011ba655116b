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

from agentsignals_lab.texts.contrasts import ContrastTexts
from agentsignals_lab.texts.tones import Tone, read_tones

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
