"""What a benchmark names of the program is there, and what it counts is so."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.formats import table
from benchmarks.stages import STAGES, holder_of

from agentsignals.formats import formats
from agentsignals.ingest import pipeline
from tests.golden import SAMPLES


def test_every_stage_has_its_functions() -> None:
    for target in (target for targets in STAGES.values() for target in targets):
        holder, name = holder_of(target)
        assert callable(getattr(holder, name)), target


@pytest.mark.slow
def test_the_table_of_formats_counts_what_was_read_and_skipped(tmp_path: Path) -> None:
    summary, store = pipeline.ingest_into([str(SAMPLES / "pi" / "broken.jsonl")], tmp_path / "s")
    rows = {line.split(" | ")[0][2:]: line.split(" | ")[1:] for line in table(summary, store)}
    assert set(formats()) <= set(rows)
    assert rows["pi"][1:6] == ["1", "0.0", "1", "31", "2 bad_json, 1 cut_line"]
    assert rows["codex"][1:5] == ["0", "0.0", "0", "0"]
