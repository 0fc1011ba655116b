"""`python -m tests.fuzz --minutes 1`: ends with 1 and keeps the files when something is wrong."""

from __future__ import annotations

import argparse
import faulthandler
import secrets
import sys
import tempfile
from pathlib import Path

from tests.fuzz.checking import failures, rows_alone
from tests.fuzz.runs import keep, run, told

_STUCK_SECONDS = 600.0
"""Longer than any batch: what hangs below Python can't be stopped, only shown."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=None, help="without one it changes, and is printed")
    parser.add_argument("--batches", type=int, default=None, help="so many batches, however long they take")
    parser.add_argument("--keep", type=Path, default=None, help="folder for the files of failures")
    parser.add_argument("--again", type=Path, default=None, help="a folder of files to check again")
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.minutes * 60 + _STUCK_SECONDS, exit=True)
    with tempfile.TemporaryDirectory() as name:
        return _again(options.again, Path(name)) if options.again is not None else _fuzz(options, Path(name))


def _fuzz(options: argparse.Namespace, folder: Path) -> int:
    seed = options.seed if options.seed is not None else secrets.randbelow(10**9)
    print(f"seed {seed}", flush=True)
    found = run(seed, options.minutes * 60, folder, options.batches)
    print("\n".join(told(found)))
    if found.failures:
        kept = options.keep or Path(tempfile.mkdtemp(prefix="agentsignals-fuzz-"))
        for failure in found.failures:
            print(f"kept in {keep(failure, seed, kept)}")
    return 1 if found.failures else 0


def _again(source: Path, folder: Path) -> int:
    files = {p.relative_to(source).as_posix(): p.read_bytes() for p in source.rglob("*") if p.is_file()}
    problems = failures(files, rows_alone(folder), folder)
    print("\n".join(problems) or "nothing is wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
