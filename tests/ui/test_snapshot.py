"""What pages ask of one session is asked of its own shard, and answered as over all."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread

import pytest

from agentsignals.ingest import pipeline
from agentsignals.signals import catalog
from agentsignals.store import Store
from agentsignals.ui import snapshot
from agentsignals.ui.snapshot import Snapshot
from agentsignals.views.session import SessionView
from tests.claude import Log
from tests.ui.served import EVIL_ID

_BOTH = "SELECT session_id, text FROM events WHERE session_id = $session AND text <> '' ORDER BY seq"


def _store(folder: Path, n: int) -> Store:
    """Sessions with a shard each."""
    for number in range(n):
        log = Log(f"0000000{number}-0000-4000-8000-000000000000", name=f"n{number}")
        log.user(f"please do {number}")
        log.say(f"did {number}")
        (folder / f"{log.session}.jsonl").write_text("\n".join(log.lines) + "\n")
    pipeline.analyze([str(folder)], folder / "store", jobs=1, shard_bytes=1)
    return Store(folder / "store")


def test_a_question_about_one_session_reads_its_shard_alone_and_answers_the_same(tmp_path: Path) -> None:
    store = _store(tmp_path, 2)
    asked = Snapshot(store)
    shards = {entry.shard for entry in store.manifest.sessions.values()}
    assert len(shards) == 2
    for session_id in store.manifest.sessions:
        rows = asked.rows_of(session_id, _BOTH)
        assert rows and rows == asked.rows(_BOTH, {"session": session_id})
        assert asked.rows_of(session_id, "SELECT count(*) AS n FROM sessions WHERE $session <> ''")[0]["n"] == 1


def test_few_shards_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_SHARDS", 1)
    store = _store(tmp_path, 2)
    asked = Snapshot(store)
    for session_id in [*store.manifest.sessions] * 2:
        assert asked.rows_of(session_id, _BOTH)
    assert len(asked._shards) == 1


def test_the_session_read_last_stays_and_it_alone(store: Store) -> None:
    asked = Snapshot(store)
    fine = asked.session("fine-1")
    assert asked.session("fine") is fine
    assert asked.session(EVIL_ID).session_id == EVIL_ID and asked.session("fine-1") is not fine


def test_only_what_a_signal_needs_is_computed_to_explain_it(store: Store) -> None:
    view = SessionView(Snapshot(store).session("fine-1"))
    everything = catalog.values(view)
    for signal in catalog.plan("product", "session"):
        needs = catalog.with_needs(frozenset(signal.needs))
        some = catalog.values(view, among=needs)
        assert {*some} - {"view", "why", "history", "vectors"} == needs
        assert catalog.explain(signal, view, some)[0] == catalog.explain(signal, view, everything)[0], signal.path


def test_a_line_more_is_seen(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    log, store = Log("00000000-0000-4000-8000-000000000000", name="n"), tmp_path / "store"

    def grown() -> None:
        log.user(f"please do {len(log.lines)}")
        (tmp_path / "traces" / "log.jsonl").write_text("\n".join(log.lines) + "\n")
        pipeline.analyze([str(tmp_path / "traces")], store, jobs=1)
        assert Store(store).manifest.history_of

    grown()
    snapshots = snapshot.Snapshots(store)
    for n in range(2, 5):
        grown()
        assert snapshots.current().rows("SELECT count(*) AS n FROM turns")[0]["n"] == n


def test_a_reading_closes_while_another_thread_asks(tmp_path: Path) -> None:
    asked = Snapshot(_store(tmp_path, 1))
    ends: list[str] = []
    asked.rows("SELECT 1")
    connection = asked._connections[""]

    def ask() -> None:
        try:
            connection.database.execute("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b")
        except Exception as problem:  # noqa: BLE001  (whatever ends it)
            ends.append(type(problem).__name__)

    asking = Thread(target=ask)
    asking.start()
    time.sleep(0.3)  # until it asks; where it takes longer, it is refused
    asked.close()
    asking.join(20)
    assert not asking.is_alive() and ends
