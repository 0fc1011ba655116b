"""What the program should cost, and what it costs: every row of the table in docs/scale.md in one run.

    python -m benchmarks.aims [TRACES] [--work FOLDER] [--copies 1820] [--rounds 3] [--json]

`TRACES`: sessions in folders by agent, one of them `claude-code` (default: the corpus beside the checkout). Three
corpora are made of them in the work folder (2 GB with all 1,820 copies): the traces as they are, those of Claude Code
six times, and its fifteen smallest so many times, each copy with ids of its own. CPU seconds are user and system time
of a process and of those it begins, the start of an interpreter subtracted; a ratio is to a bare loop of `orjson.loads`
over the same lines in the same round, medians of the rounds. What runs minutes is run once. The first line names the
interpreter.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import agentsignals
from agentsignals.store import Store
from benchmarks.corpora import make

LOOP = """
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
CORPUS = Path(__file__).parents[2] / "shared/corpus/sessions"
_ACROSS = "user.prior_sessions_same_repo"
_LINE = b'{"type":"summary","summary":"a line more","leafUuid":"00000000-0000-4000-8000-000000000000"}\n'


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


class Row(NamedTuple):
    """A figure beside its aim; `least` where more is better."""

    what: str
    figure: float
    aim: float
    unit: str
    least: bool = False

    def __str__(self) -> str:
        reached = self.figure >= self.aim if self.least else self.figure <= self.aim
        sign = ">=" if self.least else "<="
        return f"{self.what:48} {self.figure:9.2f} {sign} {self.aim:6.2f} {self.unit:8} {'yes' if reached else 'no'}"


class Bench:
    """Runs commands of the program over corpora in a work folder."""

    def __init__(self, work: Path, rounds: int) -> None:
        self.work, self.rounds = work, rounds
        self.start = statistics.median(spent([sys.executable, "-c", "pass"]).cpu_s for _ in range(3))

    def run(self, *words: str) -> Run:
        """One command of the program, the interpreter's start subtracted."""
        made = spent([sys.executable, "-m", "agentsignals", *words])
        return made._replace(cpu_s=made.cpu_s - self.start)

    def analyze(self, corpus: str, jobs: int = 1, cold: bool = True) -> Run:
        """A run over a corpus, into a store of the corpus' name."""
        store = self.store(corpus)
        if cold:
            shutil.rmtree(store, ignore_errors=True)
        return self.run("analyze", str(self.work / corpus), "--store", store, "--jobs", str(jobs), "--quiet")

    def store(self, corpus: str) -> str:
        """Where a corpus' store lies."""
        return str(self.work / f"store-{corpus}")

    def ratio(self, corpus: str) -> tuple[float, float]:
        """The cold run against the bare loop, median of the rounds; and its wall time, the least."""
        ratios, walls = [], []
        for _ in range(self.rounds):
            loop = spent([sys.executable, "-c", LOOP, str(self.work / corpus)]).cpu_s - self.start
            cold = self.analyze(corpus)
            ratios.append(cold.cpu_s / loop)
            walls.append(cold.wall_s)
        return statistics.median(ratios), min(walls)

    def least(self, *words: str) -> Run:
        """The best of the rounds of a command that changes nothing."""
        return min((self.run(*words) for _ in range(self.rounds)), key=lambda run: run.cpu_s)

    def appended(self, corpus: str) -> Run:
        """A run after one line more in one file of Claude Code."""
        file = min((self.work / corpus).rglob("*.jsonl"), key=str)
        with file.open("ab") as log:
            log.write(_LINE)
        return self.analyze(corpus, cold=False)


def rows(bench: Bench, sessions_n: int) -> list[Row]:
    """All figures; `sessions_n` small sessions."""
    made = []
    ratio, one_s = bench.ratio("claude")
    made.append(Row("cold, 1 process, Claude Code six times", ratio, 2.5, "x loop"))
    two_s = min(bench.analyze("claude", jobs=2).wall_s for _ in range(bench.rounds))
    made.append(Row("two processes against one, wall", one_s / two_s, 1.8, "x", least=True))
    made.append(Row("cold, 1 process, nine agents", bench.ratio("all")[0], 3.5, "x loop"))
    cold = bench.analyze("small", jobs=2)
    made.append(Row(f"{sessions_n:,} small sessions, each", cold.cpu_s / sessions_n * 1000, 1.0, "ms"))
    made.append(Row("peak memory of it, the largest process", cold.peak_mib, 250, "MiB"))
    for corpus, nothing_s, append_s, report_s in (("all", 0.12, 0.3, 2.0), ("small", 0.5, 1.0, 8.0)):
        store = bench.store(corpus)
        words = ("analyze", str(bench.work / corpus), "--store", store, "--jobs", "1", "--quiet")
        bench.run(*words)
        made.append(Row(f"nothing changed, {corpus}", bench.least(*words).cpu_s, nothing_s, "CPU s"))
        made.append(Row(f"one line appended, {corpus}", bench.appended(corpus).cpu_s, append_s, "CPU s"))
        explained = bench.least("explain", min(Store(store).manifest.sessions), _ACROSS, "--store", store)
        made.append(Row(f"explain {_ACROSS}, {corpus}", explained.cpu_s, 0.5, "CPU s"))
        report = bench.run("report", "--store", store, "-o", str(bench.work / "report.html"))
        made.append(Row(f"report, {corpus}", report.cpu_s, report_s, "CPU s"))
        made.append(Row(f"peak memory of it, {corpus}", report.peak_mib, 400, "MiB"))
    return made


def interpreter() -> str:
    """What ran it: two builds of 3.11 differed by a tenth (docs/decisions/006)."""
    name, version, compiler = platform.python_implementation(), platform.python_version(), platform.python_compiler()
    return f"{name} {version} [{compiler}], {sys.executable}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--work", type=Path, help="where corpora and stores go, and stay (default: a temporary folder)")
    parser.add_argument("--copies", type=int, default=1820, help="of the fifteen smallest sessions")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    compileall.compile_dir(str(Path(agentsignals.__file__).parent), quiet=2)  # as an installed package's modules are
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        claude = options.traces / "claude-code"
        if not (work / "all").exists():
            shutil.copytree(options.traces, work / "all", copy_function=shutil.copyfile)
        for corpus, copies, smallest in (("claude", 6, None), ("small", options.copies, 15)):
            if not (work / corpus).exists():
                make(claude, work / corpus, copies, smallest)
        made = rows(Bench(work, options.rounds), 15 * options.copies)
    if options.json:
        print(json.dumps({"interpreter": interpreter(), "rows": [row._asdict() for row in made]}, indent=2))
    else:
        print(interpreter(), *made, sep="\n")


if __name__ == "__main__":
    main()
