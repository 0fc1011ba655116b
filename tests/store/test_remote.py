"""A store on an object store, on a real server: several machines, one writer, a commit that is whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agentsignals import network
from agentsignals.cli import main
from agentsignals.errors import StoreError
from agentsignals.ingest import pipeline
from agentsignals.store import Store, disk, remote, sidecars
from tests.sources.test_s3 import bucket, prompts, put, trace

__all__ = ["bucket"]
pytestmark = pytest.mark.engines
STORE = "s3://traces/team/store"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has what follows run as on the machine of that name: each has its own copies."""

    def at(name: str) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))

    at("first")
    return at


def folder(tmp_path: Path, *sessions: str) -> str:
    (tmp_path / "in").mkdir(exist_ok=True)
    for session in sessions:
        (tmp_path / "in" / f"{session}.jsonl").write_bytes(trace(f"session-{session}", f"Go {session}."))
    return str(tmp_path / "in")


def keys(bucket: Any, below: str = "team/store/") -> list[str]:
    return [o["Key"].removeprefix(below) for o in bucket.list_objects_v2(Bucket="traces", Prefix=below)["Contents"]]


def test_what_is_written_on_one_machine_is_read_on_another_and_added_to(
    bucket: Any, tmp_path: Path, machine: Any
) -> None:
    pipeline.analyze([folder(tmp_path, "a", "b")], STORE, jobs=1)
    machine("second")
    assert prompts(STORE) == [("session-a", "Go a."), ("session-b", "Go b.")]
    assert Store(STORE).warnings == []
    assert pipeline.analyze([folder(tmp_path, "c")], STORE, jobs=1).parsed == 1
    machine("first")
    assert len(prompts(STORE)) == 3 and Store(STORE).warnings == []
    assert "lease" not in keys(bucket) and "head" in keys(bucket)


def test_a_run_that_changes_nothing_uploads_nothing(bucket: Any, tmp_path: Path, machine: Any) -> None:
    pipeline.analyze([folder(tmp_path, "a")], STORE, jobs=1)
    before = bucket.head_object(Bucket="traces", Key="team/store/head")["ETag"]
    blobs = keys(bucket)
    pipeline.analyze([folder(tmp_path)], STORE, jobs=1)
    assert bucket.head_object(Bucket="traces", Key="team/store/head")["ETag"] == before
    assert keys(bucket) == blobs


def test_labels_made_here_are_committed_as_runs_are(bucket: Any, tmp_path: Path, machine: Any) -> None:
    pipeline.analyze([folder(tmp_path, "a")], STORE, jobs=1)
    sidecars.write_labels(Store(STORE).folder, "sentiment", "person", [])
    machine("second")
    assert [p.name.split("--")[0] for p in sidecars.label_files(Store(STORE).folder)] == ["sentiment"]


_KILLED = """
import os, signal, sys
from agentsignals.store import remote
from agentsignals.ingest import pipeline

def die(*words):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(remote.LocalCopy, sys.argv[3], die)
pipeline.analyze([sys.argv[1]], sys.argv[2], jobs=1)
"""


def killed(at: str, source: str) -> None:
    """A run that is killed where it would do that."""
    done = subprocess.run([sys.executable, "-c", _KILLED, source, STORE, at], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("at", ["_swap_head", "push"])
def test_a_run_killed_before_the_swap_leaves_the_state_before_and_the_next_one_goes_on(
    at: str, bucket: Any, tmp_path: Path, machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.analyze([folder(tmp_path, "a")], STORE, jobs=1)
    killed(at, folder(tmp_path, "b"))
    machine("second")
    assert prompts(STORE) == [("session-a", "Go a.")] and Store(STORE).warnings == []
    with pytest.raises(
        StoreError, match=r"Another run \(process \d+ on .+\) is writing the store s3://traces/team/store\."
    ):
        pipeline.analyze([folder(tmp_path)], STORE, jobs=1, wait_s=0)
    monkeypatch.setattr(remote, "LEASE_S", 0.9)
    time.sleep(2)  # the server's times are whole seconds
    machine("first")
    summary = pipeline.analyze([folder(tmp_path, "c")], STORE, jobs=1)
    assert (summary.parsed, summary.sessions) == (1, 3), "what the killed run had done on this machine is kept"
    machine("third")
    assert len(prompts(STORE)) == 3 and Store(STORE).warnings == []


@pytest.mark.slow
def test_what_a_killed_run_left_is_put_aside_when_another_machine_has_gone_on(
    bucket: Any, tmp_path: Path, machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.analyze([folder(tmp_path, "a")], STORE, jobs=1)
    killed("_swap_head", folder(tmp_path, "b"))
    monkeypatch.setattr(remote, "LEASE_S", 0.9)
    time.sleep(2)
    machine("second")
    shutil.rmtree(tmp_path / "in")
    pipeline.analyze([folder(tmp_path, "c")], STORE, jobs=1)
    machine("first")
    assert [s for s, _ in prompts(STORE)] == ["session-a", "session-c"]
    assert Store(STORE).warnings == [] and Store(STORE).strays() == []
    assert list((Store(STORE).folder / "aside").iterdir()) != []


def test_who_lost_the_lease_and_comes_too_late_commits_nothing(bucket: Any, tmp_path: Path, machine: Any) -> None:
    pipeline.analyze([folder(tmp_path, "a")], STORE, jobs=1)
    root = Store(STORE).folder
    with (
        pytest.raises(StoreError, match="Another run wrote the store s3://traces/team/store in the meantime"),
        disk.locked(root),
    ):
        (root / "mine").write_text("x")
        bucket.put_object(Bucket="traces", Key="team/store/head", Body=b"{}")  # of whoever took the lease over
    assert bucket.get_object(Bucket="traces", Key="team/store/head")["Body"].read() == b"{}"


def test_a_lease_is_renewed_while_its_run_lives(
    bucket: Any, tmp_path: Path, machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "LEASE_S", 0.9)
    with remote.hold_lease("traces", "p/", 0, lambda: None):
        first = bucket.head_object(Bucket="traces", Key="p/lease")["ETag"]
        until = time.monotonic() + 20
        while bucket.head_object(Bucket="traces", Key="p/lease")["ETag"] == first and time.monotonic() < until:
            time.sleep(0.05)
        assert bucket.head_object(Bucket="traces", Key="p/lease")["ETag"] != first
    assert "Contents" not in bucket.list_objects_v2(Bucket="traces", Prefix="p/")


def test_two_who_begin_at_once_write_one_after_the_other(bucket: Any, tmp_path: Path, machine: Any) -> None:
    inside: list[str] = []

    def enter(name: str) -> None:
        with remote.hold_lease("traces", "p/", 30, lambda: None):
            inside.append(f"{name} in")
            time.sleep(0.2)
            inside.append(f"{name} out")

    threads = [threading.Thread(target=enter, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [line.split()[1] for line in inside] == ["in", "out"] * 3


def test_who_was_interrupted_while_fetching_goes_on(
    bucket: Any, tmp_path: Path, machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.analyze([folder(tmp_path, "a", "b")], STORE, jobs=1)
    machine("second")
    fetched: list[str] = []
    real = remote.LocalCopy._fetch

    def three(copy: remote.LocalCopy, path: str, entry: Any) -> None:
        if len(fetched) == 3:
            raise KeyboardInterrupt
        real(copy, path, entry)
        fetched.append(path)

    monkeypatch.setattr(network, "S3_CONNECTIONS", 1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(remote.LocalCopy, "_fetch", three)
        Store(STORE)
    assert not any(path.startswith("index.") for path in fetched), "what names others comes last"
    assert len(prompts(STORE)) == 2 and Store(STORE).warnings == [] and Store(STORE).strays() == []
    assert not (Store(STORE).folder / "aside").exists()


def test_a_long_run_commits_what_is_whole_from_time_to_time(
    bucket: Any, tmp_path: Path, machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "CHECKPOINT_S", 0.0)
    seen: list[int] = []

    def progress(stage: str, done: int, total: int | None) -> None:
        if stage == "reading" and done:
            machine("second")
            seen.append(len(Store(STORE).manifest.sessions))
            machine("first")

    source = folder(tmp_path, "a", "b", "c")
    pipeline.ingest([source], STORE, jobs=1, shard_bytes=1, progress=progress)
    assert seen == [1, 2, 3]


def test_blobs_that_nothing_is_any_more_go_after_an_hour(
    bucket: Any, tmp_path: Path, machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.analyze([folder(tmp_path, "a")], STORE, jobs=1)
    # More than a shard: the index is another then, and not only what lies beside it.
    pipeline.analyze([folder(tmp_path, "b", "c")], STORE, jobs=1, shard_bytes=1)
    held = len(keys(bucket))
    root = Store(STORE).folder
    monkeypatch.setattr(remote.disk, "KEEP_S", -1)
    with disk.locked(root):
        (root / "more").write_text("x")
    assert len(keys(bucket)) < held
    machine("second")
    assert len(prompts(STORE)) == 3 and Store(STORE).warnings == []


@pytest.mark.parametrize(
    "path", ["../out", "/out", "shards/../../out", ".remote.json", ".lock", "a/.b/c", "a//b", "a\0b", "", "..\\out"]
)
def test_a_store_that_names_files_elsewhere_is_refused(path: str, bucket: Any, tmp_path: Path, machine: Any) -> None:
    put(bucket, **{"team/store/head": json.dumps({"files": {path: ["0" * 32, 1, 1]}}).encode()})
    with pytest.raises(StoreError, match="lists a file that does not belong in a store"):
        Store(STORE)


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ({}, r"There is no store in s3://traces/team/store\."),
        ({"team/store/head": b"{"}, "is corrupt"),
        ({"team/store/head": b'{"schema_version": 2}'}, "newer agentsignals"),
        (
            {"team/store/head": b'{"files": {"index.sqlite": ["%s", 1, 1]}}' % (b"0" * 32)},
            "can't be reached: NoSuchKey",
        ),
        ({"team/store/head": b'{"files": {"a": ["00", 1, 1]}}', "team/store/blobs/00": b"x"}, "is damaged"),
    ],
)
def test_what_is_no_store_is_an_error_that_says_so(
    objects: dict[str, bytes], why: str, bucket: Any, machine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    put(bucket, **objects)
    with pytest.raises(StoreError, match=why):
        Store(STORE)
    assert main(["doctor", "--store", STORE]) in (0, 1)


def test_the_verbs_take_the_address(
    bucket: Any, tmp_path: Path, machine: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", folder(tmp_path, "a"), "--store", STORE, "--quiet", "--jobs", "1"]) == 0
    monkeypatch.setenv("AGENTSIGNALS_STORE", STORE)
    assert main(["query", "SELECT text FROM turns", "--csv"]) == 0
    assert "Go a." in capsys.readouterr().out
    assert main(["doctor"]) == 0
    assert prompts(Path(STORE)) == [("session-a", "Go a.")], "a Path of an address has lost a slash"


@pytest.mark.slow
def test_a_whole_corpus_there_and_back_is_the_same(bucket: Any, demo_folder: Path, machine: Any) -> None:
    from tests.ingest.test_pipeline import assert_same, tables  # noqa: PLC0415

    pipeline.analyze([str(demo_folder / "corpus")], STORE, jobs=2, shard_bytes=40_000)
    machine("second")
    root = Store(STORE).folder
    assert root != demo_folder and os.environ["XDG_CACHE_HOME"] in str(root)
    assert_same(tables(demo_folder / "store"), tables(root))
