"""The pages of docs/adding to the letter: a toy of each kind is one file, here or in another package, and works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from keyword import iskeyword
from pathlib import Path

import pytest

import agentsignals
from agentsignals.errors import NameCollision, UsageError
from agentsignals.formats import FORMATS, Format
from agentsignals.model.registry import Registry
from tests.quick import some

PACKAGE = Path(agentsignals.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"
PAGES = "".join(page.read_text("utf-8") for page in [DOCS / "adding.md", *sorted((DOCS / "adding").glob("*.md"))])
TOYS = dict(re.findall(r"^```python\n# src/(\S+)\n(.*?)^```$", PAGES, re.M | re.S))
"""The pages' blocks by the path that their first line names."""
PROJECT = tomllib.loads("".join(re.findall(r"^```toml\n(.*?)^```$", PAGES, re.M | re.S)))["project"]
ENTRY_POINTS = PROJECT["entry-points"]
FOLDERS = {
    "agentsignals.formats": "agentsignals/formats/",
    "agentsignals.signals": "agentsignals/signals/",
    "agentsignals.sources": "agentsignals/sources/",
    "agentsignals.studies": "agentsignals/questions/studies/",
    "agentsignals.findings": "agentsignals/questions/findings/",
    "agentsignals.exports": "agentsignals/export/",
    "agentsignals.labellers": "agentsignals/labels/labellers/",
    "agentsignals.engines": "agentsignals/ingest/engine/",
}
MESSAGES = [
    {"role": "user", "text": "Go on!"},
    {"role": "toy", "text": "Done."},
    {"role": "user", "text": "Well, =1+1"},
]
PROGRAM = """
import json, sys
from agentsignals.cli import main

if __name__ == "__main__":
    for line in json.loads(sys.argv[1]):
        print("exit", main(line), flush=True)
"""


def toy_of(group: str) -> str:
    """The text of the one file that adds a unit of that kind."""
    (text,) = (text for path, text in TOYS.items() if path.startswith(FOLDERS[group]))
    return text


def installed(site: Path, name: str, entry_points: dict[str, dict[str, str]], modules: dict[str, str]) -> None:
    """A package as pip leaves it."""
    metadata = site / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for group, units in entry_points.items():
        lines += [f"[{group}]", *(f"{unit} = {target}" for unit, target in units.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    for module, text in modules.items():
        (site / f"{module}.py").write_text(text)


def ran(*on_path: Path, lines: list[list[str]], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Command lines, one after the other in one process."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, on_path))}
    command = [sys.executable, "-c", PROGRAM, json.dumps(lines)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, timeout=300, check=False)


def test_the_pages_have_one_toy_of_each_kind() -> None:
    assert len(TOYS) == len(FOLDERS) and set(ENTRY_POINTS) == set(FOLDERS)
    assert all(toy_of(group) and len(ENTRY_POINTS[group]) == 1 for group in FOLDERS)


@pytest.mark.slow
@pytest.mark.parametrize("place", some(["in this package", "in a package of its own"], 2))
def test_a_toy_of_each_kind_is_one_file_and_works(place: str, tmp_path: Path) -> None:
    site = tmp_path / "site"
    if place == "in this package":
        shutil.copytree(PACKAGE, site / "agentsignals", ignore=shutil.ignore_patterns("__pycache__"))
        for path, text in TOYS.items():
            assert not (site / path).exists(), "a toy is one file more, and changes none"
            (site / path).parent.mkdir(exist_ok=True)
            (site / path).write_text(text)
        on_path = [site]
    else:
        targets = {target: group for group, units in ENTRY_POINTS.items() for target in units.values()}
        modules = {target.partition(":")[0]: toy_of(group) for target, group in targets.items()}
        installed(site, "toys", ENTRY_POINTS, modules)
        on_path = [site, PACKAGE.parent]
    (tmp_path / "trace.json").write_text(json.dumps({"kind": "toy", "id": "t1", "messages": MESSAGES}))
    lines = [
        ["analyze", "toy:trace.json", "--engine", "in_turn"],
        ["label", "sentiment", "--by", "optimist"],
        ["report", "--study", "exclamations", "-o", "r.json"],
        ["findings", "--sureness", "0"],
        ["export", "--to", "csv", "-o", "out"],
        ["query", "SELECT format, path FROM artifacts", "--csv"],
        ["query", "SELECT value FROM signals WHERE signal = 'user.exclamations'", "--csv"],
        ["query", "SELECT labeller, value FROM labels WHERE turn = 0", "--csv"],
    ]
    done = ran(*on_path, cwd=tmp_path, lines=[[*line, "--store", "s", "--quiet"] for line in lines])
    assert done.returncode == 0 and done.stderr == "", done.stderr
    out = done.stdout.splitlines()
    assert [line for line in out if line.startswith("exit")] == ["exit 0"] * len(lines), done.stdout
    assert {"toy-agent,toy:trace.json", "1", "optimist,POSITIVE"} <= set(out)
    assert "1. You exclaim in 1 of 1 sessions." in out
    (section,) = json.loads((tmp_path / "r.json").read_text())["sections"]
    assert [(f["value"], f["n"]) for f in section["findings"]] == [(1.0, 1)]
    assert (tmp_path / "out" / "t1.csv").read_text() == '0,Go on!\n1,"Well, =1+1"\n'


BROKEN = {
    "agentsignals.formats": {
        "gone": "no_such_module:FORMAT",
        "codec": "broken_units:NOTHING",
        "other": "broken_units:WRONG",
    },
    "agentsignals.signals": {"needy": "broken_signal", "damaged": "not python at all"},
    "agentsignals.sources": {"rude": "broken_units:RUDE"},
    "agentsignals.studies": {"ends": "broken_end:STUDY", "stumbles": "broken_units:STUMBLES"},
    "agentsignals.findings": {"trips": "broken_units:TRIPS"},
    "agentsignals.exports": {"none": "broken_units:WRONG"},
}
BROKEN_MODULES = {
    "broken_end": "raise SystemExit(3)\n",
    "broken_signal": """
from agentsignals.signals import signal

@signal("user.needy", type="int", unit="turns", origin="toys")
def needy(nobody: int) -> int:
    '''Needs what nobody declares.'''
    return nobody

@signal("user.harmless", type="int", unit="turns", origin="toys")
def harmless(view, why) -> int:
    '''Goes with its neighbour.'''
    return 1
""",
    "broken_units": """
from agentsignals.questions.question import Study
from agentsignals.sources import Source

from agentsignals.questions.ranking import Question

def fails(*_):
    raise KeyError("of no use")

WRONG = 7
RUDE = Source("rude", fails, fails, fails)
TRIPS = Question(name="trips", question="Why?", queries={}, function=fails)
STUMBLES = Study(name="stumbles", title="Stumbles", question="Why?", queries={}, function=fails)
""",
}


@pytest.mark.slow
def test_what_is_broken_elsewhere_is_named_and_left_out(tmp_path: Path) -> None:
    installed(tmp_path / "site", "broken-toys", BROKEN, BROKEN_MODULES)
    sample = Path(__file__).parent / "formats" / "pi"
    foreign = "signal IN ('user.needy', 'user.harmless')"
    lines = [
        ["analyze", str(sample)],
        ["analyze", "rude:x"],
        ["report", "-o", "r.json"],
        ["export", "--to", "none", "-o", "out"],
        ["findings"],
        ["query", f"SELECT count(*) FILTER ({foreign}), count(*) > 9 FROM signals", "--csv"],
        ["doctor"],
    ]
    done = ran(tmp_path / "site", PACKAGE.parent, cwd=tmp_path, lines=[[*x, "--store", "s", "--quiet"] for x in lines])
    exits = [line for line in done.stdout.splitlines() if line.startswith("exit")]
    assert exits[:6] == ["exit 0", "exit 2", "exit 0", "exit 2", "exit 0", "exit 0"], done.stdout + done.stderr
    assert "0,True" in done.stdout.splitlines()
    assert "is not a file, folder, agent or address" in done.stderr and "Traceback" not in done.stderr
    for kind, name in [
        ("format", "gone"), ("format", "codec"), ("format", "other"), ("signal", "needy"), ("signal", "damaged"),
        ("source", "rude"), ("study", "ends"), ("export", "none"),
    ]:  # fmt: skip
        assert done.stderr.count(f"The {kind} '{name}' is left out") == 1, (kind, name, done.stderr)
        assert re.search(rf"^{kind} {name} +problem", done.stdout, re.M), (kind, name, done.stdout)
    assert "not checked: trips: broken_units:TRIPS of broken-toys 1.0: KeyError" in done.stdout
    left_out = {row["study"]: row["reason"] for row in json.loads((tmp_path / "r.json").read_text())["left_out"]}
    assert "broken-toys 1.0: KeyError" in left_out["stumbles"]


def fresh() -> Registry[Format]:
    """The registry of formats, as a new process finds it."""
    return Registry("format", "agentsignals.formats", "FORMAT", lambda unit: isinstance(unit, Format))


def test_two_units_of_one_name_are_an_error_that_names_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    installed(tmp_path, "ours", {"agentsignals.formats": {"claude-code": "ours_format:FORMAT"}}, {})
    with pytest.raises(NameCollision) as raised:
        fresh().get("pi")
    assert "'claude-code'" in raised.value.message and "ours_format:FORMAT of ours 1.0" in raised.value.message
    assert "agentsignals.formats.claude_code:FORMAT" in raised.value.message


def test_two_other_packages_with_one_name_are_one_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("left", "right"):
        installed(tmp_path, name, {"agentsignals.formats": {"toy": f"{name}:FORMAT"}}, {})
    with pytest.raises(NameCollision, match=r"(left|right):FORMAT of \1 1\.0 and (left|right):FORMAT of \2 1\.0"):
        fresh().all()


def test_a_unit_goes_by_the_name_of_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    installed(tmp_path, "mimic", {"agentsignals.formats": {"mimic": "agentsignals.formats.pi:FORMAT"}}, {})
    registry = fresh()
    assert "mimic" not in registry.all() and "calls itself 'pi'" in registry.broken["mimic"]
    with pytest.raises(UsageError, match="can't be used"):
        registry.get("mimic")


def test_a_unit_of_this_package_is_named_as_its_file() -> None:
    names = {unit.name.replace("-", "_") for unit in FORMATS.all().values()}
    assert {name + "_" * iskeyword(name) for name in names} == set(FORMATS.inside)
