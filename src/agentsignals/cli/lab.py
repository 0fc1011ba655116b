"""The verb `lab`: the activation lab is a package of its own, found by its entry point."""

from __future__ import annotations

import argparse
from importlib.metadata import entry_points
from typing import Any

from agentsignals.errors import UsageError

GROUP = "agentsignals.packages"
INSTALL = "pip install './packages/lab[torch]'"


def installed_lab() -> Any:
    """Return the lab's module of verbs (`VERBS`, `SHARED`, `run_lab`); None where the lab is not installed."""
    return next((found.load() for found in entry_points(group=GROUP, name="lab")), None)


def run_lab(options: argparse.Namespace) -> int:
    lab = installed_lab()
    if lab is None:
        raise UsageError(
            "The lab is not installed: it is a package of its own, agentsignals-lab.",
            f"In a checkout of agentsignals: {INSTALL}. It needs no torch for models on a server: omit [torch].",
        )
    return int(lab.run_lab(options))
