"""The locked packages are those that pyproject.toml asks for, on every Python it promises, each held to its hashes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LAB: dict[str, Any] = tomllib.loads((ROOT / "packages" / "lab" / "pyproject.toml").read_text("utf-8"))["project"]
PROJECT["optional-dependencies"]["lab"] = [
    line
    for line in sum(LAB["optional-dependencies"].values(), LAB["dependencies"])
    if not line.startswith("agentsignals")
]
LOCKS = {"dev": ("dev",), "docs": ("docs",), "engines": ("engines-dev",), "lab": ("dev", "lab")}
"""Each file of `requirements/`, and the extras it holds beside the core; `lab` is packages/lab with its extras."""
PYTHONS = ("3.11", "3.12", "3.13")


def wanted(lines: list[str]) -> Iterator[Requirement]:
    """What these lines ask for; our own extras by what they hold."""
    for line in lines:
        asked = Requirement(line)
        if asked.name == PROJECT["name"]:
            for extra in asked.extras:
                yield from wanted(PROJECT["optional-dependencies"][extra])
        else:
            yield asked


def pins(text: str) -> list[Requirement]:
    return [Requirement(line.rstrip(" \\")) for line in text.splitlines() if re.match(r"[A-Za-z0-9]", line)]


def unmet(text: str, extras: tuple[str, ...]) -> list[str]:
    """What is asked for and not in this lock, by Python."""
    lines = [*PROJECT["dependencies"], *(line for e in extras for line in PROJECT["optional-dependencies"][e])]
    lost = []
    for python in PYTHONS:
        here = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
        held = [p for p in pins(text) if p.marker is None or p.marker.evaluate(here)]
        versions = {canonicalize_name(p.name): Version(str(p.specifier).removeprefix("==")) for p in held}
        assert len(versions) == len(held), "one version each"
        for asked in wanted(lines):
            version = versions.get(canonicalize_name(asked.name))
            if version is None or not asked.specifier.contains(version, prereleases=True):
                lost.append(f"{asked} on Python {python}: {version}")
    return lost


def test_every_lock_is_looked_at() -> None:
    assert {p.stem for p in (ROOT / "requirements").iterdir()} == set(LOCKS)


@pytest.mark.parametrize(("name", "extras"), LOCKS.items())
def test_a_lock_holds_what_the_project_asks_for(name: str, extras: tuple[str, ...]) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
    assert unmet(text, extras) == [], "run `make lock`"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_hashes_for_each_package_and_no_place(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
    assert len(re.findall(r"^[A-Za-z0-9].* \\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)) == len(pins(text))
    assert set(re.findall(r"--[a-z-]+|\w+://", text)) == {"--hash"}, "from whichever index is configured, by its hash"


def test_a_lock_that_lags_behind_is_found() -> None:
    text = (ROOT / "requirements" / "dev.txt").read_text("utf-8")
    gone = re.sub(r"^pyarrow==\S+ \\\n(    --hash.*\n)+", "", text, flags=re.MULTILINE)
    old = re.sub(r"^duckdb==\S+", "duckdb==1.1.0", text, flags=re.MULTILINE)
    assert gone != text and [line.split()[0] for line in unmet(gone, ("dev",))] == ["pyarrow>=17"] * len(PYTHONS)
    assert all("duckdb" in line and "1.1.0" in line for line in unmet(old, ("dev",))) and unmet(old, ("dev",))


def test_what_is_installed_together_is_locked_alike() -> None:
    """The docs' packages go beside the tests' into one environment."""
    dev, docs = (pins((ROOT / "requirements" / f"{name}.txt").read_text("utf-8")) for name in ("dev", "docs"))
    versions: dict[str, set[str]] = {}
    for pin in dev:
        versions.setdefault(pin.name, set()).add(str(pin.specifier))
    assert [str(p) for p in docs if str(p.specifier) not in versions.get(p.name, {str(p.specifier)})] == []
