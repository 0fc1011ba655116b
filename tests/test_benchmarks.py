"""What a benchmark names of the program is there, and what it counts is so."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmarks import corpora
from benchmarks.corpora import make
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


def test_a_made_corpus_lies_as_people_keep_theirs(
    traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With smaller folders and more forks than a benchmark has."""
    n = len(list(traces.iterdir()))
    monkeypatch.setattr(corpora, "SESSIONS_A_FOLDER", n)
    monkeypatch.setattr(corpora, "SESSIONS_A_FORK", n // 2)
    copies = 2
    files_n, _ = make(traces, tmp_path / "corpus", copies, None)
    folders = Counter(path.parent for path in (tmp_path / "corpus").rglob("*.jsonl"))
    assert sum(folders.values()) == files_n > copies * n
    whole = [size for size in folders.values() if size >= corpora.SESSIONS_A_FOLDER]
    assert len(whole) == copies * n // corpora.SESSIONS_A_FOLDER and len(folders) <= len(whole) + 1
    assert max(folders.values()) <= corpora.SESSIONS_A_FOLDER + -(-corpora.SESSIONS_A_FOLDER // corpora.SESSIONS_A_FORK)
    summary, store = pipeline.ingest_into([str(tmp_path / "corpus")], tmp_path / "store", jobs=1, shard_bytes=200_000)
    together = Counter(entry.group for entry in store.manifest.sessions.values())
    assert summary.sessions == files_n and not summary.skipped
    assert sum(size - 1 for size in together.values()) == files_n - copies * n, "each fork is read with its session"


def test_varied_copies_say_other_things_in_the_same_shape(traces: Path, tmp_path: Path) -> None:
    made = {}
    for is_varied in (False, True):
        make(traces, tmp_path / str(is_varied), 3, None, is_varied)
        files = sorted((tmp_path / str(is_varied)).rglob("*.jsonl"))
        made[is_varied] = [[json.loads(line) for line in path.read_bytes().splitlines()] for path in files]

    def keys(value: object) -> object:
        if isinstance(value, dict):
            return {name: keys(inner) for name, inner in value.items()}
        return [keys(inner) for inner in value] if isinstance(value, list) else type(value)

    def prompts(files: list[list[dict[str, Any]]]) -> set[str]:
        said = (record["message"].get("content") for file in files for record in file if "message" in record)
        return {text for text in said if isinstance(text, str)}

    assert [keys(file) for file in made[True]] == [keys(file) for file in made[False]]
    assert len(prompts(made[True])) > 1.3 * len(prompts(made[False]))


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
