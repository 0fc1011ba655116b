"""The whole `analyze` against a bare loop of `orjson.loads` over every line of the same bytes, in one run, interleaved.

    python -m benchmarks.analyze FOLDER [--rounds 5] [--json]

Each figure is a process of its own, its CPU time (user + system, children included) and peak memory taken from the
operating system; interpreter start-up (`python -c pass`) is subtracted from both sides. Order turns round every round,
so that a busy machine hurts all alike: the ratios are the result, the seconds are not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BASELINE = """
import sys, orjson
from pathlib import Path
for path in sorted(p for p in Path(sys.argv[1]).rglob("transcript.*")):
    data = path.read_bytes()
    try:
        orjson.loads(data)
        continue
    except orjson.JSONDecodeError:
        pass
    for line in data.split(b"\\n"):
        if line:
            try:
                orjson.loads(line)
            except orjson.JSONDecodeError:
                pass
"""
LINES = BASELINE.replace(
    """    try:
        orjson.loads(data)
        continue
    except orjson.JSONDecodeError:
        pass
""",
    """    if path.suffix == ".json":
        orjson.loads(data)
        continue
""",
)


def spent(command: list[str]) -> tuple[float, float, int]:
    """CPU seconds, wall seconds and peak memory (MiB, of the largest process) of a command."""
    import time  # noqa: PLC0415

    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - started
    if status:
        sys.exit(f"{' '.join(command)} failed: {child.stderr.read().decode() if child.stderr else ''}")
    return used.ru_utime + used.ru_stime, wall, used.ru_maxrss // 1024


def main() -> None:
    options = arguments()
    python = sys.executable
    work = Path(tempfile.mkdtemp(prefix="agentsignals-bench-"))
    stores = {jobs: work / f"store{jobs}" for jobs in (1, 2)}

    def analyze(jobs: int) -> list[str]:
        base = [python, "-m", "agentsignals", "analyze", options.folder, "--store", str(stores[jobs])]
        return [*base, "--jobs", str(jobs), "--quiet"]

    tasks = {
        "start-up": lambda: spent([python, "-c", "pass"]),
        "import agentsignals": lambda: spent([python, "-c", "import agentsignals"]),
        "orjson.loads": lambda: spent([python, "-c", LINES, options.folder]),
        "analyze cold, 1 process": lambda: (shutil.rmtree(stores[1], ignore_errors=True), spent(analyze(1)))[1],
        "analyze warm, 1 process": lambda: spent(analyze(1)),
        "analyze cold, 2 processes": lambda: (shutil.rmtree(stores[2], ignore_errors=True), spent(analyze(2)))[1],
    }
    measured: dict[str, list[tuple[float, float, int]]] = {name: [] for name in tasks}
    for name, task in tasks.items():
        task()  # once unmeasured: compiles modules, fills the page cache
    for n in range(options.rounds):
        names = list(tasks)[1:] if n % 2 else list(tasks)
        order = names if n % 2 == 0 else sorted(names, key=lambda x: ("warm" in x, x))
        for name in order:
            measured[name].append(tasks[name]())
    shutil.rmtree(work, ignore_errors=True)
    report(options, measured)


def report(options: argparse.Namespace, measured: dict[str, list[tuple[float, float, int]]]) -> None:
    start = statistics.median(cpu for cpu, _, _ in measured["start-up"])
    base = statistics.median(cpu for cpu, _, _ in measured["orjson.loads"]) - start
    size = sum(p.stat().st_size for p in Path(options.folder).rglob("transcript.*"))
    rows = []
    for name, runs in measured.items():
        cpu = statistics.median(r[0] for r in runs) - (0 if name == "start-up" else start)
        wall = statistics.median(r[1] for r in runs)
        low, high = min(r[0] for r in runs) - start, max(r[0] for r in runs) - start
        rows.append(
            {
                "task": name,
                "cpu_s": cpu,
                "min": low,
                "max": high,
                "wall_s": wall,
                "ratio": cpu / base,
                "rss_mib": max(r[2] for r in runs),
            }
        )
    if options.json:
        print(json.dumps({"bytes": size, "rounds": options.rounds, "tasks": rows}, indent=2))
        return
    print(f"{size / 1e6:.1f} MB of transcripts, {options.rounds} rounds; CPU less interpreter start-up ({start:.3f} s)")
    print(f"{'task':28} {'cpu_s':>7} {'min':>7} {'max':>7} {'wall_s':>7} {'x orjson':>9} {'peak MiB':>9}")
    for r in rows:
        print(
            f"{r['task']:28} {r['cpu_s']:7.3f} {r['min']:7.3f} {r['max']:7.3f} {r['wall_s']:7.3f} {r['ratio']:9.2f} {r['rss_mib']:9}"
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    corpus = Path(__file__).parents[2] / "shared" / "corpus" / "sessions"
    parser.add_argument("folder", nargs="?", default=str(corpus))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
