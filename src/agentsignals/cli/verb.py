"""A verb beside those of the main job: a module of its own, which loads what it needs when it runs.

To add one: a module in this folder with a `VERB = Verb(...)`, and a line in `MODULES`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import NamedTuple

MODULES = (
    "agree",
    "annotate",
    "attribute",
    "collect",
    "compare",
    "discover",
    "export",
    "findings",
    "forget",
    "lab",
    "label",
    "replicate",
    "scan",
    "serve",
    "validate",
)


class Verb(NamedTuple):
    """A verb of the command line: what it says of itself, its arguments beside the common ones, and what it does."""

    name: str
    says: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    """Gives the exit code."""


@cache
def verbs() -> dict[str, Verb]:
    """The verbs that have modules of their own, by name."""
    declared = (import_module(f"agentsignals.cli.{name}").VERB for name in MODULES)
    return {v.name: v for v in declared}
