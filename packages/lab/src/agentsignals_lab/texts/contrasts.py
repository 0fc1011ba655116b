"""Contrast texts: classes of texts that share topics, from a TOML file.

A direction is made of some topics and judged on others, so classes share topics; a text that names its class would make
a direction of that word, and a text that stands twice would be on both sides of the split: both are refused.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct

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
    try:
        raw = path.read_bytes()
        document = msgspec.convert(tomllib.loads(raw.decode()), TextsDocument)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise LabError(f"The texts {path} can't be read: {problem}", _FORM) from problem
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
        fingerprint=hashlib.sha256(raw).hexdigest(),
    )


_FORM = 'It has low, high and [classes.NAME] with topic = ["text", …]. See docs/lab.md.'


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
