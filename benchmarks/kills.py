"""Kills a verb at random moments of its work, again and again, and compares the store that it leaves, once it ran to
its end, with that of a run nobody disturbed.

    python -m benchmarks.kills --verb analyze --times 40 [--seed 1]
    python -m benchmarks.kills --beside 60          two writers and three readers on one store, for so many seconds

A moment lies between that in which the program is loaded and the end of the work, as the last runs had it. A kill that
came too late does not count: another one is tried. The last line says how many times the verb was killed, how many of
them found something written already, how often the tables differed afterwards and how often the store knew of any
damage then; it leaves with 1 when either happened, or when the kills were fewer than asked for.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from tests.repositories.story import Story, block

from agentsignals.cli import demo_corpus
from agentsignals.store import Store, tables
from agentsignals.store.query import rows

VERBS = ("analyze", "measure", "collect", "attribute", "label", "export")
_UNLIKE = ("created_at",)
"""Columns of when something was done, which no two runs share."""
_MOMENT = re.compile(r"\b1[5-9][0-9]{14}\b")
"""The same within a value, in microseconds: labels tell when they were made."""
_TRIES = 4
"""For each kill that is to hit, at most."""
_COMMITS = 24
"""Of the repository that is collected and attributed: enough of them for a kill to find the verb at work."""


class Stage:
    """A folder with sources, and the commands that a verb is killed in."""

    def __init__(self, folder: Path, verb: str) -> None:
        self.folder, self.verb = folder, verb
        self.store = folder / "store"
        if verb in ("collect", "attribute"):
            self.sources = [str(_repository(folder / "repository", _COMMITS))]
        else:
            self.sources = [str(demo_corpus.make_corpus(folder / "corpus"))]
        if verb in ("measure", "label", "export"):
            ran(self.command("analyze", *self.sources, "--quiet"))
        self.before = folder / "before"
        if self.store.exists():
            shutil.copytree(self.store, self.before)  # with their times: a copy is the same store

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "agentsignals", *words, "--store", str(self.store)]

    def tried(self) -> list[str]:
        """The verb's command."""
        match self.verb:
            case "analyze":
                return self.command("analyze", *self.sources, "--quiet", "--jobs", "2")
            case "measure":
                return self.command("measure", "--quiet", "--embedder", "chars")
            case "label":
                return self.command("label", "sentiment", "--by", "rules", "--quiet")
            case "export":
                return self.command("export", "--to", "parquet", "--quiet", "-o", str(self.folder / "out"))
            case _:
                return self.command(self.verb, *self.sources, "--quiet")

    def reset(self) -> None:
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        shutil.rmtree(self.store, ignore_errors=True)
        if self.before.exists():
            shutil.copytree(self.before, self.store)

    def written(self) -> set[tuple[str, int]]:
        """The files of the store and of an export, by length."""
        return {
            (str(path), path.stat().st_size)
            for folder in (self.store, self.folder / "out")
            for path in folder.rglob("*")
            if path.is_file()
        }

    def after(self) -> dict[str, list[str]]:
        """The rows of every table, in an order of their own; of an export also what it wrote."""
        if self.verb == "export":
            return {
                p.name: sorted(map(str, pl.read_parquet(p).rows())) for p in sorted((self.folder / "out").iterdir())
            }
        return content(self.store)


def content(store: Path) -> dict[str, list[str]]:
    """The rows of every table of a store, in an order of their own."""
    opened = Store(store)
    found = {}
    for name in (*tables.NAMES, *tables.OF_REPOSITORIES):
        wanted = ", ".join(f'"{c}"' for c in tables.COLUMNS[name] if c not in _UNLIKE)
        asked = rows(opened, f"SELECT {wanted} FROM {name}")[1]
        found[name] = sorted(_MOMENT.sub("moment", str(row)) for row in asked)
    return found


def killed(command: list[str], after_s: float) -> float | None:
    """Kills a command, with all it had started, after so many seconds; how long it took where it ended before."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        process.wait(after_s)
        return time.monotonic() - started
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def ran(command: list[str]) -> float:
    """Runs a command to its end; the seconds it took."""
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return time.monotonic() - started


def kills(verb: str, times: int, seed: int) -> int:
    chance = random.Random(seed)  # noqa: S311  (no secret)
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), verb)
        loads_s = min(ran([sys.executable, "-m", "agentsignals", verb, "--help"]) for _ in range(3))
        stage.reset()
        lasts_s = ran(stage.tried())
        clean = stage.after()
        hit = wrote = differed = unwell = tries = 0
        while hit < times and tries < _TRIES * times:
            tries += 1
            stage.reset()
            before = stage.written()
            took_s = killed(stage.tried(), chance.uniform(min(loads_s, lasts_s / 2), lasts_s))
            if took_s is not None:
                lasts_s = min(took_s, lasts_s)  # the machine has become quicker
                continue
            hit += 1
            wrote += stage.written() != before
            shutil.rmtree(stage.folder / "out", ignore_errors=True)
            lasts_s = (lasts_s + ran(stage.tried())) / 2
            now = stage.after()
            unlike = [name for name in clean if clean[name] != now.get(name)]
            store = Store(stage.store)
            store.check_files(thorough=True)
            if unlike or store.warnings:
                print(f"{verb} {hit}: {', '.join(unlike)} differ; {'; '.join(store.warnings)}", flush=True)
            differed += bool(unlike)
            unwell += bool(store.warnings)
        print(
            f"{verb}: killed {hit} times of {times} ({tries} tries, {lasts_s:.1f} s), {wrote} of them after it had "
            f"written; {differed} differ, {unwell} unwell",
            flush=True,
        )
    return 1 if differed or unwell or hit < times else 0


def beside(seconds: float) -> int:
    """Two writers whose sources grow and three readers, all on one store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        corpus = demo_corpus.make_corpus(Path(folder) / "corpus")
        halves = [Path(folder) / "a", Path(folder) / "b"]
        for n, path in enumerate(sorted(p for p in corpus.rglob("*") if p.is_file())):
            target = halves[n % 2] / path.relative_to(corpus)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        words = [sys.executable, "-m", "agentsignals"]
        named = ["--store", str(store)]
        ran([*words, "analyze", *map(str, halves), "--quiet", *named])
        whole = int(rows(Store(store), "SELECT count(*) FROM sessions")[1][0][0])
        counted = {"analyze": 0, "query": 0, "report": 0, "failed": 0, "short": 0}
        commands = [
            *([*words, "analyze", str(half), "--quiet", "--jobs", "1", *named] for half in halves),
            *([*words, "query", "SELECT count(DISTINCT session_id) FROM turns", "--csv", *named] for _ in range(2)),
            [*words, "report", "-o", str(Path(folder) / "r.md"), "--quiet", *named],
        ]
        running = {n: _begun(command) for n, command in enumerate(commands)}
        until = time.monotonic() + seconds
        turns = rows(Store(store), "SELECT count(DISTINCT session_id) FROM turns")[1][0][0]
        while running:
            for n, process in list(running.items()):
                if process.poll() is None:
                    continue
                out, err = process.communicate()
                verb = commands[n][3]
                counted[verb] += 1
                if process.returncode or err.strip():
                    counted["failed"] += 1
                    print(f"{verb}: {err.strip() or out.strip()}")
                if verb == "query" and out.split()[-1:] != [str(turns)]:
                    counted["short"] += 1
                del running[n]
                if time.monotonic() < until:
                    if verb == "analyze":
                        _touch(halves[n])
                    running[n] = _begun(commands[n])
            time.sleep(0.02)
        left = int(rows(Store(store), "SELECT count(*) FROM sessions")[1][0][0])
        print(f"{counted}; {left} of {whole} sessions at the end")
        return 1 if counted["failed"] or counted["short"] or left != whole else 0


def _begun(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _touch(folder: Path) -> None:
    """Has every file look changed."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path)


def _repository(folder: Path, commits: int) -> Path:
    story = Story(folder)
    story.human("app.py", block("old", 3))
    story.commit("base")
    for n in range(commits):
        agent = story.agent(f"s{n}")
        agent.prompt()
        agent.write(f"s{n}.py", block(f"s{n}", 4))
        agent.say()
        story.commit(f"s{n}", agent)
    story.publish()
    return story.root


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verb", choices=VERBS, action="append")
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--beside", type=float, metavar="SECONDS")
    return parser.parse_args()


def main() -> int:
    options = _arguments()
    if options.beside:
        return beside(options.beside)
    return max([kills(verb, options.times, options.seed) for verb in options.verb or VERBS])


if __name__ == "__main__":
    sys.exit(main())
