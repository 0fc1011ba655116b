"""Which small faults the tests notice: each change of `mutations.toml` is made alone in a copy of the tree, and the
tests of its subject run there.

    python -m benchmarks.mutations [--jobs 2] [--only TEXT] [--most 10]

A line a change: noticed, SURVIVED, or stale (its text is no longer found exactly once); then the share that survives.
Ends with 1 when that is more than `--most` in a hundred, or when a change is stale. The corpus is not used.

The changes were drawn from the source without a look at the tests: of all numeric constants, entries of tables,
comparisons, formulas, exported values, types of columns and compared words, each in the order of their files, every
k-th. Those that change no result were left out, each for the reason given at the end of the file.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
SOURCE = "src/agentsignals"
LIST = Path(__file__).with_suffix(".toml")
LONGEST_S = 600
"""A run that takes so long is ended, and counted as one that noticed nothing."""
_COPIED = ("src", "tests", "docs", "benchmarks", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutation:
    """One change of one file below `src/agentsignals`, and the tests that should notice it."""

    kind: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def changed(self, source: str) -> str | None:
        """The changed text of the file; None when the old text does not stand there exactly once."""
        return source.replace(self.old, self.new) if source.count(self.old) == 1 else None


def mutations() -> list[Mutation]:
    """The list, with the tests that its table of subjects names."""
    document = tomllib.loads(LIST.read_text("utf-8"))
    return [
        Mutation(kind=m["kind"], file=m["file"], old=m["old"], new=m["new"], tests=tuple(m["tests"]))
        for m in document["mutation"]
    ]


def copied(folder: Path) -> Path:
    """A copy of the tree whose compiled modules are told from the source's content, not from its time."""
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src", "tests"]
    subprocess.run(command, cwd=folder, check=True)
    return folder


def ran(tree: Path, tests: tuple[str, ...]) -> tuple[bool, str]:
    """Whether no test fails in that tree, and what they say last."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not corpus"]
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, f"--basetemp={tree / 'tmp'}", *tests],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True, f"no end in {LONGEST_S} s"
    if done.returncode > 1:  # nothing was collected, or pytest itself failed: of a changed module, an import error
        return False, (done.stdout + done.stderr)[-2_000:]
    return done.returncode == 0, done.stdout[-2_000:]


def tried(tree: Path, mutation: Mutation) -> str:
    """`noticed`, `SURVIVED` or `stale`."""
    path = tree / SOURCE / mutation.file
    whole = path.read_text("utf-8")
    changed = mutation.changed(whole)
    if changed is None:
        return "stale"
    path.write_text(changed, "utf-8")
    try:
        passed, _ = ran(tree, mutation.tests)
    finally:
        path.write_text(whole, "utf-8")
    return "SURVIVED" if passed else "noticed"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="changes whose file, kind or text has this")
    parser.add_argument("--most", type=float, default=10, help="of a hundred changes that may survive (10)")
    args = parser.parse_args(argv)
    chosen = [m for m in mutations() if any(args.only in text for text in (m.file, m.kind, m.new))]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for n in range(args.jobs):
            trees.put(copied(Path(folder) / str(n)))
        tree = trees.get()
        passed, words = ran(tree, tuple(sorted({t for m in chosen for t in m.tests})))
        trees.put(tree)
        if not passed:
            print(f"The tests fail without any change:\n{words}")
            return 2

        def one(mutation: Mutation) -> str:
            tree = trees.get()
            try:
                result = tried(tree, mutation)
            finally:
                trees.put(tree)
            print(f"{result:9}{mutation.kind:11}{mutation.file}: {' '.join(mutation.new.split())[:120]}", flush=True)
            return result

        with ThreadPoolExecutor(args.jobs) as pool:
            counts = Counter(pool.map(one, chosen))
    share = 100 * counts["SURVIVED"] / max(counts["SURVIVED"] + counts["noticed"], 1)
    print(
        f"{counts['noticed']} noticed, {counts['SURVIVED']} survived ({share:.1f} %), {counts['stale']} stale; "
        f"{time.monotonic() - started:.0f} s"
    )
    return 1 if share > args.most or counts["stale"] else 0


if __name__ == "__main__":
    sys.exit(main())
