"""What a benchmark names of the program is there, and what it counts is so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from benchmarks.formats import table
from benchmarks.mutations import ROOT, SOURCE, Mutation, mutations
from benchmarks.stages import STAGES, holder_of

from agentsignals.cli import demo_corpus
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


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sessions of Claude Code, each in a folder of its id, as the corpus holds them."""
    made, folder = demo_corpus.make_corpus(tmp_path_factory.mktemp("demo")), tmp_path_factory.mktemp("traces")
    for path in sorted((made / "claude-code").rglob("*.jsonl")):
        (folder / path.stem).mkdir()
        shutil.copyfile(path, folder / path.stem / "transcript.jsonl")
    return folder


# -- small faults that the tests have to catch -------------------------------------------------------------------------


def test_the_list_is_long_and_over_many_rooms() -> None:
    every = mutations()
    assert len(every) >= 60 and len({m.file.split("/")[0] for m in every}) >= 12
    assert len({(m.file, m.new) for m in every}) == len(every)


@pytest.mark.parametrize("mutation", mutations(), ids=lambda m: f"{m.file} {m.kind}")
def test_a_change_can_still_be_made(mutation: Mutation) -> None:
    """Where this fails the source moved on: write the change anew, or draw another of its kind."""
    source = (ROOT / SOURCE / mutation.file).read_text("utf-8")
    assert mutation.changed(source) not in (None, source)
    assert [t for t in mutation.tests if not _is_there(t)] == []


def _is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    return (ROOT / file).exists() and (not name or f"def {name}(" in (ROOT / file).read_text("utf-8"))
