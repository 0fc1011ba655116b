"""`import agentsignals` is light and silent, and the face is what it says."""

from __future__ import annotations

import doctest
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import agentsignals
from agentsignals.errors import StoreError, UnlikeCandidates, UsageError
from agentsignals.store import Store
from tests.questions.stores import store_of
from tests.signals.attempts import trial

HEAVY = ("duckdb", "jinja2", "msgspec", "numpy", "platformdirs", "polars", "pyarrow", "ray", "torch", "tqdm")


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs code in a new Python whose current folder and home are an empty folder."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )


def loaded(code: str, folder: Path) -> set[str]:
    done = python(f"{code}\nimport sys, json\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))", folder)
    return set(json.loads(done.stdout))


def test_importing_loads_nothing_heavy(tmp_path: Path) -> None:
    assert loaded("import agentsignals", tmp_path) == set()


def test_importing_says_nothing_and_writes_nothing(tmp_path: Path) -> None:
    done = python("import agentsignals", tmp_path)
    assert (done.stdout, done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_help_loads_nothing_heavy_and_writes_nothing(tmp_path: Path) -> None:
    code = "from agentsignals.cli import build_parser\nbuild_parser().format_help()"
    assert loaded(code, tmp_path) == set()
    assert list(tmp_path.iterdir()) == []


def test_reading_the_catalogue_needs_no_store(tmp_path: Path) -> None:
    code = "import agentsignals\nassert agentsignals.inventory()"
    assert loaded(code, tmp_path) & {"duckdb", "polars", "pyarrow", "numpy"} == set()


def test_what_the_face_names_is_there_and_explained() -> None:
    assert agentsignals.__all__ == sorted(agentsignals.__all__)
    for name in agentsignals.__all__:
        found = getattr(agentsignals, name)
        assert isinstance(found, str) or found.__doc__, name


def test_the_face_names_all_it_shows() -> None:
    shown = {n for n, v in vars(agentsignals).items() if callable(v) and getattr(v, "__module__", "") == "agentsignals"}
    assert shown <= set(agentsignals.__all__)


def test_the_version_is_the_one_of_the_project() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
    assert f'\nversion = "{agentsignals.__version__}"\n' in text


def test_the_examples_of_the_face_are_as_they_say(demo_folder: Path) -> None:
    store = agentsignals.open_store(demo_folder / "store")
    problems: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    found = [test for test in doctest.DocTestFinder().find(agentsignals) if test.examples]
    for test in found:
        test.globs["store"] = store
        runner.run(test, out=problems.append)
    assert not problems, "".join(problems)
    assert len(found) >= 5


def test_a_store_says_what_it_is(demo_folder: Path, tmp_path: Path) -> None:
    store = agentsignals.open_store(demo_folder / "store")
    assert repr(store) == (
        f"<Store {demo_folder / 'store'}: 36 sessions of people; claude-code 15, codex 7, gemini-cli 7, pi 7;"
        " 2026-03-02 to 2026-03-31>"
    )
    assert repr(Store(tmp_path, create=True)) == f"<Store {tmp_path}: no sessions>"
    broken = tmp_path / "broken"
    shutil.copytree(demo_folder / "store", broken)
    for file in broken.glob("shards/*/sessions.parquet"):
        file.write_bytes(b"")
    assert repr(agentsignals.open_store(broken)).endswith("damaged>")


def test_what_the_store_holds_nothing_of_is_said(demo_folder: Path) -> None:
    store = agentsignals.open_store(demo_folder / "store")
    with pytest.raises(UsageError, match="'attempts' has no results for this store"):
        agentsignals.study(store, "attempts")
    with pytest.raises(StoreError, match="no eval attempt"):
        agentsignals.compare(store)
    assert {row["name"] for row in agentsignals.all_studies()} >= {"cost", "attempts"}


def test_candidates_that_had_other_tasks_are_compared_only_anyway(tmp_path: Path) -> None:
    runs = [
        trial({"trial_id": model, "task_id": f"of {model}", "reward": 1.0, "knobs": {"model_id": model}})
        for model in "ab"
    ]
    store = store_of(tmp_path / "store", *(view.session for views in runs for view in views))
    with pytest.raises(UnlikeCandidates, match="tasks differ") as refused:
        agentsignals.compare(store, ["model"])
    assert refused.value.hint.startswith("--where chooses"), "there is no command that compares two alone"
    assert agentsignals.compare(store, ["model"], anyway=True).unlike
