"""Runs one agent against the scripted model in a throw-away home, without another network than this machine's own.

    python -m benchmarks.upstream.trial NAME CACHE        # under `unshare --net`, as `run` starts it

Writes `CACHE/runs/NAME/trial.json`: the version, each command with its exit code and last output, and the tokens that
each answer of the model stated.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from benchmarks.upstream.model_server import Script, served

AGENTS = Path(__file__).with_name("agents.toml")
PROMPT = "Read notes.txt, list a folder that does not exist, and write the first two fruits to list.txt."
AGAIN = "Read the notes again and say how many fruits there are."
LONGEST_S = 150
_LAST_CHARS = 1500


class Agent(Struct, kw_only=True, forbid_unknown_fields=True):
    """An agent of `agents.toml`."""

    name: str
    registry: str
    package: str
    needs: str = ""
    """A package of the same registry that must be on the path: a newer Node."""
    install: list[str] = []
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    version: list[str] = []
    setup: list[list[str]] = []
    commands: list[list[str]] = []
    reads: list[str] = []
    """What is read if it is not the home folder."""
    counts_tokens: bool = False
    """It estimates tokens itself, and logs none that the model states."""
    not_run: str = ""


class Ran(Struct):
    """One command of a trial."""

    exit_code: int
    last_output: str


def agents() -> list[Agent]:
    return msgspec.convert(tomllib.loads(AGENTS.read_text("utf-8"))["agent"], list[Agent])


def installed_in(cache: Path, package: str) -> Path:
    return cache / "packages" / package.split(maxsplit=1)[0].replace("/", "+")


def programs(cache: Path, agent: Agent) -> list[Path]:
    """Return the folders of an agent's programs, in the order of the path."""
    own = installed_in(cache, agent.package)
    folders = [own / ("node_modules/.bin" if agent.registry == "npm" else "venv/bin")]
    return [installed_in(cache, agent.needs) / "node_modules/.bin", *folders] if agent.needs else folders


def filled(text: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def ran(command: list[str], folder: Path, environment: dict[str, str], longest_s: int = LONGEST_S) -> Ran:
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=longest_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return Ran(124, (late.stdout or b"")[-_LAST_CHARS:].decode("utf-8", "replace"))
    except OSError as problem:
        return Ran(127, str(problem))
    return Ran(done.returncode, done.stdout[-_LAST_CHARS:].decode("utf-8", "replace"))


def trial(agent: Agent, cache: Path) -> dict[str, Any]:
    """Run an agent and return what happened."""
    place = cache / "runs" / agent.name
    shutil.rmtree(place, ignore_errors=True)
    home, folder = place / "home", place / "home" / "work" / "fruits"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("apple\npear\nplum\n", encoding="utf-8")
    script, paths = Script(str(folder)), list[str]()
    server = served(script, log=paths)
    names = {
        "url": f"http://127.0.0.1:{server.server_port}", "home": str(home), "folder": str(folder), "prompt": PROMPT,
        "again": AGAIN,
    }  # fmt: skip
    path = os.pathsep.join([*map(str, programs(cache, agent)), "/usr/local/bin", "/usr/bin", "/bin"])
    environment = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", "CI": "1", "SHELL": "/bin/bash"}
    environment |= {name: filled(value, names) for name, value in agent.env.items()}
    for git in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "notes"],
    ):
        subprocess.run(["git", *git], cwd=folder, env=environment, check=True)
    for name, text in agent.files.items():
        file = Path(filled(name, names))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(filled(text, names), encoding="utf-8")
    version = ran(agent.version, folder, environment, 60)
    for command in agent.setup:
        ran([filled(part, names) for part in command], folder, environment)
    done = [ran([filled(part, names) for part in command], folder, environment) for command in agent.commands]
    server.shutdown()
    return {
        "version": version.last_output, "commands": msgspec.to_builtins(done), "asked": paths,
        "sent": msgspec.to_builtins(script.sent),
    }  # fmt: skip


def main() -> None:
    name, cache = sys.argv[1], Path(sys.argv[2])
    agent = next(a for a in agents() if a.name == name)
    told = trial(agent, cache)
    (cache / "runs" / name / "trial.json").write_text(json.dumps(told, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
