"""A verb loads what it needs: no signal, no foreign format, no DuckDB, no Arrow before then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_WITH_MODULES = """
import json, os, sys
from agentsignals import __main__
leave = os._exit
def told(code):
    print(json.dumps([code, sorted(sys.modules)]), file=sys.__stderr__, flush=True)
    leave(code)
os._exit = told
sys.argv = ["agentsignals", *sys.argv[1:]]
try:
    __main__.run()
except SystemExit as end:
    told(end.code)
"""
ARROW, DUCKDB = ("pyarrow", "numpy"), ("duckdb",)
SIGNALS = ("agentsignals.signals", "agentsignals.shell", "agentsignals.views.session")
FINDINGS = ("agentsignals.questions.findings", "agentsignals.redaction")
NOT_TO_READ = ("agentsignals.questions.ranking", "typing_extensions", "cloudpickle")
LIBRARY = ("statistics", "difflib", "concurrent.futures", "importlib.metadata", "jinja2", "tqdm", "yaml")
FOREIGN = tuple(f"agentsignals.formats.{name}" for name in ("amp", "atif", "codex", "goose", "opencode", "pi", "zed"))
OWN = ("agentsignals.formats.claude_code", *FOREIGN)
UNLOADED = {
    "--version": ("msgspec", "logging", "agentsignals.model", "agentsignals.store", *LIBRARY),
    "--help": ("msgspec", "logging", "agentsignals.model", "agentsignals.store", *LIBRARY),
    "sessions --help": ("msgspec", "agentsignals.cli.explore", *LIBRARY),
    "sessions --store STORE": (*ARROW, *SIGNALS, *FINDINGS, *OWN, "statistics", "difflib", "jinja2"),
    "analyze CORPUS --store STORE --no-report --quiet": (
        *ARROW,
        *DUCKDB,
        *SIGNALS,
        *FINDINGS,
        *OWN,
        *LIBRARY,
        *NOT_TO_READ,
    ),
    "analyze EMPTY --store NEW --quiet": (*ARROW, *DUCKDB, *SIGNALS, *FINDINGS, *OWN, *LIBRARY),
    "analyze CLAUDE --store NEW --no-report --quiet --jobs 1": (
        *("numpy", *DUCKDB, *FINDINGS, *FOREIGN, "jinja2", *NOT_TO_READ),
    ),
}


def loaded_by(line: str, places: dict[str, Path], home: Path) -> set[str]:
    """Run the program as a process of its own and return what it had loaded at its end."""
    words = [str(places.get(word, word)) for word in line.split()]
    environment = {**os.environ, "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", _WITH_MODULES, *words], capture_output=True, text=True, env=environment, check=False
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == ("EMPTY" in line), done.stderr
    return set(modules)


@pytest.mark.parametrize("line", UNLOADED)
def test_a_verb_loads_what_it_needs(line: str, demo_folder: Path, tmp_path: Path) -> None:
    places = {name: tmp_path / name.lower() for name in ("STORE", "CLAUDE", "EMPTY", "NEW")}
    shutil.copytree(demo_folder / "store", places["STORE"])
    places["EMPTY"].mkdir()
    shutil.copytree(demo_folder / "corpus" / "claude-code", places["CLAUDE"])
    modules = loaded_by(line, {**places, "CORPUS": demo_folder / "corpus"}, tmp_path)
    assert "agentsignals.cli" in modules
    assert {name for name in UNLOADED[line] if name in modules} == set()
