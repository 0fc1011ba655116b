"""Every way out of the machine: what arrives at a server elsewhere, and what is written for others, holds no secret."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from agentsignals import export
from agentsignals.cli import main
from agentsignals.labels.tasks import tasks
from tests.embedding.server import serving as serving_vectors
from tests.labels.server import serving as serving_chat
from tests.labels.stores import store_of
from tests.planted_secrets import CONTEXTS, KINDS, pieces, said

FAR = "judge.far"
WAYS = ("env", "python", "yaml quoted", "json")
PLANTED = [(kind, make(random.Random(kind)), way) for n, (kind, make) in enumerate(KINDS.items())  # noqa: S311  (draws)
           for way in (WAYS[n % len(WAYS)],)]  # fmt: skip


def planted(n: int) -> list[str]:
    """Messages that hold every secret between them, a few each."""
    told = [f"Please look at this, it fails:\n{said(secret, CONTEXTS[way])}" for _, secret, way in PLANTED]
    return ["\n".join(told[at::n]) for at in range(n)]


def leaks(arrived: str) -> list[str]:
    """The kinds of which a part arrived, in plain or escaped; never the part."""
    texts = (arrived, arrived.replace("\\\\", "\\"))
    return [kind for kind, secret, _ in PLANTED if any(p in text for p in pieces(secret) for text in texts)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sessions; people and agent both say secrets."""
    messages = planted(9)
    folder = tmp_path_factory.mktemp("out")
    return store_of(folder, messages[:3], messages[3:6], messages[6:], answer="I ran it:\n" + planted(1)[0]).folder


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A name elsewhere that leads here: the program takes it for another machine, the bytes are real."""
    found = socket.getaddrinfo
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *rest, **more: found("127.0.0.1" if host == FAR else host, *rest, **more)
    )
    yield FAR


def url_of(server: Any) -> str:
    return str(server.url).replace("127.0.0.1", FAR)


def ran(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Runs a verb; what it said on stderr."""
    main([*map(str, arguments)])
    return capsys.readouterr().err


def test_what_is_planted_is_in_the_store(store: Path) -> None:
    whole = json.dumps([pq.read_table(p).to_pylist() for p in sorted(store.rglob("events.parquet"))], default=str)
    assert len(leaks(whole)) == len(KINDS)


@pytest.mark.parametrize("name", tasks())
def test_a_model_elsewhere_is_sent_no_secret_whatever_it_judges(
    name: str, store: Path, far: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_chat() as server:
        told = ran(capsys, "label", name, "--by", f"openai:m@{url_of(server)}", "--store", store, "--window", "20000")
        arrived = json.dumps(server.requests) + json.dumps(server.headers)
    assert leaks(arrived) == []
    assert far in told and "masked" in told, "it says what goes where"
    if server.requests:
        assert "it fails" in arrived or "I ran it" in arrived


def test_only_who_asks_for_it_sends_texts_as_they_are(
    store: Path, far: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_chat() as server:
        by = ("label", "sentiment", "--by", f"openai:m@{url_of(server)}", "--store", store)
        told = ran(capsys, *by, "--no-redact")
    assert len(leaks(json.dumps(server.requests))) > len(KINDS) // 2
    assert far in told and "as they are" in told


def test_an_embedder_elsewhere_is_sent_no_secret(store: Path, far: str, capsys: pytest.CaptureFixture[str]) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(serving_vectors())
        told = ran(capsys, "measure", "--embedder", f"openai:letters@{url_of(server)}", "--store", store)
    assert server.texts and leaks(json.dumps(server.requests)) == []
    assert far in told and "masked" in told


@pytest.mark.parametrize(
    ("to", "transcripts"), [("hub", "found"), *((name, "sts") for name in export.names() if name != "baseline")]
)
def test_what_is_written_for_others_holds_no_secret(
    to: str, transcripts: str, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    ran(capsys, "export", "--to", to, "-o", out, "--store", store, "--redact", "--transcripts", transcripts)
    files = [p for p in out.rglob("*") if p.is_file()]
    texts = [json.dumps(pq.read_table(p).to_pylist(), default=str, ensure_ascii=False) if p.suffix == ".parquet"
             else p.read_text("utf-8") for p in files]  # fmt: skip
    assert any("it fails" in text for text in texts)
    assert leaks("\n".join(texts)) == []


def test_a_gold_file_holds_no_secret(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, "label", "sentiment", "--export-gold", tmp_path / "gold.jsonl", "--store", store)
    told = (tmp_path / "gold.jsonl").read_text("utf-8")
    assert "it fails" in told
    assert leaks(told) == []
