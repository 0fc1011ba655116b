"""`python -m agentsignals`."""

from __future__ import annotations

import contextlib
import os
import sys

from agentsignals.cli import main


def run() -> None:
    """The console script. Leaves at once when all is said: taking the interpreter down object by object costs more than
    a warm run does, and DuckDB reports its own leaks on the way.
    """
    code = main()
    with contextlib.suppress(BrokenPipeError):  # the reader went away with the last words: nobody is left to tell
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
