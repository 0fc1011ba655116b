"""JSON Lines whose first line is none: each line after it is read, or counted as skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.checking import Rows, failures, rows_alone
from tests.quick import some

SAMPLES = Path(__file__).parent / "formats"
FIRST = ('{"id":"g2","timestamp":"2026-05', "warning: slow disk", "{", "{}", "[1, 2]", '[{"a": 1}]')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("torn")


@pytest.fixture(scope="module")
def alone(folder: Path) -> Rows:
    return rows_alone(folder)


@pytest.mark.parametrize("first", some(FIRST, 3))
def test_a_first_line_that_is_no_record_costs_itself_alone(first: str, folder: Path, alone: Rows) -> None:
    samples = sorted(p for p in SAMPLES.rglob("*.jsonl") if p.is_file())
    spoilt = {
        f"{n:03}/{sample.relative_to(SAMPLES)}": b"\n".join((first.encode(), sample.read_bytes()))
        for n, sample in enumerate(samples)
    }
    assert failures(spoilt, alone, folder) == []
