"""Counted instructions of a cold `analyze`: the yardstick that no load of the machine moves. Needs Valgrind.

    python -m benchmarks.instructions                  the figures, beside the last ones of an environment like this
    python -m benchmarks.instructions --record         the same, written into instructions.jsonl beside this file
    python -m benchmarks.instructions --gate           the same; ends with 1 where they are 10 % above the last recorded
    python -m benchmarks.instructions FOLDER           of other traces (98 MB take a quarter of an hour)

Two processes under `valgrind --tool=callgrind`, hashes unseeded: a run over an empty folder (the interpreter and what
every run loads), and a cold run. Without a folder the traces are the demo's
sessions in their formats, copied with fresh ids, and one long session: few enough that one process reads them.

Only figures of one environment are comparable (Python, the libraries, the processor's kind): each record names its own,
and the gate says so and passes where none is like this one.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests import long_sessions

from agentsignals.cli import demo_corpus
from benchmarks.corpora import renamed

RECORDS = Path(__file__).with_suffix(".jsonl")
MOST = 1.10
"""A run may take so many times the instructions that were recorded last."""
COPIES, TURNS = 2, 30
"""Of the demo's sessions; of the long one."""
LIBRARIES = ("pyarrow", "msgspec", "duckdb", "numpy")
_COUNTED = re.compile(r"Collected : (\d+)")


def make_corpus(folder: Path) -> Path:
    """The made-up traces under the folder; the same bytes every time."""
    first = demo_corpus.make_corpus(folder / "copy0")
    files = sorted(p for p in first.rglob("*") if p.is_file())
    for copy in range(1, COPIES):
        for path in files:
            target = folder / f"copy{copy}" / renamed(str(path.relative_to(first)).encode(), copy).decode()
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(renamed(path.read_bytes(), copy))
    (folder / "long").mkdir()
    long_sessions.make("claude-code", TURNS, folder / "long")
    return folder


def counted(command: list[str]) -> int:
    """The instructions of a process and of those it begins."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        valgrind = ["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={folder}/%p"]
        run = subprocess.run([*valgrind, *command], capture_output=True, text=True, env=environment, check=False)
    if run.returncode > 1:  # 1: nothing was found, which is what an empty folder says
        sys.exit(f"{' '.join(command)} failed: {run.stderr[-2_000:]}")
    return sum(map(int, _COUNTED.findall(run.stderr)))


def environment() -> dict[str, str]:
    """What the count depends on beside the code."""
    installed = {d.metadata["Name"].lower(): d.version for d in importlib.metadata.distributions()}
    libraries = {name: installed.get(name, "none") for name in LIBRARIES}
    return {"python": platform.python_version(), "machine": platform.machine(), **libraries}


def measured(traces: Path) -> dict[str, int]:
    """The instructions of both processes, in millions."""
    python = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty"
        empty.mkdir()

        def analyze(source: Path, store: str) -> list[str]:
            words = ["analyze", str(source), "--store", str(Path(folder) / store), "--jobs", "1", "--quiet"]
            return [python, "-m", "agentsignals", *words]

        writing = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run(analyze(traces, "once"), capture_output=True, check=True, env=writing)  # modules are compiled
        counts = {
            "nothing": counted(analyze(empty, "none")),
            "cold": counted(analyze(traces, "cold")),
        }
    return {name: round(n / 1e6) for name, n in counts.items()}


def last_like(here: dict[str, str]) -> dict[str, Any] | None:
    """The last record of an environment like this one."""
    lines = RECORDS.read_text("utf-8").splitlines() if RECORDS.exists() else []
    alike = [r for r in map(json.loads, lines) if r["environment"] == here]
    return alike[-1] if alike else None


def commit() -> str:
    """The commit of this checkout, shortened; empty outside of one."""
    words = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--gate", action="store_true")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("This needs Valgrind, which counts instructions: install the package `valgrind`.")
    with tempfile.TemporaryDirectory() as folder:
        counts = measured(options.folder or make_corpus(Path(folder)))
    here, last = environment(), None if options.folder else last_like(environment())
    for name, millions in counts.items():
        before = f"{last['millions'][name]:9,} at {last['commit']}" if last else ""
        print(f"{name:8} {millions:9,} million {before}")
    if options.record:
        with RECORDS.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"commit": commit(), "millions": counts, "environment": here}) + "\n")
    if options.gate and last is None:
        print(f"No record is of an environment like this one ({here}): nothing to hold it against.")
    elif options.gate and last is not None:
        dearer = [n for n in ("nothing", "cold") if counts[n] > MOST * last["millions"][n]]
        if dearer:
            sys.exit(f"More than {MOST:.0%} of what was recorded at {last['commit']}: {', '.join(dearer)}.")


if __name__ == "__main__":
    main()
