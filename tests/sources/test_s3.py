"""Traces in an object store, through botocore against a real server on this machine: listed, read, kept, refused."""

from __future__ import annotations

import gzip
import os
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agentsignals import network
from agentsignals.cli import main
from agentsignals.errors import SourceError, UsageError
from agentsignals.experiments.replication import replicate
from agentsignals.ingest import pipeline
from agentsignals.sources import RawFile, Unreadable, open_source, read
from agentsignals.sources import s3 as source
from agentsignals.store import Store
from tests.claude import Log
from tests.ingest.test_data_sets import as_parquet
from tests.ingest.test_pipeline import tables

pytestmark = pytest.mark.engines
SECRET = "wJalrXUtnFEMI"  # noqa: S105  (of a server of this file)


def settings(monkeypatch: pytest.MonkeyPatch, url: str, key: str = "AKIDEXAMPLE", secret: str = SECRET) -> None:
    """What Amazon's programs read. Clients that were made with other settings are forgotten."""
    for name, value in {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    network._s3_client.cache_clear()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of a new server with an empty bucket, `traces`."""
    servers = pytest.importorskip("moto.server", reason="moto is not installed: `make test-engines` has it")
    server = servers.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    settings(monkeypatch, f"http://127.0.0.1:{port}")
    post(port, "reset-auth", b"inf")
    post(port, "reset")  # what servers of this process hold is one
    made = network.s3_client()
    made.create_bucket(Bucket="traces")
    made.server = server
    yield made
    server.stop()


def post(port: int, path: str, data: bytes = b"") -> None:
    """Tells the server something about itself."""
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("POST", f"/moto-api/{path}", data)
    assert connection.getresponse().status == 200
    connection.close()


def put(bucket: Any, **objects: bytes) -> None:
    for key, body in objects.items():
        bucket.put_object(Bucket="traces", Key=key, Body=body)


__all__ = ["bucket"]


def trace(session_id: str, *prompts: str) -> bytes:
    log = Log(session_id)
    for prompt in prompts:
        log.user(prompt)
    return log.data()


def prompts(store: Path) -> list[tuple[str, str]]:
    return sorted(Store(store).sql("SELECT session_id, text FROM turns").fetchall())


def listed(spec: str) -> list[str]:
    return [f.uri for f in open_source(spec)]


def test_traces_in_a_bucket_are_read_and_what_did_not_change_costs_no_request_of_its_own(
    bucket: Any, tmp_path: Path
) -> None:
    put(
        bucket,
        **{
            "team/a/one.jsonl": trace("session-one", "Fix it."),
            "team/a/two.jsonl.gz": gzip.compress(trace("session-two", "Go on.")),
            "team/": b"",
            "team/node_modules/x.jsonl": trace("session-not", "No."),
            "teammate/three.jsonl": trace("session-three", "Not asked for."),
        },
    )
    store = tmp_path / "s"
    assert pipeline.analyze(["s3://traces/team"], store, jobs=1).sessions == 2
    assert prompts(store) == [("session-one", "Fix it."), ("session-two", "Go on.")]
    (path,) = {p for (p,) in Store(store).sql("SELECT path FROM artifacts").fetchall() if "one" in p}
    assert path == "s3://traces/team/a/one.jsonl"
    again = pipeline.analyze(["s3://traces/team"], store, jobs=1)
    assert (again.parsed, again.unchanged) == (0, 2)
    put(bucket, **{"team/a/one.jsonl": trace("session-one", "Fix it!")})  # as long as before, in the same second
    assert pipeline.analyze(["s3://traces/team"], store, jobs=1).parsed == 1
    assert prompts(store)[0] == ("session-one", "Fix it!")


def test_keys_that_are_no_paths_are_read_like_others(bucket: Any, tmp_path: Path) -> None:
    keys = [
        "a//b.jsonl",
        "a/../c.jsonl",
        "a/./d.jsonl",
        "/e.jsonl",
        "f?x=1#y%2F.jsonl",
        "ü €.jsonl",
        "g\\h.jsonl",
        "i?token=x&X-Amz-Signature=y.jsonl",
        "h\x07.jsonl",
    ]
    put(bucket, **{key: trace(f"session-{n}", "Go.") for n, key in enumerate(keys)})
    assert pipeline.analyze(["s3://traces"], tmp_path / "s", jobs=1).sessions == len(keys)
    uris = listed("s3://traces")
    assert "s3://traces/a//b.jsonl" in uris and "s3://traces/h\\x07.jsonl" in uris
    assert listed("s3://traces/a/../c.jsonl") == ["s3://traces/a/../c.jsonl"]


def test_more_objects_than_a_page_of_the_list_holds_come_in_order(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "5")
    keys = [f"{n:04d}.txt" for n in range(13)]
    put(bucket, **dict.fromkeys(keys, b"x"))
    assert listed("s3://traces/") == [f"s3://traces/{key}" for key in keys]


def test_objects_of_a_shard_are_on_their_way_before_they_are_asked_for(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many at a time as may be: one after the other each would wait for an answer of its own."""
    put(bucket, **{f"{n:02d}.jsonl": trace(f"session-{n}", "Go.") for n in range(20)})
    real, waiting, most = network.s3_client().get_object, [0], [0]
    lock = threading.Lock()

    def counted(**words: Any) -> Any:
        with lock:
            waiting[0] += "Range" not in words
            most[0] = max(most[0], waiting[0])
        try:
            time.sleep(0.01)
            return real(**words)
        finally:
            with lock:
                waiting[0] -= "Range" not in words

    monkeypatch.setattr(network.s3_client(), "get_object", counted)
    assert pipeline.analyze(["s3://traces"], tmp_path / "s", jobs=1).sessions == 20
    assert 2 < most[0] <= network.S3_CONNECTIONS
    assert threading.active_count() < 6, "threads of a shard that was read end"


@pytest.mark.parametrize("most_bytes", [0, 1_000, 10_000_000])
def test_what_is_fetched_ahead_takes_bounded_memory_and_is_fetched_once(
    most_bytes: int, bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, **{f"{n}.jsonl": trace(f"session-{n}", "Go.") for n in range(8)})
    asked: list[str] = []
    real = network.s3_client().get_object
    monkeypatch.setattr(source, "_BYTES_AHEAD", most_bytes)

    def noted(**words: Any) -> Any:
        if "Range" not in words:
            asked.append(words["Key"])
        return real(**words)

    monkeypatch.setattr(network.s3_client(), "get_object", noted)
    assert pipeline.analyze(["s3://traces"], tmp_path / "s", jobs=1).sessions == 8
    assert sorted(asked) == [f"{n}.jsonl" for n in range(8)]


def test_an_object_that_vanished_or_is_denied_costs_itself_alone(bucket: Any, tmp_path: Path) -> None:
    put(bucket, **{f"{n}.jsonl": trace(f"session-{n}", "Go.") for n in range(3)})
    bucket.put_object(Bucket="traces", Key="3.jsonl", Body=trace("session-3", "Go."), StorageClass="GLACIER")
    files = [f for f in open_source("s3://traces") if isinstance(f, RawFile)]
    bucket.delete_object(Bucket="traces", Key="1.jsonl")
    answers = list(read(files))
    assert [a.reason if isinstance(a, Unreadable) else len(a) for a in answers] == [
        files[0].bytes,
        "file_gone",
        files[2].bytes,
        "no_permission",
    ]
    summary = pipeline.analyze(["s3://traces"], tmp_path / "s", jobs=1)
    assert summary.sessions == 2 and summary.skipped == {"no_permission": 1}


def test_a_server_that_goes_in_the_middle_costs_what_is_left_until_it_is_back(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, **{f"{n}.jsonl": trace(f"session-{n}", "Go.") for n in range(6)})
    seen: list[str] = []
    real = bucket.get_object

    def until_it_goes(**words: Any) -> Any:
        """Whole objects are asked for after the first bytes of all; the server goes at the fourth."""
        if "Range" not in words:
            seen.append(words["Key"])
            if len(seen) == 4:
                bucket.server.stop()
        return real(**words)

    monkeypatch.setattr(network.s3_client(), "get_object", until_it_goes)
    summary = pipeline.analyze(["s3://traces"], tmp_path / "s", jobs=1)
    lost = summary.skipped["download_failed"]
    assert lost >= 2 and (summary.sessions, summary.skipped) == (6 - lost, {"download_failed": lost})
    with pytest.raises(SourceError, match="can't be listed: EndpointConnectionError"):
        pipeline.analyze(["s3://traces"], tmp_path / "s", jobs=1)
    assert Store(tmp_path / "s").warnings == []
    monkeypatch.undo()
    bucket.server._thread = None
    bucket.server.start()
    _, port = bucket.server.get_host_and_port()
    settings(monkeypatch, f"http://127.0.0.1:{port}")
    assert pipeline.analyze(["s3://traces"], tmp_path / "s", jobs=1).sessions == 6


class Cutting(BaseHTTPRequestHandler):
    """Sends half of what it says it sends, as often as `cuts` says."""

    body, cuts, asked = b"{}" * 3_000, 1, 0

    def do_GET(self) -> None:
        type(self).asked += 1
        whole = type(self).asked > type(self).cuts
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body if whole else self.body[:3_000])
        self.close_connection = True

    def log_message(self, *words: Any) -> None: ...


@pytest.mark.parametrize(("cuts", "reason"), [(2, ""), (3, "download_failed")])
def test_an_answer_that_breaks_off_is_asked_for_again_twice(
    cuts: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("botocore", reason="botocore is not installed: `make test-engines` has it")
    monkeypatch.setattr(Cutting, "cuts", cuts)
    monkeypatch.setattr(Cutting, "asked", 0)
    with ThreadingHTTPServer(("127.0.0.1", 0), Cutting) as server:
        threading.Thread(target=server.serve_forever).start()
        settings(monkeypatch, f"http://127.0.0.1:{server.server_port}")
        place = "s3://traces/a.jsonl"
        (answer,) = read(
            [RawFile(uri=place, source="s3", spec="s3://traces", bytes=6_000, stamp=1, container="traces/a.jsonl")]
        )
        server.shutdown()
    assert answer.reason == reason if isinstance(answer, Unreadable) else answer == Cutting.body and not reason


def test_what_can_not_be_listed_is_an_error_without_credentials(
    bucket: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match="There is no file under"):
        listed("s3://traces/nothing")
    with pytest.raises(SourceError, match="can't be listed: NoSuchBucket"):
        listed("s3://no-such-bucket")
    post(bucket.server.get_host_and_port()[1], "reset-auth", b"0")  # from now on it looks at who asks
    assert main(["analyze", "s3://traces", "--no-report", "--store", str(tmp_path / "s"), "--json"]) == 1
    said = capsys.readouterr()
    assert "can't be listed: InvalidAccessKeyId" in said.out
    assert SECRET not in said.out + said.err and "AKIDEXAMPLE" not in said.out + said.err


@pytest.mark.parametrize(
    "spec",
    [
        "s3://AKIDEXAMPLE:SECRETWORD@traces/team",
        "s3://SECRETWORD@traces",
        "s3://",
        "s3:///team",
        "s3://traces/a.jsonl?X-Amz-Credential=AKID&X-Amz-Signature=SECRETWORD",
        "s3://traces/a?secret_access_key=SECRETWORD",
        "s3://traces/a?AWSAccessKeyId=SECRETWORD",
    ],
)
def test_an_address_that_is_none_or_holds_credentials_is_refused_and_repeated_nowhere(
    spec: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["analyze", spec, "--no-report", "--store", str(tmp_path / "s")]) == 2
    said = capsys.readouterr()
    assert "without credentials" in said.err and "SECRETWORD" not in said.out + said.err
    kept = b"".join(p.read_bytes() for p in (tmp_path / "s").rglob("*") if p.is_file())
    assert b"SECRETWORD" not in kept


def test_without_botocore_an_address_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    network._s3_client.cache_clear()
    with pytest.raises(UsageError) as caught:
        listed("s3://traces")
    assert caught.value.hint.startswith("Install it: pip install 'botocore")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_a_bucket_read_by_workers_gives_the_tables_of_the_folder(
    engine: str, bucket: Any, demo_folder: Path, tmp_path: Path
) -> None:
    """Each worker has a client of its own: many of them, and more objects than one asks for at a time."""
    if engine == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: `make test-engines` has it")
    corpus = demo_folder / "corpus"
    for path in sorted(p for p in corpus.rglob("*") if p.is_file()):
        bucket.put_object(Bucket="traces", Key=path.relative_to(corpus).as_posix(), Body=path.read_bytes())
    pipeline.analyze(["s3://traces"], tmp_path / "s", jobs=2, engine=engine, shard_bytes=40_000)
    expected, made = tables(demo_folder / "store"), tables(tmp_path / "s")
    for name in set(expected) - {"artifacts"}:
        columns = [c for c in expected[name].columns if "artifact_id" not in c]
        one, two = (frame[name].select(columns).sort(columns) for frame in (expected, made))
        assert one.equals(two), name


def test_a_table_is_recognised_by_its_end_however_large_and_claims_are_checked_on_it(
    bucket: Any, tmp_path: Path
) -> None:
    rows = [{"instance_id": f"t{n}", "resolved": n == 0, "model": "m", "blob": os.urandom(6_000_000)} for n in range(3)]
    put(bucket, **{"set/data/train.parquet": as_parquet(rows)})
    summary = pipeline.analyze(["s3://traces/set"], tmp_path / "store", jobs=1)
    assert (summary.attempts, summary.skipped) == (3, {})
    (tmp_path / "claims.yaml").write_text(
        "source: x\ntables: {runs: {files: [data/*.parquet], columns: {resolved: BOOLEAN}}}\n"
        "claims:\n- {id: a, text: b, over: runs, expected: 1, query: 'SELECT sum(resolved::INT) AS value FROM rows'}\n"
    )
    (verdict,) = replicate(tmp_path / "claims.yaml", "s3://traces/set")
    assert verdict.status == "pass", verdict.note
    bucket.put_object(Bucket="traces", Key="set/data/more.parquet", Body=as_parquet(rows[:1]), StorageClass="GLACIER")
    with pytest.raises(SourceError, match=r"more\.parquet cannot be read: no_permission"):
        replicate(tmp_path / "claims.yaml", "s3://traces/set")
