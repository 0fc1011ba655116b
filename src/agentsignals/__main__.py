"""`python -m agentsignals`."""

from __future__ import annotations

import sys

from agentsignals.cli import main


def run() -> None:
    """The console script."""
    sys.exit(main())


if __name__ == "__main__":
    run()
