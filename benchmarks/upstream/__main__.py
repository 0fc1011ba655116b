"""Installs the newest version of each agent, runs it against the scripted model, and reports what differs.

    make watch-upstream [ARGS="--only codex opencode --installed"]

Packages, homes and the report (`report.json`) are in `~/.cache/agentsignals-upstream` or where `--cache` says; the page
is `docs/upstream.md`. An agent runs in a network namespace of its own, where there is nothing but the scripted model.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec

from agentsignals.formats import homes
from benchmarks.upstream.compare import Report, compared
from benchmarks.upstream.page import written
from benchmarks.upstream.trial import Agent, agents, filled, installed_in

_APART = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
"""No network but this machine's own, and nothing that an agent starts outlives its trial."""
PAGE = Path(__file__).parents[2] / "docs" / "upstream.md"


def install(agent: Agent, cache: Path, python: str) -> str:
    """Install the newest version, and what it needs. Return what went wrong, or an empty text."""
    problem = ""
    for package, options in ((agent.needs, []), (agent.package, agent.install)):
        folder = installed_in(cache, package or "none")
        if not package or (package == agent.needs and folder.exists()):
            continue
        folder.mkdir(parents=True, exist_ok=True)
        if agent.registry == "npm":
            node = installed_in(cache, agent.needs) / "node_modules/.bin" if agent.needs else folder
            command = [
                "npm",
                "install",
                "--prefix",
                str(folder),
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
                *options,
            ]
            command += [name if "@" in name[1:] else f"{name}@latest" for name in package.split()]
        else:
            node = folder
            if not (folder / "venv").exists():
                subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
            command = [
                str(folder / "venv/bin/python"),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--upgrade",
                *package.split(),
            ]
        environment = os.environ | {"PATH": f"{node}{os.pathsep}{os.environ['PATH']}"}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            problem = next((line for line in reversed(lines) if "rror" in line), "no reason")[:200]
    return problem


def run(agent: Agent, cache: Path, python: str | None) -> Report:
    """Install one agent for this Python, unless that is None, run it, and compare what it wrote."""
    if agent.not_run:
        return Report(agent=agent.name, package=agent.package, problem=agent.not_run)
    if python and (problem := install(agent, cache, python)):
        return Report(agent=agent.name, package=agent.package, problem=f"not installed: {problem}")
    inside = f'ip link set lo up && exec "{sys.executable}" -m benchmarks.upstream.trial {agent.name} "{cache}"'
    subprocess.run([*_APART, "bash", "-c", inside], check=True)
    return reported(agent, cache)


def reported(agent: Agent, cache: Path) -> Report:
    """Compare what the last trial of an agent left."""
    place = cache / "runs" / agent.name
    told = json.loads((place / "trial.json").read_text("utf-8"))
    places = {"home": str(place / "home"), "folder": str(place / "home/work/fruits")}
    looked_for = [home[2:] for home in homes().get(agent.name, ()) if home.startswith("~/")]
    sources = [Path(filled(text, places)) for text in agent.reads]
    sources = sources or [path for pattern in looked_for for path in sorted((place / "home").glob(pattern))]
    report = compared(agent.name, told, sources, counts_tokens=agent.counts_tokens)
    report.package = agent.package
    found = re.search(r"\d+\.\d+[\w.+-]*\w", told["version"])
    report.version = found[0] if found else ""
    failed = [c for c in told["commands"] if c["exit_code"]]
    if not told["sent"]:
        last = failed[0]["last_output"].strip().splitlines()[-1:] if failed else []
        report.problem = f"it never asked the model: {' '.join(last)[-160:] or 'no reason'}"
    return report


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "agentsignals-upstream")
    arguments.add_argument("--only", nargs="+", metavar="AGENT", default=[])
    arguments.add_argument("--installed", action="store_true", help="run what is installed; ask no registry")
    arguments.add_argument("--python", default=sys.executable, help="for agents in Python: some need a newer one")
    arguments.add_argument("--compare", action="store_true", help="run nothing; compare what the last runs left")
    options = arguments.parse_args()
    cache = options.cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    saved = cache / "report.json"
    before = json.loads(saved.read_text("utf-8"))["agents"] if saved.exists() else []
    reports = {row["agent"]: msgspec.convert(row, Report) for row in before}
    for agent in agents():
        if options.only and agent.name not in options.only:
            continue
        if options.compare and not agent.not_run and (cache / "runs" / agent.name / "trial.json").exists():
            reports[agent.name] = reported(agent, cache)
        elif not options.compare or agent.not_run:
            reports[agent.name] = run(agent, cache, None if options.installed else options.python)
        if report := reports.get(agent.name):
            print(f"{agent.name} {report.version}: {report.problem or report.summary()}", flush=True)
    ordered = [reports[a.name] for a in agents() if a.name in reports]
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    saved.write_text(json.dumps({"date": date, "agents": msgspec.to_builtins(ordered)}, indent=1), encoding="utf-8")
    PAGE.write_text(written(ordered, date), encoding="utf-8")
    print(f"{saved}\n{PAGE}")
    return 1 if any(report.differs for report in ordered) else 0


if __name__ == "__main__":
    sys.exit(main())
