"""The whole `analyze` against a bare loop of `orjson.loads` over every line of the same bytes, in one run, interleaved.

    python -m benchmarks.analyze FOLDER [--rounds 7] [--json]

Each figure is a process of its own; CPU time (user + system, children too) and peak memory come from the operating
system. Interpreter start-up (`python -c pass`) is subtracted from all. The order turns round every round, so that a
busy machine hurts all alike: the ratios are the result, the seconds are not. Modules are compiled before anything is
measured, as an installed package's are.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import agentsignals

BASELINE = """
import sys, orjson
from pathlib import Path
for path in sorted(Path(sys.argv[1]).rglob("transcript.*")):
    data = path.read_bytes()
    if path.suffix == ".json":
        orjson.loads(data)
        continue
    for line in data.split(b"\\n"):
        if line:
            try:
                orjson.loads(line)
            except orjson.JSONDecodeError:
                pass
"""
START, BASE = "start-up", "orjson.loads"


class Run(NamedTuple):
    """One process: CPU and wall seconds, peak memory of the largest process in MiB."""

    cpu_s: float
    wall_s: float
    peak_mib: float


def spent(command: list[str]) -> Run:
    """Runs a command and tells what it used."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment) as child:
        _, status, used = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - started
        if status:
            sys.exit(f"{' '.join(command)} failed: {child.stderr.read().decode() if child.stderr else ''}")
        child.returncode = 0
    return Run(used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss / 1024)


def tasks(folder: str, work: Path) -> dict[str, Callable[[], Run]]:
    """What is measured, by name. `cold` starts without a store, `warm` on the one the cold run left."""
    python = sys.executable

    def analyze(jobs: int, cold: bool) -> Run:
        store = work / f"store{jobs}"
        if cold:
            shutil.rmtree(store, ignore_errors=True)
        named = [python, "-m", "agentsignals", "analyze", folder, "--store", str(store)]
        return spent([*named, "--jobs", str(jobs), "--quiet"])

    return {
        START: lambda: spent([python, "-c", "pass"]),
        "import agentsignals": lambda: spent([python, "-c", "import agentsignals"]),
        BASE: lambda: spent([python, "-c", BASELINE, folder]),
        "analyze cold, 1 process": lambda: analyze(1, cold=True),
        "analyze warm, 1 process": lambda: analyze(1, cold=False),
        "analyze cold, 2 processes": lambda: analyze(2, cold=True),
    }


def measured(folder: str, rounds: int) -> dict[str, list[Run]]:
    """Every task once a round, in turning order; once before, unmeasured, for the page cache."""
    compileall.compile_dir(str(Path(agentsignals.__file__).parent), quiet=2)
    work = Path(tempfile.mkdtemp(prefix="agentsignals-bench-"))
    try:
        todo = tasks(folder, work)
        runs: dict[str, list[Run]] = {name: [] for name in todo}
        for n in range(rounds + 1):
            for name in list(todo) if n % 2 else reversed(todo):
                run = todo[name]()
                if n:
                    runs[name].append(run)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return runs


def table(runs: dict[str, list[Run]]) -> list[dict[str, object]]:
    """Medians and extremes, start-up subtracted; ratios to the bare loop of the same round."""
    start = statistics.median(r.cpu_s for r in runs[START])
    rows = []
    for name, mine in runs.items():
        own = 0.0 if name == START else start
        ratios = [(r.cpu_s - own) / (b.cpu_s - start) for r, b in zip(mine, runs[BASE], strict=True)]
        cpu = [r.cpu_s - own for r in mine]
        rows.append(
            {
                "task": name,
                "cpu_s": statistics.median(cpu),
                "cpu_s_min": min(cpu),
                "wall_s": statistics.median(r.wall_s for r in mine),
                "ratio": statistics.median(ratios),
                "ratio_min": min(ratios),
                "ratio_max": max(ratios),
                "peak_mib": max(r.peak_mib for r in mine),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=str(Path(__file__).parents[2] / "shared/corpus/sessions"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    size = sum(p.stat().st_size for p in Path(options.folder).rglob("transcript.*"))
    rows = table(measured(options.folder, options.rounds))
    if options.json:
        print(json.dumps({"bytes": size, "rounds": options.rounds, "python": sys.version, "tasks": rows}, indent=2))
        return
    print(f"{size / 1e6:.1f} MB of transcripts, {options.rounds} rounds, Python {sys.version.split()[0]}")
    print(f"{'task':26} {'cpu_s':>7} {'min':>7} {'wall_s':>7} {'x orjson':>9} {'min':>6} {'max':>6} {'peak MiB':>9}")
    for r in rows:
        print("{task:26} {cpu_s:7.3f} {cpu_s_min:7.3f} {wall_s:7.3f}".format(**r), end=" ")
        print("{ratio:9.2f} {ratio_min:6.2f} {ratio_max:6.2f} {peak_mib:9.0f}".format(**r))


if __name__ == "__main__":
    main()
