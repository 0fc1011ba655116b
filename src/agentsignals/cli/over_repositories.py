"""What verbs about several repositories have in common: who does the work, and what is said of those that failed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentsignals.ingest.collection import RepositoryResults


def with_engine(parser: argparse.ArgumentParser) -> None:
    """Adds `--jobs` and `--engine`."""
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes (default: one a core, at most 8)")
    parser.add_argument(
        "--engine", metavar="NAME", default="local", help="what runs the workers (default local): docs/scale.md"
    )


def shown(results: RepositoryResults[Any], text: Callable[[Any], str], *, as_json: bool) -> int:
    """Prints what came of each repository; the exit code is 1 where none was done."""
    from agentsignals.cli.output import json_text, printable

    if as_json:
        print(json_text(results))
    else:
        failures = [f"failed      {printable(f.repo)}: {printable(f.reason)}" for f in results.failed]
        print("\n\n".join([*map(text, results.repositories), *(["\n".join(failures)] if failures else [])]))
    return 0 if results.repositories else 1
