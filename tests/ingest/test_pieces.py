"""A file of many sessions is read, measured and written piece by piece, with the tables that the whole would give."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from agentsignals.formats import formats
from agentsignals.ingest import pipeline
from agentsignals.model import Session
from tests.golden import SAMPLES
from tests.ingest.test_pipeline import assert_same, tables

WHOLE = 1 << 30


def traces(path: Path, sessions: int, said: str = "done", **more: object) -> Path:
    """OpenTraces records, a session each."""
    rows = []
    for n in range(sessions):
        steps = [{"step_index": 0, "role": "user", "content": f"look at {n}"}]
        steps.append({"step_index": 1, "role": "agent", "content": f"{said} {n}"})
        rows.append({"schema_version": "0.3", "trace_id": f"t{n}", "agent": {"name": "x"}, "steps": steps, **more})
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(n for n, f in formats().items() if f.pieces is not None))
def test_pieces_make_the_tables_that_the_whole_file_does(name: str, tmp_path: Path) -> None:
    # Without `_cases`: two of its files are one trial. Attempts are numbered within a shard, so they would differ.
    sources = [str(path) for path in sorted((SAMPLES / name).iterdir()) if path.name != "_cases"]
    whole = pipeline.analyze(sources, tmp_path / "whole", jobs=1, shard_bytes=WHOLE)
    pieces = pipeline.analyze(sources, tmp_path / "pieces", jobs=1, shard_bytes=1)
    assert whole.sessions == pieces.sessions > 0
    assert whole.skipped == pieces.skipped
    assert_same(tables(tmp_path / "whole"), tables(tmp_path / "pieces"))


def test_a_piece_is_written_before_the_next_is_read(tmp_path: Path) -> None:
    source = traces(tmp_path / "t.jsonl", 40, "x" * 2_000)
    for limit, least in ((WHOLE, 1), (60_000, 8)):
        folder = tmp_path / str(limit)
        assert pipeline.analyze([str(source)], folder, jobs=1, shard_bytes=limit).sessions == 40
        (events,) = folder.glob("shards/*/events.parquet")
        assert pq.ParquetFile(events).num_row_groups >= least
        assert (pq.ParquetFile(events).num_row_groups == 1) == (limit == WHOLE)


@pytest.mark.slow
def test_of_records_of_one_session_the_youngest_counts_wherever_it_stands(tmp_path: Path) -> None:
    old, new = traces(tmp_path / "old", 3, "old"), traces(tmp_path / "new", 3, "new", generation_index=2)
    source = tmp_path / "t.jsonl"
    for n, text in enumerate((old.read_text() + new.read_text(), new.read_text() + old.read_text())):
        source.write_text(text)
        pipeline.analyze([str(source)], tmp_path / str(n), jobs=1, shard_bytes=1)
        frame = tables(tmp_path / str(n))["events"]
        assert {str(t).split()[0] for t in frame["text"].to_list()} == {"look", "new"}


@pytest.mark.slow
def test_no_session_outlives_its_shard_while_the_collector_is_off(tmp_path: Path) -> None:
    source = traces(tmp_path / "t.jsonl", 30)
    gc.collect()
    before = sum(type(o) is Session and bool(o.events) for o in gc.get_objects())
    gc.disable()
    try:
        pipeline.ingest([str(source)], tmp_path / "s", jobs=1, shard_bytes=1)
        after = sum(type(o) is Session and bool(o.events) for o in gc.get_objects())
    finally:
        gc.enable()
    assert after - before <= 1
