"""The verb `lab`: the activation lab is a package of its own, found by its entry point."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from typing import Any

from agentsignals.errors import UsageError

GROUP = "agentsignals.packages"
INSTALL = "pip install './packages/lab[torch]'"


def installed_lab() -> Any:
    """Return the lab's module of verbs (`VERBS`, `SHARED`, `run_lab`); None where the lab is not installed."""
    if not any(name.startswith("agentsignals_lab") for folder in sys.path for name in _names(folder)):
        return None
    from importlib.metadata import entry_points  # 60 ms, which `--help` without a lab does not take

    return next((found.load() for found in entry_points(group=GROUP, name="lab")), None)


def _names(folder: str) -> list[str]:
    """Return what a folder of packages holds; nothing of an archive, or of one that can't be listed."""
    with suppress(OSError):
        return os.listdir(folder or ".")  # noqa: PTH208  (a path object a file is slower)
    return []


def run_lab(options: argparse.Namespace) -> int:
    lab = installed_lab()
    if lab is None:
        raise UsageError(
            "The lab is not installed: it is a package of its own, agentsignals-lab.",
            f"In a checkout of agentsignals: {INSTALL}. Omit [torch] if your models run on a server.",
        )
    return int(lab.run_lab(options))
