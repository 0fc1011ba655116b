"""`python -m agentsignals`."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

FEW_CIRCLES = 200_000
"""New objects before the garbage collector runs. There are hardly any reference cycles here. At the default of 700 it
walks all imports again and again, at 100,000 once more in each process: 90 ms of a cold run of 98 MB
(docs/decisions/006)."""


def run() -> None:
    """Run the console script. The process exits without cleaning up: taking the interpreter down costs more than a warm
    run, and DuckDB reports its own leaks on the way."""
    gc.set_threshold(FEW_CIRCLES)
    # NumPy's threads wait for each other by spinning, which costs more than they give on our small matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from agentsignals.cli import main  # noqa: PLC0415  (who interrupts us as we load is told so in words, too)

        code = main()
    except KeyboardInterrupt:
        print("agentsignals: interrupted.", file=sys.stderr)
        code = 130
    with contextlib.suppress(BrokenPipeError):  # the reader went away with the last words: nobody is left to tell
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
