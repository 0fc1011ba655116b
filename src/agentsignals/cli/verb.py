"""A verb beside those of the main job: a module of its own, which loads what it needs when it runs.

To add one: a module in this folder with a `VERB = Verb(...)`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from agentsignals.model.registry import Registry


class Verb(NamedTuple):
    """A verb of the command line: what it says of itself, its arguments beside the common ones, and what it does."""

    name: str
    says: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    """Gives the exit code."""


VERBS = Registry[Verb]("verb", "agentsignals.cli", "VERB", lambda unit: isinstance(unit, Verb), r"\w+\.py")


@cache
def verbs() -> dict[str, Verb]:
    """The verbs that have modules of their own, by name. Other packages add none: no look at what is installed."""
    return {verb.name: verb for verb in (place.load() for place in VERBS.inside.values())}
