"""The lab without numpy and torch: what needs no model runs, the rest says what to install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentsignals_lab import coding_tasks
from tests.conftest import Server, said
from tests.test_retry import fenced

ROOT = Path(__file__).parents[1]
TINY = ROOT / "src" / "agentsignals_lab" / "sample_study" / "model"
HIDDEN = ("numpy", "torch", "transformers", "tokenizers", "sklearn")


def plain(blocked: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, where the packages of the extra can't be imported."""
    blocked.mkdir(exist_ok=True)
    (blocked / "sitecustomize.py").write_text(f"import sys\nfor name in {HIDDEN}:\n    sys.modules[name] = None\n")
    path = os.pathsep.join((str(blocked), os.environ.get("PYTHONPATH", "")))
    return subprocess.run(
        [sys.executable, "-m", "agentsignals", "lab", *map(str, words)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
def test_a_loop_on_a_server_and_its_report_need_no_extra(
    server: Server,
    tmp_path: Path,
) -> None:
    server.says = lambda body: said(fenced(coding_tasks.task("parse_duration").reference))
    asked = ("--server", server.url, "--server-model", "m", "--tasks", "parse_duration,is_leap", "--json", "--quiet")
    ran = plain(tmp_path / "no", "agent", *asked, "--out", tmp_path / "a")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["conditions"][0]["full_pass"] == 0.5
    ran = plain(tmp_path / "no", "report", tmp_path / "a", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)
    assert (tmp_path / "a" / "report.html").exists()


@pytest.mark.slow
def test_what_there_is_is_told_and_what_the_extra_would_bring(tmp_path: Path) -> None:
    listed = json.loads(plain(tmp_path / "no", "list", "--json").stdout)
    assert listed["not_installed"] == ["torch", "transformers", "tokenizers", "numpy", "sklearn"]
    assert len(listed["experiments"]["directions"]) > 20
    said = plain(tmp_path / "no", "list").stdout
    assert "need more packages" in said
    assert "https://download.pytorch.org/whl/cpu" in said


@pytest.mark.parametrize(
    "words",
    [
        ("run", "directions", "--model", TINY),
        ("agent", "--model", TINY, "--tasks", "is_leap"),
    ],
)
def test_what_needs_a_model_says_which_extra(words: tuple[object, ...], tmp_path: Path) -> None:
    ran = plain(tmp_path / "no", *words, "--out", tmp_path / "run")
    assert ran.returncode == 1
    assert "pip install" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "run").exists()
