"""Questions about one session each are asked over some shards at a time."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from agentsignals.cli import demo_corpus
from agentsignals.ingest import pipeline
from agentsignals.questions import findings as inputs
from agentsignals.questions.findings import questions
from agentsignals.store import Store
from agentsignals.store.query import connect, execute_ours, split_by_rows

SMALL_SHARDS = 40_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = demo_corpus.make_corpus(tmp_path_factory.mktemp("corpus"))
    folder = tmp_path_factory.mktemp("stores") / "s"
    pipeline.ingest([str(corpus)], folder, jobs=1, shard_bytes=SMALL_SHARDS)
    return folder


@pytest.fixture
def store(folder: Path) -> Store:
    store = Store(folder)
    assert len(store.manifest.shards) > 3
    return store


@pytest.mark.parametrize("context", ["product", "eval"])
def test_what_is_asked_in_slices_is_what_is_asked_at_once(
    context: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list(questions().values())

    def made() -> list[object]:
        reader = inputs.Reader(store, asked, context)
        of_each = [reader.inputs(question) for question in asked]
        return [(each.rows, {name: list(rows) for name, rows in each.many.items()}) for each in of_each]

    at_once = made()
    monkeypatch.setattr(inputs, "_MOST_IN_A_SLICE", 1)
    assert made() == at_once
    given = inputs.Reader(store, asked, context).inputs(questions()["failures"]).many["calls"]
    assert list(given) == list(given), "they may be read several times"


def test_no_slice_holds_more_calls_than_it_may_but_of_one_shard(store: Store) -> None:
    whole = connect(store)
    every = execute_ours(whole, "SELECT session_id FROM tool_calls").fetchall()
    [at_once] = split_by_rows(whole, "tool_calls", len(every))
    assert at_once is whole
    of_shard = [_calls(shard) for shard in split_by_rows(whole, "tool_calls", 1)]
    assert len(of_shard) == len(store.manifest.shards)
    assert sorted(chain.from_iterable(of_shard)) == sorted(every)
    most = max(map(len, of_shard)) + min(map(len, of_shard))
    pairs = [len(_calls(part)) for part in split_by_rows(whole, "tool_calls", most)]
    assert 1 < len(pairs) < len(of_shard) and max(pairs) <= most and sum(pairs) == len(every)


def test_a_slice_reads_the_other_tables_of_its_shards_alone(store: Store) -> None:
    for part in split_by_rows(connect(store), "tool_calls", 1):
        sessions = {session for (session,) in execute_ours(part, "SELECT session_id FROM sessions").fetchall()}
        asked = questions()["large_results"].queries["results"]
        assert {row[0] for row in execute_ours(part, asked).fetchall()} <= sessions


def test_a_shard_without_its_calls_is_in_a_slice(store: Store) -> None:
    whole = connect(store)
    whole.files = {**whole.files, "tool_calls": whole.files["tool_calls"][1:]}
    sessions = [
        execute_ours(part, "SELECT session_id FROM sessions").fetchall()
        for part in split_by_rows(whole, "tool_calls", 1)
    ]
    assert sorted(chain.from_iterable(sessions)) == sorted((id_,) for id_ in store.manifest.sessions)


def _calls(part: inputs.Connection) -> list[tuple[str]]:
    rows: list[tuple[str]] = execute_ours(part, "SELECT session_id FROM tool_calls").fetchall()
    return rows
