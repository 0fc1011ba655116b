"""The script for a machine with a GPU runs here too, on a processor with a tiny model of random weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra lab): make test-lab")
pytest.importorskip("transformers", reason="transformers is not installed (extra lab)")

from benchmarks import lab_gpu

SMALL = ("--device", "cpu", "--dtype", "fp32", "--shape", "tiny", "--rows", "1,3", "--tokens", "24", "--new", "4")


def test_every_part_is_measured_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lab_gpu.main([*SMALL, "--out", str(tmp_path / "g.json")]) == 0
    found = json.loads((tmp_path / "g.json").read_text())
    assert list(dict.fromkeys(row["part"] for row in found["rows"])) == list(lab_gpu.PARTS)
    assert [row["tokens/s"] > 0 for row in found["rows"] if row["part"] == "batches"] == [True] * 6
    assert {row["part"] for row in found["rows"] if row.get("ok")} == {"states", "rounding", "steering", "memory"}
    said = capsys.readouterr().out
    assert all(row["case"] in said for row in found["rows"])
    assert "WRONG" not in said


def test_what_is_not_as_it_should_be_is_told_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = lab_gpu.HookedModel.next_logprobs
    monkeypatch.setattr(lab_gpu.HookedModel, "next_logprobs", lambda self, prompts, edits=(): whole(self, prompts))
    assert lab_gpu.main([*SMALL, "--out", str(tmp_path / "g.json")]) == 1
    assert "WRONG" in capsys.readouterr().out


def test_parts_for_which_no_time_is_left_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lab_gpu.main([*SMALL, "--minutes", "0", "--out", str(tmp_path / "g.json")]) == 0
    rows = json.loads((tmp_path / "g.json").read_text())["rows"]
    assert [row["part"] for row in rows if "not run" in row["case"]] == list(lab_gpu.PARTS)
