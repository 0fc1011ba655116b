"""Choosing an embedder for a store: when values are made anew, and when texts are."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentsignals.cli import demo_corpus
from agentsignals.errors import EmbedderError, UsageError
from agentsignals.ingest import pipeline
from agentsignals.ingest.measure import explain
from agentsignals.store import Store
from agentsignals.store.embedders import CACHE_FILE
from agentsignals.store.index import Manifest
from agentsignals.words.vectors import DEFAULT
from tests.claude import Log
from tests.embedding.server import Server, serving

CURVE = "dynamics.cp_curve[]"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_corpus.make_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def curves(folder: Path) -> dict[str, Any]:
    """The curve's detail by session where there is a curve, else why there is none."""
    rows = Store(folder).sql(f"SELECT session_id, absent, detail FROM signals WHERE signal = '{CURVE}'").fetchall()
    return {session: absent or json.loads(detail) for session, absent, detail in rows}


def embedders(folder: Path) -> set[str]:
    return {c["embedder"] for c in curves(folder).values() if isinstance(c, dict)}


def test_words_are_what_a_store_begins_with(corpus: Path, tmp_path: Path) -> None:
    assert Manifest().embedder == DEFAULT
    pipeline.analyze([str(corpus)], tmp_path, jobs=1)
    assert embedders(tmp_path) == {"words-1"}
    assert not (tmp_path / CACHE_FILE).exists()


@pytest.mark.slow
def test_another_embedder_makes_the_values_anew_and_stays(corpus: Path, tmp_path: Path) -> None:
    pipeline.analyze([str(corpus)], tmp_path, jobs=1)
    by_words = curves(tmp_path)
    assert pipeline.measure(tmp_path, embedder="chars")["sessions"] == demo_corpus.SESSIONS
    assert embedders(tmp_path) == {"chars-1"}
    assert pipeline.measure(tmp_path)["sessions"] == 0
    pipeline.analyze([str(corpus)], tmp_path, jobs=1)
    assert embedders(tmp_path) == {"chars-1"}
    pipeline.measure(tmp_path, embedder="words")
    assert curves(tmp_path) == by_words


def test_none_is_said_in_every_value(corpus: Path, tmp_path: Path) -> None:
    pipeline.analyze([str(corpus)], tmp_path, jobs=1, embedder="none")
    assert set(curves(tmp_path).values()) <= {"backend_disabled", "not_applicable"}
    assert "backend_disabled" in curves(tmp_path).values()


def test_what_is_no_embedder_changes_nothing(corpus: Path, tmp_path: Path) -> None:
    pipeline.analyze([str(corpus)], tmp_path, jobs=1)
    with pytest.raises(UsageError):
        pipeline.measure(tmp_path, embedder="nonsense")
    assert Store(tmp_path).manifest.embedder == "words"


@pytest.mark.slow
def test_a_model_is_asked_for_each_text_once(corpus: Path, tmp_path: Path, server: Server) -> None:
    told: list[str] = []
    spec = f"openai:letters@{server.url}"
    pipeline.analyze([str(corpus)], tmp_path, jobs=2, shard_bytes=400_000, embedder=spec, tell=told.append)
    assert all(e.startswith("openai:letters@127.0.0.1") for e in embedders(tmp_path))
    assert embedders(tmp_path)
    assert len(set(server.texts)) == len(server.texts)
    assert len(told) == 1
    asked = len(server.texts)
    pipeline.measure(tmp_path, embedder="words")
    pipeline.measure(tmp_path, embedder=spec)
    assert len(server.texts) == asked


@pytest.mark.slow
def test_a_run_that_broke_off_goes_on_where_it_was(
    corpus: Path, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentsignals.store.embedders.TRIES", 1)
    spec = f"openai:letters@{server.url}"
    pipeline.ingest([str(corpus)], tmp_path, jobs=1, embedder=spec)
    assert server.texts == []
    answered = server.faults
    answered += [b'{"data": []}']
    with pytest.raises(EmbedderError):
        curves(tmp_path)
    first = server.texts
    assert "backend_disabled" not in curves(tmp_path).values()
    after = server.texts[len(first) :]
    assert len(set(after)) == len(after)


def talks(folder: Path, first: int, n: int) -> Path:
    """Sessions of two turns, by turns in two repositories whose words have no letter in common."""
    for k in range(first, first + n):
        asked, answered = (("tea oat tate", "eat tea"), ("shin rind dish", "rind hid"))[k % 2]
        log = Log(session=f"6f1d2c3b-0000-4000-8000-{k:012d}", cwd=f"/work/repo{k % 2}")
        for _ in range(2):
            log.user(f"{asked} {asked} {k}{_}")
            log.say(answered)
        log_path = folder / f"{k}.jsonl"
        log_path.write_text("\n".join(log.lines))
    return folder


@pytest.mark.slow
def test_a_model_gets_a_scale_of_its_own_when_there_are_enough_sessions(tmp_path: Path, server: Server) -> None:
    folder, store, spec = tmp_path / "traces", tmp_path / "store", f"openai:letters@{server.url}"
    folder.mkdir()

    def origins() -> set[str]:
        return {c["calibration"]["origin"] for c in curves(store).values() if isinstance(c, dict)}

    pipeline.analyze([str(talks(folder, 0, 20))], store, jobs=1, shard_bytes=5_000, embedder=spec)
    assert origins() == {"identity"}
    pipeline.analyze([str(talks(folder, 20, 20))], store, jobs=1, shard_bytes=5_000)
    assert origins() == {"fitted"}
    assert len(curves(store)) == 40
    scales = {json.dumps(c["calibration"]) for c in curves(store).values() if isinstance(c, dict)}
    pipeline.analyze([str(talks(folder, 40, 2))], store, jobs=1, shard_bytes=5_000)
    assert {json.dumps(c["calibration"]) for c in curves(store).values() if isinstance(c, dict)} == scales


@pytest.mark.slow
def test_explaining_uses_the_same_vectors_and_asks_nobody(corpus: Path, tmp_path: Path, server: Server) -> None:
    pipeline.analyze([str(corpus)], tmp_path, jobs=1, embedder=f"openai:letters@{server.url}")
    asked = len(server.requests)
    session, stored = next((s, c) for s, c in curves(tmp_path).items() if isinstance(c, dict))
    explained = explain(Store(tmp_path), session, CURVE)
    assert explained.detail["raw"] == stored["raw"]
    assert len(server.requests) == asked


@pytest.mark.slow
def test_what_needs_no_vectors_is_explained_when_the_model_is_gone(
    corpus: Path, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentsignals.store.embedders.TRIES", 1)
    pipeline.analyze([str(corpus)], tmp_path, jobs=1, embedder=f"openai:letters@{server.url}")
    (tmp_path / CACHE_FILE).unlink()
    server.faults = [400] * 99
    session = next(s for s, c in curves(tmp_path).items() if isinstance(c, dict))
    assert explain(Store(tmp_path), session, "behavior.tool_call_count").value is not None
    gone = explain(Store(tmp_path), session, CURVE)
    assert gone.absent is not None
    assert gone.absent["reason"] == "backend_disabled"


def test_a_package_that_is_missing_says_what_to_install(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EmbedderError) as problem:
        pipeline.analyze([str(corpus)], tmp_path, jobs=1, embedder="sentence-transformers:some/model")
    assert "agentsignals[embed]" in problem.value.hint
