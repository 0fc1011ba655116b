"""What the program should cost, and what it costs: every row of the table of aims in one run.

    python -m benchmarks.aims [TRACES] [--work FOLDER] [--copies 1820] [--rounds 3] [--json]

Counted instructions (Valgrind) are the yardstick: CPU seconds of one run differ by a quarter, they do not. `x loop` is
times a bare loop of `orjson.loads` over the same lines, counted in the same way. Rows that would take Valgrind hours
are CPU seconds of a process and of those it begins, the start of an interpreter subtracted, medians of the rounds.

`TRACES`: sessions in folders by agent, one of them `claude-code` (default: the corpus beside the checkout). Four
corpora are made of them in the work folder (2 GB with all 1,820 copies): the traces as they are, 38 MB of Claude
Code (counted), those of Claude Code six times, and its fifteen smallest so many times with other words. They lie
as people's files do (`benchmarks/corpora.py`). The first line names the interpreter.
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
from benchmarks.corpora import make
from benchmarks.instructions import counted

LOOP = """
import sys, orjson
from pathlib import Path
for path in sorted(p for p in Path(sys.argv[1]).rglob("*.json*") if not p.name.startswith("entire.")):
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
PART_BYTES = 38_000_000
"""Sessions of Claude Code that are counted: Valgrind takes fifty times as long."""
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

    def analyze(self, corpus: str, jobs: int = 1) -> Run:
        """A cold run over a corpus, into a store of the corpus' name."""
        store = self.store(corpus)
        shutil.rmtree(store, ignore_errors=True)
        return self.run("analyze", str(self.work / corpus), "--store", store, "--jobs", str(jobs), "--quiet")

    def store(self, corpus: str) -> str:
        """Where a corpus' store lies."""
        return str(self.work / f"store-{corpus}")

    def instructions_ratio(self, corpus: str) -> float:
        """The instructions of a cold run against those of the bare loop."""
        loop = counted([sys.executable, "-c", LOOP, str(self.work / corpus)])
        shutil.rmtree(self.store(corpus), ignore_errors=True)
        words = ["analyze", str(self.work / corpus), "--store", self.store(corpus), "--jobs", "1", "--quiet"]
        return counted([sys.executable, "-m", "agentsignals", *words]) / loop

    def cpu_ratio(self, corpus: str) -> float:
        """The CPU seconds of a cold run against those of the bare loop, median of the rounds."""
        ratios = []
        for _ in range(self.rounds):
            loop = spent([sys.executable, "-c", LOOP, str(self.work / corpus)]).cpu_s - self.start
            ratios.append(self.analyze(corpus).cpu_s / loop)
        return statistics.median(ratios)

    def first_sentence_s(self, corpus: str) -> float:
        """Seconds until a cold run with two processes says what it has read so far, the least of the rounds."""
        waits = []
        for _ in range(self.rounds):
            shutil.rmtree(self.store(corpus), ignore_errors=True)
            words = ["analyze", str(self.work / corpus), "--store", self.store(corpus), "--jobs", "2", "--no-report"]
            command, began = [sys.executable, "-m", "agentsignals", *words], time.perf_counter()
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
                line = next((line for line in child.stderr or () if " read: " in line), None)
                waits.append(time.perf_counter() - began)
                child.communicate()
            if child.returncode or line is None:
                sys.exit(f"{' '.join(command)} ended with {child.returncode}, and said nothing of what it read")
        return min(waits)

    def least(self, *words: str) -> Run:
        """The best of the rounds of a command that changes nothing."""
        return min((self.run(*words) for _ in range(self.rounds)), key=lambda run: run.cpu_s)

    def appended(self, corpus: str) -> Run:
        """A run after one line more in one file of Claude Code."""
        file = min((self.work / corpus).rglob("*.jsonl"), key=str)
        with file.open("ab") as log:
            log.write(_LINE)
        words = ("analyze", str(self.work / corpus), "--store", self.store(corpus), "--jobs", "1", "--quiet")
        return self.run(*words, "--no-report")


def rows(bench: Bench, sessions_n: int) -> list[Row]:
    """All figures; `sessions_n` small sessions."""
    made = []
    if shutil.which("valgrind") is None:
        print("Valgrind, which counts instructions, is not installed: the first row is left out.", file=sys.stderr)
    else:
        made.append(Row("cold, Claude Code, instructions", bench.instructions_ratio("part"), 5.0, "x loop"))
    made.append(Row("cold, nine agents, CPU", bench.cpu_ratio("all"), 6.0, "x loop"))
    cold = bench.analyze("small", jobs=2)
    made.append(Row(f"{sessions_n:,} small sessions, each", cold.cpu_s / sessions_n * 1000, 1.5, "ms"))
    made.append(Row("peak memory of it, the largest process", cold.peak_mib, 250, "MiB"))
    sentence_s = bench.first_sentence_s("claude")
    made.append(Row("first sentence, Claude Code six times, jobs 2", sentence_s, 2.0, "s"))
    for corpus, nothing_s, append_s, findings_s, report_s in (
        ("all", 0.12, 0.3, 1.0, 1.5),
        ("small", 0.5, 0.6, 1.0, 4.0),
    ):
        store = bench.store(corpus)
        words = ("analyze", str(bench.work / corpus), "--store", store, "--jobs", "1", "--quiet", "--no-report")
        bench.run(*words)
        made.append(Row(f"nothing changed, {corpus}", bench.least(*words).cpu_s, nothing_s, "CPU s"))
        bench.run("findings", "--store", store)
        made.append(Row(f"one line appended, {corpus}", bench.appended(corpus).cpu_s, append_s, "CPU s"))
        made.append(
            Row(f"findings after it, {corpus}", bench.run("findings", "--store", store).cpu_s, findings_s, "CPU s")
        )
        # The first looks through all texts for secrets, and computes the signals that it reads. The last is kept whole.
        for which in ("first report", "report after a line", "report again"):
            if which == "report after a line":
                bench.appended(corpus)
                bench.run("findings", "--store", store)
            report = bench.run("report", "--store", store, "-o", str(bench.work / "report.html"))
            made.append(Row(f"{which}, {corpus}", report.cpu_s, report_s, "CPU s"))
            if which != "first report":
                made.append(Row(f"peak memory of it, {corpus}", report.peak_mib, 300, "MiB"))
    for verb, aim_s in (("--version", 0.3), ("--help", 0.3), ("sessions", 0.3)):
        words = (verb,) if verb.startswith("-") else (verb, "--store", bench.store("all"))
        made.append(Row(verb, bench.least(*words).cpu_s, aim_s, "CPU s"))
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
        if not (work / "part").exists():
            written = 0
            for path in sorted(claude.rglob("transcript.jsonl"), key=lambda path: path.parent.name):
                if written < PART_BYTES:
                    target = work / "part" / path.parents[1].name / f"{path.parent.name}.jsonl"
                    target.parent.mkdir(parents=True, exist_ok=True)
                    written += target.write_bytes(path.read_bytes())
        for corpus, copies, smallest in (("claude", 6, None), ("small", options.copies, 15)):
            if not (work / corpus).exists():
                make(claude, work / corpus, copies, smallest, is_varied=smallest is not None)
        made = rows(Bench(work, options.rounds), 15 * options.copies)
    if options.json:
        print(json.dumps({"interpreter": interpreter(), "rows": [row._asdict() for row in made]}, indent=2))
    else:
        print(interpreter(), *made, sep="\n")


if __name__ == "__main__":
    main()
