"""Embedding models and the cache of their vectors: what is loaded and sent where, what fails, and what is kept."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from agentsignals.cli import demo_corpus
from agentsignals.errors import EmbedderError, StoreError, UsageError
from agentsignals.ingest import pipeline
from agentsignals.ingest.measure import explain
from agentsignals.network import MASKED_NOTICE
from agentsignals.store import Store, embedders
from agentsignals.store.embedders import CACHE_FILE, Cache, Remote, SentenceModel, digest, is_local
from agentsignals.store.index import Manifest
from agentsignals.words.vectors import DEFAULT, REDACT, Dense, Profile, redacting
from tests.claude import Log
from tests.embedding_server import Server, serving, vector


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


# A server


def of(server: Server, waits: list[float] | None = None) -> Remote:
    return Remote(f"letters@{server.url}", wait=(waits if waits is not None else []).append)


def test_vectors_come_in_the_order_of_the_texts(server: Server) -> None:
    """The server answers backwards; `index` says what belongs where."""
    first, third, second = of(server).embed(["fix the retry", "fix the retry", "zzz qqq"])
    assert first.cosine(third) == pytest.approx(1)
    assert first.cosine(second) == pytest.approx(Dense.of(vector("fix the retry")).cosine(Dense.of(vector("zzz qqq"))))
    assert server.requests[0]["model"] == "letters"


def test_many_texts_are_several_requests(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"text number {n}" for n in range(150)]
    assert len(of(server).embed(texts)) == 150
    monkeypatch.setattr(embedders, "BATCH_CHARS", 30)
    assert len(of(server).embed(texts[:4])) == 4
    assert [len(r["input"]) for r in server.requests] == [64, 64, 22, 2, 2]


def test_a_text_without_words_is_not_sent(server: Server) -> None:
    empty, said = of(server).embed(["…", "fix it"])
    assert server.texts == ["fix it"] and empty.cosine(said) is None


def test_a_busy_server_is_asked_again_after_the_time_it_names(server: Server) -> None:
    server.faults = [429, 503, b"{cut"]
    waits: list[float] = []
    assert len(of(server, waits).embed(["fix it"])) == 1
    assert waits == [7.0, 2.0, 4.0]


TOO_MANY = b'{"data": [{"embedding": [1]}, {"embedding": [1]}]}'


@pytest.mark.parametrize(
    ("fault", "says", "requests"),
    [
        (500, "in 4 tries", 4), (b"", "in 4 tries", 4), (b"[]", "in 4 tries", 4),
        (b'{"data": [{"embedding": ["x"]}]}', "in 4 tries", 4), (TOO_MANY, "in 4 tries", 4),
        (401, "401", 1), (302, "302", 1),
    ],
    ids=["status", "nothing", "a list", "words", "too many", "refused", "a redirect"],
)  # fmt: skip
def test_a_server_that_fails_is_an_error_that_says_how(
    server: Server, fault: int | bytes, says: str, requests: int
) -> None:
    server.faults = [fault] * 4
    with pytest.raises(EmbedderError, match=says):
        of(server).embed(["fix it"])
    assert len(server.requests) == requests


def test_no_server_is_an_error() -> None:
    with pytest.raises(EmbedderError, match="in 4 tries"):
        Remote("letters@http://127.0.0.1:9/v1", wait=lambda _: None).embed(["fix it"])


def test_the_key_goes_along_and_what_goes_where_is_told_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k1")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    told: list[str] = []
    asked = Remote("letters", tell=told.append)
    assert len(asked.embed(["fix it"])) == len(asked.embed(["fix that"])) == 1
    assert server.headers[0]["Authorization"] == "Bearer k1"
    assert len(told) == 1 and server.url in told[0] and "k1" not in told[0]


def test_what_leaves_this_machine_is_masked_first(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "the key is sk-abcdefghijklmnop1234567890, mail me at jo@example.org"
    of(server).embed([text])
    assert server.texts == [text]
    monkeypatch.setattr(embedders, "is_local", lambda _: False)
    away = of(server)
    away.embed([text])
    assert server.texts[1] == "the key is [key], mail me at [mail]"
    assert away.id.endswith("+redacted")


def test_a_server_on_this_machine_gets_masked_texts_where_that_is_asked(server: Server) -> None:
    told: list[str] = []
    spec = redacting(f"openai:letters@{server.url}")
    assert spec == redacting(spec) and spec.endswith(REDACT)
    asked = Remote(spec.removeprefix("openai:"), tell=told.append)
    asked.embed(["DB_PASSWORD=Jd6pF4gM0uZx7r does not work"])
    assert "Jd6pF4gM0uZx7r" not in json.dumps(server.requests) and MASKED_NOTICE in told[0]
    assert asked.id != Remote(f"letters@{server.url}").id, "vectors of other texts are other vectors"
    with pytest.raises(UsageError):
        redacting("words")


@pytest.mark.parametrize(
    ("host", "local"),
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost.example.org", False),
     ("10.0.0.1", False), ("127.0.0.1.example.org", False), ("192.168.0.1", False),
     ("::ffff:127.0.0.1", True), ("::ffff:10.0.0.1", False)],
)  # fmt: skip
def test_only_this_machine_is_this_machine(host: str, local: bool) -> None:
    assert is_local(host) is local


@pytest.mark.parametrize("named", ["m@ftp://host/v1", "m@file:///etc/passwd", "@http://host/v1", "m@host"])
def test_what_is_no_address_is_wrong_usage(named: str) -> None:
    with pytest.raises(UsageError):
        Remote(named)


# A model on this machine


class Numbers(list[float]):
    """As much of a NumPy row as is used."""

    def tolist(self) -> list[float]:
        return list(self)


class Fake:
    """Stands for a model of sentence-transformers: loads nothing, notes what it is asked."""

    made: ClassVar[list[tuple[str, dict[str, Any]]]] = []
    asked: ClassVar[list[list[str]]] = []

    def __init__(self, name: str, **settings: Any) -> None:
        if name == "broken":
            raise OSError("no file named model.safetensors")
        self.made.append((name, settings))

    def encode(self, texts: list[str], **_: Any) -> list[Numbers]:
        self.asked.append(texts)
        return [Numbers(vector(t)) for t in texts]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = Fake  # type: ignore[attr-defined]  # a stand-in for a package of 2 GB
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    Fake.made.clear()
    Fake.asked.clear()
    return Fake


def test_the_model_is_loaded_with_the_first_words_and_once(package: type[Fake]) -> None:
    model = SentenceModel("some/model")
    assert model.embed(["…", ""])[0].cosine(model.embed(["…"])[0]) is None
    assert package.made == []
    vectors = model.embed(["…", "fix it", "", "fix it"])
    assert [len(v.values) > 0 for v in vectors] == [False, True, False, True]
    assert vectors[1].cosine(vectors[3]) == pytest.approx(1)
    model.embed(["more"])
    assert package.asked == [["fix it", "fix it"], ["more"]] and len(package.made) == 1


def test_code_of_a_model_is_never_run_and_a_revision_is_pinned(package: type[Fake]) -> None:
    told: list[str] = []
    SentenceModel("some/model@abc123", told.append).embed(["fix it"])
    assert package.made == [("some/model", {"revision": "abc123", "trust_remote_code": False})]
    assert "no text leaves" in told[0]
    with pytest.raises(EmbedderError, match=r"model\.safetensors"):
        SentenceModel("broken").embed(["fix it"])


def test_a_folder_is_named_by_what_is_in_it(package: type[Fake], tmp_path: Path) -> None:
    folder = tmp_path / "m@1"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"x" * 300_000)
    first = SentenceModel(str(folder))
    first.embed(["fix it"])
    assert package.made[0] == (str(folder), {"revision": None, "trust_remote_code": False})
    assert first.id == f"sentence-transformers:m@1#{digest(folder)}"
    (folder / "model.safetensors").write_bytes(b"x" * 299_999 + b"y")
    assert SentenceModel(str(folder)).id != first.id
    (folder / "model.safetensors").write_bytes(b"x" * 300_000)
    (folder / ".cache").write_bytes(b"anything")
    assert SentenceModel(str(folder)).id == first.id


# The cache


def test_what_was_put_is_there_for_the_next_run_of_that_embedder(tmp_path: Path) -> None:
    first = Cache(tmp_path, "m1")
    first.put({"fix it": Dense.of([3.0, 4.0]), "": Dense(array("f")), "\ud800": Dense.of([1.0])})
    first.put({f"text {n}": Dense.of([float(n), 1.0]) for n in range(1700)})
    assert first.profile() is None
    first.keep_profile(Profile(0.3, 0.8, "fitted"))
    first.close()
    again, other = Cache(tmp_path, "m1"), Cache(tmp_path, "m2")
    found = again.get(["fix it", "", "\ud800", "never seen"])
    assert set(found) == {"fix it", "", "\ud800"} and list(found["fix it"].values) == pytest.approx([0.6, 0.8])
    assert len(again.get([f"text {n}" for n in range(1800)])) == 1700
    assert other.get(["fix it"]) == {}
    assert (again.profile(), other.profile()) == (Profile(0.3, 0.8, "fitted"), None)


def test_a_file_that_is_no_cache_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / CACHE_FILE).write_bytes(b"this is no database at all, but long enough to look like one" * 99)
    cache = Cache(tmp_path, "m1")
    assert cache.get(["fix it"]) == {}
    cache.put({"fix it": Dense.of([1.0])})
    assert set(cache.get(["fix it"])) == {"fix it"}
    with pytest.raises(StoreError, match="can't be opened"):
        Cache(tmp_path / "gone", "m1")


# The embedder of a store

CURVE = "dynamics.cp_curve[]"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_corpus.make_corpus(tmp_path_factory.mktemp("corpus"))


def curves(folder: Path) -> dict[str, Any]:
    """The curve's detail by session where there is a curve, else why there is none."""
    rows = Store(folder).sql(f"SELECT session_id, absent, detail FROM signals WHERE signal = '{CURVE}'").fetchall()
    return {session: absent or json.loads(detail) for session, absent, detail in rows}


def details(folder: Path) -> list[dict[str, Any]]:
    return [curve for curve in curves(folder).values() if isinstance(curve, dict)]


def used(folder: Path) -> set[str]:
    return {curve["embedder"] for curve in details(folder)}


def test_words_are_what_a_store_begins_with(corpus: Path, tmp_path: Path) -> None:
    assert Manifest().embedder == DEFAULT
    pipeline.analyze([str(corpus)], tmp_path, jobs=1)
    with pytest.raises(UsageError):
        pipeline.measure(tmp_path, embedder="nonsense")
    assert Store(tmp_path).manifest.embedder == "words" and used(tmp_path) == {"words-1"}
    assert not (tmp_path / CACHE_FILE).exists()


@pytest.mark.slow
def test_another_embedder_makes_the_values_anew_and_stays(corpus: Path, tmp_path: Path) -> None:
    pipeline.analyze([str(corpus)], tmp_path, jobs=1)
    by_words = curves(tmp_path)
    assert pipeline.measure(tmp_path, embedder="chars")["sessions"] == demo_corpus.SESSIONS
    assert used(tmp_path) == {"chars-1"}
    assert pipeline.measure(tmp_path)["sessions"] == 0
    pipeline.analyze([str(corpus)], tmp_path, jobs=1)
    assert used(tmp_path) == {"chars-1"}
    pipeline.measure(tmp_path, embedder="words")
    assert curves(tmp_path) == by_words


def test_none_is_said_in_every_value(corpus: Path, tmp_path: Path) -> None:
    pipeline.analyze([str(corpus)], tmp_path, jobs=1, embedder="none")
    said = set(curves(tmp_path).values())
    assert "backend_disabled" in said and said <= {"backend_disabled", "not_applicable"}


@pytest.mark.slow
def test_a_model_is_asked_for_each_text_once(corpus: Path, tmp_path: Path, server: Server) -> None:
    told: list[str] = []
    spec = f"openai:letters@{server.url}"
    pipeline.analyze([str(corpus)], tmp_path, jobs=2, shard_bytes=400_000, embedder=spec, tell=told.append)
    assert all(e.startswith("openai:letters@127.0.0.1") for e in used(tmp_path)) and used(tmp_path)
    assert len(set(server.texts)) == len(server.texts) and len(told) == 1
    asked = len(server.texts)
    session, stored = next((s, c) for s, c in curves(tmp_path).items() if isinstance(c, dict))
    assert explain(Store(tmp_path), session, CURVE).detail["raw"] == stored["raw"]
    pipeline.measure(tmp_path, embedder="words")
    pipeline.measure(tmp_path, embedder=spec)
    assert len(server.texts) == asked


@pytest.mark.slow
def test_a_run_that_broke_off_goes_on_where_it_was(
    corpus: Path, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedders, "TRIES", 1)
    pipeline.ingest([str(corpus)], tmp_path, jobs=1, embedder=f"openai:letters@{server.url}")
    assert server.texts == []
    server.faults += [b'{"data": []}']
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
        for turn in range(2):
            log.user(f"{asked} {asked} {k}{turn}")
            log.say(answered)
        (folder / f"{k}.jsonl").write_bytes(log.data())
    return folder


@pytest.mark.slow
def test_a_model_gets_a_scale_of_its_own_when_there_are_enough_sessions(tmp_path: Path, server: Server) -> None:
    folder, store, spec = tmp_path / "traces", tmp_path / "store", f"openai:letters@{server.url}"
    folder.mkdir()

    def scales() -> set[tuple[Any, ...]]:
        return {tuple(curve["calibration"].values()) for curve in details(store)}

    pipeline.analyze([str(talks(folder, 0, 20))], store, jobs=1, shard_bytes=5_000, embedder=spec)
    assert {origin for *_, origin in scales()} == {"identity"}
    pipeline.analyze([str(talks(folder, 20, 20))], store, jobs=1, shard_bytes=5_000)
    (fitted,) = scales()
    assert fitted[-1] == "fitted" and len(curves(store)) == 40
    pipeline.analyze([str(talks(folder, 40, 2))], store, jobs=1, shard_bytes=5_000)
    assert scales() == {fitted}


@pytest.mark.slow
def test_what_needs_no_vectors_is_explained_when_the_model_is_gone(
    corpus: Path, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedders, "TRIES", 1)
    pipeline.analyze([str(corpus)], tmp_path, jobs=1, embedder=f"openai:letters@{server.url}")
    (tmp_path / CACHE_FILE).unlink()
    server.faults = [400] * 99
    session = next(s for s, c in curves(tmp_path).items() if isinstance(c, dict))
    assert explain(Store(tmp_path), session, "behavior.tool_call_count").value is not None
    gone = explain(Store(tmp_path), session, CURVE)
    assert gone.absent is not None and gone.absent["reason"] == "backend_disabled"


def test_a_package_that_is_missing_says_what_to_install(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EmbedderError) as problem:
        pipeline.analyze([str(corpus)], tmp_path, jobs=1, embedder="sentence-transformers:some/model")
    assert "pip install 'sentence-transformers" in problem.value.hint
