"""Tones: what is said around a task and after a failed attempt, from tables `[tones.NAME]` of a TOML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from agentsignals.errors import LabError
from msgspec import Struct


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
