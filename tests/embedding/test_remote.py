"""Vectors from a server: what is sent where, and what happens when it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from agentsignals.errors import EmbedderError, UsageError
from agentsignals.network import MASKED_NOTICE
from agentsignals.store import embedders as remote
from agentsignals.store.embedders import Remote, is_local
from agentsignals.words.vectors import REDACT, redacting
from tests.embedding.server import Server, serving, vector

FAR = [("fix the retry", "fix the retry"), ("fix the retry", "zzz qqq")]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def of(server: Server, waits: list[float] | None = None) -> Remote:
    return Remote(f"letters@{server.url}", wait=(waits if waits is not None else []).append)


def test_vectors_come_in_the_order_of_the_texts(server: Server) -> None:
    """The server answers backwards; `index` says what belongs where."""
    first, third, second = of(server).embed(["fix the retry", "fix the retry", "zzz qqq"])
    assert first.cosine(third) == pytest.approx(1)
    numbers, others = vector("fix the retry"), vector("zzz qqq")
    dot = sum(a * b for a, b in zip(numbers, others, strict=True))
    norms = sum(a * a for a in numbers) ** 0.5 * sum(b * b for b in others) ** 0.5
    assert first.cosine(second) == pytest.approx(dot / norms)
    assert server.requests[0]["model"] == "letters"


def test_many_texts_are_several_requests(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"text number {n}" for n in range(150)]
    assert len(of(server).embed(texts)) == 150
    assert [len(r["input"]) for r in server.requests] == [64, 64, 22]
    monkeypatch.setattr(remote, "BATCH_CHARS", 30)
    assert len(of(server).embed(texts[:4])) == 4
    assert [len(r["input"]) for r in server.requests[3:]] == [2, 2]


def test_a_text_without_words_is_not_sent(server: Server) -> None:
    empty, said = of(server).embed(["…", "fix it"])
    assert server.texts == ["fix it"]
    assert empty.cosine(said) is None


def test_a_busy_server_is_asked_again_after_the_time_it_names(server: Server) -> None:
    server.faults = [429, 503, b"{cut", b'{"data": []}'][:3]
    waits: list[float] = []
    assert len(of(server, waits).embed(["fix it"])) == 1
    assert waits == [7.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "fault",
    [500, b"", b"[]", b'{"data": [{"embedding": ["x"]}]}', b'{"data": [{"embedding": [1]}, {"embedding": [1]}]}'],
    ids=["status", "nothing", "a list", "words", "too many"],
)
def test_a_server_that_stays_broken_is_an_error_that_says_so(server: Server, fault: int | bytes) -> None:
    server.faults = [fault] * 4
    with pytest.raises(EmbedderError, match="in 4 tries"):
        of(server).embed(["fix it"])
    assert len(server.requests) == 4


def test_a_refusal_is_not_asked_again(server: Server) -> None:
    server.faults = [401]
    with pytest.raises(EmbedderError, match="401"):
        of(server).embed(["fix it"])
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(server: Server) -> None:
    server.faults = [302]
    with pytest.raises(EmbedderError, match="302"):
        of(server).embed(["fix it"])


def test_no_server_is_an_error(server: Server) -> None:
    gone = Remote("letters@http://127.0.0.1:9/v1", wait=lambda _: None)
    with pytest.raises(EmbedderError, match="in 4 tries"):
        gone.embed(["fix it"])


def test_the_key_goes_along_and_what_goes_where_is_told_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k1")
    told: list[str] = []
    asked = Remote(f"letters@{server.url}", tell=told.append)
    asked.embed(["fix it"])
    asked.embed(["fix that"])
    assert server.headers[0]["Authorization"] == "Bearer k1"
    assert len(told) == 1
    assert server.url in told[0]
    assert "k1" not in told[0]


def test_what_leaves_this_machine_is_masked_first(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "the key is sk-abcdefghijklmnop1234567890, mail me at jo@example.org"
    of(server).embed([text])
    assert server.texts == [text]
    monkeypatch.setattr(remote, "is_local", lambda _: False)
    away = of(server)
    away.embed([text])
    assert server.texts[1] == "the key is [key], mail me at [mail]"
    assert away.id != of(server).id or away.id.endswith("+redacted")


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


def test_the_address_may_come_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert len(Remote("letters").embed(["fix it"])) == 1


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
