"""A store that is brought up to date again and again keeps few shards, and its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsignals.ingest import pipeline
from agentsignals.store import Store, shards, tables
from agentsignals.store.query import rows
from agentsignals.store.shards import FEW
from tests.claude import Log


def content(store: Store) -> dict[str, list[str]]:
    return {name: sorted(map(str, rows(store, f"SELECT * FROM {name}")[1])) for name in tables.NAMES}


def grown(folder: Path, n: int) -> Store:
    """The store after one more session was written and read."""
    log = Log(f"{n:08d}-2222-4333-8444-555555555555", f"s{n}", f"/work/{n % 2}")
    log.user("Please fix it")
    log.say("Done.")
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / f"{n}.jsonl").write_bytes(log.data())
    pipeline.analyze([str(folder / "in")], folder / "store", jobs=1)
    return Store(folder / "store")


@pytest.mark.parametrize("few", [2, pytest.param(FEW, marks=pytest.mark.slow)])
def test_many_small_shards_become_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(shards, "FEW", few)
    counted = []
    for n in range(few * 2 + 1):
        store = grown(tmp_path, n)
        counted.append(len(store.manifest.shards))
    assert max(counted) == few
    assert counted[-1] < few + 1 < len(counted)
    assert len(store.manifest.sessions) == 2 * few + 1
    assert store.damage == [] and store.strays() == []
    pipeline.analyze([str(tmp_path / "in")], tmp_path / "fresh", jobs=1)
    assert content(store) == content(Store(tmp_path / "fresh"))


def test_shards_whose_values_were_made_otherwise_stay_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "FEW", 2)
    store = grown(tmp_path, 0)
    (first,) = store.manifest.shards.values()
    first.labels = "others"
    store.save()
    assert shards.compact(store) == 0
    monkeypatch.setattr(shards, "LARGE_BYTES", 1)
    first.labels = ""
    store.save()
    assert len(grown(tmp_path, 1).manifest.shards) == 2, "large ones are left"
    monkeypatch.setattr(shards, "LARGE_BYTES", 1 << 20)
    monkeypatch.setattr(shards, "LARGE_SESSIONS", 1)
    assert shards.compact(Store(tmp_path / "store", write=True)) == 0, "so are those of many sessions"
    monkeypatch.setattr(shards, "LARGE_SESSIONS", 2)
    assert shards.compact(Store(tmp_path / "store", write=True)) == 2


def test_a_damaged_shard_is_put_together_with_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grown(tmp_path, 0)
    store = grown(tmp_path, 1)
    monkeypatch.setattr(shards, "FEW", 2)
    (store.folder / "shards" / min(store.manifest.shards) / "turns.parquet").unlink()
    store.check_files()
    assert shards.compact(store) == 0
